//! Effects of senders and networks: no byte is lost for good, but bytes arrive in other segments, repeatedly, or late.

use super::Captured;
use crate::packet::Packet;
use crate::random::Random;
use smbscope_model::Timestamp;

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
