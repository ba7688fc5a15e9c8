//! One connection of a scripted server: receives frames and sends the responses, immediately or delayed.

use super::malformed::{Afterwards, change_words, set_frame_length, spoil};
use super::script::{Fault, Flood, Malformed};
use super::{Shared, smb1, smb2};
use smbscope_model::Command;
use smbscope_wire::codec::FixedSizeField;
use smbscope_wire::nbss::{FrameHeader, FrameType, HEADER_LENGTH};
use smbscope_wire::smb1::messages::Transaction2ResponseFields;
use smbscope_wire::smb2::messages::oplock_break::LeaseBreak;
use smbscope_wire::status::NtStatus;
use smbscope_wire::{smb1 as wire1, smb2 as wire2};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::sleep_until;

const READ_SIZE: usize = 256 << 10;
/// Longest frame accepted; clients send shorter ones.
const MAX_FRAME: usize = 9 << 20;

/// Buffers in use only between two awaits, so that all connections can share them.
#[derive(Debug)]
pub(super) struct Buffers {
    read: Vec<u8>,
    out: Vec<u8>,
}

impl Buffers {
    pub(super) fn new() -> Buffers {
        Buffers { read: vec![0; READ_SIZE], out: Vec::new() }
    }
}

#[derive(Debug)]
struct Held {
    due: Instant,
    bytes: Vec<u8>,
    /// Message id, if the operation can be cancelled.
    message_id: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    Silent,
    Closing,
    Resetting,
    /// Sends only `repeated` from now on, with this pause after each time.
    Repeating(Duration),
}

struct ServerConnection {
    number: u64,
    shared: Rc<RefCell<Shared>>,
    smb1: smb1::Smb1,
    smb2: smb2::Smb2,
    partial: Vec<u8>,
    held: Vec<Held>,
    fate: Fate,
    repeated: Vec<u8>,
}

pub(super) async fn serve(
    mut stream: TcpStream,
    number: u64,
    shared: Rc<RefCell<Shared>>,
    buffers: Rc<RefCell<Buffers>>,
) -> io::Result<()> {
    let mut connection = ServerConnection {
        number,
        shared,
        smb1: smb1::Smb1::new(number),
        smb2: smb2::Smb2::new(number),
        partial: Vec::new(),
        held: Vec::new(),
        fate: Fate::Open,
        repeated: Vec::new(),
    };
    stream.set_nodelay(true)?;
    loop {
        let due = connection.held.iter().map(|held| held.due).min();
        let length = match due {
            None => poll_fn(|context| read(&mut stream, &buffers, context)).await?,
            Some(due) => tokio::select! {
                length = poll_fn(|context| read(&mut stream, &buffers, context)) => length?,
                () = sleep_until(due.into()) => {
                    let bytes = connection.take_due(Instant::now());
                    stream.write_all(&bytes).await?;
                    continue;
                }
            },
        };
        if length == 0 {
            return Ok(());
        }
        let rest = {
            let buffers = &mut *buffers.borrow_mut();
            buffers.out.clear();
            connection.receive(&buffers.read[..length], &mut buffers.out);
            let sent = match stream.try_write(&buffers.out) {
                Ok(sent) => sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(error) => return Err(error),
            };
            buffers.out[sent..].to_vec()
        };
        if !rest.is_empty() {
            stream.write_all(&rest).await?;
        }
        match connection.fate {
            Fate::Open | Fate::Silent => {}
            Fate::Closing => return close(stream, &buffers).await,
            Fate::Resetting => return stream.set_zero_linger(),
            Fate::Repeating(pause) => return repeat(stream, &connection.repeated, pause).await,
        }
    }
}

async fn repeat(mut stream: TcpStream, bytes: &[u8], pause: Duration) -> io::Result<()> {
    loop {
        stream.write_all(bytes).await?;
        match pause.is_zero() {
            true => tokio::task::yield_now().await,
            false => tokio::time::sleep(pause).await,
        }
    }
}

/// Sends a FIN, then drains the client's data for a while: closing with unread bytes would send a reset.
async fn close(mut stream: TcpStream, buffers: &RefCell<Buffers>) -> io::Result<()> {
    stream.shutdown().await?;
    let drain = async {
        while poll_fn(|context| read(&mut stream, buffers, context)).await? > 0 {}
        Ok(())
    };
    tokio::time::timeout(Duration::from_secs(5), drain).await.unwrap_or(Ok(()))
}

/// Reads into the shared buffer; its contents are valid until the next await.
fn read(stream: &mut TcpStream, buffers: &RefCell<Buffers>, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
    let mut buffers = buffers.borrow_mut();
    let mut buffer = ReadBuf::new(&mut buffers.read);
    Pin::new(stream).poll_read(context, &mut buffer).map_ok(|()| buffer.filled().len())
}

impl ServerConnection {
    /// Processes the received bytes frame by frame.
    fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.partial.is_empty() {
            let used = self.frames(bytes, out);
            self.partial.extend_from_slice(&bytes[used..]);
            return;
        }
        let mut partial = std::mem::take(&mut self.partial);
        partial.extend_from_slice(bytes);
        let used = self.frames(&partial, out);
        partial.drain(..used);
        if partial.is_empty() && partial.capacity() > READ_SIZE {
            partial = Vec::new();
        }
        self.partial = partial;
    }

    fn frames(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> usize {
        let mut at = 0;
        while let Some(header) = bytes[at..].first_chunk::<HEADER_LENGTH>() {
            let header = FrameHeader::parse(*header).filter(|header| header.length as usize <= MAX_FRAME);
            let Some(FrameHeader { frame_type, length }) = header else {
                self.fate = Fate::Closing;
                return bytes.len();
            };
            let start = at + HEADER_LENGTH;
            let Some(message) = bytes.get(start..start + length as usize) else { break };
            at = start + length as usize;
            match frame_type {
                // Positive session response (RFC 1002 §4.3.3).
                FrameType::SessionRequest => out.extend([0x82, 0, 0, 0]),
                FrameType::Message if self.fate == Fate::Open => self.frame(message, out),
                _ => {}
            }
        }
        at
    }

    fn frame(&mut self, message: &[u8], out: &mut Vec<u8>) {
        let shared = self.shared.clone();
        let shared = &mut *shared.borrow_mut();
        let now = shared.now();
        let start = out.len();
        out.extend([0; HEADER_LENGTH]);
        let fault = if message.starts_with(&wire2::PROTOCOL_ID) {
            self.smb2_frame(message, shared, now, out)
        } else {
            self.smb1_frame(message, shared, now, out)
        };
        if out.len() == start + HEADER_LENGTH {
            out.truncate(start);
            // An invalid request closes the connection; a fault may have no response.
            if !matches!(fault, Some(Fault::Reset | Fault::Close | Fault::Silent)) {
                return;
            }
        } else {
            set_frame_length(out, start);
        }
        if let Some(fault) = fault {
            shared.outside.tally.fault();
            self.apply(fault, shared, now, out, start);
        }
        if let Some(until) = shared.stalled_until.filter(|until| *until > now) {
            let bytes = out.split_off(start);
            self.hold(until, bytes, None);
        }
    }

    /// Responds to a message or to all members of a compound. Returns the last fault that is not just a status.
    fn smb2_frame(&mut self, frame: &[u8], shared: &mut Shared, now: Instant, out: &mut Vec<u8>) -> Option<Fault> {
        let mut fault = None;
        let mut related = smb2::Related::default();
        let mut rest = frame;
        let mut last: Option<usize> = None;
        loop {
            let Some(header) = wire2::Smb2Header::parse(rest).filter(|_| rest.len() >= wire2::Smb2Header::LENGTH)
            else {
                return Some(Fault::Close);
            };
            let next = header.next_command as usize;
            let message = if next == 0 { rest } else { rest.get(..next).unwrap_or(rest) };
            shared.outside.tally.smb2(header.command);
            let forced = match shared.decide(Command::Smb2(header.command), self.number, now) {
                Some(Fault::Status(status)) => {
                    shared.outside.tally.fault();
                    Some(status)
                }
                Some(other) => {
                    fault = Some(other);
                    None
                }
                None => None,
            };
            if header.command == wire2::Smb2Command::CANCEL {
                self.cancel(header.message_id, out);
            }
            // Compound members are aligned to eight bytes.
            if let Some(previous) = last {
                let length = (out.len() - previous).next_multiple_of(8);
                out.resize(previous + length, 0);
                (length as u32).set(out, previous + wire2::Smb2Header::NEXT_COMMAND);
            }
            let start = out.len();
            self.smb2.answer(&header, message, &shared.script, forced, &mut related, out);
            last = (out.len() > start).then_some(start);
            if next == 0 || next >= rest.len() {
                return fault;
            }
            rest = &rest[next..];
        }
    }

    fn smb1_frame(&mut self, frame: &[u8], shared: &mut Shared, now: Instant, out: &mut Vec<u8>) -> Option<Fault> {
        let Some(header) = wire1::Smb1Header::parse(frame) else { return Some(Fault::Close) };
        shared.outside.tally.smb1();
        let mut fault = shared.decide(Command::Smb1(header.command), self.number, now);
        let mut forced = None;
        if let Some(Fault::Status(status)) = fault {
            shared.outside.tally.fault();
            forced = Some(status);
            fault = None;
        }
        let answers_smb2 = header.command == wire1::Smb1Command::NEGOTIATE
            && forced.is_none()
            && smb2::negotiate_from_smb1(frame, &shared.script, out).is_some();
        if answers_smb2 {
            return fault;
        }
        if !shared.script.smb1 {
            return Some(Fault::Close);
        }
        self.smb1.answer(&header, frame, &shared.script, forced, out);
        fault
    }

    fn apply(&mut self, fault: Fault, shared: &mut Shared, now: Instant, out: &mut Vec<u8>, start: usize) {
        match fault {
            Fault::Stall(time) => shared.stalled_until = Some(now + time),
            Fault::Delay(time) => {
                let bytes = out.split_off(start);
                self.hold(now + time, bytes, None);
            }
            Fault::Reset | Fault::Close | Fault::Silent => {
                out.truncate(start);
                self.fate = match fault {
                    Fault::Reset => Fate::Resetting,
                    Fault::Close => Fate::Closing,
                    _ => Fate::Silent,
                };
            }
            Fault::Drop => out.truncate(start),
            Fault::Pending(time) => self.pend(now + time, out, start),
            Fault::Malformed(how) => self.spoil(how, out, start),
            Fault::OplockBreak | Fault::LeaseBreak => {
                let answer = out.split_off(start);
                out.extend([0; HEADER_LENGTH]);
                if answer.get(HEADER_LENGTH) == Some(&wire1::PROTOCOL_ID[0]) {
                    self.smb1.put_break(out);
                } else {
                    smb2::put_break(self.smb2.last_open(), (fault == Fault::LeaseBreak).then_some(0), out);
                }
                set_frame_length(out, start);
                out.extend(answer);
            }
            Fault::KeepAlive => {
                out.splice(start..start, [0x85, 0, 0, 0]);
            }
            Fault::Dribble { piece, pause } => {
                let bytes = out.split_off(start);
                for (index, piece) in bytes.chunks(piece.max(1)).enumerate() {
                    self.hold(now + pause * index as u32, piece.to_vec(), None);
                }
            }
            Fault::Flood { of, answered } => self.flood(of, answered, out, start),
            Fault::Trickle(pause) => {
                out.truncate(start);
                out.extend([0, 0xff, 0xff, 0xff]);
                self.repeated = vec![0];
                self.fate = Fate::Repeating(pause);
            }
            // Was handled when the response was built.
            Fault::Status(_) => {}
        }
    }

    /// Starts to flood the client with one message. Sends many at once, so that the client is the bottleneck.
    fn flood(&mut self, of: Flood, answered: bool, out: &mut Vec<u8>, start: usize) {
        const AT_ONCE: usize = 64 << 10;
        let answer = out.split_off(start);
        let is_smb1 = answer.get(HEADER_LENGTH) == Some(&wire1::PROTOCOL_ID[0]);
        let mut frame = vec![0; HEADER_LENGTH];
        match of {
            Flood::KeepAlive => frame = vec![0x85, 0, 0, 0],
            Flood::OplockBreak | Flood::LeaseBreak if is_smb1 => self.smb1.put_break(&mut frame),
            Flood::OplockBreak => smb2::put_break(self.smb2.last_open(), None, &mut frame),
            Flood::LeaseBreak => smb2::put_break(self.smb2.last_open(), Some(LeaseBreak::ACK_REQUIRED), &mut frame),
            Flood::Answers => {
                frame = answer.clone();
                spoil(Malformed::MessageId, &mut frame, 0);
            }
            // TotalDataCount announces more data and DataCount is zero (MS-CIFS 2.2.4.46.2).
            Flood::Unfinished if is_smb1 => {
                frame = answer.clone();
                change_words(&mut frame[HEADER_LENGTH..], Transaction2ResponseFields::parse, |words| {
                    (words.total_data_count, words.data_count) = (u16::MAX, 0);
                });
            }
            Flood::Unfinished => smb2::interim(&mut answer[HEADER_LENGTH..].to_vec(), 0x0a00, &mut frame),
        }
        if of != Flood::KeepAlive {
            set_frame_length(&mut frame, 0);
        }
        if answered {
            out.extend(answer);
        }
        self.repeated = frame.repeat(AT_ONCE.div_ceil(frame.len()));
        self.fate = Fate::Repeating(Duration::ZERO);
    }

    fn spoil(&mut self, how: Malformed, out: &mut Vec<u8>, start: usize) {
        if out.len() > start && spoil(how, out, start) == Afterwards::Close {
            self.fate = Fate::Closing;
        }
    }

    /// Sends an interim response now and the final one later (SMB2). SMB1 has no interim responses, so only delays it.
    fn pend(&mut self, due: Instant, out: &mut Vec<u8>, start: usize) {
        let mut answer = out.split_off(start);
        let mut message_id = None;
        if let Some(header) = wire2::Smb2Header::parse(&answer[HEADER_LENGTH..]) {
            message_id = Some(header.message_id);
            out.extend([0; HEADER_LENGTH]);
            smb2::interim(&mut answer[HEADER_LENGTH..], 0x0a00 + header.message_id, out);
            set_frame_length(out, start);
        }
        self.hold(due, answer, message_id);
    }

    /// Cancels a pending request with STATUS_CANCELLED (MS-SMB2 3.3.5.16).
    fn cancel(&mut self, message_id: u64, out: &mut Vec<u8>) {
        let Some(index) = self.held.iter().position(|held| held.message_id == Some(message_id)) else { return };
        let held = self.held.swap_remove(index);
        let Some(header) = held.bytes.get(HEADER_LENGTH..).and_then(wire2::Smb2Header::parse) else { return };
        smb2::refuse(wire2::Smb2Header { status: NtStatus::CANCELLED, ..header }, out);
    }

    fn hold(&mut self, due: Instant, bytes: Vec<u8>, message_id: Option<u64>) {
        if !bytes.is_empty() {
            self.held.push(Held { due, bytes, message_id });
        }
    }

    /// Removes and returns the responses that are due, in the order in which they were held.
    fn take_due(&mut self, now: Instant) -> Vec<u8> {
        let mut bytes = Vec::new();
        let is_open = self.fate == Fate::Open;
        self.held.retain(|held| {
            let is_due = held.due <= now;
            if is_due && is_open {
                bytes.extend_from_slice(&held.bytes);
            }
            !is_due
        });
        bytes
    }
}
