//! Number of messages in an SMB1 response (MS-CIFS §2.2.4.33, §2.2.4.39, §2.2.4.46, §2.2.4.62), even if the snap length
//! cut off the fields that determine it.

use crate::content::{Message1, RequestOrResponse};
use smbscope_model::ResponseStatus;
use smbscope_wire::smb1::{self, TransactionKind, TransactionProgress};

/// Payload length of a message without parameter words and data: the header, WordCount and ByteCount.
const WORDLESS: u64 = smb1::Smb1Header::LENGTH as u64 + 1 + 2;
/// Lower limit for client buffers (MS-CIFS §2.2.4.53.1 requires 1,024 bytes, Samba accepts 500): a message that leaves
/// the rest of the response to another one is at least this long.
const LEAST_BUFFER: u64 = 500;

#[derive(Debug)]
pub(crate) enum Answers {
    One,
    /// ECHO: the number of the last message. Absent if the request was truncated before it.
    Echo(Option<u16>),
    /// Transactions and READ_MPX: complete when all bytes have arrived.
    Parts(Smb1MultipartResponse),
}

#[derive(Debug, Default)]
pub(crate) struct Smb1MultipartResponse {
    /// Progress of the transaction's request after its first message. Absent if that was truncated.
    request: Option<TransactionProgress>,
    is_transaction: bool,
    /// Bytes received so far. For a message that does not say how many it holds, the bytes that fit.
    received: u64,
    messages: u32,
    longest: u64,
}

impl Answers {
    pub(crate) fn to(request: &Message1) -> Answers {
        let command = request.header.command;
        let is_transaction = TransactionKind::from_command(command).is_some();
        match &request.body {
            RequestOrResponse::Request(smb1::Smb1Request::Echo(count)) => Answers::Echo(Some(*count)),
            _ if command == smb1::Smb1Command::ECHO => Answers::Echo(None),
            RequestOrResponse::Request(smb1::Smb1Request::Transaction(transaction)) => {
                Answers::Parts(Smb1MultipartResponse {
                    request: Some(transaction.progress),
                    is_transaction,
                    ..Smb1MultipartResponse::default()
                })
            }
            _ if is_transaction || command == smb1::Smb1Command::READ_MPX => {
                Answers::Parts(Smb1MultipartResponse { is_transaction, ..Smb1MultipartResponse::default() })
            }
            _ => Answers::One,
        }
    }

    /// Returns true for the interim response of a transaction: no words, success, and secondary requests still to come.
    /// Final responses have words, so if the request was truncated before its counts, a response without words is not a
    /// final one. `length` is the length of the message's payload.
    pub(crate) fn is_interim(&self, message: &Message1, length: u64) -> bool {
        let Answers::Parts(Smb1MultipartResponse { request, is_transaction: true, messages: 0, .. }) = self else {
            return false;
        };
        is_wordless(message, length)
            && message.header.is_success()
            && request.is_none_or(|request| request.here < request.total)
    }

    /// Processes a message of the response. Returns true if it is the last one.
    pub(crate) fn complete(&mut self, message: &Message1, length: u64) -> bool {
        let failed = message.header.nt_status().map_or(!message.header.is_success(), |status| status.is_error());
        match self {
            Answers::One => true,
            _ if failed => true,
            Answers::Echo(last) => match (last, &message.body) {
                (Some(last), RequestOrResponse::Response(smb1::Smb1Response::Echo(number))) => number >= last,
                (Some(last), _) => *last == 1,
                (None, _) => false,
            },
            Answers::Parts(parts) => is_wordless(message, length) || parts.take(message, length),
        }
    }
}

impl Smb1MultipartResponse {
    fn take(&mut self, message: &Message1, length: u64) -> bool {
        self.messages += 1;
        let (progress, total) = match &message.body {
            RequestOrResponse::Response(smb1::Smb1Response::Transaction { progress, total, .. }) => (*progress, *total),
            RequestOrResponse::Response(smb1::Smb1Response::Multiplexed(progress)) => (Some(*progress), None),
            _ => (None, None),
        };
        let done = match (progress, message.word_count) {
            (Some(progress), _) => {
                self.received += progress.here;
                self.received >= progress.total
            }
            (None, Some(words)) if self.is_transaction => {
                // Truncated before its counts, but its length is known.
                self.received += length.saturating_sub(WORDLESS + 2 * u64::from(words));
                let all = total.is_some_and(|total| self.received >= total);
                length < LEAST_BUFFER || (all && (self.messages == 1 || length < self.longest))
            }
            // The rest may or may not follow.
            _ => false,
        };
        self.longest = self.longest.max(length);
        done
    }
}

pub(super) fn status(header: &smb1::Smb1Header) -> ResponseStatus {
    match header.nt_status() {
        Some(status) => ResponseStatus::Nt(status),
        None => ResponseStatus::Dos(header.dos_error()),
    }
}

/// Returns true if the message has neither parameters nor data, according to its word count or its length.
fn is_wordless(message: &Message1, length: u64) -> bool {
    message.word_count.map_or(length == WORDLESS, |words| words == 0)
}
