//! Complete damage to a conversation from one seed, in realistic order, with counts of the changes for comparison with
//! the results of an analysis.

use super::lose;
use crate::packet::Packet;
use crate::random::Random;
use proptest::prelude::*;
use smbscope_model::Timestamp;

/// Damage to a conversation. The default does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Plan {
    pub seed: u64,
    /// Resegments the data into segments of up to this many bytes.
    pub resegment: Option<u64>,
    /// Probability of merging neighbouring segments.
    pub coalesced: f64,
    /// Probability of a loss before the capture point, followed by a retransmission.
    pub lost: f64,
    /// Probability of an unneeded retransmission.
    pub resent: f64,
    /// Probability of an unneeded retransmission with other segment boundaries.
    pub resent_in_part: f64,
    /// Probability that a packet is captured late.
    pub reordered: f64,
    /// Probability that a packet is captured twice.
    pub duplicated: f64,
    /// Probability that the capture drops a packet.
    pub dropped: f64,
    /// Number of packets dropped in a row; 0 means 1.
    pub burst: usize,
    /// Snap length in bytes.
    pub snap: Option<usize>,
    /// Backward clock step: position as a share of the packets, and size in nanoseconds.
    pub clock_step: Option<(f64, i64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Losses before the capture point whose retransmission follows later bytes; only these are recognisable.
    pub lost: u64,
    /// Segments captured again because they were retransmitted, completely or in part.
    pub resent: u64,
    /// Segments captured after later bytes of their sender although they were sent before.
    pub reordered: u64,
    pub duplicated: u64,
    pub dropped: u64,
    pub dropped_segments: u64,
    pub snapped: u64,
    /// Packets after the clock step.
    pub stepped: u64,
}

#[derive(Debug, Clone)]
pub struct Damaged {
    pub packets: Vec<Packet>,
    pub done: Done,
}

impl Plan {
    /// Applies the damage. Spares the handshake, which is the first three packets: analysis without it is a separate
    /// subject that tests create themselves.
    pub fn apply(&self, packets: &[Packet]) -> Damaged {
        let seed = self.seed;
        let mut done = Done::default();
        let (handshake, said) = packets.split_at(3.min(packets.len()));
        let mut packets = said.to_vec();
        if let Some(largest) = self.resegment {
            packets = super::resegment(&packets, seed, largest);
        }
        packets = super::coalesce(&packets, seed, self.coalesced);
        (packets, done.lost) = lose(&packets, seed, self.lost, 12);
        let before = packets.len();
        packets = super::retransmit(&packets, seed, self.resent, 30);
        packets = super::retransmit_in_part(&packets, seed.wrapping_add(1), self.resent_in_part, 30);
        done.resent = (packets.len() - before) as u64;
        let already_late = late(&packets).count();
        packets = super::reorder(&packets, seed, self.reordered, 5);
        done.reordered = late(&packets).count().saturating_sub(already_late) as u64;
        let before = packets.len();
        packets = super::duplicate(&packets, seed, self.duplicated);
        done.duplicated = (packets.len() - before) as u64;
        let burst = self.burst.max(1);
        let kept = super::drop_bursts(&packets, seed, self.dropped / burst as f64, burst);
        let segments = |packets: &[Packet]| packets.iter().filter(|packet| !packet.payload.is_empty()).count();
        done.dropped = (packets.len() - kept.len()) as u64;
        done.dropped_segments = (segments(&packets) - segments(&kept)) as u64;
        packets = [handshake, &kept].concat();
        if let Some(length) = self.snap {
            packets = super::snap(&packets, length);
            done.snapped = packets.iter().filter(|packet| packet.wire_length() > length).count() as u64;
        }
        if let Some((share, by_ns)) = self.clock_step {
            let from = ((packets.len() as f64 * share) as usize).min(packets.len());
            packets[from..].iter_mut().for_each(|packet| packet.time = Timestamp(packet.time.0 - by_ns));
            done.stepped = (packets.len() - from) as u64;
        }
        Damaged { packets, done }
    }
}

/// Returns the indexes of data packets that follow later data of the same side.
pub fn late(packets: &[Packet]) -> impl Iterator<Item = usize> {
    let mut furthest: [u64; 2] = [0, 0];
    packets.iter().enumerate().filter(|(_, packet)| !packet.payload.is_empty()).filter_map(move |(index, packet)| {
        let furthest = &mut furthest[packet.side.index()];
        let is_late = packet.offset < *furthest;
        *furthest = packet.offset.max(*furthest);
        is_late.then_some(index)
    })
}

/// Generates plans with a bit of everything, but without clock steps.
pub fn plans() -> impl Strategy<Value = Plan> {
    let network = (prop::option::of(1u64..1460), 0.0..0.5f64, 0.0..0.1f64, 0.0..0.1f64, 0.0..0.1f64);
    let capture = (0.0..0.3f64, 0.0..0.2f64, 0.0..0.3f64, 1usize..6, prop::option::weighted(0.2, 96usize..400));
    (any::<u64>(), network, capture).prop_map(|(seed, network, capture)| {
        let (resegment, coalesced, lost, resent, resent_in_part) = network;
        let (reordered, duplicated, dropped, burst, snap) = capture;
        let clock_step = None;
        Plan {
            seed,
            resegment,
            coalesced,
            lost,
            resent,
            resent_in_part,
            reordered,
            duplicated,
            dropped,
            burst,
            snap,
            clock_step,
        }
    })
}

/// Distributes the capture over two interfaces: each packet goes to the second with this probability, or by side if
/// that is `None`. Returns the packets, moved apart so that times determine their order, and the interface of each.
pub fn two_interfaces(packets: &[Packet], seed: u64, second: Option<f64>) -> (Vec<Packet>, Vec<usize>) {
    let mut random = Random::new(seed);
    let interface = |packet: &Packet| second.map_or(packet.side.index(), |second| usize::from(random.chance(second)));
    let interfaces = packets.iter().map(interface).collect();
    (super::move_apart(packets), interfaces)
}
