//! Common format of SMB_COM_TRANSACTION2 and SMB_COM_NT_TRANSACT (MS-CIFS 2.2.4.46, 2.2.4.62), and the reassembly of
//! responses that span several messages.

use super::super::Smb1Command;
use super::Malformed;

/// One message of a response, or of a request that spans several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransactionPart<'a> {
    /// Parameter bytes of the whole transaction. A later message may reduce it.
    pub total_parameter_count: usize,
    /// Data bytes of the whole transaction. A later message may reduce it.
    pub total_data_count: usize,
    /// Parameter bytes in this message.
    pub parameters: &'a [u8],
    /// Position of these bytes in the whole.
    pub parameter_displacement: usize,
    /// Data bytes in this message.
    pub data: &'a [u8],
    /// Position of these bytes in the whole.
    pub data_displacement: usize,
}

impl<'a> TransactionPart<'a> {
    /// Creates the only message of a transaction.
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
            /// Parses a message of this command.
            pub fn parse(message: &'a [u8]) -> Result<Self, $crate::smb1::messages::Malformed> {
                use $crate::codec::LengthField;
                let command = $crate::smb1::Smb1Command::$command;
                let view = $crate::smb1::messages::view::View::parse(message, command)?;
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

pub(super) use part;

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
            return Err(wrong("more than was asked for"));
        }
        let end = |displacement: usize, bytes: &[u8]| displacement.checked_add(bytes.len());
        let fits = |end: Option<usize>, total: usize| end.is_some_and(|end| end <= total);
        if !fits(end(part.parameter_displacement, part.parameters), part.total_parameter_count)
            || !fits(end(part.data_displacement, part.data), part.total_data_count)
        {
            return Err(wrong("bytes that belong behind the end"));
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

#[cfg(test)]
mod tests {
    use super::super::Transaction2Response;
    use super::super::testing::response;
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
    fn a_server_may_think_better_of_how_much_there_is() {
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
        assert_eq!(much.unwrap_err().what, "more than was asked for");
        let behind = add(&mut assembly, &trans2((0, 4), (b"", 0), (b"ab", 3)));
        assert_eq!(behind.unwrap_err().what, "bytes that belong behind the end");
    }
}
