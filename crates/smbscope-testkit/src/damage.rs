//! What captures and networks do to packets, as pure functions with seeds. A packet's `origin`, `side` and `offset`
//! stay what they were, so the truth is never lost.
//!
//! The order that makes sense: first what the network does (resegment, retransmit, reorder), then what the capture
//! does (duplicate, drop, snap).

use crate::packet::{Packet, Side};
use crate::random::Random;
use smbscope_model::Timestamp;

/// The capture drops packets with a probability, each by itself.
pub fn drop_some(packets: &[Packet], seed: u64, probability: f64) -> Vec<Packet> {
    drop_bursts(packets, seed, probability, 1)
}

/// The capture drops `length` packets in a row, beginning at each packet with a probability.
pub fn drop_bursts(packets: &[Packet], seed: u64, probability: f64, length: usize) -> Vec<Packet> {
    let mut random = Random::new(seed);
    let mut left = 0;
    let mut keep = |_: &&Packet| {
        if left == 0 && random.chance(probability) {
            left = length;
        }
        let dropped = left > 0;
        left = left.saturating_sub(1);
        !dropped
    };
    packets.iter().filter(&mut keep).cloned().collect()
}

/// The capture does not hold these packets, by their place in the list.
pub fn without(packets: &[Packet], dropped: &[usize]) -> Vec<Packet> {
    let kept = packets.iter().enumerate().filter(|(index, _)| !dropped.contains(index));
    kept.map(|(_, packet)| packet.clone()).collect()
}

/// The capture holds some packets twice: the copy is one microsecond later at most, and nothing lies between.
pub fn duplicate(packets: &[Packet], seed: u64, probability: f64) -> Vec<Packet> {
    let mut random = Random::new(seed);
    let mut result = Vec::new();
    for (index, packet) in packets.iter().enumerate() {
        result.push(packet.clone());
        if random.chance(probability) {
            let next = packets.get(index + 1).map_or(i64::MAX, |next| next.time.0);
            result.push(Packet { time: Timestamp((packet.time.0 + 1000).min(next)), ..packet.clone() });
        }
    }
    result
}

/// Packets are captured up to `places` places later than they were sent. Times stay in the order of the file.
pub fn reorder(packets: &[Packet], seed: u64, probability: f64, places: u64) -> Vec<Packet> {
    let mut random = Random::new(seed);
    let mut keyed: Vec<(u64, usize)> = (0..packets.len())
        .map(|index| {
            let later = if random.chance(probability) { 1 + random.below(places) } else { 0 };
            // A packet that is moved comes behind the one whose place it takes.
            (2 * (index as u64 + later) + u64::from(later > 0), index)
        })
        .collect();
    keyed.sort();
    let moved = keyed.iter().map(|(_, index)| &packets[*index]);
    moved.zip(packets).map(|(packet, place)| Packet { time: place.time, ..packet.clone() }).collect()
}

/// The sender sends some segments again, though they had arrived: a copy with a new IP identification is captured
/// 1 to `places` places later.
pub fn retransmit(packets: &[Packet], seed: u64, probability: f64, places: u64) -> Vec<Packet> {
    resend(packets, seed, probability, places, |packet, _| packet.clone())
}

/// As [`retransmit`], but the copy is cut otherwise: it begins or ends in the middle of the segment.
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
            // The acknowledgment is that of the time of sending.
            let acknowledgment = last.map_or(again.acknowledgment, |sent| sent.acknowledgment);
            sent_again[again.side.index()] += 1;
            result.push(Packet { time: packet.time, ip_id, acknowledgment, ..again });
        }
    }
    result
}

/// The same bytes in segments of other sizes, 1 to `largest` bytes. A segment is cut where it lies; each piece keeps
/// the time and the acknowledgment of the segment that its last byte was in.
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

/// Neighbouring segments of a side with the same acknowledgment become one, with a probability: what offloading does.
/// The time is that of the last.
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

/// The capture keeps this many bytes of each packet, from the Ethernet header on.
pub fn snap(packets: &[Packet], length: usize) -> Vec<Packet> {
    packets.iter().map(|packet| Packet { snap: length, ..packet.clone() }).collect()
}

/// Part of a segment.
fn slice(packet: &Packet, from: usize, to: usize) -> Packet {
    Packet {
        sequence: packet.sequence.wrapping_add(from as u32),
        offset: packet.offset + from as u64,
        payload: packet.payload[from..to].to_vec(),
        ..packet.clone()
    }
}

/// What a side said, put together from its packets; panics where bytes are missing.
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
