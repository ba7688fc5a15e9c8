//! A real capture in memory, to be damaged and read repeatedly without its file.

mod sealed;

pub(crate) use sealed::stays_readable;
pub use sealed::{Nonces, TWIN_KEY};

use crate::damage::Captured;
use crate::pcap;
use smbscope_capture::decode::Decoder;
use smbscope_capture::reader::{CaptureError, CaptureInput, CaptureSet};
use smbscope_capture::segment::{Packet, TcpSegment};
use smbscope_model::{CaptureId, PacketRef, Quality, Stamp, Timestamp};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;

#[derive(Debug, Clone)]
pub struct Recording {
    pub name: String,
    bytes: Vec<u8>,
    packets: Vec<Stored>,
}

#[derive(Debug, Clone, Copy)]
struct Stored {
    time: Timestamp,
    link_type: u32,
    wire_length: u32,
    start: usize,
    length: usize,
    /// Numbers the pairs of sender and receiver; `None` without TCP.
    direction: Option<u32>,
    payload_length: u32,
}

/// A packet in a damaged copy of a [`Recording`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    pub origin: usize,
    pub time: Timestamp,
    pub snap: usize,
}

impl Captured for Kept {
    fn time(&self) -> Timestamp {
        self.time
    }

    fn captured_at(&self, time: Timestamp) -> Kept {
        Kept { time, ..*self }
    }

    fn snapped(&self, length: usize) -> Kept {
        Kept { snap: length, ..*self }
    }
}

impl Recording {
    /// Reads a capture file of any format, in time order.
    pub fn read(path: &Path) -> Result<Recording, CaptureError> {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let mut set = CaptureSet::open(&[CaptureInput::File(path.to_owned())])?;
        let (mut bytes, mut packets) = (Vec::new(), Vec::new());
        while let Some(packet) = set.next_packet()? {
            packets.push(Stored {
                time: packet.stamp.time,
                link_type: packet.link_type,
                wire_length: packet.wire_length,
                start: bytes.len(),
                length: packet.data.len(),
                direction: None,
                payload_length: 0,
            });
            bytes.extend_from_slice(packet.data);
        }
        let mut recording = Recording { name, bytes, packets };
        recording.find_directions();
        Ok(recording)
    }

    fn find_directions(&mut self) {
        let mut directions: HashMap<(SocketAddr, SocketAddr), u32> = HashMap::new();
        let mut found = Vec::new();
        self.segments(&self.undamaged(), |place, segment| {
            let next = directions.len() as u32;
            let direction = *directions.entry((segment.source, segment.destination)).or_insert(next);
            directions.entry((segment.destination, segment.source)).or_insert(next + 1);
            found.push((place, direction, segment.payload_length));
        });
        for (place, direction, payload_length) in found {
            self.packets[place].direction = Some(direction);
            self.packets[place].payload_length = payload_length;
        }
    }

    pub fn undamaged(&self) -> Vec<Kept> {
        let kept = |(origin, packet): (usize, &Stored)| Kept { origin, time: packet.time, snap: usize::MAX };
        self.packets.iter().enumerate().map(kept).collect()
    }

    pub fn len(&self) -> usize {
        self.packets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Returns the number of a packet's flow direction; `None` without TCP. The direction of a flow's first packet has
    /// an even number, the opposite direction the next.
    pub fn direction(&self, origin: usize) -> Option<u32> {
        self.packets[origin].direction
    }

    pub fn has_payload(&self, origin: usize) -> bool {
        self.packets[origin].payload_length > 0
    }

    /// Returns the packets with payload from `first` to `last` in the direction of `first`.
    pub(crate) fn payloads_between(&self, first: usize, last: usize) -> Vec<usize> {
        let direction = self.direction(first);
        (first..=last).filter(|at| self.direction(*at) == direction && self.has_payload(*at)).collect()
    }

    /// Decodes the packets of a copy in order and passes each TCP segment to `each`, with its index in the copy. Packet
    /// numbers are indexes plus one.
    pub fn segments(&self, copy: &[Kept], mut each: impl FnMut(usize, &TcpSegment<'_>)) {
        let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
        for (place, kept) in copy.iter().enumerate() {
            let stored = &self.packets[kept.origin];
            let packet = Packet {
                stamp: Stamp { time: kept.time, packet: PacketRef::new(CaptureId(0), place as u64 + 1) },
                link_type: stored.link_type,
                data: self.data(kept),
                wire_length: stored.wire_length,
                process: None,
            };
            if let Some(segment) = decoder.decode(&packet, &mut quality) {
                each(place, &segment);
            }
        }
    }

    fn data(&self, kept: &Kept) -> &[u8] {
        let stored = &self.packets[kept.origin];
        &self.bytes[stored.start..stored.start + stored.length.min(kept.snap)]
    }

    /// Writes a copy as a nanosecond pcap file. All packets get the link type of the first.
    pub fn to_pcap(&self, copy: &[Kept]) -> Vec<u8> {
        let link_type = self.packets.first().map_or(pcap::ETHERNET, |packet| packet.link_type);
        let packets = copy.iter().map(|kept| {
            let stored = &self.packets[kept.origin];
            (kept.time, self.data(kept), stored.wire_length as usize)
        });
        pcap::file_of(link_type, packets)
    }
}
