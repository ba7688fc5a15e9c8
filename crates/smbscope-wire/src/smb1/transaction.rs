//! TRANSACTION, TRANSACTION2 and NT_TRANSACT (MS-CIFS 2.2.4.33, 2.2.4.46, 2.2.4.62): requests and responses, which may
//! span several messages.

use super::messages::{
    NtTransactFields, NtTransactResponseFields, PipeFields, Transaction2Fields, Transaction2ResponseFields,
};
use super::{Block, Smb1Command};
use crate::bytes::CapturedName;
use crate::bytes::{before_terminator, text, u8_at, u16_at, u32_at};
use crate::kept::NameOf;
use crate::names::{Fsctl, NtTransact, Trans2, Transaction};

/// Reads a request field whose offset and width depend on the kind; `response_field` does so for responses.
macro_rules! request_field {
    ($kind:expr, $words:ident, $field:ident) => {
        match $kind {
            TransactionKind::Nt => u64::from(NtTransactFields::$field($words)?),
            _ => u64::from(Transaction2Fields::$field($words)?),
        }
    };
}

macro_rules! response_field {
    ($kind:expr, $words:ident, $field:ident) => {
        match $kind {
            TransactionKind::Nt => u64::from(NtTransactResponseFields::$field($words)?),
            _ => u64::from(Transaction2ResponseFields::$field($words)?),
        }
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionKind {
    Trans,
    Trans2,
    Nt,
}

/// Parameter and data bytes of a transaction, in all and in one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransactionProgress {
    pub total: u64,
    pub here: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TransactionRequest {
    pub trans2: Option<Trans2>,
    pub nt: Option<NtTransact>,
    pub trans: Option<Transaction>,
    pub fsctl: Option<Fsctl>,
    pub fid: Option<u16>,
    /// Path, or the name of the pipe or mailslot.
    pub path: Option<CapturedName>,
    pub progress: TransactionProgress,
}

impl TransactionKind {
    pub fn from_command(command: Smb1Command) -> Option<TransactionKind> {
        match command {
            Smb1Command::TRANSACTION => Some(TransactionKind::Trans),
            Smb1Command::TRANSACTION2 => Some(TransactionKind::Trans2),
            Smb1Command::NT_TRANSACT => Some(TransactionKind::Nt),
            _ => None,
        }
    }

    pub fn primary_of(secondary: Smb1Command) -> Option<Smb1Command> {
        match secondary {
            Smb1Command::TRANSACTION_SECONDARY => Some(Smb1Command::TRANSACTION),
            Smb1Command::TRANSACTION2_SECONDARY => Some(Smb1Command::TRANSACTION2),
            Smb1Command::NT_TRANSACT_SECONDARY => Some(Smb1Command::NT_TRANSACT),
            _ => None,
        }
    }

    /// Returns the end of a request's parameters, relative to the header; zero if the words are truncated.
    pub(super) fn parameters_end(self, words: &[u8]) -> usize {
        self.parameters(words).map_or(0, |(offset, count)| offset.saturating_add(count))
    }

    /// Returns offset (from the header) and length of a request's parameters.
    pub(super) fn parameters(self, words: &[u8]) -> Option<(usize, usize)> {
        Some((
            request_field!(self, words, parameter_offset) as usize,
            request_field!(self, words, parameter_count) as usize,
        ))
    }

    fn request_progress(self, words: &[u8]) -> Option<TransactionProgress> {
        Some(TransactionProgress {
            total: request_field!(self, words, total_parameter_count) + request_field!(self, words, total_data_count),
            here: request_field!(self, words, parameter_count) + request_field!(self, words, data_count),
        })
    }

    /// Returns `None` for interim and error responses, which have no words.
    pub(super) fn response_progress(self, words: &[u8]) -> Option<TransactionProgress> {
        let here = response_field!(self, words, parameter_count) + response_field!(self, words, data_count);
        Some(TransactionProgress { total: self.response_total(words)?, here })
    }

    /// Returns the parameter and data bytes of the whole response, which survive a truncation of the later words.
    pub(super) fn response_total(self, words: &[u8]) -> Option<u64> {
        Some(response_field!(self, words, total_parameter_count) + response_field!(self, words, total_data_count))
    }

    pub(super) fn function(words: &[u8]) -> Option<NtTransact> {
        NtTransactFields::function(words).map(NtTransact)
    }

    pub(super) fn response_parameters(self, words: &[u8]) -> Option<(usize, usize)> {
        Some((self.response_parameter_offset(words)?, response_field!(self, words, parameter_count) as usize))
    }

    pub(super) fn response_parameter_offset(self, words: &[u8]) -> Option<usize> {
        Some(response_field!(self, words, parameter_offset) as usize)
    }
}

impl TransactionRequest {
    pub(super) fn parse(
        kind: TransactionKind,
        block: &Block<'_>,
        message: &[u8],
        unicode: bool,
    ) -> Option<TransactionRequest> {
        let words = block.words;
        let mut request =
            TransactionRequest { progress: kind.request_progress(words)?, ..TransactionRequest::default() };
        let (offset, count) = kind.parameters(words).unwrap_or_default();
        let end = offset.saturating_add(count);
        let parameters = Parameters {
            bytes: message.get(offset..end.min(message.len())).unwrap_or_default(),
            missing: if count == 0 { 0 } else { end.saturating_sub(message.len()) },
            unicode,
        };
        match kind {
            TransactionKind::Trans => {
                request.trans = PipeFields::subcommand(words).map(Transaction);
                request.fid = PipeFields::fid(words);
                request.path = block.name(0);
            }
            TransactionKind::Trans2 => request.trans2(Trans2(Transaction2Fields::subcommand(words)?), &parameters),
            TransactionKind::Nt => request.nt(NtTransact(NtTransactFields::function(words)?), words, &parameters),
        }
        Some(request)
    }

    fn trans2(&mut self, subcommand: Trans2, parameters: &Parameters<'_>) {
        self.trans2 = Some(subcommand);
        if let Some((offset, _)) = trans2_name(subcommand) {
            self.path = parameters.name(offset);
        } else if matches!(subcommand, Trans2::QUERY_FILE_INFORMATION | Trans2::SET_FILE_INFORMATION) {
            self.fid = u16_at(parameters.bytes, 0);
        }
    }

    fn nt(&mut self, function: NtTransact, words: &[u8], parameters: &Parameters<'_>) {
        self.nt = Some(function);
        match function {
            NtTransact::CREATE => {
                let length = u32_at(parameters.bytes, 44).map_or(0, |length| length as usize);
                // UTF-16 names are aligned; the fixed part has 53 bytes.
                let start: usize = if parameters.unicode && u8_at(parameters.bytes, 53) == Some(0) { 54 } else { 53 };
                self.path = start.checked_add(length).and_then(|end| parameters.upto(end)?.name(start));
            }
            NtTransact::IOCTL => {
                self.fsctl = NtTransactFields::code(words).map(Fsctl);
                self.fid = NtTransactFields::fid(words);
            }
            NtTransact::NOTIFY_CHANGE => self.fid = NtTransactFields::fid(words),
            NtTransact::QUERY_SECURITY_DESC | NtTransact::SET_SECURITY_DESC => self.fid = u16_at(parameters.bytes, 0),
            _ => {}
        }
    }
}

/// Returns offset and kind of the name in the parameters of a TRANSACTION2 request.
#[inline]
pub(super) fn trans2_name(subcommand: Trans2) -> Option<(usize, NameOf)> {
    Some(match subcommand {
        Trans2::FIND_FIRST2 => (12, NameOf::Path),
        Trans2::QUERY_PATH_INFORMATION | Trans2::SET_PATH_INFORMATION => (6, NameOf::Path),
        Trans2::OPEN2 => (28, NameOf::Path),
        Trans2::CREATE_DIRECTORY => (4, NameOf::Path),
        Trans2::GET_DFS_REFERRAL => (2, NameOf::Unc),
        _ => return None,
    })
}

struct Parameters<'a> {
    bytes: &'a [u8],
    missing: usize,
    unicode: bool,
}

impl<'a> Parameters<'a> {
    /// Returns the parameters before `end`. `None` if the request has fewer.
    fn upto(&self, end: usize) -> Option<Parameters<'a>> {
        let whole = self.bytes.len() + self.missing;
        (end <= whole).then(|| Parameters {
            bytes: &self.bytes[..end.min(self.bytes.len())],
            missing: end.saturating_sub(self.bytes.len()),
            unicode: self.unicode,
        })
    }

    fn name(&self, start: usize) -> Option<CapturedName> {
        let here = self.bytes.get(start..).unwrap_or_default();
        let (bytes, has_end) = before_terminator(here, self.unicode);
        let missing = if has_end { 0 } else { self.missing };
        (!here.is_empty() || missing > 0).then(|| CapturedName { text: text(bytes, self.unicode), missing })
    }
}
