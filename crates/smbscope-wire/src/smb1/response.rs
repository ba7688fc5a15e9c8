//! Fields of SMB1 responses that later messages refer to (MS-CIFS 2.2.4).

use super::messages::{
    EchoResponse, NoDialect, NtCreateAndxResponse, NtLm012Fields, OpenAndxResponse, OpenResponse, ReadMpxResponse,
};
use super::{Block, Smb1Command, TransactionKind, transaction::TransactionProgress};
use crate::bytes::u16_at;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Smb1Response {
    Negotiate(Smb1NegotiateResult),
    Open(Smb1OpenResult),
    /// ECHO: number of this response, from 1.
    Echo(u16),
    /// READ_MPX: bytes of the whole response and of this message.
    Multiplexed(TransactionProgress),
    Transaction {
        /// Absent if truncated, and in interim responses, which have no words.
        progress: Option<TransactionProgress>,
        /// Bytes of the whole response. Absent if truncated.
        total: Option<u64>,
        /// FID, valid only for NT_TRANSACT_CREATE and TRANS2_OPEN2.
        fid: Option<u16>,
    },
    /// Anything else, or truncated.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Smb1NegotiateResult {
    /// Index of the chosen dialect; 0xffff for none.
    pub dialect_index: u16,
    /// NT LM 0.12 only: [`security_mode`](super::messages::security_mode) and
    /// [`capabilities`](super::messages::capabilities).
    pub policy: Option<(u8, u32)>,
}

fn policy(words: &[u8]) -> Option<(u8, u32)> {
    if words.len() != 2 * NtLm012Fields::WORDS {
        return None;
    }
    Some((NtLm012Fields::security_mode(words)?, NtLm012Fields::capabilities(words)?))
}

/// Result of an open, and the caching granted to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Smb1OpenResult {
    pub fid: u16,
    /// OpLockLevel of NT_CREATE_ANDX: 0 none, 1 exclusive, 2 batch, 3 level II. OPEN_ANDX does not state the level of
    /// an oplock, which is 1 here; other commands have none.
    pub oplock_level: Option<u8>,
    /// LastWriteTime, in the units of the command.
    pub last_write: u64,
    pub size: u64,
    /// CreateAction: 0 superseded, 1 opened, 2 created, 3 overwritten.
    pub action: u32,
    pub attributes: u32,
}

/// Values of CreateAction.
const OPENED: u32 = 1;
const CREATED: u32 = 2;

impl Smb1OpenResult {
    /// Result of a command that returns only a FID: CREATE and its variants leave an empty file.
    fn new(fid: u16) -> Smb1OpenResult {
        Smb1OpenResult { fid, oplock_level: None, last_write: 0, size: 0, action: CREATED, attributes: 0 }
    }

    fn core(words: &[u8]) -> Option<Smb1OpenResult> {
        use OpenResponse as Answer;
        let size = Answer::file_size(words).unwrap_or_default().into();
        let attributes = Answer::file_attributes(words).unwrap_or_default().into();
        Some(Smb1OpenResult { size, action: OPENED, attributes, ..Smb1OpenResult::new(Answer::fid(words)?) })
    }

    fn nt_create(words: &[u8]) -> Option<Smb1OpenResult> {
        use NtCreateAndxResponse as Answer;
        let opened = Smb1OpenResult::new(Answer::fid(words)?);
        let Some((times, size)) = Answer::times(words).zip(Answer::end_of_file(words)) else { return Some(opened) };
        Some(Smb1OpenResult {
            oplock_level: Answer::oplock_level(words),
            last_write: times[2],
            size,
            action: Answer::create_action(words).unwrap_or_default(),
            attributes: Answer::ext_file_attributes(words).unwrap_or_default(),
            ..opened
        })
    }

    fn open_andx(words: &[u8]) -> Option<Smb1OpenResult> {
        use OpenAndxResponse as Answer;
        /// Bit 15 of OpenResults: oplock granted.
        const OPLOCK: u16 = 0x8000;
        let opened = Smb1OpenResult::new(Answer::fid(words)?);
        let Some(results) = Answer::open_results(words) else { return Some(opened) };
        Some(Smb1OpenResult {
            oplock_level: Some(u8::from(results & OPLOCK != 0)),
            last_write: Answer::last_write_time(words).unwrap_or_default().into(),
            size: Answer::file_data_size(words).unwrap_or_default().into(),
            // 1 to 3 have the same meaning as in CreateAction.
            action: u32::from(results & 3),
            attributes: Answer::file_attributes(words).unwrap_or_default().into(),
            ..opened
        })
    }
}

impl Smb1Response {
    pub fn parse(block: &Block<'_>, message: &[u8]) -> Smb1Response {
        Self::parse_block(block, message).unwrap_or(Smb1Response::Other)
    }

    fn parse_block(b: &Block<'_>, message: &[u8]) -> Option<Smb1Response> {
        Some(match b.command {
            Smb1Command::NEGOTIATE => Smb1Response::Negotiate(Smb1NegotiateResult {
                dialect_index: NoDialect::dialect_index(b.words)?,
                policy: policy(b.words),
            }),
            Smb1Command::NT_CREATE_ANDX => Smb1Response::Open(Smb1OpenResult::nt_create(b.words)?),
            Smb1Command::OPEN_ANDX => Smb1Response::Open(Smb1OpenResult::open_andx(b.words)?),
            Smb1Command::OPEN => Smb1Response::Open(Smb1OpenResult::core(b.words)?),
            Smb1Command::CREATE | Smb1Command::CREATE_NEW | Smb1Command::CREATE_TEMPORARY => {
                Smb1Response::Open(Smb1OpenResult::new(OpenResponse::fid(b.words)?))
            }
            Smb1Command::ECHO => Smb1Response::Echo(EchoResponse::sequence_number(b.words)?),
            Smb1Command::READ_MPX => Smb1Response::Multiplexed(TransactionProgress {
                total: ReadMpxResponse::count(b.words)?.into(),
                here: ReadMpxResponse::data_length(b.words)?.into(),
            }),
            command => {
                let kind = TransactionKind::from_command(command)?;
                let parameters = kind.response_parameter_offset(b.words);
                Smb1Response::Transaction {
                    progress: kind.response_progress(b.words),
                    total: kind.response_total(b.words),
                    fid: parameters.and_then(|at| {
                        // In NT_TRANSACT_CREATE the oplock level precedes the FID.
                        let skip = if kind == TransactionKind::Nt { 2 } else { 0 };
                        u16_at(message, at.checked_add(skip)?)
                    }),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Smb1Header, blocks};
    use super::*;

    #[test]
    fn nt_create_response_gives_the_fid_and_the_oplock() {
        let mut bytes = vec![0xff, b'S', b'M', b'B', 0xa2];
        bytes.resize(Smb1Header::LENGTH, 0);
        bytes[9] = 0x80;
        bytes.extend([34, 0xff, 0, 0, 0, 2, 0xcd, 0xab]);
        bytes.resize(Smb1Header::LENGTH + 1 + 68 + 2, 0);
        // 2.2.4.64.2: LastWriteTime is the third of four times after CreateDisposition; EndOfFile follows
        // AllocationSize.
        bytes[Smb1Header::LENGTH + 1 + 27] = 9;
        bytes[Smb1Header::LENGTH + 1 + 55] = 100;
        let header = Smb1Header::parse(&bytes).unwrap();
        let block = blocks(&header, &bytes).next().unwrap();
        let opened =
            Smb1OpenResult { fid: 0xabcd, oplock_level: Some(2), last_write: 9, size: 100, action: 0, attributes: 0 };
        assert_eq!(Smb1Response::parse(&block, &bytes), Smb1Response::Open(opened));
    }

    #[test]
    fn open_andx_reports_an_oplock_without_its_level() {
        let mut bytes = vec![0xff, b'S', b'M', b'B', 0x2d];
        bytes.resize(Smb1Header::LENGTH, 0);
        bytes[9] = 0x80;
        // 2.2.4.41.2: FID, attributes, LastWriteTime, size, access, type, status, OpenResults.
        bytes.extend([15, 0xff, 0, 0, 0, 0x34, 0x12, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x80]);
        bytes.resize(Smb1Header::LENGTH + 1 + 30 + 2, 0);
        let header = Smb1Header::parse(&bytes).unwrap();
        let block = blocks(&header, &bytes).next().unwrap();
        let opened =
            Smb1OpenResult { fid: 0x1234, oplock_level: Some(1), last_write: 5, size: 6, action: 1, attributes: 0 };
        assert_eq!(Smb1Response::parse(&block, &bytes), Smb1Response::Open(opened));
    }
}
