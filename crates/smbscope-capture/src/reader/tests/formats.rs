//! All formats, read from hand-built files.

use super::*;
use crate::reader::ParseStep;
use crate::reader::format::{self, CaptureParser, Sniffed};
use crate::reader::pcapng::{Interfaces, PcapngSection};
use proptest::prelude::*;

const SECOND: i64 = 1_000_000_000;

#[test]
fn pcap_variants_differ_in_byte_order_unit_and_header_length() {
    for (magic, name, unit, resolution) in [
        (0xa1b2_c3d4, "pcap", 1_000, 1_000),
        (0xa1b2_3c4d, "pcap (ns)", 1, 1),
        (0xa1b2_cd34, "modified pcap", 1_000, 1_000),
    ] {
        for big_endian in [false, true] {
            let reading = read(&pcap(magic, big_endian, &[(5, 7, b"first"), (6, 999_999, b"")]));
            let expected = [
                (0, 1, 5 * SECOND + 7 * unit, b"first".to_vec(), 5),
                (0, 2, 6 * SECOND + 999_999 * unit, Vec::new(), 0),
            ];
            assert_eq!(reading.packets, expected, "{name}, big-endian: {big_endian}");
            let info = &reading.infos[0];
            assert_eq!((&*info.format, info.resolution_ns, info.packets), (name, resolution, 2));
            assert_eq!((info.link_types.as_slice(), info.snap_length), ([1].as_slice(), Some(262_144)));
        }
    }
}

/// Builds a pcap file whose record headers are `more` bytes longer than the standard ones.
fn pcap_with_longer_headers(magic: u32, big_endian: bool, more: usize, count: u32) -> Vec<u8> {
    let mut bytes = pcap(magic, big_endian, &[]);
    for number in 0..count {
        let length = 60 + number % 7;
        let fields = [1_000_000 + number / 10, number % 10 * 1_000, length, length];
        bytes.extend(fields.into_iter().flat_map(|field| match big_endian {
            true => field.to_be_bytes(),
            false => field.to_le_bytes(),
        }));
        bytes.resize(bytes.len() + more, number as u8);
        bytes.resize(bytes.len() + length as usize, 0xd5);
    }
    bytes
}

#[test]
fn variants_with_longer_record_headers_are_told_by_their_records() {
    // Header lengths that editcap writes for nokiapcap, rh6_1pcap, suse6_3pcap and modpcap: 20, 24, 28 and 24 bytes.
    for (magic, more, name) in [
        (0xa1b2_c3d4, 0, "pcap"),
        (0xa1b2_c3d4, 4, "pcap (Nokia)"),
        (0xa1b2_c3d4, 8, "pcap (Red Hat 6.1)"),
        (0xa1b2_cd34, 8, "modified pcap"),
        (0xa1b2_cd34, 12, "pcap (SuSE 6.3)"),
    ] {
        for (big_endian, count) in [(false, 1), (false, 2), (true, 3), (false, 300)] {
            let bytes = pcap_with_longer_headers(magic, big_endian, more, count);
            let reading = read(&bytes);
            assert_eq!(reading.infos[0].format, name, "{count} packets");
            assert_eq!(reading.packets.len() as u32, count, "{name}");
            assert!(reading.packets.iter().all(|packet| packet.3.iter().all(|byte| *byte == 0xd5)), "{name}");
        }
    }
}

#[test]
fn pcap_seconds_are_unsigned() {
    // 2106-02-07, the last second that the format can represent.
    let reading = read(&pcap(0xa1b2_c3d4, false, &[(u32::MAX, 0, b"x")]));
    assert_eq!(reading.times(), [4_294_967_295 * SECOND]);
}

#[test]
fn pcap_link_type_leaves_out_the_fcs_bits() {
    let mut bytes = pcap(0xa1b2_c3d4, false, &[]);
    // 4 bytes of FCS: length 2 in 16-bit units in the top 4 bits, P bit set.
    bytes[20..24].copy_from_slice(&(0x2400_0000u32 | 113).to_le_bytes());
    assert_eq!(read(&bytes).infos[0].link_types, [113]);
}

#[test]
fn pcapng_interface_clocks_are_applied() {
    let offset = 1_700_000_000i64;
    let bytes = [
        LITTLE.section(),
        LITTLE.interface(1, 0, &[]),
        LITTLE.interface(1, 96, &[(2, b"eth0"), (9, &[9])]),
        LITTLE.interface(101, 0, &[(9, &[0x80 | 10])]),
        LITTLE.interface(1, 0, &[(9, &[3]), (14, &offset.to_le_bytes())]),
        LITTLE.enhanced(0, 2_000_001, b"micro", 5),
        LITTLE.enhanced(1, 2_000_001_001, b"nano", 1_500),
        LITTLE.enhanced(2, 2 * 1024 + 512, b"1/1024 s", 8),
        LITTLE.enhanced(3, 1, b"milli", 5),
    ]
    .concat();
    let reading = read(&bytes);
    let expected = [2_000_001_000, 2_000_001_001, 2_500_000_000, offset * SECOND + 1_000_000];
    assert_eq!(reading.times(), expected);
    assert_eq!(reading.packets[1].4, 1_500);
    let info = &reading.infos[0];
    assert_eq!((info.resolution_ns, info.snap_length), (1_000_000, Some(96)));
    assert_eq!(info.link_types, [1, 101]);
}

#[test]
fn pcapng_sections_have_their_own_byte_order_and_interfaces() {
    let bytes = [
        LITTLE.section(),
        LITTLE.interface(1, 0, &[]),
        LITTLE.interface(1, 0, &[]),
        LITTLE.enhanced(1, 1, b"a", 1),
        BIG.section(),
        BIG.interface(113, 0, &[(9, &[9])]),
        BIG.enhanced(0, 2_000, b"b", 1),
        BIG.enhanced(1, 3_000, b"this section has no interface 1", 31),
        BIG.obsolete(0, 3_000, b"c"),
    ]
    .concat();
    let reading = read(&bytes);
    assert_eq!(reading.times(), [1_000, 2_000, 3_000]);
    assert_eq!(reading.numbers(), [1, 2, 3]);
    assert_eq!(reading.quality.unreadable_records, 1);
    assert_eq!(reading.infos[0].truncated, None);
}

#[test]
fn pcapng_simple_packets_get_the_time_of_the_packet_before_them_and_a_warning() {
    let bytes = [
        LITTLE.section(),
        LITTLE.interface(1, 4, &[]),
        LITTLE.enhanced(0, 77, b"a", 1),
        LITTLE.simple(b"bc"),
        // Longer than the snap length of 4: the block contains 4 bytes.
        LITTLE.block(3, &[9u32.to_le_bytes().as_slice(), b"defg"].concat()),
    ]
    .concat();
    let reading = read(&bytes);
    let expected =
        [(0, 1, 77_000, b"a".to_vec(), 1), (0, 2, 77_000, b"bc".to_vec(), 2), (0, 3, 77_000, b"defg".to_vec(), 9)];
    assert_eq!(reading.packets, expected);
    assert!(reading.infos[0].warnings[0].contains("Simple Packet"));
}

#[test]
fn pcapng_blocks_of_other_kinds_are_passed_over() {
    let bytes = [
        BIG.section(),
        BIG.block(5, &[0; 40]),
        BIG.interface(1, 0, &[]),
        BIG.block(0x8000_0001, b"own"),
        BIG.enhanced(0, 1, b"a", 1),
    ]
    .concat();
    assert_eq!(read(&bytes).times(), [1_000]);
}

#[test]
fn pcapng_blocks_that_wireshark_shows_take_a_packet_number() {
    // tshark 4.0.17 numbers the packets of such a file 1, 3, 5, 7 and 8.
    let bytes = [
        LITTLE.section(),
        LITTLE.interface(1, 0, &[]),
        LITTLE.enhanced(0, 1, b"a", 1),
        LITTLE.block(9, b"__REALTIME_TIMESTAMP=5\n"),
        LITTLE.enhanced(0, 3, b"b", 1),
        LITTLE.block(0x0bad, b"\xd9\x7e\0\0data"),
        LITTLE.enhanced(0, 2, b"c", 1),
        LITTLE.block(0x4000_0bad, b"\xd9\x7e\0\0data"),
        LITTLE.enhanced(0, 4, b"d", 1),
        LITTLE.block(5, &[0; 12]),
        LITTLE.enhanced(0, 5, b"e", 1),
    ]
    .concat();
    assert_eq!(read(&bytes).numbers(), [1, 5, 3, 7, 8]);
    let piped = Reading::read(CaptureSet::from_reader("-", Box::new(std::io::Cursor::new(bytes))).unwrap());
    assert_eq!(piped.numbers(), [1, 5, 3, 7, 8]);
}

#[test]
fn snoop_records_are_padded() {
    let reading = read(&snoop(&[(3, 4, b"abcde", 60), (3, 5, b"wxyz", 4)]));
    let expected = [(0, 1, 3 * SECOND + 4_000, b"abcde".to_vec(), 60), (0, 2, 3 * SECOND + 5_000, b"wxyz".to_vec(), 4)];
    assert_eq!(reading.packets, expected);
    assert_eq!((&*reading.infos[0].format, reading.infos[0].link_types.as_slice()), ("snoop", [1].as_slice()));
}

#[test]
fn a_file_without_packets_is_a_capture() {
    for bytes in [pcap(0xa1b2_c3d4, false, &[]), LITTLE.section(), snoop(&[])] {
        let reading = read(&bytes);
        assert!(reading.packets.is_empty());
        assert_eq!((reading.infos[0].first, reading.infos[0].truncated.as_ref()), (None, None));
    }
}

#[test]
fn a_cut_file_gives_the_packets_in_front_of_the_cut_and_says_where() {
    let whole = pcap(0xa1b2_c3d4, false, &[(1, 0, b"first"), (2, 0, b"second")]);
    let second = 24 + 16 + 5;
    for length in [second + 3, second + 16, whole.len() - 1] {
        let reading = read(&whole[..length]);
        assert_eq!(reading.times(), [SECOND]);
        let message = reading.infos[0].truncated.as_deref().unwrap();
        assert!(message.contains("packet 2, byte 45"), "{message}");
        assert_eq!(reading.quality.truncated_captures, 1);
    }
    assert_eq!(read(&whole[..second]).infos[0].truncated, None);
}

#[test]
fn an_absurd_length_ends_the_file_with_its_place() {
    let mut bytes = pcap(0xa1b2_c3d4, false, &[(1, 0, b"first"), (2, 0, b"second")]);
    bytes[24 + 16 + 5 + 8..][..4].copy_from_slice(&0xfff0_0000u32.to_le_bytes());
    let reading = read(&bytes);
    assert_eq!(reading.times(), [SECOND]);
    let message = reading.infos[0].truncated.as_deref().unwrap();
    assert!(message.contains("captured length 4293918720") && message.contains("packet 2, byte 45"), "{message}");
}

#[test]
fn what_is_no_capture_is_refused_with_a_reason() {
    assert!(error(b"").ends_with("empty file; capture or copy it again"));
    assert!(error(b"PNG\r\n").contains("not a capture file (starts with 50 4e 47 0d 0a)"));
    assert!(error(b"hello world").contains("not a capture file (starts with \"hello wo\")"));
    assert!(error(b"GMBU\0\x02").contains("the Network Monitor file header is cut off after 6 bytes"));
    assert!(error(b"XCP\0").contains("editcap -F pcapng"));
    assert!(error(b"BZh9").contains("bunzip2"));
    assert!(error(&pcap(0xa1b2_c3d4, true, &[])[..23]).contains("pcap file header is cut off after 23 bytes"));
    let missing = CaptureSet::open(&[CaptureInput::from_argument("/no/such/file.pcap")]).err().unwrap().to_string();
    assert!(missing.starts_with("cannot open /no/such/file.pcap: No such file"), "{missing}");
    assert!(matches!(
        CaptureSet::open(&[CaptureInput::from_argument("/")]).err(),
        Some(CaptureError::IsDirectory { .. })
    ));
}

/// Parses arbitrary bytes to their end; the parser must always make progress.
fn walk(mut format: CaptureParser, bytes: &[u8]) -> usize {
    let mut interfaces = Interfaces::default();
    let (mut position, mut packets) = (0, 0);
    loop {
        let window = bytes.get(position..).unwrap_or_default();
        match format.step(&mut interfaces, window) {
            ParseStep::Packet(record, length) => {
                assert!(record.data_start + record.data_length <= length && length <= window.len());
                assert!(record.wire_length as usize >= record.data_length);
                position += length;
                packets += 1;
            }
            ParseStep::Skip { length, .. } => {
                assert!(length > 0);
                position += length;
            }
            ParseStep::More(need) => {
                assert!(need > window.len(), "more bytes are only asked for where they are missing");
                return packets;
            }
            ParseStep::Stop(_) => return packets,
        }
    }
}

/// Generates bytes with plausible little-endian block and record fields more often than random data would have.
fn plausible_bytes() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        any::<u32>(),
        0u32..64,
        Just(0x0a0d_0d0a),
        Just(0x1a2b_3c4d),
        Just(0x4d3c_2b1a),
        Just(0x0009_0001),
    ];
    proptest::collection::vec(word, 0..200).prop_map(|words| words.iter().flat_map(|w| w.to_le_bytes()).collect())
}

/// Builds a Network Monitor file: version (major, minor), frames of (microseconds from the start, network, bytes), with
/// this many bytes between them. It was started at 2026-11-24 08:00:01.250 UTC.
fn netmon(version: (u8, u8), gap: usize, frames: &[(u64, u16, &[u8])]) -> Vec<u8> {
    let mut bytes = if version.0 == 1 { b"RTSS".to_vec() } else { b"GMBU".to_vec() };
    bytes.extend([version.1, version.0, 1, 0]);
    bytes.extend([2026u16, 11, 2, 24, 8, 0, 1, 250].map(u16::to_le_bytes).concat());
    bytes.resize(128, 0);
    let mut offsets = Vec::new();
    for (micros, network, data) in frames {
        bytes.resize(bytes.len() + gap, 0xee);
        offsets.extend((bytes.len() as u32).to_le_bytes());
        match version {
            (1, _) => bytes
                .extend([(micros / 1_000) as u32, (data.len() as u32) << 16 | 1_500].map(u32::to_le_bytes).concat()),
            _ => bytes
                .extend([micros.to_le_bytes(), (u64::from(data.len() as u32) << 32 | 1_500).to_le_bytes()].concat()),
        }
        bytes.extend_from_slice(data);
        // Ticks of 100 ns from 1601 to 1970, and to the start.
        let file_time = 116_444_736_000_000_000 + 17_955_072_012_500_000 + micros * 10 + 3;
        let trailer = [&network.to_le_bytes()[..], &[0; 4], &file_time.to_le_bytes(), &[0]].concat();
        bytes.extend_from_slice(
            &trailer[..if version.0 == 1 { 0 } else { [0, 2, 6, 15][usize::from(version.1.min(3))] }],
        );
    }
    let place = [bytes.len() as u32, offsets.len() as u32].map(u32::to_le_bytes).concat();
    bytes[24..32].copy_from_slice(&place);
    bytes.extend(offsets);
    bytes
}

/// 2026-11-24 08:00:01.250 UTC.
const START: i64 = 1_795_507_201_250_000_000;

#[test]
fn versions_of_network_monitor_differ_in_clock_and_trailer() {
    let frames: [(u64, u16, &[u8]); 2] = [(2_000, 1, b"first"), (3_500, 8, b"second")];
    for (version, second, resolution, link_types) in [
        ((1, 1), 3_000_000, 1_000_000, vec![1]),
        ((2, 0), 3_500_000, 1_000, vec![1]),
        ((2, 1), 3_500_000, 1_000, vec![1, 101]),
        ((2, 2), 3_500_000, 1_000, vec![1, 101]),
        ((2, 3), 3_500_300, 100, vec![1, 101]),
    ] {
        let bytes = netmon(version, 0, &frames);
        for reading in [
            read(&bytes),
            Reading::read(CaptureSet::from_reader("x", Box::new(std::io::Cursor::new(bytes.clone()))).unwrap()),
        ] {
            let name = if version.0 == 1 { "Network Monitor 1" } else { "Network Monitor 2" };
            let info = &reading.infos[0];
            assert_eq!((&*info.format, info.packets, info.truncated.as_deref()), (name, 2, None), "{version:?}");
            assert_eq!((info.resolution_ns, &info.link_types), (resolution, &link_types), "{version:?}");
            assert_eq!(reading.packets[1], (0, 2, START + second, b"second".to_vec(), 1_500), "{version:?}");
        }
    }
}

#[test]
fn events_of_network_monitor_are_no_packets_but_numbered() {
    let frames: [(u64, u16, &[u8]); 5] =
        [(1, 1, b"a"), (2, 0xffe0, b"event"), (3, 0xfffd, b"adapters"), (4, 0xe000 + 113, b"b"), (5, 77, b"unknown")];
    let reading = read(&netmon((2, 2), 0, &frames));
    assert_eq!(reading.numbers(), [1, 3]);
    assert_eq!((reading.quality.unreadable_records, &reading.infos[0].link_types), (1, &vec![1, 113]));
}

#[test]
fn radio_headers_of_network_monitor_are_skipped() {
    // Version 2, length 32.
    let data = [&[2, 32, 0][..], &[7; 29], b"frame"].concat();
    let reading = read(&netmon((2, 1), 0, &[(1, 6, &data)]));
    assert_eq!((&reading.packets[0].3[..], &reading.infos[0].link_types), (&b"frame"[..], &vec![105]));
}

#[test]
fn gaps_between_frames_of_network_monitor_are_skipped_by_the_table() {
    let frames: [(u64, u16, &[u8]); 3] = [(1, 1, b"a"), (2, 1, b"bc"), (3, 1, b"d")];
    let reading = read(&netmon((2, 1), 40, &frames));
    assert_eq!(reading.numbers(), [1, 2, 3]);
    assert_eq!(reading.infos[0].truncated, None);
    // Without the end, and so without the table, the gap is damage.
    let cut = netmon((2, 1), 40, &frames);
    let reading = read(&cut[..cut.len() - 20]);
    assert_eq!((reading.packets.len(), reading.infos[0].truncated.is_some()), (0, true));
}

/// Builds an ERF record of a type: seconds, fraction, extensions, bytes after them, and the length on the wire.
fn erf(kind: u8, (seconds, fraction): (u32, u32), extensions: usize, data: &[u8], wire: u16) -> Vec<u8> {
    let more = if extensions > 0 { 0x80 } else { 0 };
    let length = (16 + 8 * extensions + data.len()) as u16;
    let mut bytes = [fraction.to_le_bytes(), seconds.to_le_bytes()].concat();
    bytes.extend([kind | more, 4]);
    bytes.extend([length.to_be_bytes(), [0, 0], wire.to_be_bytes()].concat());
    for extension in 0..extensions {
        bytes.extend([if extension + 1 < extensions { 0x85 } else { 5 }, 0, 0, 0, 0, 0, 0, 1]);
    }
    [bytes, data.to_vec()].concat()
}

#[test]
fn erf_records_have_binary_fractions_extensions_and_types() {
    let bytes = [
        erf(2, (1_700_000_000, 1 << 31), 0, b"\0\0ethernet", 1_500),
        erf(16, (1_700_000_001, 0), 2, b"\0\0tagged##", 6),
        // Padding, and a description, which Wireshark numbers.
        erf(48, (1_700_000_001, 0), 0, &[0; 8], 0),
        erf(27, (1_700_000_001, 0), 0, &[1; 8], 8),
        erf(22, (1_700_000_002, 0), 0, b"E", 40),
        erf(1, (1_700_000_003, 0), 0, b"\x0f\0\x08\0E", 5),
    ]
    .concat();
    let reading = read(&bytes);
    let second = 1_000_000_000;
    let expected = [
        (0, 1, 1_700_000_000 * second + 500_000_000, b"ethernet".to_vec(), 1_500),
        (0, 2, 1_700_000_001 * second, b"tagged".to_vec(), 6),
        (0, 4, 1_700_000_002 * second, b"E".to_vec(), 40),
        (0, 5, 1_700_000_003 * second, b"\x0f\0\x08\0E".to_vec(), 5),
    ];
    assert_eq!(reading.packets, expected);
    let info = &reading.infos[0];
    assert_eq!((&*info.format, info.resolution_ns, info.link_types.as_slice()), ("ERF", 1, &[1, 228, 104][..]));
}

#[test]
fn bytes_that_only_begin_like_erf_are_no_capture() {
    let record = erf(2, (1_700_000_000, 0), 0, &[0; 60], 60);
    assert!(matches!(format::sniff(&record), Sniffed::Capture(CaptureParser::Erf, 0)));
    for (at, value) in [(7, 0x01), (8, 99), (10, 9), (14, 0x7f), (15, 0)] {
        let mut other = record.clone();
        other[at] = value;
        if at == 15 {
            other[14] = 0;
        }
        assert_eq!(format::sniff(&other), Sniffed::Unknown, "{value} at {at}");
    }
    let far = erf(2, (1_900_000_000, 0), 0, &[0; 60], 60);
    assert_eq!(format::sniff(&[record, far].concat()), Sniffed::Unknown);
}

#[test]
fn ip_labelled_ethernet_is_read_as_ip_with_a_warning() {
    // RFC 791: 20 bytes of header, with the checksum of these fields.
    let ip = |id: u8| {
        let mut packet = vec![0x45, 0, 0, 24, 0, id, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 2, 3, 4];
        let sum: u32 = packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        packet[10..12].copy_from_slice(&(!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes());
        packet
    };
    let packets = [ip(1), ip(2)];
    let plain = pcap(0xa1b2_c3d4, false, &[(1, 0, &packets[0]), (2, 0, &packets[1])]);
    let blocks = [
        LITTLE.section(),
        LITTLE.interface(1, 0, &[]),
        LITTLE.enhanced(0, 1, &packets[0], 24),
        LITTLE.enhanced(0, 2, &packets[1], 24),
    ]
    .concat();
    for bytes in [plain.clone(), blocks] {
        let stream = CaptureSet::from_reader("x", Box::new(std::io::Cursor::new(bytes.clone()))).unwrap();
        for reading in [read(&bytes), Reading::read(stream)] {
            let info = &reading.infos[0];
            assert_eq!(info.link_types, [101]);
            assert!(info.warnings[0].contains("labelled Ethernet"), "{:?}", info.warnings);
        }
    }
    // One damaged header, or one other packet, and the label is believed.
    let mut damaged = plain;
    *damaged.last_mut().unwrap() = 9;
    let last = damaged.len() - 24;
    damaged[last + 8] = 1;
    assert_eq!(read(&damaged).infos[0].link_types, [1]);
}

#[test]
fn foreign_formats_are_named_with_their_converter() {
    // A trace buffer of 64 KiB and the header in it (WMI_BUFFER_HEADER, TRACE_LOGFILE_HEADER).
    let mut trace = vec![0; 200];
    trace[..4].copy_from_slice(&65_536u32.to_le_bytes());
    trace[72..76].copy_from_slice(&[2, 0, 2, 0xc0]);
    trace[104..108].copy_from_slice(&65_536u32.to_le_bytes());
    let error = error(&trace);
    assert!(
        error.contains("Windows event trace (ETL) captures are not supported; convert it with: pktmon etl2pcap /"),
        "{error}"
    );
    assert!(
        self::error(b"LOGG\x90\0\0\0")
            .contains("Vector BLF captures are not supported; convert it with: editcap -F pcapng /")
    );
    assert!(
        self::error(b"0000  00 11 22 33").contains("hex dump captures are not supported; convert it with: text2pcap")
    );
    assert!(self::error(b"interfaces=[any]\nfilters=[port 445]\n").contains("convert it with: fgt2eth -in /"));
}

#[test]
fn the_command_of_a_converter_quotes_the_name_of_the_file() {
    let directory = tempfile::tempdir().expect("there is a directory for temporary files");
    let path = directory.path().join("it's slow.blf");
    std::fs::write(&path, b"LOGG").expect("it can be written");
    let Err(error) = CaptureSet::open(&[CaptureInput::File(path)]) else { panic!("no capture") };
    assert!(error.to_string().ends_with(r"it'\''s slow.blf' OUT.pcapng"), "{error}");
}

proptest! {
    #[test]
    fn any_bytes_never_panic_in_a_parser(bytes in plausible_bytes()) {
        let own = [pcap(0xa1b2_c3d4, false, &[]), pcap(0xa1b2_cd34, true, &[]), snoop(&[])];
        let own = own.into_iter().chain([(1, 1), (2, 0), (2, 3)].map(|version| netmon(version, 0, &[])));
        for header in own {
            let Sniffed::Capture(format, _) = format::sniff(&header) else { panic!("a header of our own") };
            walk(format, &bytes);
        }
        walk(CaptureParser::Pcapng(PcapngSection::start()), &bytes);
        walk(CaptureParser::Erf, &bytes);
        let sections = [LITTLE.section(), LITTLE.interface(1, 0, &[]), bytes].concat();
        walk(CaptureParser::Pcapng(PcapngSection::start()), &sections);
    }

    #[test]
    fn any_bytes_never_panic_in_sniffing(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        format::sniff(&bytes);
        format::shown(&bytes);
    }

    #[test]
    fn a_damaged_capture_reads_the_same_from_a_file_and_from_a_stream(
        damage in proptest::collection::vec((0usize..400, any::<u8>()), 1..8),
    ) {
        let mut bytes = [
            LITTLE.section(), LITTLE.interface(1, 0, &[(9, &[6])]),
            LITTLE.enhanced(0, 5, b"abc", 3), LITTLE.enhanced(0, 4, b"defgh", 5), LITTLE.simple(b"xy"),
            BIG.section(), BIG.interface(1, 0, &[]), BIG.enhanced(0, 9, b"abcdef", 6), BIG.obsolete(0, 9, b"abcdef"),
        ].concat();
        for (at, value) in damage {
            let at = 28 + at % (bytes.len() - 28);
            bytes[at] = value;
        }
        let whole = read(&bytes);
        let stream = Reading::read(CaptureSet::from_reader("x", Box::new(std::io::Cursor::new(bytes))).unwrap());
        prop_assert_eq!(&whole.packets, &stream.packets);
        prop_assert_eq!(whole.infos[0].truncated.is_some(), stream.infos[0].truncated.is_some());
        prop_assert_eq!(whole.quality.unreadable_records, stream.quality.unreadable_records);
    }
}
