//! Seeds for capture files and packets.

use super::streams::conversations;
use smbscope_testkit::script::{Ids, Kind, Script, Step};
use smbscope_testkit::{Conversation, Packet, damage, pcap};
use std::io::Write;

type Named = Vec<(String, Vec<u8>)>;

/// Returns a short exchange, for formats whose payload does not matter.
fn short() -> Vec<Packet> {
    Conversation::new().client_sends(100, *b"what").server_sends(200, *b"that").closes(300).packets()
}

/// pcap variants (microseconds, nanoseconds, modified) in both byte orders.
pub(crate) fn pcap() -> Named {
    let little = pcap::micros(&short());
    let mut seeds = vec![("micros_le".to_owned(), little.clone()), ("nanos_le".to_owned(), pcap::nanos(&short()))];
    let mut backwards = short();
    backwards.reverse();
    seeds.push(("falling_times".to_owned(), pcap::micros(&backwards)));
    seeds.push(("cut".to_owned(), little[..little.len() - 7].to_vec()));
    let swapped = swapped(&little, 16);
    seeds.push(("micros_be".to_owned(), swapped));
    let mut modified = Vec::from(0xa1b2_cd34u32.to_le_bytes());
    modified.extend(&little[4..24]);
    let mut rest = &little[24..];
    while rest.len() >= 16 {
        let length = u32::from_le_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
        modified.extend(&rest[..16]);
        // Interface index, protocol, packet type, padding.
        modified.extend([2, 0, 0, 0, 8, 0, 0, 0]);
        modified.extend(&rest[16..16 + length]);
        rest = &rest[16 + length..];
    }
    seeds.push(("modified_le".to_owned(), modified));
    seeds
}

/// Converts a file to the other byte order.
fn swapped(file: &[u8], record_header: usize) -> Vec<u8> {
    let word = |bytes: &[u8]| [bytes[3], bytes[2], bytes[1], bytes[0]];
    let mut out = Vec::from(word(&file[..4]));
    out.extend([0, 2, 0, 4]);
    out.extend(file[8..24].chunks(4).flat_map(word));
    let mut rest = &file[24..];
    while rest.len() >= record_header {
        let length = u32::from_le_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
        out.extend(rest[..record_header].chunks(4).flat_map(word));
        out.extend(&rest[record_header..record_header + length]);
        rest = &rest[record_header + length..];
    }
    out
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, &body, &length].concat()
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Sections, interfaces with individual clocks, and every block type.
pub(crate) fn pcapng() -> Named {
    let section = block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    let plain = block(1, &words(&[1, 0]));
    // if_tsresol 10^-9, if_tsoffset 1 s.
    let clocked = block(1, &[words(&[1, 96, 0x0001_0009, 9, 0x0008_000e, 1, 0]), words(&[0])].concat());
    let frames: Vec<Vec<u8>> = short().iter().map(Packet::ethernet).collect();
    let enhanced = |interface: u32, ticks: u32, frame: &[u8]| {
        let length = frame.len() as u32;
        block(6, &[words(&[interface, 0x0005_d000, ticks, length, length]), frame.to_vec()].concat())
    };
    let simple = block(3, &[words(&[frames[0].len() as u32]), frames[0].clone()].concat());
    let length = frames[1].len() as u32;
    let obsolete = block(2, &[words(&[0, 0x0005_d000, 9, length, length]), frames[1].clone()].concat());
    let names = block(4, &words(&[0x0008_0001, 0x0100_007f, 0x0061_6263, 0]));
    let statistics = block(5, &words(&[0, 0x0005_d000, 1, 0]));
    let journal = block(9, b"MESSAGE=x\n");
    let ordered: Vec<u8> = frames.iter().zip(1..).flat_map(|(frame, ticks)| enhanced(0, ticks * 100, frame)).collect();
    let mixed: Vec<u8> =
        frames.iter().zip(1..).flat_map(|(frame, ticks)| enhanced(ticks % 2, 1000 - ticks * 100, frame)).collect();
    let mut big = vec![0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0];
    big.extend([0xff; 8]);
    big.extend([0, 0, 0, 28]);
    big.extend([0, 0, 0, 1, 0, 0, 0, 20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20]);
    big.extend([0, 0, 0, 3, 0, 0, 0, 20, 0, 0, 0, 4, 1, 2, 3, 4, 0, 0, 0, 20]);
    vec![
        ("one_interface".into(), [section.clone(), plain.clone(), ordered].concat()),
        ("two_clocks".into(), [section.clone(), plain.clone(), clocked, mixed].concat()),
        ("every_block".into(), [&section[..], &plain, &simple, &obsolete, &names, &statistics, &journal].concat()),
        ("two_sections".into(), [section, plain, simple, big.clone()].concat()),
        ("big_endian".into(), big),
    ]
}

/// Records with padding.
pub(crate) fn snoop() -> Named {
    let mut file = Vec::from(*b"snoop\0\0\0");
    file.extend([0, 0, 0, 2, 0, 0, 0, 4]);
    for (index, packet) in short().iter().enumerate() {
        let frame = packet.ethernet();
        let padded = frame.len().next_multiple_of(4);
        for field in [frame.len(), frame.len(), 24 + padded, 0, 1_700_000_000, index * 100] {
            file.extend((field as u32).to_be_bytes());
        }
        file.extend(&frame);
        file.resize(file.len() + padded - frame.len(), 0);
    }
    let cut = file[..file.len() - 30].to_vec();
    vec![("ethernet".into(), file), ("cut".into(), cut)]
}

/// Version 1, and version 2.3 with a trailer per frame; each with a table of the frames.
pub(crate) fn netmon() -> Named {
    let file = |second: bool| {
        let mut file = if second { b"GMBU\x03\x02".to_vec() } else { b"RTSS\x01\x01".to_vec() };
        file.extend([1, 0]);
        file.extend([2026u16, 11, 2, 24, 8, 0, 1, 250].map(u16::to_le_bytes).concat());
        file.resize(128, 0);
        let mut table = Vec::new();
        for (number, packet) in short().iter().enumerate() {
            table.extend((file.len() as u32).to_le_bytes());
            let frame = packet.ethernet();
            let (time, length) = (number as u64 * 100, frame.len() as u64);
            match second {
                true => file.extend([time.to_le_bytes(), (length << 32 | length).to_le_bytes()].concat()),
                false => file.extend((length << 48 | length << 32 | time).to_le_bytes()),
            }
            file.extend(&frame);
            if second {
                file.extend([1, 0, 0, 0, 0, 0]);
                file.extend((134_399_808_012_500_000 + 1_000 * number as u64).to_le_bytes());
                file.push(0);
            }
        }
        let place = [file.len() as u32, table.len() as u32].map(u32::to_le_bytes).concat();
        file[24..32].copy_from_slice(&place);
        file.extend(table);
        file
    };
    vec![("version_1".into(), file(false)), ("version_2_3".into(), file(true))]
}

/// Records of Ethernet with and without an extension header.
pub(crate) fn erf() -> Named {
    let mut file = Vec::new();
    for (number, packet) in short().iter().enumerate() {
        let frame = packet.ethernet();
        let extension: &[u8] = if number % 2 == 0 { &[] } else { &[5, 0, 0, 0, 0, 0, 0, 1] };
        let [length, wire] =
            [18 + extension.len() + frame.len(), frame.len()].map(|length| (length as u16).to_be_bytes());
        file.extend([0, 0, 0, number as u8, 0, 0xf1, 0x53, 0x65]);
        file.extend([if extension.is_empty() { 2 } else { 0x82 }, 4]);
        file.extend([length, [0, 0], wire].concat());
        file.extend(extension);
        file.extend([0, 0]);
        file.extend(&frame);
    }
    vec![("ethernet".into(), file)]
}

type Encode = fn(&[u8]) -> Vec<u8>;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("a vector takes every byte");
    encoder.finish().expect("a vector takes every byte")
}

/// Every compression format: complete, truncated and as two members.
pub(crate) fn compressed() -> Named {
    let file = pcap::micros(&short());
    let (front, back) = file.split_at(150);
    let zstd: Encode = |bytes| zstd::encode_all(bytes, 3).expect("a vector takes every byte");
    let lz4: Encode = |bytes| {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).expect("a vector takes every byte");
        encoder.finish().expect("a vector takes every byte")
    };
    let xz: Encode = |bytes| {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
        encoder.write_all(bytes).expect("a vector takes every byte");
        encoder.finish().expect("a vector takes every byte")
    };
    let mut seeds = Vec::new();
    let encoders: [(&str, Encode); 4] = [("gzip", gzip), ("zstd", zstd), ("lz4", lz4), ("xz", xz)];
    for (name, encode) in encoders {
        let whole = encode(&file);
        seeds.push((format!("{name}_cut"), whole[..whole.len() - 9].to_vec()));
        seeds.push((name.to_owned(), whole));
        seeds.push((format!("{name}_twice"), [encode(front), encode(back)].concat()));
    }
    // A leading skippable frame, as written by parallel compressors.
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4][..], &zstd(&file)].concat();
    seeds.push(("zstd_skippable".to_owned(), skippable));
    seeds
}

/// Returns an entry of the `packets` target.
fn entry(kind: u8, more: u8, packet: &[u8]) -> Vec<u8> {
    [&[kind, more][..], &(packet.len() as u16).to_le_bytes(), packet].concat()
}

/// Every link type, VLAN tags, both IP versions, fragments.
pub(crate) fn packets() -> Named {
    let frame = short()[3].ethernet();
    let (ethernet, ip) = frame.split_at(14);
    let tcp = &ip[20..];
    let mut ipv6 = vec![0x60, 0, 0, 0, 0, tcp.len() as u8, 6, 64];
    ipv6.extend([0xfe; 16]);
    ipv6.extend([0xfd; 16]);
    ipv6.extend(tcp);
    let tagged = |tags: &[u8], ip: &[u8]| [&ethernet[..12], tags, ip].concat();
    let lists: Vec<(&str, Vec<u8>)> = vec![
        ("ethernet", entry(0, 0, &frame)),
        ("ethernet_cut", entry(0, 9, &frame[..40])),
        ("vlan", entry(0, 0, &tagged(&[0x81, 0, 0, 5, 8, 0], ip))),
        ("qinq", entry(0, 0, &tagged(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 0x86, 0xdd], &ipv6))),
        ("mpls", entry(0, 0, &tagged(&[0x88, 0x47, 0, 1, 0, 64, 0, 1, 1, 64], ip))),
        ("pppoe", entry(0, 0, &tagged(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 46, 0, 0x21], ip))),
        ("snap", entry(0, 0, &tagged(&[0, 54, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], ip))),
        ("sll", entry(1, 0, &[&[0; 14][..], &[8, 0], ip].concat())),
        ("sll2", entry(2, 0, &[&[8, 0][..], &[0; 18], ip].concat())),
        ("raw", entry(3, 0, ip)),
        ("raw_ipv6", entry(7, 0, &ipv6)),
        ("loopback", entry(8, 0, &[&[2, 0, 0, 0][..], ip].concat())),
        ("fragments", fragments(ip)),
        ("fragments_ipv6", fragments_ipv6(&ipv6)),
        ("unsupported", entry(10, 0, ip)),
    ];
    lists.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

/// Splits a datagram into three fragments, the last one first.
fn fragments(ip: &[u8]) -> Vec<u8> {
    let (header, payload) = ip.split_at(20);
    let part = |from: usize, to: usize, more: bool| {
        let mut part = [header, &payload[from..to]].concat();
        let total = part.len() as u16;
        part[2..4].copy_from_slice(&total.to_be_bytes());
        part[6..8].copy_from_slice(&((from as u16 / 8) | (u16::from(more) << 13)).to_be_bytes());
        entry(3, 0, &part)
    };
    [part(16, payload.len(), false), part(0, 8, true), part(8, 16, true)].concat()
}

fn fragments_ipv6(ipv6: &[u8]) -> Vec<u8> {
    let (header, payload) = ipv6.split_at(40);
    let part = |from: usize, to: usize, more: bool| {
        let offset = (from as u16 | u16::from(more)).to_be_bytes();
        let mut part = [header, &[6, 0, offset[0], offset[1], 0, 0, 0, 1], &payload[from..to]].concat();
        part[5] = (part.len() - 40) as u8;
        part[6] = 44;
        entry(7, 0, &part)
    };
    [part(0, 16, true), part(16, payload.len(), false)].concat()
}

/// Conversations as capture files, each also damaged.
pub(crate) fn pipeline() -> Named {
    let mut seeds: Named = conversations()
        .into_iter()
        .map(|(name, conversation)| (name.to_owned(), pcap::nanos(&conversation.packets())))
        .collect();
    for (name, ids) in [("script_smb2", Ids::Smb2), ("script_smb1", Ids::Smb1 { mids: 3 })] {
        let kinds =
            [Kind::Open, Kind::Read, Kind::Write, Kind::Query, Kind::Echo, Kind::Read, Kind::Close, Kind::Query];
        let steps = kinds.iter().cycle().take(16).zip(1u16..).map(|(kind, index)| Step {
            kind: *kind,
            size: index * 37 % 300,
            gap_us: index * 61 % 200 + 1,
            service_us: index * 97 % 300 + 1,
            interim: index % 5 == 0,
        });
        let script = Script { ids, window: 3, segment_size: 200, steps: steps.collect() };
        let packets = script.play().packets;
        seeds.push((name.to_owned(), pcap::nanos(&packets)));
        let damaged = damage::drop_some(&damage::retransmit_in_part(&packets, 1, 0.1, 4), 2, 0.05);
        seeds.push((format!("{name}_damaged"), pcap::nanos(&damaged)));
        seeds.push((format!("{name}_snapped"), gzip(&pcap::nanos(&damage::snap(&packets, 128)))));
    }
    seeds
}
