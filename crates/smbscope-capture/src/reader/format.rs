//! Detects the format of a capture from its first bytes; holds the parser's state.

use super::pcap::{self, Pcap, Snoop};
use super::pcapng::{self, Interfaces, PcapngSection};
use super::record::ParseStep;

/// Number of bytes that suffice to recognise every format.
pub(super) const SNIFF_LENGTH: usize = 264;

/// Format parser and its state. Small and `Copy`, so that remembering a position in a file is cheap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaptureParser {
    Pcap(Pcap),
    Pcapng(PcapngSection),
    Snoop(Snoop),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sniffed {
    Capture(CaptureParser, usize),
    HeaderCut(&'static str),
    Foreign(&'static str),
    Unknown,
}

/// Unsupported formats and the magic bytes by which Wireshark detects them; used for error messages.
const FOREIGN: [(&[u8], &str); 16] = [
    (b"GMBU", "Microsoft Network Monitor 2"),
    (b"RTSS", "Microsoft Network Monitor 1"),
    (b"TRSNIFF data", "NG Sniffer"),
    (b"XCP\0", "NetXRay / Sniffer for Windows"),
    (b"VL\0\0", "NetXRay 1"),
    (b"ObserverPktBuffe", "Network Instruments Observer"),
    (b"iptrace ", "AIX iptrace"),
    (b"\x7fver", "OmniPeek / EtherPeek"),
    (b"\x05VNF", "Visual Networks"),
    (b"ETHERWATCH", "DBS Etherwatch"),
    (b"\x54\x52\x00\x64\x00", "HP-UX nettl"),
    (b"\x1c\x00\x01\xac", "Ixia lcap"),
    (b"\xac\x01\x00\x1c", "Ixia lcap"),
    (b"\xab\x01\x00\x1c", "Ixia lcap"),
    (b"\x1c\x00\x01\xab", "Ixia lcap"),
    (b"\x0a\x0d\x0d\x0a", "pcapng with an unknown byte order"),
];

pub(super) fn sniff(head: &[u8]) -> Sniffed {
    if Pcap::is_magic(head) {
        return Pcap::parse(head)
            .filter(|_| head.len() >= pcap::FILE_HEADER)
            .map_or(Sniffed::HeaderCut("pcap"), |header| {
                Sniffed::Capture(CaptureParser::Pcap(header), pcap::FILE_HEADER)
            });
    }
    if PcapngSection::is_magic(head) {
        // The section header is an ordinary block, so nothing is skipped.
        return match head.len() >= pcapng::FILE_HEADER {
            true => Sniffed::Capture(CaptureParser::Pcapng(PcapngSection::start()), 0),
            false => Sniffed::HeaderCut("pcapng"),
        };
    }
    if Snoop::is_magic(head) {
        return Snoop::parse(head)
            .filter(|_| head.len() >= pcap::SNOOP_FILE_HEADER)
            .map_or(Sniffed::HeaderCut("snoop"), |header| {
                Sniffed::Capture(CaptureParser::Snoop(header), pcap::SNOOP_FILE_HEADER)
            });
    }
    match FOREIGN.iter().find(|(magic, _)| head.starts_with(magic)) {
        Some((_, name)) => Sniffed::Foreign(name),
        None => Sniffed::Unknown,
    }
}

pub(super) fn shown(head: &[u8]) -> String {
    let head = &head[..head.len().min(8)];
    let hex: Vec<String> = head.iter().map(|byte| format!("{byte:02x}")).collect();
    if !head.is_empty() && head.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return format!("\"{}\"", String::from_utf8_lossy(head));
    }
    hex.join(" ")
}

impl CaptureParser {
    pub(super) fn name(&self) -> &'static str {
        match self {
            CaptureParser::Pcap(header) => header.name(),
            CaptureParser::Pcapng(_) => "pcapng",
            CaptureParser::Snoop(_) => "snoop",
        }
    }

    /// Determines properties that only the records reveal, from those at the start of `bytes`.
    pub(super) fn settle(&mut self, bytes: &[u8]) {
        if let CaptureParser::Pcap(header) = self {
            header.settle(bytes);
        }
    }

    pub(super) fn describe(&self, interfaces: &mut Interfaces) {
        match self {
            CaptureParser::Pcap(header) => {
                interfaces.link_types = vec![header.link_type()];
                interfaces.snap_length = Some(header.snap_length()).filter(|length| *length != 0);
                interfaces.resolution_ns = header.resolution_ns();
            }
            CaptureParser::Snoop(header) => {
                interfaces.link_types = vec![header.link_type()];
                interfaces.resolution_ns = 1_000;
            }
            CaptureParser::Pcapng(_) => {}
        }
    }

    #[inline]
    pub(super) fn step(&mut self, interfaces: &mut Interfaces, window: &[u8]) -> ParseStep {
        match self {
            CaptureParser::Pcap(header) => header.step(window),
            CaptureParser::Pcapng(section) => section.step(interfaces, window),
            CaptureParser::Snoop(header) => header.step(window),
        }
    }
}
