//! Of how many messages an SMB1 response consists (MS-CIFS 2.2.4.33, 2.2.4.39, 2.2.4.46, 2.2.4.62), also where a snap
//! length cut what says so.

use crate::content::{Message1, RequestOrResponse};
use smbscope_model::ResponseStatus;
use smbscope_wire::smb1::{self, TransactionKind, TransactionProgress};

/// Payload of a message without parameter words and data: the header, WordCount and ByteCount.
const WORDLESS: u64 = smb1::Smb1Header::LENGTH as u64 + 1 + 2;
/// No client's buffer is smaller (MS-CIFS 2.2.4.53.1 asks for 1,024 bytes, Samba takes 500): a message that leaves the
/// rest of an answer to the next one is not shorter than this.
const LEAST_BUFFER: u64 = 500;

/// How many messages make the response.
#[derive(Debug)]
pub(crate) enum Answers {
    One,
    /// ECHO: the number of the last one; absent when the request was cut off before it.
    Echo(Option<u16>),
    /// Transactions and READ_MPX: complete when all bytes are there.
    Parts(Smb1MultipartResponse),
}

/// What is known of a response in several messages.
#[derive(Debug, Default)]
pub(crate) struct Smb1MultipartResponse {
    /// How much of a transaction's request is in its first message; absent when that was cut off before it says so.
    request: Option<TransactionProgress>,
    /// Whether there can be an interim response.
    is_transaction: bool,
    /// Bytes of the answer so far. Where a message does not say how many it holds, those that it has room for.
    received: u64,
    messages: u32,
    /// Payload of the longest of them.
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

    /// A transaction's "go ahead": no words, success, and secondary requests still to come. A final response has words,
    /// so where the request was cut off before it says how much is to come, a wordless one is no final response.
    /// `length` is that of the message's payload.
    pub(crate) fn is_interim(&self, message: &Message1, length: u64) -> bool {
        let Answers::Parts(Smb1MultipartResponse { request, is_transaction: true, messages: 0, .. }) = self else {
            return false;
        };
        is_wordless(message, length)
            && message.header.is_success()
            && request.is_none_or(|request| request.here < request.total)
    }

    /// Takes in a message of the response; returns whether it is the last one.
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
                // Cut off before it says which part of the answer it is; its length still does.
                self.received += length.saturating_sub(WORDLESS + 2 * u64::from(words));
                let all = total.is_some_and(|total| self.received >= total);
                length < LEAST_BUFFER || (all && (self.messages == 1 || length < self.longest))
            }
            // The rest may follow, or not.
            _ => false,
        };
        self.longest = self.longest.max(length);
        done
    }
}

/// The status of a response, of whichever kind the client asked for.
pub(super) fn status(header: &smb1::Smb1Header) -> ResponseStatus {
    match header.nt_status() {
        Some(status) => ResponseStatus::Nt(status),
        None => ResponseStatus::Dos(header.dos_error()),
    }
}

/// Whether a message has no parameters and no data, be it by its length alone.
fn is_wordless(message: &Message1, length: u64) -> bool {
    message.word_count.map_or(length == WORDLESS, |words| words == 0)
}
