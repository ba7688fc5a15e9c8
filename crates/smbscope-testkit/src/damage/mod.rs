//! Effects of captures and networks on packets, as pure functions with seeds. A packet's `origin`, `side` and `offset`
//! never change, so the truth is preserved.
//!
//! Apply network effects first (resegment, lose, retransmit, reorder), then capture effects (duplicate, drop, snap,
//! clock step), then damage to files. [`Plan`] does this in the right order and counts its changes. [`RandomDamage`] is
//! used by the damage tool on real captures.

mod cut;
mod network;
mod plan;
mod random_loss;

pub use cut::{move_apart, surviving};
pub use network::{coalesce, lose, reorder, resegment, retransmit, retransmit_in_part};
pub use plan::{Damaged, Done, Plan, late, plans, two_interfaces};
pub use random_loss::{Combination, Loss, RandomDamage};

use crate::packet::{Packet, Side};
use crate::random::Random;
use smbscope_model::Timestamp;

/// A captured packet, which a capture program can drop, repeat, delay or truncate.
pub trait Captured: Clone {
    fn time(&self) -> Timestamp;
    fn captured_at(&self, time: Timestamp) -> Self;
    fn snapped(&self, length: usize) -> Self;
}

impl Captured for Packet {
    fn time(&self) -> Timestamp {
        self.time
    }

    fn captured_at(&self, time: Timestamp) -> Packet {
        Packet { time, ..self.clone() }
    }

    fn snapped(&self, length: usize) -> Packet {
        Packet { snap: length, ..self.clone() }
    }
}

/// Drops packets independently with a probability.
pub fn drop_some<P: Captured>(packets: &[P], seed: u64, probability: f64) -> Vec<P> {
    drop_bursts(packets, seed, probability, 1)
}

/// Drops bursts of `length` packets; a burst starts at each packet with a probability.
pub fn drop_bursts<P: Captured>(packets: &[P], seed: u64, probability: f64, length: usize) -> Vec<P> {
    drop_among(packets, seed, probability, length, |_| true)
}

/// Drops bursts among some of the packets; the others are kept and not counted.
pub fn drop_among<P: Captured>(
    packets: &[P],
    seed: u64,
    probability: f64,
    length: usize,
    droppable: impl Fn(&P) -> bool,
) -> Vec<P> {
    let mut random = Random::new(seed);
    let mut left = 0;
    let mut keep = |packet: &&P| {
        if !droppable(packet) {
            return true;
        }
        if left == 0 && random.chance(probability) {
            left = length;
        }
        let dropped = left > 0;
        left = left.saturating_sub(1);
        !dropped
    };
    packets.iter().filter(&mut keep).cloned().collect()
}

pub fn without<P: Captured>(packets: &[P], dropped: &[usize]) -> Vec<P> {
    let kept = packets.iter().enumerate().filter(|(index, _)| !dropped.contains(index));
    kept.map(|(_, packet)| packet.clone()).collect()
}

/// Duplicates packets with a probability; each copy follows directly, at most one microsecond later.
pub fn duplicate<P: Captured>(packets: &[P], seed: u64, probability: f64) -> Vec<P> {
    let mut random = Random::new(seed);
    let mut result = Vec::new();
    for (index, packet) in packets.iter().enumerate() {
        result.push(packet.clone());
        if random.chance(probability) {
            let next = packets.get(index + 1).map_or(i64::MAX, |next| next.time().0);
            result.push(packet.captured_at(Timestamp((packet.time().0 + 1000).min(next))));
        }
    }
    result
}

/// Truncates each packet to this length, from the Ethernet header on.
pub fn snap<P: Captured>(packets: &[P], length: usize) -> Vec<P> {
    packets.iter().map(|packet| packet.snapped(length)).collect()
}

/// Reassembles the stream of one side. Panics if bytes are missing.
pub fn said(packets: &[Packet], side: Side) -> Vec<u8> {
    let mut sorted: Vec<&Packet> = packets.iter().filter(|packet| packet.side == side).collect();
    sorted.sort_by_key(|packet| packet.offset);
    let mut bytes: Vec<u8> = Vec::new();
    for packet in sorted {
        let known = (bytes.len() as u64).checked_sub(packet.offset).expect("no byte is missing") as usize;
        bytes.extend(packet.payload.get(known..).unwrap_or_default());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Conversation;

    fn packets() -> Vec<Packet> {
        let mut conversation = Conversation::new().segment_size(100);
        for step in 0..20 {
            conversation = conversation
                .client_sends(100 + step * 200, (0..=250).collect::<Vec<u8>>())
                .server_sends(200 + step * 200, vec![step as u8; 333]);
        }
        conversation.packets()
    }

    #[test]
    fn no_damage_by_the_network_loses_or_changes_bytes() {
        let original = packets();
        for seed in 0..50 {
            let damaged = resegment(&original, seed, 80);
            let damaged = retransmit(&coalesce(&damaged, seed, 0.2), seed, 0.2, 9);
            let damaged = reorder(&retransmit_in_part(&damaged, seed, 0.2, 9), seed, 0.3, 5);
            let damaged = duplicate(&damaged, seed, 0.2);
            for side in [Side::Client, Side::Server] {
                assert_eq!(said(&damaged, side), said(&original, side), "seed {seed}");
            }
            assert!(damaged.is_sorted_by_key(|packet| packet.time), "seed {seed}");
        }
    }

    #[test]
    fn a_reordered_packet_moves_by_no_more_than_the_places_given() {
        let original = packets();
        for seed in 0..50 {
            for (index, packet) in reorder(&original, seed, 0.5, 5).iter().enumerate() {
                assert!(index <= packet.origin + 5, "seed {seed}: {} became {index}", packet.origin);
            }
        }
    }

    #[test]
    fn a_retransmission_has_the_next_identification_of_its_sender() {
        let damaged = retransmit(&packets(), 1, 0.3, 5);
        for side in [Side::Client, Side::Server] {
            let ids: Vec<u16> = damaged.iter().filter(|p| p.side == side).map(|p| p.ip_id).collect();
            assert!(ids.windows(2).all(|pair| pair[1] == pair[0] + 1), "{ids:?}");
        }
    }
}
