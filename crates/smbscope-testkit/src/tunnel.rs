//! Tunnels on a UDP port of the user's choice, which only a declaration reveals.

use crate::encapsulation::{IPV4, IPV6, ethernet, gre, ipv4, udp};
use crate::{Frame, pcap};
use smbscope_model::TunnelKind;

/// Wraps an Ethernet frame of IP in a tunnel of this kind. Headers have values that a reader must not depend on.
pub fn in_tunnel(kind: TunnelKind, port: u16, frame: &[u8]) -> Vec<u8> {
    let ip = &frame[14..];
    let is_v6 = ip[0] >> 4 == 6;
    let ip_type = if is_v6 { IPV6 } else { IPV4 };
    let protocol = if is_v6 { 41 } else { 4 };
    let ip_length = (ip.len() as u16 + 8).to_be_bytes();
    let payload = match kind {
        TunnelKind::Vxlan => [&[0x08, 1, 2, 3, 0, 0x12, 0x34, 9][..], frame].concat(),
        // Next protocol 3 is Ethernet.
        TunnelKind::VxlanGeneric => [&[0x0c, 1, 2, 3, 0, 0x12, 0x34, 9][..], frame].concat(),
        TunnelKind::Geneve => [&[1, 0x40, 0x65, 0x58, 0, 0x12, 0x34, 9, 1, 2, 0x83, 0][..], frame].concat(),
        TunnelKind::Gue => [&[1, protocol, 0x12, 0x34, 9, 9, 9, 9][..], ip].concat(),
        TunnelKind::GtpUser => [&[0x30, 255][..], &ip_length, &[0, 0, 0, 9], ip].concat(),
        TunnelKind::Gre => gre(0x2000, ip_type, &[0, 0, 0, 7], ip),
        TunnelKind::Mpls => [&[0, 1, 0, 64, 0, 2, 1, 64][..], ip].concat(),
        TunnelKind::L2tp => {
            let ppp = [0xff, 3, 0, if is_v6 { 0x57 } else { 0x21 }];
            [&[0, 2, 0, 7, 0, 9][..], &ppp, ip].concat()
        }
        TunnelKind::Capwap => [&[0, 0x10, 0, 0, 0, 0, 0, 0][..], frame].concat(),
        TunnelKind::Teredo => {
            // Authentication with an identifier of two bytes and a value of one, then the origin.
            let authentication = [0, 1, 2, 1, 7, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0];
            [&authentication[..], &[0, 0, 0x3f, 0x11, 1, 2, 3, 4], ip].concat()
        }
        TunnelKind::Lisp => [&[0xc0, 1, 2, 3, 0, 0, 0, 1][..], ip].concat(),
        TunnelKind::Tzsp => [&[1, 0, 0, 1, 10, 1, 5, 1][..], frame].concat(),
        TunnelKind::Ip => ip.to_vec(),
        TunnelKind::Ethernet => frame.to_vec(),
    };
    ethernet(IPV4, &ipv4(17, 1, &udp(port, &payload)))
}

/// Wraps each frame of a little-endian pcap file and keeps at most `snap` bytes of the packets.
pub fn file_in_tunnel(kind: TunnelKind, port: u16, file: &[u8], snap: usize) -> Vec<u8> {
    let wrap = |frame: &Frame| {
        let mut data = in_tunnel(kind, port, &frame.data);
        let wire_length = data.len();
        data.truncate(snap);
        Frame { time: frame.time, wire_length, data }
    };
    pcap::write(pcap::ETHERNET, &pcap::read(file).iter().map(wrap).collect::<Vec<_>>())
}
