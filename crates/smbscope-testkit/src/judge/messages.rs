//! Maps SMB messages to the packets of an undamaged capture. A second implementation that shares no code with the
//! analysis; since it only reads undamaged captures, it stays simple and reads each stream up to its first hole.

use crate::recording::Recording;
use smbscope_capture::TcpFlags;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

/// Length of a NetBIOS session service header (RFC 1002 §4.3.1).
const FRAME_HEADER: usize = 4;
/// End offset of the message id in the SMB header of either protocol (MS-CIFS 2.2.3.1, MS-SMB2 2.2.1).
const ID_END: usize = 32;
/// Length of the protocol id, enough to recognise encrypted or compressed frames.
const PROTOCOL_ID: usize = 4;

/// Sender and receiver.
pub(crate) type Ends = (SocketAddr, SocketAddr);

/// First byte of the protocol id, and message id; `None` for encrypted, compressed or raw frames.
pub(crate) type Id = Option<(u8, u64)>;

#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) id: Id,
    /// Packet with the first byte of its frame, in the first copy.
    pub(crate) first: usize,
    /// Packet with the last byte of its frame, in the first copy.
    pub(crate) last: usize,
    /// All packets that contain parts of its frame, including retransmissions.
    pub(crate) packets: Vec<usize>,
    /// All packets that contain its first byte.
    pub(crate) first_copies: Vec<usize>,
    /// All packets that contain its last byte.
    pub(crate) last_copies: Vec<usize>,
    /// Packets needed to know its id, each with the number of payload bytes needed.
    pub(crate) header: Vec<(usize, usize)>,
}

struct Piece {
    place: usize,
    sequence: u32,
    payload: Vec<u8>,
}

/// Returns the messages of each direction in stream order.
pub(crate) fn read(recording: &Recording) -> HashMap<Ends, Vec<Message>> {
    let mut messages: HashMap<Ends, Vec<Message>> = HashMap::new();
    for (ends, stream) in streams(recording) {
        messages.entry(ends).or_default().extend(stream.messages());
    }
    messages
}

pub(crate) fn streams(recording: &Recording) -> Vec<(Ends, Stream)> {
    // A SYN with another sequence number starts a new stream on the same ports.
    let mut streams: BTreeMap<(SocketAddr, SocketAddr, usize), (u32, Vec<Piece>)> = BTreeMap::new();
    let mut current: HashMap<Ends, (usize, u32)> = HashMap::new();
    recording.segments(&recording.undamaged(), |place, segment| {
        let ends = (segment.source, segment.destination);
        let base = segment.sequence.wrapping_add(u32::from(segment.flags.syn()));
        let (number, known) = current.entry(ends).or_insert((0, base));
        if segment.flags.0 & TcpFlags::SYN != 0 && *known != base {
            (*number, *known) = (*number + 1, base);
        }
        let stream = streams.entry((ends.0, ends.1, *number)).or_insert((base, Vec::new()));
        if !segment.payload.is_empty() {
            stream.1.push(Piece { place, sequence: segment.sequence, payload: segment.payload.to_vec() });
        }
    });
    let stream = |((source, destination, _), (base, pieces))| ((source, destination), Stream::new(base, pieces));
    streams.into_iter().map(stream).collect()
}

/// Bytes of a stream up to its first hole, with the packet that carried each.
#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) base: u32,
    pub(crate) bytes: Vec<u8>,
    /// For each packet with new bytes: their stream offset, the packet's index, and the number of payload bytes seen
    /// before.
    owners: Vec<(usize, usize, usize)>,
    /// Start, end and index of every packet, sorted by start.
    pieces: Vec<(usize, usize, usize)>,
    longest: usize,
}

impl Stream {
    fn new(base: u32, pieces: Vec<Piece>) -> Stream {
        let mut placed: Vec<(i64, Piece)> =
            pieces.into_iter().map(|piece| (i64::from(piece.sequence.wrapping_sub(base) as i32), piece)).collect();
        placed.sort_by_key(|(offset, piece)| (*offset, piece.place));
        let mut stream = Stream { base, ..Stream::default() };
        for (offset, piece) in placed {
            let have = stream.bytes.len() as i64;
            if offset > have {
                break;
            }
            let known = (have - offset) as usize;
            if let Ok(start) = usize::try_from(offset) {
                stream.pieces.push((start, start + piece.payload.len(), piece.place));
                stream.longest = stream.longest.max(piece.payload.len());
            }
            if let Some(fresh) = piece.payload.get(known..).filter(|fresh| !fresh.is_empty() && offset >= 0) {
                stream.owners.push((stream.bytes.len(), piece.place, known));
                stream.bytes.extend_from_slice(fresh);
            }
        }
        stream
    }

    fn owner(&self, position: usize) -> usize {
        self.owners.partition_point(|(start, _, _)| *start <= position) - 1
    }

    /// Returns the packets needed for a range, each with the number of payload bytes up to the end of the range.
    fn needed(&self, start: usize, end: usize) -> impl Iterator<Item = (usize, usize)> {
        let owners = self.owner(start)..=self.owner(end - 1);
        owners.map(move |index| {
            let (from, place, known) = self.owners[index];
            let to = self.owners.get(index + 1).map_or(self.bytes.len(), |(next, _, _)| *next);
            (place, known + to.min(end) - from)
        })
    }

    fn holders(&self, from: usize, to: usize) -> Vec<usize> {
        let first = self.pieces.partition_point(|(start, ..)| start + self.longest <= from);
        let near = self.pieces[first..].iter().take_while(|(start, ..)| *start < to);
        near.filter(|(_, end, _)| *end > from).map(|(.., place)| *place).collect()
    }

    fn messages(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        for (start, end) in self.frames() {
            self.frame(start, end, &mut messages);
        }
        messages
    }

    pub(crate) fn frames(&self) -> Vec<(usize, usize)> {
        let mut frames = Vec::new();
        let mut at = 0;
        while let Some(&[kind, high, middle, low]) = self.bytes.get(at..).and_then(|rest| rest.first_chunk()) {
            let end = at + FRAME_HEADER + u32::from_be_bytes([0, high, middle, low]) as usize;
            if end > self.bytes.len() {
                break;
            }
            if kind == 0 && end > at + FRAME_HEADER {
                frames.push((at, end));
            }
            at = end;
        }
        frames
    }

    fn frame(&self, start: usize, end: usize, messages: &mut Vec<Message>) {
        let owner = |at| self.owners[self.owner(at)].1;
        let frame = Message {
            id: None,
            first: owner(start),
            last: owner(end - 1),
            packets: self.holders(start, end),
            first_copies: self.holders(start, start + 1),
            last_copies: self.holders(end - 1, end),
            header: Vec::new(),
        };
        let body = start + FRAME_HEADER;
        let mut header: Vec<(usize, usize)> = self.needed(start, body).collect();
        let mut at = body;
        loop {
            let bytes = &self.bytes[at..end];
            let (id, next) = match bytes.get(..ID_END) {
                Some([0xff, b'S', b'M', b'B', rest @ ..]) => (Some((0xff, u64::from(u16_at(rest, 26)))), 0),
                Some([0xfe, b'S', b'M', b'B', rest @ ..]) => {
                    let id = u64::from(u32_at(rest, 20)) | u64::from(u32_at(rest, 24)) << 32;
                    (Some((0xfe, id)), u32_at(rest, 16) as usize)
                }
                _ => (None, 0),
            };
            if id.is_none() && at > body {
                break;
            }
            let named = if id.is_some() { at + ID_END } else { (at + PROTOCOL_ID).min(end) };
            header.extend(self.needed(at, named));
            messages.push(Message { id, header: header.clone(), ..frame.clone() });
            if next == 0 || at + next >= end {
                break;
            }
            at += next;
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
