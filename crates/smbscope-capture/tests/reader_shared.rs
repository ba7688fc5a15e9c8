//! Tests on the development captures: every variant of a capture must yield the segments of its parent.
//!
//! The captures are expected in `SMBSCOPE_SHARED_CAPTURES`, or in `../shared/captures` next to the workspace. Without
//! them, these tests report that and pass.

use smbscope_capture::decode::Decoder;
use smbscope_capture::reader::{CaptureError, CaptureInput, CaptureSet};
use smbscope_model::{CaptureInfo, Quality};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

const PARENT: &str = "own/nbench32_NT1_8proc.pcap.zst";

fn shared(file: &str) -> Option<PathBuf> {
    let root = std::env::var_os("SMBSCOPE_SHARED_CAPTURES")
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures"));
    let path = root.join(file);
    if path.exists() {
        return Some(path);
    }
    smbscope_testkit::skip::unable(format_args!("{} is not here", path.display()));
    None
}

/// Properties of a segment that must not depend on file format, link type or file order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    time: i64,
    source: SocketAddr,
    destination: SocketAddr,
    sequence: u32,
    acknowledgment: u32,
    flags: u8,
    window: u16,
    timestamp_value: Option<u32>,
    payload: Vec<u8>,
    payload_length: u32,
}

struct Reading {
    infos: Vec<CaptureInfo>,
    quality: Quality,
    segments: Vec<Seen>,
    numbers: Vec<u64>,
}

fn read(paths: &[PathBuf]) -> Reading {
    let inputs: Vec<CaptureInput> = paths.iter().cloned().map(CaptureInput::File).collect();
    let mut set = CaptureSet::open(&inputs).unwrap();
    let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
    let (mut segments, mut numbers, mut last) = (Vec::new(), Vec::new(), i64::MIN);
    while let Some(packet) = set.next_packet().unwrap() {
        assert!(packet.stamp.time.0 >= last, "packets come in time order");
        last = packet.stamp.time.0;
        numbers.push(packet.stamp.packet.number());
        if let Some(segment) = decoder.decode(&packet, &mut quality) {
            segments.push(Seen {
                time: segment.stamp.time.0,
                source: segment.source,
                destination: segment.destination,
                sequence: segment.sequence,
                acknowledgment: segment.acknowledgment,
                flags: segment.flags.0,
                window: segment.window,
                timestamp_value: segment.timestamp_value,
                payload: segment.payload.to_vec(),
                payload_length: segment.payload_length,
            });
        }
    }
    decoder.finish(&mut quality);
    quality.merge(set.quality());
    assert_eq!(quality.packets, numbers.len() as u64);
    let unread = quality.malformed_packets + quality.headers_not_captured;
    assert_eq!(quality.packets, quality.tcp_packets + quality.not_tcp + unread);
    assert_eq!(quality.packets, set.captures().iter().map(|info| info.packets).sum::<u64>());
    let (done, total) = set.progress();
    let damaged = set.captures().iter().any(|info| info.truncated.is_some());
    assert!(damaged || done * 100 > total.unwrap() * 98, "{done} of {total:?} bytes done");
    Reading { infos: set.captures().to_vec(), quality, segments, numbers }
}

fn variant(name: &str) -> Option<(Reading, Reading)> {
    let parent = shared(PARENT)?;
    let variant = shared(&format!("damaged/nbench32_NT1_8proc__{name}.zst"))?;
    Some((read(&[parent]), read(&[variant])))
}

#[test]
fn other_formats_hold_the_same_segments_as_their_parent() {
    for (name, format) in [
        ("be.pcap", "pcap"),
        ("be_ns.pcap", "pcap (ns)"),
        ("be.pcapng", "pcapng"),
        ("sections.pcapng", "pcapng"),
        ("twoif.pcapng", "pcapng"),
        ("twoif_tsresol.pcapng", "pcapng"),
        ("tsoffset.pcapng", "pcapng"),
        ("vlan42.pcap", "pcap"),
        ("qinq.pcap", "pcap"),
        ("rawip.pcap", "pcap"),
        ("null.pcap", "pcap"),
    ] {
        let Some((parent, variant)) = variant(name) else { return };
        assert_eq!(variant.infos[0].format, format, "{name}");
        assert_eq!(variant.infos[0].compression.as_deref(), Some("zstd"));
        assert_eq!(variant.infos[0].truncated, None, "{name}");
        assert_eq!(variant.segments.len(), 20_000, "{name}");
        assert!(variant.segments == parent.segments, "{name}");
    }
}

#[test]
fn binary_time_resolution_is_within_a_nanosecond_of_its_parent() {
    let Some((parent, variant)) = variant("tsresol_2e30.pcapng") else { return };
    assert_eq!(variant.infos[0].resolution_ns, 1);
    assert_eq!(parent.segments.len(), variant.segments.len());
    for (mine, parents) in variant.segments.iter().zip(&parent.segments) {
        assert!((mine.time - parents.time).abs() <= 1);
        assert_eq!(Seen { time: parents.time, ..mine.clone() }, *parents);
    }
}

#[test]
fn unsorted_files_come_out_in_order_and_keep_their_packet_numbers() {
    // index.tsv: all client packets first, then all server packets; packet numbers are positions in the file.
    let Some((parent, unsorted)) = variant("twoif_unsorted.pcapng") else { return };
    // Packets in the same microsecond come in file order, so only the order within a direction must be preserved.
    for (a, b) in [(&parent, &unsorted), (&unsorted, &parent)] {
        let server = a.segments[0].destination.ip();
        let of = |reading: &Reading, from_server: bool| -> Vec<Seen> {
            reading.segments.iter().filter(|s| (s.source.ip() == server) == from_server).cloned().collect()
        };
        assert!(of(a, true) == of(b, true) && of(a, false) == of(b, false));
    }
    let mut numbers = unsorted.numbers.clone();
    assert!(numbers.windows(2).any(|pair| pair[0] > pair[1]));
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(1..=20_000));
    assert!(unsorted.quality.packets_reordered_by_time > 0);
    assert_eq!(unsorted.quality.packets_out_of_time_order, 0);
}

#[test]
fn packets_moved_in_the_file_return_to_their_places() {
    let Some((parent, variant)) = variant("fileorder1.pcap") else { return };
    let order = |seen: &Seen| (seen.time, seen.source, seen.sequence, seen.payload_length, seen.acknowledgment);
    let (mut mine, mut parents) = (variant.segments, parent.segments);
    mine.sort_by_key(order);
    parents.sort_by_key(order);
    assert!(mine == parents);
    assert!(variant.quality.packets_reordered_by_time >= 150, "1% of 20,000 were moved by 1 to 5 places");
}

#[test]
fn cut_files_give_everything_in_front_of_the_cut() {
    for (name, decompressed_length) in [("trunc.pcap", 60), ("trunchdr.pcap", 60)] {
        let Some((parent, variant)) = variant(name) else { return };
        // capinfos counts 10,358 packets in both.
        assert_eq!(variant.segments.len(), 10_358, "{name}, cut at {decompressed_length}%");
        assert!(variant.segments == parent.segments[..10_358]);
        let message = variant.infos[0].truncated.as_deref().unwrap();
        assert!(message.contains("packet 10359") && message.contains("trunc"), "{message}");
        assert_eq!(variant.quality.truncated_captures, 1);
    }
}

#[test]
fn ip_version_6_holds_the_same_segments() {
    let Some((parent, mut variant)) = variant("ipv6.pcap") else { return };
    // index.tsv: the addresses are fd00::a.b.c.d.
    let to_v4 = |address: &mut SocketAddr| {
        let IpAddr::V6(v6) = address.ip() else { panic!("{address} is not IPv6") };
        let [.., a, b, c, d] = v6.octets();
        address.set_ip(IpAddr::V4(Ipv4Addr::new(a, b, c, d)));
    };
    for segment in &mut variant.segments {
        to_v4(&mut segment.source);
        to_v4(&mut segment.destination);
    }
    assert!(variant.segments == parent.segments);
}

#[test]
fn ip_fragments_are_put_together() {
    let Some((parent, variant)) = variant("ipfrag5.pcap") else { return };
    // index.tsv: 277 packets became two fragments each, 1 µs apart.
    assert_eq!(variant.quality.ip_fragments, 2 * 277);
    assert_eq!(variant.quality.ip_datagrams_reassembled, 277);
    assert_eq!(variant.quality.ip_datagrams_incomplete, 0);
    assert_eq!(variant.segments.len(), parent.segments.len());
    let order =
        |seen: &Seen| (seen.source, seen.sequence, seen.acknowledgment, seen.payload_length, seen.timestamp_value);
    let (mut mine, mut parents) = (variant.segments, parent.segments);
    mine.sort_by_key(order);
    parents.sort_by_key(order);
    for (mine, parents) in mine.iter().zip(&parents) {
        assert!((0..=1_000).contains(&(mine.time - parents.time)));
        assert_eq!(mine.payload, parents.payload);
    }
}

#[test]
fn snapped_captures_keep_payload_lengths() {
    for snap in ["snap64", "snap96", "snap128", "snap256"] {
        let Some((parent, variant)) = variant(&format!("{snap}.pcap")) else { return };
        assert_eq!(variant.segments.len(), 20_000);
        for (mine, parents) in variant.segments.iter().zip(&parent.segments) {
            assert_eq!((mine.payload_length, mine.sequence), (parents.payload_length, parents.sequence));
            assert!(parents.payload.starts_with(&mine.payload));
        }
        assert!(variant.quality.snapped_packets > 0);
    }
}

#[test]
fn formats_and_compressions_hold_the_first_1500_packets() {
    let Some(parent) = shared("own/smbclient_NT1.pcap.zst") else { return };
    let parent = read(&[parent]);
    for (name, format, compression) in [
        ("modpcap.zst", "modified pcap", "zstd"),
        ("nsecpcap.zst", "pcap (ns)", "zstd"),
        ("pcap.gz", "pcap", "gzip"),
        ("pcap.lz4", "pcap", "lz4"),
        ("pcap.xz", "pcap", "xz"),
        ("pcap.zst", "pcap", "zstd"),
        ("pcapng.zst", "pcapng", "zstd"),
        ("snoop.zst", "snoop", "zstd"),
        ("netmon2.zst", "Network Monitor 2", "zstd"),
    ] {
        let Some(path) = shared(&format!("formats/smbclient_NT1.{name}")) else { return };
        let reading = read(&[path]);
        let info = &reading.infos[0];
        assert_eq!((&*info.format, info.compression.as_deref()), (format, Some(compression)), "{name}");
        assert_eq!(reading.infos[0].packets, 1_500, "{name}");
        assert!(reading.segments == parent.segments[..reading.segments.len()], "{name}");
        assert_eq!(reading.segments.len(), 1_500, "{name}");
    }
}

#[test]
fn a_format_that_is_not_read_is_named() {
    let Some(path) = shared("formats/smbclient_NT1.ngsniffer.zst") else { return };
    let error = CaptureSet::open(&[CaptureInput::File(path)]).err().unwrap();
    assert!(matches!(error, CaptureError::Unsupported { .. }));
    let message = error.to_string();
    assert!(message.contains("NG Sniffer") && message.contains("editcap -F pcapng"), "{message}");
}

#[test]
fn every_shared_capture_is_read_without_loss() {
    let Some(own) = shared("own") else { return };
    for entry in std::fs::read_dir(own).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().ends_with(".pcap.zst") {
            let reading = read(std::slice::from_ref(&path));
            assert_eq!(reading.quality.malformed_packets, 0, "{}", path.display());
            assert_eq!(reading.infos[0].truncated, None);
            assert!(reading.quality.tcp_packets * 2 > reading.quality.packets, "{}", path.display());
        }
    }
}
