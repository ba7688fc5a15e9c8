//! SMB_COM_DELETE (MS-CIFS 2.2.4.7).

use super::message::message;

message! {
    Delete<'a>: DELETE, 1 {
        /// See [`search_attributes`](super::search_attributes).
        search_attributes: u16 = 0,
    } with {
        file_name: formatted,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::emitted;
    use super::*;

    #[test]
    fn the_name_stands_behind_a_format_byte() {
        let delete = Delete { search_attributes: 6, file_name: "\\f".into() };
        // The data begins at 32 + 1 + 2 + 2 = 37, so the name after the format byte is at the even offset 38.
        assert_eq!(emitted(&delete), [1, 6, 0, 7, 0, 4, b'\\', 0, b'f', 0, 0, 0]);
    }
}
