//! TRANS2_QUERY_FILE_INFORMATION (MS-CIFS 2.2.6.8).

use super::super::Smb1MessageWriter;
use super::{InformationLevel, Trans2Request};
use crate::names::Trans2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryFileInformation {
    pub fid: u16,
    pub information_level: InformationLevel,
    /// Maximum data bytes of the response.
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

#[cfg(test)]
mod tests {
    use super::super::testing::parts;
    use super::*;

    #[test]
    fn the_open_and_the_level() {
        let query =
            QueryFileInformation { fid: 0x1234, information_level: InformationLevel(0x0102), max_data_count: 24 };
        assert_eq!(parts(&query), (vec![0x34, 0x12, 2, 1], vec![]));
    }
}
