//! Target for packets of every link type: link, IP and TCP headers, and IP fragments.
//!
//! The input is a list of packets: one byte selects the link type, one byte gives the excess of the wire length over
//! the captured length, two bytes give the packet's length; then the packet.

use crate::Bytes;
use smbscope_capture::decode::{self, Decoder, Outline};
use smbscope_capture::{Packet, TcpSegment};
use smbscope_model::{CaptureId, PacketRef, Quality, Stamp, Timestamp, TunnelKind, TunnelPort, TunnelPorts};

/// The most frequent link types, which come before all others.
pub const LINK_TYPES: [u32; 13] = [1, 113, 276, 12, 14, 101, 228, 229, 0, 108, 6, 9, 50];
const UNSUPPORTED: u32 = 201;

fn link_type(kind: u8) -> u32 {
    let kind = usize::from(kind);
    let others = decode::LINK_TYPES.iter().map(|(number, _)| *number).chain([UNSUPPORTED]);
    match LINK_TYPES.get(kind) {
        Some(number) => *number,
        None => others.cycle().nth(kind).unwrap_or(UNSUPPORTED),
    }
}

/// Bytes of a packet whose outline is checked, which takes quadratic time.
const MAX_OUTLINED: usize = 256;
/// First of the UDP ports that are declared as tunnels, one for each kind.
const DECLARED: u16 = 7000;

pub fn packets(data: &[u8]) {
    let declared = (DECLARED..).zip(TunnelKind::ALL).map(|(port, kind)| TunnelPort { port, kind });
    let tunnels = TunnelPorts::new(&declared.collect::<Vec<_>>());
    let mut decoder = Decoder::with_tunnels(tunnels.clone());
    let mut quality = Quality::default();
    let mut input = Bytes(data);
    let (mut number, mut held) = (0, 0);
    while let (Some(kind), Some(more), Some(length)) = (input.u8(), input.u8(), input.u16()) {
        number += 1;
        let captured = input.up_to(length.into());
        held += captured.len();
        let stamp = Stamp { time: Timestamp(number), packet: PacketRef::new(CaptureId(0), number as u64) };
        let packet = Packet {
            stamp,
            link_type: link_type(kind),
            data: captured,
            wire_length: captured.len() as u32 + 16 * u32::from(more),
            process: None,
        };
        if captured.len() <= MAX_OUTLINED {
            let (enough, _) = Outline::parse(&packet, &tunnels).needed(&packet, &tunnels);
            assert!(enough <= captured.len(), "more bytes needed than captured");
        }
        let check = |segment: TcpSegment<'_>| {
            assert_eq!(segment.stamp, stamp, "the packet that completes a segment gives it its time");
            assert!(segment.first.packet <= stamp.packet, "a segment ends before it begins");
            assert!(segment.payload.len() as u64 <= u64::from(segment.payload_length), "more payload than there was");
            assert!(segment.payload.len() <= held, "payload that no packet held");
        };
        decoder.decode(&packet, &mut quality).into_iter().for_each(check);
        while let Some(more) = decoder.decode_more(&packet, &mut quality) {
            more.into_iter().for_each(check);
        }
    }
    let origins = decoder.origins().to_vec();
    assert!(origins.iter().all(|origin| origin.encapsulation.is_some() || origin.process.is_some()));
    decoder.finish(&mut quality);
    assert_eq!(quality.packets, number as u64);
    let unread = quality.malformed_packets + quality.headers_not_captured;
    let frames = quality.packets + quality.aggregated_frames;
    assert_eq!(frames, quality.tcp_packets + quality.not_tcp + unread);
    let skipped: u64 = decoder.skipped(usize::MAX).iter().map(|skipped| skipped.packets).sum();
    assert_eq!(skipped, quality.not_tcp, "every packet that is no TCP has a name");
    assert_eq!(quality.captured_bytes, held as u64);
    assert!(quality.ip_datagrams_reassembled + quality.ip_datagrams_incomplete <= quality.ip_fragments);
}
