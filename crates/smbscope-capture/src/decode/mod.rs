//! Packet → TCP segment: peels the link, IP and TCP headers off a packet and puts IP fragments together.
//!
//! Headers are read in place; only fragments are copied. Whatever does not parse is counted in [`Quality`].

mod fragments;
mod ip;
mod link;
mod tcp;

use crate::segment::{Packet, TcpSegment};
use fragments::{Added, Fragments};
use ip::{Datagram, TCP};
use link::Peeled;
use smbscope_model::Quality;
use std::net::SocketAddr;
use tcp::TcpHeader;

/// Link types remembered for the message about those that are not read.
const MAX_UNSUPPORTED_LINKS: usize = 64;

/// Decodes packets one after the other; remembers fragments, and what it has seen for the case that nothing is SMB.
#[derive(Debug)]
pub struct Decoder {
    fragments: Fragments,
    packets: u64,
    unsupported_links: Vec<u32>,
    /// TCP packets by the lower of their two ports.
    port_packets: Box<[u64]>,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new()
    }
}

impl Decoder {
    /// A decoder without memory of any packet.
    pub fn new() -> Decoder {
        Decoder {
            fragments: Fragments::new(),
            packets: 0,
            unsupported_links: Vec::new(),
            port_packets: vec![0; usize::from(u16::MAX) + 1].into_boxed_slice(),
        }
    }

    /// The TCP segment that the packet holds, or completes as the last of its fragments.
    pub fn decode<'a>(&'a mut self, packet: &Packet<'a>, quality: &mut Quality) -> Option<TcpSegment<'a>> {
        self.packets += 1;
        quality.packets += 1;
        quality.wire_bytes += u64::from(packet.wire_length);
        quality.captured_bytes += packet.data.len() as u64;
        let snapped = (packet.data.len() as u64) < u64::from(packet.wire_length);
        quality.snapped_packets += u64::from(snapped);

        let (network, version) = match link::peel(packet.link_type, packet.data) {
            Peeled::Ip { offset, version } => (offset, version),
            Peeled::Other => {
                quality.not_tcp += 1;
                return None;
            }
            Peeled::Malformed => {
                quality.malformed_packets += 1;
                return None;
            }
            Peeled::Unsupported => {
                quality.not_tcp += 1;
                self.note_unsupported(packet.link_type);
                return None;
            }
        };
        let captured = packet.data.get(network..).unwrap_or_default();
        let on_wire = packet.wire_length.saturating_sub(u32::try_from(network).unwrap_or(u32::MAX));
        let Some(datagram) = ip::parse(version, captured, on_wire) else {
            quality.malformed_packets += 1;
            return None;
        };
        if datagram.protocol != TCP && !(datagram.fragment.is_some() && ip::is_extension(datagram.protocol)) {
            quality.not_tcp += 1;
            quality.ip_fragments += u64::from(datagram.fragment.is_some());
            return None;
        }
        if datagram.fragment.is_none() {
            return self.segment(packet, &datagram, quality);
        }
        self.fragment(packet, &datagram, quality)
    }

    /// Link types of packets that could not be decoded for that reason.
    pub fn unsupported_links(&self) -> &[u32] {
        &self.unsupported_links
    }

    /// The busiest TCP ports with their packets, busiest first. A connection counts for the lower of its ports, which
    /// is as a rule the server's.
    pub fn busiest_ports(&self, n: usize) -> Vec<(u16, u64)> {
        let mut ports: Vec<(u16, u64)> =
            (0..=u16::MAX).zip(self.port_packets.iter().copied()).filter(|(_, packets)| *packets > 0).collect();
        ports.sort_by_key(|(port, packets)| (std::cmp::Reverse(*packets), *port));
        ports.truncate(n);
        ports
    }

    /// Gives up the datagrams that are still incomplete at the end of the capture, and counts them.
    pub fn finish(&mut self, quality: &mut Quality) {
        quality.ip_datagrams_incomplete += self.fragments.clear();
    }

    fn note_unsupported(&mut self, link_type: u32) {
        if self.unsupported_links.len() < MAX_UNSUPPORTED_LINKS && !self.unsupported_links.contains(&link_type) {
            self.unsupported_links.push(link_type);
        }
    }

    fn segment<'a>(
        &'a mut self,
        packet: &Packet<'a>,
        datagram: &Datagram<'a>,
        quality: &mut Quality,
    ) -> Option<TcpSegment<'a>> {
        let Some(header) = TcpHeader::parse(datagram.payload, datagram.payload_length) else {
            quality.malformed_packets += 1;
            return None;
        };
        quality.tcp_packets += 1;
        self.count_port(&header);
        Some(TcpSegment {
            ordinal: self.packets,
            first: packet.stamp,
            stamp: packet.stamp,
            source: SocketAddr::new(datagram.source, header.source_port),
            destination: SocketAddr::new(datagram.destination, header.destination_port),
            sequence: header.sequence,
            acknowledgment: header.acknowledgment,
            flags: header.flags,
            window: header.window,
            timestamp_value: header.timestamp_value,
            ip_id: datagram.identification,
            payload: header.payload,
            payload_length: header.payload_length,
        })
    }

    fn fragment<'a>(
        &'a mut self,
        packet: &Packet<'a>,
        datagram: &Datagram<'_>,
        quality: &mut Quality,
    ) -> Option<TcpSegment<'a>> {
        quality.ip_fragments += 1;
        quality.tcp_packets += 1;
        let added = self.fragments.add(datagram, packet.stamp);
        quality.ip_datagrams_incomplete += added.given_up;
        let Added { completed: true, .. } = added else { return None };
        quality.ip_datagrams_reassembled += 1;
        let whole = self.fragments.completed()?;
        let identification = whole.identification;
        let first = whole.first;
        let (captured, length) = whole.bytes();
        // An IPv6 datagram may have extension headers behind the fragment header.
        let parsed = ip::upper_layer(whole.next_header, captured, length)
            .filter(|(protocol, _)| *protocol == TCP)
            .and_then(|(_, offset)| {
                let payload = captured.get(offset..)?;
                TcpHeader::parse(payload, length.checked_sub(u32::try_from(offset).ok()?)?)
            });
        let Some(header) = parsed else {
            quality.malformed_packets += 1;
            quality.tcp_packets -= 1;
            return None;
        };
        let lower = header.source_port.min(header.destination_port);
        self.port_packets[usize::from(lower)] += 1;
        Some(TcpSegment {
            ordinal: self.packets,
            first,
            stamp: packet.stamp,
            source: SocketAddr::new(whole.source, header.source_port),
            destination: SocketAddr::new(whole.destination, header.destination_port),
            sequence: header.sequence,
            acknowledgment: header.acknowledgment,
            flags: header.flags,
            window: header.window,
            timestamp_value: header.timestamp_value,
            ip_id: identification,
            payload: header.payload,
            payload_length: header.payload_length,
        })
    }

    fn count_port(&mut self, header: &TcpHeader<'_>) {
        let lower = header.source_port.min(header.destination_port);
        self.port_packets[usize::from(lower)] += 1;
    }
}

#[cfg(test)]
mod tests;
