//! SMB2 and SMB3 clients: office workers, and copies of large files.

use super::turn::{Client, Frame, Turns};
use crate::smb2::{self, Message, RELATED, STATUS_NOT_FOUND};
use smbscope_model::Command;
use smbscope_wire::smb2 as wire;
use std::collections::VecDeque;

macro_rules! commands {
    ($($name:ident),*) => { $(const $name: &[Command] = &[Command::Smb2(wire::Smb2Command::$name)];)* };
}

commands!(NEGOTIATE, SESSION_SETUP, TREE_CONNECT, CREATE, CLOSE, READ, WRITE, QUERY_INFO, QUERY_DIRECTORY);
commands!(CHANGE_NOTIFY);
const STAT: &[Command] = &[CREATE[0], QUERY_INFO[0], CLOSE[0]];

const STATUS_NO_MORE_FILES: u32 = 0x8000_0006;
const KIB: u64 = 1024;
/// Outstanding reads of a copy.
const WINDOW: usize = 4;
/// Offset of the data length in READ responses and WRITE requests.
const DATA_LENGTH: usize = 64 + 4;

/// Maximum file sizes for reads, chosen with equal probability, and for writes.
struct Sizes {
    read: [u64; 4],
    written: u64,
}

const DOCUMENTS: Sizes = Sizes { read: [32 * KIB, 32 * KIB, 256 * KIB, 1024 * KIB], written: 256 * KIB };
/// Sizes measured at a site, where most commands are metadata operations and most files are small: 3.7 KB per command
/// including all headers.
const SMALL_FILES: Sizes = Sizes { read: [8 * KIB, 16 * KIB, 32 * KIB, 192 * KIB], written: 64 * KIB };

pub(super) struct Smb2Client {
    index: u32,
    dialect: u16,
    is_bulk: bool,
    is_signed: bool,
    sizes: &'static Sizes,
    is_set_up: bool,
    message_id: u64,
    file: u64,
    /// Pending change notification: message id and async id.
    notify: Option<(u64, u64)>,
}

/// Builds a message whose data is filler.
fn with_data(message: Message, length: u64) -> Frame {
    let mut bytes: Vec<u8> = message.into();
    bytes[DATA_LENGTH..DATA_LENGTH + 4].copy_from_slice(&(length as u32).to_le_bytes());
    Frame::new(bytes, length as usize)
}

impl Smb2Client {
    /// Creates an office worker; every second one uses an older dialect.
    pub(super) fn office(index: u32) -> Smb2Client {
        let dialect = if index.is_multiple_of(2) { 0x0311 } else { 0x0210 };
        Smb2Client {
            index,
            dialect,
            is_bulk: false,
            is_signed: false,
            sizes: &DOCUMENTS,
            is_set_up: false,
            message_id: 0,
            file: 0,
            notify: None,
        }
    }

    pub(super) fn site(index: u32) -> Smb2Client {
        const DIALECTS: [u16; 4] = [0x0210, 0x0300, 0x0302, 0x0311];
        // Signs some connections of each dialect.
        let is_signed = (index / DIALECTS.len() as u32).is_multiple_of(4);
        let dialect = DIALECTS[index as usize % DIALECTS.len()];
        Smb2Client { dialect, is_signed, sizes: &SMALL_FILES, ..Smb2Client::office(index) }
    }

    pub(super) fn bulk(index: u32) -> Smb2Client {
        Smb2Client { dialect: 0x0311, is_bulk: true, ..Smb2Client::office(index) }
    }

    fn next_id(&mut self) -> u64 {
        self.message_id += 1;
        self.message_id - 1
    }

    fn session(&self) -> u64 {
        0x4000_0000_0001 + u64::from(self.index) * 4
    }

    fn own(&self, message: Message) -> Message {
        let message = message.session(self.session()).tree(5);
        if self.is_signed { message.signed() } else { message }
    }

    fn exchange(
        &mut self,
        turns: &mut Turns,
        commands: &'static [Command],
        request: impl FnOnce(u64) -> Message,
        response: impl FnOnce(u64) -> Message,
    ) {
        let id = self.next_id();
        turns.ask(commands, Frame::new(self.own(request(id)), 0));
        turns.answer(commands, Frame::new(self.own(response(id)), 0));
    }

    fn set_up(&mut self, turns: &mut Turns) {
        let (session, dialect) = (self.session(), self.dialect);
        let id = self.next_id();
        turns.ask(NEGOTIATE, Frame::new(smb2::negotiate(id, &[0x0202, 0x0210, 0x0300, 0x0302, 0x0311]), 0));
        turns.answer(NEGOTIATE, Frame::new(smb2::negotiate_response(id, dialect), 0));
        let id = self.next_id();
        turns.ask(SESSION_SETUP, Frame::new(smb2::session_setup_begin(id), 0));
        let more = smb2::session_setup_response(id, session).status(smb2::STATUS_MORE_PROCESSING);
        turns.answer(SESSION_SETUP, Frame::new(more, 0));
        let id = self.next_id();
        let user = format!("user{}", self.index);
        turns.ask(SESSION_SETUP, Frame::new(smb2::session_setup(id, "OFFICE", &user).session(session), 0));
        turns.answer(SESSION_SETUP, Frame::new(smb2::session_setup_response(id, session), 0));
        let connect = |id| smb2::tree_connect(id, "\\\\server\\documents");
        self.exchange(turns, TREE_CONNECT, connect, |id| smb2::tree_connect_response(id, 5));
    }

    fn name(&self, turns: &mut Turns) -> String {
        let (directory, file) = (turns.random.below(40), turns.random.below(500));
        format!("users\\user{}\\project {directory}\\report {file}.docx", self.index)
    }

    fn open(&mut self, turns: &mut Turns) -> u64 {
        self.file += 1;
        let (name, file) = (self.name(turns), self.file);
        self.exchange(turns, CREATE, |id| smb2::create(id, &name), |id| smb2::create_response(id, file));
        file
    }

    fn close(&mut self, turns: &mut Turns, file: u64) {
        self.exchange(turns, CLOSE, |id| smb2::close(id, file), smb2::close_response);
    }

    /// Opens a file, queries its attributes and closes it, in one compound.
    fn stat(&mut self, turns: &mut Turns) {
        let name = self.name(turns);
        let ids = [self.next_id(), self.next_id(), self.next_id()];
        let file = 0x8000_0000 + ids[0];
        let requests = [
            self.own(smb2::create(ids[0], &name)),
            self.own(smb2::query_info(ids[1], RELATED)).related(),
            self.own(smb2::close(ids[2], RELATED)).related(),
        ];
        let responses = [
            self.own(smb2::create_response(ids[0], file)),
            self.own(smb2::query_info_response(ids[1], &[0; 24])).related(),
            self.own(smb2::close_response(ids[2])).related(),
        ];
        turns.ask(STAT, Frame::new(smb2::compound(&requests), 0));
        turns.answer(STAT, Frame::new(smb2::compound(&responses), 0));
    }

    fn not_there(&mut self, turns: &mut Turns) {
        let name = self.name(turns);
        let error = |id| smb2::error(wire::Smb2Command::CREATE, id, STATUS_NOT_FOUND);
        self.exchange(turns, CREATE, |id| smb2::create(id, &name), error);
    }

    fn list(&mut self, turns: &mut Turns) {
        let file = self.open(turns);
        let id = self.next_id();
        turns.ask(QUERY_DIRECTORY, Frame::new(self.own(smb2::query_directory(id, file, "*")), 0));
        let entries = smb2::directory_entries(1 + turns.random.below(128) as usize);
        let response = self.own(smb2::query_directory_response(id, &entries));
        turns.answer(QUERY_DIRECTORY, Frame::new(response, 0));
        let end = |id| smb2::error(wire::Smb2Command::QUERY_DIRECTORY, id, STATUS_NO_MORE_FILES);
        self.exchange(turns, QUERY_DIRECTORY, |id| smb2::query_directory(id, file, "*"), end);
        self.close(turns, file);
    }

    /// Completes a pending change notification, or starts one.
    fn watch(&mut self, turns: &mut Turns) {
        if let Some((id, async_id)) = self.notify.take() {
            let changed = smb2::notify_response(id).session(self.session()).asynchronous(async_id);
            return turns.answer(CHANGE_NOTIFY, Frame::new(changed, 0));
        }
        let file = self.open(turns);
        let id = self.next_id();
        let async_id = 0x1000 + id;
        turns.ask(CHANGE_NOTIFY, Frame::new(self.own(smb2::notify(id, file)), 0));
        let pending = smb2::pending(wire::Smb2Command::CHANGE_NOTIFY, id, async_id).session(self.session());
        turns.interim(Frame::new(pending, 0));
        self.notify = Some((id, async_id));
    }

    fn look(&mut self, turns: &mut Turns) {
        let file = self.open(turns);
        let info = |id| smb2::query_info_response(id, &[0; 104]);
        self.exchange(turns, QUERY_INFO, |id| smb2::query_info(id, file), info);
        self.close(turns, file);
    }

    /// Reads a file in pieces with several requests outstanding.
    fn read(&mut self, turns: &mut Turns, size: u64, piece: u64) {
        let file = self.open(turns);
        let mut under_way = VecDeque::new();
        let mut offset = 0;
        while offset < size || !under_way.is_empty() {
            while offset < size && under_way.len() < WINDOW {
                let length = piece.min(size - offset);
                let id = self.next_id();
                turns.ask(READ, Frame::new(self.own(smb2::read(id, file, offset, length as u32)), 0));
                under_way.push_back((id, length));
                offset += length;
            }
            if let Some((id, length)) = under_way.pop_front() {
                let frame = with_data(self.own(smb2::read_response(id, &[])), length);
                if length == piece && size > piece * WINDOW as u64 {
                    turns.answer_at_once(READ, frame);
                } else {
                    turns.answer(READ, frame);
                }
            }
        }
        self.close(turns, file);
    }

    fn write(&mut self, turns: &mut Turns, size: u64, piece: u64) {
        let file = self.open(turns);
        let mut offset = 0;
        while offset < size {
            let length = piece.min(size - offset);
            let id = self.next_id();
            turns.ask(WRITE, with_data(self.own(smb2::write(id, file, offset, &[])), length));
            turns.answer(WRITE, Frame::new(self.own(smb2::write_response(id, length as u32)), 0));
            offset += length;
        }
        self.close(turns, file);
    }

    fn work(&mut self, turns: &mut Turns) {
        let piece = if self.dialect == 0x0210 { 64 * KIB } else { 1024 * KIB };
        match turns.random.below(20) {
            0..8 => self.stat(turns),
            8 | 9 => self.not_there(turns),
            10..13 => self.list(turns),
            13 => self.watch(turns),
            14 => self.look(turns),
            15 => {
                let size = 1 + turns.random.below(self.sizes.written);
                self.write(turns, size, 64 * KIB);
            }
            _ => {
                let largest = self.sizes.read[turns.random.below(4) as usize];
                let size = 1 + turns.random.below(largest);
                self.read(turns, size, piece);
            }
        }
    }

    fn copy(&mut self, turns: &mut Turns) {
        let size = 4096 * KIB + turns.random.below(60 * 1024 * KIB);
        if turns.random.below(8) == 0 {
            self.write(turns, size / 8, 1024 * KIB);
        } else {
            self.read(turns, size, 1024 * KIB);
        }
    }
}

impl Client for Smb2Client {
    fn act(&mut self, turns: &mut Turns) {
        turns.think();
        if !self.is_set_up {
            self.is_set_up = true;
            self.set_up(turns);
        } else if self.is_bulk {
            self.copy(turns);
        } else {
            self.work(turns);
        }
    }

    fn has_timestamps(&self) -> bool {
        true
    }
}
