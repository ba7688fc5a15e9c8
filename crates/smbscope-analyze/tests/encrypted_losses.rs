//! Encrypted traffic with missing packets: no false pairs, and most of the remaining pairs found.

use crate::common::ciphertext::{Ciphertext, as_if_encrypted, client};
use crate::common::{self, analyze, bundled, read_exchanges};
use smbscope_analyze::{Analyzer, AnalyzerOptions};
use smbscope_capture::tcp::FlowTable;
use smbscope_model::{Coverage, Exchange, ExchangeOutcome, PacketRef, Quality, Stamp};
use smbscope_testkit::damage::RandomDamage;
use smbscope_testkit::judge::{Counts, Truth};
use smbscope_testkit::recording::{Kept, Nonces, Recording};
use smbscope_testkit::{Conversation, Packet, Side, damage, random::Random, smb2};
use std::collections::BTreeSet;

#[derive(Debug, Clone, Copy)]
enum Loss {
    Each(f64),
    /// Probability that a burst begins, and its length.
    Bursts(f64, u64),
    FromOne(Side, f64),
    Data(f64),
}

const LOSSES: [Loss; 10] = [
    Loss::Each(0.001),
    Loss::Each(0.01),
    Loss::Each(0.05),
    Loss::Each(0.3),
    Loss::Bursts(0.002, 5),
    Loss::Bursts(0.005, 20),
    Loss::Bursts(0.01, 2),
    Loss::FromOne(Side::Client, 0.05),
    Loss::FromOne(Side::Server, 0.05),
    Loss::Data(0.05),
];

struct Losing {
    loss: Loss,
    random: Random,
    burst: u64,
}

impl Losing {
    fn new(loss: Loss, seed: u64) -> Losing {
        Losing { loss, random: Random::new(seed), burst: 0 }
    }

    fn keeps(&mut self, side: Side, has_data: bool) -> bool {
        let probability = match self.loss {
            Loss::Each(probability) => probability,
            Loss::FromOne(from, probability) if from == side => probability,
            Loss::Data(probability) if has_data => probability,
            Loss::Bursts(probability, length) => {
                if self.burst == 0 && self.random.chance(probability) {
                    self.burst = length;
                }
                self.burst = self.burst.saturating_sub(1);
                if self.burst > 0 { 1.0 } else { 0.0 }
            }
            _ => 0.0,
        };
        !self.random.chance(probability)
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Score {
    allowed: usize,
    right: usize,
    wrong: usize,
}

impl Score {
    fn add(&mut self, other: Score) {
        self.allowed += other.allowed;
        self.right += other.right;
        self.wrong += other.wrong;
    }

    fn recall(self) -> f64 {
        self.right as f64 / self.allowed.max(1) as f64
    }
}

/// Identifies a pair: the first packets of its halves, and the last packet of the response.
type Pair = [u64; 3];

fn pair(exchange: &Exchange) -> Option<Pair> {
    let number = |stamp: Stamp| stamp.packet.number();
    let is_pair = exchange.encrypted && exchange.outcome == ExchangeOutcome::Complete;
    let Exchange { request, response, .. } = exchange;
    is_pair.then_some([number(request.first?), number(response.first?), number(response.last?)])
}

/// Packets that an exchange requires: the pair and the interim response.
fn needed(exchange: &Exchange) -> Option<(Pair, Vec<u64>)> {
    let pair = pair(exchange)?;
    let interim = exchange.interim.map(|interim| interim.packet.number());
    Some((pair, pair.into_iter().chain(interim).collect()))
}

/// Scores the result without some packets. `whole` is the result with all packets, `truth` holds the true pairs.
fn score(whole: &[(Pair, Vec<u64>)], truth: &BTreeSet<Pair>, kept: &dyn Fn(u64) -> bool, found: &[Exchange]) -> Score {
    let found: BTreeSet<Pair> = found.iter().filter_map(pair).collect();
    let allowed: Vec<&Pair> =
        whole.iter().filter(|(_, needed)| needed.iter().all(|number| kept(*number))).map(|(pair, _)| pair).collect();
    Score {
        allowed: allowed.len(),
        right: allowed.into_iter().filter(|pair| found.contains(*pair)).count(),
        wrong: found.difference(truth).count(),
    }
}

/// Scores a capture with losses from `seeds` seeds.
fn score_file(name: &str, loss: Loss, seeds: u64) -> Score {
    let file = bundled(name);
    let whole: Vec<_> = read_exchanges(&file, |_| true).iter().filter_map(needed).collect();
    let truth = whole.iter().map(|(pair, _)| *pair).collect();
    let packets = common::read_packets(&file);
    let mut total = Score::default();
    for seed in 0..seeds {
        let mut losing = Losing::new(loss, seed);
        let kept: Vec<bool> = packets.iter().map(|(side, has_data)| losing.keeps(*side, *has_data)).collect();
        let is_kept = |number: u64| kept[number as usize - 1];
        total.add(score(&whole, &truth, &is_kept, &read_exchanges(&file, is_kept)));
    }
    total
}

/// Maps packet numbers of the damaged conversation to the undamaged one.
fn original(exchange: &mut Exchange, packets: &[Packet]) {
    common::truth::renumber(exchange, |packet| {
        PacketRef::new(packet.capture(), packets[packet.number() as usize - 1].origin as u64 + 1)
    });
}

fn score_told(told: &Ciphertext, loss: Loss, seed: u64) -> Score {
    let whole: Vec<_> = analyze(&told.packets).exchanges.iter().filter_map(needed).collect();
    let mut losing = Losing::new(loss, seed);
    let packets: Vec<Packet> =
        told.packets.iter().filter(|packet| losing.keeps(packet.side, !packet.payload.is_empty())).cloned().collect();
    let numbers: BTreeSet<u64> = packets.iter().map(|packet| packet.origin as u64 + 1).collect();
    let mut found = analyze(&packets).exchanges;
    found.iter_mut().for_each(|exchange| original(exchange, &packets));
    score(&whole, &truth(told), &|number| numbers.contains(&number), &found)
}

fn truth(told: &Ciphertext) -> BTreeSet<Pair> {
    let packet = |index: Option<usize>| index.expect("nothing is lost") as u64 + 1;
    told.pairs
        .iter()
        .map(|(request, response)| {
            let ends = [request.first_packet(&told.packets), response.first_packet(&told.packets)];
            [packet(ends[0]), packet(ends[1]), packet(response.last_packet(&told.packets))]
        })
        .collect()
}

/// False pairs without any loss.
fn untrue(told: &Ciphertext) -> Vec<Pair> {
    let pairs = truth(told);
    analyze(&told.packets).exchanges.iter().filter_map(pair).filter(|pair| !pairs.contains(pair)).collect()
}

/// Runs per kind of loss; more with `SMBSCOPE_DAMAGE_RUNS`.
fn runs(few: u64) -> u64 {
    std::env::var("SMBSCOPE_DAMAGE_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(few)
}

#[test]
fn losses_cost_few_encrypted_exchanges_and_make_no_false_pair() {
    let name = "encrypted/smbclient_SMB3_11_encrypt.pcap.zst";
    for loss in LOSSES {
        let score = score_file(name, loss, runs(10));
        println!("{loss:?}: {score:?}, recall {:.4}", score.recall());
        assert_eq!(score.wrong, 0, "{loss:?}");
        let least = match loss {
            Loss::Each(probability) if probability <= 0.01 => 0.97,
            Loss::Each(probability) if probability > 0.05 => 0.6,
            _ => 0.97,
        };
        assert!(score.recall() >= least, "{loss:?}: {score:?}");
    }
}

/// Opens, writes and closes one file after another. Returns the packets and the number of exchanges.
fn files(number: usize) -> (Vec<Packet>, usize) {
    let steps = [(140, 152), (31_638, 80), (88, 124)];
    let mut conversation = Conversation::new();
    for step in 0..3 * number {
        let (request, response) = steps[step % 3];
        let at = 100 + step as i64 * 1000;
        conversation = conversation
            .client_says(at, smb2::encrypted(0x1234, request))
            .server_says(at + 500, smb2::encrypted(0x1234, response));
    }
    (conversation.client_acks(100 + 3000 * number as i64).packets(), 3 * number)
}

#[test]
fn a_burst_costs_what_it_hits_and_few_others_also_where_the_same_comes_again_and_again() {
    // The sequence of sizes repeats after three requests. The beginning of a WRITE and everything up to the next CLOSE
    // are lost, so only the learnt response sizes show that nothing else is outstanding afterwards.
    let (packets, exchanges) = files(40);
    let is_write = |packet: &Packet| packet.payload.len() > 36 && packet.payload[1..4] == [0, 123, 202];
    let writes: Vec<usize> = (0..packets.len()).filter(|place| is_write(&packets[*place])).collect();
    assert_eq!(writes.len(), 40);
    for lost in [3, 30, 40] {
        let burst: Vec<usize> = (writes[20]..writes[20] + lost).collect();
        let found = analyze(&damage::without(&packets, &burst)).exchanges;
        let complete = found.iter().filter_map(pair).count();
        assert!(complete >= exchanges - 6, "{lost} lost: {complete} of {exchanges}");
    }
}

#[test]
fn a_stream_of_writes_that_ends_in_a_gap_is_not_paired_by_what_follows_it() {
    // Several requests are always outstanding, and the last responses are lost.
    let told = client(195, 150, 0.3);
    assert_eq!(score_told(&told, Loss::Each(0.01), 195).wrong, 0);
}

#[test]
fn what_was_hidden_before_the_first_encrypted_frame_confirms_no_pair() {
    // The capture begins within a plain session setup: the number of outstanding requests is unknown, and the size of
    // the hidden message (120 bytes) proves nothing.
    let mut conversation = Conversation::midstream()
        .client_says(25, smb2::session_setup_begin(0))
        .server_says(50, smb2::session_setup_response(0, 0x1234))
        .client_says(100, vec![0; 120])
        .server_says(200, smb2::session_setup_response(1, 0x1234));
    for step in 0..8 {
        let at = 1000 + step * 1000;
        conversation = conversation
            .client_says(at, smb2::encrypted(0x1234, 104))
            .server_says(at + 500, smb2::encrypted(0x1234, 80));
    }
    let packets = conversation.packets();
    let outcomes = |packets: &[Packet]| -> Vec<ExchangeOutcome> {
        let found = analyze(packets).exchanges.into_iter().filter(|exchange| exchange.encrypted);
        found.map(|exchange| exchange.outcome).collect()
    };
    assert_eq!(outcomes(&packets), [ExchangeOutcome::NotPairable; 8]);
    assert_eq!(outcomes(&damage::without(&packets, &[2])), [ExchangeOutcome::NotPairable; 8]);
}

/// Returns how many of eight encrypted commands count as unseen in a capture without their first packets.
fn begun_before(missing: usize) -> u64 {
    let mut conversation = Conversation::midstream().segment_size(100);
    for step in 0..8 {
        let at = 1000 + step * 1000;
        conversation = conversation
            .client_says(at, smb2::encrypted(0x1234, 104))
            .server_says(at + 500, smb2::encrypted(0x1234, 200));
    }
    analyze(&conversation.packets()[missing..]).quality.commands_unseen
}

#[test]
fn an_encrypted_command_from_before_the_capture_is_counted() {
    // Each message takes two packets or three. The capture begins with the first request, after it, or in its response.
    assert_eq!([begun_before(0), begun_before(2), begun_before(3)], [0, 1, 1]);
}

#[test]
fn one_lost_response_costs_one_encrypted_exchange() {
    // 252 encrypted requests; the response to the one in packet 24 is missing. A request with the size of a LOCK has a
    // response with the size of an interim response, which remains ambiguous.
    let exchanges = read_exchanges(&bundled("encrypted/one_response_lost.pcap.zst"), |_| true);
    let complete = exchanges.iter().filter_map(pair).count();
    let mut others: Vec<_> = exchanges
        .iter()
        .filter(|exchange| exchange.encrypted && exchange.outcome != ExchangeOutcome::Complete)
        .map(|exchange| {
            (exchange.request.bytes - 52, exchange.outcome, exchange.request.first.unwrap().packet.number())
        })
        .collect();
    others.sort_unstable_by_key(|other| other.2);
    assert_eq!(complete, 250);
    assert_eq!((others[0].1, others[0].2), (ExchangeOutcome::ResponseNotCaptured, 24));
    assert_eq!((others[1].0, others[1].1), (112, ExchangeOutcome::NotPairable));
}

#[test]
fn an_interim_response_is_not_final_when_the_client_acknowledges_more() {
    // Packet 179 holds an interim response, the final one is missing, and the request in packet 180 acknowledges it.
    let exchanges = read_exchanges(&bundled("encrypted/interim_then_lost.pcap.zst"), |_| true);
    let write = exchanges.iter().find(|exchange| exchange.interim.map(|stamp| stamp.packet.number()) == Some(179));
    let write = write.expect("the interim response is known");
    assert_eq!((write.outcome, write.response.first), (ExchangeOutcome::ResponseNotCaptured, None));
}

#[test]
fn an_error_is_no_final_response_when_a_later_one_is_explained_by_no_request() {
    // Packet 42 is an interim response to the request in 39, which ends in 49; 45 answers 44 (known from the server's
    // keys). Packets 42 and 45 have the same size, so either may be the interim one.
    let exchanges = read_exchanges(&bundled("encrypted/pending_then_final.pcap.zst"), |_| true);
    let outcome_of = |packet: u64| {
        let begins = |exchange: &&Exchange| exchange.request.first.is_some_and(|it| it.packet.number() == packet);
        exchanges.iter().find(begins).map(|exchange| exchange.outcome)
    };
    assert_eq!([39, 44].map(outcome_of), [Some(ExchangeOutcome::NotPairable); 2]);
    assert_eq!([37, 51, 58].map(outcome_of), [Some(ExchangeOutcome::Complete); 3]);
}

fn analyze_copy(recording: &Recording, copy: &[Kept]) -> (Vec<Exchange>, Quality) {
    let mut exchanges = Vec::new();
    let mut flows = FlowTable::new(Analyzer::new(AnalyzerOptions::default(), |exchange| exchanges.push(exchange)));
    recording.segments(copy, |_, segment| flows.segment(segment));
    let quality = flows.finish().finish().quality;
    (exchanges, quality)
}

/// Returns true if the share of commands without a time is estimated within a tenth, or in a range.
fn is_told(recording: &Recording, truth: &Truth, damage: &RandomDamage) -> bool {
    let copy = damage.apply(recording);
    let (found, quality) = analyze_copy(recording, &copy);
    let Counts { commands, measured, false_pairs, .. } = truth.judge(recording, &copy, &found, false).counts;
    assert_eq!(false_pairs, 0, "{damage}");
    let ended = |outcome| found.iter().filter(|exchange| exchange.outcome == outcome).count() as u64;
    let said = Coverage::new(ended, found.len() as u64 - ended(ExchangeOutcome::Complete), &quality).not_timed();
    let right = 100.0 * (commands - measured) as f64 / commands as f64;
    println!("{damage}: {right:.1}% right, said {said:?}");
    (said.percent - right).abs() <= 0.1 * right || (said.at_least..=said.at_most).contains(&right)
}

#[test]
fn nonces_that_count_tell_how_many_commands_are_missing() {
    let recording = Recording::read(&bundled("encrypted/smbclient_SMB3_11_encrypt.pcap.zst")).expect("a capture");
    let (undamaged, _) = analyze_copy(&recording, &recording.undamaged());
    let truth = Truth::new(&recording, &undamaged);
    let bursts = |seed| RandomDamage::of_mode(seed, damage::Loss::Bursts, damage::Combination::Alone);
    let told = (0..40).filter(|seed| is_told(&recording, &truth, &bursts(*seed))).count();
    assert!(told >= 39, "{told} of 40");
}

#[test]
fn a_sealed_capture_is_paired_as_the_readable_one() {
    let readable = Recording::read(&bundled("own/smbclient_SMB3_11.pcap.zst")).expect("it is a capture");
    let (exchanges, _) = analyze_copy(&readable, &readable.undamaged());
    for nonces in Nonces::ALL {
        let sealed = readable.sealed(nonces, 1).expect("it can be sealed");
        let truth = Truth::sealed(&sealed, &exchanges);
        let mut all = Counts::default();
        for seed in 0..runs(24) {
            let copy = RandomDamage::of_seed(seed).apply(&sealed);
            all.add(truth.judge(&sealed, &copy, &analyze_copy(&sealed, &copy).0, false).counts);
        }
        assert_eq!((all.false_pairs, all.mistimed), (0, 0), "{nonces:?}");
        let least = if nonces == Nonces::Counted { 0.96 } else { 0.9 };
        assert!(all.right as f64 >= least * all.allowed as f64, "{nonces:?}: {all:?}");
    }
}

#[test]
fn told_conversations_are_paired_truly() {
    for loss in LOSSES {
        let mut total = Score::default();
        for seed in 0..runs(10) {
            let told = client(seed, 150, [0.0, 0.02, 0.1, 0.3][seed as usize % 4]);
            assert_eq!(untrue(&told), Vec::<Pair>::new(), "seed {seed}");
            let score = score_told(&told, loss, seed);
            assert_eq!(score.wrong, 0, "{loss:?}, seed {seed}");
            total.add(score);
        }
        println!("{loss:?}: {total:?}, recall {:.4}", total.recall());
    }
}

#[test]
fn readable_captures_as_if_they_were_encrypted_are_paired_truly() {
    for name in [
        "demo-smb311-office.pcap.zst",
        "own/smbclient_SMB3_11.pcap.zst",
        "own/torture_smb2.compound.pcap.zst",
        "own/torture_smb2.lock.pcap.zst",
        "own/torture_smb2.notify.pcap.zst",
        "own/torture_smb2.oplock.batch1.pcap.zst",
    ] {
        let told = as_if_encrypted(&bundled(name));
        assert!(!told.is_empty(), "{name}");
        for (number, told) in told.iter().enumerate() {
            let wrong = untrue(told);
            assert_eq!(wrong, Vec::<Pair>::new(), "{name}, connection {number}");
        }
        for loss in LOSSES {
            let mut total = Score::default();
            for seed in 0..runs(3) {
                for (number, told) in told.iter().enumerate() {
                    let score = score_told(told, loss, seed);
                    assert_eq!(score.wrong, 0, "{name}, connection {number}, {loss:?}, seed {seed}");
                    total.add(score);
                }
            }
            println!("{name} {loss:?}: {total:?}, recall {:.4}", total.recall());
        }
    }
}
