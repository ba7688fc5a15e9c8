//! The edge to the network: frames over TCP (MS-SMB2 2.1) or in a NetBIOS session (RFC 1002 4.3), and the times at which
//! the system took and gave their bytes.
//!
//! A frame goes out in one write, its length before it; one read may bring several frames, which are handed out without
//! asking the system again. Both buffers are kept, so that a command allocates nothing. The task of the user reads and
//! writes here itself: nobody else wakes up for an answer, so nobody else's delay is in its times.

use super::limits::KEEP_ALIVES_MAX;
use super::options::{SessionOptions, Transport};
use super::{ClientError, Foreign, netbios};
use smbscope_wire::nbss::{self, FrameHeader, FrameType};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep_until, timeout};

/// Room for answers without bulk data; it grows to the largest frame that came.
const INITIAL_BUFFER: usize = 8 * 1024;

/// When the system took a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SendTimes {
    /// Just before its first byte was handed over.
    pub(crate) first: Instant,
    /// Just after its last one was.
    pub(crate) last: Instant,
}

/// When the system gave a frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiveTimes {
    /// The read returned that brought its first bytes.
    pub(crate) first: Instant,
    /// The read returned that brought its last one.
    pub(crate) last: Instant,
}

/// A connection to a server that carries frames.
pub(crate) struct FramedConnection {
    stream: TcpStream,
    local: SocketAddr,
    peer: SocketAddr,
    /// Host and port; absent as soon as the server has sent a frame, by which it is known as one of SMB.
    unknown: Option<Box<str>>,
    /// A length of four bytes, and the message behind it.
    outgoing: Vec<u8>,
    /// Bytes of `outgoing` that a dropped call left unsent: the stream is out of step for good.
    unsent: bool,
    sent_from: Instant,
    /// Keep-alives since the last message.
    keep_alives: u32,
    /// As large as the largest frame that came; filled up to `filled`.
    incoming: Vec<u8>,
    filled: usize,
    /// The frame handed out last, without its header.
    frame: Range<usize>,
    /// When the last read returned.
    read_at: Instant,
    /// Rings at a deadline or before: it is set anew only when it rang too early, not for every command.
    timer: Pin<Box<Sleep>>,
}

impl fmt::Debug for FramedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("local", &self.local).field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl FramedConnection {
    /// Where a message begins in the buffer that [`Link::begin`] gives.
    pub(crate) const START: usize = nbss::HEADER_LENGTH;

    /// Connects, and asks for a NetBIOS session where that is the transport.
    pub(crate) async fn connect(options: &SessionOptions) -> Result<FramedConnection, ClientError> {
        match options.transport {
            Transport::DirectTcp => FramedConnection::tcp(options).await,
            Transport::NetBios => netbios::connect(options).await,
        }
    }

    /// A TCP connection.
    pub(super) async fn tcp(options: &SessionOptions) -> Result<FramedConnection, ClientError> {
        let failed = |error| ClientError::Unreachable { address: options.address, error };
        let stream = match timeout(options.timeout, TcpStream::connect(options.address)).await {
            Ok(result) => result.map_err(failed)?,
            Err(_) => {
                let error = io::Error::new(io::ErrorKind::TimedOut, format!("nothing for {:?}", options.timeout));
                return Err(failed(error));
            }
        };
        stream.set_nodelay(true).map_err(failed)?;
        let now = Instant::now();
        Ok(FramedConnection {
            local: stream.local_addr().map_err(failed)?,
            peer: stream.peer_addr().map_err(failed)?,
            unknown: Some(named(&options.host, options.address.port()).into()),
            stream,
            outgoing: Vec::with_capacity(512),
            unsent: false,
            sent_from: now,
            keep_alives: 0,
            incoming: vec![0; INITIAL_BUFFER],
            filled: 0,
            frame: 0..0,
            read_at: now,
            timer: Box::pin(sleep_until((now + options.timeout).into())),
        })
    }

    /// When the last frame, or the one that could not be sent, began to go out.
    pub(crate) fn sent_from(&self) -> Instant {
        self.sent_from
    }

    /// Our end.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// The server's end.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Begins a frame: the message is to be appended, it starts at [`Link::START`].
    pub(crate) fn begin(&mut self) -> &mut Vec<u8> {
        self.outgoing.clear();
        self.outgoing.extend_from_slice(&[0; FramedConnection::START]);
        &mut self.outgoing
    }

    /// The frame begun, for those who come back to it.
    pub(crate) fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    /// Sends the frame begun, as a session message.
    pub(crate) async fn send(&mut self, timeout: Duration) -> io::Result<SendTimes> {
        let length = self.outgoing.len() - FramedConnection::START;
        let [high, rest @ ..] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        if high != 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a message of more than 16 MiB"));
        }
        self.outgoing[1..FramedConnection::START].copy_from_slice(&rest);
        self.send_raw(timeout).await
    }

    /// Sends the frame begun with the header that it has.
    pub(super) async fn send_raw(&mut self, timeout: Duration) -> io::Result<SendTimes> {
        let first = Instant::now();
        self.sent_from = first;
        if std::mem::replace(&mut self.unsent, true) {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "an earlier request was sent in part only"));
        }
        let mut sent = 0;
        while let Some(rest) = self.outgoing.get(sent..).filter(|rest| !rest.is_empty()) {
            // Nearly always the system takes all of it at once.
            sent += match self.stream.try_write(rest) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_to_write(sent, first.checked_add(timeout)).await?
                }
                result => result?,
            };
        }
        self.unsent = false;
        Ok(SendTimes { first, last: Instant::now() })
    }

    /// Says that there is nothing more to come; the server closes its side then.
    pub(crate) async fn close(&mut self) {
        // The connection may be gone already, which is as good.
        let _ = poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await;
    }

    /// Waits for the next frame; the one before is gone. Keep-alives are skipped.
    pub(crate) async fn receive(&mut self, deadline: Option<Instant>) -> io::Result<ReceiveTimes> {
        loop {
            let (header, arrived) = self.receive_any(deadline).await?;
            match header.frame_type {
                FrameType::Message => {
                    self.keep_alives = 0;
                    return Ok(arrived);
                }
                FrameType::KeepAlive => {
                    self.keep_alives += 1;
                    if self.keep_alives > KEEP_ALIVES_MAX {
                        return Err(invalid(format!("more than {KEEP_ALIVES_MAX} keep-alives and no message")));
                    }
                    if self.is_past(deadline) {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                other => return Err(invalid(format!("a NetBIOS frame of type {other:?} in an SMB session"))),
            }
        }
    }

    /// Waits until there is something to [`receive`](Link::receive), or the connection ends; may be dropped at any time. It
    /// may also end without cause, so that what follows has to have a deadline.
    pub(crate) async fn disturbed(&self) -> io::Result<()> {
        if self.has_frame() {
            return Ok(());
        }
        self.stream.readable().await
    }

    /// Whether the last read returned after a deadline: who never waits, because there is always something to read,
    /// does not hear the timer.
    pub(crate) fn is_past(&self, deadline: Option<Instant>) -> bool {
        deadline.is_some_and(|deadline| self.read_at >= deadline)
    }

    /// Whether a frame came behind the last one that was handed out; what is no frame is for the next call to refuse.
    pub(crate) fn has_frame(&self) -> bool {
        let bytes = &self.incoming[self.frame.end..self.filled];
        let Some((header, rest)) = bytes.split_first_chunk::<{ nbss::HEADER_LENGTH }>() else { return false };
        FrameHeader::parse(*header).is_none_or(|header| rest.len() >= header.length as usize)
    }

    /// The message received last.
    pub(crate) fn frame(&self) -> &[u8] {
        &self.incoming[self.frame.clone()]
    }

    /// The message received last, for decrypting it where it is.
    pub(crate) fn frame_mut(&mut self) -> &mut [u8] {
        &mut self.incoming[self.frame.clone()]
    }

    /// Waits for the next frame of any type.
    pub(super) async fn receive_any(&mut self, deadline: Option<Instant>) -> io::Result<(FrameHeader, ReceiveTimes)> {
        let mut start = self.frame.end;
        if start == self.filled {
            (start, self.filled) = (0, 0);
        }
        // What is there already came with the read that completed the frame before.
        let mut first = (self.filled > start).then_some(self.read_at);
        loop {
            let present = self.filled - start;
            let mut wanted = nbss::HEADER_LENGTH;
            if let Some(bytes) = self.incoming[start..self.filled].first_chunk::<{ nbss::HEADER_LENGTH }>() {
                let header = FrameHeader::parse(*bytes).ok_or_else(|| match &self.unknown {
                    Some(server) => Foreign::new(server, &self.incoming[start..self.filled]).into_io(),
                    None => invalid(format!("{bytes:02x?} where a frame must begin")),
                })?;
                wanted += header.length as usize;
                if present >= wanted {
                    self.unknown = None;
                    self.frame = start + nbss::HEADER_LENGTH..start + wanted;
                    return Ok((header, ReceiveTimes { first: first.unwrap_or(self.read_at), last: self.read_at }));
                }
            }
            if start + wanted > self.incoming.len() {
                self.incoming.copy_within(start..self.filled, 0);
                (start, self.filled) = (0, present);
                // Memory is for what has come, and not for what a frame's header announces.
                if wanted > self.incoming.len() && present == self.incoming.len() {
                    self.incoming.resize(wanted.min(2 * present), 0);
                }
            }
            // A call that is dropped while it waits leaves the bytes where the next one looks for them.
            self.frame = start..start;
            self.filled += self.read(deadline).await?;
            first.get_or_insert(self.read_at);
        }
    }

    /// Reads what is there, at least a byte.
    async fn read(&mut self, deadline: Option<Instant>) -> io::Result<usize> {
        let FramedConnection { stream, incoming, filled, timer, read_at, .. } = self;
        let read = poll_fn(|context| {
            // `poll_read` knows from a short read that the socket is empty, and saves asking once more.
            let mut buffer = ReadBuf::new(&mut incoming[*filled..]);
            match Pin::new(&mut *stream).poll_read(context, &mut buffer) {
                Poll::Ready(result) => Poll::Ready(result.map(|()| buffer.filled().len())),
                Poll::Pending => poll_deadline(timer, deadline, context),
            }
        })
        .await?;
        *read_at = Instant::now();
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        Ok(read)
    }

    async fn wait_to_write(&mut self, sent: usize, deadline: Option<Instant>) -> io::Result<usize> {
        let FramedConnection { stream, outgoing, timer, .. } = self;
        poll_fn(|context| match Pin::new(&mut *stream).poll_write(context, &outgoing[sent..]) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => poll_deadline(timer, deadline, context),
        })
        .await
    }
}

/// A host and its port, an IPv6 address in brackets.
fn named(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Pending until the deadline, then an error.
fn poll_deadline<T>(
    timer: &mut Pin<Box<Sleep>>,
    deadline: Option<Instant>,
    context: &mut Context<'_>,
) -> Poll<io::Result<T>> {
    let Some(deadline) = deadline else { return Poll::Pending };
    if timer.deadline().into_std() > deadline {
        timer.as_mut().reset(deadline.into());
    }
    loop {
        ready!(timer.as_mut().poll(context));
        if Instant::now() >= deadline {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        timer.as_mut().reset(deadline.into());
    }
}

/// What a server must not send.
pub(super) fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// The point in time at which waiting ends; absent where it is beyond what the clock can say.
pub(crate) fn deadline(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

#[cfg(test)]
mod tests;
