//! SMB_COM_NT_TRANSACT (MS-CIFS 2.2.4.62) with the functions NT_TRANSACT_IOCTL (2.2.7.2) and NT_TRANSACT_NOTIFY_CHANGE
//! (2.2.7.4).

use super::super::Smb1Command;
use super::message::message;
use super::transaction::part;
use super::{Malformed, Smb1Message, Smb1MessageWriter, View};
use crate::names::{Fsctl, NtTransact};

message! {
    /// Parameter words of a request, with the setup words of either function.
    Fields: NT_TRANSACT, 23 {
        total_parameter_count: u32 = 3,
        total_data_count: u32 = 7,
        max_parameter_count: u32 = 11,
        max_data_count: u32 = 15,
        parameter_count: u32 = 19,
        parameter_offset: u32 = 23,
        data_count: u32 = 27,
        data_offset: u32 = 31,
        setup_count: u8 = 35,
        function: u16 = 36,
        /// Control code, or the completion filter.
        code: u32 = 38,
        fid: u16 = 42,
        /// IOCTL: true for file system control codes. NOTIFY_CHANGE: true to watch the whole subtree.
        flag: u8 = 44,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NtTransactNotifyChange {
    pub fid: u16,
    /// FILE_NOTIFY_CHANGE_*.
    pub completion_filter: u32,
    /// True to watch the whole subtree.
    pub watch_tree: bool,
    /// Maximum size of the response's list of changes.
    pub max_parameter_count: u32,
}

impl NtTransactNotifyChange {
    /// Parses a message of this command and function.
    pub fn parse(message: &[u8]) -> Result<NtTransactNotifyChange, Malformed> {
        let view = View::parse(message, Smb1Command::NT_TRANSACT)?;
        let fields = Fields::read(&view)?;
        if fields.function != NtTransact::NOTIFY_CHANGE.0 {
            return Err(view.wrong("another function"));
        }
        Ok(NtTransactNotifyChange {
            fid: fields.fid,
            completion_filter: fields.code,
            watch_tree: fields.flag != 0,
            max_parameter_count: fields.max_parameter_count,
        })
    }
}

impl Smb1Message for NtTransactNotifyChange {
    const COMMAND: Smb1Command = Smb1Command::NT_TRANSACT;

    fn body(&self, writer: &mut Smb1MessageWriter<'_>) {
        // Without parameters and data, the offsets point to the end of the message.
        let end = Smb1MessageWriter::data_at(Fields::WORDS).into();
        let fields = Fields {
            max_parameter_count: self.max_parameter_count,
            parameter_offset: end,
            data_offset: end,
            setup_count: 4,
            function: NtTransact::NOTIFY_CHANGE.0,
            code: self.completion_filter,
            fid: self.fid,
            flag: self.watch_tree.into(),
            ..Fields::default()
        };
        fields.body(writer);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NtTransactIoctl<'a> {
    pub fid: u16,
    pub code: Fsctl,
    pub input: &'a [u8],
    /// Maximum size of the output.
    pub max_data_count: u32,
}

impl Smb1Message for NtTransactIoctl<'_> {
    const COMMAND: Smb1Command = Smb1Command::NT_TRANSACT;

    fn body(&self, writer: &mut Smb1MessageWriter<'_>) {
        let fields = Fields {
            max_data_count: self.max_data_count,
            setup_count: 4,
            function: NtTransact::IOCTL.0,
            code: self.code.0,
            fid: self.fid,
            flag: 1,
            ..Fields::default()
        };
        fields.body(writer);
        let [(parameter_offset, _), (data_offset, data_count)] =
            [writer.part(|_| {}), writer.part(|writer| writer.bytes(self.input))]
                .map(|(offset, count)| (offset as u32, count as u32));
        let fields = Fields { total_data_count: data_count, parameter_offset, data_count, data_offset, ..fields };
        writer.set_words(&fields.words());
    }
}

part! {
    /// Response without setup words, or a part of it.
    NtTransactResponse: NT_TRANSACT, 18 {
        ResponseFields of u32: total = 3, 7; parameters = 11 at 15 for 19; data = 23 at 27 for 31;
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

    #[test]
    fn the_input_of_a_control_code_stands_behind_its_setup_words() {
        let code = Fsctl::QUERY_ALLOCATED_RANGES;
        let ioctl = NtTransactIoctl { fid: 0x1234, code, input: b"range", max_data_count: 0x4000 };
        let mut expected = vec![23, 0, 0, 0];
        // ByteCount ends at 81, and the data begin at the next multiple of four.
        for value in [0u32, 5, 0, 0x4000, 0, 84, 5, 84] {
            expected.extend(value.to_le_bytes());
        }
        // FSCTL_QUERY_ALLOCATED_RANGES is 0x000940cf (MS-FSCC 2.3).
        expected.extend([4, 2, 0, 0xcf, 0x40, 9, 0, 0x34, 0x12, 1, 0, 8, 0, 0, 0, 0]);
        expected.extend(b"range");
        assert_eq!(emitted(&ioctl), expected);
    }
}
