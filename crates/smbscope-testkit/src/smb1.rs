//! SMB1 messages for tests (MS-CIFS 2.2.4): the fields that the analysis reads, and zeros elsewhere. Comments on
//! functions name the section of MS-CIFS.

use smbscope_wire::codec::{FixedSizeField, Put};
use smbscope_wire::names::Trans2;
use smbscope_wire::smb1::messages::{self as wire, *};
use smbscope_wire::smb1::{Smb1Command, Smb1Header, flags, flags2};

/// A message: the header and, for each command of the AndX chain, a block of words and data.
#[derive(Debug, Clone)]
pub struct Message {
    header: Smb1Header,
    /// Each block starts with its word count.
    blocks: Vec<(Smb1Command, Vec<u8>)>,
}

impl Message {
    fn new<M: wire::Smb1Message>(mid: u16, flags: u8, message: &M) -> Message {
        let (command, flags2) = (M::COMMAND, flags2::NT_STATUS);
        let header = Smb1Header { command, status: 0, flags, flags2, tid: 1, pid: 0x1234, uid: 100, mid };
        let mut bytes = Vec::new();
        message.emit(&header, &mut bytes);
        Message { header, blocks: vec![(command, bytes.split_off(Smb1Header::LENGTH))] }
    }

    /// Sets the tree id. Default: 1.
    pub fn tid(mut self, tid: u16) -> Message {
        self.header.tid = tid;
        self
    }

    /// Sets the process id. Default: 0x1234.
    pub fn pid(mut self, pid: u16) -> Message {
        self.header.pid = pid;
        self
    }

    /// Sets the user id. Default: 100.
    pub fn uid(mut self, uid: u16) -> Message {
        self.header.uid = uid;
        self
    }

    pub fn status(mut self, status: u32) -> Message {
        self.header.status = status;
        self
    }

    /// Clears the reply bit, as in oplock breaks from servers and in Samba's "go ahead".
    pub fn without_reply_bit(mut self) -> Message {
        self.header.flags &= !flags::REPLY;
        self
    }

    /// Appends a further command (AndX).
    pub fn and(mut self, next: Message) -> Message {
        self.blocks.extend(next.blocks);
        self
    }
}

impl From<Message> for Vec<u8> {
    fn from(message: Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.header.emit(&mut bytes);
        for (index, (_, block)) in message.blocks.iter().enumerate() {
            let start = bytes.len();
            bytes.extend(block);
            if let Some((next, _)) = message.blocks.get(index + 1) {
                let offset = bytes.len() as u16;
                next.0.set(&mut bytes, start + 1);
                offset.set(&mut bytes, start + 3);
            }
        }
        bytes
    }
}

fn request<M: wire::Smb1Message>(mid: u16, message: M) -> Message {
    Message::new(mid, 0, &message)
}

fn answer<M: wire::Smb1Message>(mid: u16, message: M) -> Message {
    Message::new(mid, flags::REPLY, &message)
}

/// Builds a command from raw words and data, for messages that our client and server do not support.
fn raw(command: Smb1Command, mid: u16, flags: u8, words: Vec<u8>, data: &[u8]) -> Message {
    assert!(words.len().is_multiple_of(2), "parameters are words");
    let mut block = vec![(words.len() / 2) as u8];
    block.extend(words);
    block.put(data.len() as u16);
    block.extend(data);
    let header = Smb1Header { command, ..Message::new(mid, flags, &NtCancel {}).header };
    Message { header, blocks: vec![(command, block)] }
}

/// Encodes words, padded with zeros to `length` bytes.
fn words(words: &[u16], length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(length, 0);
    bytes
}

pub fn empty_response(command: Smb1Command, mid: u16) -> Message {
    raw(command, mid, flags::REPLY, Vec::new(), &[])
}

/// 2.2.4.52.1
pub fn negotiate(mid: u16, dialects: &[&str]) -> Message {
    request(mid, Negotiate { dialects }).tid(0).uid(0)
}

/// 2.2.4.52.2, for NT LM 0.12.
pub fn negotiate_response(mid: u16, index: u16) -> Message {
    raw(Smb1Command::NEGOTIATE, mid, flags::REPLY, words(&[index], 34), &[]).tid(0).uid(0)
}

/// 2.2.4.53.1, with account and domain in plain text.
pub fn session_setup(mid: u16, domain: &str, user: &str) -> Message {
    let setup = SessionSetupAndxPlain {
        account_name: user.into(),
        primary_domain: domain.into(),
        native_os: "OS".into(),
        native_lan_man: "LM".into(),
        ..SessionSetupAndxPlain::default()
    };
    request(mid, setup).tid(0).uid(0)
}

/// 2.2.4.53.2
pub fn session_setup_response(mid: u16, uid: u16) -> Message {
    raw(Smb1Command::SESSION_SETUP_ANDX, mid, flags::REPLY, words(&[0xff, 0, 0], 6), &[]).tid(0).uid(uid)
}

/// 2.2.4.55.1, with the path as `\\server\share`.
pub fn tree_connect(mid: u16, path: &str) -> Message {
    let connect = TreeConnectAndx { flags: 0, password: &[0], path: path.into(), service: "?????".into() };
    request(mid, connect).tid(0)
}

/// 2.2.4.55.2
pub fn tree_connect_response(mid: u16, tid: u16) -> Message {
    answer(mid, TreeConnectAndxResponse { service: "A:".into(), ..Default::default() }).tid(tid)
}

/// 2.2.4.64.1
pub fn nt_create(mid: u16, name: &str) -> Message {
    request(mid, NtCreateAndx { name: name.into(), ..Default::default() })
}

/// 2.2.4.64.2
pub fn nt_create_response(mid: u16, fid: u16) -> Message {
    answer(mid, NtCreateAndxResponse { fid, ..Default::default() })
}

/// 2.2.4.5.1
pub fn close(mid: u16, fid: u16) -> Message {
    request(mid, Close { fid, last_write_time: 0 })
}

/// 2.2.4.5.2
pub fn close_response(mid: u16) -> Message {
    empty_response(Smb1Command::CLOSE, mid)
}

/// 2.2.4.42.1
pub fn read_andx(mid: u16, fid: u16, offset: u32, length: u16) -> Message {
    request(mid, ReadAndx { min_count: length, ..ReadAndx::new(fid, offset.into(), length.into()) })
}

/// 2.2.4.42.2
pub fn read_andx_response(mid: u16, data: &[u8]) -> Message {
    answer(mid, ReadAndxResponse { available: 0, padding: 0, data })
}

/// 2.2.4.43.1
pub fn write_andx(mid: u16, fid: u16, offset: u32, data: &[u8]) -> Message {
    request(mid, WriteAndx { fid, offset: offset.into(), write_mode: 0, padding: 0, data })
}

/// 2.2.4.43.2
pub fn write_andx_response(mid: u16, count: u16) -> Message {
    answer(mid, WriteAndxResponse { count, ..Default::default() })
}

/// 2.2.4.39.1. The server shall respond `count` times.
pub fn echo(mid: u16, count: u16, data: &[u8]) -> Message {
    request(mid, Echo { echo_count: count, data })
}

/// 2.2.4.39.2. Responses are numbered from 1.
pub fn echo_response(mid: u16, number: u16, data: &[u8]) -> Message {
    answer(mid, EchoResponse { sequence_number: number, data })
}

/// 2.2.4.22.1, with eight words. The response is a frame without an SMB header.
pub fn read_raw(mid: u16, fid: u16, offset: u32, length: u16) -> Message {
    raw(Smb1Command::READ_RAW, mid, 0, words(&[fid, offset as u16, (offset >> 16) as u16, length], 16), &[])
}

/// 2.2.4.25.1, with twelve words. The data follows in a frame without an SMB header, after the server's "go ahead".
pub fn write_raw(mid: u16, fid: u16, offset: u32, count: u16, write_through: bool) -> Message {
    let fields = [fid, count, 0, offset as u16, (offset >> 16) as u16, 0, 0, write_through.into()];
    raw(Smb1Command::WRITE_RAW, mid, 0, words(&fields, 24), &[])
}

/// 2.2.4.25.2: "go ahead", with the amount of data that the server can accept.
pub fn go_ahead(mid: u16) -> Message {
    raw(Smb1Command::WRITE_RAW, mid, flags::REPLY, words(&[0xffff], 2), &[])
}

/// 2.2.4.25.3: response to the data in write-through mode.
pub fn write_complete(mid: u16, count: u16) -> Message {
    answer(mid, WriteComplete { count })
}

/// 2.2.4.32.1: the client locks a range.
pub fn locking(mid: u16, fid: u16, offset: u32, length: u32) -> Message {
    let range = LockingAndxRange { pid: 0x1234, offset: offset.into(), length: length.into() };
    request(mid, LockingAndx { fid, locks: &[range], ..LockingAndx::default() })
}

/// 2.2.4.32.2
pub fn locking_response(mid: u16) -> Message {
    answer(mid, LockingAndxResponse {})
}

/// 2.2.4.32.1: the server breaks an oplock.
pub fn oplock_break(fid: u16) -> Message {
    request(0xffff, LockingAndx { fid, type_of_lock: lock_type::OPLOCK_RELEASE, ..LockingAndx::default() })
}

/// Data of a transaction in one of its messages.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Total number of data bytes.
    pub total: u16,
    /// Data bytes in earlier messages.
    pub before: u16,
    /// Data bytes in this message.
    pub here: u16,
}

impl Part {
    /// Returns a part with all data in one message.
    pub fn whole(total: u16) -> Part {
        Part { total, before: 0, here: total }
    }

    fn with_counts(self, total_parameter_count: u16, data: &[u8]) -> TransactionPart<'_> {
        TransactionPart {
            total_parameter_count: total_parameter_count.into(),
            total_data_count: self.total.into(),
            data,
            data_displacement: self.before.into(),
            ..TransactionPart::default()
        }
    }
}

/// 2.2.4.46.1: TRANS2_QUERY_PATH_INFORMATION.
pub fn query_path(mid: u16, path: &str) -> Message {
    let mut parameters = vec![0; 6];
    parameters.extend([path.as_bytes(), b"\0"].concat());
    trans2(mid, Trans2::QUERY_PATH_INFORMATION, &parameters, Part::whole(0))
}

/// 2.2.4.46.1
pub fn trans2(mid: u16, subcommand: Trans2, parameters: &[u8], data: Part) -> Message {
    let message = Transaction2 {
        subcommand,
        total_parameter_count: parameters.len() as u16,
        total_data_count: data.total,
        max_parameter_count: 10,
        max_data_count: 1000,
        parameters,
        data: &vec![0x55; data.here.into()],
    };
    request(mid, message)
}

/// 2.2.4.47.1
pub fn trans2_secondary(mid: u16, parameters_total: u16, data: Part) -> Message {
    request(mid, Transaction2Secondary(data.with_counts(parameters_total, &vec![0x55; data.here.into()])))
}

/// 2.2.4.46.2: the server is ready for the secondary requests.
pub fn trans2_interim(mid: u16) -> Message {
    empty_response(Smb1Command::TRANSACTION2, mid)
}

/// 2.2.4.46.2, without parameters.
pub fn trans2_response(mid: u16, data: Part) -> Message {
    answer(mid, Transaction2Response(data.with_counts(0, &vec![0x66; data.here.into()])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::smb1::{Smb1Header, Smb1Request, Smb1Response, TransactionProgress, blocks};

    fn first_request(message: Message) -> String {
        let bytes: Vec<u8> = message.into();
        let header = Smb1Header::parse(&bytes).unwrap();
        let block = blocks(&header, &bytes).next().unwrap();
        format!("{:?}", Smb1Request::parse(&header, &block, &bytes))
    }

    #[test]
    fn the_wire_crate_reads_back_what_was_written() {
        let read = Smb1Request::Range { fid: 9, offset: 4096, length: 100 };
        assert_eq!(first_request(read_andx(1, 9, 4096, 100)), format!("{read:?}"));
        let write = Smb1Request::Range { fid: 9, offset: 8, length: 3 };
        assert_eq!(first_request(write_andx(1, 9, 8, b"abc")), format!("{write:?}"));
        let raw = Smb1Request::WriteRaw { fid: 9, offset: 8, length: 3, write_through: true };
        assert_eq!(first_request(write_raw(1, 9, 8, 3, true)), format!("{raw:?}"));
        assert!(
            first_request(query_path(1, "\\a")).contains("path: Some(CapturedName { text: \"\\\\a\", missing: 0 })")
        );
        assert!(first_request(session_setup(1, "D", "u")).contains("domain: \"D\", user: \"u\""));
    }

    #[test]
    fn chains_point_to_their_next_command() {
        let bytes: Vec<u8> = session_setup(1, "D", "u").and(tree_connect(1, "\\\\s\\data")).into();
        let header = Smb1Header::parse(&bytes).unwrap();
        let second = blocks(&header, &bytes).nth(1).unwrap();
        assert_eq!(Smb1Request::parse(&header, &second, &bytes), Smb1Request::TreeConnect("\\\\s\\data".into()));
    }

    #[test]
    fn transactions_count_their_bytes() {
        let bytes: Vec<u8> = trans2_response(1, Part { total: 900, before: 0, here: 500 }).into();
        let header = Smb1Header::parse(&bytes).unwrap();
        let block = blocks(&header, &bytes).next().unwrap();
        let Smb1Response::Transaction { progress, .. } = Smb1Response::parse(&block, &bytes) else { panic!() };
        assert_eq!(progress, Some(TransactionProgress { total: 900, here: 500 }));
    }
}
