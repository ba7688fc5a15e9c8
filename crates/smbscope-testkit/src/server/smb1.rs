//! Answers to SMB1 requests (MS-CIFS 3.3.5, MS-SMB 3.3.5): the same files and guests as with SMB2.
//!
//! A request is one message: parameters of transactions that span several are not put together. Raw modes are not
//! offered.

use super::info::{FILETIME, Node};
use super::ntlm;
use super::script::Script;
use smbscope_wire::codec::{Put, Value};
use smbscope_wire::smb1::{Block, Command, Header, Logon, PROTOCOL_ID, Request, blocks, flags, flags2};
use smbscope_wire::status::NtStatus;
use std::collections::HashMap;

mod transaction;

/// What the server knows of a connection.
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    trees: u16,
    opens: u16,
    searches: HashMap<u16, transaction::Search>,
    next_search: u16,
    /// NEGOTIATE agreed on extended security (MS-SMB 2.2.4.5.2.1).
    extended: bool,
}

/// In the number of an open: it is a directory.
const DIRECTORY_BIT: u16 = 1;
/// SMB_FLAGS2_EXTENDED_SECURITY (MS-SMB 2.2.3.1).
const EXTENDED_SECURITY: u16 = 0x0800;
/// 2021-01-01 00:00 UTC as UTIME.
const UTIME: u32 = 1_609_459_200;

type Answered = Result<(), NtStatus>;

impl Connection {
    pub(super) fn new(number: u64) -> Connection {
        Connection { number, trees: 0, opens: 0, searches: HashMap::new(), next_search: 0, extended: false }
    }

    /// Appends the answer to a message, its whole chain included; nothing where none is due.
    pub(super) fn answer(
        &mut self,
        header: &Header,
        message: &[u8],
        script: &Script,
        forced: Option<NtStatus>,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        put_header(header, out);
        let mut answer = Answer { start, andx_at: None, out };
        let mut result = forced.map_or(Ok(true), Err);
        for block in blocks(header, message) {
            if !matches!(result, Ok(true)) {
                break;
            }
            if let Some(at) = answer.andx_at {
                let offset = answer.out.len() - start;
                answer.out[at] = block.command.0;
                (offset as u16).set(answer.out, at + 2);
            }
            let before = answer.out.len();
            result = self.block(header, &block, message, script, &mut answer);
            // One that failed ends the chain without words (MS-CIFS 3.3.5.2.3), unless the status comes with an answer.
            let is_answer = matches!(result, Ok(_) | Err(NtStatus::MORE_PROCESSING_REQUIRED));
            if !is_answer {
                answer.out.truncate(before);
            }
        }
        match result {
            Ok(true) => {}
            Ok(false) => out.truncate(start),
            Err(status) => {
                status.0.set(out, start + 5);
                if status != NtStatus::MORE_PROCESSING_REQUIRED || forced.is_some() {
                    out.put_bytes(&[0, 0, 0]);
                }
            }
        }
    }

    /// Appends the answer to one command; whether there is one.
    fn block(
        &mut self,
        header: &Header,
        block: &Block<'_>,
        message: &[u8],
        script: &Script,
        answer: &mut Answer<'_>,
    ) -> Result<bool, NtStatus> {
        const INVALID: NtStatus = NtStatus::INVALID_PARAMETER;
        let request = Request::parse(header, block, message);
        match (block.command, &request) {
            (Command::NEGOTIATE, Request::Negotiate(dialects)) => self.negotiate(header, dialects, script, answer)?,
            (Command::SESSION_SETUP_ANDX, Request::SessionSetup(logon)) => self.session_setup(logon, script, answer)?,
            (Command::TREE_CONNECT_ANDX, Request::TreeConnect(path)) => {
                self.tree_connect(block, &path.text, answer).ok_or(INVALID)?;
            }
            (Command::NT_CREATE_ANDX, _) => self.nt_create(block, script, answer).ok_or(INVALID)?,
            (Command::OPEN_ANDX, _) => self.open_andx(script, answer),
            (Command::READ_ANDX, Request::Range { offset, length, .. }) => read(*offset, *length, script, answer)?,
            (Command::WRITE_ANDX, Request::Range { length, .. }) => answer.andx(|words| {
                words.put_u16(*length as u16);
                words.put_u16(0xffff);
                words.put_u16((*length >> 16) as u16);
                words.put_u16(0);
            }),
            (Command::LOCKING_ANDX, Request::Locking { locks: 0, unlocks: 0, oplock_release: true, .. }) => {
                return Ok(false);
            }
            (Command::LOCKING_ANDX | Command::LOGOFF_ANDX, _) => answer.andx(|_| {}),
            (Command::TRANSACTION2, _) => self.transaction2(header, block, message, script, answer)?,
            (Command::QUERY_INFORMATION, _) => answer.plain(|words| {
                words.put_u16(0x20);
                words.put_u32(UTIME);
                words.put_u32(script.file_size as u32);
                words.put_zeros(10);
            }),
            (Command::QUERY_INFORMATION_DISK, _) => answer.plain(|words| {
                for value in [0xffff, 64, 512, 0x7fff, 0] {
                    words.put_u16(value);
                }
            }),
            (Command::ECHO, Request::Echo(0)) => return Ok(false),
            (Command::ECHO, _) => answer.with_data(|words| words.put_u16(1), block.data),
            (Command::NT_CANCEL, _) => return Ok(false),
            (command, _) if HAS_EMPTY_ANSWER.contains(&command) => answer.plain(|_| {}),
            _ => return Err(NtStatus::NOT_SUPPORTED),
        }
        Ok(true)
    }

    /// MS-SMB 2.2.4.5.2: NT LM 0.12, with a token or, for clients without extended security, a challenge.
    fn negotiate(
        &mut self,
        header: &Header,
        dialects: &[String],
        script: &Script,
        answer: &mut Answer<'_>,
    ) -> Answered {
        /// Unicode, large files, NT SMBs, NTSTATUS, level II oplocks, NT find, pass-through levels, large reads, writes.
        const CAPABILITIES: u32 = 0x0000_e2dc;
        const EXTENDED: u32 = 0x8000_0000;
        let Some(index) = dialects.iter().position(|dialect| dialect == "NT LM 0.12") else {
            answer.plain(|words| words.put_u16(0xffff));
            return Ok(());
        };
        self.extended = header.flags2 & EXTENDED_SECURITY != 0;
        let mut data = Vec::new();
        if self.extended {
            data.put_bytes(b"scripted server.");
            data.put_bytes(&ntlm::offer());
        } else {
            data.put_bytes(b"\x01\x23\x45\x67\x89\xab\xcd\xef");
            data.put_utf16(ntlm::NAME);
            data.put_u16(0);
        }
        let (extended, challenge) = if self.extended { (EXTENDED, 0) } else { (0, 8) };
        answer.with_data(
            |words| {
                words.put_u16(index as u16);
                words.put_u8(3);
                words.put_u16(script.credits);
                words.put_u16(1);
                words.put_u32(script.smb1_buffer);
                words.put_u32(65_536);
                words.put_u32(0);
                words.put_u32(CAPABILITIES | extended);
                words.put_u64(FILETIME);
                words.put_u16(0);
                words.put_u8(challenge);
            },
            &data,
        );
        Ok(())
    }

    /// MS-SMB 2.2.4.6.2, MS-CIFS 2.2.4.53.2
    fn session_setup(&mut self, logon: &Logon<'_>, script: &Script, answer: &mut Answer<'_>) -> Answered {
        let uid = 100 + (self.number % 60_000) as u16;
        uid.set(answer.out, answer.start + 28);
        let Logon::Token(token) = logon else {
            answer.andx(|words| words.put_u16(1));
            answer.put_natives();
            return Ok(());
        };
        let (action, token, result) = match ntlm::leg(token) {
            (ntlm::Leg::Negotiate(offered), wrapping) => {
                (0, ntlm::challenge(offered, wrapping), Err(NtStatus::MORE_PROCESSING_REQUIRED))
            }
            (ntlm::Leg::Authenticate, wrapping) if script.endless_login => {
                (0, ntlm::challenge(0, wrapping), Err(NtStatus::MORE_PROCESSING_REQUIRED))
            }
            (ntlm::Leg::Authenticate, wrapping) => (1, ntlm::accepted(wrapping), Ok(())),
            (ntlm::Leg::Unknown, _) => return Err(NtStatus::LOGON_FAILURE),
        };
        answer.andx_with_data(
            |words| {
                words.put_u16(action);
                words.put_u16(token.len() as u16);
            },
            &token,
        );
        answer.put_natives();
        result
    }

    /// MS-SMB 2.2.4.7.2
    fn tree_connect(&mut self, block: &Block<'_>, path: &str, answer: &mut Answer<'_>) -> Option<()> {
        const EXTENDED_RESPONSE: u16 = 8;
        let wants_extended = block.word(4)? & EXTENDED_RESPONSE != 0;
        self.trees += 1;
        self.trees.set(answer.out, answer.start + 24);
        let is_pipe = path.to_ascii_uppercase().ends_with("\\IPC$");
        let service: &[u8] = if is_pipe { b"IPC\0" } else { b"A:\0" };
        answer.andx_with_data(
            |words| {
                words.put_u16(1);
                if wants_extended {
                    words.put_u32(0x001f_01ff);
                    words.put_u32(0x001f_01ff);
                }
            },
            service,
        );
        answer.put_string("NTFS");
        Some(())
    }

    fn open(&mut self, is_directory: bool) -> u16 {
        self.opens = self.opens % 0x7000 + 1;
        self.opens << 1 | if is_directory { DIRECTORY_BIT } else { 0 }
    }

    /// MS-CIFS 2.2.4.64.2
    fn nt_create(&mut self, block: &Block<'_>, script: &Script, answer: &mut Answer<'_>) -> Option<()> {
        let (name_length, disposition, options) = (block.word(5)?, block.dword(35)?, block.dword(39)?);
        // Behind the terminator, if there is one, of an empty name or of the root's.
        let is_directory = options & 1 != 0 || name_length <= 2;
        let fid = self.open(is_directory);
        let node = node(fid, script);
        let action = super::smb2::action(disposition);
        // NT_CREATE_REQUEST_OPLOCK and NT_CREATE_REQUEST_OPBATCH, which become level 1 (exclusive) and 2 (batch).
        let oplock = if script.oplocks { (block.dword(7)? >> 1 & 3).min(2) as u8 } else { 0 };
        answer.andx(|words| {
            words.put_u8(oplock);
            words.put_u16(fid);
            words.put_u32(action);
            words.put(Node::TIMES);
            words.put_u32(node.attributes());
            words.put_u64(node.allocation());
            words.put_u64(node.end_of_file());
            words.put_u16(0);
            // Neither streams, nor attributes, nor reparse tags are missed.
            words.put_u16(7);
            words.put_u8(is_directory.into());
        });
        Some(())
    }

    /// MS-CIFS 2.2.4.41.2
    fn open_andx(&mut self, script: &Script, answer: &mut Answer<'_>) {
        let fid = self.open(false);
        answer.andx(|words| {
            words.put_u16(fid);
            words.put_u16(0x20);
            words.put_u32(UTIME);
            words.put_u32(script.file_size as u32);
            words.put_u16(2);
            words.put_u16(0);
            words.put_u16(0);
            words.put_u16(1);
            words.put_zeros(6);
        });
    }

    /// MS-CIFS 2.2.4.32.1: LOCKING_ANDX from the server, an oplock broken to none.
    pub(super) fn put_break(&self, out: &mut Vec<u8>) {
        let header = Header {
            command: Command::LOCKING_ANDX,
            status: 0,
            flags: 0,
            flags2: flags2::UNICODE | flags2::NT_STATUS,
            tid: self.trees,
            pid: 0xffff,
            uid: 0,
            mid: 0xffff,
        };
        let start = out.len();
        put_header(&header, out);
        out[start + 9] = 0;
        let mut answer = Answer { start, andx_at: None, out };
        answer.andx(|words| {
            words.put_u16(self.opens << 1);
            words.put_u8(2);
            words.put_u8(0);
            words.put_u32(0);
            words.put_u32(0);
        });
    }
}

/// Commands whose answer has neither words nor data.
const HAS_EMPTY_ANSWER: [Command; 15] = [
    Command::CLOSE,
    Command::FLUSH,
    Command::DELETE,
    Command::RENAME,
    Command::NT_RENAME,
    Command::CREATE_DIRECTORY,
    Command::DELETE_DIRECTORY,
    Command::CHECK_DIRECTORY,
    Command::SET_INFORMATION,
    Command::SET_INFORMATION2,
    Command::LOCK_BYTE_RANGE,
    Command::UNLOCK_BYTE_RANGE,
    Command::PROCESS_EXIT,
    Command::TREE_DISCONNECT,
    Command::FIND_CLOSE2,
];

fn node(fid: u16, script: &Script) -> Node {
    Node { is_directory: fid & DIRECTORY_BIT != 0, size: script.file_size, index: 1000 + u64::from(fid >> 1) }
}

/// MS-CIFS 2.2.4.42.2
fn read(offset: u64, length: u64, script: &Script, answer: &mut Answer<'_>) -> Answered {
    /// From the header to the data: header, word count, words, byte count and a byte of padding.
    const DATA_OFFSET: u16 = 60;
    if length > u64::from(script.max_transfer) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    // A read behind the end is none of any byte, and no error.
    let length = length.min(script.file_size.saturating_sub(offset)) as usize;
    let data_offset = answer.out.len() - answer.start - 32 + usize::from(DATA_OFFSET);
    answer.andx(|words| {
        words.put_u16(0xffff);
        words.put_u16(0);
        words.put_u16(0);
        words.put_u16(length as u16);
        words.put_u16(data_offset as u16);
        words.put_u16((length >> 16) as u16);
        words.put_zeros(8);
    });
    answer.put_data_zeros(1 + length);
    Ok(())
}

fn put_header(of: &Header, out: &mut Vec<u8>) {
    /// Long names, extended security, NTSTATUS, Unicode: as the client has them.
    const ECHOED: u16 = 1 | EXTENDED_SECURITY | flags2::NT_STATUS | flags2::UNICODE;
    out.put_bytes(&PROTOCOL_ID);
    out.put_u8(of.command.0);
    out.put_u32(0);
    out.put_u8(flags::REPLY | 8);
    out.put_u16(of.flags2 & ECHOED | flags2::NT_STATUS);
    out.put_zeros(12);
    for id in [of.tid, of.pid, of.uid, of.mid] {
        out.put_u16(id);
    }
}

/// A message under construction, block by block.
struct Answer<'a> {
    start: usize,
    /// Where the AndX fields of the last block are.
    andx_at: Option<usize>,
    out: &'a mut Vec<u8>,
}

impl Answer<'_> {
    fn words(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        let at = self.out.len();
        self.out.put_u8(0);
        put(self.out);
        self.out[at] = ((self.out.len() - at - 1) / 2) as u8;
        self.out.put_u16(0);
    }

    /// A block without data.
    fn plain(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        self.andx_at = None;
        self.words(put);
    }

    /// A block that another may follow.
    fn andx(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        self.andx_at = Some(self.out.len() + 1);
        self.words(|words| {
            words.put_bytes(&[0xff, 0, 0, 0]);
            put(words);
        });
    }

    fn with_data(&mut self, put: impl FnOnce(&mut Vec<u8>), data: &[u8]) {
        self.plain(put);
        self.put_data(data);
    }

    fn andx_with_data(&mut self, put: impl FnOnce(&mut Vec<u8>), data: &[u8]) {
        self.andx(put);
        self.put_data(data);
    }

    /// Bytes right behind a byte count that has been written.
    fn put_data(&mut self, data: &[u8]) {
        let at = self.out.len();
        self.out.put_bytes(data);
        (data.len() as u16).set(self.out, at - 2);
    }

    fn put_data_zeros(&mut self, count: usize) {
        let at = self.out.len();
        self.out.put_zeros(count);
        (count as u16).set(self.out, at - 2);
    }

    /// A terminated UTF-16 string at an even offset, behind the data of the last block.
    fn put_string(&mut self, text: &str) {
        let before = self.out.len();
        self.out.pad(self.start, 2);
        self.out.put_utf16(text);
        self.out.put_u16(0);
        let count_at = self.byte_count_at();
        let count = u16::from_le_bytes([self.out[count_at], self.out[count_at + 1]]);
        let added = self.out.len() - before;
        (count + added as u16).set(self.out, count_at);
    }

    /// Where the byte count of the last block, an AndX one, is.
    fn byte_count_at(&self) -> usize {
        let words_at = self.andx_at.unwrap_or(self.start + 33);
        words_at + 2 * usize::from(self.out[words_at - 1])
    }

    /// NativeOS and NativeLanMan.
    fn put_natives(&mut self) {
        self.put_string("Script");
        self.put_string("Script");
    }
}
