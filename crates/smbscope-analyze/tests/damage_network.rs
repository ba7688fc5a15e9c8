//! Damage by the network hides nothing: every exchange is found with its own packets, and Quality counts each event.
//!
//! Expected exchanges come from the played script, expected counts from the plan of the damage.

use crate::common::analyze;
use crate::common::truth::{assert_exactly, assert_exactly_with_losses, config};
use proptest::prelude::*;
use smbscope_testkit::damage::{self, Damaged, Plan};
use smbscope_testkit::script::{Played, scripts};

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
