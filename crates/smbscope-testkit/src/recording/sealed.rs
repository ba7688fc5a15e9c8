//! Encrypted twin of a readable SMB2 capture: same packets and times, with every message in a TRANSFORM_HEADER (MS-SMB2
//! 2.2.41), encrypted with [`TWIN_KEY`] but with random tags. The readable capture provides the truth about the
//! messages.

use super::{Recording, Stored};
use crate::judge::messages::{Ends, Stream, streams};
use crate::packet::Packet;
use crate::packet::Side;
use crate::pcap;
use crate::random::Random;
use smbscope_capture::{TcpFlags, TcpSegment, WindowScale};
use smbscope_crypto::{Cipher, CipherKey, Keystream};
use smbscope_model::Command;
use smbscope_wire::nbss::HEADER_LENGTH;
use smbscope_wire::smb2::{self, Smb2Header, TRANSFORM_ID, TransformHeader};
use std::collections::HashMap;

/// Key of every session in a twin, in both directions, for AES-128-GCM.
pub const TWIN_KEY: [u8; 16] = *b"key of the twins";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nonces {
    /// Both sides count the messages of a session, like Samba's server and client.
    Counted,
    /// The server counts; the client uses random nonces, like the Linux client.
    ServerCounts,
    /// Both sides use random nonces.
    Random,
}

impl Nonces {
    pub const ALL: [Nonces; 3] = [Nonces::Counted, Nonces::ServerCounts, Nonces::Random];

    fn name(self) -> &'static str {
        match self {
            Nonces::Counted => "counted",
            Nonces::ServerCounts => "server counts",
            Nonces::Random => "random",
        }
    }

    fn counts(self, from_server: bool) -> bool {
        match self {
            Nonces::Counted => true,
            Nonces::ServerCounts => from_server,
            Nonces::Random => false,
        }
    }
}

/// Returns true if a command is sent before there is a key.
pub(crate) fn stays_readable(command: Command) -> bool {
    match command {
        Command::Smb2(command) => matches!(command, smb2::Smb2Command::NEGOTIATE | smb2::Smb2Command::SESSION_SETUP),
        _ => true,
    }
}

struct Sealed {
    base: u32,
    bytes: Vec<u8>,
    /// Positions in the readable stream before which a TRANSFORM_HEADER is inserted, ascending.
    covers: Vec<u64>,
}

impl Sealed {
    fn new(stream: &Stream, nonces: Nonces, random: &mut Random) -> Sealed {
        let mut sealed = Sealed { base: stream.base, bytes: Vec::new(), covers: Vec::new() };
        let mut counters: HashMap<u64, (u64, [u8; 4])> = HashMap::new();
        let key = CipherKey::Bits128(TWIN_KEY);
        let keystream = Keystream::new(Cipher::Aes128Gcm, &key).expect("the cipher takes keys of 128 bits");
        let mut done = 0;
        for (start, end) in stream.frames() {
            let message = start + HEADER_LENGTH;
            let bytes = &stream.bytes[message..end];
            let header = Smb2Header::parse(bytes).filter(|header| !stays_readable(Command::Smb2(header.command)));
            let Some((header, session)) = header.and_then(|header| Some((header, header.session_id?))) else {
                continue;
            };
            sealed.bytes.extend(&stream.bytes[done..start]);
            sealed.bytes.extend(((TransformHeader::LENGTH + bytes.len()) as u32).to_be_bytes());
            let fresh = (1, (random.bits() as u32).to_le_bytes());
            let (count, salt) = counters.entry(session).or_insert(fresh);
            let count_or_random = if nonces.counts(header.is_response()) { *count } else { random.bits() };
            *count += 1;
            let mut nonce = [0; 16];
            nonce[..8].copy_from_slice(&count_or_random.to_le_bytes());
            nonce[8..12].copy_from_slice(salt);
            sealed.bytes.extend(TRANSFORM_ID);
            sealed.bytes.extend((0..16).map(|_| random.bits() as u8));
            sealed.bytes.extend(nonce);
            sealed.bytes.extend((bytes.len() as u32).to_le_bytes());
            sealed.bytes.extend([0, 0, 1, 0]);
            sealed.bytes.extend(session.to_le_bytes());
            let ciphertext = sealed.bytes.len();
            sealed.bytes.extend(bytes);
            keystream.apply(&nonce, 0, &mut sealed.bytes[ciphertext..]);
            sealed.covers.push(message as u64);
            done = end;
        }
        sealed.bytes.extend(&stream.bytes[done..]);
        sealed
    }

    /// Maps a position of the readable stream.
    fn position(&self, readable: u64) -> u64 {
        let covers = self.covers.partition_point(|cover| *cover < readable);
        readable + (covers * TransformHeader::LENGTH) as u64
    }

    fn sequence(&self, readable: u32) -> u32 {
        let offset = i64::from(readable.wrapping_sub(self.base) as i32);
        let position = u64::try_from(offset).map_or(offset, |offset| self.position(offset) as i64);
        self.base.wrapping_add(position as u32)
    }
}

impl Recording {
    /// Creates the encrypted twin, packet by packet. Returns `None` if the capture has truncated packets, several
    /// streams between the same ports, IPv6 addresses, or no SMB2 messages after logon.
    pub fn sealed(&self, nonces: Nonces, seed: u64) -> Option<Recording> {
        let mut random = Random::new(seed);
        let streams = streams(self);
        let mut whole = streams.iter().all(|(ends, _)| streams.iter().filter(|(other, _)| other == ends).count() == 1);
        let sealed: HashMap<Ends, Sealed> =
            streams.iter().map(|(ends, stream)| (*ends, Sealed::new(stream, nonces, &mut random))).collect();
        let mut packets: HashMap<usize, Vec<u8>> = HashMap::new();
        self.segments(&self.undamaged(), |place, segment| match sealed_segment(&sealed, segment) {
            Some(packet) => drop(packets.insert(place, packet)),
            None => whole = false,
        });
        if !whole || sealed.values().all(|stream| stream.covers.is_empty()) {
            return None;
        }
        let name = self.name.split(".pcap").next().unwrap_or(&self.name);
        let name = format!("{name}-sealed ({})", nonces.name());
        let mut twin = Recording { name, bytes: Vec::new(), packets: Vec::new() };
        for (place, stored) in self.packets.iter().enumerate() {
            let start = twin.bytes.len();
            let other = &self.bytes[stored.start..stored.start + stored.length];
            let link_type = if packets.contains_key(&place) { pcap::ETHERNET } else { stored.link_type };
            twin.bytes.extend(packets.get(&place).map_or(other, Vec::as_slice));
            let length = twin.bytes.len() - start;
            let wire_length = length as u32;
            twin.packets.push(Stored { link_type, wire_length, start, length, direction: None, ..*stored });
        }
        twin.find_directions();
        Some(twin)
    }
}

/// Returns the packet that carries the encrypted segment.
fn sealed_segment(sealed: &HashMap<Ends, Sealed>, segment: &TcpSegment<'_>) -> Option<Vec<u8>> {
    let us = sealed.get(&(segment.source, segment.destination))?;
    let them = sealed.get(&(segment.destination, segment.source));
    if segment.payload.len() < segment.payload_length as usize || !segment.source.is_ipv4() {
        return None;
    }
    let sequence = us.sequence(segment.sequence);
    let length = segment.payload.len() as u32;
    let payload = if length == 0 {
        Vec::new()
    } else {
        let place = |sequence: u32| sequence.wrapping_sub(us.base) as usize;
        let end = us.sequence(segment.sequence.wrapping_add(length));
        us.bytes.get(place(sequence)..place(end)).map_or_else(|| segment.payload.to_vec(), <[u8]>::to_vec)
    };
    // The total length of an IPv4 packet has 16 bits.
    if payload.len() > usize::from(u16::MAX) - 48 {
        return None;
    }
    let has_acknowledgment = segment.flags.0 & TcpFlags::ACK != 0;
    let packet = Packet {
        origin: 0,
        time: segment.stamp.time,
        side: Side::Client,
        offset: 0,
        source: segment.source,
        destination: segment.destination,
        sequence,
        acknowledgment: match them.filter(|_| has_acknowledgment) {
            Some(them) => them.sequence(segment.acknowledgment),
            None => segment.acknowledgment,
        },
        flags: segment.flags,
        window: segment.window,
        window_scale: match segment.window_scale {
            WindowScale::Shift(shift) => Some(shift),
            _ => None,
        },
        ip_id: segment.ip_id.unwrap_or(0),
        payload,
        snap: usize::MAX,
    };
    Some(packet.ethernet())
}
