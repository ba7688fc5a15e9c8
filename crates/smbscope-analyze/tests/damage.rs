//! Damage by the network, by the capture, and to capture files: surviving exchanges are found with their own packets,
//! and Quality counts each event.
//!
//! Expected exchanges come from the played script, expected counts from the plan of the damage.

use crate::common::analyze;
use crate::common::truth::{
    assert_exactly, assert_exactly_with_losses, config, false_matches, read_contents, read_files, renumber,
};
use proptest::prelude::*;
use smbscope_model::{CaptureId, ExchangeOutcome, PacketRef};
use smbscope_testkit::damage::{self, Damaged, Plan};
use smbscope_testkit::script::{Ids, Kind, Played, Script, response_tag, scripts};
use smbscope_testkit::{Packet, Side, pcap};

proptest! {
    #![proptest_config(config())]

    /// Each late copy after later bytes of its sender is a retransmission whose first copy was lost before the capture.
    /// It does not count as dropped, reordered or captured twice.
    #[test]
    fn what_the_network_lost_before_the_capture_is_told_from_what_the_capture_dropped(
        script in scripts(),
        seed in any::<u64>(),
        lost in 0.0..0.3f64,
        resegment in prop::option::of(100u64..1460),
    ) {
        let Played { packets, truth } = script.play();
        let Damaged { packets, done } = Plan { seed, lost, resegment, ..Plan::default() }.apply(&packets);
        // Packets with equal times have no defined order.
        let packets = damage::move_apart(&packets);
        let analysis = analyze(&packets);
        assert_exactly_with_losses(&truth, &packets, &analysis)?;
        let quality = &analysis.quality;
        prop_assert_eq!(quality.retransmissions_seen_once, done.lost);
        let others = [quality.dropped_packets, quality.out_of_order_segments, quality.duplicate_packets];
        prop_assert_eq!(others, [0; 3]);
        prop_assert_eq!(quality.untimed_by_capture(), 0);
    }

    /// A segment captured a second time with a new identification is a retransmission. A single byte at the end of the
    /// sent data can't be distinguished from a TCP keep-alive, and counts as one.
    #[test]
    fn what_was_sent_again_is_counted_one_by_one(
        script in scripts(),
        seed in any::<u64>(),
        resent in 0.0..0.3f64,
        resent_in_part in 0.0..0.3f64,
    ) {
        let Played { packets, truth } = script.play();
        let Damaged { packets, done } = Plan { seed, resent, resent_in_part, ..Plan::default() }.apply(&packets);
        let analysis = analyze(&packets);
        assert_exactly(&truth, &packets, &analysis)?;
        let quality = &analysis.quality;
        prop_assert_eq!(quality.retransmitted_segments + quality.keep_alives, done.resent);
        let others = [quality.dropped_packets, quality.out_of_order_segments, quality.duplicate_packets];
        prop_assert_eq!(others, [0; 3]);
    }

    /// The same packet twice in a row was captured twice; it is never a retransmission.
    #[test]
    fn what_was_captured_twice_is_counted_one_by_one(
        script in scripts(),
        seed in any::<u64>(),
        duplicated in 0.0..1.0f64,
    ) {
        let Played { packets, truth } = script.play();
        let Damaged { packets, done } = Plan { seed, duplicated, ..Plan::default() }.apply(&packets);
        let analysis = analyze(&packets);
        assert_exactly(&truth, &packets, &analysis)?;
        prop_assert_eq!(analysis.quality.duplicate_packets, done.duplicated);
        prop_assert_eq!(analysis.quality.retransmitted_segments, 0);
    }

    /// Each segment captured after later bytes of its sender with an older identification was reordered.
    #[test]
    fn what_was_overtaken_is_counted_one_by_one(
        script in scripts(),
        seed in any::<u64>(),
        reordered in 0.0..0.5f64,
    ) {
        let Played { packets, truth } = script.play();
        let Damaged { packets, done } = Plan { seed, reordered, ..Plan::default() }.apply(&packets);
        let analysis = analyze(&packets);
        assert_exactly(&truth, &packets, &analysis)?;
        prop_assert_eq!(analysis.quality.out_of_order_segments, done.reordered);
        let quality = &analysis.quality;
        let others = [quality.dropped_packets, quality.retransmitted_segments, quality.retransmissions_seen_once];
        prop_assert_eq!(others, [0; 3]);
    }
}

// Damage by the capture: dropped packets, snap lengths, clock steps. Quality counts the missing data, and everything
// else is timed.

/// Number of bytes of a side that no packet holds, up to the last byte known from its own packets or from the
/// acknowledgments of the other side.
fn missing_bytes(packets: &[Packet], side: Side) -> u64 {
    let own = packets.iter().filter(|packet| packet.side == side && !packet.flags.syn());
    // Data follows the initial sequence numbers of a conversation: 1000 and 500,000.
    let offset_0 = [1001u32, 500_001][side.index()];
    let others = packets.iter().filter(|packet| packet.side != side && !packet.flags.syn());
    let acknowledged = others.map(|packet| u64::from(packet.acknowledgment.wrapping_sub(offset_0))).max().unwrap_or(0);
    // The FIN takes a sequence number, too.
    let finished = own.clone().filter(|packet| packet.flags.fin()).map(Packet::end).max();
    let acknowledged = finished.map_or(acknowledged, |end| acknowledged.min(end));
    let furthest = own.clone().filter(|it| !it.payload.is_empty()).map(Packet::end).max().unwrap_or(0);
    let mut held: Vec<(u64, u64)> = own.map(|packet| (packet.offset, packet.end())).collect();
    held.sort_unstable();
    let (mut at, mut missing) = (0, 0);
    for (start, end) in held.into_iter().filter(|(start, end)| start < end) {
        missing += start.saturating_sub(at);
        at = at.max(end);
    }
    missing + acknowledged.max(furthest).saturating_sub(at)
}

proptest! {
    #![proptest_config(config())]

    /// Missing bytes are known exactly, up to the last byte that the capture mentions (the very last one may be a FIN).
    /// The number of missing packets is at least what the missing bytes require, and no more than were dropped if
    /// segments are no larger than Ethernet's or the largest one seen.
    #[test]
    fn what_the_capture_dropped_is_known_to_the_byte(
        script in scripts(),
        seed in any::<u64>(),
        dropped in 0.0..0.4f64,
        burst in 1usize..6,
    ) {
        let Played { packets, .. } = script.play();
        let Damaged { packets, done } = Plan { seed, dropped, burst, ..Plan::default() }.apply(&packets);
        let quality = analyze(&packets).quality;
        prop_assume!(quality.smb_flow_packets > 0);
        let known = quality.dropped_bytes + quality.missing_unacknowledged_bytes;
        let missing: u64 = [Side::Client, Side::Server].map(|side| missing_bytes(&packets, side)).iter().sum();
        prop_assert!(missing - known <= 2, "{known} of {missing} bytes");
        if script.segment_size <= 1460 {
            prop_assert!(quality.dropped_packets <= done.dropped, "{} > {}", quality.dropped_packets, done.dropped);
        }
        prop_assert!(quality.dropped_packets >= quality.dropped_bytes.div_ceil(8960));
        prop_assert_eq!(quality.duplicate_packets + quality.retransmitted_segments, 0);
    }

    /// With 128 bytes per packet, every header at the start of a segment is captured and the results are unchanged,
    /// except for later members of a compound.
    #[test]
    fn a_snap_length_that_keeps_the_headers_costs_nothing(mut script in scripts(), length in 128usize..2000) {
        if script.ids == Ids::Smb2 {
            script.steps.iter_mut().filter(|step| step.kind == Kind::Query).for_each(|step| step.kind = Kind::Open);
        }
        let Played { packets, truth } = script.play();
        let Damaged { packets, .. } = Plan { snap: Some(length), ..Plan::default() }.apply(&packets);
        let analysis = analyze(&packets);
        assert_exactly(&truth, &packets, &analysis)?;
        let quality = &analysis.quality;
        prop_assert_eq!([quality.dropped_packets, quality.headers_truncated, quality.untimed_by_capture()], [0; 3]);
    }

    /// No snap length causes a false match, whatever it hides.
    #[test]
    fn no_snap_length_makes_a_false_match(script in scripts(), length in 54usize..128, coalesced in 0.0..1.0f64) {
        let Played { packets, truth } = script.play();
        let packets = Plan { snap: Some(length), coalesced, ..Plan::default() }.apply(&packets).packets;
        prop_assert_eq!(false_matches(&truth, &packets, &analyze(&packets)), Vec::<String>::new());
    }

    /// Exchanges that end before they begin according to the capture's clock are matched and excluded one by one; all
    /// others are timed.
    #[test]
    fn a_clock_that_steps_back_costs_the_exchanges_under_way(
        script in scripts(),
        place in 0.05..1.0f64,
        back_ns in 1i64..10_000_000_000,
    ) {
        let Played { packets, truth } = script.play();
        let Damaged { packets, .. } = Plan { clock_step: Some((place, back_ns)), ..Plan::default() }.apply(&packets);
        let analysis = analyze(&packets);
        assert_exactly(&truth, &packets, &analysis)?;
        let steps = analysis.exchanges.iter().filter(|it| it.outcome == ExchangeOutcome::ClockStep).count();
        prop_assert_eq!(analysis.quality.clock_steps, steps as u64);
    }
}

/// No command in progress at the start of the capture is timed; all later ones are.
#[test]
fn a_capture_that_begins_in_the_middle_times_all_that_begins_after_it() {
    for seed in 0..300 {
        for ids in [Ids::Smb2, Ids::Smb1 { mids: 2 }] {
            let Played { packets, truth } = Script::random(ids, 40, seed).play();
            let from = 3 + (seed as usize * 7) % (packets.len() - 3);
            let seen = &packets[from..];
            let analysis = analyze(seen);
            assert_eq!(false_matches(&truth, seen, &analysis), Vec::<String>::new(), "seed {seed}");
            let complete: Vec<_> =
                analysis.exchanges.iter().filter(|it| it.is_complete()).filter_map(response_tag).collect();
            let begun = |it: &&smbscope_testkit::script::TrueExchange| it.request.is_captured(seen, u64::MAX >> 1);
            let begun: Vec<u32> = truth.iter().filter(begun).map(|it| it.tag).collect();
            let missed: Vec<_> = begun.iter().filter(|tag| !complete.contains(tag)).collect();
            assert!(missed.is_empty(), "seed {seed}, {ids:?}, from {from}: {missed:?} of {begun:?}");
        }
    }
}

// Damage to capture files: packets spread over several files, truncated files, truncated records. The meaning of the
// packets is unchanged.

proptest! {
    #![proptest_config(ProptestConfig { cases: (config().cases / 4).max(1), ..config() })]

    #[test]
    fn two_files_are_as_good_as_one(
        script in scripts(),
        seed in any::<u64>(),
        dropped in prop_oneof![Just(0.0), 0.01..0.2f64],
        cut in 0.0..1.0f64,
    ) {
        let packets = damage::drop_some(&script.play().packets, seed, dropped);
        prop_assume!(packets.len() >= 2);
        let first = 1 + (cut * (packets.len() - 1) as f64) as usize;
        let (head, tail) = packets.split_at(first);
        let whole = read_files(&[packets.as_slice()]);
        let mut parts = read_files(&[head, tail]);
        let through = |at: PacketRef| match at.capture() {
            CaptureId(1) => PacketRef::new(CaptureId(0), at.number() + first as u64),
            _ => at,
        };
        parts.0.iter_mut().for_each(|exchange| renumber(exchange, through));
        prop_assert_eq!(parts, whole);
    }

    /// Each interface has its own file, and each packet is in one of them; merged by time they are complete.
    #[test]
    fn two_interfaces_with_a_file_each_are_as_good_as_one(
        script in scripts(),
        seed in any::<u64>(),
        dropped in prop_oneof![Just(0.0), 0.01..0.2f64],
        second in prop_oneof![Just(None), (0.1..0.9f64).prop_map(Some)],
    ) {
        let packets = damage::drop_some(&script.play().packets, seed, dropped);
        let (packets, interfaces) = damage::two_interfaces(&packets, seed, second);
        let of = |interface| -> Vec<usize> { (0..packets.len()).filter(|at| interfaces[*at] == interface).collect() };
        let mut files = [of(0), of(1)];
        prop_assume!(files.iter().all(|places| !places.is_empty()));
        // Files are numbered in order of their first packets.
        files.sort();
        let [first, second] = files;
        let file = |places: &[usize]| -> Vec<Packet> { places.iter().map(|at| packets[*at].clone()).collect() };
        let whole = read_files(&[packets.as_slice()]);
        let mut parts = read_files(&[&file(&first), &file(&second)]);
        let through = |at: PacketRef| {
            let places = if at.capture() == CaptureId(0) { &first } else { &second };
            PacketRef::new(CaptureId(0), places[at.number() as usize - 1] as u64 + 1)
        };
        parts.0.iter_mut().for_each(|exchange| renumber(exchange, through));
        prop_assert_eq!(parts, whole);
    }

    /// In one file, the packets of two interfaces are in the order of writing, not of capture.
    #[test]
    fn two_interfaces_in_one_file_are_put_in_time_order(
        script in scripts(),
        seed in any::<u64>(),
        second in prop_oneof![Just(None), (0.1..0.9f64).prop_map(Some)],
        late in 1usize..40,
    ) {
        let (packets, interfaces) = damage::two_interfaces(&script.play().packets, seed, second);
        let whole = read_files(&[packets.as_slice()]);
        // The second interface writes some packets later.
        let mut order: Vec<usize> = (0..packets.len()).collect();
        order.sort_by_key(|at| at + interfaces[*at] * late);
        let written: Vec<Packet> = order.iter().map(|at| packets[*at].clone()).collect();
        let on: Vec<usize> = order.iter().map(|at| interfaces[*at]).collect();
        let mut read = read_contents(&[pcap::next_generation(&written, &on)]);
        let through = |at: PacketRef| PacketRef::new(at.capture(), order[at.number() as usize - 1] as u64 + 1);
        read.0.iter_mut().for_each(|exchange| renumber(exchange, through));
        prop_assert_eq!(read.0, whole.0);
        let moved = order.windows(2).any(|pair| pair[0] > pair[1]);
        prop_assert_eq!(read.1.packets_reordered_by_time > 0, moved);
    }

    /// Everything before the cut is read. A cut inside a record is counted.
    #[test]
    fn a_file_without_its_end_gives_everything_before_the_cut(script in scripts(), cut in 0.0..1.0f64) {
        let packets = script.play().packets;
        let bytes = pcap::nanos(&packets);
        // The file header and the first record stay.
        let least = 24 + 16 + packets[0].ethernet().len();
        let length = least + ((bytes.len() - least) as f64 * cut) as usize;
        let (whole, cut_in_two) = damage::surviving(&packets, length);
        let (exchanges, quality) = read_contents(&[bytes[..length].to_vec()]);
        let expected = read_files(&[&packets[..whole]]);
        prop_assert_eq!(exchanges, expected.0);
        prop_assert_eq!((quality.truncated_captures, quality.packets), (u64::from(cut_in_two), whole as u64));
    }

    #[test]
    fn packets_cut_short_are_counted_one_by_one(script in scripts(), length in 54usize..1600) {
        let packets = script.play().packets;
        let damage::Damaged { packets, done } =
            damage::Plan { snap: Some(length), ..damage::Plan::default() }.apply(&packets);
        prop_assert_eq!(read_files(&[&packets]).1.snapped_packets, done.snapped);
    }
}
