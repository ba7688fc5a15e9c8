//! Responses to SMB2 requests (MS-SMB2 3.3.5): every file exists, every user is a guest, every byte is zero.

use super::info::{FILETIME, Listing, Node};
use super::ntlm;
use super::script::Script;
use negotiate::{capabilities, security_mode};
use smbscope_wire::codec::{List, Put};
use smbscope_wire::names::Fsctl;
use smbscope_wire::smb2::messages::*;
use smbscope_wire::smb2::{FileReference, Smb2Command, Smb2Header, flags};
use smbscope_wire::status::NtStatus;
use std::collections::HashMap;

#[derive(Debug)]
pub(super) struct Smb2 {
    number: u64,
    dialect: u16,
    credits: u32,
    trees: u32,
    opens: u64,
    listed: HashMap<u64, usize>,
}

/// Ids inherited by the next member of a related compound (MS-SMB2 3.3.5.2.7.2).
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Related {
    session_id: u64,
    tree_id: u32,
    file: u64,
    failed: Option<NtStatus>,
}

/// Lowest bit of an open's number: set for a directory.
const DIRECTORY_BIT: u64 = 1;

type Answered = Result<(), NtStatus>;

const INVALID: NtStatus = NtStatus::INVALID_PARAMETER;
/// File contents, as much as one frame can carry.
pub(super) static ZEROS: [u8; 1 << 24] = [0; 1 << 24];

impl Related {
    /// Returns the open that a request names, or the one inherited from the compound.
    fn file(&self, named: FileReference) -> u64 {
        if named.volatile == u64::MAX { self.file } else { named.volatile }
    }
}

impl Smb2 {
    pub(super) fn new(number: u64) -> Smb2 {
        Smb2 { number, dialect: 0, credits: 1, trees: 0, opens: 0, listed: HashMap::new() }
    }

    pub(super) fn last_open(&self) -> u64 {
        self.opens << 1
    }

    fn session_id(&self) -> u64 {
        0x5000_0000_0001 + self.number
    }

    /// Appends the response to one message or compound member; nothing for CANCEL.
    pub(super) fn answer(
        &mut self,
        header: &Smb2Header,
        message: &[u8],
        script: &Script,
        forced: Option<NtStatus>,
        related: &mut Related,
        out: &mut Vec<u8>,
    ) {
        if header.command == Smb2Command::CANCEL {
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
        out.put_zeros(Smb2Header::LENGTH);
        let credits = self.grant(header, script);
        let inherited = related.failed.filter(|_| is_related);
        let result = match forced.or(inherited) {
            Some(status) => Err(status),
            None => self.body(header.command, message, script, related, out),
        };
        if let Err(status) = result {
            // Statuses that come with a body have written it already.
            let has_body = matches!(status, NtStatus::MORE_PROCESSING_REQUIRED | NtStatus::BUFFER_OVERFLOW);
            if !has_body || forced.is_some() || inherited.is_some() {
                out.truncate(start + Smb2Header::LENGTH);
                error::Smb2ErrorResponse::default().emit(out);
                related.failed = Some(status);
            }
        }
        let header = Smb2Header {
            credit_charge: header.credit_charge,
            status: result.err().unwrap_or(NtStatus::SUCCESS),
            credits,
            flags: flags::SERVER_TO_REDIR | header.flags & flags::RELATED_OPERATIONS,
            message_id: header.message_id,
            tree_id: Some(related.tree_id),
            session_id: Some(related.session_id),
            ..Smb2Header::new(header.command)
        };
        out[start..start + Smb2Header::LENGTH].copy_from_slice(&header.to_bytes());
    }

    /// Grants what the request asks for, within the script's limit, but never leaves the client without credits.
    fn grant(&mut self, header: &Smb2Header, script: &Script) -> u16 {
        self.credits = self.credits.saturating_sub(header.credit_charge.max(1).into());
        let room = u32::from(script.credits).saturating_sub(self.credits);
        let least = u32::from(self.credits == 0);
        let granted = u32::from(header.credits.max(1)).min(room).max(least);
        self.credits += granted;
        granted as u16
    }

    fn body(
        &mut self,
        command: Smb2Command,
        message: &[u8],
        script: &Script,
        related: &mut Related,
        out: &mut Vec<u8>,
    ) -> Answered {
        match command {
            Smb2Command::NEGOTIATE => self.negotiate(message, script, out)?,
            Smb2Command::SESSION_SETUP => self.session_setup(message, script, related, out)?,
            Smb2Command::TREE_CONNECT => self.tree_connect(message, related, out)?,
            Smb2Command::CREATE => self.create(message, script, related, out)?,
            Smb2Command::CLOSE => self.close(message, script, related, out)?,
            Smb2Command::READ => read(message, script, out)?,
            Smb2Command::WRITE => {
                let count = write::Request::parse(message).ok_or(INVALID)?.data.len() as u32;
                write::Response { count }.emit(out);
            }
            Smb2Command::IOCTL => self.ioctl(message, out)?,
            Smb2Command::QUERY_INFO => query_info(message, script, related, out)?,
            Smb2Command::QUERY_DIRECTORY => self.query_directory(message, script, related, out)?,
            Smb2Command::SET_INFO => set_info::Response {}.emit(out),
            Smb2Command::OPLOCK_BREAK => oplock_break::Acknowledgement::parse(message).ok_or(INVALID)?.emit(out),
            // Nothing ever changes, and STATUS_PENDING would promise a notification.
            Smb2Command::CHANGE_NOTIFY => return Err(NtStatus::NOT_SUPPORTED),
            Smb2Command::LOGOFF
            | Smb2Command::TREE_DISCONNECT
            | Smb2Command::FLUSH
            | Smb2Command::LOCK
            | Smb2Command::ECHO => {
                plain::Echo {}.emit(out);
            }
            _ => return Err(INVALID),
        }
        Ok(())
    }

    fn create(&mut self, message: &[u8], script: &Script, related: &mut Related, out: &mut Vec<u8>) -> Answered {
        let request = create::Request::parse(message).ok_or(INVALID)?;
        let is_named = create::Request::name(message).is_some_and(|(_, length)| length > 0);
        let is_directory = !is_named || request.create_options & create::DIRECTORY_FILE != 0;
        self.opens += 1;
        let file = self.opens << 1 | if is_directory { DIRECTORY_BIT } else { 0 };
        related.file = file;
        let node = node(file, script);
        let lease = request.contexts.lease().filter(|_| script.oplocks && !is_directory);
        let oplock_level = match request.oplock_level {
            create::oplock::LEASE if lease.is_none() => create::oplock::NONE,
            level if script.oplocks && !is_directory => level,
            _ => create::oplock::NONE,
        };
        let granted = lease.filter(|_| oplock_level == create::oplock::LEASE);
        let response = create::Response {
            oplock_level,
            create_action: action(request.create_disposition),
            times: Node::TIMES,
            allocation_size: node.allocation(),
            end_of_file: node.end_of_file(),
            file_attributes: node.attributes(),
            file: FileReference { persistent: file, volatile: file },
            contexts: create_context::CreateContextList::List(granted.as_slice()),
        };
        response.emit(out);
        Ok(())
    }

    fn close(&mut self, message: &[u8], script: &Script, related: &Related, out: &mut Vec<u8>) -> Answered {
        let request = close::Request::parse(message).ok_or(INVALID)?;
        let file = related.file(request.file);
        if file & DIRECTORY_BIT != 0 {
            self.listed.remove(&file);
        }
        let mut response = close::Response::default();
        if request.flags & close::POSTQUERY_ATTRIB != 0 {
            let node = node(file, script);
            response = close::Response {
                flags: close::POSTQUERY_ATTRIB,
                times: Node::TIMES,
                allocation_size: node.allocation(),
                end_of_file: node.end_of_file(),
                file_attributes: node.attributes(),
            };
        }
        response.emit(out);
        Ok(())
    }

    fn query_directory(&mut self, message: &[u8], script: &Script, related: &Related, out: &mut Vec<u8>) -> Answered {
        use query_directory::{Request, Response, flags};
        let request = Request::parse(message).ok_or(INVALID)?;
        let pattern = request.pattern.to_string();
        let position = self.listed.entry(related.file(request.file)).or_default();
        if request.flags & (flags::RESTART_SCANS | flags::REOPEN) != 0 {
            *position = 0;
        }
        let Script { entries, file_size, nested, looping, .. } = *script;
        let listing = Listing { pattern: &pattern, entries, file_size, nested };
        if looping && *position >= entries.saturating_add(2) {
            *position = 0;
        }
        let before = *position;
        let most = if request.flags & flags::RETURN_SINGLE_ENTRY != 0 { 1 } else { usize::MAX };
        let mut output = Vec::new();
        *position = listing
            .put(request.class, before, request.output_buffer_length as usize, most, &mut output)
            .ok_or(NtStatus::INVALID_INFO_CLASS)?;
        if *position == before {
            return Err(NtStatus::NO_MORE_FILES);
        }
        Response { output: &output }.emit(out);
        Ok(())
    }

    fn ioctl(&mut self, message: &[u8], out: &mut Vec<u8>) -> Answered {
        let request = ioctl::Request::parse(message).ok_or(INVALID)?;
        let mut output = Vec::new();
        match request.code {
            Fsctl::VALIDATE_NEGOTIATE_INFO => validation(self.dialect).emit(&mut output),
            Fsctl::SRV_REQUEST_RESUME_KEY => copy_chunk::ResumeKey::default().emit(&mut output),
            Fsctl::SRV_COPYCHUNK | Fsctl::SRV_COPYCHUNK_WRITE => {
                let (_, chunks) = copy_chunk::parse(request.input).ok_or(INVALID)?;
                let copied = copy_chunk::Copied {
                    chunks_written: chunks.iter().count() as u32,
                    chunk_bytes_written: 0,
                    total_bytes_written: chunks.iter().fold(0, |sum, chunk| chunk.length.wrapping_add(sum)),
                };
                copied.emit(&mut output);
            }
            Fsctl::DFS_GET_REFERRALS => return Err(NtStatus::NOT_FOUND),
            _ => return Err(NtStatus::INVALID_DEVICE_REQUEST),
        }
        ioctl::Response { code: request.code, file: request.file, input: &[], output: &output }.emit(out);
        Ok(())
    }
}

/// Appends a STATUS_PENDING response and turns the final response into an asynchronous one (MS-SMB2 3.3.4.2, 3.3.4.4:
/// the interim response grants the credits, the final one none).
pub(super) fn interim(answer: &mut [u8], async_id: u64, out: &mut Vec<u8>) {
    let Some(header) = Smb2Header::parse(answer).filter(|_| answer.len() >= Smb2Header::LENGTH) else { return };
    let header = Smb2Header { flags: header.flags | flags::ASYNC_COMMAND, async_id: Some(async_id), ..header };
    refuse(Smb2Header { status: NtStatus::PENDING, ..header }, out);
    answer[..Smb2Header::LENGTH].copy_from_slice(&Smb2Header { credits: 0, ..header }.to_bytes());
}

pub(super) fn refuse(header: Smb2Header, out: &mut Vec<u8>) {
    header.emit(out);
    error::Smb2ErrorResponse::default().emit(out);
}

/// Appends an oplock break to none, or with `lease` a lease break from read caching to none. The lease flags tell
/// whether an acknowledgment is required.
pub(super) fn put_break(file: u64, lease: Option<u32>, out: &mut Vec<u8>) {
    let header = Smb2Header::new(Smb2Command::OPLOCK_BREAK);
    Smb2Header { flags: flags::SERVER_TO_REDIR, message_id: u64::MAX, ..header }.emit(out);
    let file = FileReference { persistent: file, volatile: file };
    let lease = lease.map(|flags| oplock_break::LeaseBreak {
        epoch: 1,
        flags,
        key: [0x1e; 16],
        current_state: 1,
        new_state: 0,
    });
    match lease {
        Some(lease) => lease.emit(out),
        None => oplock_break::Oplock { oplock_level: create::oplock::NONE, file }.emit(out),
    }
}

/// Maps CreateDisposition to CreateAction: FILE_SUPERSEDE gives superseded, FILE_OPEN and FILE_OPEN_IF opened,
/// FILE_CREATE created, the others overwritten.
pub(super) fn action(disposition: u32) -> u32 {
    match disposition {
        0 => 0,
        1 | 3 => 1,
        2 => 2,
        _ => 3,
    }
}

fn node(file: u64, script: &Script) -> Node {
    Node { is_directory: file & DIRECTORY_BIT != 0, size: script.file_size, index: 1000 + (file >> 1) }
}

fn read(message: &[u8], script: &Script, out: &mut Vec<u8>) -> Answered {
    let read::Request { length, offset, .. } = read::Request::parse(message).ok_or(INVALID)?;
    if length > script.max_transfer {
        return Err(INVALID);
    }
    if offset >= script.file_size && length > 0 {
        return Err(NtStatus::END_OF_FILE);
    }
    let length = u64::from(length).min(script.file_size.saturating_sub(offset)) as usize;
    read::Response { data: ZEROS.get(..length).ok_or(INVALID)? }.emit(out);
    Ok(())
}

fn query_info(message: &[u8], script: &Script, related: &Related, out: &mut Vec<u8>) -> Answered {
    let request = query_info::Request::parse(message).ok_or(INVALID)?;
    let mut output = Vec::new();
    node(related.file(request.file), script)
        .put_info(request.level, &mut output)
        .ok_or(NtStatus::INVALID_INFO_CLASS)?;
    let fits = output.len() <= request.output_buffer_length as usize;
    output.truncate(request.output_buffer_length as usize);
    query_info::Response { output: &output }.emit(out);
    if fits { Ok(()) } else { Err(NtStatus::BUFFER_OVERFLOW) }
}

const SERVER_GUID: [u8; 16] = *b"scripted server.";
/// Maximum transfer size of dialect 2.0.2.
const SMALL: u32 = 65_536;
/// SMB2 wildcard dialect, which requests another NEGOTIATE.
const WILDCARD: u16 = 0x02ff;

impl Smb2 {
    fn negotiate(&mut self, message: &[u8], script: &Script, out: &mut Vec<u8>) -> Answered {
        let request = negotiate::Request::parse(message).ok_or(INVALID)?;
        let common = request.dialects.iter().filter(|dialect| script.dialects.contains(dialect));
        self.dialect = common.max().ok_or(NtStatus::NOT_SUPPORTED)?;
        // Selects the first offered cipher and signing algorithm.
        let contexts = request.contexts;
        let first = |list: Option<List<'_, u16>>| list.filter(|_| script.contexts).and_then(|list| list.iter().next());
        let (cipher, algorithm) = (first(contexts.ciphers()), first(contexts.signing_algorithms()));
        let offer = negotiate_context::Offer {
            salt: &[0x5a; 32],
            ciphers: cipher.as_slice(),
            signing_algorithms: algorithm.as_slice(),
            net_name: None,
        };
        let contexts = match self.dialect {
            0x0311 => negotiate_context::NegotiateContextList::Offer(offer),
            _ => negotiate_context::NegotiateContextList::default(),
        };
        put_negotiate(self.dialect, contexts, script, out);
        Ok(())
    }

    fn session_setup(&mut self, message: &[u8], script: &Script, related: &mut Related, out: &mut Vec<u8>) -> Answered {
        use session_setup::{Request, Response};
        const MORE: Answered = Err(NtStatus::MORE_PROCESSING_REQUIRED);
        let (leg, wrapping) = ntlm::leg(Request::parse(message).ok_or(INVALID)?.token);
        related.session_id = self.session_id();
        // The last leg logs every user on as a guest.
        let (session_flags, token, result) = match leg {
            ntlm::Leg::Negotiate(offered) => (0, ntlm::challenge(offered, wrapping), MORE),
            ntlm::Leg::Authenticate if script.endless_login => (0, ntlm::challenge(0, wrapping), MORE),
            ntlm::Leg::Authenticate => (Response::GUEST, ntlm::accepted(wrapping), Ok(())),
            ntlm::Leg::Unknown => return Err(NtStatus::LOGON_FAILURE),
        };
        Response { session_flags, token: &token }.emit(out);
        result
    }

    fn tree_connect(&mut self, message: &[u8], related: &mut Related, out: &mut Vec<u8>) -> Answered {
        let path = tree_connect::Request::parse(message).ok_or(INVALID)?.path.to_string();
        self.trees += 1;
        related.tree_id = self.trees;
        let share_type = if path.to_ascii_uppercase().ends_with("\\IPC$") { 2 } else { 1 };
        tree_connect::Response { share_type, maximal_access: 0x001f_01ff, ..Default::default() }.emit(out);
        Ok(())
    }
}

/// Responds to an SMB1 NEGOTIATE that offers SMB2 (§3.3.5.3.1, §3.3.5.3.2); returns `None` if it does not.
pub(super) fn negotiate_from_smb1(message: &[u8], script: &Script, out: &mut Vec<u8>) -> Option<()> {
    let offers = |name: &[u8]| message.windows(name.len()).any(|window| window == name);
    let dialect = if offers(b"\x02SMB 2.???\0") && script.dialects.iter().any(|dialect| *dialect > 0x0202) {
        WILDCARD
    } else if offers(b"\x02SMB 2.002\0") && script.dialects.contains(&0x0202) {
        0x0202
    } else {
        return None;
    };
    Smb2Header { credits: 1, flags: flags::SERVER_TO_REDIR, ..Smb2Header::new(Smb2Command::NEGOTIATE) }.emit(out);
    put_negotiate(dialect, negotiate_context::NegotiateContextList::default(), script, out);
    Some(())
}

fn put_negotiate(
    dialect: u16,
    contexts: negotiate_context::NegotiateContextList<'_>,
    script: &Script,
    out: &mut Vec<u8>,
) {
    let largest = if dialect == 0x0202 { script.max_transfer.min(SMALL) } else { script.max_transfer };
    let response = negotiate::Response {
        security_mode: security_mode::SIGNING_ENABLED,
        dialect,
        server_guid: SERVER_GUID,
        capabilities: capabilities(dialect),
        max_transact_size: largest,
        max_read_size: largest,
        max_write_size: largest,
        system_time: FILETIME,
        security_buffer: &ntlm::offer(),
        contexts,
    };
    response.emit(out);
}

fn capabilities(dialect: u16) -> u32 {
    if dialect > 0x0202 { capabilities::LEASING | capabilities::LARGE_MTU } else { 0 }
}

/// Repeats the NEGOTIATE response for VALIDATE_NEGOTIATE_INFO.
fn validation(dialect: u16) -> validate_negotiate::ValidateNegotiateResponse {
    validate_negotiate::ValidateNegotiateResponse {
        capabilities: capabilities(dialect),
        guid: SERVER_GUID,
        security_mode: security_mode::SIGNING_ENABLED,
        dialect,
    }
}
