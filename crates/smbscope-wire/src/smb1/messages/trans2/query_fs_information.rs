//! TRANS2_QUERY_FS_INFORMATION (MS-CIFS 2.2.6.4).

use super::super::Smb1MessageWriter;
use super::{InformationLevel, Trans2Request};
use crate::names::Trans2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryFsInformation {
    pub information_level: InformationLevel,
    /// Maximum data bytes of the response.
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

#[cfg(test)]
mod tests {
    use super::super::testing::parts;
    use super::*;

    #[test]
    fn the_level_alone() {
        let query = QueryFsInformation { information_level: InformationLevel(0x0103), max_data_count: 24 };
        assert_eq!(parts(&query), (vec![3, 1], vec![]));
    }
}
