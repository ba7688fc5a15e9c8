//! Locates the headers of a packet, to determine which bytes a slim copy of the packet has to keep.

use super::fields::{Fields, Understood};
use super::ip::{self, TCP};
use super::link::{self, Peeled};
use super::tcp::{self, TcpHeader};
use super::{DecodedPacket, follow};
use crate::segment::Packet;
use smbscope_model::{SkippedProtocol, TunnelPorts};
use std::net::IpAddr;
use std::ops::Range;

/// Header bytes of non-TCP packets in a slim copy. A single IPv6 extension header can take up to 2048.
const MAX_HEADERS: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    pub kind: PacketContent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketContent {
    Tcp {
        payload: usize,
    },
    UnreadTcp {
        /// True if the snap length cut it off; false if it is damaged.
        cut: bool,
    },
    Fragment(Fragment),
    Skipped(SkippedProtocol),
    Malformed,
    Cut,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    pub ends: (IpAddr, IpAddr),
    pub identification: u32,
    pub protocol: u8,
    pub offset: u32,
    pub length: u32,
    pub more: bool,
    pub place: Range<usize>,
}

impl Outline {
    /// `tunnels` are those that the user declared.
    pub fn parse(packet: &Packet<'_>, mut tunnels: &TunnelPorts) -> Outline {
        Outline::entered(packet, &mut tunnels)
    }

    /// Returns the first `length` bytes of a packet with everything the decoder does not read set to zero. A packet
    /// that starts with them has the same outline.
    pub fn understood(packet: &Packet<'_>, length: usize, tunnels: &TunnelPorts) -> Understood {
        let mut understood = Understood::new(packet.data, length, tunnels);
        Outline::entered(packet, &mut understood);
        understood
    }

    fn entered<F: Fields>(packet: &Packet<'_>, fields: &mut F) -> Outline {
        let place = |bytes: &[u8]| {
            let start = (bytes.as_ptr() as usize).wrapping_sub(packet.data.as_ptr() as usize);
            // A slice outside the packet is empty.
            if start <= packet.data.len() { start } else { packet.data.len() }
        };
        let found = match link::peel(packet.link_type, packet.data, fields) {
            Peeled::Ip { offset, version } => {
                let on_wire = packet.wire_length.saturating_sub(u32::try_from(offset).unwrap_or(u32::MAX));
                let data = packet.data.get(offset..).unwrap_or_default();
                match ip::parse(version, data, on_wire, fields) {
                    Some(datagram) if datagram.fragment.is_some() => DecodedPacket::Fragment(datagram),
                    Some(datagram) if datagram.protocol == TCP => DecodedPacket::Tcp(datagram),
                    Some(datagram) => follow(datagram, fields),
                    None => DecodedPacket::unparsed(data, on_wire),
                }
            }
            Peeled::Other(protocol) => DecodedPacket::Skipped(protocol),
            Peeled::Malformed => DecodedPacket::unparsed(packet.data, packet.wire_length),
        };
        let kind = match found {
            DecodedPacket::Tcp(datagram) => match TcpHeader::parse(datagram.payload, datagram.payload_length, fields) {
                Some(header) => PacketContent::Tcp { payload: place(header.payload) },
                None => {
                    let captured = datagram.payload.len();
                    let cut = captured < tcp::NEEDED && (captured as u64) < u64::from(datagram.payload_length);
                    PacketContent::UnreadTcp { cut }
                }
            },
            DecodedPacket::Fragment(datagram) => {
                let start = place(datagram.payload);
                let (identification, offset, more) = datagram
                    .fragment
                    .map_or((0, 0, false), |fragment| (fragment.identification, fragment.offset, fragment.more));
                PacketContent::Fragment(Fragment {
                    ends: (datagram.source, datagram.destination),
                    identification,
                    protocol: datagram.protocol,
                    offset,
                    length: datagram.payload_length,
                    more,
                    place: start..start + datagram.payload.len(),
                })
            }
            DecodedPacket::Skipped(protocol) => PacketContent::Skipped(protocol),
            DecodedPacket::Malformed => PacketContent::Malformed,
            DecodedPacket::Cut => PacketContent::Cut,
        };
        Outline { kind }
    }

    /// Returns the leading bytes and the padded length that keep a packet without payload classified the same.
    pub fn needed(&self, packet: &Packet<'_>, tunnels: &TunnelPorts) -> (usize, usize) {
        match &self.kind {
            PacketContent::Tcp { payload } => (*payload, *payload),
            PacketContent::Fragment(fragment) => (fragment.place.start, fragment.place.start),
            kind => {
                let most = packet.data.len().min(MAX_HEADERS);
                let reads_alike = |data: &[u8]| Outline::parse(&Packet { data, ..*packet }, tunnels).kind == *kind;
                if let Some(enough) = (0..=most).find(|length| reads_alike(&packet.data[..*length])) {
                    return (enough, enough);
                }
                // Only the full length shows that nothing was cut off.
                let mut zeroed = vec![0; packet.data.len()];
                let enough = (0..=most).find(|length| {
                    zeroed[..*length].copy_from_slice(&packet.data[..*length]);
                    reads_alike(&zeroed)
                });
                (enough.unwrap_or(most), packet.data.len())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_model::{CaptureId, PacketRef, Stamp, Timestamp};

    const NONE: TunnelPorts = TunnelPorts::none();

    fn packet(data: &[u8], wire_length: u32) -> Packet<'_> {
        let stamp = Stamp { time: Timestamp(0), packet: PacketRef::new(CaptureId(0), 1) };
        Packet { stamp, link_type: 1, data, wire_length, process: None }
    }

    fn frame(protocol: u8, behind: &[u8]) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        bytes.extend([8, 0, 0x45, 0, 0, 20 + behind.len() as u8, 0, 1, 0, 0, 64, protocol, 0, 0]);
        bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(behind);
        bytes
    }

    #[test]
    fn the_headers_of_tcp_end_behind_its_options() {
        // RFC 9293 §3.1: source, destination, sequence, acknowledgment; a header of six words.
        let mut tcp = vec![0, 80, 1, 189, 0, 0, 0, 1, 0, 0, 0, 1, 6 << 4, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 1, 0];
        tcp.extend(b"payload");
        let bytes = frame(TCP, &tcp);
        let outline = Outline::parse(&packet(&bytes, bytes.len() as u32), &NONE);
        assert_eq!(outline, Outline { kind: PacketContent::Tcp { payload: 14 + 20 + 24 } });
    }

    #[test]
    fn a_datagram_of_udp_needs_its_ports_and_a_damaged_packet_its_length() {
        let bytes = frame(17, &[0, 53, 200, 0, 0, 20, 0, 0, b's', b'e', b'c', b'r', b'e', b't']);
        let udp = packet(&bytes, bytes.len() as u32);
        let outline = Outline::parse(&udp, &NONE);
        assert_eq!(outline.kind, PacketContent::Skipped(SkippedProtocol::UdpPort(53)));
        assert_eq!(outline.needed(&udp, &NONE), (14 + 20 + 4, 14 + 20 + 4));
        let mut damaged = frame(TCP, &[0; 20]);
        damaged[14] = 0x42;
        let damaged = packet(&damaged, 54);
        let outline = Outline::parse(&damaged, &NONE);
        assert_eq!(outline.kind, PacketContent::Malformed);
        assert_eq!(outline.needed(&damaged, &NONE).1, 54);
    }
}
