//! SMB_COM_TREE_CONNECT_ANDX (MS-CIFS 2.2.4.55).

use super::super::Command;
use super::{Malformed, Request, View, Writer};

/// Connects to a share, whatever it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeConnectAndx<'a> {
    /// `\\server\share`
    pub path: &'a str,
    /// `?????` for any, `A:` for disks, `IPC` for pipes.
    pub service: &'a str,
}

impl Request for TreeConnectAndx<'_> {
    const COMMAND: Command = Command::TREE_CONNECT_ANDX;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.no_andx();
        writer.u16(0);
        // Users log on, shares have no passwords: one zero byte.
        writer.u16(1);
        writer.data();
        writer.u8(0);
        writer.string(self.path);
        writer.oem(self.service);
    }
}

/// The server's answer; the tree is the header's TID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeConnectAndxResponse {
    /// `A:` or another of MS-CIFS 2.2.4.55.1.
    pub service: String,
    /// NativeFileSystem.
    pub native_file_system: String,
}

impl TreeConnectAndxResponse {
    /// Checks it.
    pub fn parse(message: &[u8]) -> Result<TreeConnectAndxResponse, Malformed> {
        let view = View::parse(message, Command::TREE_CONNECT_ANDX)?;
        let (service, next) = view.oem(0);
        let (native_file_system, _) = view.string(next);
        Ok(TreeConnectAndxResponse { service, native_file_system })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response, utf16};
    use super::*;

    #[test]
    fn the_path_is_utf_16_and_the_service_is_not() {
        let connect = TreeConnectAndx { path: r"\\h\s", service: "?????" };
        let mut expected = vec![4, 0xff, 0, 0, 0, 0, 0, 1, 0, 19, 0, 0];
        // 32 + 1 + 8 + 2 = 43, and the password: the path begins at 44.
        expected.extend(utf16("\\\\h\\s\0"));
        expected.extend(b"?????\0");
        assert_eq!(emitted(&connect), expected);
    }

    #[test]
    fn the_answer_names_service_and_file_system() {
        // Three words: the data begins at 32 + 1 + 6 + 2 = 41, "A:" ends at 44.
        let data = [b"A:\0".to_vec(), utf16("NTFS\0")].concat();
        let bytes = response(Command::TREE_CONNECT_ANDX, &[0xff, 0, 0, 0, 1, 0], &data);
        let answer = TreeConnectAndxResponse::parse(&bytes).unwrap();
        assert_eq!((answer.service.as_str(), answer.native_file_system.as_str()), ("A:", "NTFS"));
    }
}
