//! Reassembles IP fragments (RFC 791 §3.2, RFC 8200 §4.5) in a bounded table.
//!
//! Where fragments overlap, the first copy counts. A fragment truncated by the snap length still fills its place: its
//! length is known, and the datagram's captured bytes end at the first truncation.

use super::ip::IpPacket;
use smbscope_model::Stamp;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::ops::Range;

/// Maximum number of incomplete datagrams; the oldest is dropped first.
const MAX_DATAGRAMS: usize = 256;
/// Longest datagram in bytes.
const MAX_LENGTH: u32 = 65_535;
/// Maximum number of disjoint ranges in one datagram; no sender needs more.
const MAX_STRETCHES: usize = 64;
/// Maximum time between fragments of one datagram, because identifications are reused (RFC 791: 15 s; Linux: 30 s).
const LIFETIME_NS: i64 = 30_000_000_000;
/// Recently completed datagrams remembered, so that a duplicate fragment does not start a new one.
const MAX_COMPLETED: usize = 64;
const DUPLICATE_NS: i64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReassemblyKey {
    source: IpAddr,
    destination: IpAddr,
    identification: u32,
    /// IPv4 identifications are per protocol; for IPv6 this is constant.
    protocol: u8,
}

#[derive(Debug)]
pub(super) struct DatagramReassembly {
    key: ReassemblyKey,
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    pub(super) first: Stamp,
    pub(super) hops_left: u8,
    pub(super) identification: Option<u16>,
    /// Protocol of the payload, from the first fragment.
    pub(super) next_header: u8,
    /// Protocol under which its fragments were counted.
    pub(super) protocol: u8,
    pub(super) packets: u64,
    bytes: Vec<u8>,
    /// Byte ranges on the wire and captured byte ranges; sorted and disjoint.
    on_wire: Vec<Range<u32>>,
    captured: Vec<Range<u32>>,
    length: Option<u32>,
}

impl DatagramReassembly {
    /// Returns the captured bytes up to the first missing one, and the length on the wire.
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

    /// Adds a fragment. Returns false if the datagram has to be dropped.
    fn add(&mut self, offset: u32, more: bool, captured: &[u8], length: u32) -> bool {
        let end = offset.saturating_add(length);
        if end > MAX_LENGTH || self.length.is_some_and(|known| end > known) {
            // It does not fit this datagram, which can still be completed without it.
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

/// Returns the parts of `wanted` that no range covers.
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

/// Adds a range that overlaps no other and merges it with adjacent ones.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Added {
    pub(super) completed: bool,
    pub(super) given_up: u64,
}

#[derive(Debug)]
pub(super) struct Fragments {
    assemblies: VecDeque<DatagramReassembly>,
    completed: Option<DatagramReassembly>,
    completed_last: VecDeque<(ReassemblyKey, i64)>,
}

impl Fragments {
    pub(super) fn new() -> Fragments {
        Fragments { assemblies: VecDeque::new(), completed: None, completed_last: VecDeque::new() }
    }

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

    pub(super) fn take_completed(&mut self) -> Option<DatagramReassembly> {
        self.completed.take()
    }

    /// Keeps a datagram while its bytes are in use.
    pub(super) fn keep(&mut self, assembly: DatagramReassembly) -> &DatagramReassembly {
        self.completed.insert(assembly)
    }

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
