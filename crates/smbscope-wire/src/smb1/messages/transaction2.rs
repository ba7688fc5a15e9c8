//! SMB_COM_TRANSACTION2 (MS-CIFS 2.2.4.46) and its secondary messages (2.2.4.47). The subcommand defines parameters
//! and data; see [`trans2`](super::trans2).

use super::message::message;
use super::transaction::part;
use super::{Malformed, Smb1Message, Smb1MessageWriter, View};
use crate::names::Trans2;
use crate::smb1::Smb1Command;

message! {
    /// Parameter words of a request with one setup word. SMB_COM_TRANSACTION (2.2.4.33) begins with the same fields.
    Fields: TRANSACTION2, 15 {
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

impl Fields {
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

/// Request, or its first message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transaction2<'a> {
    pub subcommand: Trans2,
    /// Parameter bytes of the whole request, at least as many as in this message.
    pub total_parameter_count: u16,
    /// Data bytes of the whole request, at least as many as in this message.
    pub total_data_count: u16,
    /// Maximum parameter bytes of the response.
    pub max_parameter_count: u16,
    /// Maximum data bytes of the response.
    pub max_data_count: u16,
    pub parameters: &'a [u8],
    pub data: &'a [u8],
}

impl Transaction2<'_> {
    /// Parses a message of this command.
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
    /// Response without setup words, or a part of it.
    Transaction2Response: TRANSACTION2, 10 {
        ResponseFields of u16: total = 0, 2; parameters = 6 at 8 for 10; data = 12 at 14 for 16;
    }
}

part! {
    /// Continuation of a request.
    Transaction2Secondary: TRANSACTION2_SECONDARY, 9 {
        SecondaryFields of u16: total = 0, 2; parameters = 4 at 6 for 8; data = 10 at 12 for 14;
    }
}

message! {
    /// Setup words of SMB_COM_TRANSACTION on a named pipe (2.2.5).
    PipeFields: TRANSACTION, 16 {
        subcommand: u16 = 28,
        fid: u16 = 30,
    }
}
