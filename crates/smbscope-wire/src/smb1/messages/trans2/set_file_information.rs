//! TRANS2_SET_FILE_INFORMATION (MS-CIFS 2.2.6.9).

use super::super::Smb1MessageWriter;
use super::{Trans2Request, put_change, set_level};
use crate::fscc::Data;
use crate::names::Trans2;

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

#[cfg(test)]
mod tests {
    use super::super::super::testing::utf16;
    use super::super::testing::parts;
    use super::*;

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
