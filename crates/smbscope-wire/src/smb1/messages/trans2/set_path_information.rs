//! TRANS2_SET_PATH_INFORMATION (MS-CIFS 2.2.6.7).

use super::super::Smb1MessageWriter;
use super::{Trans2Request, put_change, set_level};
use crate::fscc::Data;
use crate::names::Trans2;

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

#[cfg(test)]
mod tests {
    use super::super::super::testing::utf16;
    use super::super::testing::parts;
    use super::*;

    #[test]
    fn the_data_begins_behind_the_name() {
        let set = SetPathInformation { information: Data::EndOfFile(7), file_name: "\\ab" };
        let mut parameters = vec![4, 1, 0, 0, 0, 0];
        parameters.extend(utf16("\\ab\0"));
        assert_eq!(parts(&set), (parameters, vec![7, 0, 0, 0, 0, 0, 0, 0]));
    }
}
