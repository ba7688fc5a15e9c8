//! SMB_COM_RENAME (MS-CIFS 2.2.4.8).

use super::message::message;

message! {
    Rename<'a>: RENAME, 1 {
        /// See [`search_attributes`](super::search_attributes).
        search_attributes: u16 = 0,
    } with {
        old_file_name: formatted,
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
        // The first name is at 38; the second format byte is at 42, so one byte of padding precedes the second name.
        assert_eq!(emitted(&rename), [1, 0x16, 0, 11, 0, 4, b'a', 0, 0, 0, 4, 0, b'b', 0, 0, 0]);
    }
}
