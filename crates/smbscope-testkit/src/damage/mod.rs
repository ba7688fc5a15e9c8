//! Effects of captures and networks on packets, as pure functions with seeds. A packet's `origin`, `side` and `offset`
//! never change, so the truth is preserved.
//!
//! Apply network effects first (resegment, lose, retransmit, reorder), then capture effects (duplicate, drop, snap,
//! clock step), then damage to files. [`Plan`] does this in the right order and counts its changes. [`RandomDamage`] is
//! used by the damage tool on real captures.

mod plan;
mod random_loss;

pub use plan::{Damaged, Done, Plan, late, plans, two_interfaces};
pub use random_loss::{Combination, Loss, RandomDamage};

use crate::packet::{Packet, Side};
use crate::pcap::{FILE_HEADER, RECORD_HEADER};
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

/// Moves packets up to `places` places later. Timestamps stay in file order.
pub fn reorder<P: Captured>(packets: &[P], seed: u64, probability: f64, places: u64) -> Vec<P> {
    let mut random = Random::new(seed);
    let mut keyed: Vec<(u64, usize)> = (0..packets.len())
        .map(|index| {
            let later = if random.chance(probability) { 1 + random.below(places) } else { 0 };
            // A moved packet goes after the one whose place it takes.
            (2 * (index as u64 + later) + u64::from(later > 0), index)
        })
        .collect();
    keyed.sort();
    let moved = keyed.iter().map(|(_, index)| &packets[*index]);
    moved.zip(packets).map(|(packet, place)| packet.captured_at(place.time())).collect()
}

/// Loses segments before the capture point. The sender retransmits each with a new IP identification up to `places`
/// places later, before the receiver acknowledges it. Also returns how many of the copies follow later data of their
/// sender: only these are recognisable as retransmissions.
pub fn lose(packets: &[Packet], seed: u64, probability: f64, places: u64) -> (Vec<Packet>, u64) {
    let mut random = Random::new(seed);
    let mut due: Vec<(usize, Packet)> = Vec::new();
    let mut result: Vec<Packet> = Vec::new();
    let mut senders = [Sender::default(); 2];
    let mut known = 0;
    for (index, packet) in packets.iter().enumerate() {
        let (now, rest) = due.into_iter().partition::<Vec<_>, _>(|(at, _)| *at == index);
        due = rest;
        // Copies are sent at regular intervals between their neighbours.
        let (before, copies) = (packets[index.saturating_sub(1)].time, now.len() as i64);
        let pause = (packet.time - before).0 / (copies + 1);
        for (place, (_, again)) in now.into_iter().enumerate() {
            let sender = &mut senders[again.side.index()];
            let ip_id = sender.latest_id.wrapping_add(1);
            let time = Timestamp(before.0 + pause * (place as i64 + 1));
            sender.sent_again += 1;
            known += u64::from(sender.captured_to > again.offset);
            let again = Packet { time, ip_id, acknowledgment: sender.acknowledgment, ..again };
            sender.send(&again, true);
            result.push(again);
        }
        let sender = &mut senders[packet.side.index()];
        let packet = Packet { ip_id: packet.ip_id.wrapping_add(sender.sent_again), ..packet.clone() };
        let confirmed = packets[index + 1..].iter().position(|later| acknowledges(later, &packet));
        let room = confirmed.unwrap_or(packets.len() - index - 1) as u64;
        let lost = !packet.payload.is_empty() && room > 0 && random.chance(probability);
        sender.send(&packet, !lost);
        if lost {
            due.push((index + 1 + random.below(room.min(places)) as usize, packet));
        } else {
            result.push(packet);
        }
    }
    (result, known)
}

#[derive(Debug, Clone, Copy, Default)]
struct Sender {
    latest_id: u16,
    acknowledgment: u32,
    /// Number of copies sent so far, by which its later identifications are higher.
    sent_again: u16,
    captured_to: u64,
}

impl Sender {
    fn send(&mut self, packet: &Packet, captured: bool) {
        (self.latest_id, self.acknowledgment) = (packet.ip_id, packet.acknowledgment);
        if captured && !packet.payload.is_empty() {
            self.captured_to = self.captured_to.max(packet.offset);
        }
    }
}

/// Returns true if a packet acknowledges at least the first byte of another one.
fn acknowledges(later: &Packet, packet: &Packet) -> bool {
    let offset_0 = packet.sequence.wrapping_sub(packet.offset as u32);
    later.side != packet.side && u64::from(later.acknowledgment.wrapping_sub(offset_0)) > packet.offset
}

/// Retransmits segments that had arrived: a copy with a new IP identification follows 1 to `places` places later.
pub fn retransmit(packets: &[Packet], seed: u64, probability: f64, places: u64) -> Vec<Packet> {
    resend(packets, seed, probability, places, |packet, _| packet.clone())
}

/// Like [`retransmit`], but the copy starts or ends in the middle of the segment.
pub fn retransmit_in_part(packets: &[Packet], seed: u64, probability: f64, places: u64) -> Vec<Packet> {
    resend(packets, seed, probability, places, |packet, random| {
        let cut = 1 + random.below(packet.payload.len() as u64 - 1) as usize;
        if random.chance(0.5) { slice(packet, 0, cut) } else { slice(packet, cut, packet.payload.len()) }
    })
}

fn resend(
    packets: &[Packet],
    seed: u64,
    probability: f64,
    places: u64,
    mut copy: impl FnMut(&Packet, &mut Random) -> Packet,
) -> Vec<Packet> {
    let mut random = Random::new(seed);
    let mut due: Vec<(usize, Packet)> = Vec::new();
    let mut result: Vec<Packet> = Vec::new();
    let mut sent_again = [0u16, 0];
    for (index, packet) in packets.iter().enumerate() {
        let extra = sent_again[packet.side.index()];
        result.push(Packet { ip_id: packet.ip_id.wrapping_add(extra), ..packet.clone() });
        if packet.payload.len() > 1 && random.chance(probability) {
            let later = 1 + random.below(places) as usize;
            due.push((index + later, copy(packet, &mut random)));
        }
        let (now, rest) = due.into_iter().partition::<Vec<_>, _>(|(at, _)| *at == index);
        due = rest;
        for (_, again) in now {
            let last = result.iter().rev().find(|sent| sent.side == again.side);
            let ip_id = last.map_or(again.ip_id, |sent| sent.ip_id).wrapping_add(1);
            // The acknowledgment number at the time of sending.
            let acknowledgment = last.map_or(again.acknowledgment, |sent| sent.acknowledgment);
            sent_again[again.side.index()] += 1;
            result.push(Packet { time: packet.time, ip_id, acknowledgment, ..again });
        }
    }
    result
}

/// Splits and merges the streams into segments of 1 to `largest` bytes. Each new segment gets the time and
/// acknowledgment of the original that contained its last byte.
pub fn resegment(packets: &[Packet], seed: u64, largest: u64) -> Vec<Packet> {
    let mut random = Random::new(seed);
    let mut result: Vec<Packet> = Vec::new();
    let mut pieces = [0u16, 0];
    for packet in packets {
        let side = packet.side.index();
        if packet.payload.len() < 2 {
            result.push(Packet { ip_id: packet.ip_id.wrapping_add(pieces[side]), ..packet.clone() });
            continue;
        }
        let mut from = 0;
        while from < packet.payload.len() {
            let to = (from + 1 + random.below(largest) as usize).min(packet.payload.len());
            let piece = slice(packet, from, to);
            result.push(Packet { ip_id: packet.ip_id.wrapping_add(pieces[side]), ..piece });
            pieces[side] = pieces[side].wrapping_add(1);
            from = to;
        }
        pieces[side] = pieces[side].wrapping_sub(1);
    }
    result
}

/// Merges neighbouring segments of a side that have the same acknowledgment, with a probability, like receive offload.
/// The result has the time of the last.
pub fn coalesce(packets: &[Packet], seed: u64, probability: f64) -> Vec<Packet> {
    let mut random = Random::new(seed);
    let mut result: Vec<Packet> = Vec::new();
    for packet in packets {
        match result.last_mut() {
            Some(last)
                if last.side == packet.side
                    && !last.payload.is_empty()
                    && !packet.payload.is_empty()
                    && last.end() == packet.offset
                    && last.acknowledgment == packet.acknowledgment
                    && last.payload.len() + packet.payload.len() < 60_000
                    && random.chance(probability) =>
            {
                last.payload.extend(&packet.payload);
                last.time = packet.time;
            }
            _ => result.push(packet.clone()),
        }
    }
    result
}

fn slice(packet: &Packet, from: usize, to: usize) -> Packet {
    Packet {
        sequence: packet.sequence.wrapping_add(from as u32),
        offset: packet.offset + from as u64,
        payload: packet.payload[from..to].to_vec(),
        ..packet.clone()
    }
}

pub fn move_apart(packets: &[Packet]) -> Vec<Packet> {
    let mut packets = packets.to_vec();
    for index in 1..packets.len() {
        packets[index].time = packets[index].time.max(Timestamp(packets[index - 1].time.0 + 1));
    }
    packets
}

/// Returns the number of packets that survive truncating a pcap file to this length, and true if a record is split.
pub fn surviving(packets: &[Packet], length: usize) -> (usize, bool) {
    let mut at = FILE_HEADER;
    for (index, packet) in packets.iter().enumerate() {
        let end = at + RECORD_HEADER + packet.ethernet().len();
        if end > length {
            return (index, length > at);
        }
        at = end;
    }
    (packets.len(), false)
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
