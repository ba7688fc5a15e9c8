//! SMB_COM_TRANSACTION2 (MS-CIFS 2.2.4.46, 2.2.4.47) and SMB_COM_NT_TRANSACT (2.2.4.62), whose requests and responses
//! may span several messages, and the reassembly of responses.
//!
//! The subcommands of TRANSACTION2 are in [`trans2`](super::trans2). NT_TRANSACT_IOCTL (2.2.7.2) and
//! NT_TRANSACT_NOTIFY_CHANGE (2.2.7.4) are here.

use super::message::{Malformed, Smb1Message, Smb1MessageWriter, View, message};
use crate::names::{Fsctl, NtTransact, Trans2};
use crate::smb1::Smb1Command;

/// One message of a response, or of a request that spans several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransactionPart<'a> {
    /// Total of the transaction. A later message may reduce both totals.
    pub total_parameter_count: usize,
    pub total_data_count: usize,
    pub parameters: &'a [u8],
    /// Position of these bytes in the whole.
    pub parameter_displacement: usize,
    pub data: &'a [u8],
    pub data_displacement: usize,
}

impl<'a> TransactionPart<'a> {
    pub fn whole(parameters: &'a [u8], data: &'a [u8]) -> TransactionPart<'a> {
        TransactionPart {
            total_parameter_count: parameters.len(),
            total_data_count: data.len(),
            parameters,
            data,
            ..TransactionPart::default()
        }
    }
}

/// Declares a message with a part of a transaction, and a type for its words. The table has the number of words and
/// the offsets of the fields, as in [`message`](super::message::message).
macro_rules! part {
    (
        $(#[$meta:meta])* $name:ident: $command:ident, $words:literal {
            $fields:ident of $type:ident:
            total = $total_parameters:literal, $total_data:literal;
            parameters = $parameters:literal at $parameters_at:literal for $parameters_for:literal;
            data = $data:literal at $data_at:literal for $data_for:literal;
        }
    ) => {
        $crate::smb1::messages::message::message! {
            $fields: $command, $words {
                total_parameter_count: $type = $total_parameters,
                total_data_count: $type = $total_data,
                parameter_count: $type = $parameters,
                parameter_offset: $type = $parameters_at,
                parameter_displacement: $type = $parameters_for,
                data_count: $type = $data,
                data_offset: $type = $data_at,
                data_displacement: $type = $data_for,
            }
        }

        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name<'a>(pub $crate::smb1::messages::TransactionPart<'a>);

        impl<'a> $name<'a> {
            pub fn parse(message: &'a [u8]) -> Result<Self, $crate::smb1::messages::Malformed> {
                use $crate::codec::LengthField;
                let command = $crate::smb1::Smb1Command::$command;
                let view = $crate::smb1::messages::message::View::parse(message, command)?;
                let fields = $fields::read(&view)?;
                Ok($name($crate::smb1::messages::TransactionPart {
                    total_parameter_count: fields.total_parameter_count.to_usize(),
                    total_data_count: fields.total_data_count.to_usize(),
                    parameters: view.range(fields.parameter_offset.to_usize(), fields.parameter_count.to_usize())?,
                    parameter_displacement: fields.parameter_displacement.to_usize(),
                    data: view.range(fields.data_offset.to_usize(), fields.data_count.to_usize())?,
                    data_displacement: fields.data_displacement.to_usize(),
                }))
            }
        }

        impl $crate::smb1::messages::Smb1Message for $name<'_> {
            const COMMAND: $crate::smb1::Smb1Command = $crate::smb1::Smb1Command::$command;

            fn body(&self, writer: &mut $crate::smb1::messages::Smb1MessageWriter<'_>) {
                use $crate::codec::LengthField;
                $fields::default().body(writer);
                let part = &self.0;
                let (parameter_offset, parameter_count) = writer.part(|writer| writer.bytes(part.parameters));
                let (data_offset, data_count) = writer.part(|writer| writer.bytes(part.data));
                let fields = $fields {
                    total_parameter_count: LengthField::from_usize(part.total_parameter_count),
                    total_data_count: LengthField::from_usize(part.total_data_count),
                    parameter_count: LengthField::from_usize(parameter_count),
                    parameter_offset: LengthField::from_usize(parameter_offset),
                    parameter_displacement: LengthField::from_usize(part.parameter_displacement),
                    data_count: LengthField::from_usize(data_count),
                    data_offset: LengthField::from_usize(data_offset),
                    data_displacement: LengthField::from_usize(part.data_displacement),
                };
                writer.set_words(&fields.words());
            }
        }
    };
}

/// Reassembles the response to one transaction at a time, reusing its buffers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransactionReassembly {
    pub parameters: Vec<u8>,
    pub data: Vec<u8>,
    received_parameters: usize,
    received_data: usize,
    most: usize,
}

impl TransactionReassembly {
    /// Starts a response of at most `most` bytes of parameters, and as many of data.
    pub fn begin(&mut self, most: usize) {
        self.parameters.clear();
        self.data.clear();
        (self.received_parameters, self.received_data) = (0, 0);
        self.most = most;
    }

    /// Adds a message of the response to `command`. Returns true when the response is complete.
    pub fn add(&mut self, command: Smb1Command, part: &TransactionPart<'_>) -> Result<bool, Malformed> {
        let wrong = |what| Malformed { command, what };
        if part.total_parameter_count > self.most || part.total_data_count > self.most {
            return Err(wrong("more than requested"));
        }
        let end = |displacement: usize, bytes: &[u8]| displacement.checked_add(bytes.len());
        let fits = |end: Option<usize>, total: usize| end.is_some_and(|end| end <= total);
        if !fits(end(part.parameter_displacement, part.parameters), part.total_parameter_count)
            || !fits(end(part.data_displacement, part.data), part.total_data_count)
        {
            return Err(wrong("bytes beyond the stated total"));
        }
        place(&mut self.parameters, part.parameter_displacement, part.parameters);
        place(&mut self.data, part.data_displacement, part.data);
        self.received_parameters += part.parameters.len();
        self.received_data += part.data.len();
        Ok(self.received_parameters >= part.total_parameter_count && self.received_data >= part.total_data_count)
    }
}

/// Copies bytes to their position. Missing bytes before it are zero for now.
fn place(buffer: &mut Vec<u8>, displacement: usize, bytes: &[u8]) {
    let end = displacement + bytes.len();
    if buffer.len() < end {
        buffer.resize(end, 0);
    }
    buffer[displacement..end].copy_from_slice(bytes);
}

message! {
    /// Parameter words of a request with one setup word. SMB_COM_TRANSACTION (2.2.4.33) begins with the same fields.
    Transaction2Fields: TRANSACTION2, 15 {
        total_parameter_count: u16 = 0,
        total_data_count: u16 = 2,
        max_parameter_count: u16 = 4,
        max_data_count: u16 = 6,
        parameter_count: u16 = 18,
        parameter_offset: u16 = 20,
        data_count: u16 = 22,
        data_offset: u16 = 24,
        setup_count: u8 = 26,
        subcommand: u16 = 28,
    }
}

impl Transaction2Fields {
    /// Writes a request: these words, with counts and offsets filled in, followed by parameters and data.
    pub(super) fn put(
        self,
        writer: &mut Smb1MessageWriter<'_>,
        parameters: impl FnOnce(&mut Smb1MessageWriter<'_>),
        data: impl FnOnce(&mut Smb1MessageWriter<'_>),
    ) {
        self.body(writer);
        // Name, which is empty.
        writer.u8(0);
        let [(parameter_offset, parameter_count), (data_offset, data_count)] =
            [writer.part(parameters), writer.part(data)].map(|(offset, count)| (offset as u16, count as u16));
        let fields = Transaction2Fields {
            total_parameter_count: self.total_parameter_count.max(parameter_count),
            total_data_count: self.total_data_count.max(data_count),
            parameter_count,
            parameter_offset,
            data_count,
            data_offset,
            setup_count: 1,
            ..self
        };
        writer.set_words(&fields.words());
    }
}

/// Request, or its first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction2<'a> {
    pub subcommand: Trans2,
    /// Total of the request. Both totals are at least as large as in this message.
    pub total_parameter_count: u16,
    pub total_data_count: u16,
    pub max_parameter_count: u16,
    pub max_data_count: u16,
    pub parameters: &'a [u8],
    pub data: &'a [u8],
}

impl Transaction2<'_> {
    pub fn parse(message: &[u8]) -> Result<Transaction2<'_>, Malformed> {
        let view = View::parse(message, Smb1Command::TRANSACTION2)?;
        let fields = Transaction2Fields::read(&view)?;
        Ok(Transaction2 {
            subcommand: Trans2(fields.subcommand),
            total_parameter_count: fields.total_parameter_count,
            total_data_count: fields.total_data_count,
            max_parameter_count: fields.max_parameter_count,
            max_data_count: fields.max_data_count,
            parameters: view.range(fields.parameter_offset.into(), fields.parameter_count.into())?,
            data: view.range(fields.data_offset.into(), fields.data_count.into())?,
        })
    }
}

impl Smb1Message for Transaction2<'_> {
    const COMMAND: Smb1Command = Smb1Command::TRANSACTION2;

    fn body(&self, writer: &mut Smb1MessageWriter<'_>) {
        let fields = Transaction2Fields {
            subcommand: self.subcommand.0,
            total_parameter_count: self.total_parameter_count,
            total_data_count: self.total_data_count,
            max_parameter_count: self.max_parameter_count,
            max_data_count: self.max_data_count,
            ..Transaction2Fields::default()
        };
        fields.put(writer, |writer| writer.bytes(self.parameters), |writer| writer.bytes(self.data));
    }
}

part! {
    /// Response without setup words, or a part of it.
    Transaction2Response: TRANSACTION2, 10 {
        Transaction2ResponseFields of u16: total = 0, 2; parameters = 6 at 8 for 10; data = 12 at 14 for 16;
    }
}

part! {
    Transaction2Secondary: TRANSACTION2_SECONDARY, 9 {
        Transaction2SecondaryFields of u16: total = 0, 2; parameters = 4 at 6 for 8; data = 10 at 12 for 14;
    }
}

message! {
    /// Setup words of SMB_COM_TRANSACTION on a named pipe (2.2.5).
    PipeFields: TRANSACTION, 16 {
        subcommand: u16 = 28,
        fid: u16 = 30,
    }
}

message! {
    /// Parameter words of a request, with the setup words of either function.
    NtTransactFields: NT_TRANSACT, 23 {
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
    pub watch_tree: bool,
    /// Maximum size of the response's list of changes.
    pub max_parameter_count: u32,
}

impl NtTransactNotifyChange {
    pub fn parse(message: &[u8]) -> Result<NtTransactNotifyChange, Malformed> {
        let view = View::parse(message, Smb1Command::NT_TRANSACT)?;
        let fields = NtTransactFields::read(&view)?;
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
        let end = Smb1MessageWriter::data_at(NtTransactFields::WORDS).into();
        let fields = NtTransactFields {
            max_parameter_count: self.max_parameter_count,
            parameter_offset: end,
            data_offset: end,
            setup_count: 4,
            function: NtTransact::NOTIFY_CHANGE.0,
            code: self.completion_filter,
            fid: self.fid,
            flag: self.watch_tree.into(),
            ..NtTransactFields::default()
        };
        fields.body(writer);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NtTransactIoctl<'a> {
    pub fid: u16,
    pub code: Fsctl,
    pub input: &'a [u8],
    pub max_data_count: u32,
}

impl Smb1Message for NtTransactIoctl<'_> {
    const COMMAND: Smb1Command = Smb1Command::NT_TRANSACT;

    fn body(&self, writer: &mut Smb1MessageWriter<'_>) {
        let fields = NtTransactFields {
            max_data_count: self.max_data_count,
            setup_count: 4,
            function: NtTransact::IOCTL.0,
            code: self.code.0,
            fid: self.fid,
            flag: 1,
            ..NtTransactFields::default()
        };
        fields.body(writer);
        let [(parameter_offset, _), (data_offset, data_count)] =
            [writer.part(|_| {}), writer.part(|writer| writer.bytes(self.input))]
                .map(|(offset, count)| (offset as u32, count as u32));
        let fields =
            NtTransactFields { total_data_count: data_count, parameter_offset, data_count, data_offset, ..fields };
        writer.set_words(&fields.words());
    }
}

part! {
    NtTransactResponse: NT_TRANSACT, 18 {
        NtTransactResponseFields of u32: total = 3, 7; parameters = 11 at 15 for 19; data = 23 at 27 for 31;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response};
    use super::*;

    /// A TRANSACTION2 response of ten words (MS-CIFS 2.2.4.46.2). The data bytes begin at 32 + 1 + 20 + 2 = 55.
    fn trans2(totals: (u16, u16), parameters: (&[u8], u16), data: (&[u8], u16)) -> Vec<u8> {
        let at = 55;
        let words = [
            totals.0,
            totals.1,
            0,
            parameters.0.len() as u16,
            at,
            parameters.1,
            data.0.len() as u16,
            at + parameters.0.len() as u16,
            data.1,
            0,
        ];
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        response(Smb1Command::TRANSACTION2, &words, &[parameters.0, data.0].concat())
    }

    fn add(assembly: &mut TransactionReassembly, message: &[u8]) -> Result<bool, Malformed> {
        assembly.add(Smb1Command::TRANSACTION2, &Transaction2Response::parse(message)?.0)
    }

    #[test]
    fn several_messages_are_put_where_they_belong() {
        let mut assembly = TransactionReassembly::default();
        assembly.begin(100);
        assert_eq!(add(&mut assembly, &trans2((2, 6), (b"pq", 0), (b"cd", 2))), Ok(false));
        assert_eq!(add(&mut assembly, &trans2((2, 6), (b"", 0), (b"ab", 0))), Ok(false));
        assert_eq!(add(&mut assembly, &trans2((2, 6), (b"", 0), (b"ef", 4))), Ok(true));
        assert_eq!((&assembly.parameters[..], &assembly.data[..]), (&b"pq"[..], &b"abcdef"[..]));
        assembly.begin(100);
        assert_eq!(add(&mut assembly, &trans2((0, 1), (b"", 0), (b"z", 0))), Ok(true));
        assert_eq!((&assembly.parameters[..], &assembly.data[..]), (&b""[..], &b"z"[..]));
    }

    #[test]
    fn a_later_message_may_reduce_the_total() {
        // MS-CIFS 2.2.4.46.2: TotalDataCount may be reduced in a later message.
        let mut assembly = TransactionReassembly::default();
        assembly.begin(100);
        assert_eq!(add(&mut assembly, &trans2((0, 50), (b"", 0), (b"ab", 0))), Ok(false));
        assert_eq!(add(&mut assembly, &trans2((0, 3), (b"", 0), (b"c", 2))), Ok(true));
    }

    #[test]
    fn more_than_was_asked_for_is_refused() {
        let mut assembly = TransactionReassembly::default();
        assembly.begin(4);
        let much = add(&mut assembly, &trans2((0, 5), (b"", 0), (b"ab", 0)));
        assert_eq!(much.unwrap_err().what, "more than requested");
        let behind = add(&mut assembly, &trans2((0, 4), (b"", 0), (b"ab", 3)));
        assert_eq!(behind.unwrap_err().what, "bytes beyond the stated total");
    }

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
