//! Damage by the capture: dropped packets, snap lengths, clock steps. Quality counts the missing data, and everything
//! else is timed.
//!
//! Expected exchanges come from the played script, expected counts from the plan of the damage.

use crate::common::analyze;
use crate::common::truth::{assert_exactly, config, false_matches};
use proptest::prelude::*;
use smbscope_model::ExchangeOutcome;
use smbscope_testkit::damage::{Damaged, Plan};
use smbscope_testkit::script::{Ids, Kind, Played, Script, response_tag, scripts};
use smbscope_testkit::{Packet, Side};

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
    /// The number of missing packets is at least what the bytes require, and at most what was dropped if segments are
    /// no larger than Ethernet's or the largest one seen.
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
