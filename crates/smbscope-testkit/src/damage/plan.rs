//! Everything that happens to a conversation on its way into a capture, in the order in which it happens, from one
//! seed; with a count of what was done, to compare with what an analysis says.

use super::network::{self, lose};
use crate::packet::Packet;
use crate::random::Random;
use proptest::prelude::*;
use smbscope_model::Timestamp;

/// What to do to a conversation. The default does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Plan {
    /// Where every choice comes from.
    pub seed: u64,
    /// The senders cut their data into segments of up to this many bytes.
    pub resegment: Option<u64>,
    /// Neighbouring segments are put together, with a probability.
    pub coalesced: f64,
    /// Segments that the network loses before the capture point; the sender sends them again.
    pub lost: f64,
    /// Segments that are sent again, though they arrived.
    pub resent: f64,
    /// The same, in a piece of another size.
    pub resent_in_part: f64,
    /// Packets that are captured later than they were sent.
    pub reordered: f64,
    /// Packets that are captured twice.
    pub duplicated: f64,
    /// Packets that the capture drops.
    pub dropped: f64,
    /// How many it drops in a row; 0 is 1.
    pub burst: usize,
    /// Bytes of each packet that it keeps.
    pub snap: Option<usize>,
    /// Its clock is set back: after this share of the packets, by this much.
    pub clock_step: Option<(f64, i64)>,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Segments lost before the capture point whose late copy follows later bytes: only then can anyone know.
    pub lost: u64,
    /// Segments captured a second time because they were sent a second time, whole or in part.
    pub resent: u64,
    /// Segments captured after later bytes of their sender, though they were sent before them.
    pub reordered: u64,
    /// Packets captured twice.
    pub duplicated: u64,
    /// Packets not captured.
    pub dropped: u64,
    /// Those of them with data.
    pub dropped_segments: u64,
    /// Packets cut short.
    pub snapped: u64,
    /// Packets with a time from after the step.
    pub stepped: u64,
}

/// A capture with a history.
#[derive(Debug, Clone)]
pub struct Damaged {
    /// What it holds.
    pub packets: Vec<Packet>,
    /// What was done to it.
    pub done: Done,
}

impl Plan {
    /// Does it. The handshake, which is the first three packets, is lost, moved or dropped only where a test does so
    /// itself: an analysis that begins in the middle is another matter.
    pub fn apply(&self, packets: &[Packet]) -> Damaged {
        let seed = self.seed;
        let mut done = Done::default();
        let (handshake, said) = packets.split_at(3.min(packets.len()));
        let mut packets = said.to_vec();
        if let Some(largest) = self.resegment {
            packets = network::resegment(&packets, seed, largest);
        }
        packets = network::coalesce(&packets, seed, self.coalesced);
        (packets, done.lost) = lose(&packets, seed, self.lost, 12);
        let before = packets.len();
        packets = network::retransmit(&packets, seed, self.resent, 30);
        packets = network::retransmit_in_part(&packets, seed.wrapping_add(1), self.resent_in_part, 30);
        done.resent = (packets.len() - before) as u64;
        let already_late = late(&packets).count();
        packets = network::reorder(&packets, seed, self.reordered, 5);
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

/// Places of the data packets that lie behind one of the same side with later data.
pub fn late(packets: &[Packet]) -> impl Iterator<Item = usize> {
    let mut furthest: [u64; 2] = [0, 0];
    packets.iter().enumerate().filter(|(_, packet)| !packet.payload.is_empty()).filter_map(move |(index, packet)| {
        let furthest = &mut furthest[packet.side.index()];
        let is_late = packet.offset < *furthest;
        *furthest = packet.offset.max(*furthest);
        is_late.then_some(index)
    })
}

/// Plans that do a little of everything; nothing among it that hides when something happened.
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

/// The capture is spread over two interfaces: packet by packet with a probability for the second, or one for each side.
/// Returns for each packet which one it is. Times must differ for the order to be known, so they are moved apart.
pub fn two_interfaces(packets: &[Packet], seed: u64, second: Option<f64>) -> (Vec<Packet>, Vec<usize>) {
    let mut random = Random::new(seed);
    let interface = |packet: &Packet| second.map_or(packet.side.index(), |second| usize::from(random.chance(second)));
    let interfaces = packets.iter().map(interface).collect();
    (super::move_apart(packets), interfaces)
}
