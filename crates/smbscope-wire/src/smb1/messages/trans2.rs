//! Subcommands of SMB_COM_TRANSACTION2 (MS-CIFS 2.2.6): directory listings, and queries and changes by information
//! level.
//!
//! A [`Trans2Request`] is the request of one subcommand. Information levels (MS-CIFS 2.2.2.3, MS-SMB 2.2.2.3) have
//! equivalent classes of MS-FSCC; the functions at the end convert between the two.

use super::transaction::Transaction2Fields;
use super::{Malformed, Smb1Message, Smb1MessageWriter};
use crate::bytes::u16_at;
use crate::fscc::Data;
use crate::names::{InfoLevel, Trans2};
use crate::smb1::Smb1Command;

/// Subcommand whose request fits in one message.
pub trait Trans2Request {
    const SUBCOMMAND: Trans2;

    /// Maximum parameter bytes of the response.
    const MAX_PARAMETER_COUNT: u16;

    /// Maximum data bytes of the response.
    fn max_data_count(&self) -> u16;

    fn parameters(&self, writer: &mut Smb1MessageWriter<'_>);

    fn data(&self, _writer: &mut Smb1MessageWriter<'_>) {}
}

/// Writes a change in the encoding of MS-CIFS 2.2.8.4, or a pass-through FileRenameInformation for SMB1 (MS-FSCC
/// 2.4.37). The latter takes a name without a path: the file stays in its directory.
fn put_change(data: &Data<'_>, writer: &mut Smb1MessageWriter<'_>) {
    match *data {
        Data::Rename { path, replace } => {
            let name = path.to_string();
            writer.u32(replace.into());
            writer.u32(0);
            writer.u32(writer.length_of(name.as_str()).into());
            writer.text(&name);
        }
        _ => data.emit(writer.out()),
    }
}

impl<R: Trans2Request> Smb1Message for R {
    const COMMAND: Smb1Command = Smb1Command::TRANSACTION2;

    fn body(&self, writer: &mut Smb1MessageWriter<'_>) {
        let fields = Transaction2Fields {
            max_parameter_count: R::MAX_PARAMETER_COUNT,
            max_data_count: self.max_data_count(),
            subcommand: R::SUBCOMMAND.0,
            ..Transaction2Fields::default()
        };
        fields.put(writer, |writer| self.parameters(writer), |writer| self.data(writer));
    }
}

/// Flags of FIND_FIRST2 and FIND_NEXT2 (SMB_FIND_*).
pub mod find_flags {
    pub const CLOSE_AT_EOS: u16 = 0x0002;
    pub const CONTINUE_FROM_LAST: u16 = 0x0008;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindFirst2<'a> {
    pub search_attributes: u16,
    /// Maximum number of entries.
    pub search_count: u16,
    pub flags: u16,
    pub information_level: InformationLevel,
    pub max_data_count: u16,
    /// Directory path; the last component may have wildcards.
    pub file_name: &'a str,
}

impl Trans2Request for FindFirst2<'_> {
    const SUBCOMMAND: Trans2 = Trans2::FIND_FIRST2;
    const MAX_PARAMETER_COUNT: u16 = 10;

    fn max_data_count(&self) -> u16 {
        self.max_data_count
    }

    fn parameters(&self, writer: &mut Smb1MessageWriter<'_>) {
        writer.u16(self.search_attributes);
        writer.u16(self.search_count);
        writer.u16(self.flags);
        writer.u16(self.information_level.0);
        writer.u32(0);
        writer.string(self.file_name);
    }
}

/// Parameters of the response; its data holds the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindFirst2Response {
    pub sid: u16,
    pub search_count: u16,
    pub end_of_search: bool,
}

impl FindFirst2Response {
    pub fn parse(parameters: &[u8]) -> Result<FindFirst2Response, Malformed> {
        let word = |offset| {
            let what = "too few parameters of FIND_FIRST2";
            u16_at(parameters, offset).ok_or(Malformed { command: Smb1Command::TRANSACTION2, what })
        };
        Ok(FindFirst2Response { sid: word(0)?, search_count: word(2)?, end_of_search: word(4)? != 0 })
    }
}

/// Continues a listing after an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindNext2<'a> {
    pub sid: u16,
    pub search_count: u16,
    pub information_level: InformationLevel,
    pub flags: u16,
    pub max_data_count: u16,
    /// Name of the last entry, as sent by the server.
    pub raw_name: &'a [u8],
}

impl Trans2Request for FindNext2<'_> {
    const SUBCOMMAND: Trans2 = Trans2::FIND_NEXT2;
    const MAX_PARAMETER_COUNT: u16 = 8;

    fn max_data_count(&self) -> u16 {
        self.max_data_count
    }

    fn parameters(&self, writer: &mut Smb1MessageWriter<'_>) {
        writer.u16(self.sid);
        writer.u16(self.search_count);
        writer.u16(self.information_level.0);
        // ResumeKey, unused because the name identifies the position.
        writer.u32(0);
        writer.u16(self.flags);
        writer.bytes(self.raw_name);
        writer.terminator();
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindNext2Response {
    pub search_count: u16,
    pub end_of_search: bool,
}

impl FindNext2Response {
    pub fn parse(parameters: &[u8]) -> Result<FindNext2Response, Malformed> {
        let word = |offset| {
            let what = "too few parameters of FIND_NEXT2";
            u16_at(parameters, offset).ok_or(Malformed { command: Smb1Command::TRANSACTION2, what })
        };
        Ok(FindNext2Response { search_count: word(0)?, end_of_search: word(2)? != 0 })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryPathInformation<'a> {
    pub information_level: InformationLevel,
    pub max_data_count: u16,
    pub file_name: &'a str,
}

impl Trans2Request for QueryPathInformation<'_> {
    const SUBCOMMAND: Trans2 = Trans2::QUERY_PATH_INFORMATION;
    const MAX_PARAMETER_COUNT: u16 = 2;

    fn max_data_count(&self) -> u16 {
        self.max_data_count
    }

    fn parameters(&self, writer: &mut Smb1MessageWriter<'_>) {
        writer.u16(self.information_level.0);
        writer.u32(0);
        writer.string(self.file_name);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryFileInformation {
    pub fid: u16,
    pub information_level: InformationLevel,
    pub max_data_count: u16,
}

impl Trans2Request for QueryFileInformation {
    const SUBCOMMAND: Trans2 = Trans2::QUERY_FILE_INFORMATION;
    const MAX_PARAMETER_COUNT: u16 = 2;

    fn max_data_count(&self) -> u16 {
        self.max_data_count
    }

    fn parameters(&self, writer: &mut Smb1MessageWriter<'_>) {
        writer.u16(self.fid);
        writer.u16(self.information_level.0);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryFsInformation {
    pub information_level: InformationLevel,
    pub max_data_count: u16,
}

impl Trans2Request for QueryFsInformation {
    const SUBCOMMAND: Trans2 = Trans2::QUERY_FS_INFORMATION;
    const MAX_PARAMETER_COUNT: u16 = 0;

    fn max_data_count(&self) -> u16 {
        self.max_data_count
    }

    fn parameters(&self, writer: &mut Smb1MessageWriter<'_>) {
        writer.u16(self.information_level.0);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetPathInformation<'a> {
    pub information: Data<'a>,
    pub file_name: &'a str,
}

impl Trans2Request for SetPathInformation<'_> {
    const SUBCOMMAND: Trans2 = Trans2::SET_PATH_INFORMATION;
    const MAX_PARAMETER_COUNT: u16 = 2;

    fn max_data_count(&self) -> u16 {
        0
    }

    fn parameters(&self, writer: &mut Smb1MessageWriter<'_>) {
        writer.u16(set_level(&self.information).0);
        writer.u32(0);
        writer.string(self.file_name);
    }

    fn data(&self, writer: &mut Smb1MessageWriter<'_>) {
        put_change(&self.information, writer);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetFileInformation<'a> {
    pub fid: u16,
    pub information: Data<'a>,
}

impl Trans2Request for SetFileInformation<'_> {
    const SUBCOMMAND: Trans2 = Trans2::SET_FILE_INFORMATION;
    const MAX_PARAMETER_COUNT: u16 = 2;

    fn max_data_count(&self) -> u16 {
        0
    }

    fn parameters(&self, writer: &mut Smb1MessageWriter<'_>) {
        writer.u16(self.fid);
        writer.u16(set_level(&self.information).0);
        writer.u16(0);
    }

    fn data(&self, writer: &mut Smb1MessageWriter<'_>) {
        put_change(&self.information, writer);
    }
}

/// Level of a query, a change or a directory listing. Each of the three has its own numbering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InformationLevel(pub u16);

impl InformationLevel {
    /// Offset added to a pass-through class of MS-FSCC (MS-SMB 2.2.2.3.5).
    const PASS_THROUGH: u16 = 1000;

    /// Returns the level that passes through a class of MS-FSCC. The server needs CAP_INFOLEVEL_PASSTHRU.
    pub fn pass_through(class: u8) -> InformationLevel {
        InformationLevel(InformationLevel::PASS_THROUGH + u16::from(class))
    }

    pub fn is_pass_through(self) -> bool {
        self.0 >= InformationLevel::PASS_THROUGH
    }
}

/// Returns the query level for a class of MS-FSCC 2.4 (MS-CIFS 2.2.2.3.3).
pub fn query_file_level(class: u8) -> InformationLevel {
    InformationLevel(match class {
        4 => 0x0101,  // SMB_QUERY_FILE_BASIC_INFO
        5 => 0x0102,  // SMB_QUERY_FILE_STANDARD_INFO
        7 => 0x0103,  // SMB_QUERY_FILE_EA_INFO
        9 => 0x0104,  // SMB_QUERY_FILE_NAME_INFO
        18 => 0x0107, // SMB_QUERY_FILE_ALL_INFO
        21 => 0x0108, // SMB_QUERY_FILE_ALT_NAME_INFO
        22 => 0x0109, // SMB_QUERY_FILE_STREAM_INFO
        28 => 0x010b, // SMB_QUERY_FILE_COMPRESSION_INFO
        other => return InformationLevel::pass_through(other),
    })
}

/// Returns the set level for a class of MS-FSCC 2.4 (MS-CIFS 2.2.2.3.4).
pub fn set_file_level(class: u8) -> InformationLevel {
    InformationLevel(match class {
        4 => 0x0101,  // SMB_SET_FILE_BASIC_INFO
        13 => 0x0102, // SMB_SET_FILE_DISPOSITION_INFO
        19 => 0x0103, // SMB_SET_FILE_ALLOCATION_INFO
        20 => 0x0104, // SMB_SET_FILE_END_OF_FILE_INFO
        other => return InformationLevel::pass_through(other),
    })
}

/// Returns the query level for a class of MS-FSCC 2.5 (MS-CIFS 2.2.2.3.2).
pub fn query_fs_level(class: u8) -> InformationLevel {
    InformationLevel(match class {
        1 => 0x0102, // SMB_QUERY_FS_VOLUME_INFO
        3 => 0x0103, // SMB_QUERY_FS_SIZE_INFO
        4 => 0x0104, // SMB_QUERY_FS_DEVICE_INFO
        5 => 0x0105, // SMB_QUERY_FS_ATTRIBUTE_INFO
        other => return InformationLevel::pass_through(other),
    })
}

pub fn set_level(change: &Data<'_>) -> InformationLevel {
    set_file_level(change.level().to_wire().1)
}

/// Classes of MS-FSCC 2.4 whose entries the listing levels use, from SMB_FIND_FILE_DIRECTORY_INFO on: directory, full,
/// names, both, id full, id both (MS-CIFS 2.2.2.3.1, MS-SMB 2.2.2.3.1). Listings cannot be passed through.
const FIND_CLASSES: [u8; 6] = [1, 2, 12, 3, 38, 37];
const FIRST_FIND_LEVEL: u16 = 0x0101;

pub fn find_level(class: u8) -> Option<InformationLevel> {
    let index = FIND_CLASSES.iter().position(|known| *known == class)?;
    Some(InformationLevel(FIRST_FIND_LEVEL + index as u16))
}

pub fn find_class(level: InformationLevel) -> Option<InfoLevel> {
    let index = usize::from(level.0.checked_sub(FIRST_FIND_LEVEL)?);
    FIND_CLASSES.get(index).copied().map(InfoLevel::File)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, utf16};
    use super::*;

    fn parts<R: Trans2Request>(request: &R) -> (Vec<u8>, Vec<u8>) {
        let bytes = emitted(request);
        // Skips the word count: MS-CIFS 2.2.4.46.1.
        let word = |offset: usize| usize::from(u16_at(&bytes, 1 + offset).unwrap());
        assert_eq!((bytes[0], word(28)), (15, usize::from(R::SUBCOMMAND.0)));
        assert_eq!((word(18), word(22)), (word(0), word(2)), "all of it is in one message");
        let part = |offset: usize, count: usize| bytes[offset - 32..offset - 32 + count].to_vec();
        assert_eq!((word(20) % 4, word(24) % 4), (0, 0));
        (part(word(20), word(18)), part(word(24), word(22)))
    }

    #[test]
    fn classes_without_a_level_of_their_own_are_passed_through() {
        // FileNetworkOpenInformation is class 34, FileFsFullSizeInformation 7, FileRenameInformation 10.
        assert_eq!(query_file_level(34), InformationLevel(1034));
        assert_eq!(query_fs_level(7), InformationLevel(0x03ef));
        assert_eq!(set_file_level(10), InformationLevel(0x03f2));
        assert!(set_file_level(10).is_pass_through() && !set_file_level(20).is_pass_through());
        assert_eq!(find_level(60), None);
    }

    #[test]
    fn the_pattern_follows_twelve_bytes_of_parameters() {
        let find = FindFirst2 {
            search_attributes: 0x16,
            search_count: 100,
            flags: 2,
            information_level: InformationLevel(0x104),
            max_data_count: 0x4000,
            file_name: "\\*",
        };
        let mut expected = vec![0x16, 0, 100, 0, 2, 0, 4, 1, 0, 0, 0, 0];
        expected.extend(utf16("\\*\0"));
        assert_eq!(parts(&find), (expected, vec![]));
    }

    #[test]
    fn the_answer_names_the_search() {
        let expected = FindFirst2Response { sid: 0x0201, search_count: 3, end_of_search: true };
        assert_eq!(FindFirst2Response::parse(&[1, 2, 3, 0, 1, 0, 0, 0, 0, 0]), Ok(expected));
        assert!(FindFirst2Response::parse(&[1, 2, 3, 0, 1]).is_err());
    }

    #[test]
    fn the_name_is_the_resume_position() {
        let find = FindNext2 {
            sid: 0x0201,
            search_count: 100,
            information_level: InformationLevel(0x104),
            flags: 2,
            max_data_count: 0x4000,
            raw_name: &utf16("f9"),
        };
        let mut expected = vec![1, 2, 100, 0, 4, 1, 0, 0, 0, 0, 2, 0];
        expected.extend(utf16("f9\0"));
        assert_eq!(parts(&find), (expected, vec![]));
    }

    #[test]
    fn the_answer_says_whether_there_is_more() {
        let expected = FindNext2Response { search_count: 3, end_of_search: false };
        assert_eq!(FindNext2Response::parse(&[3, 0, 0, 0, 0, 0, 0, 0]), Ok(expected));
        assert!(FindNext2Response::parse(&[3, 0, 0]).is_err());
    }

    #[test]
    fn counts_and_offsets_are_those_of_the_specification() {
        let query = QueryPathInformation {
            information_level: InformationLevel(0x0101),
            max_data_count: 0x1000,
            file_name: "\\a",
        };
        // TotalParameterCount 12, TotalDataCount 0, MaxParameterCount 2, MaxDataCount, MaxSetupCount to Reserved2.
        let mut expected = vec![15, 12, 0, 0, 0, 2, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        // Parameters: 12 at 32 + 1 + 30 + 2 + 3 = 68; data: none, at 80; one setup word, 5; ByteCount.
        expected.extend([12, 0, 68, 0, 0, 0, 80, 0, 1, 0, 5, 0, 15, 0]);
        // Name and padding; level, Reserved, name.
        expected.extend([0, 0, 0, 1, 1, 0, 0, 0, 0, b'\\', 0, b'a', 0, 0, 0]);
        assert_eq!(emitted(&query), expected);
    }

    #[test]
    fn the_open_and_the_level() {
        let query =
            QueryFileInformation { fid: 0x1234, information_level: InformationLevel(0x0102), max_data_count: 24 };
        assert_eq!(parts(&query), (vec![0x34, 0x12, 2, 1], vec![]));
    }

    #[test]
    fn the_level_alone() {
        let query = QueryFsInformation { information_level: InformationLevel(0x0103), max_data_count: 24 };
        assert_eq!(parts(&query), (vec![3, 1], vec![]));
    }

    #[test]
    fn the_data_begins_behind_the_name() {
        let set = SetPathInformation { information: Data::EndOfFile(7), file_name: "\\ab" };
        let mut parameters = vec![4, 1, 0, 0, 0, 0];
        parameters.extend(utf16("\\ab\0"));
        assert_eq!(parts(&set), (parameters, vec![7, 0, 0, 0, 0, 0, 0, 0]));
    }

    fn set(information: Data<'_>) -> (Vec<u8>, Vec<u8>) {
        parts(&SetFileInformation { fid: 0x1234, information })
    }

    #[test]
    fn each_change_has_its_level_and_its_bytes() {
        let basic = Data::Basic { times: [1, 2, 3, 4], file_attributes: 0x20 };
        let times = [1u64, 2, 3, 4, 0x20].map(u64::to_le_bytes).concat();
        assert_eq!(set(basic), (vec![0x34, 0x12, 1, 1, 0, 0], times));
        let delete = Data::Disposition(true);
        assert_eq!(set(delete), (vec![0x34, 0x12, 2, 1, 0, 0], vec![1]));
        assert_eq!(set(Data::Allocation(9)).0[2..4], [3, 1]);
        let end = (vec![0x34, 0x12, 4, 1, 0, 0], 0x1_0000_0000u64.to_le_bytes().to_vec());
        assert_eq!(set(Data::EndOfFile(0x1_0000_0000)), end);
    }

    #[test]
    fn a_rename_is_passed_through() {
        let mut expected = vec![1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0];
        expected.extend(utf16("ab"));
        let (parameters, data) = set(Data::Rename { path: "ab".into(), replace: true });
        // 1010 is 0x03f2.
        assert_eq!((parameters[2..4].to_vec(), data), (vec![0xf2, 3], expected));
    }
}
