//! Relay of one connection: two sockets, and a thread that waits for bytes and for their time.

use super::lane::{Carrier, DelayLine};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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
    closed: [bool; 2],
    buffer: Vec<u8>,
}

impl Relay {
    pub(super) fn new(
        sockets: [TcpStream; 2],
        delay: Duration,
        carriers: [Option<Arc<Mutex<Carrier>>>; 2],
    ) -> io::Result<Relay> {
        for socket in &sockets {
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
        }
        let lanes = [DelayLine::new(delay), DelayLine::new(delay)];
        Ok(Relay { sockets, lanes, carriers, closed: [false; 2], buffer: Vec::new() })
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
        if !self.lanes[side].is_open() || self.takes_at(side, now) > now {
            return Ok(false);
        }
        let mut carrier = self.carriers[side].as_deref().map(|it| it.lock().unwrap_or_else(PoisonError::into_inner));
        self.buffer.resize(DelayLine::piece(carrier.as_deref()), 0);
        match (&self.sockets[side]).read(&mut self.buffer) {
            Ok(0) => self.lanes[side].finish(now),
            Ok(length) => {
                let left = carrier.as_mut().map_or(now, |carrier| carrier.take(now, length));
                self.lanes[side].push(left, &self.buffer[..length]);
            }
            Err(error) if is_no_failure(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
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
            if lane.is_open() {
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

fn is_no_failure(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
