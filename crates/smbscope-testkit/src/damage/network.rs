//! What senders and networks do: no byte is lost for good, but bytes come in other pieces, again, or late.

use super::Captured;
use crate::packet::Packet;
use crate::random::Random;
use smbscope_model::Timestamp;

/// Packets are captured up to `places` places later than they were sent. Times stay in the order of the file.
pub fn reorder<P: Captured>(packets: &[P], seed: u64, probability: f64, places: u64) -> Vec<P> {
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
    moved.zip(packets).map(|(packet, place)| packet.captured_at(place.time())).collect()
}

/// The network loses some segments before they reach the capture point, and the sender sends each again, with a new IP
/// identification, up to `places` places later: before the receiver says that it has it. Returns with the packets how
/// many of the copies lie behind later data of their sender, which is the only way to know that there was a first.
pub fn lose(packets: &[Packet], seed: u64, probability: f64, places: u64) -> (Vec<Packet>, u64) {
    let mut random = Random::new(seed);
    let mut due: Vec<(usize, Packet)> = Vec::new();
    let mut result: Vec<Packet> = Vec::new();
    let mut senders = [Sender::default(); 2];
    let mut known = 0;
    for (index, packet) in packets.iter().enumerate() {
        let (now, rest) = due.into_iter().partition::<Vec<_>, _>(|(at, _)| *at == index);
        due = rest;
        // They are sent between their neighbours, one after the other.
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

/// How far a sender has come.
#[derive(Debug, Clone, Copy, Default)]
struct Sender {
    latest_id: u16,
    acknowledgment: u32,
    /// Copies sent so far, by which its later identifications are higher.
    sent_again: u16,
    /// The furthest data packet that was captured begins here.
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

/// Whether a packet says that its sender has the first byte of another one, or more.
fn acknowledges(later: &Packet, packet: &Packet) -> bool {
    let offset_0 = packet.sequence.wrapping_sub(packet.offset as u32);
    later.side != packet.side && u64::from(later.acknowledgment.wrapping_sub(offset_0)) > packet.offset
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

/// Part of a segment.
fn slice(packet: &Packet, from: usize, to: usize) -> Packet {
    Packet {
        sequence: packet.sequence.wrapping_add(from as u32),
        offset: packet.offset + from as u64,
        payload: packet.payload[from..to].to_vec(),
        ..packet.clone()
    }
}
