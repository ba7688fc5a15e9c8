//! SMB_COM_TRANSACTION2 (MS-CIFS 2.2.4.46) and the messages that go on with it (2.2.4.47). What its parameters and data are,
//! the subcommand says: see [`trans2`](super::trans2).

use super::message::message;
use super::transaction::part;
use super::{Malformed, Smb1Message, Smb1MessageWriter, View};
use crate::names::Trans2;
use crate::smb1::Smb1Command;

message! {
    /// The words of a request with one setup word; those of SMB_COM_TRANSACTION (2.2.4.33) begin likewise.
    Fields: TRANSACTION2, 15 {
        /// Parameter bytes of the whole request.
        total_parameter_count: u16 = 0,
        /// Data bytes of the whole request.
        total_data_count: u16 = 2,
        /// Parameter bytes of the answer at most.
        max_parameter_count: u16 = 4,
        /// Data bytes of the answer at most.
        max_data_count: u16 = 6,
        /// Parameter bytes here.
        parameter_count: u16 = 18,
        /// Where they are.
        parameter_offset: u16 = 20,
        /// Data bytes here.
        data_count: u16 = 22,
        /// Where they are.
        data_offset: u16 = 24,
        /// Words from here on.
        setup_count: u8 = 26,
        /// What is asked for.
        subcommand: u16 = 28,
    }
}

impl Fields {
    /// Writes a request: these words, but for what they tell of parameters and data, and those.
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
        let fields = Fields {
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

/// A request, or its first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction2<'a> {
    /// What is asked for.
    pub subcommand: Trans2,
    /// Parameter bytes of the whole request: no fewer than are here.
    pub total_parameter_count: u16,
    /// Data bytes of the whole request, likewise.
    pub total_data_count: u16,
    /// Parameter bytes of the answer at most.
    pub max_parameter_count: u16,
    /// Data bytes of the answer at most.
    pub max_data_count: u16,
    /// Those in this message.
    pub parameters: &'a [u8],
    /// Those in this message.
    pub data: &'a [u8],
}

impl Transaction2<'_> {
    /// Checks a message of this command.
    pub fn parse(message: &[u8]) -> Result<Transaction2<'_>, Malformed> {
        let view = View::parse(message, Smb1Command::TRANSACTION2)?;
        let fields = Fields::read(&view)?;
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
        let fields = Fields {
            subcommand: self.subcommand.0,
            total_parameter_count: self.total_parameter_count,
            total_data_count: self.total_data_count,
            max_parameter_count: self.max_parameter_count,
            max_data_count: self.max_data_count,
            ..Fields::default()
        };
        fields.put(writer, |writer| writer.bytes(self.parameters), |writer| writer.bytes(self.data));
    }
}

part! {
    /// An answer without setup words, or a part of it.
    Transaction2Response: TRANSACTION2, 10 {
        ResponseFields of u16: total = 0, 2; parameters = 6 at 8 for 10; data = 12 at 14 for 16;
    }
}

part! {
    /// A request goes on.
    Transaction2Secondary: TRANSACTION2_SECONDARY, 9 {
        SecondaryFields of u16: total = 0, 2; parameters = 4 at 6 for 8; data = 10 at 12 for 14;
    }
}

message! {
    /// The setup words of SMB_COM_TRANSACTION on a named pipe (2.2.5).
    PipeFields: TRANSACTION, 16 {
        /// What is asked for.
        subcommand: u16 = 28,
        /// The pipe.
        fid: u16 = 30,
    }
}
