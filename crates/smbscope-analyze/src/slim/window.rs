//! Packets that wait until their preserved bytes are known, and are written in their original order.
//!
//! The headers of a packet are kept. Of its payload, only the entered bytes are kept, with zeros before and between
//! them.

use smbscope_capture::writer::{PacketBlock, PcapngWriter};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

const MAX_WAITING_PACKETS: usize = 256 << 10;
const MAX_WAITING_BYTES: usize = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Numbering {
    /// For several files: consecutive, in time order.
    #[default]
    Anew,
    /// For a file in time order: unchanged.
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
    /// Number of captured payload bytes, the upper limit for `payload`.
    pub(super) captured: usize,
    /// Number of pending decisions about this packet.
    pub(super) holders: u32,
}

#[derive(Debug, Default)]
pub(super) struct PendingPacketQueue {
    packets: VecDeque<PendingPacket>,
    /// Ordinal of the first packet in `packets`.
    first: u64,
    bytes: usize,
    most_bytes: usize,
    numbering: Numbering,
    /// Packets without pending decisions that wait for lower numbers.
    restored: BTreeMap<u64, PendingPacket>,
    last_number: u64,
    /// Packets whose number differs from that in their file, because too many packets would have had to wait.
    pub(super) moved: u64,
    /// Packets written before all decisions were made, because too many waited.
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

    /// Extends the payload to the end of these bytes.
    pub(super) fn show(&mut self, ordinal: u64, offset: usize, length: usize) {
        let Some(packet) = self.at(ordinal) else { return };
        let end = offset.saturating_add(length).min(packet.captured);
        let grown = end.saturating_sub(packet.payload.len());
        if length > 0 && grown > 0 {
            packet.payload.resize(end, 0);
            self.bytes += grown;
        }
    }

    /// Delays a packet until [`Self::let_go`].
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

    pub(super) fn write<W: Write>(&mut self, writer: &mut PcapngWriter<W>) -> io::Result<()> {
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

    pub(super) fn finish<W: Write>(&mut self, writer: &mut PcapngWriter<W>) -> io::Result<()> {
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

    fn write_first<W: Write>(&mut self, writer: &mut PcapngWriter<W>) -> io::Result<()> {
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

    fn put<W: Write>(&mut self, packet: &PendingPacket, writer: &mut PcapngWriter<W>) -> io::Result<()> {
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
