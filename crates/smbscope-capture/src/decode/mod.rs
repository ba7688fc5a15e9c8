//! Decodes packets: strips the link, IP and TCP headers and reassembles IP fragments.
//!
//! Headers are read in place; only fragments are copied. Tunnels are followed to the inner packet. Packets without TCP
//! are counted by protocol; those that can't be parsed are counted in [`Quality`]. Start with [`Decoder::decode`].

mod fields;
mod ip;
mod link;
mod origin;
mod outline;
mod pseudo_header;
mod tcp;
mod tunnel;

pub use fields::Understood;
pub use link::{ETHER_TYPES, LINK_TYPES};
pub use origin::{Origin, Origins};
pub use outline::{Fragment, Outline, PacketContent};
pub(crate) use pseudo_header::ErfHeader;
pub use tunnel::TUNNEL_PORTS;

use crate::segment::{OriginId, Packet, TcpSegment};
use fields::Fields;
use ip::{Added, DatagramReassembly, Fragments, IpPacket, TCP};
use link::Peeled;
use origin::Trail;
use smbscope_model::{Quality, SkippedPackets, SkippedProtocol, Stamp, TunnelPorts};
use std::net::SocketAddr;
use tcp::TcpHeader;

/// Nested tunnels; deeper packets are skipped and counted.
const MAX_TUNNELS: usize = 8;

/// Decodes packets one by one. Keeps incomplete datagrams, and statistics that explain captures without SMB.
#[derive(Debug)]
pub struct Decoder {
    fragments: Fragments,
    packets: u64,
    skipped: SkippedProtocolCounts,
    port_packets: Box<[u64]>,
    trail: Trail,
}

enum DecodedPacket<'a> {
    Tcp(IpPacket<'a>),
    Fragment(IpPacket<'a>),
    Skipped(SkippedProtocol),
    Malformed,
    Cut,
}

impl DecodedPacket<'_> {
    fn unparsed(data: &[u8], on_wire: u32) -> Self {
        if (data.len() as u64) < u64::from(on_wire) { DecodedPacket::Cut } else { DecodedPacket::Malformed }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

impl Decoder {
    pub fn new() -> Decoder {
        Decoder::with_tunnels(TunnelPorts::none())
    }

    /// Follows the tunnels on ports that the user declared, as well.
    pub fn with_tunnels(tunnels: TunnelPorts) -> Decoder {
        Decoder {
            trail: Trail::new(tunnels),
            fragments: Fragments::new(),
            packets: 0,
            skipped: SkippedProtocolCounts::new(),
            port_packets: vec![0; usize::from(u16::MAX) + 1].into_boxed_slice(),
        }
    }

    /// Returns the origins of segments, by their number.
    pub fn origins(&self) -> Origins {
        self.trail.origins().clone()
    }

    /// Returns the TCP segment that the packet contains, or completes as the last fragment.
    pub fn decode<'a>(&'a mut self, packet: &Packet<'a>, quality: &mut Quality) -> Option<TcpSegment<'a>> {
        self.packets += 1;
        quality.packets += 1;
        quality.wire_bytes += u64::from(packet.wire_length);
        quality.captured_bytes += packet.data.len() as u64;
        let snapped = (packet.data.len() as u64) < u64::from(packet.wire_length);
        quality.snapped_packets += u64::from(snapped);
        if snapped {
            quality.longest_cut_packet = quality.longest_cut_packet.max(packet.data.len() as u64);
        }
        self.trail.clear();
        if let Some(process) = packet.process {
            self.trail.note_process(process.id, process.name.as_bytes());
        }
        let peeled = link::peel(packet.link_type, packet.data, &mut self.trail);
        self.peeled(packet, peeled, quality)
    }

    /// Returns the segment of the next frame of an 802.11 aggregate, after [`Decoder::decode`] of the first one. `None`
    /// after the last frame, and for other packets.
    #[inline]
    pub fn decode_more<'a>(&'a mut self, packet: &Packet<'a>, quality: &mut Quality) -> Option<Option<TcpSegment<'a>>> {
        if self.trail.is_aggregate() { self.next_in_aggregate(packet, quality) } else { None }
    }

    #[cold]
    fn next_in_aggregate<'a>(
        &'a mut self,
        packet: &Packet<'a>,
        quality: &mut Quality,
    ) -> Option<Option<TcpSegment<'a>>> {
        let place = self.trail.next_in_aggregate(packet.data)?;
        quality.aggregated_frames += 1;
        let peeled = link::ethernet(packet.data, place, &mut self.trail);
        Some(self.peeled(packet, peeled, quality))
    }

    #[inline(always)]
    fn peeled<'a>(&'a mut self, packet: &Packet<'a>, peeled: Peeled, quality: &mut Quality) -> Option<TcpSegment<'a>> {
        let found = match peeled {
            Peeled::Ip { offset, version } => {
                let on_wire = packet.wire_length.saturating_sub(u32::try_from(offset).unwrap_or(u32::MAX));
                let data = packet.data.get(offset..).unwrap_or_default();
                match ip::parse(version, data, on_wire, &mut self.trail) {
                    Some(datagram) if datagram.fragment.is_some() => DecodedPacket::Fragment(datagram),
                    Some(datagram) if datagram.protocol == TCP => DecodedPacket::Tcp(datagram),
                    Some(datagram) => {
                        let found = follow(datagram, &mut self.trail);
                        quality.tunneled_packets += u64::from(matches!(found, DecodedPacket::Tcp(_)));
                        found
                    }
                    None => DecodedPacket::unparsed(data, on_wire),
                }
            }
            Peeled::Other(protocol) => DecodedPacket::Skipped(protocol),
            Peeled::Malformed => DecodedPacket::unparsed(packet.data, packet.wire_length),
        };
        match found {
            DecodedPacket::Tcp(datagram) => self.segment(packet, &datagram, quality),
            DecodedPacket::Fragment(datagram) => self.fragment(packet, &datagram, quality),
            other => {
                self.count_skipped(&other, quality);
                None
            }
        }
    }

    pub fn skipped(&self, n: usize) -> Vec<SkippedPackets> {
        self.skipped.most(n)
    }

    /// Returns the TCP ports with their packets. A connection counts under its lower port, usually the server's.
    pub fn ports(&self) -> impl Iterator<Item = (u16, u64)> {
        (0..=u16::MAX).zip(self.port_packets.iter().copied()).filter(|(_, packets)| *packets > 0)
    }

    pub fn finish(&mut self, quality: &mut Quality) {
        quality.ip_datagrams_incomplete += self.fragments.clear();
    }

    fn count_skipped(&mut self, found: &DecodedPacket<'_>, quality: &mut Quality) {
        match found {
            DecodedPacket::Skipped(protocol) => {
                quality.not_tcp += 1;
                self.skipped.count(*protocol);
            }
            DecodedPacket::Cut => quality.headers_not_captured += 1,
            DecodedPacket::Malformed | DecodedPacket::Tcp(_) | DecodedPacket::Fragment(_) => {
                quality.malformed_packets += 1
            }
        }
    }

    fn segment<'a>(
        &'a mut self,
        packet: &Packet<'a>,
        datagram: &IpPacket<'a>,
        quality: &mut Quality,
    ) -> Option<TcpSegment<'a>> {
        let Some(header) = TcpHeader::parse(datagram.payload, datagram.payload_length, &mut ()) else {
            let captured = datagram.payload.len();
            let cut = captured < tcp::NEEDED && (captured as u64) < u64::from(datagram.payload_length);
            self.count_skipped(&if cut { DecodedPacket::Cut } else { DecodedPacket::Malformed }, quality);
            return None;
        };
        quality.tcp_packets += 1;
        self.port_packets[usize::from(header.source_port.min(header.destination_port))] += 1;
        let origin = if self.trail.is_plain() { OriginId(0) } else { self.origin(quality) };
        let (ordinal, stamp) = (self.packets, packet.stamp);
        Some(segment_of(PlacedSegment { ordinal, first: stamp, stamp, origin }, datagram, &header))
    }

    /// Processes a fragment. If it completes a datagram, follows that through its tunnels.
    #[cold]
    fn fragment<'a>(
        &'a mut self,
        packet: &Packet<'a>,
        datagram: &IpPacket<'_>,
        quality: &mut Quality,
    ) -> Option<TcpSegment<'a>> {
        quality.ip_fragments += 1;
        // Counted by the protocol in the header; corrected once the payload is known.
        let counted = datagram.protocol;
        if holds_tcp(counted) {
            quality.tcp_packets += 1;
        } else {
            quality.not_tcp += 1;
            self.skipped.count(SkippedProtocol::IpProtocol(counted));
        }
        if !holds_tcp(counted) && !tunnel::is_tunnel(counted) {
            return None;
        }
        let mut whole = self.reassemble(datagram, packet.stamp, quality)?;
        let mut counted = (whole.protocol, whole.packets);
        for _ in 0..MAX_TUNNELS {
            match contents_of(&whole, &mut self.trail) {
                DecodedPacket::Tcp(inner) => {
                    self.recount(counted, None, quality);
                    quality.tunneled_packets += if holds_tcp(counted.0) { 0 } else { counted.1 };
                    // The payload borrows the datagram's bytes, so the datagram has to be kept.
                    let start = inner.payload.as_ptr() as usize - whole.bytes().0.as_ptr() as usize;
                    let inner = IpPacket { payload: &[], ..inner };
                    let origin = if self.trail.is_plain() { OriginId(0) } else { self.origin(quality) };
                    let whole = self.fragments.keep(whole);
                    let payload = whole.bytes().0.get(start..).unwrap_or_default();
                    let Some(header) = TcpHeader::parse(payload, inner.payload_length, &mut ()) else {
                        quality.tcp_packets -= 1;
                        quality.malformed_packets += 1;
                        return None;
                    };
                    self.port_packets[usize::from(header.source_port.min(header.destination_port))] += 1;
                    let place =
                        PlacedSegment { ordinal: self.packets, first: whole.first, stamp: packet.stamp, origin };
                    return Some(segment_of(place, &inner, &header));
                }
                DecodedPacket::Fragment(inner) => {
                    let is_read = holds_tcp(inner.protocol) || tunnel::is_tunnel(inner.protocol);
                    let skipped = (!is_read).then_some(SkippedProtocol::IpProtocol(inner.protocol));
                    self.recount(counted, skipped, quality);
                    counted = (TCP, 1);
                    if !is_read {
                        return None;
                    }
                    whole = self.reassemble(&inner, whole.first, quality)?;
                }
                DecodedPacket::Skipped(protocol) => {
                    self.recount(counted, Some(protocol), quality);
                    return None;
                }
                DecodedPacket::Malformed | DecodedPacket::Cut => {
                    self.recount(counted, None, quality);
                    quality.tcp_packets -= 1;
                    quality.malformed_packets += 1;
                    return None;
                }
            }
        }
        self.recount(counted, Some(SkippedProtocol::NestedTunnels), quality);
        None
    }

    /// Returns the number of the packet's origin, or zero and counts the packet if the table is full.
    #[cold]
    fn origin(&mut self, quality: &mut Quality) -> OriginId {
        self.trail.origin().unwrap_or_else(|| {
            quality.origins_left_out += 1;
            OriginId(0)
        })
    }

    fn reassemble(
        &mut self,
        datagram: &IpPacket<'_>,
        stamp: Stamp,
        quality: &mut Quality,
    ) -> Option<DatagramReassembly> {
        let added = self.fragments.add(datagram, stamp);
        quality.ip_datagrams_incomplete += added.dropped;
        let Added { completed: true, .. } = added else { return None };
        quality.ip_datagrams_reassembled += 1;
        self.fragments.take_completed()
    }

    fn recount(&mut self, (protocol, packets): (u8, u64), skipped: Option<SkippedProtocol>, quality: &mut Quality) {
        match (holds_tcp(protocol), skipped) {
            (true, None) => {}
            (true, Some(skipped)) => {
                quality.tcp_packets -= packets;
                quality.not_tcp += packets;
                (0..packets).for_each(|_| self.skipped.count(skipped));
            }
            (false, skipped) => {
                self.skipped.recount(packets, SkippedProtocol::IpProtocol(protocol), skipped);
                if skipped.is_none() {
                    quality.not_tcp -= packets;
                    quality.tcp_packets += packets;
                }
            }
        }
    }
}

fn holds_tcp(protocol: u8) -> bool {
    protocol == TCP || ip::is_extension(protocol)
}

#[cold]
fn follow<'a, F: Fields>(mut datagram: IpPacket<'a>, fields: &mut F) -> DecodedPacket<'a> {
    for _ in 0..MAX_TUNNELS {
        let unparsed = DecodedPacket::unparsed(datagram.payload, datagram.payload_length);
        match tunnel::peel(&datagram, fields) {
            Peeled::Ip { offset, version } => match tunnel::inner(&datagram, offset, version, fields) {
                Some(inner) if inner.fragment.is_some() => return DecodedPacket::Fragment(inner),
                Some(inner) if inner.protocol == TCP => return DecodedPacket::Tcp(inner),
                Some(inner) => datagram = inner,
                None => return unparsed,
            },
            Peeled::Other(protocol) => return DecodedPacket::Skipped(protocol),
            Peeled::Malformed => return unparsed,
        }
    }
    DecodedPacket::Skipped(SkippedProtocol::NestedTunnels)
}

fn contents_of<'a, F: Fields>(whole: &'a DatagramReassembly, fields: &mut F) -> DecodedPacket<'a> {
    let (captured, length) = whole.bytes();
    // An IPv6 datagram may have extension headers after the fragment header.
    let Some((protocol, offset)) = ip::upper_layer(whole.next_header, captured, length, fields) else {
        return DecodedPacket::unparsed(captured, length);
    };
    let payload = captured.get(offset..).unwrap_or_default();
    let datagram = IpPacket {
        source: whole.source,
        destination: whole.destination,
        protocol,
        hops_left: whole.hops_left,
        identification: whole.identification,
        fragment: None,
        payload,
        payload_length: length.saturating_sub(u32::try_from(offset).unwrap_or(u32::MAX)),
    };
    if protocol == TCP { DecodedPacket::Tcp(datagram) } else { follow(datagram, fields) }
}

/// Place of a segment in the capture.
struct PlacedSegment {
    ordinal: u64,
    first: Stamp,
    stamp: Stamp,
    origin: OriginId,
}

#[inline]
fn segment_of<'a>(place: PlacedSegment, datagram: &IpPacket<'a>, header: &TcpHeader<'a>) -> TcpSegment<'a> {
    TcpSegment {
        ordinal: place.ordinal,
        first: place.first,
        stamp: place.stamp,
        origin: place.origin,
        source: SocketAddr::new(datagram.source, header.source_port),
        destination: SocketAddr::new(datagram.destination, header.destination_port),
        sequence: header.sequence,
        acknowledgment: header.acknowledgment,
        flags: header.flags,
        window: header.window,
        window_scale: header.window_scale,
        timestamp_value: header.timestamp_value,
        names_later_bytes: header.names_later_bytes,
        duplicate_sack: header.duplicate_sack,
        ip_id: datagram.identification,
        hops_left: datagram.hops_left,
        payload: header.payload,
        payload_length: header.payload_length,
    }
}

/// Other protocols counted one by one. IP protocols and UDP ports do not count towards it: all of them are listed.
const MAX_SKIPPED_PROTOCOLS: usize = 128;

#[derive(Debug)]
struct SkippedProtocolCounts {
    ip: Box<[u64]>,
    udp: Box<[u64]>,
    /// Ports on which QUIC was recognised.
    quic: Box<[bool]>,
    others: Vec<(SkippedProtocol, u64)>,
    rest: u64,
}

impl SkippedProtocolCounts {
    fn new() -> SkippedProtocolCounts {
        SkippedProtocolCounts {
            ip: vec![0; usize::from(u8::MAX) + 1].into_boxed_slice(),
            udp: vec![0; usize::from(u16::MAX) + 1].into_boxed_slice(),
            quic: vec![false; usize::from(u16::MAX) + 1].into_boxed_slice(),
            others: Vec::new(),
            rest: 0,
        }
    }

    fn count(&mut self, protocol: SkippedProtocol) {
        *self.counter(protocol) += 1;
    }

    fn recount(&mut self, packets: u64, before: SkippedProtocol, now: Option<SkippedProtocol>) {
        let counter = self.counter(before);
        *counter = counter.saturating_sub(packets);
        if let Some(now) = now {
            *self.counter(now) += packets;
        }
    }

    fn counter(&mut self, protocol: SkippedProtocol) -> &mut u64 {
        match protocol {
            SkippedProtocol::IpProtocol(number) => &mut self.ip[usize::from(number)],
            SkippedProtocol::UdpPort(number) => &mut self.udp[usize::from(number)],
            SkippedProtocol::QuicPort(number) => {
                self.quic[usize::from(number)] = true;
                &mut self.udp[usize::from(number)]
            }
            _ => {
                let place = self.others.iter().position(|(known, _)| *known == protocol);
                match place {
                    Some(place) => &mut self.others[place].1,
                    None if self.others.len() < MAX_SKIPPED_PROTOCOLS => {
                        let place = self.others.len();
                        self.others.push((protocol, 0));
                        &mut self.others[place].1
                    }
                    None => &mut self.rest,
                }
            }
        }
    }

    fn most(&self, n: usize) -> Vec<SkippedPackets> {
        let ip = (0..=u8::MAX).zip(&self.ip).map(|(number, packets)| (SkippedProtocol::IpProtocol(number), *packets));
        let of_port = |(number, (packets, is_quic)): (u16, (&u64, &bool))| match is_quic {
            true => (SkippedProtocol::QuicPort(number), *packets),
            false => (SkippedProtocol::UdpPort(number), *packets),
        };
        let udp = (0..=u16::MAX).zip(self.udp.iter().zip(&self.quic)).map(of_port);
        let all = ip.chain(udp).chain(self.others.iter().copied());
        SkippedPackets::most(all.chain([(SkippedProtocol::Others, self.rest)]), n)
    }
}

#[cfg(test)]
mod tests;
