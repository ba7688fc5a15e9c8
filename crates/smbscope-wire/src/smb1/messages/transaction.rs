//! The answers to SMB_COM_TRANSACTION2 (MS-CIFS 2.2.4.46.2) and SMB_COM_NT_TRANSACT (2.2.4.62.2): one message, or
//! several that are put together by where they say their bytes belong.

use super::super::Command;
use super::{Malformed, Message, View, Writer};

/// One message of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionPart<'a> {
    /// The command that is answered.
    pub command: Command,
    /// Parameter bytes of the whole answer; a later message may say less than an earlier one.
    pub total_parameter_count: usize,
    /// Data bytes of the whole answer; likewise.
    pub total_data_count: usize,
    /// Parameter bytes in this message.
    pub parameters: &'a [u8],
    /// Where they belong.
    pub parameter_displacement: usize,
    /// Data bytes in this message.
    pub data: &'a [u8],
    /// Where they belong.
    pub data_displacement: usize,
}

impl TransactionPart<'_> {
    /// Checks a message that answers TRANSACTION2.
    pub fn parse_trans2(message: &[u8]) -> Result<TransactionPart<'_>, Malformed> {
        let view = View::parse(message, Command::TRANSACTION2)?;
        let word = |offset| view.value::<u16>(offset).map(usize::from);
        Ok(TransactionPart {
            command: Command::TRANSACTION2,
            total_parameter_count: word(0)?,
            total_data_count: word(2)?,
            parameters: view.range(word(8)?, word(6)?)?,
            parameter_displacement: word(10)?,
            data: view.range(word(14)?, word(12)?)?,
            data_displacement: word(16)?,
        })
    }

    /// Checks a message that answers NT_TRANSACT.
    pub fn parse_nt(message: &[u8]) -> Result<TransactionPart<'_>, Malformed> {
        let view = View::parse(message, Command::NT_TRANSACT)?;
        let dword = |offset| view.value::<u32>(offset).map(|value| value as usize);
        Ok(TransactionPart {
            command: Command::NT_TRANSACT,
            total_parameter_count: dword(3)?,
            total_data_count: dword(7)?,
            parameters: view.range(dword(15)?, dword(11)?)?,
            parameter_displacement: dword(19)?,
            data: view.range(dword(27)?, dword(23)?)?,
            data_displacement: dword(31)?,
        })
    }
}

/// An answer to TRANSACTION2 in one message, without setup words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trans2Response<'a> {
    /// The parameters.
    pub parameters: &'a [u8],
    /// The data.
    pub data: &'a [u8],
}

impl Message for Trans2Response<'_> {
    const COMMAND: Command = Command::TRANSACTION2;

    fn body(&self, writer: &mut Writer<'_>) {
        const WORDS: usize = 10;
        let [parameters, data] = [self.parameters.len(), self.data.len()];
        let parameters_at = (writer.position() + 2 * WORDS + 2).next_multiple_of(4);
        let data_at = (parameters_at + parameters).next_multiple_of(4);
        for word in [parameters, data, 0, parameters, parameters_at, 0, data, data_at, 0, 0] {
            writer.u16(word as u16);
        }
        writer.data();
        for part in [self.parameters, self.data] {
            writer.align(4);
            writer.bytes(part);
        }
    }
}

/// The answer to one transaction, as far as it is there. Its buffers are kept for the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assembly {
    /// The parameters.
    pub parameters: Vec<u8>,
    /// The data.
    pub data: Vec<u8>,
    received_parameters: usize,
    received_data: usize,
    most: usize,
}

impl Assembly {
    /// Empties it for an answer with at most this many bytes of parameters, and of data.
    pub fn begin(&mut self, most: usize) {
        self.parameters.clear();
        self.data.clear();
        (self.received_parameters, self.received_data) = (0, 0);
        self.most = most;
    }

    /// Takes a message; whether the answer is whole.
    pub fn add(&mut self, part: &TransactionPart<'_>) -> Result<bool, Malformed> {
        let wrong = |what| Malformed { command: part.command, what };
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

/// Puts bytes where they belong; what is not there yet is zero until it comes.
fn place(buffer: &mut Vec<u8>, displacement: usize, bytes: &[u8]) {
    let end = displacement + bytes.len();
    if buffer.len() < end {
        buffer.resize(end, 0);
    }
    buffer[displacement..end].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::super::testing::response;
    use super::*;

    /// A TRANSACTION2 answer of ten words in the order of MS-CIFS 2.2.4.46.2: the data bytes begin at 32 + 1 + 20 + 2 = 55.
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
        response(Command::TRANSACTION2, &words, &[parameters.0, data.0].concat())
    }

    fn add(assembly: &mut Assembly, message: &[u8]) -> Result<bool, Malformed> {
        assembly.add(&TransactionPart::parse_trans2(message)?)
    }

    #[test]
    fn several_messages_are_put_where_they_belong() {
        let mut assembly = Assembly::default();
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
        let mut assembly = Assembly::default();
        assembly.begin(100);
        assert_eq!(add(&mut assembly, &trans2((0, 50), (b"", 0), (b"ab", 0))), Ok(false));
        assert_eq!(add(&mut assembly, &trans2((0, 3), (b"", 0), (b"c", 2))), Ok(true));
    }

    #[test]
    fn more_than_was_asked_for_is_refused() {
        let mut assembly = Assembly::default();
        assembly.begin(4);
        let much = add(&mut assembly, &trans2((0, 5), (b"", 0), (b"ab", 0)));
        assert_eq!(much.unwrap_err().what, "more than was asked for");
        let behind = add(&mut assembly, &trans2((0, 4), (b"", 0), (b"ab", 3)));
        assert_eq!(behind.unwrap_err().what, "bytes that belong behind the end");
    }
}
