//! Description of a capture file: format, extent, clock, problems, and its packets other than TCP, by protocol.

use crate::{Nanos, Timestamp};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

/// One capture file or stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureInfo {
    /// Name as given on the command line; `-` for standard input.
    pub name: String,
    /// `pcap`, `pcap (ns)`, `pcapng`, `snoop`, `ERF`, `Network Monitor 2`, etc.
    pub format: Cow<'static, str>,
    /// `gzip`, `zstd`, `lz4` or `xz`; null for a plain file.
    pub compression: Option<Cow<'static, str>>,
    /// Packets in the file.
    pub packets: u64,
    /// File size, after compression if any.
    pub bytes: u64,
    /// Earliest timestamp.
    #[serde(rename = "first_ns")]
    pub first: Option<Timestamp>,
    /// Latest timestamp.
    #[serde(rename = "last_ns")]
    pub last: Option<Timestamp>,
    /// Tick of the coarsest clock in nanoseconds, at least 1.
    pub resolution_ns: u64,
    /// Largest snap length stated in the file.
    pub snap_length: Option<u32>,
    /// LINKTYPE_* values of the interfaces.
    pub link_types: Vec<u32>,
    /// Smallest observed step of the clock if it is 100 µs or more, whatever resolution the file states; 0 if the
    /// clock stood still, null for a finer clock. Shorter times cannot be measured.
    #[serde(rename = "coarse_clock_ns")]
    pub coarse_clock: Option<Nanos>,
    /// Correction applied because the two directions were stamped by different clocks; null if one clock stamped both.
    pub clock_offset: Option<CaptureClockOffset>,
    /// Reason for not reading the file to its end: file, reason, packet, byte offset. The first of the warnings.
    #[serde(skip)]
    pub truncated: Option<String>,
    /// Problems found in the file.
    pub warnings: Vec<String>,
}

impl CaptureInfo {
    /// Returns the shortest time that the captures' clocks can measure: the maximum if a clock stood still.
    pub fn least_time(captures: &[CaptureInfo]) -> Option<Nanos> {
        let measurable = |step: Nanos| if step.0 == 0 { Nanos(i64::MAX) } else { step };
        captures.iter().filter_map(|capture| capture.coarse_clock).map(measurable).max()
    }
}

/// Offset between the clocks of the two directions, bounded by the minimum delays between data and acknowledgments.
/// The sum of a response time and the following think time is exact for any offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureClockOffset {
    /// True if packets from servers carried the later time, false if packets from clients did.
    pub of_servers: bool,
    /// Time subtracted from these packets.
    #[serde(rename = "applied_ns")]
    pub applied: Nanos,
    /// Lower bound of the offset.
    #[serde(rename = "low_ns")]
    pub low: Nanos,
    /// Upper bound of the offset.
    #[serde(rename = "high_ns")]
    pub high: Nanos,
}

impl CaptureClockOffset {
    pub fn whose(self) -> &'static str {
        if self.of_servers { "servers" } else { "clients" }
    }
}

/// SMB connections whose packets are inside the same headers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EncapsulatedTraffic {
    /// Headers around their packets other than Ethernet and IP, outermost first: `VXLAN on UDP port 4789`.
    pub headers: Arc<str>,
    /// Number of connections.
    pub connections: u64,
    /// TCP packets of these connections.
    pub packets: u64,
}

impl EncapsulatedTraffic {
    /// Sequences of headers that are counted; of more, those first in the alphabet.
    pub const MAX_LISTED: usize = 64;
}

/// Protocol that the analysis skips, identified by its number in the layer that carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SkippedProtocol {
    /// LINKTYPE_* value (registry of tcpdump.org).
    LinkType(u32),
    /// Address family of a BSD loopback header.
    AddressFamily(u32),
    EtherType(u16),
    /// Destination service access point (IEEE 802.2).
    LogicalLink(u8),
    Ppp(u16),
    /// IEEE 802.11 frame without readable data: 0 management, 1 control, 2 empty, 3 encrypted, 4 fragment, 5 extension.
    WifiFrame(u8),
    /// MPLS payload that is neither IP nor Ethernet.
    Mpls,
    /// EtherType in a GRE header.
    Gre(u16),
    IpProtocol(u8),
    /// UDP port: the well-known one of the two, or else the lower.
    UdpPort(u16),
    /// UDP port on which QUIC was recognised by the header of its handshake.
    QuicPort(u16),
    /// Tunnels nested deeper than the analysis follows.
    NestedTunnels,
    Others,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedPackets {
    pub protocol: SkippedProtocol,
    pub packets: u64,
}

impl SkippedPackets {
    /// Returns the `listed` most frequent protocols and the sum of the others.
    pub fn most(counts: impl IntoIterator<Item = (SkippedProtocol, u64)>, listed: usize) -> Vec<SkippedPackets> {
        let mut rest = 0;
        let mut most: Vec<SkippedPackets> = Vec::new();
        for (protocol, packets) in counts.into_iter().filter(|(_, packets)| *packets > 0) {
            match protocol {
                SkippedProtocol::Others => rest += packets,
                _ => most.push(SkippedPackets { protocol, packets }),
            }
        }
        most.sort_by_key(|skipped| (Reverse(skipped.packets), skipped.protocol));
        rest += most.iter().skip(listed).map(|skipped| skipped.packets).sum::<u64>();
        most.truncate(listed);
        if rest > 0 {
            most.push(SkippedPackets { protocol: SkippedProtocol::Others, packets: rest });
        }
        most
    }
}

impl SkippedProtocol {
    pub fn layer(self) -> &'static str {
        match self {
            SkippedProtocol::LinkType(_) => "link type",
            SkippedProtocol::AddressFamily(_) => "address family",
            SkippedProtocol::EtherType(_) => "EtherType",
            SkippedProtocol::LogicalLink(_) => "802.2 SAP",
            SkippedProtocol::Ppp(_) => "PPP protocol",
            SkippedProtocol::WifiFrame(_) => "802.11 frame",
            SkippedProtocol::Mpls => "MPLS payload",
            SkippedProtocol::Gre(_) => "GRE protocol",
            SkippedProtocol::IpProtocol(_) => "IP protocol",
            SkippedProtocol::UdpPort(_) | SkippedProtocol::QuicPort(_) => "UDP port",
            SkippedProtocol::NestedTunnels => "nested tunnels",
            SkippedProtocol::Others => "other protocols",
        }
    }

    pub fn number(self) -> Option<u32> {
        match self {
            SkippedProtocol::LinkType(number) | SkippedProtocol::AddressFamily(number) => Some(number),
            SkippedProtocol::EtherType(number)
            | SkippedProtocol::Ppp(number)
            | SkippedProtocol::Gre(number)
            | SkippedProtocol::UdpPort(number)
            | SkippedProtocol::QuicPort(number) => Some(u32::from(number)),
            SkippedProtocol::LogicalLink(number)
            | SkippedProtocol::IpProtocol(number)
            | SkippedProtocol::WifiFrame(number) => Some(u32::from(number)),
            SkippedProtocol::Mpls | SkippedProtocol::NestedTunnels | SkippedProtocol::Others => None,
        }
    }

    pub fn name(self) -> Option<&'static str> {
        match self {
            SkippedProtocol::LinkType(number) => link_type_name(number),
            SkippedProtocol::EtherType(number) | SkippedProtocol::Gre(number) => ether_type_name(number),
            SkippedProtocol::LogicalLink(number) => sap_name(number),
            SkippedProtocol::Ppp(number) => ppp_name(number),
            SkippedProtocol::WifiFrame(number) => wifi_frame_name(number),
            SkippedProtocol::IpProtocol(number) => ip_protocol_name(number),
            SkippedProtocol::UdpPort(number) => udp_port_name(number),
            SkippedProtocol::QuicPort(_) => Some("QUIC"),
            SkippedProtocol::AddressFamily(_)
            | SkippedProtocol::Mpls
            | SkippedProtocol::NestedTunnels
            | SkippedProtocol::Others => None,
        }
    }

    /// Returns true for tunnels, encryption and unsupported links, which may hide SMB traffic.
    pub fn may_carry_smb(self) -> bool {
        match self {
            SkippedProtocol::EtherType(number) => matches!(number, 0x8137 | 0x88e5 | 0x894f),
            SkippedProtocol::WifiFrame(number) => matches!(number, 3 | 4),
            SkippedProtocol::LogicalLink(number) => matches!(number, 0xe0 | 0xf0),
            SkippedProtocol::Ppp(number) => matches!(number, 0x0053 | 0x00fd),
            SkippedProtocol::IpProtocol(number) => matches!(number, 50 | 115),
            SkippedProtocol::UdpPort(number) => {
                matches!(number, 443 | 1194 | 1701 | 3544 | 4500 | 4791 | 5247 | 51820)
            }
            SkippedProtocol::LinkType(_)
            | SkippedProtocol::AddressFamily(_)
            | SkippedProtocol::Mpls
            | SkippedProtocol::Gre(_)
            | SkippedProtocol::QuicPort(_)
            | SkippedProtocol::NestedTunnels => true,
            SkippedProtocol::Others => false,
        }
    }
}

fn link_type_name(number: u32) -> Option<&'static str> {
    Some(match number {
        147..=162 => "private use",
        195 | 230 => "IEEE 802.15.4",
        197 => "ERF",
        220 | 189 => "USB",
        247 => "InfiniBand",
        249 => "USB",
        251 => "Bluetooth",
        258 => "PKTAP",
        272 => "nRF Sniffer",
        _ => return None,
    })
}

fn ether_type_name(number: u16) -> Option<&'static str> {
    Some(match number {
        0x0806 => "ARP",
        0x8035 => "RARP",
        0x8137 => "IPX",
        0x8809 => "slow protocols, LACP",
        0x8863 => "PPPoE discovery",
        0x880b => "PPP",
        0x888e => "802.1X",
        0x88a2 => "ATA over Ethernet",
        0x88cc => "LLDP",
        0x88e5 => "MACsec, encrypted",
        0x88f7 => "PTP",
        0x8902 => "802.1ag",
        0x8903 => "FabricPath",
        0x8906 => "FCoE",
        0x8914 => "FCoE initialization",
        0x8915 => "RoCE",
        0x893a => "IEEE 1905",
        0x894f => "NSH",
        0x9000 => "loopback test",
        _ => return None,
    })
}

fn sap_name(number: u8) -> Option<&'static str> {
    Some(match number {
        0x42 => "spanning tree",
        0xaa => "SNAP",
        0xe0 => "IPX",
        0xf0 => "NetBEUI",
        0xfe => "IS-IS",
        _ => return None,
    })
}

fn ppp_name(number: u16) -> Option<&'static str> {
    Some(match number {
        0x00fd => "compressed",
        0x0053 => "encrypted",
        0x8021 | 0x8057 => "IPCP",
        0xc021 => "LCP",
        0xc023 => "PAP",
        0xc223 => "CHAP",
        _ => return None,
    })
}

fn wifi_frame_name(number: u8) -> Option<&'static str> {
    Some(match number {
        0 => "management",
        1 => "control",
        2 => "without data",
        3 => "encrypted",
        4 => "fragment",
        5 => "extension",
        _ => return None,
    })
}

fn ip_protocol_name(number: u8) -> Option<&'static str> {
    Some(match number {
        1 => "ICMP",
        2 => "IGMP",
        17 => "UDP",
        33 => "DCCP",
        47 => "GRE",
        50 => "ESP, encrypted",
        58 => "ICMPv6",
        59 => "no next header",
        88 => "EIGRP",
        89 => "OSPF",
        103 => "PIM",
        112 => "VRRP",
        115 => "L2TPv3",
        132 => "SCTP",
        _ => return None,
    })
}

fn udp_port_name(number: u16) -> Option<&'static str> {
    Some(match number {
        53 => "DNS",
        67 | 68 => "DHCP",
        69 => "TFTP",
        88 => "Kerberos",
        111 => "RPC",
        123 => "NTP",
        137 => "NetBIOS names",
        138 => "NetBIOS datagrams",
        161 | 162 => "SNMP",
        389 => "LDAP",
        443 => "QUIC",
        500 => "IKE",
        514 => "syslog",
        546 | 547 => "DHCPv6",
        1194 => "OpenVPN",
        1701 => "L2TP",
        1900 => "SSDP",
        2049 => "NFS",
        2123 => "GTP control",
        2152 => "GTP-U signalling",
        3544 => "Teredo",
        3702 => "WS-Discovery",
        4500 => "IPsec over UDP, encrypted",
        4739 | 2055 | 9995 => "flow records",
        4791 => "RoCE",
        5246 | 5247 => "CAPWAP",
        5353 => "mDNS",
        5355 => "LLMNR",
        6343 => "sFlow",
        51820 => "WireGuard, encrypted",
        _ => return None,
    })
}

impl fmt::Display for SkippedProtocol {
    /// `UDP port 443 (QUIC)`, `EtherType 0x0806 (ARP)`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.layer())?;
        match (self, self.number()) {
            (SkippedProtocol::EtherType(_) | SkippedProtocol::Gre(_) | SkippedProtocol::Ppp(_), Some(number)) => {
                write!(formatter, " 0x{number:04x}")?;
            }
            (SkippedProtocol::LogicalLink(_), Some(number)) => write!(formatter, " 0x{number:02x}")?,
            (_, Some(number)) => write!(formatter, " {number}")?,
            (_, None) => {}
        }
        match self.name() {
            Some(name) => write!(formatter, " ({name})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_shown_by_layer_number_and_name() {
        let shown = [
            SkippedProtocol::UdpPort(443),
            SkippedProtocol::EtherType(0x0806),
            SkippedProtocol::IpProtocol(250),
            SkippedProtocol::LogicalLink(0x42),
            SkippedProtocol::NestedTunnels,
        ]
        .map(|protocol| protocol.to_string());
        let expected = [
            "UDP port 443 (QUIC)",
            "EtherType 0x0806 (ARP)",
            "IP protocol 250",
            "802.2 SAP 0x42 (spanning tree)",
            "nested tunnels",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn encrypted_tunnels_may_carry_smb_and_name_resolution_may_not() {
        assert!(SkippedProtocol::IpProtocol(50).may_carry_smb());
        assert!(SkippedProtocol::UdpPort(443).may_carry_smb());
        assert!(!SkippedProtocol::UdpPort(53).may_carry_smb());
        assert!(!SkippedProtocol::EtherType(0x0806).may_carry_smb());
    }
}
