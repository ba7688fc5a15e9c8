//! Compressed files and pipes.

use super::*;
use std::io::Cursor;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const NO_MEMORY: CaptureBudget = CaptureBudget { memory: 0, runs: 1 << 18, window: 1 << 27 };

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let small_blocks = lz4_flex::frame::FrameInfo::new().block_size(lz4_flex::frame::BlockSize::Max64KB);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(small_blocks, Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Builds incompressible packets, so that truncating the compressed file truncates the packets in proportion.
fn noise(packets: u32) -> Vec<u8> {
    let mut state = 1u64;
    let mut bytes = pcap_of_times(0..packets, 1_000);
    for packet in bytes[24..].chunks_mut(1_016) {
        for byte in &mut packet[20..] {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
    }
    bytes
}

type Compress = fn(&[u8]) -> Vec<u8>;
const ALL: [(&str, Compress); 4] = [("gzip", gzip), ("zstd", zstd), ("lz4", lz4), ("xz", xz)];

#[test]
fn every_compression_in_one_piece_or_several_is_read() {
    let plain = noise(3_000);
    let expected = read(&plain);
    for (name, compress) in ALL {
        let (front, back) = plain.split_at(1_500_007);
        for bytes in [compress(&plain), [compress(front), compress(back)].concat()] {
            for limits in [NO_MEMORY, CaptureBudget::default()] {
                let reading = read_within(&[&bytes], limits).unwrap();
                assert!(reading.packets == expected.packets, "{name}");
                let info = &reading.infos[0];
                assert_eq!((info.compression.as_deref(), info.truncated.as_ref()), (Some(name), None));
                assert_eq!(info.bytes, bytes.len() as u64);
            }
            let piped = Reading::read(CaptureSet::from_reader("-", Box::new(Cursor::new(bytes.clone()))).unwrap());
            assert!(piped.packets == expected.packets, "{name}");
            assert_eq!(piped.infos[0].bytes, bytes.len() as u64);
        }
    }
}

#[test]
fn zstd_with_a_long_window_is_read() {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.window_log(28).unwrap();
    encoder.write_all(&noise(100)).unwrap();
    assert_eq!(read(&encoder.finish().unwrap()).packets.len(), 100);
}

#[test]
fn compressed_data_that_ends_early_gives_what_it_holds_and_a_warning() {
    let plain = noise(3_000);
    for (name, compress) in ALL {
        let mut bytes = compress(&plain);
        bytes.truncate(bytes.len() / 2);
        for limits in [NO_MEMORY, CaptureBudget::default()] {
            let reading = read_within(&[&bytes], limits).unwrap();
            // zstd blocks hold 128 KiB, these lz4 blocks 64 KiB; a truncated block is lost.
            let packets = reading.packets.len();
            assert!((300..=1_500).contains(&packets), "{name}: {packets}");
            let message = reading.infos[0].truncated.as_deref().unwrap();
            assert!(message.contains("ends early") && message.contains("decompressed"), "{name}: {message}");
            assert_eq!(reading.quality.truncated_captures, 1);
        }
    }
}

#[test]
fn damaged_compressed_data_gives_what_is_in_front_of_the_damage() {
    let plain = noise(3_000);
    for (name, compress) in [("gzip", gzip as Compress), ("zstd", zstd), ("xz", xz)] {
        let mut bytes = compress(&plain);
        let middle = bytes.len() / 2;
        bytes[middle..middle + 4_000].fill(0x55);
        let reading = read_within(&[&bytes], NO_MEMORY).unwrap();
        // gzip and xz store noise uncompressed and find the damage by checksum, zstd by block structure.
        assert!(reading.packets.len() >= 1_000, "{name}: {}", reading.packets.len());
        assert!(reading.quality.truncated_captures == 1 || reading.packets.len() == 3_000, "{name}");
    }
}

#[test]
fn a_pipe_out_of_order_is_put_in_order_within_its_window() {
    let bytes = pcap_of_times((0..20_000u32).map(|i| i ^ 0x3f), 60);
    let reading = Reading::read(CaptureSet::from_reader("-", Box::new(Cursor::new(bytes))).unwrap());
    assert!(reading.times().is_sorted());
    assert_eq!(reading.packets.len(), 20_000);
    assert!(reading.quality.packets_reordered_by_time > 0);
    assert_eq!(reading.quality.packets_out_of_time_order, 0);
}

#[test]
fn a_pipe_beyond_its_window_delivers_and_counts_what_comes_too_late() {
    let bytes = pcap_of_times((10_000..20_000u32).chain(0..100), 60);
    let reading = Reading::read(CaptureSet::from_reader("-", Box::new(Cursor::new(bytes))).unwrap());
    assert_eq!(reading.packets.len(), 10_100);
    assert_eq!(reading.quality.packets_out_of_time_order, 100);
    assert_eq!(reading.quality.packets_reordered_by_time, 0);
}

#[test]
fn packets_of_a_live_pipe_come_while_it_is_open() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&pcap_of_times([1, 2], 60)).unwrap();
    let mut set = CaptureSet::from_reader("-", Box::new(reader)).unwrap();
    let start = Instant::now();
    assert_eq!(set.next_packet().unwrap().unwrap().stamp.packet.number(), 1);
    assert_eq!(set.next_packet().unwrap().unwrap().stamp.packet.number(), 2);
    assert!(start.elapsed() < Duration::from_secs(5), "they do not wait for the window to fill");
    writer.write_all(&pcap_of_times([3], 60)[24..]).unwrap();
    assert_eq!(set.next_packet().unwrap().unwrap().stamp.packet.number(), 3);
    drop(writer);
    assert!(set.next_packet().unwrap().is_none());
    assert_eq!((set.captures()[0].packets, set.captures()[0].truncated.as_ref()), (3, None));
    assert_eq!(set.progress().1, None);
}

#[test]
fn the_stop_flag_ends_a_live_pipe_that_gives_nothing() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&pcap_of_times([1], 60)).unwrap();
    let mut set = CaptureSet::from_reader("-", Box::new(reader)).unwrap();
    assert!(set.next_packet().unwrap().is_some());
    set.stop_flag().store(true, Ordering::Relaxed);
    assert!(set.next_packet().unwrap().is_none());
    assert_eq!((set.captures()[0].packets, set.captures()[0].truncated.as_ref()), (1, None));
    drop(writer);
}

#[test]
fn a_pipe_that_ends_inside_a_record_says_so() {
    let bytes = pcap_of_times([1, 2], 60);
    let cut = Cursor::new(bytes[..bytes.len() - 1].to_vec());
    let reading = Reading::read(CaptureSet::from_reader("-", Box::new(cut)).unwrap());
    assert_eq!(reading.packets.len(), 1);
    assert!(reading.infos[0].truncated.as_deref().unwrap().contains("packet 2, byte 100"));
}
