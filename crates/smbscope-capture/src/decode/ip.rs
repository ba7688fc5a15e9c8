//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers, and reassembly of fragments (RFC 791 §3.2, RFC 8200 §4.5) in a bounded
//! table.
//!
//! The length field determines the datagram; anything after it is padding. There are two exceptions. Zero (segmentation
//! offload, jumbograms) means the whole record. A length beyond the record is trusted: slicing switches and capture
//! cards record the truncated length as the original one. If fragments overlap, the first copy counts. A fragment
//! truncated by the snap length still fills its place.

use super::fields::{Fields, Stays};
use smbscope_model::Stamp;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

pub(super) const TCP: u8 = 6;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;
/// IPv6 extension headers; more: `malformed_packets`.
const MAX_EXTENSION_HEADERS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FragmentInfo {
    pub(super) identification: u32,
    pub(super) offset: u32,
    pub(super) more: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct IpPacket<'a> {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    /// Protocol after the last extension header; for an IPv6 fragment, the next header in the fragment header.
    pub(super) protocol: u8,
    pub(super) hops_left: u8,
    pub(super) identification: Option<u16>,
    pub(super) fragment: Option<FragmentInfo>,
    pub(super) payload: &'a [u8],
    pub(super) payload_length: u32,
}

/// Parses the headers of a packet of `on_wire` bytes. `None` if inconsistent or cut off. `version` is the link layer's.
#[inline]
pub(super) fn parse<'a, F: Fields>(
    version: Option<u8>,
    data: &'a [u8],
    on_wire: u32,
    fields: &mut F,
) -> Option<IpPacket<'a>> {
    fields.enter(data.get(..1), Stays::Bits(0xf0));
    let in_header = data.first().map(|byte| byte >> 4);
    match (in_header, version) {
        (Some(4), None | Some(4)) => ipv4(data, on_wire, fields),
        (Some(6), None | Some(6)) => ipv6(data, on_wire, fields),
        _ => None,
    }
}

fn be16(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(data.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn be32(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn captured(data: &[u8], at: usize, length: u32) -> &[u8] {
    let rest = data.get(at..).unwrap_or_default();
    &rest[..rest.len().min(length as usize)]
}

fn ipv4<'a, F: Fields>(data: &'a [u8], on_wire: u32, fields: &mut F) -> Option<IpPacket<'a>> {
    let header: &[u8; 20] = data.get(..20)?.try_into().ok()?;
    let header_length = usize::from(header[0] & 0x0f) * 4;
    if F::RECORDS {
        // Options are not entered. They become zeros, which mark the end of the option list.
        fields.enter(data.get(..6), Stays::Whole);
        fields.enter(data.get(6..7), Stays::Bits(0x7f));
        fields.enter(data.get(7..10), Stays::Whole);
        fields.enter(data.get(12..16), Stays::Address);
        fields.enter(data.get(16..20), Stays::Address);
        fields.enter(data.get(..header_length.max(20)), Stays::Checksummed);
    }
    let total = match u16::from_be_bytes([header[2], header[3]]) {
        0 => on_wire,
        total => u32::from(total),
    };
    if header_length < 20 || data.len() < header_length {
        return None;
    }
    let payload_length = total.checked_sub(u32::try_from(header_length).ok()?)?;
    let identification = u16::from_be_bytes([header[4], header[5]]);
    let flags_and_offset = u16::from_be_bytes([header[6], header[7]]);
    let (more, offset) = (flags_and_offset & 0x2000 != 0, u32::from(flags_and_offset & 0x1fff) * 8);
    let fragment =
        (more || offset > 0).then_some(FragmentInfo { identification: u32::from(identification), offset, more });
    let mut datagram = IpPacket {
        source: IpAddr::V4(Ipv4Addr::new(header[12], header[13], header[14], header[15])),
        destination: IpAddr::V4(Ipv4Addr::new(header[16], header[17], header[18], header[19])),
        protocol: header[9],
        hops_left: header[8],
        identification: Some(identification),
        fragment,
        payload: captured(data, header_length, payload_length),
        payload_length,
    };
    if datagram.protocol == AUTHENTICATION && fragment.is_none() {
        // The authentication header (RFC 4302) leaves the packet readable.
        let (protocol, skipped) = upper_layer(AUTHENTICATION, datagram.payload, payload_length, fields)?;
        datagram.protocol = protocol;
        datagram.payload = datagram.payload.get(skipped..)?;
        datagram.payload_length = payload_length.checked_sub(u32::try_from(skipped).ok()?)?;
    }
    Some(datagram)
}

fn ipv6<'a, F: Fields>(data: &'a [u8], on_wire: u32, fields: &mut F) -> Option<IpPacket<'a>> {
    let header: &[u8; 40] = data.get(..40)?.try_into().ok()?;
    if F::RECORDS {
        // Version and traffic class, but not the flow label, which some systems derive from addresses.
        fields.enter(data.get(..1), Stays::Whole);
        fields.enter(data.get(1..2), Stays::Bits(0xf0));
        fields.enter(data.get(4..8), Stays::Whole);
        fields.enter(data.get(8..24), Stays::Address);
        fields.enter(data.get(24..40), Stays::Address);
    }
    let length = match u16::from_be_bytes([header[4], header[5]]) {
        0 => jumbo_length(header[6], data, fields).or_else(|| on_wire.checked_sub(40))?,
        length => u32::from(length),
    };
    let address = |at: usize| {
        let octets: [u8; 16] = header.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::V6(Ipv6Addr::from(octets)))
    };
    let payload = captured(data, 40, length);
    let (protocol, offset) = upper_layer(header[6], payload, length, fields)?;
    let mut datagram = IpPacket {
        source: address(8)?,
        destination: address(24)?,
        protocol,
        hops_left: header[7],
        identification: None,
        fragment: None,
        payload: payload.get(offset..)?,
        payload_length: length.checked_sub(u32::try_from(offset).ok()?)?,
    };
    if protocol == FRAGMENT {
        let next_header = *datagram.payload.first()?;
        let offset_and_flags = be16(datagram.payload, 2)?;
        let identification = be32(datagram.payload, 4)?;
        fields.enter(datagram.payload.get(..1), Stays::Whole);
        fields.enter(datagram.payload.get(2..3), Stays::Whole);
        fields.enter(datagram.payload.get(3..4), Stays::Bits(0xf9));
        fields.enter(datagram.payload.get(4..8), Stays::Whole);
        let (offset, more) = (u32::from(offset_and_flags & 0xfff8), offset_and_flags & 1 != 0);
        datagram.payload = datagram.payload.get(8..)?;
        datagram.payload_length = datagram.payload_length.checked_sub(8)?;
        datagram.protocol = next_header;
        if offset == 0 && !more {
            // An atomic fragment (RFC 6946) is complete; continue after its header.
            let (protocol, skipped) = upper_layer(next_header, datagram.payload, datagram.payload_length, fields)?;
            datagram.protocol = protocol;
            datagram.payload = datagram.payload.get(skipped..)?;
            datagram.payload_length = datagram.payload_length.checked_sub(u32::try_from(skipped).ok()?)?;
        } else {
            datagram.fragment = Some(FragmentInfo { identification, offset, more });
        }
    }
    Some(datagram)
}

/// Returns the length in a jumbo payload option (RFC 2675), which hosts with large segments send to themselves.
#[cold]
fn jumbo_length<F: Fields>(next_header: u8, data: &[u8], fields: &mut F) -> Option<u32> {
    const JUMBO_PAYLOAD: u8 = 0xc2;
    let header = data.get(40..).filter(|_| next_header == HOP_BY_HOP)?;
    let option = header.get(2..8).filter(|option| option.starts_with(&[JUMBO_PAYLOAD, 4]))?;
    fields.enter(Some(option), Stays::Whole);
    be32(option, 2)
}

pub(super) fn is_extension(next_header: u8) -> bool {
    matches!(
        next_header,
        HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HOST_IDENTITY | SHIM6 | AUTHENTICATION
    )
}

/// Skips IPv6 extension headers. Returns the protocol that follows, possibly [`FRAGMENT`], and its offset.
pub(super) fn upper_layer<F: Fields>(
    mut next_header: u8,
    payload: &[u8],
    length: u32,
    fields: &mut F,
) -> Option<(u8, usize)> {
    let mut offset = 0usize;
    for _ in 0..MAX_EXTENSION_HEADERS {
        let units = |at: usize| payload.get(at).copied().map(usize::from);
        let header_length = match next_header {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HOST_IDENTITY | SHIM6 => {
                units(offset + 1)?.checked_add(1)? * 8
            }
            AUTHENTICATION => units(offset + 1)?.checked_add(2)? * 4,
            other => return Some((other, offset)),
        };
        fields.enter(payload.get(offset..offset + 2), Stays::Whole);
        next_header = *payload.get(offset)?;
        offset = offset.checked_add(header_length)?;
        if offset > payload.len() || offset > length as usize {
            return None;
        }
    }
    None
}

/// Unfinished IP datagrams; the oldest is dropped: `ip_datagrams_incomplete`.
const MAX_DATAGRAMS: usize = 256;
/// Bytes of an IP datagram.
const MAX_LENGTH: u32 = 65_535;
/// Disjoint ranges of a datagram; more: `ip_datagrams_incomplete`. No sender needs more.
const MAX_STRETCHES: usize = 64;
/// Maximum time between fragments of one datagram, because identifications are reused (RFC 791: 15 s; Linux: 30 s).
const LIFETIME_NS: i64 = 30_000_000_000;
/// Completed datagrams remembered. A duplicate fragment must not start a new one.
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
    pub(super) next_header: u8,
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
    pub(super) dropped: u64,
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
        let mut added = Added { completed: false, dropped: 0 };
        let Some(fragment) = datagram.fragment else { return added };
        let key = ReassemblyKey {
            source: datagram.source,
            destination: datagram.destination,
            identification: fragment.identification,
            protocol: if datagram.source.is_ipv4() { datagram.protocol } else { 0 },
        };
        let now = stamp.time.0;
        added.dropped += self.expire(now);
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
                    added.dropped += 1;
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
            added.dropped += 1;
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

    pub(super) fn keep(&mut self, assembly: DatagramReassembly) -> &DatagramReassembly {
        self.completed.insert(assembly)
    }

    pub(super) fn clear(&mut self) -> u64 {
        let count = self.assemblies.len() as u64;
        self.assemblies.clear();
        count
    }

    fn expire(&mut self, now: i64) -> u64 {
        let mut dropped = 0;
        while self.assemblies.front().is_some_and(|a| now.saturating_sub(a.first.time.0) > LIFETIME_NS) {
            self.assemblies.pop_front();
            dropped += 1;
        }
        dropped
    }
}
