//! SMB1 clients like NetBench's: one request at a time, small reads and writes, quickly reused ids.

use super::turn::{Client, Frame, Turns};
use crate::smb1::{self, Message, Part};
use smbscope_model::Command;
use smbscope_wire::names::Trans2;
use smbscope_wire::smb1 as wire;

macro_rules! commands {
    ($($name:ident),*) => { $(const $name: &[Command] = &[Command::Smb1(wire::Smb1Command::$name)];)* };
}

commands!(NEGOTIATE, SESSION_SETUP_ANDX, TREE_CONNECT_ANDX, NT_CREATE_ANDX, CLOSE, READ_ANDX, WRITE_ANDX);
commands!(TRANSACTION2, LOCKING_ANDX);

/// Number of MIDs used in rotation, in steps of 64 as on Windows clients.
const MIDS: u16 = 16;
const PROCESSES: u16 = 4;
const BLOCK: u16 = 4096;
static DATA: [u8; 32_768] = [0x5a; 32_768];

pub(super) struct NetBench {
    index: u32,
    is_set_up: bool,
    asked: u64,
    files: u16,
}

impl NetBench {
    pub(super) fn new(index: u32) -> NetBench {
        NetBench { index, is_set_up: false, asked: 0, files: 0 }
    }

    /// Adds one request and its response, and sets the ids of both.
    fn exchange(
        &mut self,
        turns: &mut Turns,
        commands: &'static [Command],
        request: impl FnOnce(u16) -> Message,
        response: impl FnOnce(u16) -> Message,
    ) {
        let mid = (self.asked % u64::from(MIDS) + 1) as u16 * 64;
        let pid = 0xfe00 + (self.asked / 3 % u64::from(PROCESSES)) as u16 * 4;
        self.asked += 1;
        turns.ask(commands, Frame::new(request(mid).pid(pid), 0));
        turns.answer(commands, Frame::new(response(mid).pid(pid), 0));
    }

    fn set_up(&mut self, turns: &mut Turns) {
        let user = format!("user{}", self.index);
        self.exchange(
            turns,
            NEGOTIATE,
            |mid| smb1::negotiate(mid, &["NT LM 0.12"]),
            |mid| smb1::negotiate_response(mid, 0),
        );
        self.exchange(
            turns,
            SESSION_SETUP_ANDX,
            |mid| smb1::session_setup(mid, "BENCH", &user),
            |mid| smb1::session_setup_response(mid, 100),
        );
        self.exchange(
            turns,
            TREE_CONNECT_ANDX,
            |mid| smb1::tree_connect(mid, "\\\\SERVER\\bench"),
            |mid| smb1::tree_connect_response(mid, 1),
        );
    }

    fn name(&self, turns: &mut Turns) -> String {
        let (directory, file) = (turns.random.below(25), turns.random.below(400));
        format!("\\clients\\client{}\\~dmtmp\\dir{directory:02}\\file{file:03}.doc", self.index)
    }

    fn query(&mut self, turns: &mut Turns) {
        // SMB_QUERY_FILE_BASIC_INFO (MS-CIFS 2.2.8.3.6).
        let mut parameters = vec![1, 1, 0, 0, 0, 0];
        parameters.extend(self.name(turns).bytes().chain([0]));
        self.exchange(
            turns,
            TRANSACTION2,
            |mid| smb1::trans2(mid, Trans2::QUERY_PATH_INFORMATION, &parameters, Part::whole(0)),
            |mid| smb1::trans2_response(mid, Part::whole(40)),
        );
    }

    fn find(&mut self, turns: &mut Turns) {
        let size = 200 + turns.random.below(3_000) as u16;
        let name = format!("\\clients\\client{}\\~dmtmp\\dir{:02}\\*", self.index, turns.random.below(25));
        let mut parameters = vec![0x16, 0, 0, 2, 6, 0, 4, 1, 0, 0, 0, 0];
        parameters.extend(name.bytes().chain([0]));
        self.exchange(
            turns,
            TRANSACTION2,
            |mid| smb1::trans2(mid, Trans2::FIND_FIRST2, &parameters, Part::whole(0)),
            |mid| smb1::trans2_response(mid, Part::whole(size)),
        );
    }

    /// Opens a file, reads or writes it, possibly under a lock, and closes it.
    fn file(&mut self, turns: &mut Turns) {
        let name = self.name(turns);
        self.files = self.files % 4_000 + 1;
        let fid = 0x4000 + self.files;
        self.exchange(
            turns,
            NT_CREATE_ANDX,
            |mid| smb1::nt_create(mid, &name),
            |mid| smb1::nt_create_response(mid, fid),
        );
        let locks = turns.random.chance(0.05);
        if locks {
            self.lock(turns, fid);
        }
        let reads = turns.random.chance(0.6);
        let mut offset = 0;
        for _ in 0..turns.random.below(14) {
            let size = match turns.random.below(10) {
                0 => 32_768,
                1 => 1 + turns.random.below(1_000) as u16,
                _ => BLOCK,
            };
            if reads {
                self.read(turns, fid, offset, size);
            } else {
                self.write(turns, fid, offset, size);
            }
            offset += u32::from(size);
        }
        if locks {
            self.lock(turns, fid);
        }
        self.exchange(turns, CLOSE, |mid| smb1::close(mid, fid), smb1::close_response);
    }

    fn read(&mut self, turns: &mut Turns, fid: u16, offset: u32, size: u16) {
        let data = &DATA[..size.into()];
        let request = |mid| smb1::read_andx(mid, fid, offset, size);
        self.exchange(turns, READ_ANDX, request, |mid| smb1::read_andx_response(mid, data));
    }

    fn write(&mut self, turns: &mut Turns, fid: u16, offset: u32, size: u16) {
        let data = &DATA[..size.into()];
        let request = |mid| smb1::write_andx(mid, fid, offset, data);
        self.exchange(turns, WRITE_ANDX, request, |mid| smb1::write_andx_response(mid, size));
    }

    fn lock(&mut self, turns: &mut Turns, fid: u16) {
        self.exchange(turns, LOCKING_ANDX, |mid| smb1::locking(mid, fid, 0, 100), smb1::locking_response);
    }
}

impl Client for NetBench {
    fn act(&mut self, turns: &mut Turns) {
        turns.think();
        if !self.is_set_up {
            self.is_set_up = true;
            return self.set_up(turns);
        }
        match turns.random.below(10) {
            0..3 => self.query(turns),
            3 => self.find(turns),
            _ => self.file(turns),
        }
    }

    fn has_timestamps(&self) -> bool {
        false
    }
}
