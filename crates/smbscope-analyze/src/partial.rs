//! What parts of an analysis found: adds up in any order and grouping, and is finished once.
//!
//! Parts divide the connections: each connection lies in one of them as a whole. Then parts merge to what one analysis of
//! everything finds, with these bounds: as long as no shard has more connections than it may list
//! ([`Limits::part`](smbscope_model::Limits::part)), evicts none for want of memory, and has no more than 2 MiB of names of
//! their users and shares; and up to 128 protocols that are not read beside those of IP and ports of UDP.

use crate::analyzer::AnalyzerOutcome;
use crate::attempts::ConnectAttemptTotals;
use crate::channels::{self, Met};
use crate::least::{ClockSteps, ForeignReplies, Initials, Routed};
use serde::{Deserialize, Serialize};
use smbscope_model::{
    ClockStep, ConnectAttempts, ConnectionSummary, ForeignReply, Nanos, Quality, SeenTwice, SkippedPackets,
    SkippedProtocol, Timestamp,
};
use std::collections::BTreeMap;

/// Protocols that are no TCP that are listed; the packets of others are added up.
pub const SKIPPED_LISTED: usize = 32;
/// TCP ports that are named where nothing is SMB.
const PORTS_LISTED: usize = 5;
/// How much later the other side of an address translation may have seen a connection begin.
const MAX_APART: Nanos = Nanos(10_000_000_000);

/// What an analysis found, apart from the exchanges.
#[derive(Debug, Default)]
pub struct CaptureFindings {
    /// Counts of reading, decoding and analysing.
    pub quality: Quality,
    /// The connections, by first packet.
    pub connections: Vec<ConnectionSummary>,
    /// Connections that are not in the list because it was full.
    pub connections_left_out: u64,
    /// Failed attempts to connect: TCP connections to port 445 or 139, or to a server of `connections`, that never carried
    /// SMB.
    pub connect_attempts: ConnectAttempts,
    /// The busiest TCP ports with their packets.
    pub busiest_ports: Vec<(u16, u64)>,
    /// Packets that are no TCP, by protocol, most packets first.
    pub skipped: Vec<SkippedPackets>,
    /// Where the clock of the captures stepped within exchanges, in the order of time.
    pub clock_steps: Vec<ClockStep>,
    /// Servers that answered in another protocol.
    pub foreign_replies: Vec<ForeignReply>,
    /// Connections that were captured at two places, at most [`SeenTwice::MAX_NAMED`].
    pub seen_twice: Vec<SeenTwice>,
    /// The earliest packet.
    pub first: Option<Timestamp>,
    /// The latest packet.
    pub last: Option<Timestamp>,
    /// The system refused a worker thread, so the calling thread did all the work.
    pub without_threads: bool,
}

/// What a part of an analysis found, apart from the exchanges.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    pub(crate) quality: Quality,
    /// By first packet, at most `connections_max` of them.
    connections: Vec<ConnectionSummary>,
    connections_max: usize,
    connections_left_out: u64,
    attempts: ConnectAttemptTotals,
    /// Packets by the lower TCP port.
    ports: BTreeMap<u16, u64>,
    skipped: BTreeMap<SkippedProtocol, u64>,
    clock_steps: ClockSteps,
    foreign_replies: ForeignReplies,
    routed: Routed,
    initials: Vec<Initials>,
    sessions: Met,
    pub(crate) first: Option<Timestamp>,
    pub(crate) last: Option<Timestamp>,
}

impl Partial {
    /// What was found of nothing; it lists at most so many connections.
    pub(crate) fn new(connections_max: usize) -> Partial {
        Partial { connections_max, ..Partial::default() }
    }

    /// What was counted.
    pub fn quality(&self) -> &Quality {
        &self.quality
    }

    /// The earliest and the latest packet.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.first.zip(self.last)
    }

    /// Adds what another part found.
    pub fn merge(&mut self, other: Partial) {
        self.quality.merge(&other.quality);
        self.connections_max = self.connections_max.max(other.connections_max);
        self.connections_left_out += other.connections_left_out;
        self.add_connections(other.connections);
        self.attempts.merge(other.attempts);
        self.add_ports(other.ports);
        self.add_skipped(other.skipped);
        self.clock_steps.merge(other.clock_steps);
        self.foreign_replies.merge(other.foreign_replies);
        self.routed.merge(other.routed);
        self.initials.extend(other.initials);
        self.sessions.merge(other.sessions);
        self.first = match (self.first, other.first) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        self.last = self.last.max(other.last);
    }

    /// Adds what a shard found.
    pub(crate) fn add(&mut self, outcome: AnalyzerOutcome) {
        self.quality.merge(&outcome.quality);
        self.connections_left_out += outcome.connections_left_out;
        self.add_connections(outcome.connections);
        self.attempts.merge(outcome.attempts);
        self.clock_steps.merge(outcome.clock_steps);
        self.foreign_replies.merge(outcome.foreign_replies);
        self.routed.merge(outcome.routed);
        self.initials.extend(outcome.initials);
    }

    /// Steps of the clock that the files show by themselves.
    pub fn add_clock_steps(&mut self, steps: &[ClockStep]) {
        steps.iter().for_each(|step| self.clock_steps.note(*step));
    }

    pub(crate) fn add_sessions(&mut self, sessions: Met) {
        self.sessions.merge(sessions);
    }

    pub(crate) fn add_ports(&mut self, ports: impl IntoIterator<Item = (u16, u64)>) {
        ports.into_iter().for_each(|(port, packets)| *self.ports.entry(port).or_default() += packets);
    }

    pub(crate) fn add_skipped(&mut self, skipped: impl IntoIterator<Item = (SkippedProtocol, u64)>) {
        skipped.into_iter().for_each(|(protocol, packets)| *self.skipped.entry(protocol).or_default() += packets);
    }

    fn add_connections(&mut self, connections: Vec<ConnectionSummary>) {
        self.connections.extend(connections);
        if self.connections.len() > 2 * self.connections_max {
            self.fit();
        }
    }

    /// Leaves out the connections that began last, where there are too many.
    fn fit(&mut self) {
        self.connections.sort_by_key(|connection| connection.flow);
        self.connections_left_out += self.connections.len().saturating_sub(self.connections_max) as u64;
        self.connections.truncate(self.connections_max);
    }

    /// What was found of everything.
    pub fn finish(mut self) -> CaptureFindings {
        self.fit();
        let mut ports: Vec<(u16, u64)> = self.ports.into_iter().collect();
        ports.sort_by_key(|(port, packets)| (std::cmp::Reverse(*packets), *port));
        ports.truncate(PORTS_LISTED);
        let mut seen_twice: Vec<SeenTwice> = self.routed.keys().copied().map(SeenTwice::Routed).collect();
        seen_twice.extend(translated(self.initials));
        seen_twice.truncate(SeenTwice::MAX_NAMED);
        let servers = self.connections.iter().map(|connection| connection.endpoints.server).collect();
        let foreign_replies: Vec<ForeignReply> = self.foreign_replies.keys().copied().collect();
        CaptureFindings {
            quality: self.quality,
            connections: self.connections,
            connections_left_out: self.connections_left_out,
            connect_attempts: self.attempts.finish(&servers),
            busiest_ports: ports,
            skipped: SkippedPackets::most(self.skipped, SKIPPED_LISTED),
            clock_steps: distinct(self.clock_steps.values()),
            foreign_replies,
            seen_twice,
            first: self.first,
            last: self.last,
            without_threads: false,
        }
    }
}

/// Which of several parts have sessions in common and are to be followed as one: groups of their indices, each part in
/// one group, both in order.
pub fn coupled(parts: &[&Partial]) -> Vec<Vec<usize>> {
    channels::coupled(parts.iter().map(|part| &part.sessions))
}

/// Steps of the clock, each once: every flow that it is seen in has packets of its own around it. They come in the order
/// of the packets behind them.
fn distinct<'s>(steps: impl Iterator<Item = &'s ClockStep>) -> Vec<ClockStep> {
    let mut distinct: Vec<ClockStep> = Vec::new();
    for step in steps {
        let is_known = |known: &ClockStep| {
            known.after.packet.capture() == step.after.packet.capture()
                && step.before.packet.number() <= known.after.packet.number()
        };
        if !distinct.iter().any(is_known) {
            distinct.push(*step);
        }
    }
    distinct.truncate(ClockStep::MAX_CLOCK_STEPS);
    distinct
}

/// Connections with the same initial sequence numbers on both sides, at about the same time and with other addresses: the
/// one that began first, and the other one.
fn translated(mut initials: Vec<Initials>) -> Vec<SeenTwice> {
    initials.sort_unstable_by_key(|(numbers, first, ends)| (*numbers, *first, *ends));
    let pairs = initials.windows(2).filter_map(|pair| match pair {
        [(one, began, ends), (other, later, others)] => {
            (one == other && ends != others && *later - *began <= MAX_APART)
                .then_some((*began, SeenTwice::Translated(*ends, *others)))
        }
        _ => None,
    });
    let mut pairs: Vec<(Timestamp, SeenTwice)> = pairs.collect();
    pairs.sort_by_key(|(began, _)| *began);
    pairs.into_iter().map(|(_, pair)| pair).collect()
}
