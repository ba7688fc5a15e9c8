//! Detects data captured at two layers of one host: as a large record before segmentation offload and again as the
//! packets that the network card made of it, or the reverse where the card coalesces received packets. `pktmon` and
//! other Windows traces contain both.
//!
//! The second layer repeats the first layer's bytes in order, with the same acknowledgment number and timestamp option,
//! within microseconds: faster than any sender retransmits (RFC 6298, RFC 6675). A record carries the IP identification
//! of its first packet, or none; a retransmission has a new one.

use super::ring::Ring;
use super::stream::Sighting;
use smbscope_model::{Nanos, Timestamp};

/// Maximum delay of the second layer after the first; longer once the second layer is established, to allow for
/// queueing in front of the card.
const FIRST_LAG: Nanos = Nanos(100_000);
const KNOWN_LAG: Nanos = Nanos(20_000_000);
/// Maximum difference of the timestamp options by then, in ticks of 1 ms (RFC 7323 §5.4).
const KNOWN_TICKS: u32 = 20;
/// Packets at a second layer needed to establish it.
const KNOWN_MIN: u32 = 16;

#[derive(Debug, Default)]
pub(super) struct Layers {
    /// End position and time of its last packet.
    last: Option<(u64, Timestamp)>,
    pub(super) packets: u32,
}

impl Layers {
    /// Returns true if the packet repeats data of the first layer, found in `recent`.
    pub(super) fn repeats<const N: usize>(&mut self, packet: &Sighting, recent: &Ring<Sighting, N>) -> bool {
        let lag = if self.packets >= KNOWN_MIN { KNOWN_LAG } else { FIRST_LAG };
        let follows = |(end, time): (u64, Timestamp)| end == packet.position && packet.time - time <= KNOWN_LAG;
        let goes_on = self.last.is_some_and(follows);
        let ticks = if goes_on { KNOWN_TICKS } else { 0 };
        let is_like = |known: &Sighting| known.is_like(packet, ticks);
        let any = |is: &dyn Fn(&Sighting) -> bool| recent.find(|known| is_like(known) && is(known)).is_some();
        let is_part = any(&|known| {
            let begins = known.position == packet.position && known.payload_length > packet.payload_length;
            let holds = known.position <= packet.position && packet.end() <= known.end();
            holds && (goes_on || begins && known.may_share_id(packet) && packet.time - known.time <= lag)
        });
        let is_merged = !is_part
            && any(&|known| {
                known.end() == packet.end() && known.position > packet.position && packet.time - known.time <= lag
            })
            && recent
                .find(|known| {
                    known.position == packet.position && known.end() < packet.end() && known.may_share_id(packet)
                })
                .is_some();
        if is_part || is_merged {
            self.last = Some((packet.end(), packet.time));
            self.packets = self.packets.saturating_add(1);
        }
        is_part || is_merged
    }
}
