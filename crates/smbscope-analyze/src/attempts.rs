//! Failed attempts to connect to an SMB server, by client and server.
//!
//! Until the end of the capture it is unknown which ports other than 445 and 139 carry SMB. Attempts at other ports are
//! kept separately until then, so that a port scan can't displace attempts at known SMB ports.

use serde::{Deserialize, Serialize};
use smbscope_capture::tcp::{FlowEnd, FlowView};
use smbscope_model::{ConnectAttempt, ConnectAttempts};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

/// Client-server pairs with failed attempts. For SMB ports and others each. Keeps those with the smallest addresses.
const MAX_ATTEMPT_PAIRS: usize = 1024;
/// The NetBIOS session service may end a connection with a message of its own before any SMB message (RFC 1002 §4.3.4).
const NETBIOS_PORT: u16 = 139;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ConnectAttemptTotals {
    to_smb: Sums,
    to_others: Sums,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Sums {
    pairs: BTreeMap<(SocketAddr, IpAddr), ConnectAttempt>,
    left_out: u64,
}

impl Sums {
    fn add(&mut self, attempt: ConnectAttempt) {
        let pair = (attempt.server, attempt.client);
        self.pairs.entry(pair).and_modify(|known| known.merge(&attempt)).or_insert(attempt);
        // An evicted pair always has enough smaller ones before it, so no pair is counted in part.
        if self.pairs.len() > MAX_ATTEMPT_PAIRS
            && let Some((_, last)) = self.pairs.pop_last()
        {
            self.left_out += last.attempts;
        }
    }

    fn merge(&mut self, other: Sums) {
        self.left_out += other.left_out;
        other.pairs.into_values().for_each(|attempt| self.add(attempt));
    }
}

impl ConnectAttemptTotals {
    pub(crate) fn add(&mut self, attempt: ConnectAttempt, is_smb: bool) {
        let sums = if is_smb { &mut self.to_smb } else { &mut self.to_others };
        sums.add(attempt);
    }

    pub(crate) fn merge(&mut self, other: ConnectAttemptTotals) {
        self.to_smb.merge(other.to_smb);
        self.to_others.merge(other.to_others);
    }

    pub(crate) fn finish(self, servers: &BTreeSet<SocketAddr>) -> ConnectAttempts {
        let others = self.to_others.pairs.into_values().filter(|attempt| servers.contains(&attempt.server));
        let mut listed: Vec<ConnectAttempt> = self.to_smb.pairs.into_values().chain(others).collect();
        listed.sort_by_key(|attempt| (std::cmp::Reverse(attempt.attempts), attempt.first.packet));
        let beyond = listed.split_off(listed.len().min(ConnectAttempt::MAX_LISTED));
        let left_out = beyond.iter().map(|attempt| attempt.attempts).sum::<u64>() + self.to_smb.left_out;
        ConnectAttempts { listed, left_out }
    }
}

/// Failed attempt that a flow without SMB represents. `None` without its SYN, with other data, or if it never ended.
pub(crate) fn attempt_of(view: &FlowView, end: &FlowEnd) -> Option<ConnectAttempt> {
    let opener = view.opener?;
    let (client, server) = view.ends(opener);
    let [sent, received] = [opener, opener.reverse()].map(|direction| &end.counts[direction.index()]);
    if sent.syns == 0 || (sent.bytes + received.bytes > 0 && server.port() != NETBIOS_PORT) {
        return None;
    }
    if sent.dropped_bytes + received.dropped_bytes > 0 {
        return None;
    }
    let unanswered = received.packets == 0 && sent.pure_acks + sent.bytes == 0;
    let refused = received.packets > 0 && received.syns == 0 && end.reset;
    let closed = !unanswered && !refused && (end.reset || end.finished);
    (unanswered || refused || closed).then(|| ConnectAttempt {
        client: client.ip(),
        server,
        attempts: 1,
        syns: sent.syns,
        refused: refused.into(),
        unanswered: unanswered.into(),
        closed_without_data: closed.into(),
        first: view.first,
        last: end.last.time,
        longest_wait: end.last.time - view.first.time,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use smbscope_model::{CaptureId, Nanos, PacketRef, Stamp, Timestamp};

    fn attempt(client: u16, number: u64) -> ConnectAttempt {
        let time = Timestamp(number as i64);
        ConnectAttempt {
            client: IpAddr::from([10, 0, (client >> 8) as u8, client as u8]),
            server: SocketAddr::from(([10, 1, 0, 1], 445)),
            attempts: 1,
            syns: 3,
            refused: 1,
            unanswered: 0,
            closed_without_data: 0,
            first: Stamp { time, packet: PacketRef::new(CaptureId(0), number) },
            last: time,
            longest_wait: Nanos(number as i64),
        }
    }

    proptest! {
        #[test]
        fn attempts_of_any_partition_merge_to_the_whole(attempts in prop::collection::vec((0u16..2_000, 0usize..3), 0..3_000)) {
            let (mut whole, mut parts) = (ConnectAttemptTotals::default(), [(); 3].map(|()| ConnectAttemptTotals::default()));
            for (number, (client, part)) in (1..).zip(attempts) {
                whole.add(attempt(client, number), true);
                parts[part].add(attempt(client, number), true);
            }
            let [mut a, b, c] = parts;
            a.merge(c);
            a.merge(b);
            prop_assert_eq!(&a, &whole);
            let found = a.finish(&BTreeSet::new());
            prop_assert!(found.listed.len() <= ConnectAttempt::MAX_LISTED);
        }
    }

    #[test]
    fn the_pairs_with_most_attempts_are_listed_and_the_others_counted() {
        let mut attempts = ConnectAttemptTotals::default();
        (1..).zip((0..100).chain([50, 50])).for_each(|(number, client)| attempts.add(attempt(client, number), true));
        let found = attempts.finish(&BTreeSet::new());
        assert_eq!((found.listed.len(), found.left_out), (64, 102 - 66));
        let most = &found.listed[0];
        assert_eq!((most.attempts, most.syns, most.refused, most.longest_wait), (3, 9, 3, Nanos(102)));
        assert_eq!((most.first.time, most.last), (Timestamp(51), Timestamp(102)));
    }
}
