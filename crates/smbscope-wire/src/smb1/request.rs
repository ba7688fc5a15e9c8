//! Operation described by an SMB1 request: file, path, offset, length (MS-CIFS 2.2.4).

use super::header::{MAX_CHAIN, next_of};
use super::messages::{
    Close, Echo, LockByteRange, LockingAndxFields, LockingAndxRange, Negotiate, NtCreateAndx, OpenAndx, ReadAndx,
    ReadBytes, ReadMpx, ReadRaw, SessionSetupAndx, SessionSetupAndxLanMan, SessionSetupAndxPlain, TreeConnectAndx,
    WriteAndxFields, WriteMpx, WriteRaw, create_flags, lock_type,
};
use super::{Block, Smb1Command, Smb1Header, TransactionKind, TransactionRequest};
use crate::bytes::CapturedName;
use crate::bytes::{u8_at, u16_at};
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
}
