//! SMB_COM_CREATE_DIRECTORY, SMB_COM_DELETE_DIRECTORY and SMB_COM_CHECK_DIRECTORY (MS-CIFS 2.2.4.1, 2.2.4.2,
//! 2.2.4.17). Paths begin with a backslash; responses are empty.

use super::message::message;

message! {
    CreateDirectory<'a>: CREATE_DIRECTORY, 0 {} with {
        directory_name: formatted,
    }
}

message! {
    DeleteDirectory<'a>: DELETE_DIRECTORY, 0 {} with {
        directory_name: formatted,
    }
}

message! {
    /// Checks that a directory exists.
    CheckDirectory<'a>: CHECK_DIRECTORY, 0 {} with {
        directory_name: formatted,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, emitted_oem};
    use super::*;

    #[test]
    fn the_name_stands_behind_a_format_byte() {
        let request = CheckDirectory { directory_name: "\\d".into() };
        // The data begins at 32 + 1 + 2 = 35, so the name after the format byte is at the even offset 36.
        assert_eq!(emitted(&request), [0, 7, 0, 4, b'\\', 0, b'd', 0, 0, 0]);
        assert_eq!(emitted_oem(&request), b"\x00\x04\x00\x04\\d\0");
        assert_eq!(emitted(&CreateDirectory { directory_name: "\\d".into() }), emitted(&request));
        assert_eq!(emitted(&DeleteDirectory { directory_name: "\\d".into() }), emitted(&request));
    }
}
