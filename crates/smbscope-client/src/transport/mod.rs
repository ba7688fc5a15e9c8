//! Frames over TCP (MS-SMB2 2.1) or a NetBIOS session (RFC 1002 4.3), with the times at the socket.
//!
//! A frame is sent with its length in one write. One read may return several frames, which are handed out without
//! further system calls. Both buffers are reused, so a command allocates nothing. The user's task does its own I/O: no
//! other task has to wake up for a response, which would add to its times.

use crate::limits::KEEP_ALIVES_MAX;
use crate::options::{SessionOptions, Transport};
use crate::{ClientError, Foreign};
use smbscope_wire::nbss::{self, FrameHeader, FrameType};
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use std::{fmt, io};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep_until, timeout};

/// Initial buffer size, enough for responses without bulk data. The buffer grows to the largest frame received.
const INITIAL_BUFFER: usize = 8 * 1024;

#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiveTimes {
    /// Return of the read with its first bytes.
    pub(crate) first: Instant,
    pub(crate) last: Instant,
}

pub(crate) struct FramedConnection {
    stream: TcpStream,
    local: SocketAddr,
    peer: SocketAddr,
    /// Host and port until the first frame arrives, which proves that the server speaks SMB.
    unknown: Option<Box<str>>,
    /// Four bytes of length, and the message.
    outgoing: Vec<u8>,
    /// True if a dropped call left part of `outgoing` unsent. The stream can't recover from that.
    unsent: bool,
    sent_from: Instant,
    keep_alives: u32,
    /// As large as the largest frame so far; filled up to `filled`.
    incoming: Vec<u8>,
    filled: usize,
    frame: Range<usize>,
    read_at: Instant,
    /// Fires at a deadline or earlier. It is reset only after firing too early, not for every command.
    timer: Pin<Box<Sleep>>,
}

impl fmt::Debug for FramedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FramedConnection").field("local", &self.local).field("peer", &self.peer).finish_non_exhaustive()
    }
}

impl FramedConnection {
    pub(crate) const START: usize = nbss::HEADER_LENGTH;

    pub(crate) async fn connect(options: &SessionOptions) -> Result<FramedConnection, ClientError> {
        match options.transport {
            Transport::DirectTcp => FramedConnection::tcp(options).await,
            Transport::NetBios => connect_netbios(options).await,
        }
    }

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

    /// Returns the time just before the last frame's first byte was handed over.
    pub(crate) fn sent_from(&self) -> Instant {
        self.sent_from
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Starts a frame. The caller appends the message, which starts at [`FramedConnection::START`].
    pub(crate) fn begin(&mut self) -> &mut Vec<u8> {
        self.outgoing.clear();
        self.outgoing.extend_from_slice(&[0; FramedConnection::START]);
        &mut self.outgoing
    }

    pub(crate) fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    /// Sends the frame. Returns when its last byte was handed over.
    pub(crate) async fn send(&mut self, timeout: Duration) -> io::Result<Instant> {
        let length = self.outgoing.len() - FramedConnection::START;
        let [high, rest @ ..] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        if high != 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a message of more than 16 MiB"));
        }
        self.outgoing[1..FramedConnection::START].copy_from_slice(&rest);
        self.send_raw(timeout).await
    }

    pub(super) async fn send_raw(&mut self, timeout: Duration) -> io::Result<Instant> {
        let first = Instant::now();
        self.sent_from = first;
        if std::mem::replace(&mut self.unsent, true) {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "an earlier request was sent incompletely"));
        }
        let mut sent = 0;
        while let Some(rest) = self.outgoing.get(sent..).filter(|rest| !rest.is_empty()) {
            // Nearly always the kernel takes everything at once.
            sent += match self.stream.try_write(rest) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_to_write(sent, first.checked_add(timeout)).await?
                }
                result => result?,
            };
        }
        self.unsent = false;
        Ok(Instant::now())
    }

    pub(crate) async fn close(&mut self) {
        let _ = poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await;
    }

    /// Waits for the next message, which replaces the last one. Skips keep-alives.
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

    /// Waits until [`Self::receive`] has data or the connection ends. May wake up spuriously, and may be dropped.
    pub(crate) async fn disturbed(&self) -> io::Result<()> {
        if self.has_frame() {
            return Ok(());
        }
        self.stream.readable().await
    }

    /// Returns true if the last read was past the deadline: a receiver that always has data never checks the timer.
    pub(crate) fn is_past(&self, deadline: Option<Instant>) -> bool {
        deadline.is_some_and(|deadline| self.read_at >= deadline)
    }

    /// Returns true if another complete frame has arrived already. Leaves an invalid header to the next call.
    pub(crate) fn has_frame(&self) -> bool {
        let bytes = &self.incoming[self.frame.end..self.filled];
        let Some((header, rest)) = bytes.split_first_chunk::<{ nbss::HEADER_LENGTH }>() else { return false };
        FrameHeader::parse(*header).is_none_or(|header| rest.len() >= header.length as usize)
    }

    pub(crate) fn frame(&self) -> &[u8] {
        &self.incoming[self.frame.clone()]
    }

    pub(crate) fn frame_mut(&mut self) -> &mut [u8] {
        &mut self.incoming[self.frame.clone()]
    }

    pub(super) async fn receive_any(&mut self, deadline: Option<Instant>) -> io::Result<(FrameHeader, ReceiveTimes)> {
        let mut start = self.frame.end;
        if start == self.filled {
            (start, self.filled) = (0, 0);
        }
        // Bytes that are already here came with the read that completed the previous frame.
        let mut first = (self.filled > start).then_some(self.read_at);
        loop {
            let present = self.filled - start;
            let mut wanted = nbss::HEADER_LENGTH;
            if let Some(bytes) = self.incoming[start..self.filled].first_chunk::<{ nbss::HEADER_LENGTH }>() {
                let header = FrameHeader::parse(*bytes).ok_or_else(|| match &self.unknown {
                    Some(server) => Foreign::new(server, &self.incoming[start..self.filled]).into_io(),
                    None => invalid(format!("{bytes:02x?} in place of a frame header")),
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
                // Allocates for the data received rather than for the length in the header, which may be a lie.
                if wanted > self.incoming.len() && present == self.incoming.len() {
                    self.incoming.resize(wanted.min(2 * present), 0);
                }
            }
            // A call dropped while waiting leaves the bytes where the next call expects them.
            self.frame = start..start;
            self.filled += self.read(deadline).await?;
            first.get_or_insert(self.read_at);
        }
    }

    async fn read(&mut self, deadline: Option<Instant>) -> io::Result<usize> {
        let FramedConnection { stream, incoming, filled, timer, read_at, .. } = self;
        let read = poll_fn(|context| {
            // After a short read, `poll_read` knows that the socket is empty and saves a system call.
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

fn named(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

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

pub(super) fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Returns the end of the timeout, or `None` if it is beyond the clock's range.
pub(crate) fn deadline(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// Name that every server accepts as its own (MS-SMB 2.1).
const ANY_SERVER: &str = "*SMBSERVER";
const CALLING: &str = "SMBSCOPE";
const FILE_SERVER: u8 = 0x20;
const WORKSTATION: u8 = 0x00;
const SESSION_REQUEST: u8 = 0x81;

/// Connects and requests a session, with the host's own name first and `*SMBSERVER` second.
async fn connect_netbios(options: &SessionOptions) -> Result<FramedConnection, ClientError> {
    let mut refusal = String::new();
    let names = [netbios_name(&options.host), Some(ANY_SERVER.to_owned())];
    for called in names.into_iter().flatten() {
        // The server closes the connection after a refusal, so each attempt needs its own.
        let mut link = FramedConnection::tcp(options).await?;
        match request(&mut link, &called, options).await {
            Ok(None) => return Ok(link),
            Ok(Some(reason)) => refusal = format!("no NetBIOS session with {called} at {}: {reason}", options.address),
            Err(error) => return Err(ClientError::on_connection("asking for a NetBIOS session", error)),
        }
    }
    Err(ClientError::Unsupported(format!("{refusal}; try direct TCP, or the server's NetBIOS name as host")))
}

async fn request(link: &mut FramedConnection, called: &str, options: &SessionOptions) -> io::Result<Option<String>> {
    let out = link.begin();
    put_name(called, FILE_SERVER, out);
    put_name(CALLING, WORKSTATION, out);
    let length = out.len() - FramedConnection::START;
    out[0] = SESSION_REQUEST;
    // Two names of 34 bytes.
    out[3] = u8::try_from(length).unwrap_or(u8::MAX);
    link.send_raw(options.timeout).await?;
    let deadline = deadline(options.timeout);
    let (header, _) = link.receive_any(deadline).await?;
    Ok(match header.frame_type {
        FrameType::PositiveResponse => None,
        FrameType::NegativeResponse => Some(refusal(link.frame().first().copied().unwrap_or(0x8f)).to_owned()),
        FrameType::RetargetResponse => Some("the server sends its clients to another address".to_owned()),
        other => return Err(invalid(format!("a NetBIOS frame of type {other:?} in place of a session response"))),
    })
}

fn refusal(code: u8) -> &'static str {
    match code {
        0x80 => "nothing listens on the called name",
        0x81 => "it does not listen for our name",
        0x82 => "the called name is not present",
        0x83 => "the server is out of resources",
        _ => "the server does not say why",
    }
}

/// Returns the usual NetBIOS name of a host: the first label of its name. Returns `None` for an address.
fn netbios_name(host: &str) -> Option<String> {
    if host.parse::<IpAddr>().is_ok() {
        return None;
    }
    let label = host.split('.').next().unwrap_or_default();
    (label.is_ascii() && (1..=15).contains(&label.len())).then(|| label.to_ascii_uppercase())
}

/// Writes a name of 15 characters and a suffix in first-level encoding (RFC 1001 14.1), without a scope.
fn put_name(name: &str, suffix: u8, out: &mut Vec<u8>) {
    out.push(32);
    let padded = name.bytes().chain(std::iter::repeat(b' ')).take(15).chain([suffix]);
    for byte in padded {
        out.extend([b'A' + (byte >> 4), b'A' + (byte & 0x0f)]);
    }
    out.push(0);
}

#[cfg(test)]
mod tests;
