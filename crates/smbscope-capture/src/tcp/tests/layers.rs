//! Data captured at two layers of one host.

use super::*;

/// Sends data of a client in large records, each followed after `lag_us` by the four packets made of it; with `merged`,
/// the packets come first.
fn twice(merged: bool, lag_us: i64) -> Recorder {
    let mut wire = Wire::open();
    let text = "0123456789".repeat(4);
    for record in 0..30u32 {
        let (at, begin) = (1_000 + i64::from(record) * 5_000, 1001 + record * 40);
        let parts = (0..4u32).map(|part| {
            let at = at + i64::from(part) + if merged { 0 } else { lag_us };
            Told { ip_id: Some((100 + record * 4 + part) as u16), ..client(at, begin + part * 10, 5001, "0123456789") }
        });
        let whole = Told { ip_id: Some(0), ..client(at + if merged { 3 + lag_us } else { 0 }, begin, 5001, &text) };
        let mut packets: Vec<Told<'_>> = parts.chain([whole]).collect();
        packets.sort_by_key(|told| told.at_us);
        packets.into_iter().for_each(|told| _ = wire.tell(told));
        wire.tell(server(at + 1_000, 5001, begin + 40, ""));
    }
    wire.end()
}

#[test]
fn packets_of_an_offloaded_record_are_no_retransmissions() {
    let recorder = twice(false, 2);
    let quality = recorder.quality();
    assert_eq!((quality.copies_at_two_layers, quality.duplicate_packets), (120, 120));
    assert_eq!((quality.retransmitted_segments, quality.dropped_packets), (0, 0));
}

#[test]
fn a_record_that_merges_packets_is_no_retransmission() {
    let recorder = twice(true, 2);
    let quality = recorder.quality();
    assert_eq!((quality.copies_at_two_layers, quality.retransmitted_segments), (30, 0));
}

#[test]
fn what_comes_again_after_a_round_trip_is_a_retransmission() {
    for merged in [false, true] {
        let recorder = twice(merged, 400);
        let quality = recorder.quality();
        assert_eq!(quality.copies_at_two_layers, 0, "{merged}");
        assert!(quality.retransmitted_segments >= 30, "{merged}: {}", quality.retransmitted_segments);
    }
}

#[test]
fn a_part_that_is_sent_again_at_once_has_a_new_identification() {
    let mut wire = Wire::open();
    let text = "0123456789".repeat(4);
    wire.tell(Told { ip_id: Some(100), ..client(1_000, 1001, 5001, &text) });
    wire.tell(Told { ip_id: Some(101), ..client(1_002, 1001, 5001, "0123456789") });
    wire.tell(Told { ip_id: Some(102), ..client(1_004, 1011, 5001, "0123456789") });
    let recorder = wire.end();
    let quality = recorder.quality();
    assert_eq!((quality.copies_at_two_layers, quality.retransmitted_segments), (0, 2));
}
