//! Operation described by a possibly truncated SMB1 request: file, path, offset, length; and the fields of responses
//! that later messages refer to (MS-CIFS 2.2.4).

use super::header::{MAX_CHAIN, next_of};
use super::messages::{
    Close, Echo, EchoResponse, LockByteRange, LockingAndxFields, LockingAndxRange, Negotiate, NoDialect, NtCreateAndx,
    NtCreateAndxResponse, NtLm012Fields, OpenAndx, OpenAndxResponse, OpenResponse, ReadAndx, ReadBytes, ReadMpx,
    ReadMpxResponse, ReadRaw, SessionSetupAndx, SessionSetupAndxLanMan, SessionSetupAndxPlain, TreeConnectAndx,
    WriteAndxFields, WriteMpx, WriteRaw, create_flags, lock_type,
};
use super::{Block, Smb1Command, Smb1Header, TransactionKind, TransactionProgress, TransactionRequest};
use crate::bytes::{CapturedName, u8_at, u16_at};
use crate::security::{SecurityToken, identify};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Smb1Request {
    /// Dialect strings, in the order to which the response's index refers.
    Negotiate(Vec<String>),
    /// SESSION_SETUP_ANDX (2.2.4.53, MS-SMB 2.2.4.6.1).
    SessionSetup(Option<SecurityToken>),
    /// TREE_CONNECT(_ANDX): `\\server\share`.
    TreeConnect(CapturedName),
    Open {
        name: Option<CapturedName>,
        /// True if the client asks for an oplock. Absent if truncated.
        asks_for_oplock: Option<bool>,
    },
    Path(Option<CapturedName>),
    File(u16),
    Range {
        fid: u16,
        offset: u64,
        length: u64,
    },
    WriteRaw {
        fid: u16,
        offset: u64,
        /// Includes the raw data block.
        length: u64,
        /// True if the server responds to the raw data block.
        write_through: bool,
    },
    Locking {
        fid: u16,
        /// Milliseconds; zero fails immediately, all ones waits forever.
        timeout: u32,
        locks: u16,
        unlocks: u16,
        /// Acknowledgment of an oplock break, which gets no response.
        oplock_release: bool,
        /// Offset and length of the first range.
        range: Option<(u64, u64)>,
    },
    Transaction(TransactionRequest),
    /// ECHO: number of requested responses.
    Echo(u16),
    /// Anything else, or truncated.
    Other,
}

impl Smb1Request {
    /// Parses one block of a request; `message` begins with the header.
    pub fn parse(header: &Smb1Header, block: &Block<'_>, message: &[u8]) -> Smb1Request {
        Self::parse_block(header, block, message).unwrap_or(Smb1Request::Other)
    }

    fn parse_block(header: &Smb1Header, b: &Block<'_>, message: &[u8]) -> Option<Smb1Request> {
        let w = b.words;
        Some(match b.command {
            Smb1Command::NEGOTIATE => Smb1Request::Negotiate(Negotiate::dialects(b)),
            Smb1Command::SESSION_SETUP_ANDX => Smb1Request::SessionSetup(logon(b)?),
            Smb1Command::TREE_CONNECT_ANDX => Smb1Request::TreeConnect(b.name(TreeConnectAndx::password(w)?.into())?),
            Smb1Command::TREE_CONNECT => Smb1Request::TreeConnect(b.formatted_name()?),
            Smb1Command::NT_CREATE_ANDX => nt_create(header, b, message),
            Smb1Command::OPEN_ANDX => open_andx(b),
            Smb1Command::OPEN | Smb1Command::CREATE | Smb1Command::CREATE_NEW | Smb1Command::CREATE_TEMPORARY => {
                Smb1Request::Open { name: b.formatted_name(), asks_for_oplock: None }
            }
            // All of these begin with the same fields as CLOSE.
            Smb1Command::CLOSE
            | Smb1Command::FLUSH
            | Smb1Command::SEEK
            | Smb1Command::SET_INFORMATION2
            | Smb1Command::QUERY_INFORMATION2
            | Smb1Command::FIND_CLOSE2 => Smb1Request::File(Close::fid(w)?),
            Smb1Command::READ
            | Smb1Command::WRITE
            | Smb1Command::LOCK_AND_READ
            | Smb1Command::WRITE_AND_UNLOCK
            | Smb1Command::WRITE_AND_CLOSE => read_bytes(w)?,
            Smb1Command::LOCK_BYTE_RANGE | Smb1Command::UNLOCK_BYTE_RANGE => lock_byte_range(w)?,
            Smb1Command::READ_RAW => read_raw(w)?,
            Smb1Command::READ_MPX => range(ReadMpx::fid(w)?, ReadMpx::offset(w)?, 0, ReadMpx::max_count(w)?.into()),
            Smb1Command::WRITE_MPX => write_mpx(w)?,
            Smb1Command::READ_ANDX => read_andx(w)?,
            Smb1Command::WRITE_ANDX => write_andx(w)?,
            Smb1Command::WRITE_RAW => write_raw(w)?,
            Smb1Command::LOCKING_ANDX => locking_andx(b)?,
            Smb1Command::TRANSACTION | Smb1Command::TRANSACTION2 | Smb1Command::NT_TRANSACT => {
                let kind = TransactionKind::from_command(b.command)?;
                Smb1Request::Transaction(TransactionRequest::parse(kind, b, message, header.is_unicode())?)
            }
            Smb1Command::ECHO => Smb1Request::Echo(Echo::echo_count(w)?),
            command if begins_with_path(command) => Smb1Request::Path(b.formatted_name()),
            _ => Smb1Request::Other,
        })
    }
}

/// Returns true for a command other than an open whose data begin with a path after a buffer format byte.
#[inline]
pub(super) fn begins_with_path(command: Smb1Command) -> bool {
    matches!(
        command,
        Smb1Command::CREATE_DIRECTORY
            | Smb1Command::DELETE_DIRECTORY
            | Smb1Command::CHECK_DIRECTORY
            | Smb1Command::DELETE
            | Smb1Command::RENAME
            | Smb1Command::NT_RENAME
            | Smb1Command::QUERY_INFORMATION
            | Smb1Command::SET_INFORMATION
            | Smb1Command::SEARCH
            | Smb1Command::FIND
            | Smb1Command::FIND_UNIQUE
    )
}

#[inline]
fn nt_create(header: &Smb1Header, block: &Block<'_>, message: &[u8]) -> Smb1Request {
    const OPLOCKS: u32 = create_flags::REQUEST_OPLOCK | create_flags::REQUEST_OPBATCH;
    let asks_for_oplock = NtCreateAndx::flags(block.words).map(|flags| flags & OPLOCKS != 0);
    Smb1Request::Open { name: nt_create_name(header, block, message), asks_for_oplock }
}

#[inline]
fn open_andx(block: &Block<'_>) -> Smb1Request {
    /// Bits 1 and 2: exclusive or batch oplock.
    const OPLOCKS: u16 = 0x0006;
    let asks_for_oplock = OpenAndx::flags(block.words).map(|flags| flags & OPLOCKS != 0);
    Smb1Request::Open { name: block.name(0), asks_for_oplock }
}

#[inline]
fn read_bytes(w: &[u8]) -> Option<Smb1Request> {
    Some(range(ReadBytes::fid(w)?, ReadBytes::offset(w)?, 0, ReadBytes::count(w)?.into()))
}

#[inline]
fn lock_byte_range(w: &[u8]) -> Option<Smb1Request> {
    Some(range(LockByteRange::fid(w)?, LockByteRange::offset(w)?, 0, LockByteRange::count(w)?.into()))
}

#[inline]
fn read_raw(w: &[u8]) -> Option<Smb1Request> {
    let (low, high) = (ReadRaw::offset_low(w)?, ReadRaw::offset_high(w).unwrap_or(0));
    Some(range(ReadRaw::fid(w)?, low, high, ReadRaw::max_count(w)?.into()))
}

#[inline]
fn write_mpx(w: &[u8]) -> Option<Smb1Request> {
    Some(range(WriteMpx::fid(w)?, WriteMpx::byte_offset(w)?, 0, WriteMpx::total_byte_count(w)?.into()))
}

#[inline]
fn read_andx(w: &[u8]) -> Option<Smb1Request> {
    // On pipes this field is a timeout, usually all ones.
    let high = ReadAndx::max_count_high(w).filter(|high| *high <= 0xff).unwrap_or(0);
    let length = u64::from(ReadAndx::max_count(w)?) | u64::from(high) << 16;
    Some(range(ReadAndx::fid(w)?, ReadAndx::offset_low(w)?, ReadAndx::offset_high(w).unwrap_or(0), length))
}

#[inline]
fn write_andx(w: &[u8]) -> Option<Smb1Request> {
    use WriteAndxFields as Fields;
    let length = u64::from(Fields::data_length(w)?) | u64::from(Fields::data_length_high(w)?) << 16;
    Some(range(Fields::fid(w)?, Fields::offset_low(w)?, Fields::offset_high(w).unwrap_or(0), length))
}

#[inline]
fn write_raw(w: &[u8]) -> Option<Smb1Request> {
    Some(Smb1Request::WriteRaw {
        fid: WriteRaw::fid(w)?,
        offset: wide(WriteRaw::offset_low(w)?, WriteRaw::offset_high(w).unwrap_or(0)),
        length: WriteRaw::count(w)?.into(),
        write_through: WriteRaw::write_mode(w)? & WriteRaw::WRITE_THROUGH != 0,
    })
}

#[inline]
fn locking_andx(block: &Block<'_>) -> Option<Smb1Request> {
    use LockingAndxFields as Fields;
    let w = block.words;
    let type_of_lock = Fields::type_of_lock(w)?;
    Some(Smb1Request::Locking {
        fid: Fields::fid(w)?,
        timeout: Fields::timeout(w)?,
        unlocks: Fields::unlocks(w)?,
        locks: Fields::locks(w)?,
        oplock_release: type_of_lock & lock_type::OPLOCK_RELEASE != 0,
        range: LockingAndxRange::parse(block.data, type_of_lock).map(|range| (range.offset, range.length)),
    })
}

fn wide(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn range(fid: u16, low: u32, high: u32, length: u64) -> Smb1Request {
    Smb1Request::Range { fid, offset: wide(low, high), length }
}

/// Returns the length of the GSS token, or of the passwords before account and domain.
pub(super) fn credentials_length(block: &Block<'_>) -> Option<usize> {
    let w = block.words;
    Some(match block.word_count() {
        SessionSetupAndx::WORDS => SessionSetupAndx::blob(w)?.into(),
        SessionSetupAndxPlain::WORDS => {
            usize::from(SessionSetupAndxPlain::oem_password(w)?)
                + usize::from(SessionSetupAndxPlain::unicode_password(w)?)
        }
        SessionSetupAndxLanMan::WORDS => SessionSetupAndxLanMan::password(w)?.into(),
        _ => return None,
    })
}

/// Returns the identity in a GSS token, or account and domain sent in plain text; both are empty for an anonymous
/// logon. The outer `None` means truncated.
fn logon(block: &Block<'_>) -> Option<Option<SecurityToken>> {
    let length = credentials_length(block)?;
    if block.word_count() == SessionSetupAndx::WORDS {
        return Some(identify(&block.data[..length.min(block.data.len())]));
    }
    let (user, next) = block.string(length)?;
    let domain = block.string(next).map_or(String::new(), |(domain, _)| domain);
    let anonymous = user.is_empty();
    Some(Some(SecurityToken::NtlmAuthenticate { domain, user, workstation: String::new(), anonymous }))
}

/// Returns the name of NT_CREATE_ANDX, which has a length and need not be terminated (2.2.4.64.1).
fn nt_create_name(header: &Smb1Header, block: &Block<'_>, message: &[u8]) -> Option<CapturedName> {
    let length = usize::from(NtCreateAndx::name(block.words)?);
    if let Some((name, _)) = block.string(0) {
        return Some(CapturedName { text: name, missing: 0 });
    }
    // Unterminated or truncated. 24 words leave the data at an odd offset, so UTF-16 follows one byte of padding.
    let start = block.data_offset() + usize::from(header.is_unicode());
    block.reaches(start + length).then(|| CapturedName::in_range(message, start..start + length, header.is_unicode()))
}

/// Bytes parsed of an SMB1 request's names and tokens.
const MAX_DATA_BYTES: usize = 16 * 1024;

/// Returns the number of bytes of a message that the analysis needs. `prefix` holds at least the header; the result
/// may grow with it.
pub fn needed(header: &Smb1Header, prefix: &[u8]) -> usize {
    let mut offset = Smb1Header::LENGTH;
    let mut command = header.command;
    for _ in 0..MAX_CHAIN {
        let Some(word_count) = u8_at(prefix, offset) else { return offset + 1 };
        let words_end = offset + 1 + 2 * usize::from(word_count);
        let Some(words) = prefix.get(offset + 1..words_end) else { return words_end };
        match next_of(command, words) {
            Some((next, at)) if at > offset => (command, offset) = (next, at),
            _ => return words_end + 2 + data_needed(header, command, words, prefix, words_end),
        }
    }
    offset
}

/// Returns the number of data bytes needed after the parameters.
fn data_needed(header: &Smb1Header, command: Smb1Command, words: &[u8], prefix: &[u8], words_end: usize) -> usize {
    let data_length = || match u16_at(prefix, words_end) {
        Some(length) => usize::from(length).min(MAX_DATA_BYTES),
        None => 0,
    };
    if header.is_reply() {
        return TransactionKind::from_command(command).map_or(0, |_| data_length().min(16));
    }
    match command {
        Smb1Command::WRITE_ANDX
        | Smb1Command::WRITE
        | Smb1Command::WRITE_RAW
        | Smb1Command::WRITE_MPX
        | Smb1Command::WRITE_AND_CLOSE
        | Smb1Command::WRITE_AND_UNLOCK => 0,
        Smb1Command::TRANSACTION2 | Smb1Command::NT_TRANSACT => {
            let kind = if command == Smb1Command::NT_TRANSACT { TransactionKind::Nt } else { TransactionKind::Trans2 };
            kind.parameters_end(words).saturating_sub(words_end + 2).min(MAX_DATA_BYTES)
        }
        Smb1Command::TRANSACTION => data_length().min(600),
        _ => data_length(),
    }
}

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
    use super::super::blocks;
    use super::*;

    fn parse(command: u8, flags2: u16, rest: &[u8]) -> (Smb1Header, Vec<u8>) {
        let mut bytes = vec![0xff, b'S', b'M', b'B', command];
        bytes.resize(Smb1Header::LENGTH, 0);
        bytes[10..12].copy_from_slice(&flags2.to_le_bytes());
        bytes.extend(rest);
        (Smb1Header::parse(&bytes).unwrap(), bytes)
    }

    fn first(header: &Smb1Header, bytes: &[u8]) -> Smb1Request {
        Smb1Request::parse(header, &blocks(header, bytes).next().unwrap(), bytes)
    }

    #[test]
    fn negotiate_lists_dialects_in_order() {
        let (header, bytes) = parse(0x72, 0, b"\x00\x1a\x00\x02LANMAN1.0\0\x02NT LM 0.12\0....");
        assert_eq!(first(&header, &bytes), Smb1Request::Negotiate(vec!["LANMAN1.0".into(), "NT LM 0.12".into()]));
    }

    #[test]
    fn read_andx_has_64_bit_offsets_and_24_bit_lengths() {
        let mut rest = vec![12, 0xff, 0, 0, 0, 0x34, 0x12];
        rest.extend(0x1000u32.to_le_bytes());
        rest.extend([0x00, 0xf0, 0, 0]);
        rest.extend(1u32.to_le_bytes());
        rest.extend([0, 0]);
        rest.extend(2u32.to_le_bytes());
        rest.extend([0, 0]);
        let (header, bytes) = parse(0x2e, 0, &rest);
        let expected = Smb1Request::Range { fid: 0x1234, offset: 0x2_0000_1000, length: 0x1_f000 };
        assert_eq!(first(&header, &bytes), expected);
    }

    #[test]
    fn delete_names_its_file_in_the_oem_code_page() {
        let (header, bytes) = parse(0x06, 0, b"\x01\0\0\x06\0\x04\\a.b\0");
        assert_eq!(first(&header, &bytes), Smb1Request::Path(Some("\\a.b".into())));
    }

    #[test]
    fn bulk_data_is_not_needed() {
        let mut rest = vec![14, 0xff];
        rest.resize(1 + 28, 0);
        rest.extend(60_000u16.to_le_bytes());
        let (header, message) = parse(0x2f, 0, &rest);
        assert_eq!(needed(&header, &message), 32 + 1 + 28 + 2);
    }

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
