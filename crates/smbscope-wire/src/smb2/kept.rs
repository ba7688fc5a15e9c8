//! Parts of an SMB2 message that a slim copy of a capture retains.

use super::messages::negotiate_context::is_read as is_context_read;
use super::messages::*;
use super::view::{granted_contexts, listed_interfaces};
use super::{LockElement, Smb2Command, Smb2Header};
use crate::bytes::{u16_at, u32_at};
use crate::codec::FixedSizeField;
use crate::fscc::Data;
use crate::kept::{NameOf, RetainedRanges};
use crate::names::InfoLevel;
use crate::security;

const CLIENT_GUID: std::ops::Range<usize> = 76..92;
const SERVER_GUID: std::ops::Range<usize> = 72..88;
/// SystemTime and ServerStartTime of a NEGOTIATE response.
const SERVER_TIMES: std::ops::Range<usize> = 104..120;
/// Offsets of LastWriteTime and EndOfFile in a CREATE response.
const LAST_WRITE: std::ops::Range<usize> = 88..96;
const END_OF_FILE: usize = 112;
const NEGOTIATE_CONTEXT: usize = 8;
const CREATE_CONTEXT: usize = 16;
/// Contexts or interfaces of a message in a slim copy.
const MAX_ENTRIES: usize = 64;
const INTERFACE_FIELDS: usize = 28;
const INTERFACE_IPV6: usize = 32;
const FAMILY_IPV6: u16 = 0x0017;

/// Returns the ranges that [`Smb2Request`](super::Smb2Request), [`Smb2Response`](super::Smb2Response) and
/// [`detail`](super::detail) read.
pub fn kept(header: &Smb2Header, m: &[u8]) -> RetainedRanges {
    let mut kept = RetainedRanges::default();
    kept.field(0..Smb2Header::SIGNATURE.start);
    if header.is_response() {
        let _ = of_response(header.command, m, &mut kept);
    } else {
        let _ = of_request(header.command, m, &mut kept);
    }
    kept
}

fn of_request(command: Smb2Command, m: &[u8], kept: &mut RetainedRanges) -> Option<()> {
    let mut fields = |end: usize| kept.field(Smb2Header::LENGTH..end);
    match command {
        Smb2Command::NEGOTIATE => {
            fields(CLIENT_GUID.start);
            kept.field(CLIENT_GUID.end..negotiate::Request::END);
            let (start, count) = negotiate::Request::dialects(m)?;
            kept.field(start..start.saturating_add(2 * count));
            negotiate_contexts(negotiate::Request::contexts(m)?, m, kept);
        }
        Smb2Command::SESSION_SETUP => {
            fields(session_setup::Request::END);
            let (start, length) = session_setup::Request::token(m)?;
            let token = m.get(start..start.saturating_add(length).min(m.len()))?;
            kept.absorb(security::kept(token), start);
        }
        Smb2Command::TREE_CONNECT => {
            fields(tree_connect::Request::END);
            let (start, length) = tree_connect::Request::path(m)?;
            kept.name(NameOf::Unc, true, start..start.saturating_add(length));
        }
        Smb2Command::CREATE => {
            fields(create::Request::END);
            let (start, length) = create::Request::name(m)?;
            kept.name(NameOf::Path, true, start..start.saturating_add(length));
        }
        Smb2Command::QUERY_DIRECTORY => {
            fields(query_directory::Request::END);
            let (start, length) = query_directory::Request::pattern(m)?;
            kept.name(NameOf::Path, true, start..start.saturating_add(length));
        }
        Smb2Command::SET_INFO => {
            fields(set_info::Request::END);
            set_information(m, kept)?;
        }
        Smb2Command::LOCK => fields(lock::Request::END + LockElement::LENGTH),
        Smb2Command::READ => fields(read::Request::END),
        Smb2Command::WRITE => fields(write::Request::END),
        Smb2Command::QUERY_INFO => fields(query_info::Request::END),
        Smb2Command::CLOSE => fields(close::Request::END),
        Smb2Command::FLUSH => fields(flush::Request::END),
        // Only the beginning of these requests is parsed.
        Smb2Command::IOCTL | Smb2Command::CHANGE_NOTIFY | Smb2Command::OPLOCK_BREAK => {
            fields(query_directory::Request::END)
        }
        _ => {}
    }
    Some(())
}

fn of_response(command: Smb2Command, m: &[u8], kept: &mut RetainedRanges) -> Option<()> {
    // StructureSize, which identifies an error, and the fields next to it.
    kept.field(Smb2Header::LENGTH..Smb2Header::LENGTH + 8);
    if error::Smb2ErrorResponse::is_error_response(m)? && command != Smb2Command::SESSION_SETUP {
        return None;
    }
    match command {
        Smb2Command::NEGOTIATE => {
            kept.field(SERVER_GUID.end..SERVER_TIMES.start);
            kept.field(SERVER_TIMES.end..negotiate::Response::END);
            negotiate_contexts(negotiate::Response::contexts(m)?, m, kept);
        }
        Smb2Command::CREATE => {
            kept.field(LAST_WRITE);
            kept.field(END_OF_FILE..create::Response::END);
            create_contexts(granted_contexts(m)?, m, kept)?;
        }
        Smb2Command::OPLOCK_BREAK => kept.field(Smb2Header::LENGTH..oplock_break::LeaseBreak::END),
        Smb2Command::IOCTL => {
            kept.field(Smb2Header::LENGTH..ioctl::Response::END);
            interfaces(listed_interfaces(m)?, m, kept)?;
        }
        _ => {}
    }
    Some(())
}

/// Retains lists of algorithms, but no salts, hashes or server names.
fn negotiate_contexts((start, count): (usize, usize), m: &[u8], kept: &mut RetainedRanges) {
    let mut at = start;
    for _ in 0..count.min(MAX_ENTRIES) {
        let Some((kind, length)) = at.checked_add(2).and_then(|behind| Some((u16_at(m, at)?, u16_at(m, behind)?)))
        else {
            return;
        };
        let data = at + NEGOTIATE_CONTEXT;
        let end = data + usize::from(length);
        kept.field(at..data);
        if is_context_read(kind) {
            kept.field(data..end);
        }
        at = end.next_multiple_of(8);
    }
}

/// Retains the lease, and the presence of other contexts.
fn create_contexts((start, length): (usize, usize), m: &[u8], kept: &mut RetainedRanges) -> Option<()> {
    let end = start.saturating_add(length);
    let mut at = start;
    for _ in 0..MAX_ENTRIES {
        let field = |offset: usize| u16_at(m, at.checked_add(offset)?).map(usize::from);
        kept.field(at..at.checked_add(CREATE_CONTEXT)?.min(end));
        let name = at.checked_add(field(4)?)?;
        let name = name..name.checked_add(field(6)?)?.min(end);
        let data = at.checked_add(field(10)?)?;
        let data = data..data.checked_add(u32_at(m, at + 12)? as usize)?.min(end);
        let is_lease = m.get(name.clone()) == Some(create_context::LEASE);
        // Context names are not longer; a longer one is invalid.
        kept.field(name.start..name.end.min(name.start + CREATE_CONTEXT));
        if is_lease {
            kept.field(data);
        }
        match u32_at(m, at)? as usize {
            0 => return Some(()),
            next => at = at.checked_add(next).filter(|at| *at < end)?,
        }
    }
    Some(())
}

fn interfaces((start, length): (usize, usize), m: &[u8], kept: &mut RetainedRanges) -> Option<()> {
    let end = start.saturating_add(length).min(m.len());
    let mut at = start;
    for _ in 0..MAX_ENTRIES {
        let fields = at.checked_add(INTERFACE_FIELDS)?;
        kept.field(at..fields.min(end));
        let address = match u16_at(m, at + 24)? {
            FAMILY_IPV6 => at + INTERFACE_IPV6..at + INTERFACE_IPV6 + 16,
            _ => fields..fields + 4,
        };
        if address.end <= end {
            kept.addresses.push(address);
        }
        match u32_at(m, at)? as usize {
            0 => return Some(()),
            next => at = at.checked_add(next).filter(|at| *at < end)?,
        }
    }
    Some(())
}

/// Retains a new name, a new size and the deletion mark, but no other information.
fn set_information(m: &[u8], kept: &mut RetainedRanges) -> Option<()> {
    let (start, length) = set_info::Request::information(m)?;
    match set_info::Request::level(m)? {
        InfoLevel::FILE_RENAME_INFORMATION => {
            kept.field(start..start.checked_add(Data::NAME.min(length))?);
            if let Some(range) = Data::new_name(m, start..start.checked_add(length)?) {
                kept.name(NameOf::Path, true, range);
            }
        }
        InfoLevel::FILE_END_OF_FILE_INFORMATION => kept.field(start..start.checked_add(length.min(8))?),
        InfoLevel::FILE_DISPOSITION_INFORMATION => kept.field(start..start.checked_add(length.min(1))?),
        _ => {}
    }
    Some(())
}
