//! Captures without SMB: says in one line what they contain instead, and what to do.

use super::AnalyzedCaptures;
use smbscope_model::{ForeignProtocol, Quality, SkippedPackets, SkippedProtocol};
use smbscope_report::counted;
use std::cmp::Reverse;

/// Protocols named in a message.
const NAMED: usize = 4;

const CAPTURING: &str = "`smbscope help capturing` shows how to capture SMB";
const NFS: &str = "smbscope reads only SMB; NFS: tshark -q -z rpc,srt,100003,4 -r FILE";
const BLOCKS: &str = "it carries disk blocks, not files; capture between the clients and the file server";
const RDMA: &str =
    "SMB Direct (RDMA) is not read; Disable-NetAdapterRdma at the client makes it use TCP, then capture again";
const QUIC: &str = "SMB over QUIC is encrypted; connect with New-SmbMapping -TransportType TCP and capture port 445";
const ENCRYPTED: &str = "it is encrypted; capture on the client or server, inside the tunnel";

/// Ports of protocols that serve files and blocks, for connections whose first bytes were not captured.
const PORTS: [(u16, ForeignProtocol); 5] = [
    (548, ForeignProtocol::Afp),
    (2049, ForeignProtocol::Nfs),
    (3260, ForeignProtocol::Iscsi),
    (4420, ForeignProtocol::NvmeTcp),
    (5445, ForeignProtocol::Iwarp),
];

/// Traffic that the capture has instead of SMB.
struct OtherTraffic {
    name: String,
    packets: u64,
    advice: Option<&'static str>,
}

impl AnalyzedCaptures {
    pub(super) fn without_tcp(&self) -> String {
        let packets = self.analysis.quality.packets;
        let seen = counted(packets, "packet", "packets");
        let skipped = &self.analysis.skipped;
        let cut = self.analysis.quality.headers_not_captured;
        if cut > skipped.iter().map(|skipped| skipped.packets).sum() {
            let cut = counted(cut, "packet", "packets");
            return format!(
                "no SMB: the snap length cut {cut} of {packets} off inside IP or TCP headers, use one of 256"
            );
        }
        let is_link = |skipped: &&SkippedPackets| matches!(skipped.protocol, SkippedProtocol::LinkType(_));
        if let Some(link) = skipped.first().filter(is_link) {
            let advice = advice_for_packets(link.protocol).unwrap_or("capture on an Ethernet or IP interface");
            return format!("{} is not supported; {advice}", link.protocol);
        }
        let named = |skipped: &SkippedPackets| {
            format!("{} ({})", skipped.protocol, counted(skipped.packets, "packet", "packets"))
        };
        let seen_instead: Vec<String> = skipped.iter().take(NAMED).map(named).collect();
        let advice = skipped.iter().take(NAMED).find_map(|skipped| advice_for_packets(skipped.protocol));
        let advice = advice.map_or_else(String::new, |advice| format!("; {advice}"));
        match seen_instead.is_empty() {
            true => format!("no SMB: {seen}, none of them TCP; {CAPTURING}"),
            false => format!("no SMB: {seen}, none of them TCP, but {}{advice}", seen_instead.join(", ")),
        }
    }

    pub(super) fn without_smb(&self, ports: &[u16]) -> String {
        let Quality { packets, tcp_packets, snapped_packets, .. } = self.analysis.quality;
        let busy = self.analysis.busiest_ports.iter();
        let busy: Vec<String> =
            busy.map(|(port, packets)| format!("{port} ({})", counted(*packets, "packet", "packets"))).collect();
        let busiest = match busy.as_slice() {
            [only] => format!("the busiest port is {only}"),
            _ => format!("the busiest ports are {}", busy.join(", ")),
        };
        let seen = counted(tcp_packets, "TCP packet", "TCP packets");
        if !ports.is_empty() {
            let wanted: Vec<String> = ports.iter().map(u16::to_string).collect();
            let wanted = wanted.join(", ");
            return format!("no SMB on port {wanted} in {seen}; {busiest}; without --port every port is inspected");
        }
        let others = self.others();
        if !others.is_empty() {
            let named: Vec<&str> = others.iter().take(NAMED).map(|other| other.name.as_str()).collect();
            let advice = others.iter().find_map(|other| other.advice);
            let advice = advice.map_or_else(String::new, |advice| format!("; {advice}"));
            let seen = counted(packets, "packet", "packets");
            return format!("no SMB in {seen}, but {}{advice}", named.join(", "));
        }
        // The headers of Ethernet, IP and TCP alone take up to 74 bytes.
        let advice = match snapped_packets {
            0 => CAPTURING.to_owned(),
            n => format!("the snap length cut {} short, use one of 128 or more", counted(n, "packet", "packets")),
        };
        format!("no SMB: {seen}, none of them SMB; {busiest}; {advice}")
    }

    /// Returns recognised traffic: most packets first, and ports last, which only suggest a protocol.
    fn others(&self) -> Vec<OtherTraffic> {
        let analysis = &self.analysis;
        let spoken = analysis.foreign_traffic.iter().map(|traffic| OtherTraffic {
            name: format!(
                "{} on port {} ({}, {})",
                traffic.protocol,
                traffic.port,
                counted(traffic.connections, "connection", "connections"),
                counted(traffic.packets, "packet", "packets")
            ),
            packets: traffic.packets,
            advice: advice_for_connections(traffic.protocol),
        });
        let skipped = analysis.skipped.iter().filter_map(|skipped| {
            let advice = advice_for_packets(skipped.protocol)?;
            let name = format!("{} ({})", skipped.protocol, counted(skipped.packets, "packet", "packets"));
            Some(OtherTraffic { name, packets: skipped.packets, advice: Some(advice) })
        });
        let mut others: Vec<OtherTraffic> = spoken.chain(skipped).collect();
        others.sort_by_key(|other| Reverse(other.packets));
        let is_spoken = |port: u16| analysis.foreign_traffic.iter().any(|traffic| traffic.port == port);
        let by_port = analysis.busiest_ports.iter().filter(|(port, _)| !is_spoken(*port));
        others.extend(by_port.filter_map(|(port, packets)| {
            let (_, protocol) = PORTS.iter().find(|(known, _)| known == port)?;
            let packets_seen = counted(*packets, "packet", "packets");
            Some(OtherTraffic {
                name: format!("port {port}, usually {protocol} ({packets_seen})"),
                packets: *packets,
                advice: advice_for_connections(*protocol),
            })
        }));
        others
    }
}

fn advice_for_connections(protocol: ForeignProtocol) -> Option<&'static str> {
    Some(match protocol {
        ForeignProtocol::Nfs | ForeignProtocol::OncRpc => NFS,
        ForeignProtocol::Iscsi | ForeignProtocol::NvmeTcp => BLOCKS,
        ForeignProtocol::Afp => "smbscope reads only SMB; AFP: tshark -q -z afp,srt -r FILE",
        ForeignProtocol::WebDav => "files over WebDAV are HTTP; mount the share by SMB and capture port 445",
        ForeignProtocol::Iwarp => RDMA,
        ForeignProtocol::Tls => "if a proxy or VPN carries SMB in TLS, capture behind it",
        ForeignProtocol::Socks => "if the proxy passes SMB on, capture between the proxy and the server",
        ForeignProtocol::Http
        | ForeignProtocol::Ssh
        | ForeignProtocol::Vnc
        | ForeignProtocol::FtpOrSmtp
        | ForeignProtocol::Imap
        | ForeignProtocol::DceRpc => return None,
    })
}

fn advice_for_packets(protocol: SkippedProtocol) -> Option<&'static str> {
    Some(match protocol {
        SkippedProtocol::QuicPort(_) | SkippedProtocol::UdpPort(443) => QUIC,
        SkippedProtocol::UdpPort(4791) | SkippedProtocol::EtherType(0x8915) | SkippedProtocol::LinkType(247) => RDMA,
        SkippedProtocol::UdpPort(2049) => NFS,
        SkippedProtocol::EtherType(0x88a2 | 0x8906) => BLOCKS,
        SkippedProtocol::UdpPort(1194 | 4500 | 51820)
        | SkippedProtocol::IpProtocol(50)
        | SkippedProtocol::EtherType(0x88e5) => ENCRYPTED,
        _ => return None,
    })
}
