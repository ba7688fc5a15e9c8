//! Packets that wait until it is decided what stays of them, and go out in the order in which they came.
//!
//! Of a packet its headers stay. Of the payload nothing does but what is entered, and zeros in front of that.

use smbscope_capture::writer::{PacketBlock, PcapngWriter};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

/// Packets that wait at most, and bytes that are kept of them.
const MAX_WAITING_PACKETS: usize = 256 << 10;
const MAX_WAITING_BYTES: usize = 64 << 20;

/// Which packets have which numbers in the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Numbering {
    /// Of several files: one after the other, in the order of time.
    #[default]
    Anew,
    /// Of a file in the order of time: those of the file.
    AsTheyCome,
    /// Of a file that is not: those of the file, as far as the packets that wait suffice to put it in its order again.
    Restored,
}

/// A packet that waits.
#[derive(Debug)]
pub(super) struct PendingPacket {
    /// When, where, and its length on the wire.
    pub(super) record: PacketBlock<'static>,
    /// Its number in its file.
    pub(super) number: u64,
    /// Its headers.
    pub(super) headers: Vec<u8>,
    /// What stays of the payload.
    pub(super) payload: Vec<u8>,
    /// Captured bytes of the payload: what stays is not longer.
    pub(super) captured: usize,
    /// How many have yet to say what stays of it.
    pub(super) holders: u32,
}

/// The packets that wait.
#[derive(Debug, Default)]
pub(super) struct PendingPacketQueue {
    packets: VecDeque<PendingPacket>,
    /// Which packet of all the first of them is.
    first: u64,
    bytes: usize,
    /// Bytes that may wait.
    most_bytes: usize,
    numbering: Numbering,
    /// Packets that are decided and wait for those with lower numbers.
    restored: BTreeMap<u64, PendingPacket>,
    /// The last number that was written.
    last_number: u64,
    /// Packets with another number than in their file, because too many would have had to wait.
    pub(super) moved: u64,
    /// Packets that went out before all was decided, because too many waited.
    pub(super) undecided: u64,
    /// Captured payload bytes that did not stay.
    pub(super) removed: u64,
}

impl PendingPacketQueue {
    /// An empty window, in which at most this many bytes wait.
    pub(super) fn new(numbering: Numbering, most_bytes: usize) -> PendingPacketQueue {
        PendingPacketQueue { numbering, most_bytes: most_bytes.min(MAX_WAITING_BYTES), ..PendingPacketQueue::default() }
    }

    /// Takes the next packet of all.
    pub(super) fn push(&mut self, ordinal: u64, packet: PendingPacket) {
        if self.packets.is_empty() {
            self.first = ordinal;
        }
        self.bytes += packet.headers.len() + size_of::<PendingPacket>();
        self.packets.push_back(packet);
    }

    /// Number of the first packet that waits.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    fn at(&mut self, ordinal: u64) -> Option<&mut PendingPacket> {
        let index = usize::try_from(ordinal.checked_sub(self.first)?).ok()?;
        self.packets.get_mut(index)
    }

    /// Enters bytes that stay, at an offset of the payload.
    pub(super) fn keep(&mut self, ordinal: u64, offset: usize, bytes: &[u8]) {
        self.show(ordinal, offset, bytes.len());
        let Some(packet) = self.at(ordinal) else { return };
        let end = offset.saturating_add(bytes.len()).min(packet.payload.len());
        if let Some(place) = packet.payload.get_mut(offset..end) {
            place.copy_from_slice(&bytes[..end - offset]);
        }
    }

    /// Lets the payload reach to the end of these bytes, whatever they are.
    pub(super) fn show(&mut self, ordinal: u64, offset: usize, length: usize) {
        let Some(packet) = self.at(ordinal) else { return };
        let end = offset.saturating_add(length).min(packet.captured);
        let grown = end.saturating_sub(packet.payload.len());
        if length > 0 && grown > 0 {
            packet.payload.resize(end, 0);
            self.bytes += grown;
        }
    }

    /// Keeps a packet from going out.
    pub(super) fn hold(&mut self, ordinal: u64) {
        if let Some(packet) = self.at(ordinal) {
            packet.holders += 1;
        }
    }

    /// Takes that back.
    pub(super) fn let_go(&mut self, ordinal: u64) {
        if let Some(packet) = self.at(ordinal) {
            packet.holders = packet.holders.saturating_sub(1);
        }
    }

    /// Writes the packets that are decided, up to the first that is not.
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

    /// Writes all that is left.
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
