//! Answers to SMB2 requests (MS-SMB2 3.3.5): every file exists, every user is a guest, every byte is zero.

use super::info::{FILETIME, Listing, Node};
use super::ntlm;
use super::put::Put;
use super::script::Script;
use smbscope_wire::bytes::{array_at, u8_at, u16_at, u32_at, u64_at, utf16_text};
use smbscope_wire::names::{Fsctl, InfoLevel};
use smbscope_wire::smb2::{Command, Header, NegotiateRequest, PROTOCOL_ID, flags};
use smbscope_wire::status::NtStatus;
use std::collections::HashMap;

mod setup;

pub(super) use setup::negotiate_from_smb1;

/// What the server knows of a connection.
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    dialect: u16,
    credits: u32,
    trees: u32,
    opens: u64,
    /// How far each directory was listed.
    listed: HashMap<u64, usize>,
}

/// A compound hands these from member to member (MS-SMB2 3.3.5.2.7.2).
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Related {
    session_id: u64,
    tree_id: u32,
    file: u64,
    failed: Option<NtStatus>,
}

/// The other end of an open: its number, and whether it is a directory, in the lowest bit.
const DIRECTORY_BIT: u64 = 1;

type Body = Result<(), NtStatus>;

impl Connection {
    pub(super) fn new(number: u64) -> Connection {
        Connection { number, dialect: 0, credits: 1, trees: 0, opens: 0, listed: HashMap::new() }
    }

    /// The file that was opened last.
    pub(super) fn last_open(&self) -> u64 {
        self.opens << 1
    }

    fn session_id(&self) -> u64 {
        0x5000_0000_0001 + self.number
    }

    /// Appends the answer to one message, or to a member of a compound; nothing to CANCEL.
    pub(super) fn answer(
        &mut self,
        header: &Header,
        message: &[u8],
        script: &Script,
        forced: Option<NtStatus>,
        related: &mut Related,
        out: &mut Vec<u8>,
    ) {
        if header.command == Command::CANCEL {
            return;
        }
        let is_related = header.flags & flags::RELATED_OPERATIONS != 0;
        if !is_related {
            *related = Related {
                session_id: header.session_id.unwrap_or_default(),
                tree_id: header.tree_id.unwrap_or_default(),
                ..Related::default()
            };
        }
        let start = out.len();
        let mut flags = flags::SERVER_TO_REDIR;
        if is_related {
            flags |= flags::RELATED_OPERATIONS;
        }
        out.put_bytes(&PROTOCOL_ID);
        out.put_u16(64);
        out.put_u16(header.credit_charge);
        out.put_u32(0);
        out.put_u16(header.command.0);
        out.put_u16(self.grant(header, script));
        out.put_u32(flags);
        out.put_u32(0);
        out.put_u64(header.message_id);
        out.put_u32(0xfeff);
        out.put_u32(related.tree_id);
        out.put_u64(related.session_id);
        out.put_zeros(16);
        let inherited = related.failed.filter(|_| is_related);
        let result = match forced.or(inherited) {
            Some(status) => Err(status),
            None => self.body(header.command, message, script, related, out, start),
        };
        if let Err(status) = result {
            out.set_u32(start + 8, status.0);
            // What needs a body beside its status has written it.
            let has_body = matches!(status, NtStatus::MORE_PROCESSING_REQUIRED | NtStatus::BUFFER_OVERFLOW);
            if !has_body || forced.is_some() || inherited.is_some() {
                out.truncate(start + Header::LENGTH);
                put_error(out);
                related.failed = Some(status);
            }
        }
        out.set_u32(start + 36, related.tree_id);
        let session_id = related.session_id;
        out.set_u32(start + 40, session_id as u32);
        out.set_u32(start + 44, (session_id >> 32) as u32);
    }

    /// What the request asked for, up to the script's limit, and never so little that the client is stuck.
    fn grant(&mut self, header: &Header, script: &Script) -> u16 {
        self.credits = self.credits.saturating_sub(header.credit_charge.max(1).into());
        let room = u32::from(script.credits).saturating_sub(self.credits);
        let least = u32::from(self.credits == 0);
        let granted = u32::from(header.credits.max(1)).min(room).max(least);
        self.credits += granted;
        granted as u16
    }

    fn body(
        &mut self,
        command: Command,
        message: &[u8],
        script: &Script,
        related: &mut Related,
        out: &mut Vec<u8>,
        start: usize,
    ) -> Body {
        const INVALID: NtStatus = NtStatus::INVALID_PARAMETER;
        match command {
            Command::NEGOTIATE => self.negotiate(message, script, out, start),
            Command::SESSION_SETUP => self.session_setup(message, script, related, out).unwrap_or(Err(INVALID)),
            Command::TREE_CONNECT => self.tree_connect(message, related, out).ok_or(INVALID),
            Command::CREATE => self.create(message, script, related, out, start).ok_or(INVALID),
            Command::CLOSE => self.close(message, script, related, out).ok_or(INVALID),
            Command::READ => read(message, script, out).unwrap_or(Err(INVALID)),
            Command::WRITE => write(message, out).ok_or(INVALID),
            Command::IOCTL => self.ioctl(message, script, out).unwrap_or(Err(INVALID)),
            Command::QUERY_INFO => query_info(message, script, related, out).unwrap_or(Err(INVALID)),
            Command::QUERY_DIRECTORY => self.query_directory(message, script, related, out).unwrap_or(Err(INVALID)),
            Command::SET_INFO => {
                out.put_u16(2);
                Ok(())
            }
            Command::OPLOCK_BREAK => break_acknowledged(message, out).ok_or(INVALID),
            // Without a change there is nothing to tell, ever; STATUS_PENDING would promise that there will be.
            Command::CHANGE_NOTIFY => Err(NtStatus::NOT_SUPPORTED),
            Command::LOGOFF | Command::TREE_DISCONNECT | Command::FLUSH | Command::LOCK | Command::ECHO => {
                out.put_u16(4);
                out.put_u16(0);
                Ok(())
            }
            _ => Err(INVALID),
        }
    }

    /// 2.2.14
    fn create(
        &mut self,
        message: &[u8],
        script: &Script,
        related: &mut Related,
        out: &mut Vec<u8>,
        start: usize,
    ) -> Option<()> {
        let options = u32_at(message, 104)?;
        let name_length = u16_at(message, 110)?;
        let is_directory = name_length == 0 || options & 1 != 0;
        // FILE_SUPERSEDE superseded, FILE_OPEN and FILE_OPEN_IF opened, FILE_CREATE created, the others overwritten.
        let action = match u32_at(message, 100)? {
            0 => 0,
            1 | 3 => 1,
            2 => 2,
            _ => 3,
        };
        let asked = u8_at(message, 67)?;
        self.opens += 1;
        let file = self.opens << 1 | if is_directory { DIRECTORY_BIT } else { 0 };
        related.file = file;
        let node = node(file, script);
        let lease = if script.oplocks && asked == LEASE { lease_asked_for(message) } else { None };
        let oplock = match asked {
            LEASE if lease.is_none() => 0,
            level if script.oplocks && !is_directory => level,
            _ => 0,
        };
        out.put_u16(89);
        out.put_u8(oplock);
        out.put_u8(0);
        out.put_u32(action);
        Node::put_times(out);
        out.put_u64(node.allocation());
        out.put_u64(node.end_of_file());
        out.put_u32(node.attributes());
        out.put_u32(0);
        out.put_u64(file);
        out.put_u64(file);
        match lease.filter(|_| oplock == LEASE) {
            None => out.put_u64(0),
            Some(lease) => {
                out.put_u32((out.len() - start + 8) as u32);
                out.put_u32(24 + lease.len() as u32);
                put_lease(lease, out);
            }
        }
        Some(())
    }

    /// 2.2.16
    fn close(&mut self, message: &[u8], script: &Script, related: &Related, out: &mut Vec<u8>) -> Option<()> {
        let file = file_at(message, 72, related)?;
        if file & DIRECTORY_BIT != 0 {
            self.listed.remove(&file);
        }
        let with_attributes = u16_at(message, 66)? & 1;
        out.put_u16(60);
        out.put_u16(with_attributes);
        out.put_u32(0);
        if with_attributes == 0 {
            out.put_zeros(52);
        } else {
            let node = node(file, script);
            Node::put_times(out);
            out.put_u64(node.allocation());
            out.put_u64(node.end_of_file());
            out.put_u32(node.attributes());
        }
        Some(())
    }

    /// 2.2.34
    fn query_directory(
        &mut self,
        message: &[u8],
        script: &Script,
        related: &Related,
        out: &mut Vec<u8>,
    ) -> Option<Body> {
        let (class, query_flags) = (u8_at(message, 66)?, u8_at(message, 67)?);
        let file = file_at(message, 72, related)?;
        let (name_offset, name_length) = (usize::from(u16_at(message, 88)?), usize::from(u16_at(message, 90)?));
        let room = u32_at(message, 92)? as usize;
        let pattern = utf16_text(message.get(name_offset..name_offset + name_length)?);
        let position = self.listed.entry(file).or_default();
        // SMB2_RESTART_SCANS, SMB2_REOPEN.
        if query_flags & 0x11 != 0 {
            *position = 0;
        }
        out.put_u16(9);
        out.put_u16(72);
        let length_at = out.len();
        out.put_u32(0);
        let Script { entries, file_size, nested, looping, .. } = *script;
        let listing = Listing { pattern: &pattern, entries, file_size, nested };
        if looping && *position >= entries.saturating_add(2) {
            *position = 0;
        }
        let before = *position;
        // SMB2_RETURN_SINGLE_ENTRY.
        let most = if query_flags & 2 != 0 { 1 } else { usize::MAX };
        let Some(after) = listing.put(class, before, room, most, out) else {
            return Some(Err(NtStatus::INVALID_INFO_CLASS));
        };
        *position = after;
        if after == before {
            return Some(Err(NtStatus::NO_MORE_FILES));
        }
        out.set_u32(length_at, (out.len() - length_at - 4) as u32);
        Some(Ok(()))
    }

    /// 2.2.32
    fn ioctl(&mut self, message: &[u8], script: &Script, out: &mut Vec<u8>) -> Option<Body> {
        let code = Fsctl(u32_at(message, 68)?);
        let file: [u8; 16] = array_at(message, 72)?;
        out.put_u16(49);
        out.put_u16(0);
        out.put_u32(code.0);
        out.put_bytes(&file);
        out.put_u32(112);
        out.put_u32(0);
        out.put_u32(112);
        let count_at = out.len();
        out.put_u32(0);
        out.put_u64(0);
        let start = out.len();
        match code {
            Fsctl::VALIDATE_NEGOTIATE_INFO => setup::put_validation(self.dialect, script, out),
            Fsctl::SRV_REQUEST_RESUME_KEY => out.put_zeros(32),
            Fsctl::SRV_COPYCHUNK | Fsctl::SRV_COPYCHUNK_WRITE => {
                let input = usize::try_from(u32_at(message, 88)?).ok()?;
                let chunks = u32_at(message, input + 24)?;
                let lengths = (0..chunks.min(256) as usize).map_while(|chunk| u32_at(message, input + 48 + 24 * chunk));
                let total = lengths.fold(0u32, u32::wrapping_add);
                out.put_u32(chunks);
                out.put_u32(0);
                out.put_u32(total);
            }
            Fsctl::DFS_GET_REFERRALS => return Some(Err(NtStatus::NOT_FOUND)),
            _ => return Some(Err(NtStatus::INVALID_DEVICE_REQUEST)),
        }
        out.set_u32(count_at, (out.len() - start) as u32);
        Some(Ok(()))
    }
}

/// 2.2.2
fn put_error(out: &mut Vec<u8>) {
    out.put_u16(9);
    out.put_u16(0);
    out.put_u32(0);
    out.put_u8(0);
}

/// STATUS_PENDING to a request whose answer is there already, and the answer made an asynchronous one
/// (MS-SMB2 3.3.4.2, 3.3.4.4: the interim response grants the credits, the final one none).
pub(super) fn interim(answer: &mut [u8], async_id: u64, out: &mut Vec<u8>) {
    let Some(header) = answer.get_mut(..Header::LENGTH) else { return };
    header[16] |= flags::ASYNC_COMMAND as u8;
    header[32..40].copy_from_slice(&async_id.to_le_bytes());
    let start = out.len();
    out.put_bytes(header);
    out.set_u32(start + 8, NtStatus::PENDING.0);
    put_error(out);
    header[14..16].fill(0);
}

/// An oplock break to none (2.2.23.1) or the break of a lease that nobody has to acknowledge (2.2.23.2).
pub(super) fn put_break(file: u64, of_lease: bool, out: &mut Vec<u8>) {
    out.put_bytes(&PROTOCOL_ID);
    out.put_u16(64);
    out.put_zeros(6);
    out.put_u16(Command::OPLOCK_BREAK.0);
    out.put_u16(0);
    out.put_u32(flags::SERVER_TO_REDIR);
    out.put_u32(0);
    out.put_u64(u64::MAX);
    out.put_zeros(32);
    if of_lease {
        out.put_u16(44);
        out.put_u16(1);
        out.put_u32(0);
        out.put_bytes(&[0x1e; 16]);
        // From read caching to none.
        out.put_u32(1);
        out.put_u32(0);
        out.put_zeros(12);
    } else {
        out.put_u16(24);
        out.put_u16(0);
        out.put_u32(0);
        out.put_u64(file);
        out.put_u64(file);
    }
}

/// SMB2_OPLOCK_LEVEL_LEASE
const LEASE: u8 = 0xff;

/// The data of a lease context (2.2.13.2.8, 2.2.13.2.10): 32 bytes, or 52 of the second version.
fn lease_asked_for(message: &[u8]) -> Option<&[u8]> {
    let start = u32_at(message, 112)? as usize;
    let contexts = message.get(start..start.checked_add(u32_at(message, 116)? as usize)?)?;
    let mut at = 0usize;
    loop {
        let name = at.checked_add(usize::from(u16_at(contexts, at + 4)?))?;
        let data = at.checked_add(usize::from(u16_at(contexts, at + 10)?))?;
        if contexts.get(name..name + 4)? == b"RqLs" {
            let length = u32_at(contexts, at + 12)? as usize;
            return contexts.get(data..data.checked_add(length)?).filter(|data| matches!(data.len(), 32 | 52));
        }
        at = match u32_at(contexts, at)? {
            0 => return None,
            next => at.checked_add(next as usize)?,
        };
    }
}

/// 2.2.14.2.10: granted as asked for.
fn put_lease(lease: &[u8], out: &mut Vec<u8>) {
    out.put_u32(0);
    out.put_u16(16);
    out.put_u16(4);
    out.put_u16(0);
    out.put_u16(24);
    out.put_u32(lease.len() as u32);
    out.put_bytes(b"RqLs\0\0\0\0");
    out.put_bytes(lease);
}

fn node(file: u64, script: &Script) -> Node {
    Node { is_directory: file & DIRECTORY_BIT != 0, size: script.file_size, index: 1000 + (file >> 1) }
}

/// The open that a request names, or that of the compound.
fn file_at(message: &[u8], offset: usize, related: &Related) -> Option<u64> {
    Some(match u64_at(message, offset + 8)? {
        u64::MAX => related.file,
        file => file,
    })
}

/// 2.2.20
fn read(message: &[u8], script: &Script, out: &mut Vec<u8>) -> Option<Body> {
    let (length, offset) = (u32_at(message, 68)?, u64_at(message, 72)?);
    if length > script.max_transfer {
        return None;
    }
    if offset >= script.file_size && length > 0 {
        return Some(Err(NtStatus::END_OF_FILE));
    }
    let length = u64::from(length).min(script.file_size.saturating_sub(offset)) as usize;
    out.put_u16(17);
    out.put_u16(80);
    out.put_u32(length as u32);
    out.put_u64(0);
    out.put_zeros(length);
    Some(Ok(()))
}

/// 2.2.22
fn write(message: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (offset, length) = (usize::from(u16_at(message, 66)?), u32_at(message, 68)?);
    message.get(offset..offset.checked_add(length as usize)?)?;
    out.put_u16(17);
    out.put_u16(0);
    out.put_u32(length);
    out.put_u64(0);
    Some(())
}

/// 2.2.38
fn query_info(message: &[u8], script: &Script, related: &Related, out: &mut Vec<u8>) -> Option<Body> {
    let level = InfoLevel::from_wire(u8_at(message, 66)?, u8_at(message, 67)?);
    let room = u32_at(message, 68)? as usize;
    let file = file_at(message, 88, related)?;
    out.put_u16(9);
    out.put_u16(72);
    let length_at = out.len();
    out.put_u32(0);
    let start = out.len();
    if node(file, script).put_info(level, out).is_none() {
        return Some(Err(NtStatus::INVALID_INFO_CLASS));
    }
    let fits = out.len() - start <= room;
    out.truncate(start + room.min(out.len() - start));
    out.set_u32(length_at, (out.len() - start) as u32);
    Some(if fits { Ok(()) } else { Err(NtStatus::BUFFER_OVERFLOW) })
}

/// 2.2.25: of an oplock (24) or a lease (36), as it was acknowledged.
fn break_acknowledged(message: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let length = match u16_at(message, 64)? {
        length @ (24 | 36) => usize::from(length),
        _ => return None,
    };
    out.put_bytes(message.get(64..64 + length)?);
    Some(())
}
