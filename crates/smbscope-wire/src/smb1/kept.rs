//! Parts of an SMB1 message that outlive it: replay parameters of requests, converted to their SMB2 equivalents where
//! these exist (MS-CIFS 2.2.4), and the ranges that a slim copy of a capture retains.

use super::messages::{
    LockingAndxFields, NtCreateAndx, OpenAndx, ReadBytes, SessionSetupAndx, Transaction2Fields, TreeConnectAndx,
    lock_type, trans2::set_file_level,
};
use super::transaction::trans2_name;
use super::view::{begins_with_path, credentials_length};
use super::{Block, Smb1Command, Smb1Header, TransactionKind, blocks};
use crate::RequestDetail;
use crate::bytes::{before_terminator, u8_at, u16_at, u32_at, u64_at};
use crate::kept::{NameOf, RetainedRanges};
use crate::names::{NtTransact, Trans2};
use crate::security;
use std::ops::Range;

/// FILE_GENERIC_READ and FILE_GENERIC_WRITE (MS-SMB2 2.2.13.1.1).
const GENERIC_READ: u32 = 0x0012_0089;
const GENERIC_WRITE: u32 = 0x0012_0116;
/// Values of ShareAccess (MS-SMB2 2.2.13).
const SHARE_READ: u32 = 1;
const SHARE_WRITE: u32 = 2;
/// FILE_NON_DIRECTORY_FILE (MS-SMB2 2.2.13).
const NON_DIRECTORY: u32 = 0x40;
/// Values of CreateDisposition (MS-SMB2 2.2.13).
const OPEN: u32 = 1;
const CREATE: u32 = 2;
const OPEN_IF: u32 = 3;
const OVERWRITE: u32 = 4;
const OVERWRITE_IF: u32 = 5;
/// Access mode (2.2.4.3): read and write, deny none.
const BOTH: u16 = 0x42;
/// Number of transaction data bytes that are parsed.
const CHANGE: usize = 8;
/// Pass-through levels of FileDispositionInformation and FileEndOfFileInformation (MS-SMB 2.2.2.3.5).
const PASSED_DISPOSITION: u16 = 1013;
const PASSED_END_OF_FILE: u16 = 1020;

/// Returns `None` if the command has no parameters or they are truncated. `message` begins with the header.
pub fn detail(block: &Block<'_>, message: &[u8]) -> Option<RequestDetail> {
    let w = block.words;
    Some(match block.command {
        Smb1Command::NT_CREATE_ANDX => RequestDetail::Create {
            desired_access: NtCreateAndx::desired_access(w)?,
            share_access: NtCreateAndx::share_access(w)?,
            create_disposition: NtCreateAndx::create_disposition(w)?,
            create_options: NtCreateAndx::create_options(w)?,
            file_attributes: NtCreateAndx::ext_file_attributes(w)?,
        },
        Smb1Command::OPEN_ANDX => {
            let mode = OpenAndx::open_mode(w)?;
            let disposition = match (mode & 0x10 != 0, mode & 3) {
                (true, 0) => CREATE,
                (true, 1) => OPEN_IF,
                (true, _) => OVERWRITE_IF,
                (false, 2) => OVERWRITE,
                (false, _) => OPEN,
            };
            open(OpenAndx::access_mode(w)?, disposition, OpenAndx::file_attributes(w)?)
        }
        Smb1Command::OPEN => open(u16_at(w, 0)?, OPEN, 0),
        Smb1Command::CREATE => open(BOTH, OVERWRITE_IF, u16_at(w, 0)?),
        Smb1Command::CREATE_NEW => open(BOTH, CREATE, u16_at(w, 0)?),
        Smb1Command::RENAME => {
            let (_, end) = block.string(1)?;
            let (path, _) = block.string(end + 1)?;
            RequestDetail::Rename { path, replace: false }
        }
        Smb1Command::WRITE if ReadBytes::count(w)? == 0 => RequestDetail::EndOfFile(ReadBytes::offset(w)?.into()),
        Smb1Command::LOCK_BYTE_RANGE => RequestDetail::Lock { count: 1, flags: 2 },
        Smb1Command::UNLOCK_BYTE_RANGE => RequestDetail::Lock { count: 1, flags: 4 },
        Smb1Command::LOCKING_ANDX => {
            use LockingAndxFields as Fields;
            let (locks, unlocks) = (Fields::locks(w)?, Fields::unlocks(w)?);
            let is_shared = Fields::type_of_lock(w)? & lock_type::SHARED_LOCK != 0;
            let flags = match (locks, is_shared) {
                (0, _) => 4,
                (_, true) => 1,
                (_, false) => 2,
            };
            RequestDetail::Lock { count: locks.saturating_add(unlocks), flags }
        }
        Smb1Command::TRANSACTION2 => transaction2_detail(w, message)?,
        _ => return None,
    })
}

/// Returns the number of bytes that [`detail`] needs. `prefix` holds at least the words.
pub fn detail_needed(header: &Smb1Header, prefix: &[u8]) -> usize {
    let Some(block) = blocks(header, prefix).next().filter(|block| block.command == Smb1Command::TRANSACTION2) else {
        return 0;
    };
    let Some((start, length)) = data(block.words) else { return 0 };
    start.saturating_add(length.min(CHANGE))
}

/// Converts a DOS access mode (2.2.4.3) to access and sharing rights.
fn open(mode: u16, create_disposition: u32, file_attributes: u16) -> RequestDetail {
    let desired_access = match mode & 7 {
        1 => GENERIC_WRITE,
        2 => GENERIC_READ | GENERIC_WRITE,
        // 0 read, 3 execute.
        _ => GENERIC_READ,
    };
    let share_access = match mode >> 4 & 7 {
        1 => 0,
        2 => SHARE_READ,
        3 => SHARE_WRITE,
        _ => SHARE_READ | SHARE_WRITE,
    };
    RequestDetail::Create {
        desired_access,
        share_access,
        create_disposition,
        create_options: NON_DIRECTORY,
        file_attributes: file_attributes.into(),
    }
}

fn transaction2_detail(w: &[u8], message: &[u8]) -> Option<RequestDetail> {
    let parameters = usize::from(Transaction2Fields::parameter_offset(w)?);
    let parameter = |at: usize| u16_at(message, parameters.checked_add(at)?);
    Some(match Trans2(Transaction2Fields::subcommand(w)?) {
        Trans2::FIND_FIRST2 => RequestDetail::Level(parameter(6)?),
        Trans2::QUERY_PATH_INFORMATION | Trans2::QUERY_FS_INFORMATION | Trans2::SET_PATH_INFORMATION => {
            RequestDetail::Level(parameter(0)?)
        }
        Trans2::QUERY_FILE_INFORMATION => RequestDetail::Level(parameter(2)?),
        Trans2::SET_FILE_INFORMATION => {
            let level = parameter(2)?;
            let (start, _) = data(w)?;
            if level == set_file_level(13).0 || level == PASSED_DISPOSITION {
                RequestDetail::Delete(u8_at(message, start)? != 0)
            } else if level == set_file_level(20).0 || level == PASSED_END_OF_FILE {
                RequestDetail::EndOfFile(u64_at(message, start)?)
            } else {
                RequestDetail::Level(level)
            }
        }
        _ => return None,
    })
}

fn data(w: &[u8]) -> Option<(usize, usize)> {
    Some((Transaction2Fields::data_offset(w)?.into(), Transaction2Fields::data_count(w)?.into()))
}

/// Maximum size of a range of LOCKING_ANDX (MS-CIFS 2.2.4.32.1).
const LOCK_RANGE: usize = 20;
const NT_CREATE_PARAMETERS: usize = 53;
/// Number of bytes parsed from response parameters, which may hold a FID.
const OPEN_PARAMETERS: usize = 4;

/// Returns the ranges that [`Smb1Request`](super::Smb1Request), [`Smb1Response`](super::Smb1Response) and
/// [`detail`] read.
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
    kept.field(start..start.checked_add(count.min(OPEN_PARAMETERS))?);
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
        Smb1Command::TRANSACTION2 => retain_transaction2(b, message, kept)?,
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

fn retain_transaction2(b: &Block<'_>, message: &[u8], kept: &mut RetainedRanges) -> Option<()> {
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

#[cfg(test)]
mod tests {
    use super::super::messages::trans2::{FindFirst2, InformationLevel, QueryPathInformation, SetFileInformation};
    use super::super::messages::{LockingAndx, LockingAndxRange, Rename, Smb1Message};
    use super::super::{Smb1Header, flags2};
    use super::*;
    use crate::fscc::Data;

    /// Returns the detail of a request, and checks that `detail_needed` bytes suffice for it and 40 do not.
    fn detail_of(request: &impl Smb1Message, command: Smb1Command) -> Option<RequestDetail> {
        let header =
            Smb1Header { command, status: 0, flags: 0, flags2: flags2::UNICODE, tid: 0, pid: 0, uid: 0, mid: 0 };
        let mut bytes = Vec::new();
        request.emit(&header, &mut bytes);
        let of = |bytes: &[u8]| detail(&blocks(&header, bytes).next()?, bytes);
        let needed = crate::smb1::needed(&header, &bytes).max(detail_needed(&header, &bytes));
        assert!(needed <= bytes.len(), "{needed} of {}", bytes.len());
        assert_eq!(of(&bytes[..needed]), of(&bytes));
        assert_eq!(of(&bytes[..40]), None, "cut off");
        of(&bytes)
    }

    #[test]
    fn transactions_have_their_level_and_the_new_value() {
        let find = FindFirst2 {
            search_attributes: 0x16,
            search_count: 7,
            flags: 2,
            information_level: InformationLevel(0x0104),
            max_data_count: 16_384,
            file_name: r"\d\*",
        };
        assert_eq!(detail_of(&find, Smb1Command::TRANSACTION2), Some(RequestDetail::Level(0x0104)));
        let query = QueryPathInformation {
            information_level: InformationLevel(0x0101),
            max_data_count: 40,
            file_name: r"\d\a",
        };
        assert_eq!(detail_of(&query, Smb1Command::TRANSACTION2), Some(RequestDetail::Level(0x0101)));
        let set = |information| detail_of(&SetFileInformation { fid: 5, information }, Smb1Command::TRANSACTION2);
        assert_eq!(set(Data::EndOfFile(1 << 33)), Some(RequestDetail::EndOfFile(1 << 33)));
        assert_eq!(set(Data::Disposition(true)), Some(RequestDetail::Delete(true)));
        assert_eq!(set(Data::Allocation(9)), Some(RequestDetail::Level(0x0103)));
    }

    #[test]
    fn renames_have_the_new_name_and_locks_their_kind() {
        let rename = Rename { search_attributes: 0x16, old_file_name: "a".into(), new_file_name: r"d\b".into() };
        let expected = RequestDetail::Rename { path: r"d\b".to_owned(), replace: false };
        assert_eq!(detail_of(&rename, Smb1Command::RENAME), Some(expected));
        let range = LockingAndxRange { pid: 1, offset: 0, length: 10 };
        let lock = LockingAndx { fid: 5, locks: &[range], ..LockingAndx::default() };
        assert_eq!(detail_of(&lock, Smb1Command::LOCKING_ANDX), Some(RequestDetail::Lock { count: 1, flags: 2 }));
        let unlock = LockingAndx { fid: 5, unlocks: &[range], ..LockingAndx::default() };
        assert_eq!(detail_of(&unlock, Smb1Command::LOCKING_ANDX), Some(RequestDetail::Lock { count: 1, flags: 4 }));
    }

    #[test]
    fn a_dos_open_converts_to_nt_access_and_sharing() {
        // 2.2.4.3: mode 0x42 is read and write, deny none; 0x20 is read, deny write. 2.2.4.41: OpenMode 0x11 opens or
        // creates.
        assert_eq!(
            open(0x42, OPEN_IF, 0x20),
            RequestDetail::Create {
                desired_access: 0x0012_019f,
                share_access: 3,
                create_disposition: 3,
                create_options: 0x40,
                file_attributes: 0x20,
            }
        );
        assert!(matches!(
            open(0x20, OPEN, 0),
            RequestDetail::Create { desired_access: 0x0012_0089, share_access: 1, .. }
        ));
    }
}
