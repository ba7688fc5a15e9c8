//! SMB_COM_RENAME (MS-CIFS 2.2.4.8).

use super::message::message;

message! {
    /// Renames a file or directory; the answer is empty.
    Rename<'a>: RENAME, 1 {
        /// See [`search_attributes`](super::search_attributes).
        search_attributes: u16 = 0,
    } with {
        /// From the root of the share, with a backslash at the beginning.
        old_file_name: formatted,
        /// Likewise.
        new_file_name: formatted,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::emitted;
    use super::*;

    #[test]
    fn both_names_are_aligned_behind_their_format_bytes() {
        let rename = Rename { search_attributes: 0x16, old_file_name: "a".into(), new_file_name: "b".into() };
        // The first name is at 38; the second format byte is at 42, so that one byte of padding comes before the name.
        assert_eq!(emitted(&rename), [1, 0x16, 0, 11, 0, 4, b'a', 0, 0, 0, 4, 0, b'b', 0, 0, 0]);
    }
}
