//! Detects the format of a capture from its first bytes; holds the parser's state.

use super::netmon::{self, NetMon};
use super::pcap::{self, Pcap, Snoop};
use super::pcapng::{self, ETHERNET, Interfaces, PcapngSection, RAW_IP};
use super::{ByteOrder, ParseStep};

/// Number of bytes that suffice to recognise every format.
pub(super) const SNIFF_LENGTH: usize = 264;

/// Packets that show IP labelled Ethernet.
const RELABELLED_BY: usize = 8;

/// Returns true if a packet is IP of exactly this length on the wire, whose header has a valid checksum if it has one.
fn is_raw_ip(data: &[u8], wire_length: u32) -> bool {
    let field = |at: usize| ByteOrder::BIG.u16(data, at).map_or(0, u32::from);
    match data.first() {
        Some(first @ 0x45..=0x4f) if field(2) == wire_length => {
            let Some(header) = data.get(..usize::from(first & 0x0f) * 4) else { return false };
            let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
            field(10) == 0 || (sum & 0xffff) + (sum >> 16) == 0xffff
        }
        Some(0x60..=0x6f) => field(4) + 40 == wire_length,
        _ => false,
    }
}

/// Format parser and its state. Small and `Copy`, so that remembering a position in a file is cheap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaptureParser {
    Pcap(Pcap),
    Pcapng(PcapngSection),
    Snoop(Snoop),
    NetMon(NetMon),
    Erf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sniffed {
    Capture(CaptureParser, usize),
    HeaderCut(&'static str),
    /// Name, and command line of a converter.
    Foreign(&'static str, &'static str),
    Unknown,
}

/// Formats that are read, with the programs that write them.
pub const FORMATS: &[(&str, &str)] = &[
    ("pcap", "tcpdump, most appliances; also with nanoseconds, modified, and of Nokia, Red Hat 6.1 and SuSE 6.3"),
    ("pcapng", "Wireshark, dumpcap, `pktmon etl2pcap`, `etl2pcapng`"),
    ("snoop", "Solaris"),
    ("Network Monitor 1 and 2", "Microsoft Network Monitor, Message Analyzer"),
    ("ERF", "Endace cards and probes"),
];

const EDITCAP: &str = "editcap -F pcapng FILE OUT.pcapng";
const PKTMON: &str = "pktmon etl2pcap FILE --out OUT.pcapng (on older Windows: etl2pcapng FILE OUT.pcapng)";
const TEXT2PCAP: &str = "text2pcap FILE OUT.pcapng";

/// Unsupported formats: the bytes by which they are recognised (as Wireshark does), their name and a converter.
pub const FOREIGN_FORMATS: &[(&[u8], &str, &str)] = &[
    (b"TRSNIFF data", "NG Sniffer", EDITCAP),
    (b"XCP\0", "NetXRay / Sniffer for Windows", EDITCAP),
    (b"VL\0\0", "NetXRay 1", EDITCAP),
    (b"ObserverPktBuffe", "Network Instruments Observer", EDITCAP),
    (b"iptrace ", "AIX iptrace", EDITCAP),
    (b"\x7fver", "OmniPeek / EtherPeek", EDITCAP),
    (b"\x05VNF", "Visual Networks", EDITCAP),
    (b"ETHERWATCH", "DBS Etherwatch", EDITCAP),
    (b"\x54\x52\x00\x64\x00", "HP-UX nettl", EDITCAP),
    (b"\x1c\x00\x01\xac", "Ixia lcap", EDITCAP),
    (b"\xac\x01\x00\x1c", "Ixia lcap", EDITCAP),
    (b"\xab\x01\x00\x1c", "Ixia lcap", EDITCAP),
    (b"\x1c\x00\x01\xab", "Ixia lcap", EDITCAP),
    (b"LOGG", "Vector BLF", EDITCAP),
    (b"\xaa\xaa\xaa\xaa", "5View", EDITCAP),
    (b"\x00\x00\x02\x00\x12\x05\x00\x10", "Tektronix K12", EDITCAP),
    (b"\x45\x4c\x46\x20", "EyeSDN", EDITCAP),
    (b"interfaces=[", "FortiGate text", "fgt2eth -in FILE -out OUT.pcap"),
    (b"0000  ", "hex dump", TEXT2PCAP),
    (b"000000 ", "hex dump", TEXT2PCAP),
    (b"\x0a\x0d\x0d\x0a", "pcapng with an unknown byte order", EDITCAP),
];

/// Unsupported formats that are recognised by more than their first bytes: their name and a converter.
pub const RECOGNISED_FORMATS: &[(&str, &str)] = &[EVENT_TRACE, NETSCALER];
const EVENT_TRACE: (&str, &str) = ("Windows event trace (ETL)", PKTMON);
const NETSCALER: (&str, &str) = ("NetScaler", EDITCAP);

/// Recognises an event trace of Windows (netsh, pktmon): a buffer, and in it a header with the same buffer size
/// (WMI_BUFFER_HEADER, TRACE_LOGFILE_HEADER).
fn is_event_trace(head: &[u8]) -> bool {
    const HEADER: usize = 72;
    const BUFFER_SIZE: usize = HEADER + 32;
    let marker = head.get(HEADER..HEADER + 4);
    let is_marked = matches!(marker, Some([_, 0, 1 | 2, 0xc0]));
    is_marked && head.get(BUFFER_SIZE..BUFFER_SIZE + 4).is_some_and(|size| head.starts_with(size))
}

/// Recognises NetScaler traces by the name at the start of their first page.
fn is_netscaler(head: &[u8]) -> bool {
    [&b"NetScaler"[..], b"Netscaler"].iter().any(|name| head.windows(name.len()).take(32).any(|part| part == *name))
}

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
    if NetMon::is_magic(head) {
        return NetMon::parse(head).map_or(Sniffed::HeaderCut("Network Monitor"), |header| {
            Sniffed::Capture(CaptureParser::NetMon(header), netmon::FILE_HEADER)
        });
    }
    match FOREIGN_FORMATS.iter().find(|(magic, ..)| head.starts_with(magic)) {
        Some((_, name, converter)) => Sniffed::Foreign(name, converter),
        None if is_event_trace(head) => Sniffed::Foreign(EVENT_TRACE.0, EVENT_TRACE.1),
        None if is_netscaler(head) => Sniffed::Foreign(NETSCALER.0, NETSCALER.1),
        None if pcap::is_erf(head) => Sniffed::Capture(CaptureParser::Erf, 0),
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
            CaptureParser::NetMon(header) => header.name(),
            CaptureParser::Erf => "ERF",
        }
    }

    /// Returns the state before a record of this length, from the state after it.
    pub(super) fn before(self, length: usize) -> CaptureParser {
        match self {
            CaptureParser::NetMon(header) => CaptureParser::NetMon(header.before(length)),
            other => other,
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
            CaptureParser::NetMon(header) => interfaces.resolution_ns = header.resolution_ns(),
            CaptureParser::Erf => interfaces.resolution_ns = 1,
            CaptureParser::Pcapng(_) => {}
        }
    }

    /// Returns true, and reads packets as IP, if they are labelled Ethernet but begin with IP (iOS `rvi0`). `bytes`
    /// begins after the file header.
    pub(super) fn relabel(&mut self, bytes: &[u8]) -> bool {
        let (mut format, mut interfaces) = (*self, Interfaces::default());
        self.describe(&mut interfaces);
        let (mut position, mut seen) = (0usize, 0);
        while seen < RELABELLED_BY {
            let window = bytes.get(position..).unwrap_or_default();
            position = match format.step(&mut interfaces, window) {
                ParseStep::Packet(record, length) => {
                    let data = window.get(record.data_start..record.data_start + record.data_length);
                    let is_raw = data.is_some_and(|data| is_raw_ip(data, record.wire_length));
                    if record.link_type != u32::from(ETHERNET) || !is_raw {
                        return false;
                    }
                    seen += 1;
                    position + length
                }
                ParseStep::Skip { length, .. } => position.saturating_add(length),
                ParseStep::More(_) | ParseStep::Stop(_) => break,
            };
        }
        if let (CaptureParser::Pcap(header), true) = (self, seen > 0) {
            header.set_link_type(RAW_IP);
        }
        seen > 0
    }

    #[inline]
    pub(super) fn step(&mut self, interfaces: &mut Interfaces, window: &[u8]) -> ParseStep {
        match self {
            CaptureParser::Pcap(header) => header.step(window),
            CaptureParser::Pcapng(section) => section.step(interfaces, window),
            CaptureParser::Snoop(header) => header.step(window),
            CaptureParser::NetMon(header) => header.step(interfaces, window),
            CaptureParser::Erf => pcap::erf_step(interfaces, window),
        }
    }
}
