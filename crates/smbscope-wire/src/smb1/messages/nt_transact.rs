//! SMB_COM_NT_TRANSACT (MS-CIFS 2.2.4.62) with the function NT_TRANSACT_NOTIFY_CHANGE (2.2.7.4).

use super::super::Command;
use super::{Message, Writer};
use crate::names::NtTransact;

/// Waits for changes in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NtTransactNotifyChange {
    /// The directory.
    pub fid: u16,
    /// FILE_NOTIFY_CHANGE_*
    pub completion_filter: u32,
    /// With all that is below it.
    pub watch_tree: bool,
    /// Bytes of the answer at most.
    pub max_parameter_count: u32,
}

impl Message for NtTransactNotifyChange {
    const COMMAND: Command = Command::NT_TRANSACT;

    fn body(&self, writer: &mut Writer<'_>) {
        // MaxSetupCount, Reserved1.
        writer.bytes(&[0; 3]);
        writer.u32(0);
        writer.u32(0);
        writer.u32(self.max_parameter_count);
        writer.u32(0);
        // No parameters and no data; their offsets point to where they would be.
        let end = Writer::data_at(23).into();
        for count_and_offset in [0, end, 0, end] {
            writer.u32(count_and_offset);
        }
        writer.u8(4);
        writer.u16(NtTransact::NOTIFY_CHANGE.0);
        writer.u32(self.completion_filter);
        writer.u16(self.fid);
        writer.u8(self.watch_tree.into());
        writer.u8(0);
        writer.data();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::emitted;
    use super::*;

    #[test]
    fn the_setup_words_say_what_is_watched() {
        let watch = NtTransactNotifyChange {
            fid: 0x1234,
            completion_filter: 0x0f,
            watch_tree: true,
            max_parameter_count: 0x1000,
        };
        let mut expected = vec![23, 0, 0, 0];
        // The data would begin at 32 + 1 + 46 + 2 = 81.
        for value in [0u32, 0, 0x1000, 0, 0, 81, 0, 81] {
            expected.extend(value.to_le_bytes());
        }
        expected.extend([4, 4, 0, 0x0f, 0, 0, 0, 0x34, 0x12, 1, 0, 0, 0]);
        assert_eq!(emitted(&watch), expected);
    }
}
