//! SMB1 messages as tests need them (MS-CIFS 2.2.4): the fields that an analysis reads, zeros elsewhere.

use smbscope_wire::names::Trans2;
use smbscope_wire::smb1::{Command, PROTOCOL_ID, flags, flags2};

/// A message: the header and a block of words and data for each command of the chain.
#[derive(Debug, Clone)]
pub struct Message {
    status: u32,
    reply: bool,
    flags2: u16,
    tid: u16,
    pid: u16,
    uid: u16,
    mid: u16,
    blocks: Vec<Block>,
}

#[derive(Debug, Clone)]
struct Block {
    command: Command,
    words: Vec<u8>,
    data: Vec<u8>,
}

impl Message {
    fn new(command: Command, mid: u16, reply: bool, words: Vec<u8>, data: Vec<u8>) -> Message {
        assert!(words.len().is_multiple_of(2), "parameters are words");
        Message {
            status: 0,
            reply,
            flags2: flags2::NT_STATUS,
            tid: 1,
            pid: 0x1234,
            uid: 100,
            mid,
            blocks: vec![Block { command, words, data }],
        }
    }

    /// In this tree; 1 otherwise.
    pub fn tid(mut self, tid: u16) -> Message {
        self.tid = tid;
        self
    }

    /// Of this process; 0x1234 otherwise.
    pub fn pid(mut self, pid: u16) -> Message {
        self.pid = pid;
        self
    }

    /// Of this user; 100 otherwise.
    pub fn uid(mut self, uid: u16) -> Message {
        self.uid = uid;
        self
    }

    /// With this NTSTATUS.
    pub fn status(mut self, status: u32) -> Message {
        self.status = status;
        self
    }

    /// Without the reply bit, as servers send breaks and Samba its "go ahead".
    pub fn without_reply_bit(mut self) -> Message {
        self.reply = false;
        self
    }

    /// With a further command behind (AndX).
    pub fn and(mut self, next: Message) -> Message {
        self.blocks.extend(next.blocks);
        self
    }
}

impl From<Message> for Vec<u8> {
    fn from(message: Message) -> Vec<u8> {
        let mut bytes = PROTOCOL_ID.to_vec();
        bytes.push(message.blocks[0].command.0);
        bytes.extend(message.status.to_le_bytes());
        bytes.push(if message.reply { flags::REPLY } else { 0 });
        bytes.extend(message.flags2.to_le_bytes());
        bytes.extend([0; 12]);
        for id in [message.tid, message.pid, message.uid, message.mid] {
            bytes.extend(id.to_le_bytes());
        }
        for (index, block) in message.blocks.iter().enumerate() {
            let mut words = block.words.clone();
            if let Some(next) = message.blocks.get(index + 1) {
                let offset = bytes.len() + 1 + words.len() + 2 + block.data.len();
                words[0] = next.command.0;
                words[2..4].copy_from_slice(&(offset as u16).to_le_bytes());
            }
            bytes.push((words.len() / 2) as u8);
            bytes.extend(words);
            bytes.extend((block.data.len() as u16).to_le_bytes());
            bytes.extend(&block.data);
        }
        bytes
    }
}

fn request(command: Command, mid: u16, words: Words, data: Vec<u8>) -> Message {
    Message::new(command, mid, false, words.0, data)
}

fn answer(command: Command, mid: u16, words: Words, data: Vec<u8>) -> Message {
    Message::new(command, mid, true, words.0, data)
}

/// Parameter words built field by field.
#[derive(Default)]
struct Words(Vec<u8>);

impl Words {
    /// The fields that chained commands begin with: nothing follows.
    fn andx() -> Words {
        Words(vec![0xff, 0, 0, 0])
    }

    fn u8(mut self, value: u8) -> Words {
        self.0.push(value);
        self
    }

    fn u16(mut self, value: u16) -> Words {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Words {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Zeros up to this many bytes.
    fn up_to(mut self, bytes: usize) -> Words {
        self.0.resize(bytes, 0);
        self
    }
}

/// A response with nothing in it.
pub fn empty_response(command: Command, mid: u16) -> Message {
    answer(command, mid, Words::default(), Vec::new())
}

/// 2.2.4.52.1
pub fn negotiate(mid: u16, dialects: &[&str]) -> Message {
    let names = dialects.iter().flat_map(|name| [b"\x02", name.as_bytes(), b"\0"].concat()).collect();
    request(Command::NEGOTIATE, mid, Words::default(), names).tid(0).uid(0)
}

/// 2.2.4.52.2, for NT LM 0.12.
pub fn negotiate_response(mid: u16, index: u16) -> Message {
    answer(Command::NEGOTIATE, mid, Words::default().u16(index).up_to(34), Vec::new()).tid(0).uid(0)
}

/// 2.2.4.53.1: account and domain in the clear.
pub fn session_setup(mid: u16, domain: &str, user: &str) -> Message {
    let data = [user.as_bytes(), b"\0", domain.as_bytes(), b"\0OS\0LM\0"].concat();
    request(Command::SESSION_SETUP_ANDX, mid, Words::andx().up_to(26), data).tid(0).uid(0)
}

/// 2.2.4.53.2
pub fn session_setup_response(mid: u16, uid: u16) -> Message {
    answer(Command::SESSION_SETUP_ANDX, mid, Words::andx().u16(0), Vec::new()).tid(0).uid(uid)
}

/// 2.2.4.55.1: `\\server\share`.
pub fn tree_connect(mid: u16, path: &str) -> Message {
    let data = [b"\0", path.as_bytes(), b"\0?????\0"].concat();
    request(Command::TREE_CONNECT_ANDX, mid, Words::andx().u16(0).u16(1), data).tid(0)
}

/// 2.2.4.55.2
pub fn tree_connect_response(mid: u16, tid: u16) -> Message {
    answer(Command::TREE_CONNECT_ANDX, mid, Words::andx().u16(0), b"A:\0\0".to_vec()).tid(tid)
}

/// 2.2.4.64.1
pub fn nt_create(mid: u16, name: &str) -> Message {
    let words = Words::andx().u8(0).u16(name.len() as u16).up_to(48);
    request(Command::NT_CREATE_ANDX, mid, words, [name.as_bytes(), b"\0"].concat())
}

/// 2.2.4.64.2
pub fn nt_create_response(mid: u16, fid: u16) -> Message {
    answer(Command::NT_CREATE_ANDX, mid, Words::andx().u8(0).u16(fid).up_to(68), Vec::new())
}

/// 2.2.4.5.1
pub fn close(mid: u16, fid: u16) -> Message {
    request(Command::CLOSE, mid, Words::default().u16(fid).u32(0), Vec::new())
}

/// 2.2.4.5.2
pub fn close_response(mid: u16) -> Message {
    empty_response(Command::CLOSE, mid)
}

/// 2.2.4.42.1
pub fn read_andx(mid: u16, fid: u16, offset: u32, length: u16) -> Message {
    let words = Words::andx().u16(fid).u32(offset).u16(length).u16(length).up_to(24);
    request(Command::READ_ANDX, mid, words, Vec::new())
}

/// 2.2.4.42.2
pub fn read_andx_response(mid: u16, data: &[u8]) -> Message {
    let words = Words::andx().up_to(10).u16(data.len() as u16).u16(59).up_to(24);
    answer(Command::READ_ANDX, mid, words, data.to_vec())
}

/// 2.2.4.43.1
pub fn write_andx(mid: u16, fid: u16, offset: u32, data: &[u8]) -> Message {
    let words = Words::andx().u16(fid).u32(offset).up_to(20).u16(data.len() as u16).u16(63).up_to(28);
    request(Command::WRITE_ANDX, mid, words, data.to_vec())
}

/// 2.2.4.43.2
pub fn write_andx_response(mid: u16, count: u16) -> Message {
    answer(Command::WRITE_ANDX, mid, Words::andx().u16(count).up_to(12), Vec::new())
}

/// 2.2.4.39.1: the server is to answer `count` times.
pub fn echo(mid: u16, count: u16, data: &[u8]) -> Message {
    request(Command::ECHO, mid, Words::default().u16(count), data.to_vec())
}

/// 2.2.4.39.2: answer `number`, from 1.
pub fn echo_response(mid: u16, number: u16, data: &[u8]) -> Message {
    answer(Command::ECHO, mid, Words::default().u16(number), data.to_vec())
}

/// 2.2.4.22.1. The answer is a frame without SMB header.
pub fn read_raw(mid: u16, fid: u16, offset: u32, length: u16) -> Message {
    request(Command::READ_RAW, mid, Words::default().u16(fid).u32(offset).u16(length).up_to(16), Vec::new())
}

/// 2.2.4.25.1. The data block follows in a frame without SMB header, once the server has said "go ahead".
pub fn write_raw(mid: u16, fid: u16, offset: u32, count: u16, write_through: bool) -> Message {
    let words = Words::default().u16(fid).u16(count).u16(0).u32(offset).u32(0).u16(write_through.into());
    request(Command::WRITE_RAW, mid, words.up_to(24), Vec::new())
}

/// 2.2.4.25.2: "go ahead", with the data that the server can take at once.
pub fn go_ahead(mid: u16) -> Message {
    answer(Command::WRITE_RAW, mid, Words::default().u16(0xffff), Vec::new())
}

/// 2.2.4.25.3: the answer to the data block in write-through mode.
pub fn write_complete(mid: u16, count: u16) -> Message {
    answer(Command::WRITE_COMPLETE, mid, Words::default().u16(count), Vec::new())
}

/// 2.2.4.32.1: the client locks a range.
pub fn locking(mid: u16, fid: u16, offset: u32, length: u32) -> Message {
    let words = Words::andx().u16(fid).u8(0).u8(0).u32(0).u16(0).u16(1);
    let range = [&0x1234u16.to_le_bytes()[..], &offset.to_le_bytes(), &length.to_le_bytes()].concat();
    request(Command::LOCKING_ANDX, mid, words, range)
}

/// 2.2.4.32.2
pub fn locking_response(mid: u16) -> Message {
    answer(Command::LOCKING_ANDX, mid, Words::andx(), Vec::new())
}

/// 2.2.4.32.1: the server breaks an oplock.
pub fn oplock_break(fid: u16) -> Message {
    request(Command::LOCKING_ANDX, 0xffff, Words::andx().u16(fid).u8(2).up_to(16), Vec::new())
}

/// Bytes of parameters and data: of the whole transaction, and in one message.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Data bytes of the whole.
    pub total: u16,
    /// Data bytes before this message.
    pub before: u16,
    /// Data bytes in this message.
    pub here: u16,
}

impl Part {
    /// All in one message.
    pub fn whole(total: u16) -> Part {
        Part { total, before: 0, here: total }
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
    // The parameters lie behind 32 bytes of header, 31 of words with their count, two of length.
    let offset = 32 + 1 + 30 + 2;
    let words = Words::default()
        .u16(parameters.len() as u16)
        .u16(data.total)
        .u16(10)
        .u16(1000)
        .up_to(18)
        .u16(parameters.len() as u16)
        .u16(offset)
        .u16(data.here)
        .u16(offset + parameters.len() as u16)
        .u16(1)
        .u16(subcommand.0);
    request(Command::TRANSACTION2, mid, words, [parameters, &vec![0x55; data.here.into()]].concat())
}

/// 2.2.4.47.1
pub fn trans2_secondary(mid: u16, parameters_total: u16, data: Part) -> Message {
    let words =
        Words::default().u16(parameters_total).u16(data.total).up_to(10).u16(data.here).u16(53).u16(data.before);
    request(Command::TRANSACTION2_SECONDARY, mid, words.u16(0), vec![0x55; data.here.into()])
}

/// 2.2.4.46.2: the server has room for the secondary requests.
pub fn trans2_interim(mid: u16) -> Message {
    empty_response(Command::TRANSACTION2, mid)
}

/// 2.2.4.46.2, without parameters.
pub fn trans2_response(mid: u16, data: Part) -> Message {
    let words = Words::default().u16(0).u16(data.total).up_to(12).u16(data.here).u16(55).u16(data.before).u16(0);
    answer(Command::TRANSACTION2, mid, words, vec![0x66; data.here.into()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::smb1::{Header, Progress, Request, Response, blocks};

    fn first_request(message: Message) -> String {
        let bytes: Vec<u8> = message.into();
        let header = Header::parse(&bytes).unwrap();
        let block = blocks(&header, &bytes).next().unwrap();
        format!("{:?}", Request::parse(&header, &block, &bytes))
    }

    #[test]
    fn the_wire_crate_reads_back_what_was_written() {
        let read = Request::Range { fid: 9, offset: 4096, length: 100 };
        assert_eq!(first_request(read_andx(1, 9, 4096, 100)), format!("{read:?}"));
        let write = Request::Range { fid: 9, offset: 8, length: 3 };
        assert_eq!(first_request(write_andx(1, 9, 8, b"abc")), format!("{write:?}"));
        let raw = Request::WriteRaw { fid: 9, offset: 8, length: 3, write_through: true };
        assert_eq!(first_request(write_raw(1, 9, 8, 3, true)), format!("{raw:?}"));
        assert!(first_request(query_path(1, "\\a")).contains("path: Some(Name { text: \"\\\\a\", missing: 0 })"));
        assert!(first_request(session_setup(1, "D", "u")).contains("user: \"u\", domain: \"D\""));
    }

    #[test]
    fn chains_point_to_their_next_command() {
        let bytes: Vec<u8> = session_setup(1, "D", "u").and(tree_connect(1, "\\\\s\\data")).into();
        let header = Header::parse(&bytes).unwrap();
        let second = blocks(&header, &bytes).nth(1).unwrap();
        assert_eq!(Request::parse(&header, &second, &bytes), Request::TreeConnect("\\\\s\\data".into()));
    }

    #[test]
    fn transactions_count_their_bytes() {
        let bytes: Vec<u8> = trans2_response(1, Part { total: 900, before: 0, here: 500 }).into();
        let header = Header::parse(&bytes).unwrap();
        let block = blocks(&header, &bytes).next().unwrap();
        let Response::Transaction { progress, .. } = Response::parse(&block, &bytes) else { panic!() };
        assert_eq!(progress, Some(Progress { total: 900, here: 500 }));
    }
}
