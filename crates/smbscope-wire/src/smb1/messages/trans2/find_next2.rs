//! TRANS2_FIND_NEXT2 (MS-CIFS 2.2.6.3).

use super::super::{Malformed, Smb1MessageWriter};
use super::{InformationLevel, Trans2Request};
use crate::bytes::u16_at;
use crate::names::Trans2;
use crate::smb1::Smb1Command;

/// Continues a listing after an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindNext2<'a> {
    pub sid: u16,
    /// Maximum number of entries.
    pub search_count: u16,
    pub information_level: InformationLevel,
    pub flags: u16,
    /// Maximum data bytes of the response.
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

/// Parameters of the response; its data holds the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindNext2Response {
    /// Number of entries.
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

#[cfg(test)]
mod tests {
    use super::super::super::testing::utf16;
    use super::super::testing::parts;
    use super::*;

    #[test]
    fn the_name_says_where_to_go_on() {
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
}
