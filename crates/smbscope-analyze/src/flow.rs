//! State of one flow: a framer per direction, and the SMB connection once one is recognised; and flows that failed to
//! become a connection, by client and server.
//!
//! Attempts at ports other than 445 and 139 are kept separately: only the end of the capture tells which of them carry
//! SMB, and a port scan must not displace attempts at known SMB ports.

use crate::connection::ConnectionAnalyzer;
use crate::content::{ContentReader, FrameContent};
use crate::decryption::FlowKeys;
use crate::encrypted::sizes::{Undecided, UndecidedFrame};
use crate::foreign::{self, FirstBytes};
use crate::frame::Frame;
use crate::framer::Framer;
use crate::ledger::ShardContext;
use serde::{Deserialize, Serialize};
use smbscope_capture::tcp::{FlowEnd, FlowView, Retransmission, StreamChunk, StreamGap};
use smbscope_model::{ConnectAttempt, ConnectAttempts, ConnectionProxy, FlowDirection, ForeignProtocol, ForeignReply};
use smbscope_wire::{smb1, smb2};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Messages of a direction that are inspected: a request to a proxy may take several.
const HEARD: u8 = 3;

#[derive(Debug, Clone)]
pub struct FlowState {
    framers: [Framer; 2],
    client_by_port: Option<FlowDirection>,
    connection: Option<Box<ConnectionAnalyzer>>,
    details: bool,
    /// Allocated only if there are keys.
    keys: Option<Box<FlowKeys>>,
    undecided: Undecided,
    /// By direction: messages seen before SMB, and the meaning of the first one if it is not SMB.
    heard: [u8; 2],
    first_bytes: [Option<FirstBytes>; 2],
    proxy_target: Option<Arc<str>>,
}

impl FlowState {
    pub(crate) fn new(view: &FlowView, promising: [bool; 2], details: bool, has_keys: bool) -> FlowState {
        let certain = promising.contains(&true);
        FlowState {
            framers: [(); 2].map(|()| Framer::new(view.midstream, certain)),
            client_by_port: match promising {
                [true, false] => Some(FlowDirection::Backward),
                [false, true] => Some(FlowDirection::Forward),
                _ => None,
            },
            connection: None,
            details,
            keys: has_keys.then(Box::default),
            undecided: Undecided::default(),
            heard: [0, 0],
            first_bytes: [None, None],
            proxy_target: None,
        }
    }

    pub(crate) fn data(
        &mut self,
        view: &FlowView,
        direction: FlowDirection,
        chunk: &StreamChunk<'_>,
        shared: &mut ShardContext<'_>,
    ) {
        if self.heard[direction.index()] < HEARD {
            self.hear(direction, chunk);
        }
        let mut frames = std::mem::take(shared.frames);
        let framer = &mut self.framers[direction.index()];
        if !view.begins[direction.index()] {
            framer.may_miss_the_beginning(chunk.position);
        }
        let mut reader = reader(self.details, &mut self.keys, shared, direction);
        framer.data(chunk, &mut reader, &mut frames);
        self.take_frames(view, direction, &mut frames, shared);
        *shared.frames = frames;
        if let Some(connection) = &mut self.connection {
            let open = self.framers.iter().filter_map(Framer::open_since);
            connection.settle(view, chunk.first.time, open, shared.emit);
        }
    }

    /// Interprets the first messages of a direction.
    #[cold]
    fn hear(&mut self, direction: FlowDirection, chunk: &StreamChunk<'_>) {
        let heard = &mut self.heard[direction.index()];
        let first = &mut self.first_bytes[direction.index()];
        if *heard == 0 {
            *first = FirstBytes::parse(chunk.bytes, chunk.length);
        }
        match first {
            Some(FirstBytes::ProxyRequest(protocol)) if self.proxy_target.is_none() => {
                self.proxy_target = foreign::target(*protocol, chunk.bytes);
                *heard += 1;
            }
            _ => *heard = HEARD,
        }
    }

    /// Returns the protocol that a connection without SMB speaks.
    pub(crate) fn other_protocol(&self) -> Option<ForeignProtocol> {
        self.first_bytes.iter().flatten().filter_map(|first| first.protocol()).max()
    }

    fn proxy(&self, client: FlowDirection) -> Option<ConnectionProxy> {
        let of_client = self.first_bytes[client.index()]?;
        let protocol = FirstBytes::proxy(of_client, self.first_bytes[client.reverse().index()]?)?;
        Some(ConnectionProxy { protocol, target: self.proxy_target.clone() })
    }

    pub(crate) fn gap(
        &mut self,
        view: &FlowView,
        direction: FlowDirection,
        gap: &StreamGap,
        shared: &mut ShardContext<'_>,
    ) {
        let mut frames = std::mem::take(shared.frames);
        let mut reader = reader(self.details, &mut self.keys, shared, direction);
        self.framers[direction.index()].gap(gap, &mut reader, &mut frames);
        self.take_frames(view, direction, &mut frames, shared);
        *shared.frames = frames;
    }

    #[inline]
    pub(crate) fn footprint(&self) -> usize {
        let [forward, backward] = &self.framers;
        let connection = self.connection.as_ref().map_or(0, |connection| connection.footprint());
        let keys = self.keys.as_ref().map_or(0, |keys| keys.footprint());
        forward.footprint() + backward.footprint() + connection + self.undecided.footprint() + keys
    }

    pub(crate) fn retransmitted(&mut self, direction: FlowDirection, retransmission: &Retransmission) {
        if let Some(connection) = &mut self.connection {
            connection.retransmitted(&self.framers[direction.index()], direction, retransmission);
        }
    }

    pub(crate) fn close(
        mut self,
        view: &FlowView,
        end: &FlowEnd,
        shared: &mut ShardContext<'_>,
    ) -> Option<smbscope_model::ConnectionSummary> {
        let mut frames = Vec::new();
        for direction in FlowDirection::BOTH {
            let mut reader = reader(self.details, &mut self.keys, shared, direction);
            self.framers[direction.index()].finish(&mut reader, &mut frames);
            self.take_frames(view, direction, &mut frames, shared);
        }
        if !self.undecided.is_empty() {
            self.guess_client(view, shared);
        }
        let connection = self.connection.take()?;
        let proxy = self.proxy(connection.client());
        self.framers.iter().for_each(|framer| framer.count(shared.quality));
        shared.quality.merge(&end.quality);
        let server = connection.client().reverse();
        let answered = self.first_bytes[server.index()].and_then(FirstBytes::protocol);
        // Data from the middle of a connection may look like anything.
        if let Some(protocol) = answered.filter(|_| proxy.is_none() && view.begins[server.index()]) {
            shared.quality.foreign_replies += 1;
            let reply = ForeignReply { server: view.ends(server).0, protocol };
            shared.foreign_replies.add(reply, ());
        }
        let summary = connection.close(view, shared, &mut self.framers, end);
        Some(smbscope_model::ConnectionSummary { proxy, ..summary })
    }

    fn take_frames(
        &mut self,
        view: &FlowView,
        direction: FlowDirection,
        frames: &mut Vec<Frame>,
        shared: &mut ShardContext<'_>,
    ) {
        for frame in frames.iter_mut() {
            let connection = match &mut self.connection {
                Some(connection) => connection,
                None if matches!(frame.content, FrameContent::Raw) => continue,
                none => {
                    self.framers.iter_mut().for_each(Framer::make_certain);
                    match known_client(view, self.client_by_port, direction, frame) {
                        Some(client) if self.undecided.is_empty() => {
                            none.insert(Box::new(ConnectionAnalyzer::new(view, client)))
                        }
                        known => {
                            self.wait(view, direction, frame, known, shared);
                            continue;
                        }
                    }
                }
            };
            connection.take_frame(view, shared, &self.framers, direction, frame);
        }
        frames.clear();
    }

    #[cold]
    fn wait(
        &mut self,
        view: &FlowView,
        direction: FlowDirection,
        frame: &mut Frame,
        known: Option<FlowDirection>,
        shared: &mut ShardContext<'_>,
    ) {
        let content = std::mem::replace(&mut frame.content, FrameContent::Raw);
        let reached = self.framers.each_ref().map(|framer| framer.losses.reached());
        let by_size = self.undecided.push(UndecidedFrame { direction, frame: Frame { content, ..*frame }, reached });
        match known.or(by_size) {
            Some(client) => self.connect(view, client, shared),
            None if self.undecided.is_full() => self.guess_client(view, shared),
            None => {}
        }
    }

    fn guess_client(&mut self, view: &FlowView, shared: &mut ShardContext<'_>) {
        shared.quality.sides_guessed += 1;
        self.connect(view, view.client_by_port(), shared);
    }

    fn connect(&mut self, view: &FlowView, client: FlowDirection, shared: &mut ShardContext<'_>) {
        let connection = self.connection.insert(Box::new(ConnectionAnalyzer::new(view, client)));
        let now = self.framers.each_ref().map(|framer| framer.losses.reached());
        let reach = |framers: &mut [Framer; 2], reached: [u64; 2]| {
            framers.iter_mut().zip(reached).for_each(|(framer, position)| framer.losses.reach(position));
        };
        for UndecidedFrame { direction, mut frame, reached } in self.undecided.take_frames() {
            reach(&mut self.framers, reached);
            connection.take_frame(view, shared, &self.framers, direction, &mut frame);
        }
        reach(&mut self.framers, now);
    }
}

fn reader<'k>(
    details: bool,
    flow: &'k mut Option<Box<FlowKeys>>,
    shared: &'k mut ShardContext<'_>,
    direction: FlowDirection,
) -> ContentReader<'k> {
    ContentReader::new(details, flow.as_deref_mut(), shared.keys.as_deref_mut(), direction)
}

/// Returns the direction of the client: the sender of a request. If the message could be from either side, like
/// encrypted ones, the side that opened the connection, or the one without an SMB port.
fn known_client(
    view: &FlowView,
    by_port: Option<FlowDirection>,
    direction: FlowDirection,
    frame: &Frame,
) -> Option<FlowDirection> {
    match frame.content.asks() {
        Some(true) => Some(direction),
        Some(false) => Some(direction.reverse()),
        None => view.opener.or(by_port),
    }
}

/// Returns true if a segment begins with a NEGOTIATE request, which occurs only at the beginning of a connection.
pub(crate) fn begins_connection(bytes: &[u8]) -> bool {
    let Some(message) = bytes.get(4..).filter(|_| bytes[0] == 0) else { return false };
    match message {
        [0xff, b'S', b'M', b'B', command, _, _, _, _, flags, ..] => {
            smb1::Smb1Command(*command) == smb1::Smb1Command::NEGOTIATE && flags & 0x80 == 0
        }
        [0xfe, b'S', b'M', b'B', ..] => {
            let field = |at: usize| message.get(at..at + 2).map(|field| u16::from_le_bytes([field[0], field[1]]));
            let is_negotiate = field(12).map(smb2::Smb2Command) == Some(smb2::Smb2Command::NEGOTIATE);
            is_negotiate && field(16).is_some_and(|flags| flags & 1 == 0)
        }
        _ => false,
    }
}

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

    pub(crate) fn retain(&mut self, keeps: impl Fn(&ConnectAttempt) -> bool) {
        for sums in [&mut self.to_smb, &mut self.to_others] {
            sums.pairs.retain(|_, attempt| keeps(attempt));
        }
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
