//! Responses to SMB1 requests (MS-CIFS 3.3.5, MS-SMB 3.3.5), with the same files and guests as over SMB2.
//!
//! Each request is a single message: transactions that span several are not reassembled. Raw modes are not offered.

use super::info::{FILETIME, Listing, Node};
use super::ntlm;
use super::script::Script;
use super::smb2::{ZEROS, action};
use smbscope_wire::bytes::{u16_at, u32_at};
use smbscope_wire::codec::Put;
use smbscope_wire::names::{InfoLevel, Trans2};
use smbscope_wire::smb1::messages::trans2::{InformationLevel, find_class};
use smbscope_wire::smb1::messages::*;
use smbscope_wire::smb1::{Block, Smb1Command, Smb1Header, Smb1Request, TransactionRequest, blocks, flags, flags2};
use smbscope_wire::status::NtStatus;
use std::collections::HashMap;

#[derive(Debug)]
pub(super) struct Smb1 {
    number: u64,
    trees: u16,
    opens: u16,
    searches: HashMap<u16, Search>,
    next_search: u16,
    /// NEGOTIATE selected extended security (MS-SMB 2.2.4.5.2.1).
    extended: bool,
}

/// Marks the FID of a directory.
const DIRECTORY_BIT: u16 = 1;
const ARCHIVE: u16 = 0x20;
/// 2021-01-01 00:00 UTC as UTIME.
const UTIME: u32 = 1_609_459_200;

/// Native OS and LAN manager.
const NATIVE: WireText<'_> = WireText::Str("Script");
const INVALID: NtStatus = NtStatus::INVALID_PARAMETER;

type Answered = Result<(), NtStatus>;

impl Smb1 {
    pub(super) fn new(number: u64) -> Smb1 {
        Smb1 { number, trees: 0, opens: 0, searches: HashMap::new(), next_search: 0, extended: false }
    }

    /// Appends the response to a message with its whole AndX chain, if one is due.
    pub(super) fn answer(
        &mut self,
        header: &Smb1Header,
        message: &[u8],
        script: &Script,
        forced: Option<NtStatus>,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        let mut writer = Smb1MessageWriter::new(&answer_header(header), out);
        let (mut result, mut command) = (forced.map_or(Ok(true), Err), header.command);
        for block in blocks(header, message) {
            if !matches!(result, Ok(true)) {
                break;
            }
            command = block.command;
            result = self.block(header, &block, message, script, &mut writer);
        }
        match result {
            Ok(true) => {}
            Ok(false) => out.truncate(start),
            Err(status) => {
                writer.set(Smb1Header::STATUS, status.0);
                // An error ends the chain without parameters (MS-CIFS 3.3.5.2.3), unless the status comes with a
                // response body.
                if status != NtStatus::MORE_PROCESSING_REQUIRED || forced.is_some() {
                    writer.add_empty(command);
                }
            }
        }
    }

    /// Appends the response to one command. Returns false for commands without a response.
    fn block(
        &mut self,
        header: &Smb1Header,
        block: &Block<'_>,
        message: &[u8],
        script: &Script,
        writer: &mut Smb1MessageWriter<'_>,
    ) -> Result<bool, NtStatus> {
        let request = Smb1Request::parse(header, block, message);
        match (block.command, &request) {
            (Smb1Command::NEGOTIATE, Smb1Request::Negotiate(dialects)) => {
                self.negotiate(header, dialects, script, writer)
            }
            (Smb1Command::SESSION_SETUP_ANDX, Smb1Request::SessionSetup(_)) => {
                self.session_setup(block, script, writer)?
            }
            (Smb1Command::TREE_CONNECT_ANDX, Smb1Request::TreeConnect(path)) => {
                self.tree_connect(block, &path.text, writer)?
            }
            (Smb1Command::NT_CREATE_ANDX, _) => self.nt_create(block, script, writer)?,
            (Smb1Command::OPEN_ANDX, _) => self.open_andx(script, writer),
            (Smb1Command::READ_ANDX, Smb1Request::Range { offset, length, .. }) => {
                read(*offset, *length, script, writer)?
            }
            (Smb1Command::WRITE_ANDX, Smb1Request::Range { length, .. }) => {
                writer.add(&WriteAndxResponse::new(*length as u32));
            }
            (Smb1Command::LOCKING_ANDX, Smb1Request::Locking { locks: 0, unlocks: 0, oplock_release: true, .. }) => {
                return Ok(false);
            }
            (Smb1Command::LOCKING_ANDX, _) => writer.add(&LockingAndxResponse {}),
            (Smb1Command::LOGOFF_ANDX, _) => writer.add(&LogoffAndx {}),
            (Smb1Command::TRANSACTION2, Smb1Request::Transaction(request)) => {
                let reply = self.transaction2(request, message, script)?;
                writer.add(&Transaction2Response(TransactionPart::whole(&reply.parameters, &reply.data)));
            }
            (Smb1Command::QUERY_INFORMATION, _) => writer.add(&QueryInformationResponse {
                file_attributes: ARCHIVE,
                last_write_time: UTIME,
                file_size: script.file_size as u32,
            }),
            (Smb1Command::QUERY_INFORMATION_DISK, _) => writer.add(&QueryInformationDiskResponse {
                total_units: 0xffff,
                blocks_per_unit: 64,
                block_size: 512,
                free_units: 0x7fff,
            }),
            (Smb1Command::ECHO, Smb1Request::Echo(0)) => return Ok(false),
            (Smb1Command::ECHO, _) => writer.add(&EchoResponse { sequence_number: 1, data: block.data }),
            (Smb1Command::NT_CANCEL, _) => return Ok(false),
            (command, _) if HAS_EMPTY_ANSWER.contains(&command) => writer.add_empty(command),
            (Smb1Command::TRANSACTION2, _) => return Err(INVALID),
            _ => return Err(NtStatus::NOT_SUPPORTED),
        }
        Ok(true)
    }

    /// Responds to NT LM 0.12, with a token or, for clients without extended security, a challenge (MS-SMB 2.2.4.5.2).
    fn negotiate(
        &mut self,
        header: &Smb1Header,
        dialects: &[String],
        script: &Script,
        writer: &mut Smb1MessageWriter<'_>,
    ) {
        use capabilities::*;
        const CAPABILITIES: u32 = UNICODE
            | LARGE_FILES
            | NT_SMBS
            | STATUS32
            | LEVEL_II_OPLOCKS
            | NT_FIND
            | INFOLEVEL_PASSTHRU
            | LARGE_READX
            | LARGE_WRITEX;
        let Some(index) = dialects.iter().position(|dialect| dialect == NT_LM_0_12) else {
            return writer.add(&NoDialect { dialect_index: NoDialect::INDEX });
        };
        self.extended = header.flags2 & flags2::EXTENDED_SECURITY != 0;
        let blob = ntlm::offer();
        let security = if self.extended {
            Security::Extended { server_guid: *b"scripted server.", blob: &blob }
        } else {
            Security::Challenge { challenge: b"\x01\x23\x45\x67\x89\xab\xcd\xef", domain: ntlm::NAME.into() }
        };
        writer.add(&NtLm012 {
            dialect_index: index as u16,
            security_mode: security_mode::USER | security_mode::ENCRYPT_PASSWORDS,
            max_mpx_count: script.credits,
            max_buffer_size: script.smb1_buffer,
            max_raw_size: 65_536,
            session_key: 0,
            capabilities: if self.extended { CAPABILITIES | EXTENDED_SECURITY } else { CAPABILITIES },
            system_time: FILETIME,
            security,
        });
    }

    fn session_setup(&mut self, block: &Block<'_>, script: &Script, writer: &mut Smb1MessageWriter<'_>) -> Answered {
        const MORE: Answered = Err(NtStatus::MORE_PROCESSING_REQUIRED);
        let uid = 100 + (self.number % 60_000) as u16;
        writer.set(Smb1Header::UID, uid);
        let (native_os, native_lan_man) = (NATIVE, NATIVE);
        if block.word_count() != SessionSetupAndx::WORDS {
            writer.add(&SessionSetupAndxPlainResponse { action: 1, native_os, native_lan_man });
            return Ok(());
        }
        let token = SessionSetupAndx::parse_block(block).map_err(|_| INVALID)?.blob;
        let (action, token, result) = match ntlm::leg(token) {
            (ntlm::Leg::Negotiate(offered), wrapping) => (0, ntlm::challenge(offered, wrapping), MORE),
            (ntlm::Leg::Authenticate, wrapping) if script.endless_login => (0, ntlm::challenge(0, wrapping), MORE),
            (ntlm::Leg::Authenticate, wrapping) => (1, ntlm::accepted(wrapping), Ok(())),
            (ntlm::Leg::Unknown, _) => return Err(NtStatus::LOGON_FAILURE),
        };
        writer.add(&SessionSetupAndxResponse { action, blob: &token, native_os, native_lan_man });
        result
    }

    fn tree_connect(&mut self, block: &Block<'_>, path: &str, writer: &mut Smb1MessageWriter<'_>) -> Answered {
        let request = TreeConnectAndx::parse_block(block).map_err(|_| INVALID)?;
        self.trees += 1;
        writer.set(Smb1Header::TID, self.trees);
        let is_pipe = path.to_ascii_uppercase().ends_with("\\IPC$");
        let (optional_support, native_file_system) = (1, "NTFS".into());
        let service = if is_pipe { "IPC".into() } else { "A:".into() };
        if request.flags & EXTENDED_RESPONSE != 0 {
            let (maximal_access, guest_maximal_access) = (0x001f_01ff, 0x001f_01ff);
            writer.add(&TreeConnectAndxExtendedResponse {
                optional_support,
                maximal_access,
                guest_maximal_access,
                service,
                native_file_system,
            });
        } else {
            writer.add(&TreeConnectAndxResponse { optional_support, service, native_file_system });
        }
        Ok(())
    }

    fn open(&mut self, is_directory: bool) -> u16 {
        self.opens = self.opens % 0x7000 + 1;
        self.opens << 1 | if is_directory { DIRECTORY_BIT } else { 0 }
    }

    fn nt_create(&mut self, block: &Block<'_>, script: &Script, writer: &mut Smb1MessageWriter<'_>) -> Answered {
        let request = NtCreateAndx::parse_block(block).map_err(|_| INVALID)?;
        let is_root = matches!(request.name.to_string().as_str(), "" | "\\");
        let is_directory = request.create_options & 1 != 0 || is_root;
        let fid = self.open(is_directory);
        let node = node(fid, script);
        // NT_CREATE_REQUEST_OPLOCK and NT_CREATE_REQUEST_OPBATCH become level 1 (exclusive) and 2 (batch).
        let oplock_level = if script.oplocks { (request.flags >> 1 & 3).min(2) as u8 } else { 0 };
        writer.add(&NtCreateAndxResponse {
            oplock_level,
            fid,
            create_action: action(request.create_disposition),
            times: Node::TIMES,
            ext_file_attributes: node.attributes(),
            allocation_size: node.allocation(),
            end_of_file: node.end_of_file(),
            resource_type: 0,
            // All status bits: no streams, extended attributes or reparse tags.
            status_flags: 7,
            directory: is_directory.into(),
        });
        Ok(())
    }

    fn open_andx(&mut self, script: &Script, writer: &mut Smb1MessageWriter<'_>) {
        writer.add(&OpenAndxResponse {
            fid: self.open(false),
            file_attributes: ARCHIVE,
            last_write_time: UTIME,
            file_data_size: script.file_size as u32,
            access_rights: 2,
            open_results: 1,
        });
    }

    /// Builds an oplock break to none: a LOCKING_ANDX from the server.
    pub(super) fn put_break(&self, out: &mut Vec<u8>) {
        let header = Smb1Header {
            command: Smb1Command::LOCKING_ANDX,
            status: 0,
            flags: 0,
            flags2: flags2::UNICODE | flags2::NT_STATUS,
            tid: self.trees,
            pid: 0xffff,
            uid: 0,
            mid: 0xffff,
        };
        let broken = LockingAndx {
            fid: self.opens << 1,
            type_of_lock: lock_type::OPLOCK_RELEASE,
            new_oplock_level: 0,
            timeout: 0,
            unlocks: &[],
            locks: &[],
        };
        broken.emit(&header, out);
    }
}

/// Commands whose response has neither words nor data.
const HAS_EMPTY_ANSWER: [Smb1Command; 15] = [
    Smb1Command::CLOSE,
    Smb1Command::FLUSH,
    Smb1Command::DELETE,
    Smb1Command::RENAME,
    Smb1Command::NT_RENAME,
    Smb1Command::CREATE_DIRECTORY,
    Smb1Command::DELETE_DIRECTORY,
    Smb1Command::CHECK_DIRECTORY,
    Smb1Command::SET_INFORMATION,
    Smb1Command::SET_INFORMATION2,
    Smb1Command::LOCK_BYTE_RANGE,
    Smb1Command::UNLOCK_BYTE_RANGE,
    Smb1Command::PROCESS_EXIT,
    Smb1Command::TREE_DISCONNECT,
    Smb1Command::FIND_CLOSE2,
];

fn node(fid: u16, script: &Script) -> Node {
    Node { is_directory: fid & DIRECTORY_BIT != 0, size: script.file_size, index: 1000 + u64::from(fid >> 1) }
}

fn read(offset: u64, length: u64, script: &Script, writer: &mut Smb1MessageWriter<'_>) -> Answered {
    if length > u64::from(script.max_transfer) {
        return Err(INVALID);
    }
    // A read beyond the end of the file succeeds without data.
    let length = length.min(script.file_size.saturating_sub(offset)) as usize;
    writer.add(&ReadAndxResponse { available: u16::MAX, padding: 1, data: ZEROS.get(..length).ok_or(INVALID)? });
    Ok(())
}

/// Returns the header of a response: the server mirrors the client's long names, extended security, NTSTATUS and
/// Unicode.
fn answer_header(of: &Smb1Header) -> Smb1Header {
    const ECHOED: u16 = flags2::LONG_NAMES | flags2::EXTENDED_SECURITY | flags2::NT_STATUS | flags2::UNICODE;
    Smb1Header {
        status: 0,
        flags: flags::REPLY | flags::CASE_INSENSITIVE,
        flags2: of.flags2 & ECHOED | flags2::NT_STATUS,
        ..*of
    }
}

#[derive(Debug)]
struct Search {
    pattern: String,
    position: usize,
}

/// Levels from this value on are MS-FSCC classes (MS-SMB 2.2.2.3.5).
const PASS_THROUGH: u16 = 1000;
#[derive(Default)]
struct Reply {
    parameters: Vec<u8>,
    data: Vec<u8>,
}

impl Smb1 {
    fn transaction2(
        &mut self,
        request: &TransactionRequest,
        message: &[u8],
        script: &Script,
    ) -> Result<Reply, NtStatus> {
        let Transaction2 { subcommand, max_data_count, parameters, .. } =
            Transaction2::parse(message).map_err(|_| INVALID)?;
        let room = usize::from(max_data_count);
        let path = request.path.as_ref().map_or("", |name| &name.text).trim_start_matches('\\');
        let mut reply = Reply::default();
        match subcommand {
            Trans2::FIND_FIRST2 => {
                let pattern = path.rsplit('\\').next().unwrap_or_default().to_owned();
                self.next_search = self.next_search.wrapping_add(1);
                self.searches.insert(self.next_search, Search { pattern, position: 0 });
                reply.parameters.put_u16(self.next_search);
                let (most, level) = (u16_at(parameters, 2), u16_at(parameters, 6));
                self.find(self.next_search, most.zip(level).ok_or(INVALID)?, room, script, &mut reply)?;
            }
            Trans2::FIND_NEXT2 => {
                let sid = u16_at(parameters, 0).ok_or(INVALID)?;
                let (most, level) = (u16_at(parameters, 2), u16_at(parameters, 4));
                self.find(sid, most.zip(level).ok_or(INVALID)?, room, script, &mut reply)?;
            }
            Trans2::QUERY_FS_INFORMATION => {
                put_file_system(u16_at(parameters, 0).ok_or(INVALID)?, &mut reply.data)?;
            }
            Trans2::QUERY_PATH_INFORMATION => {
                let node = Node { is_directory: path.is_empty(), size: script.file_size, index: 999 };
                reply.parameters.put_u16(0);
                put_info(node, u16_at(parameters, 0).ok_or(INVALID)?, &mut reply.data)?;
            }
            Trans2::QUERY_FILE_INFORMATION => {
                let node = node(u16_at(parameters, 0).ok_or(INVALID)?, script);
                reply.parameters.put_u16(0);
                put_info(node, u16_at(parameters, 2).ok_or(INVALID)?, &mut reply.data)?;
            }
            Trans2::SET_PATH_INFORMATION | Trans2::SET_FILE_INFORMATION | Trans2::CREATE_DIRECTORY => {
                reply.parameters.put_u16(0);
            }
            Trans2::GET_DFS_REFERRAL => return Err(NtStatus::NOT_FOUND),
            _ => return Err(NtStatus::NOT_SUPPORTED),
        }
        reply.data.truncate(room);
        Ok(reply)
    }

    /// Appends SearchCount, EndOfSearch, EaErrorOffset, LastNameOffset, and the entries (2.2.6.2.2).
    fn find(
        &mut self,
        sid: u16,
        (most, level): (u16, u16),
        room: usize,
        script: &Script,
        reply: &mut Reply,
    ) -> Answered {
        let search = self.searches.get_mut(&sid).ok_or(NtStatus::INVALID_HANDLE)?;
        let class = match find_class(InformationLevel(level)) {
            Some(class) => class.to_wire().1,
            None => level.checked_sub(PASS_THROUGH).ok_or(NtStatus::INVALID_LEVEL)? as u8,
        };
        let Script { entries, file_size, nested, looping, .. } = *script;
        let listing = Listing { pattern: &search.pattern, entries, file_size, nested };
        if looping && search.position >= entries.saturating_add(2) {
            search.position = 0;
        }
        let before = search.position;
        let after = listing.put(class, before, room, most.into(), &mut reply.data).ok_or(NtStatus::INVALID_LEVEL)?;
        search.position = after;
        if after == before && before == 0 {
            return Err(NtStatus::NO_SUCH_FILE);
        }
        let is_end = !looping && listing.put(class, after, usize::MAX, 1, &mut Vec::new()) == Some(after);
        if is_end {
            self.searches.remove(&sid);
        }
        reply.parameters.put_u16((after - before) as u16);
        reply.parameters.put_u16(is_end.into());
        reply.parameters.put_u16(0);
        reply.parameters.put_u16(last_entry(&reply.data) as u16);
        Ok(())
    }
}

fn last_entry(entries: &[u8]) -> usize {
    let mut at = 0;
    while let Some(next @ 1..) = u32_at(entries, at) {
        at += next as usize;
    }
    at
}

/// MS-CIFS 2.2.8.3
fn put_info(node: Node, level: u16, data: &mut Vec<u8>) -> Answered {
    let class = match level {
        // SMB_INFO_STANDARD: DOS dates and times.
        1 => {
            (0..3).for_each(|_| data.put_u32(0x5221));
            data.put_u32(node.end_of_file() as u32);
            data.put_u32(node.allocation() as u32);
            data.put_u16(node.attributes() as u16);
            return Ok(());
        }
        0x0101 => InfoLevel::FILE_BASIC_INFORMATION,
        0x0102 => InfoLevel::FILE_STANDARD_INFORMATION,
        0x0103 => InfoLevel::FILE_EA_INFORMATION,
        0x0104 => InfoLevel::FILE_NAME_INFORMATION,
        // SMB_QUERY_FILE_ALL_INFO: less than the MS-FSCC class of the same name.
        0x0107 => {
            let parts = [
                InfoLevel::FILE_BASIC_INFORMATION,
                InfoLevel::FILE_STANDARD_INFORMATION,
                InfoLevel::FILE_EA_INFORMATION,
                InfoLevel::FILE_NAME_INFORMATION,
            ];
            return parts.iter().try_for_each(|part| node.put_info(*part, data)).ok_or(NtStatus::INVALID_LEVEL);
        }
        0x0108 => InfoLevel::FILE_ALTERNATE_NAME_INFORMATION,
        0x0109 => InfoLevel::FILE_STREAM_INFORMATION,
        0x010b => InfoLevel::FILE_COMPRESSION_INFORMATION,
        _ => InfoLevel::File(level.checked_sub(PASS_THROUGH).ok_or(NtStatus::INVALID_LEVEL)? as u8),
    };
    node.put_info(class, data).ok_or(NtStatus::INVALID_LEVEL)
}

/// MS-CIFS 2.2.8.2
fn put_file_system(level: u16, data: &mut Vec<u8>) -> Answered {
    let class = match level {
        // SMB_INFO_ALLOCATION
        1 => {
            for value in [0, 8, 1 << 28, 1 << 27] {
                data.put_u32(value);
            }
            data.put_u16(512);
            return Ok(());
        }
        // SMB_INFO_VOLUME
        2 => {
            data.put_u32(0x5eed_5eed);
            data.put_u8(8);
            data.put_utf16("SCRIPTED");
            return Ok(());
        }
        0x0102 => InfoLevel::FILE_FS_VOLUME_INFORMATION,
        0x0103 => InfoLevel::FILE_FS_SIZE_INFORMATION,
        0x0104 => InfoLevel::FILE_FS_DEVICE_INFORMATION,
        0x0105 => InfoLevel::FILE_FS_ATTRIBUTE_INFORMATION,
        _ => InfoLevel::FileSystem(level.checked_sub(PASS_THROUGH).ok_or(NtStatus::INVALID_LEVEL)? as u8),
    };
    let root = Node { is_directory: true, size: 0, index: 1 };
    root.put_info(class, data).ok_or(NtStatus::INVALID_LEVEL)
}
