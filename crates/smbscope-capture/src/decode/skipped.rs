//! Packet counts of protocols other than TCP.

use smbscope_model::{SkippedPackets, SkippedProtocol};

/// Maximum number of protocols listed individually, not counting IP protocols and UDP ports, which all are.
const MAX_SKIPPED_PROTOCOLS: usize = 128;

/// One counter per protocol, in tables of fixed maximum size.
#[derive(Debug)]
pub(super) struct SkippedProtocolCounts {
    ip: Box<[u64]>,
    udp: Box<[u64]>,
    others: Vec<(SkippedProtocol, u64)>,
    rest: u64,
}

impl SkippedProtocolCounts {
    pub(super) fn new() -> SkippedProtocolCounts {
        SkippedProtocolCounts {
            ip: vec![0; usize::from(u8::MAX) + 1].into_boxed_slice(),
            udp: vec![0; usize::from(u16::MAX) + 1].into_boxed_slice(),
            others: Vec::new(),
            rest: 0,
        }
    }

    pub(super) fn count(&mut self, protocol: SkippedProtocol) {
        *self.counter(protocol) += 1;
    }

    /// Moves packets counted under `before` to `now`, or removes them if that is `None`.
    pub(super) fn recount(&mut self, packets: u64, before: SkippedProtocol, now: Option<SkippedProtocol>) {
        let counter = self.counter(before);
        *counter = counter.saturating_sub(packets);
        if let Some(now) = now {
            *self.counter(now) += packets;
        }
    }

    fn counter(&mut self, protocol: SkippedProtocol) -> &mut u64 {
        match protocol {
            SkippedProtocol::IpProtocol(number) => &mut self.ip[usize::from(number)],
            SkippedProtocol::UdpPort(number) => &mut self.udp[usize::from(number)],
            _ => {
                let place = self.others.iter().position(|(known, _)| *known == protocol);
                match place {
                    Some(place) => &mut self.others[place].1,
                    None if self.others.len() < MAX_SKIPPED_PROTOCOLS => {
                        let place = self.others.len();
                        self.others.push((protocol, 0));
                        &mut self.others[place].1
                    }
                    None => &mut self.rest,
                }
            }
        }
    }

    /// Returns the `n` protocols with the most packets, and the sum of the rest.
    pub(super) fn most(&self, n: usize) -> Vec<SkippedPackets> {
        let ip = (0..=u8::MAX).zip(&self.ip).map(|(number, packets)| (SkippedProtocol::IpProtocol(number), *packets));
        let udp = (0..=u16::MAX).zip(&self.udp).map(|(number, packets)| (SkippedProtocol::UdpPort(number), *packets));
        let all = ip.chain(udp).chain(self.others.iter().copied());
        SkippedPackets::most(all.chain([(SkippedProtocol::Others, self.rest)]), n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_that_are_too_many_are_added_up_and_no_packet_is_lost() {
        let mut skipped = SkippedProtocolCounts::new();
        for link_type in 0..2 * MAX_SKIPPED_PROTOCOLS as u32 {
            skipped.count(SkippedProtocol::LinkType(link_type));
        }
        skipped.count(SkippedProtocol::UdpPort(53));
        skipped.count(SkippedProtocol::UdpPort(53));
        let most = skipped.most(4);
        assert_eq!(most[0], SkippedPackets { protocol: SkippedProtocol::UdpPort(53), packets: 2 });
        assert_eq!((most.len(), most[4].protocol), (5, SkippedProtocol::Others));
        assert_eq!(most.iter().map(|skipped| skipped.packets).sum::<u64>(), 2 * MAX_SKIPPED_PROTOCOLS as u64 + 2);
    }
}
