//! Findings of a part of an analysis, which merge in any order and grouping and are finished once.
//!
//! No connection is in two parts. The merge of all parts equals the findings of a single analysis as long as no shard
//! has more connections than it may list ([`MemoryBudget::part`](smbscope_model::MemoryBudget::part)), evicts
//! connections for lack of memory, or has more than 2 MiB of user and share names, and there are at most 128 skipped
//! protocols other than IP protocols and UDP ports.

use crate::analyzer::AnalyzerOutcome;
use crate::bounded::{ClockSteps, Encapsulations, ForeignReplies, Initials, Routed};
use crate::channels::{self, Met};
use crate::flow::ConnectAttemptTotals;
use crate::foreign::ForeignTraffics;
use serde::{Deserialize, Serialize};
use smbscope_model::decryption::DecryptedSessions;
use smbscope_model::{
    ClockStep, ConnectAttempts, ConnectionSummary, EncapsulatedTraffic, ForeignReply, ForeignTraffic, Nanos, Quality,
    SeenTwice, SkippedPackets, SkippedProtocol, Timestamp,
};
use std::collections::BTreeMap;

/// Maximum number of skipped protocols listed; the packets of others are combined.
pub const SKIPPED_LISTED: usize = 32;
const PORTS_LISTED: usize = 5;
/// Time between two captures of a connection. One is before and one after address translation.
const MAX_APART: Nanos = Nanos(10_000_000_000);

#[derive(Debug, Default)]
pub struct CaptureFindings {
    pub quality: Quality,
    pub connections: Vec<ConnectionSummary>,
    pub connections_left_out: u64,
    /// TCP connections to port 445 or 139, or to a server in `connections`, that never carried SMB.
    pub connect_attempts: ConnectAttempts,
    pub busiest_ports: Vec<(u16, u64)>,
    pub skipped: Vec<SkippedPackets>,
    pub clock_steps: Vec<ClockStep>,
    pub foreign_replies: Vec<ForeignReply>,
    /// Connections without SMB that speak another protocol, most packets first.
    pub foreign_traffic: Vec<ForeignTraffic>,
    /// SMB connections by the headers around them, most packets first.
    pub encapsulations: Vec<EncapsulatedTraffic>,
    /// Connections captured at two places, at most [`SeenTwice::MAX_NAMED`].
    pub seen_twice: Vec<SeenTwice>,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    pub decryption: DecryptedSessions,
    pub without_threads: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    pub(crate) quality: Quality,
    /// Ordered by first packet after [`Self::fit`]; at most twice `connections_max`.
    connections: Vec<ConnectionSummary>,
    connections_max: usize,
    connections_left_out: u64,
    attempts: ConnectAttemptTotals,
    ports: BTreeMap<u16, u64>,
    skipped: BTreeMap<SkippedProtocol, u64>,
    clock_steps: ClockSteps,
    foreign_replies: ForeignReplies,
    foreign_traffic: ForeignTraffics,
    encapsulations: Encapsulations,
    routed: Routed,
    initials: Vec<Initials>,
    sessions: Met,
    decryption: DecryptedSessions,
    pub(crate) first: Option<Timestamp>,
    pub(crate) last: Option<Timestamp>,
}

impl Partial {
    pub(crate) fn new(connections_max: usize) -> Partial {
        Partial { connections_max, ..Partial::default() }
    }

    pub fn quality(&self) -> &Quality {
        &self.quality
    }

    pub fn quality_mut(&mut self) -> &mut Quality {
        &mut self.quality
    }

    pub fn connections(&self) -> &[ConnectionSummary] {
        &self.connections
    }

    pub fn connections_mut(&mut self) -> &mut Vec<ConnectionSummary> {
        &mut self.connections
    }

    /// Leaves out failed attempts to connect that were over before `time`.
    pub fn forget_attempts_before(&mut self, time: Timestamp) {
        self.attempts.retain(|attempt| attempt.last >= time);
    }

    pub fn set_span(&mut self, first: Timestamp, last: Timestamp) {
        (self.first, self.last) = (Some(first), Some(last));
    }

    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.first.zip(self.last)
    }

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
        self.foreign_traffic.merge(other.foreign_traffic);
        self.encapsulations.merge(other.encapsulations);
        self.routed.merge(other.routed);
        self.initials.extend(other.initials);
        self.initials.truncate(self.connections_max);
        self.sessions.merge(other.sessions);
        self.decryption.merge(other.decryption);
        self.first = match (self.first, other.first) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        self.last = self.last.max(other.last);
    }

    pub(crate) fn add(&mut self, outcome: AnalyzerOutcome) {
        self.quality.merge(&outcome.quality);
        self.connections_left_out += outcome.connections_left_out;
        self.add_connections(outcome.connections);
        self.attempts.merge(outcome.attempts);
        self.clock_steps.merge(outcome.clock_steps);
        self.foreign_replies.merge(outcome.foreign_replies);
        self.foreign_traffic.merge(outcome.foreign_traffic);
        self.encapsulations.merge(outcome.encapsulations);
        self.routed.merge(outcome.routed);
        self.initials.extend(outcome.initials);
        self.decryption.merge(outcome.decryption);
    }

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
        if self.connections.len() / 2 > self.connections_max {
            self.list(self.connections_max);
        }
    }

    /// Lists at most this many connections, and only counts the others. Also keeps the latest beginnings only: two
    /// sightings of one connection begin at almost the same time. Allows some more, so that not every call moves them.
    pub fn list_about(&mut self, most: usize) {
        let enough = most + most / 4;
        if self.connections.len() > enough {
            self.list(most);
        }
        if self.initials.len() > enough {
            self.initials.drain(..self.initials.len() - most);
        }
    }

    fn list(&mut self, most: usize) {
        self.connections.sort_by_key(|connection| connection.flow);
        self.connections_left_out += self.connections.len().saturating_sub(most) as u64;
        self.connections.truncate(most);
    }

    pub fn finish(mut self) -> CaptureFindings {
        self.list(self.connections_max);
        let mut ports: Vec<(u16, u64)> = self.ports.into_iter().collect();
        ports.sort_by_key(|(port, packets)| (std::cmp::Reverse(*packets), *port));
        ports.truncate(PORTS_LISTED);
        let mut seen_twice: Vec<SeenTwice> = self.routed.keys().copied().map(SeenTwice::Routed).collect();
        seen_twice.extend(translated(self.initials));
        seen_twice.truncate(SeenTwice::MAX_NAMED);
        let servers = self.connections.iter().map(|connection| connection.endpoints.server).collect();
        let foreign_replies: Vec<ForeignReply> = self.foreign_replies.keys().copied().collect();
        let of_traffic =
            |((protocol, port), (connections, packets))| ForeignTraffic { protocol, port, connections, packets };
        let mut foreign_traffic: Vec<ForeignTraffic> = self.foreign_traffic.into_entries().map(of_traffic).collect();
        foreign_traffic.sort_by_key(|traffic| std::cmp::Reverse(traffic.packets));
        let of_headers = |(headers, (connections, packets))| EncapsulatedTraffic { headers, connections, packets };
        let mut encapsulations: Vec<EncapsulatedTraffic> = self.encapsulations.into_entries().map(of_headers).collect();
        encapsulations.sort_by_key(|traffic| std::cmp::Reverse(traffic.packets));
        CaptureFindings {
            foreign_traffic,
            encapsulations,
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
            decryption: self.decryption,
            without_threads: false,
        }
    }
}

/// Groups parts that share sessions and have to be followed together. Returns indices, sorted on both levels.
pub fn coupled(parts: &[&Partial]) -> Vec<Vec<usize>> {
    channels::coupled(parts.iter().map(|part| &part.sessions))
}

/// Removes duplicates, since each flow has its own packets around a step. Sorts by the packets after the step.
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

/// Finds pairs of connections with equal initial sequence numbers, similar start times and different addresses.
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
