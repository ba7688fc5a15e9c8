//! Time order, within a capture and across captures.

use super::*;
use crate::reader::survey::WINDOW_PACKETS;

const NO_MEMORY: CaptureBudget = CaptureBudget { memory: 0, runs: 1 << 18, window: 1 << 27 };

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn assert_sorted_with_own_bytes(reading: &Reading, count: u64) {
    let keys: Vec<(i64, u64)> = reading.packets.iter().map(|packet| (packet.2, packet.1)).collect();
    assert!(keys.is_sorted(), "by time, then by place in the file");
    let mut numbers = reading.numbers();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(1..=count), "every packet comes once");
    for (_, number, _, data, _) in &reading.packets {
        assert_eq!(data[..4], (*number as u32).to_le_bytes(), "a packet keeps its bytes and its number");
    }
}

#[test]
fn runs_of_a_file_are_merged_by_time() {
    // Two interfaces, one after the other in the file.
    let times = (0..1_000).map(|i| 2 * i).chain((0..1_000).map(|i| 2 * i + 1));
    let reading = read(&pcap_of_times(times, 60));
    assert_sorted_with_own_bytes(&reading, 2_000);
    assert_eq!(reading.quality.packets_reordered_by_time, 999, "1,999 is later than all before it");
    assert_eq!(reading.quality.packets_out_of_time_order, 0);
}

#[test]
fn packets_of_equal_time_keep_their_order_in_the_file() {
    let reading = read(&pcap_of_times([5, 7, 5, 7, 5], 4));
    assert_eq!(reading.numbers(), [1, 3, 5, 2, 4]);
}

#[test]
fn a_compressed_file_beyond_the_memory_limit_is_put_in_order_by_a_window_or_a_spool() {
    let shuffled = (0..20_000u32).map(|i| i ^ 0x0f);
    let two_halves = (10_000..20_000u32).chain(0..10_000);
    let sorted = 0..20_000u32;
    for times in [shuffled.collect::<Vec<u32>>(), two_halves.collect(), sorted.collect()] {
        let bytes = zstd(&pcap_of_times(times.iter().copied(), 100));
        let reading = read_within(&[&bytes], NO_MEMORY).unwrap();
        assert_sorted_with_own_bytes(&reading, 20_000);
        assert_eq!(reading.quality.packets_out_of_time_order, 0);
        assert_eq!(reading.infos[0].packets, 20_000);
    }
}

#[test]
fn more_runs_than_can_be_remembered_leave_the_window() {
    let near = pcap_of_times((0..9_000u32).map(|i| i ^ 1), 4);
    let reading = read_within(&[&near], CaptureBudget { runs: 10, ..NO_MEMORY }).unwrap();
    assert_sorted_with_own_bytes(&reading, 9_000);

    let falling = pcap_of_times((0..3 * WINDOW_PACKETS as u32).rev(), 4);
    let reading = read_within(&[&falling], CaptureBudget { runs: 10, ..NO_MEMORY }).unwrap();
    assert_eq!(reading.packets.len(), 3 * WINDOW_PACKETS);
    assert!(reading.quality.packets_out_of_time_order > 0);
    assert!(reading.infos[0].warnings[0].contains("reordercap"));
}

#[test]
fn a_falling_file_is_merged_from_runs_of_one_packet() {
    let reading = read(&pcap_of_times((0..6_000u32).rev(), 4));
    assert_sorted_with_own_bytes(&reading, 6_000);
}

#[test]
fn rotated_files_in_any_order_are_one_capture() {
    let files: Vec<Vec<u8>> = [20..30, 0..10, 10..20].map(|times: std::ops::Range<u32>| pcap_of_times(times, 4)).into();
    let reading = read_within(&[&files[0], &zstd(&files[1]), &files[2]], NO_MEMORY).unwrap();
    assert!(reading.times().into_iter().eq((0..30).map(|t| t * 1_000)));
    let captures: Vec<u16> = reading.packets.iter().map(|packet| packet.0).collect();
    assert_eq!(captures, [[0; 10], [1; 10], [2; 10]].concat());
    assert_eq!(reading.infos[0].compression.as_deref(), Some("zstd"));
    assert_eq!(reading.quality.packets_reordered_by_time, 0);
}

#[test]
fn overlapping_files_are_merged_and_ties_follow_the_order_of_captures() {
    let (even, all) = (pcap_of_times((0..50).map(|i| 2 * i), 4), pcap_of_times(1..100, 4));
    let reading = read_within(&[&all, &even], CaptureBudget::default()).unwrap();
    assert!(reading.times().is_sorted());
    assert_eq!(reading.packets.len(), 149);
    // Time 2 occurs in both; the capture that starts first is capture 0.
    let of_two: Vec<u16> = reading.packets.iter().filter(|p| p.2 == 2_000).map(|p| p.0).collect();
    assert_eq!(of_two, [0, 1]);
    assert_eq!(reading.infos[0].packets, 50);
}

#[test]
fn pcapng_runs_keep_the_interfaces_of_their_section() {
    // The second section is earlier in time and uses nanoseconds.
    let bytes = [
        LITTLE.section(),
        LITTLE.interface(1, 0, &[]),
        LITTLE.enhanced(0, 50, b"c", 1),
        LITTLE.interface(1, 0, &[(9, &[9])]),
        LITTLE.enhanced(1, 60_000, b"d", 1),
        BIG.section(),
        BIG.interface(1, 0, &[(9, &[9])]),
        BIG.enhanced(0, 1_000, b"a", 1),
        BIG.enhanced(0, 55_000, b"x", 1),
        BIG.interface(1, 0, &[(9, &[3])]),
        BIG.enhanced(1, 1, b"e", 1),
        BIG.enhanced(0, 2_000, b"b", 1),
    ]
    .concat();
    let reading = read(&bytes);
    assert_eq!(reading.times(), [1_000, 2_000, 50_000, 55_000, 60_000, 1_000_000]);
    let data: Vec<u8> = reading.packets.iter().flat_map(|packet| packet.3.clone()).collect();
    assert_eq!(data, b"abcxde");
    assert_eq!(reading.numbers(), [3, 6, 1, 4, 2, 5]);
}
