//! Properties of an emulated link, delay and bandwidth of one direction (time is an argument), and the relay of one
//! connection: two sockets, and a thread that waits for bytes and for their time.

use super::pace::ServerPace;
use crate::{LabServerSettings, LinkDirection};
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSliceMut, PipeReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Maximum bytes in flight per direction of a connection; more stays with the sender.
const ROOM: usize = 16 << 20;
/// Time by which the link accepts bytes early, so that it is not idle while a thread wakes up.
const AHEAD: Duration = Duration::from_millis(1);
/// Longest wait for a held response in which the thread does not sleep. Waking up takes nearly as long on a virtual
/// machine.
const SHORT_HOLD: Duration = Duration::from_micros(100);
const PIECE_MAX: usize = 64 << 10;
/// Longest time for which the kernel may have kept bytes that are read.
const LATEST_READ: Duration = Duration::from_secs(1);
/// Payload of an Ethernet frame.
const PIECE_MIN: usize = 1460;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate(u64);

impl Rate {
    pub(crate) fn from_bits(bits: u64) -> Rate {
        Rate((bits / 8).max(1))
    }

    fn time_for(self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.0 as f64)
    }
}

/// One direction of the link, shared by all connections: bytes pass one after the other.
#[derive(Debug)]
pub(crate) struct Carrier {
    rate: Rate,
    free_at: Option<Instant>,
}

impl Carrier {
    pub(crate) fn new(rate: Rate) -> Carrier {
        Carrier { rate, free_at: None }
    }

    /// Returns the time until which bytes stay with the sender, so that no connection queues more than its share.
    pub(crate) fn takes_at(&self, now: Instant) -> Instant {
        self.free_at.and_then(|free| free.checked_sub(AHEAD)).map_or(now, |time| time.max(now))
    }

    pub(crate) fn backlog(&self, now: Instant) -> Duration {
        self.free_at.map_or(Duration::ZERO, |free| free.saturating_duration_since(now))
    }

    pub(crate) fn time_for(&self, bytes: usize) -> Duration {
        self.rate.time_for(bytes)
    }

    /// Accepts bytes. Returns the time at which the last one has left.
    pub(crate) fn take(&mut self, now: Instant, bytes: usize) -> Instant {
        let start = self.free_at.map_or(now, |free| free.max(now));
        let end = start + self.rate.time_for(bytes);
        self.free_at = Some(end);
        end
    }

    /// Returns the bytes to accept at once: half a millisecond's worth, so that connections alternate.
    pub(crate) fn piece(&self) -> usize {
        ((self.rate.0 / 2000) as usize).clamp(PIECE_MIN, PIECE_MAX)
    }
}

#[derive(Debug)]
pub(crate) struct DelayLine {
    delay: Duration,
    pieces: VecDeque<DelayedChunk>,
    bytes: usize,
    end: Option<Instant>,
}

#[derive(Debug)]
struct DelayedChunk {
    due: Instant,
    data: Vec<u8>,
    done: usize,
}

impl DelayLine {
    pub(crate) fn new(delay: Duration) -> DelayLine {
        DelayLine { delay, pieces: VecDeque::new(), bytes: 0, end: None }
    }

    pub(crate) fn piece(carrier: Option<&Carrier>) -> usize {
        carrier.map_or(PIECE_MAX, Carrier::piece)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.end.is_none() && self.bytes < ROOM
    }

    pub(crate) fn push(&mut self, left: Instant, data: &[u8]) {
        self.bytes += data.len();
        self.pieces.push_back(DelayedChunk { due: left + self.delay, data: data.to_vec(), done: 0 });
    }

    pub(crate) fn finish(&mut self, now: Instant) {
        let last = self.pieces.back().map_or(now, |piece| piece.due);
        self.end.get_or_insert(last.max(now + self.delay));
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.pieces.front().map(|piece| piece.due).or(self.end)
    }

    pub(crate) fn arrived(&self, now: Instant) -> Option<&[u8]> {
        let piece = self.pieces.front().filter(|piece| piece.due <= now)?;
        piece.data.get(piece.done..)
    }

    pub(crate) fn delivered(&mut self, bytes: usize) {
        self.bytes -= bytes;
        if let Some(piece) = self.pieces.front_mut() {
            piece.done += bytes;
            if piece.done >= piece.data.len() {
                self.pieces.pop_front();
            }
        }
    }

    pub(crate) fn has_ended(&self, now: Instant) -> bool {
        self.pieces.is_empty() && self.end.is_some_and(|end| end <= now)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LinkImpairments {
    /// Delay towards the server and the client.
    pub(crate) delay: [Duration; 2],
    pub(crate) rate: Option<Rate>,
    /// Fraction of packets lost in each direction. A proxy can't lose any.
    pub(crate) loss: f64,
    /// Directions with loss and limited rate.
    pub(crate) impaired: [bool; 2],
}

impl LinkImpairments {
    pub(crate) const NONE: LinkImpairments =
        LinkImpairments { delay: [Duration::ZERO; 2], rate: None, loss: 0.0, impaired: [true; 2] };

    #[cfg(target_os = "linux")]
    pub(super) fn is_plain(&self) -> bool {
        self.delay == [Duration::ZERO; 2] && self.rate.is_none() && self.loss == 0.0
    }

    /// Returns the rate of a direction, 0 towards the server.
    pub(super) fn rate_of(&self, direction: usize) -> Option<Rate> {
        self.rate.filter(|_| self.impaired[direction])
    }

    pub(crate) fn from_settings(settings: &LabServerSettings) -> Option<LinkImpairments> {
        let LabServerSettings { delay, delay_to_client, bandwidth, loss, impaired_towards, .. } = settings;
        let is_slow = delay.is_some() || delay_to_client.is_some() || bandwidth.is_some() || loss.is_some();
        let to_server = delay.unwrap_or_default();
        is_slow.then(|| LinkImpairments {
            delay: [to_server, delay_to_client.unwrap_or(to_server)],
            rate: bandwidth.map(Rate::from_bits),
            loss: loss.unwrap_or_default(),
            impaired: [LinkDirection::ToServer, LinkDirection::ToClient]
                .map(|direction| impaired_towards.is_none_or(|only| only == direction)),
        })
    }
}

#[derive(Debug, Clone)]
pub(crate) struct StopPipe(Arc<PipeReader>);

impl StopPipe {
    pub(crate) fn new(pipe: PipeReader) -> StopPipe {
        StopPipe(Arc::new(pipe))
    }

    /// Waits until the socket is readable. Returns false if the thread has to end.
    pub(crate) fn or_readable(&self, socket: &impl AsFd) -> bool {
        let mut descriptors = [self.poll(), PollFd::new(socket, PollFlags::IN)];
        let _ = poll(&mut descriptors, None);
        !self.came(&descriptors)
    }

    pub(super) fn poll(&self) -> PollFd<'_> {
        PollFd::new(&*self.0, PollFlags::IN)
    }

    /// Returns true if the pipe was closed. It is never written to, so being readable means closed.
    pub(super) fn came(&self, descriptors: &[PollFd<'_>]) -> bool {
        descriptors.first().is_some_and(|stop| !stop.revents().is_empty())
    }
}

/// Connection. Side 0 is the client, side 1 the server.
#[derive(Debug)]
pub(super) struct Relay {
    sockets: [TcpStream; 2],
    lanes: [DelayLine; 2],
    carriers: [Option<Arc<Mutex<Carrier>>>; 2],
    pace: Option<ServerPace>,
    closed: [bool; 2],
    buffer: Vec<u8>,
}

impl Relay {
    pub(super) fn new(
        sockets: [TcpStream; 2],
        delay: [Duration; 2],
        carriers: [Option<Arc<Mutex<Carrier>>>; 2],
        pace: Option<ServerPace>,
    ) -> io::Result<Relay> {
        for socket in &sockets {
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
        }
        let lanes = delay.map(DelayLine::new);
        if pace.is_some() {
            wake_in_time()?;
            setsockopt(&sockets[0], ReceiveTimestampns, &true)?;
        }
        Ok(Relay { sockets, lanes, carriers, pace, closed: [false; 2], buffer: Vec::new() })
    }

    pub(super) fn run(mut self, stop: &StopPipe) -> io::Result<()> {
        let result = self.relay(stop);
        if result.is_err() {
            for socket in &self.sockets {
                rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO))?;
            }
        }
        result
    }

    fn relay(&mut self, stop: &StopPipe) -> io::Result<()> {
        while self.closed != [true, true] {
            let mut moved = false;
            for side in [0, 1] {
                moved |= self.take(side)?;
                moved |= side == 1 && self.release();
                moved |= self.deliver(side)?;
            }
            if !moved && !self.wait(stop)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns false if no piece has arrived yet, or if it has to wait.
    fn take(&mut self, side: usize) -> io::Result<bool> {
        let now = Instant::now();
        if !self.is_open(side) || self.takes_at(side, now) > now {
            return Ok(false);
        }
        let mut carrier = self.carriers[side].as_deref().map(|it| it.lock().unwrap_or_else(PoisonError::into_inner));
        self.buffer.resize(DelayLine::piece(carrier.as_deref()), 0);
        let is_request = side == 0 && self.pace.is_some();
        let read = match is_request {
            true => read_with_arrival(&self.sockets[side], &mut self.buffer),
            false => (&self.sockets[side]).read(&mut self.buffer).map(|length| (length, now)),
        };
        match read {
            Ok((0, _)) => {
                if let Some(pace) = self.pace.as_mut().filter(|_| side == 1) {
                    self.lanes[side].push(now, &pace.rest());
                }
                self.lanes[side].finish(now);
            }
            Ok((length, arrived)) => {
                let left = carrier.as_mut().map_or(now, |carrier| carrier.take(now, length));
                let data = &self.buffer[..length];
                match &mut self.pace {
                    Some(pace) if side == 1 => pace.answers(left, data),
                    Some(pace) => {
                        pace.asks(arrived, data);
                        self.lanes[side].push(left, data);
                    }
                    None => self.lanes[side].push(left, data),
                }
            }
            Err(error) if is_no_failure(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Hands on a held response that is due. Returns false if none is.
    fn release(&mut self) -> bool {
        let now = Instant::now();
        let due = self.pace.as_mut().and_then(|pace| pace.due(now));
        due.map(|message| self.lanes[1].push(now, &message)).is_some()
    }

    fn is_open(&self, side: usize) -> bool {
        let held = self.pace.as_ref().filter(|_| side == 1).map_or(0, ServerPace::held_bytes);
        self.lanes[side].is_open() && held < ROOM
    }

    /// Returns false if no bytes are due, or if the receiver accepts none.
    fn deliver(&mut self, side: usize) -> io::Result<bool> {
        let now = Instant::now();
        let (lane, mut receiver) = (&mut self.lanes[side], &self.sockets[1 - side]);
        if let Some(data) = lane.arrived(now) {
            return match receiver.write(data) {
                Ok(length) => {
                    lane.delivered(length);
                    Ok(true)
                }
                Err(error) if is_no_failure(&error) => Ok(false),
                Err(error) => Err(error),
            };
        }
        if lane.has_ended(now) && !std::mem::replace(&mut self.closed[side], true) {
            let _ = receiver.shutdown(Shutdown::Write);
            return Ok(true);
        }
        Ok(false)
    }

    fn takes_at(&self, side: usize, now: Instant) -> Instant {
        let carrier = self.carriers[side].as_deref();
        carrier.map_or(now, |carrier| carrier.lock().unwrap_or_else(PoisonError::into_inner).takes_at(now))
    }

    fn wait(&self, stop: &StopPipe) -> io::Result<bool> {
        let now = Instant::now();
        let mut wanted = [PollFlags::empty(); 2];
        let mut next: Option<Instant> = None;
        let mut at = |time: Instant| next = Some(next.map_or(time, |next| next.min(time)));
        for side in [0, 1] {
            let lane = &self.lanes[side];
            if self.is_open(side) {
                match self.takes_at(side, now) {
                    time if time > now => at(time),
                    _ => wanted[side] |= PollFlags::IN,
                }
            }
            if lane.arrived(now).is_some() {
                wanted[1 - side] |= PollFlags::OUT;
            } else if let Some(due) = lane.next_due().filter(|_| !self.closed[side]) {
                at(due);
            }
        }
        if let Some(due) = self.pace.as_ref().and_then(ServerPace::next_due) {
            at(if due.saturating_duration_since(now) <= SHORT_HOLD { now } else { due });
        }
        let mut descriptors = vec![stop.poll()];
        // A socket polled for no event would report a hangup permanently.
        let polled = self.sockets.iter().zip(wanted).filter(|(_, wanted)| !wanted.is_empty());
        descriptors.extend(polled.map(|(socket, wanted)| PollFd::new(socket, wanted)));
        let timeout = next.map(|next| Timespec::try_from(next.saturating_duration_since(now)));
        let timeout = timeout.transpose().map_err(io::Error::other)?;
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(!stop.came(&descriptors)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Makes timeouts of this thread exact. Usually it wakes up to 50 µs late, and that is as long as a fast server takes.
pub(super) fn wake_in_time() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?)
}

/// Reads bytes or a frame without waiting, and returns when the last of them had come according to the kernel, not when
/// this thread woke up. The socket needs `ReceiveTimestampns`.
pub(super) fn read_with_arrival(socket: &impl AsRawFd, buffer: &mut [u8]) -> io::Result<(usize, Instant)> {
    let mut space = nix::cmsg_space!(TimeSpec);
    let mut parts = [IoSliceMut::new(buffer)];
    let received = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::MSG_DONTWAIT)?;
    let stamp = received.cmsgs().ok().and_then(|mut messages| {
        messages.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(Duration::from(stamp)),
            _ => None,
        })
    });
    let now = Instant::now();
    let ago = stamp.and_then(|stamp| SystemTime::UNIX_EPOCH.elapsed().ok()?.checked_sub(stamp));
    // The clock may have been set.
    let ago = ago.filter(|ago| *ago < LATEST_READ).unwrap_or_default();
    Ok((received.bytes, now.checked_sub(ago).unwrap_or(now)))
}

pub(super) fn is_no_failure(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn bytes_arrive_a_delay_after_they_left_in_their_order() {
        let start = Instant::now();
        let mut lane = DelayLine::new(5 * MS);
        lane.push(start, b"ab");
        lane.push(start + MS, b"c");
        assert_eq!(lane.next_due(), Some(start + 5 * MS));
        assert_eq!(lane.arrived(start + 4 * MS), None);
        assert_eq!(lane.arrived(start + 5 * MS), Some(&b"ab"[..]));
        lane.delivered(1);
        assert_eq!(lane.arrived(start + 5 * MS), Some(&b"b"[..]));
        lane.delivered(1);
        assert_eq!(lane.arrived(start + 5 * MS), None);
        assert_eq!(lane.arrived(start + 6 * MS), Some(&b"c"[..]));
    }

    #[test]
    fn the_end_arrives_after_everything_else() {
        let start = Instant::now();
        let mut lane = DelayLine::new(5 * MS);
        lane.push(start + 3 * MS, b"a");
        lane.finish(start);
        assert!(!lane.is_open());
        assert!(!lane.has_ended(start + 8 * MS), "a byte is in flight");
        lane.delivered(1);
        assert!(!lane.has_ended(start + 7 * MS) && lane.has_ended(start + 8 * MS));
    }

    #[test]
    fn a_link_carries_one_byte_after_the_other() {
        let start = Instant::now();
        let mut carrier = Carrier::new(Rate::from_bits(8_000_000));
        assert_eq!(carrier.take(start, 1000), start + MS);
        assert_eq!(carrier.take(start, 2000), start + 3 * MS);
        assert_eq!(carrier.takes_at(start), start + 3 * MS - AHEAD);
        assert_eq!(carrier.take(start + 10 * MS, 1000), start + 11 * MS);
    }

    #[test]
    fn a_sender_without_a_receiver_is_stopped() {
        let mut lane = DelayLine::new(MS);
        for _ in 0..ROOM / PIECE_MAX {
            assert!(lane.is_open());
            lane.push(Instant::now(), &[0; PIECE_MAX]);
        }
        assert!(!lane.is_open());
        lane.delivered(PIECE_MAX);
        assert!(lane.is_open());
    }
}
