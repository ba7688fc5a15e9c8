//! Maps bytes of a segment to the packets that carry it: a single packet, or several IP fragments.

use super::reduce::{self, NameAnonymizer};
use ahash::HashMap;
use smbscope_capture::Packet;
use smbscope_capture::decode::{Fragment, Outline};
use smbscope_capture::writer::{PacketBlock, PacketWriter};
use smbscope_model::{CaptureId, PacketRef, Stamp, Timestamp, TunnelPorts};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// IP fragments waiting for their datagrams; then cut to headers.
const MAX_FRAGMENTS: usize = 4096;

const PRUNED_AT: usize = 4096;
/// Packets read while a fragment waits for the rest of its datagram.
const MAX_FRAGMENT_AGE: u64 = 16 << 10;
/// Header bytes of a fragmented segment: IP, tunnel and TCP.
const MAX_FRAGMENT_HEADERS: usize = 256;
/// Link type of raw IP of either version; the length of its headers without options.
const RAW_IP: u32 = 101;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;

struct PendingFragment {
    ordinal: u64,
    fragment: Fragment,
    beginning: Vec<u8>,
}

struct FragmentedDatagram {
    parts: Vec<(u64, u32, u32)>,
    payload: u32,
}

#[derive(Default)]
pub(super) struct Packets {
    pub(super) window: PendingPacketQueue,
    fragments: VecDeque<PendingFragment>,
    datagrams: HashMap<u64, FragmentedDatagram>,
    held_back: HashMap<(SocketAddr, SocketAddr), Vec<u64>>,
    tunnels: TunnelPorts,
}

impl Packets {
    pub(super) fn new(window: PendingPacketQueue, tunnels: TunnelPorts) -> Packets {
        Packets { window, tunnels, ..Packets::default() }
    }

    pub(super) fn keep(&mut self, ordinal: u64, offset: usize, bytes: &[u8]) {
        match self.datagrams.get(&ordinal) {
            None => self.window.keep(ordinal, offset, bytes),
            Some(datagram) => {
                for (of_part, place, part) in datagram.places(offset, bytes.len()) {
                    self.window.keep(of_part, place, &bytes[part]);
                }
            }
        }
    }

    pub(super) fn show(&mut self, ordinal: u64, offset: usize, length: usize) {
        match self.datagrams.get(&ordinal) {
            None => self.window.show(ordinal, offset, length),
            Some(datagram) => {
                for (of_part, place, part) in datagram.places(offset, length) {
                    self.window.show(of_part, place, part.len());
                }
            }
        }
    }

    pub(super) fn hold(&mut self, ordinal: u64) {
        self.of_segment(ordinal).into_iter().for_each(|ordinal| self.window.hold(ordinal));
    }

    pub(super) fn let_go(&mut self, ordinal: u64) {
        self.of_segment(ordinal).into_iter().for_each(|ordinal| self.window.let_go(ordinal));
    }

    fn of_segment(&self, ordinal: u64) -> Vec<u64> {
        match self.datagrams.get(&ordinal) {
            None => vec![ordinal],
            Some(datagram) => datagram.parts.iter().map(|(ordinal, ..)| *ordinal).collect(),
        }
    }

    pub(super) fn hold_back(&mut self, ends: (SocketAddr, SocketAddr), ordinal: u64) {
        self.hold(ordinal);
        let first = self.window.first();
        let held_back = self.held_back.entry(in_order(ends)).or_default();
        if held_back.len() % PRUNED_AT == PRUNED_AT - 1 {
            held_back.retain(|ordinal| *ordinal >= first);
        }
        held_back.push(ordinal);
    }

    pub(super) fn caught_up(&mut self, ends: (SocketAddr, SocketAddr)) {
        if self.held_back.is_empty() {
            return;
        }
        for ordinal in self.held_back.remove(&in_order(ends)).unwrap_or_default() {
            self.let_go(ordinal);
        }
    }

    pub(super) fn fragment(&mut self, ordinal: u64, fragment: Fragment, bytes: &[u8]) {
        let is_old = |part: &PendingFragment| part.ordinal + MAX_FRAGMENT_AGE < ordinal;
        while self.fragments.len() >= MAX_FRAGMENTS || self.fragments.front().is_some_and(is_old) {
            let Some(oldest) = self.fragments.pop_front() else { break };
            self.window.let_go(oldest.ordinal);
        }
        self.window.hold(ordinal);
        let room = MAX_FRAGMENT_HEADERS.saturating_sub(fragment.offset as usize).min(bytes.len());
        self.fragments.push_back(PendingFragment { ordinal, beginning: bytes[..room].to_vec(), fragment });
    }

    /// Checks if a fragment completed its datagram. The last `segment` bytes are TCP payload, the others headers.
    pub(super) fn put_together(&mut self, ordinal: u64, segment: Option<u32>, names: &mut NameAnonymizer) {
        let Some(last) = self.fragments.back().filter(|part| part.ordinal == ordinal) else { return };
        let key = key(&last.fragment);
        let is_part = |part: &PendingFragment| self::key(&part.fragment) == key;
        let mut parts: Vec<&PendingFragment> = self.fragments.iter().filter(|part| is_part(part)).collect();
        // The first copy of duplicate bytes counts.
        parts.sort_by_key(|part| (part.fragment.offset, part.ordinal));
        parts.dedup_by_key(|part| part.fragment.offset);
        let end_of = |part: &&PendingFragment| part.fragment.offset.saturating_add(part.fragment.length);
        let end = parts.iter().copied().find(|part| !part.fragment.more).as_ref().map(end_of);
        let there = parts.iter().fold(0u32, |there, part| there.saturating_add(part.fragment.length));
        let is_complete = end.is_some_and(|end| there >= end);
        if segment.is_none() && !is_complete {
            return;
        }
        let length = end.unwrap_or(there);
        let headers = AsOne::new(&parts, length).headers(&self.tunnels, names);
        let payload = segment.map_or(headers.len() as u32, |of_segment| length.saturating_sub(of_segment));
        for part in &parts {
            let from = (part.fragment.offset as usize).min(headers.len());
            let until = from.saturating_add(part.fragment.length as usize).min(headers.len());
            self.window.keep(part.ordinal, 0, &headers[from..until]);
        }
        if segment.is_some() {
            let place = |part: &&PendingFragment| (part.ordinal, part.fragment.offset, part.fragment.length);
            let parts = parts.iter().map(place).collect();
            let first = self.window.first();
            if self.datagrams.len() % PRUNED_AT == PRUNED_AT - 1 {
                self.datagrams.retain(|ordinal, _| *ordinal >= first);
            }
            self.datagrams.insert(ordinal, FragmentedDatagram { parts, payload });
            // The parts wait for the decisions of the flow, like the packet of any segment.
            self.hold(ordinal);
        }
        let (parts, others) = std::mem::take(&mut self.fragments).into_iter().partition(is_part);
        self.fragments = others;
        let parts: VecDeque<PendingFragment> = parts;
        parts.iter().for_each(|part| self.window.let_go(part.ordinal));
    }
}

impl FragmentedDatagram {
    /// Maps a range of the segment's payload to packets: ordinal, offset in the packet's payload, part of the range.
    fn places(&self, offset: usize, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> + '_ {
        let start = self.payload as usize + offset;
        let end = start + length;
        self.parts.iter().filter_map(move |(ordinal, of_part, part_length)| {
            let of_part = *of_part as usize;
            let from = start.max(of_part);
            let until = end.min(of_part + *part_length as usize);
            (from < until).then(|| (*ordinal, from - of_part, from - start..until - start))
        })
    }
}

struct AsOne {
    bytes: Vec<u8>,
    header: usize,
    wire_length: u32,
}

impl AsOne {
    fn new(parts: &[&PendingFragment], length: u32) -> AsOne {
        let ends = parts.first().map(|first| (first.fragment.ends.0.is_ipv4(), first.fragment.protocol));
        let (is_ipv4, next) = ends.unwrap_or_default();
        // Version and protocol; a length of 0 stands for the whole packet.
        let (mut bytes, protocol) = if is_ipv4 { (vec![0; IPV4_HEADER], 9) } else { (vec![0; IPV6_HEADER], 6) };
        bytes[0] = if is_ipv4 { 0x45 } else { 0x60 };
        bytes[protocol] = next;
        let header = bytes.len();
        for part in parts {
            let there = (bytes.len() - header).checked_sub(part.fragment.offset as usize);
            // Headers may continue in the next part, but not after a gap.
            let Some(there) = there else { break };
            bytes.extend(part.beginning.get(there..).unwrap_or_default());
        }
        AsOne { bytes, header, wire_length: (header as u32).saturating_add(length) }
    }

    fn headers(&self, tunnels: &TunnelPorts, names: &mut NameAnonymizer) -> Vec<u8> {
        let stamp = Stamp { time: Timestamp(0), packet: PacketRef::new(CaptureId(0), 0) };
        let packet =
            Packet { stamp, link_type: RAW_IP, data: &self.bytes, wire_length: self.wire_length, process: None };
        let needed = Outline::parse(&packet, tunnels).needed(&packet, tunnels).0;
        reduce::headers(&packet, needed, tunnels, names).split_off(self.header.min(needed))
    }
}

fn key(fragment: &Fragment) -> (IpAddr, IpAddr, u32, u8) {
    // Fragments of an IPv6 datagram may differ in their next header (RFC 8200 §4.5).
    let protocol = if fragment.ends.0.is_ipv4() { fragment.protocol } else { 0 };
    (fragment.ends.0, fragment.ends.1, fragment.identification, protocol)
}

fn in_order((one, other): (SocketAddr, SocketAddr)) -> (SocketAddr, SocketAddr) {
    if one <= other { (one, other) } else { (other, one) }
}

/// Packets held until later ones decide what stays; then written and counted.
const MAX_WAITING_PACKETS: usize = 256 << 10;
/// Bytes of their headers, and at most 3/16 of `--memory`.
const MAX_WAITING_BYTES: usize = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Numbering {
    /// For several files: consecutive, in time order.
    #[default]
    Anew,
    AsTheyCome,
    /// For a file out of time order: unchanged, as far as the waiting packets suffice to restore the order of the file.
    Restored,
}

#[derive(Debug)]
pub(super) struct PendingPacket {
    pub(super) record: PacketBlock<'static>,
    pub(super) number: u64,
    pub(super) headers: Vec<u8>,
    pub(super) payload: Vec<u8>,
    pub(super) captured: usize,
    pub(super) holders: u32,
}

/// Packets that wait until their preserved bytes are known, and are written in their original order.
///
/// Headers are kept. Of the payload, only the entered bytes are kept, with zeros before and between them.
#[derive(Debug, Default)]
pub(super) struct PendingPacketQueue {
    packets: VecDeque<PendingPacket>,
    first: u64,
    bytes: usize,
    most_bytes: usize,
    numbering: Numbering,
    restored: BTreeMap<u64, PendingPacket>,
    last_number: u64,
    pub(super) moved: u64,
    pub(super) undecided: u64,
    pub(super) removed: u64,
}

impl PendingPacketQueue {
    pub(super) fn new(numbering: Numbering, most_bytes: usize) -> PendingPacketQueue {
        PendingPacketQueue { numbering, most_bytes: most_bytes.min(MAX_WAITING_BYTES), ..PendingPacketQueue::default() }
    }

    pub(super) fn push(&mut self, ordinal: u64, packet: PendingPacket) {
        if self.packets.is_empty() {
            self.first = ordinal;
        }
        self.bytes += packet.headers.len() + size_of::<PendingPacket>();
        self.packets.push_back(packet);
    }

    pub(super) fn first(&self) -> u64 {
        self.first
    }

    fn at(&mut self, ordinal: u64) -> Option<&mut PendingPacket> {
        let index = usize::try_from(ordinal.checked_sub(self.first)?).ok()?;
        self.packets.get_mut(index)
    }

    pub(super) fn keep(&mut self, ordinal: u64, offset: usize, bytes: &[u8]) {
        self.show(ordinal, offset, bytes.len());
        let Some(packet) = self.at(ordinal) else { return };
        let end = offset.saturating_add(bytes.len()).min(packet.payload.len());
        if let Some(place) = packet.payload.get_mut(offset..end) {
            place.copy_from_slice(&bytes[..end - offset]);
        }
    }

    pub(super) fn show(&mut self, ordinal: u64, offset: usize, length: usize) {
        let Some(packet) = self.at(ordinal) else { return };
        let end = offset.saturating_add(length).min(packet.captured);
        let grown = end.saturating_sub(packet.payload.len());
        if length > 0 && grown > 0 {
            packet.payload.resize(end, 0);
            self.bytes += grown;
        }
    }

    pub(super) fn hold(&mut self, ordinal: u64) {
        if let Some(packet) = self.at(ordinal) {
            packet.holders += 1;
        }
    }

    pub(super) fn let_go(&mut self, ordinal: u64) {
        if let Some(packet) = self.at(ordinal) {
            packet.holders = packet.holders.saturating_sub(1);
        }
    }

    pub(super) fn write(&mut self, writer: &mut dyn PacketWriter) -> io::Result<()> {
        while let Some(packet) = self.packets.front() {
            if packet.holders > 0 {
                if self.has_room() {
                    return Ok(());
                }
                self.undecided += 1;
            }
            self.write_first(writer)?;
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, writer: &mut dyn PacketWriter) -> io::Result<()> {
        while !self.packets.is_empty() {
            self.write_first(writer)?;
        }
        while let Some((_, packet)) = self.restored.pop_first() {
            self.put(&packet, writer)?;
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.packets.len() + self.restored.len() <= MAX_WAITING_PACKETS && self.bytes <= self.most_bytes
    }

    fn write_first(&mut self, writer: &mut dyn PacketWriter) -> io::Result<()> {
        let Some(packet) = self.packets.pop_front() else { return Ok(()) };
        self.first += 1;
        if self.numbering != Numbering::Restored {
            return self.put(&packet, writer);
        }
        self.restored.insert(packet.number, packet);
        loop {
            let is_next = self.restored.first_key_value().is_some_and(|(number, _)| *number <= self.last_number + 1);
            if !is_next && self.has_room() {
                return Ok(());
            }
            let Some((_, packet)) = self.restored.pop_first() else { return Ok(()) };
            self.put(&packet, writer)?;
        }
    }

    fn put(&mut self, packet: &PendingPacket, writer: &mut dyn PacketWriter) -> io::Result<()> {
        self.bytes -= packet.headers.len() + packet.payload.len() + size_of::<PendingPacket>();
        self.removed += (packet.captured - packet.payload.len()) as u64;
        if self.numbering != Numbering::Anew {
            match packet.number.checked_sub(self.last_number + 1) {
                Some(skipped) => {
                    (0..skipped).try_for_each(|_| writer.skip_number())?;
                    self.last_number = packet.number;
                }
                None => self.moved += 1,
            }
        }
        writer.packet(&PacketBlock { parts: [&packet.headers, &packet.payload], ..packet.record })
    }
}
