//! TRANS2_QUERY_PATH_INFORMATION (MS-CIFS 2.2.6.6).

use super::super::Smb1MessageWriter;
use super::{InformationLevel, Trans2Request};
use crate::names::Trans2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryPathInformation<'a> {
    pub information_level: InformationLevel,
    /// Maximum data bytes of the response.
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

#[cfg(test)]
mod tests {
    use super::super::super::testing::emitted;
    use super::*;

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
}
