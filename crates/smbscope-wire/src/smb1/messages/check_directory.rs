//! SMB_COM_CHECK_DIRECTORY (MS-CIFS 2.2.4.17).

use super::super::Command;
use super::{Request, Writer};

/// Asks whether a directory is there; the answer is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckDirectory<'a> {
    /// From the root of the share, with a backslash at the beginning.
    pub directory_name: &'a str,
}

impl Request for CheckDirectory<'_> {
    const COMMAND: Command = Command::CHECK_DIRECTORY;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.data();
        writer.formatted_string(self.directory_name);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, emitted_oem};
    use super::*;

    #[test]
    fn the_name_stands_behind_a_format_byte() {
        let request = CheckDirectory { directory_name: "\\d" };
        // The data begins at 32 + 1 + 2 = 35; the format byte leaves the name at the even offset 36.
        assert_eq!(emitted(&request), [0, 7, 0, 4, b'\\', 0, b'd', 0, 0, 0]);
        assert_eq!(emitted_oem(&request), b"\x00\x04\x00\x04\\d\0");
    }
}
