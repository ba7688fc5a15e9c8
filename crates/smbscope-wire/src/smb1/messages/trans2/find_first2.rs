//! TRANS2_FIND_FIRST2 (MS-CIFS 2.2.6.2).

use super::super::{Malformed, Smb1MessageWriter};
use super::{InformationLevel, Trans2Request};
use crate::bytes::u16_at;
use crate::names::Trans2;
use crate::smb1::Smb1Command;

/// Flags of FIND_FIRST2 and FIND_NEXT2 (SMB_FIND_*).
pub mod find_flags {
    pub const CLOSE_AT_EOS: u16 = 0x0002;
    pub const CONTINUE_FROM_LAST: u16 = 0x0008;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindFirst2<'a> {
    /// See [`search_attributes`](super::super::search_attributes).
    pub search_attributes: u16,
    /// Maximum number of entries.
    pub search_count: u16,
    pub flags: u16,
    pub information_level: InformationLevel,
    /// Maximum data bytes of the response.
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
    /// Search id for FIND_NEXT2 and FIND_CLOSE2.
    pub sid: u16,
    /// Number of entries.
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

#[cfg(test)]
mod tests {
    use super::super::super::testing::utf16;
    use super::super::testing::parts;
    use super::*;

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
}
