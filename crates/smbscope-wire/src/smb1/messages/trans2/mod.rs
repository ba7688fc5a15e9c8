//! Subcommands of SMB_COM_TRANSACTION2 (MS-CIFS 2.2.4.46, 2.2.6): directory listings, and queries and changes by
//! information level.

mod find_first2;
mod find_next2;
mod level;
mod query_file_information;
mod query_fs_information;
mod query_path_information;
mod set_file_information;
mod set_path_information;

pub use find_first2::{FindFirst2, FindFirst2Response, find_flags};
pub use find_next2::{FindNext2, FindNext2Response};
pub use level::{
    InformationLevel, find_class, find_level, query_file_level, query_fs_level, set_file_level, set_level,
};
pub use query_file_information::QueryFileInformation;
pub use query_fs_information::QueryFsInformation;
pub use query_path_information::QueryPathInformation;
pub use set_file_information::SetFileInformation;
pub use set_path_information::SetPathInformation;

use super::{Smb1Message, Smb1MessageWriter, Transaction2Fields};
use crate::fscc::Data;
use crate::names::Trans2;
use crate::smb1::Smb1Command;

/// Subcommand whose request fits in one message.
pub trait Trans2Request {
    const SUBCOMMAND: Trans2;

    /// Maximum parameter bytes of the response.
    const MAX_PARAMETER_COUNT: u16;

    /// Maximum data bytes of the response.
    fn max_data_count(&self) -> u16;

    fn parameters(&self, writer: &mut Smb1MessageWriter<'_>);

    fn data(&self, _writer: &mut Smb1MessageWriter<'_>) {}
}

/// Writes a change in the encoding of MS-CIFS 2.2.8.4, or a pass-through FileRenameInformation for SMB1 (MS-FSCC
/// 2.4.37). The latter takes a name without a path: the file stays in its directory.
fn put_change(data: &Data<'_>, writer: &mut Smb1MessageWriter<'_>) {
    match *data {
        Data::Rename { path, replace } => {
            let name = path.to_string();
            writer.u32(replace.into());
            writer.u32(0);
            writer.u32(writer.length_of(name.as_str()).into());
            writer.text(&name);
        }
        _ => data.emit(writer.out()),
    }
}

impl<R: Trans2Request> Smb1Message for R {
    const COMMAND: Smb1Command = Smb1Command::TRANSACTION2;

    fn body(&self, writer: &mut Smb1MessageWriter<'_>) {
        let fields = Transaction2Fields {
            max_parameter_count: R::MAX_PARAMETER_COUNT,
            max_data_count: self.max_data_count(),
            subcommand: R::SUBCOMMAND.0,
            ..Transaction2Fields::default()
        };
        fields.put(writer, |writer| self.parameters(writer), |writer| self.data(writer));
    }
}

#[cfg(test)]
mod testing {
    //! Helpers for the tests of the subcommands.

    use super::super::testing::emitted;
    use super::Trans2Request;
    use crate::bytes::u16_at;

    /// Returns parameters and data of a request, with strings in UTF-16.
    pub(super) fn parts<R: Trans2Request>(request: &R) -> (Vec<u8>, Vec<u8>) {
        let bytes = emitted(request);
        // Skips the word count: MS-CIFS 2.2.4.46.1.
        let word = |offset: usize| usize::from(u16_at(&bytes, 1 + offset).unwrap());
        assert_eq!((bytes[0], word(28)), (15, usize::from(R::SUBCOMMAND.0)));
        assert_eq!((word(18), word(22)), (word(0), word(2)), "all of it is in one message");
        let part = |offset: usize, count: usize| bytes[offset - 32..offset - 32 + count].to_vec();
        assert_eq!((word(20) % 4, word(24) % 4), (0, 0));
        (part(word(20), word(18)), part(word(24), word(22)))
    }
}
