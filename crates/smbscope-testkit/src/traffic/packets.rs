//! Packets of a small generated capture, for tests and benchmarks of the code after the decoder.

use super::{Settings, generate};
use crate::packet::{Packet, Side};
use crate::{Frame, pcap};
use smbscope_capture::TcpFlags;
use std::collections::HashMap;
use std::net::SocketAddr;

/// Generates a capture and returns its packets. Payload beyond the snap length is zero.
pub fn packets(settings: &Settings) -> Vec<Packet> {
    let mut file = Vec::new();
    generate(settings, &mut file).expect("a Vec takes everything");
    let mut begins = HashMap::new();
    let mut packets = Vec::new();
    for frame in pcap::read(&file) {
        let mut packet = parse(&frame);
        let begin = begins.entry((packet.source, packet.destination)).or_insert(packet.sequence.wrapping_add(1));
        packet.offset = u64::from(packet.sequence.wrapping_sub(*begin));
        packet.origin = packets.len();
        packet.snap = settings.snap as usize;
        packets.push(packet);
    }
    packets
}

/// Parses the packets that the recorder writes: Ethernet, IPv4 without options, TCP.
fn parse(Frame { time, data, wire_length }: &Frame) -> Packet {
    let u16_at = |at: usize| u16::from_be_bytes([data[at], data[at + 1]]);
    let u32_at = |at: usize| u32::from_be_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
    let address = |at: usize, port: usize| SocketAddr::from((u32_at(at).to_be_bytes(), u16_at(port)));
    let headers = 34 + usize::from(data[46] >> 4) * 4;
    let mut payload = data[headers..].to_vec();
    payload.resize(wire_length - headers, 0);
    Packet {
        origin: 0,
        time: *time,
        side: if u16_at(36) == 445 { Side::Client } else { Side::Server },
        offset: 0,
        source: address(26, 34),
        destination: address(30, 36),
        sequence: u32_at(38),
        acknowledgment: u32_at(42),
        flags: TcpFlags(data[47]),
        window: u16_at(48),
        window_scale: None,
        ip_id: u16_at(18),
        payload,
        snap: usize::MAX,
    }
}
