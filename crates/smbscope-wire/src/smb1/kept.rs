//! Parts of an SMB1 message that a slim copy of a capture retains.

use super::messages::{NtCreateAndx, SessionSetupAndx, Transaction2Fields, TreeConnectAndx};
use super::request::{begins_with_path, credentials_length};
use super::transaction::trans2_name;
use super::{Block, Smb1Command, Smb1Header, TransactionKind, blocks};
use crate::bytes::{before_terminator, u8_at, u32_at};
use crate::kept::{NameOf, RetainedRanges};
use crate::names::{NtTransact, Trans2};
use crate::security;
use std::ops::Range;

/// Maximum size of a range of LOCKING_ANDX (MS-CIFS 2.2.4.32.1).
const LOCK_RANGE: usize = 20;
const NT_CREATE_PARAMETERS: usize = 53;
/// Number of bytes parsed from response parameters, which may hold a FID, and from request data.
const OPEN: usize = 4;
const CHANGE: usize = 8;

/// Returns the ranges that [`Smb1Request`](super::Smb1Request), [`Smb1Response`](super::Smb1Response) and
/// [`detail`](super::detail) read.
pub fn kept(header: &Smb1Header, message: &[u8]) -> RetainedRanges {
    let mut kept = RetainedRanges::default();
    kept.field(0..Smb1Header::SIGNATURE.start);
    kept.field(Smb1Header::SIGNATURE.end..Smb1Header::LENGTH + 1);
    for block in blocks(header, message) {
        kept.field(block.fields());
        let _ = if header.is_reply() { of_response(&block, &mut kept) } else { of_request(&block, message, &mut kept) };
    }
    kept
}

fn of_response(block: &Block<'_>, kept: &mut RetainedRanges) -> Option<()> {
    // A response on a pipe opens nothing.
    let kind = TransactionKind::from_command(block.command).filter(|kind| *kind != TransactionKind::Trans)?;
    let (start, count) = kind.response_parameters(block.words)?;
    kept.field(start..start.checked_add(count.min(OPEN))?);
    Some(())
}

fn of_request(b: &Block<'_>, message: &[u8], kept: &mut RetainedRanges) -> Option<()> {
    let w = b.words;
    let unicode = b.unicode;
    let data = b.data_offset();
    match b.command {
        Smb1Command::NEGOTIATE => kept.field(data..data + b.data.len()),
        Smb1Command::SESSION_SETUP_ANDX => logon(b, kept)?,
        Smb1Command::TREE_CONNECT_ANDX => {
            kept.name(NameOf::Unc, unicode, b.text_place(TreeConnectAndx::password(w)?.into()).0);
        }
        Smb1Command::TREE_CONNECT => formatted(b, NameOf::Unc, kept),
        Smb1Command::NT_CREATE_ANDX => nt_create(b, kept)?,
        Smb1Command::OPEN_ANDX => kept.name(NameOf::Path, unicode, b.text_place(0).0),
        Smb1Command::OPEN | Smb1Command::CREATE | Smb1Command::CREATE_NEW | Smb1Command::CREATE_TEMPORARY => {
            formatted(b, NameOf::Path, kept);
        }
        Smb1Command::RENAME => {
            formatted(b, NameOf::Path, kept);
            let (_, end) = b.text_place(1);
            kept.field(data + end..data + end + 1);
            kept.name(NameOf::Path, unicode, b.text_place(end + 1).0);
        }
        Smb1Command::LOCKING_ANDX => kept.field(data..data + LOCK_RANGE),
        // `\PIPE\` and the name of the pipe.
        Smb1Command::TRANSACTION => kept.name(NameOf::Path, unicode, b.text_place(0).0),
        Smb1Command::TRANSACTION2 => transaction2(b, message, kept)?,
        Smb1Command::NT_TRANSACT => nt_transact(b, message, kept)?,
        command if begins_with_path(command) => formatted(b, NameOf::Path, kept),
        _ => {}
    }
    Some(())
}

/// Retains a name that follows a buffer format byte.
fn formatted(b: &Block<'_>, of: NameOf, kept: &mut RetainedRanges) {
    kept.field(b.data_offset()..b.data_offset() + 1);
    kept.name(of, b.unicode, b.text_place(1).0);
}

/// Retains user and domain, but no passwords.
fn logon(b: &Block<'_>, kept: &mut RetainedRanges) -> Option<()> {
    let length = credentials_length(b)?;
    if b.word_count() == SessionSetupAndx::WORDS {
        kept.absorb(security::kept(&b.data[..length.min(b.data.len())]), b.data_offset());
        return Some(());
    }
    let (user, next) = b.text_place(length);
    let (domain, _) = b.text_place(next);
    kept.name(NameOf::User, b.unicode, user);
    kept.name(NameOf::Domain, b.unicode, domain);
    Some(())
}

/// Retains the name of NT_CREATE_ANDX, which need not be terminated.
fn nt_create(b: &Block<'_>, kept: &mut RetainedRanges) -> Option<()> {
    let (place, _) = b.text_place(0);
    if b.string(0).is_some() {
        kept.name(NameOf::Path, b.unicode, place);
        return Some(());
    }
    let length = usize::from(NtCreateAndx::name(b.words)?);
    let start = b.data_offset() + usize::from(b.unicode);
    kept.name(NameOf::Path, b.unicode, start..start.checked_add(length)?);
    Some(())
}

fn transaction2(b: &Block<'_>, message: &[u8], kept: &mut RetainedRanges) -> Option<()> {
    let parameters = parameters(TransactionKind::Trans2, b, message)?;
    let subcommand = Trans2(Transaction2Fields::subcommand(b.words)?);
    let name = trans2_name(subcommand);
    let fixed = parameters.start.checked_add(name.map_or(6, |(offset, _)| offset))?;
    kept.field(parameters.start..fixed.min(parameters.end));
    if let Some((_, of)) = name {
        kept.name(of, b.unicode, terminated(message, fixed..parameters.end, b.unicode));
    }
    if subcommand == Trans2::SET_FILE_INFORMATION {
        let data = usize::from(Transaction2Fields::data_offset(b.words)?);
        let count = usize::from(Transaction2Fields::data_count(b.words)?);
        kept.field(data..data.checked_add(count.min(CHANGE))?);
    }
    Some(())
}

fn nt_transact(b: &Block<'_>, message: &[u8], kept: &mut RetainedRanges) -> Option<()> {
    let parameters = parameters(TransactionKind::Nt, b, message)?;
    let at = |offset: usize| parameters.start.checked_add(offset);
    match TransactionKind::function(b.words)? {
        NtTransact::CREATE => {
            let length = u32_at(message, at(44)?)? as usize;
            let is_padded = b.unicode && u8_at(message, at(NT_CREATE_PARAMETERS)?) == Some(0);
            let start = at(NT_CREATE_PARAMETERS + usize::from(is_padded))?;
            kept.field(parameters.start..start.min(parameters.end));
            let end = start.checked_add(length).filter(|end| *end <= parameters.end)?;
            kept.name(NameOf::Path, b.unicode, terminated(message, start..end, b.unicode));
        }
        NtTransact::QUERY_SECURITY_DESC | NtTransact::SET_SECURITY_DESC => {
            kept.field(parameters.start..at(2)?.min(parameters.end));
        }
        _ => {}
    }
    Some(())
}

fn parameters(kind: TransactionKind, b: &Block<'_>, message: &[u8]) -> Option<Range<usize>> {
    let (start, count) = kind.parameters(b.words)?;
    (start <= message.len()).then_some(start..start.checked_add(count)?)
}

/// Shortens a range to the part before a terminator.
fn terminated(message: &[u8], range: Range<usize>, unicode: bool) -> Range<usize> {
    let here = message.get(range.start..range.end.min(message.len())).unwrap_or_default();
    let (bytes, _) = before_terminator(here, unicode);
    range.start..range.start + bytes.len()
}
