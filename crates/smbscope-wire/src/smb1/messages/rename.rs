//! SMB_COM_RENAME (MS-CIFS 2.2.4.8).

use super::super::Command;
use super::{Request, Writer};

/// Renames a file or directory; the answer is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rename<'a> {
    /// See [`search_attributes`](super::search_attributes).
    pub search_attributes: u16,
    /// From the root of the share, with a backslash at the beginning.
    pub old_file_name: &'a str,
    /// Likewise.
    pub new_file_name: &'a str,
}

impl Request for Rename<'_> {
    const COMMAND: Command = Command::RENAME;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.u16(self.search_attributes);
        writer.data();
        writer.formatted_string(self.old_file_name);
        writer.formatted_string(self.new_file_name);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::emitted;
    use super::*;

    #[test]
    fn both_names_are_aligned_behind_their_format_bytes() {
        let rename = Rename { search_attributes: 0x16, old_file_name: "a", new_file_name: "b" };
        // The first name is at 38; the second format byte is at 42, so that one byte of padding comes before the name.
        assert_eq!(emitted(&rename), [1, 0x16, 0, 11, 0, 4, b'a', 0, 0, 0, 4, 0, b'b', 0, 0, 0]);
    }
}
