//! Puts IP fragments together (RFC 791 3.2, RFC 8200 4.5) in a table of bounded size.
//!
//! Of bytes that come twice the first copy counts. A fragment that the snap length cut still takes its place: its
//! length is known, and the datagram's captured bytes are those in front of the first cut.

use super::ip::IpPacket;
use smbscope_model::Stamp;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Range;

/// Datagrams in the making; the oldest goes when there are more.
const MAX_DATAGRAMS: usize = 256;
/// Longest datagram.
const MAX_LENGTH: u32 = 65_535;
/// Separate stretches of one datagram; a sender never needs more.
const MAX_STRETCHES: usize = 64;
/// A datagram whose fragments are further apart is not one: identifications are used again (RFC 791: 15 s; Linux: 30 s).
const LIFETIME_NS: i64 = 30_000_000_000;
/// Datagrams completed last that are remembered, so that a second copy of a fragment starts nothing new.
const MAX_COMPLETED: usize = 64;
/// How long they are remembered.
const DUPLICATE_NS: i64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReassemblyKey {
    source: IpAddr,
    destination: IpAddr,
    identification: u32,
    /// The protocol tells apart IPv4 datagrams of equal identification; IPv6 has none to tell.
    protocol: u8,
}

/// A datagram in the making.
#[derive(Debug)]
pub(super) struct DatagramReassembly {
    key: ReassemblyKey,
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) first: Stamp,
    pub(super) hops_left: u8,
    pub(super) identification: Option<u16>,
    /// What the first fragment says its payload is.
    pub(super) next_header: u8,
    /// Protocol that its fragments were counted by.
    pub(super) protocol: u8,
    /// How many packets it came in, copies among them.
    pub(super) packets: u64,
    bytes: Vec<u8>,
    /// Stretches that were on the wire, and stretches that were captured; ascending, apart.
    on_wire: Vec<Range<u32>>,
    captured: Vec<Range<u32>>,
    length: Option<u32>,
}

impl DatagramReassembly {
    /// The captured bytes up to the first missing one, and the length on the wire.
    pub(super) fn bytes(&self) -> (&[u8], u32) {
        let whole = match self.captured.first() {
            Some(stretch) if stretch.start == 0 => stretch.end as usize,
            _ => 0,
        };
        (self.bytes.get(..whole).unwrap_or_default(), self.length.unwrap_or(0))
    }

    fn is_complete(&self) -> bool {
        self.length.is_some_and(|length| matches!(self.on_wire.as_slice(), [all] if *all == (0..length)))
    }

    /// Enters a fragment; false when the datagram has to be dropped.
    fn add(&mut self, offset: u32, more: bool, captured: &[u8], length: u32) -> bool {
        let end = offset.saturating_add(length);
        if end > MAX_LENGTH || self.length.is_some_and(|known| end > known) {
            // It does not belong here; what is whole without it stays whole.
            return true;
        }
        if !more && self.length.is_none() {
            if self.on_wire.last().is_some_and(|last| last.end > end) {
                return false;
            }
            self.length = Some(end);
        }
        for missing in gaps(&self.on_wire, offset..end) {
            let from = (missing.start - offset) as usize;
            let until = captured.len().min((missing.end - offset) as usize);
            if let Some(new) = captured.get(from..until).filter(|new| !new.is_empty()) {
                let target = missing.start as usize..missing.start as usize + new.len();
                if self.bytes.len() < target.end {
                    self.bytes.resize(target.end, 0);
                }
                self.bytes[target.clone()].copy_from_slice(new);
                insert(&mut self.captured, target.start as u32..target.end as u32);
            }
            insert(&mut self.on_wire, missing);
        }
        self.on_wire.len() <= MAX_STRETCHES && self.captured.len() <= MAX_STRETCHES
    }
}

/// The parts of `wanted` that no stretch covers.
fn gaps(stretches: &[Range<u32>], wanted: Range<u32>) -> Vec<Range<u32>> {
    let mut gaps = Vec::new();
    let mut from = wanted.start;
    for stretch in stretches {
        if stretch.end <= from {
            continue;
        }
        if stretch.start >= wanted.end {
            break;
        }
        if stretch.start > from {
            gaps.push(from..stretch.start);
        }
        from = stretch.end;
    }
    if from < wanted.end {
        gaps.push(from..wanted.end);
    }
    gaps
}

/// Adds a stretch that overlaps none, and joins it with its neighbours.
fn insert(stretches: &mut Vec<Range<u32>>, new: Range<u32>) {
    let at = stretches.partition_point(|stretch| stretch.start < new.start);
    stretches.insert(at, new);
    if at + 1 < stretches.len() && stretches[at].end == stretches[at + 1].start {
        stretches[at].end = stretches[at + 1].end;
        stretches.remove(at + 1);
    }
    if at > 0 && stretches[at - 1].end == stretches[at].start {
        stretches[at - 1].end = stretches[at].end;
        stretches.remove(at);
    }
}

/// What came of a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Added {
    /// It was the last one missing: see [`Fragments::completed`].
    pub(super) completed: bool,
    /// Datagrams that were dropped.
    pub(super) given_up: u64,
}

/// The table of datagrams in the making.
#[derive(Debug)]
pub(super) struct Fragments {
    /// Oldest first.
    assemblies: VecDeque<DatagramReassembly>,
    completed: Option<DatagramReassembly>,
    completed_last: VecDeque<(ReassemblyKey, i64)>,
}

impl Fragments {
    pub(super) fn new() -> Fragments {
        Fragments { assemblies: VecDeque::new(), completed: None, completed_last: VecDeque::new() }
    }

    /// Enters a fragment that was seen at `stamp`.
    pub(super) fn add(&mut self, datagram: &IpPacket<'_>, stamp: Stamp) -> Added {
        let mut added = Added { completed: false, given_up: 0 };
        let Some(fragment) = datagram.fragment else { return added };
        let key = ReassemblyKey {
            source: datagram.source,
            destination: datagram.destination,
            identification: fragment.identification,
            protocol: if datagram.source.is_ipv4() { datagram.protocol } else { 0 },
        };
        let now = stamp.time.0;
        added.given_up += self.expire(now);
        let just_completed =
            |(done, time): &(ReassemblyKey, i64)| *done == key && now.saturating_sub(*time) < DUPLICATE_NS;
        if self.completed_last.iter().any(just_completed) {
            return added;
        }
        let index = match self.assemblies.iter().position(|assembly| assembly.key == key) {
            Some(index) => index,
            None => {
                if self.assemblies.len() >= MAX_DATAGRAMS {
                    self.assemblies.pop_front();
                    added.given_up += 1;
                }
                self.assemblies.push_back(DatagramReassembly {
                    key,
                    source: datagram.source,
                    destination: datagram.destination,
                    first: stamp,
                    hops_left: datagram.hops_left,
                    identification: datagram.identification,
                    next_header: datagram.protocol,
                    protocol: datagram.protocol,
                    packets: 0,
                    bytes: Vec::new(),
                    on_wire: Vec::new(),
                    captured: Vec::new(),
                    length: None,
                });
                self.assemblies.len() - 1
            }
        };
        let assembly = &mut self.assemblies[index];
        assembly.packets += 1;
        if fragment.offset == 0 {
            assembly.next_header = datagram.protocol;
        }
        if !assembly.add(fragment.offset, fragment.more, datagram.payload, datagram.payload_length) {
            self.assemblies.remove(index);
            added.given_up += 1;
        } else if assembly.is_complete() {
            self.completed = self.assemblies.remove(index);
            if self.completed_last.len() >= MAX_COMPLETED {
                self.completed_last.pop_front();
            }
            self.completed_last.push_back((key, now));
            added.completed = true;
        }
        added
    }

    /// Takes the datagram that was completed last, to look into it.
    pub(super) fn take_completed(&mut self) -> Option<DatagramReassembly> {
        self.completed.take()
    }

    /// Keeps a datagram whose bytes are handed on.
    pub(super) fn keep(&mut self, assembly: DatagramReassembly) -> &DatagramReassembly {
        self.completed.insert(assembly)
    }

    /// Gives up everything; returns how many datagrams that were.
    pub(super) fn clear(&mut self) -> u64 {
        let count = self.assemblies.len() as u64;
        self.assemblies.clear();
        count
    }

    fn expire(&mut self, now: i64) -> u64 {
        let mut given_up = 0;
        while self.assemblies.front().is_some_and(|a| now.saturating_sub(a.first.time.0) > LIFETIME_NS) {
            self.assemblies.pop_front();
            given_up += 1;
        }
        given_up
    }
}
