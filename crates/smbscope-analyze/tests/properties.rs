//! Properties of every conversation under every damage.
//!
//! Expected values come from the played script, which knows the response to each request and the stream positions of
//! both.

use crate::common::analyze;
use crate::common::truth::{apply_harmless, assert_exactly, can_be_found, config, false_matches, harmless};
use proptest::prelude::*;
use smbscope_capture::TcpFlags;
use smbscope_model::{Exchange, ExchangeOutcome};
use smbscope_testkit::damage::Plan;
use smbscope_testkit::script::{Ids, Played, Script, response_tag, scripts};
use smbscope_testkit::smb1::Part;
use smbscope_testkit::{Conversation, Packet, Side, damage, framed, smb1, smb2};

/// Numbers of exchanges found and missed among those that can be found, under all kinds of damage.
fn recall(ids: Ids, plan: Plan, seeds: std::ops::Range<u64>) -> (u64, u64) {
    let (mut found, mut missed) = (0, 0);
    for seed in seeds {
        let Played { packets, truth } = Script::random(ids, 80, seed).play();
        let packets = Plan { seed, ..plan }.apply(&packets).packets;
        let analysis = analyze(&packets);
        assert_eq!(false_matches(&truth, &packets, &analysis), Vec::<String>::new(), "seed {seed}");
        for exchange in truth.iter().filter(|exchange| can_be_found(exchange, &packets)) {
            let is_it = |it: &&Exchange| response_tag(it) == Some(exchange.tag) && it.request.first.is_some();
            match analysis.exchanges.iter().find(is_it) {
                Some(it) if matches!(it.outcome, ExchangeOutcome::Complete | ExchangeOutcome::ClockStep) => found += 1,
                _ => missed += 1,
            }
        }
    }
    (found, missed)
}

/// At least 99% of the exchanges that the surviving packets allow are found.
#[test]
fn what_survives_is_found() {
    let seeds = std::env::var("SMBSCOPE_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(60);
    let others = Plan { lost: 0.01, resent: 0.01, reordered: 0.01, duplicated: 0.01, ..Plan::default() };
    for ids in [Ids::Smb2, Ids::Smb1 { mids: 1 }, Ids::Smb1 { mids: 2 }, Ids::Smb1 { mids: 50 }] {
        let (mut found, mut missed) = (0, 0);
        for (dropped, burst, snap) in
            [(0.01, 1, None), (0.1, 1, None), (0.1, 1, Some(128)), (0.1, 5, None), (0.3, 1, None), (0.3, 5, None)]
        {
            let plan = Plan { dropped, burst, snap, ..others };
            let (more_found, more_missed) = recall(ids, plan, 0..seeds);
            println!("{ids:?}, {dropped} dropped in bursts of {burst}: {more_found} found, {more_missed} missed");
            (found, missed) = (found + more_found, missed + more_missed);
        }
        assert!(100 * missed <= found + missed, "{ids:?}: {found} found, {missed} missed");
    }
}

/// Bytes that a hostile peer may send: random ones, and messages that are modified, truncated or of a wrong length.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let messages: Vec<Vec<u8>> = vec![
        framed(smb2::negotiate(0, &[0x0202, 0x0311])),
        framed(smb2::negotiate_response(0, 0x0311)),
        framed(smb2::session_setup(1, "DOM", "ann")),
        framed(smb2::create(2, "a\\b.txt")),
        framed(smb2::compound(&[smb2::create_response(2, 7), smb2::close_response(3)])),
        framed(smb2::rename(4, 7, "new")),
        framed(smb2::read_response(5, &[0; 100])),
        framed(smb2::encrypted(7, 100)),
        framed([&[0xfc, b'S', b'M', b'B'][..], &[0; 60]].concat()),
        framed(smb1::negotiate(0, &["NT LM 0.12"])),
        framed(smb1::session_setup(1, "DOM", "ann").and(smb1::tree_connect(1, "\\\\s\\data"))),
        framed(smb1::nt_create(2, "\\a")),
        framed(smb1::trans2_response(3, Part { total: 900, before: 0, here: 100 })),
        framed(smb1::query_path(3, "\\a")),
        framed(smb1::read_raw(4, 7, 0, 100)),
        framed(smb1::write_raw(4, 7, 0, 100, true)),
        framed(smb1::echo(5, 3, b"hi")),
        vec![0x81, 0, 0, 68],
        vec![0x85, 0, 0, 0],
    ];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    let mutated = (prop::sample::select(messages), changes, any::<prop::sample::Index>(), prop::bool::weighted(0.3));
    let mutated = mutated.prop_map(|(mut bytes, changes, end, cut)| {
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if cut {
            bytes.truncate(1 + end.index(bytes.len()));
        }
        bytes
    });
    prop_oneof![3 => mutated, 1 => prop::collection::vec(any::<u8>(), 1..300)]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn segmentation_duplication_and_reordering_change_no_exchange(script in scripts(), harm in harmless()) {
        let Played { packets, truth } = script.play();
        let packets = apply_harmless(&packets, harm);
        assert_exactly(&truth, &packets, &analyze(&packets))?;
    }

    #[test]
    fn no_damage_makes_a_false_match(script in scripts(), plan in damage::plans()) {
        let Played { packets, truth } = script.play();
        let packets = plan.apply(&packets).packets;
        let false_matches = false_matches(&truth, &packets, &analyze(&packets));
        prop_assert!(false_matches.is_empty(), "{}", false_matches.join("\n"));
    }

    #[test]
    fn any_bytes_do_not_panic(stream in prop::collection::vec((any::<bool>(), noise()), 0..40), midstream in any::<bool>()) {
        let mut conversation = if midstream { Conversation::midstream() } else { Conversation::new() };
        for (step, (from_client, bytes)) in stream.into_iter().enumerate() {
            let side = if from_client { Side::Client } else { Side::Server };
            conversation = conversation.says(side, 100_000 * (step as i64 + 1), bytes);
        }
        let packets = conversation.packets();
        let analysis = analyze(&packets);
        let answers = analysis.exchanges.iter().filter(|exchange| exchange.is_complete());
        for exchange in answers {
            prop_assert!(exchange.request.first.is_some() && exchange.response.last.is_some());
        }
    }

    #[test]
    fn any_tcp_headers_do_not_panic(
        script in scripts(),
        forged in prop::collection::vec((any::<prop::sample::Index>(), any::<(u32, u32, u8, u16)>(), 0u8..4), 0..30),
    ) {
        let mut packets = script.play().packets;
        for (at, (sequence, acknowledgment, flags, window), what) in forged {
            let packet = at.get(&packets).clone();
            let forged = match what {
                0 => Packet { sequence, acknowledgment, flags: TcpFlags(flags), window, ..packet },
                1 => Packet { sequence: packet.sequence.wrapping_add(sequence % 4000), ..packet },
                2 => Packet { acknowledgment: packet.acknowledgment.wrapping_add(acknowledgment % 4000), ..packet },
                _ => Packet { flags: TcpFlags(flags), ..packet },
            };
            let place = at.index(packets.len());
            packets.insert(place, forged);
        }
        analyze(&packets);
    }
}
