//! SMB_COM_DELETE (MS-CIFS 2.2.4.7).

use super::super::Command;
use super::{Request, Writer};

/// Removes a file; the answer is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delete<'a> {
    /// See [`search_attributes`](super::search_attributes).
    pub search_attributes: u16,
    /// From the root of the share, with a backslash at the beginning.
    pub file_name: &'a str,
}

impl Request for Delete<'_> {
    const COMMAND: Command = Command::DELETE;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.u16(self.search_attributes);
        writer.data();
        writer.formatted_string(self.file_name);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::emitted;
    use super::*;

    #[test]
    fn the_name_stands_behind_a_format_byte() {
        let delete = Delete { search_attributes: 6, file_name: "\\f" };
        // The data begins at 32 + 1 + 2 + 2 = 37; the format byte leaves the name at the even offset 38.
        assert_eq!(emitted(&delete), [1, 6, 0, 7, 0, 4, b'\\', 0, b'f', 0, 0, 0]);
    }
}
