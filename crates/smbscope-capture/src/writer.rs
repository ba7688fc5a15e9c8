//! Writes pcapng files (draft-ietf-opsawg-pcapng): one section, one interface per link type and clock resolution.

use smbscope_model::Timestamp;
use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Custom block, which readers that number packets count as one.
const CUSTOM_NOT_COPIED: u32 = 0x4000_0bad;
const SECTION_FIELDS: [u8; 16] = [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255];
const OPTION_COMMENT: u16 = 1;
const OPTION_SHB_USERAPPL: u16 = 4;
const OPTION_IF_TSRESOL: u16 = 9;
/// Interfaces of a written file; more is an error. Only damaged inputs need more.
const MAX_WRITTEN_INTERFACES: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureInterface {
    pub link_type: u32,
    pub snap_length: u32,
    /// Clock resolution: timestamps are multiples of this, a power of ten up to 10⁹ ns.
    pub resolution_ns: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct PacketBlock<'a> {
    pub time: Timestamp,
    pub interface: CaptureInterface,
    /// Captured bytes, in two consecutive parts.
    pub parts: [&'a [u8]; 2],
    pub wire_length: u32,
}

/// Destination of packets.
pub trait PacketWriter {
    fn packet(&mut self, record: &PacketBlock<'_>) -> io::Result<()>;

    /// Skips one packet number, so that later packets keep theirs.
    fn skip_number(&mut self) -> io::Result<()>;
}

pub struct PcapngWriter<W: Write> {
    out: W,
    interfaces: Vec<CaptureInterface>,
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    pub fn new(out: W, comment: &str, program: &str) -> io::Result<PcapngWriter<W>> {
        let mut writer = PcapngWriter { out, interfaces: Vec::new(), block: Vec::new() };
        writer.block.extend(SECTION_FIELDS);
        option(&mut writer.block, OPTION_COMMENT, comment.as_bytes());
        option(&mut writer.block, OPTION_SHB_USERAPPL, program.as_bytes());
        option(&mut writer.block, 0, &[]);
        writer.put(SECTION_HEADER)?;
        Ok(writer)
    }

    pub fn get_ref(&self) -> &W {
        &self.out
    }

    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn interface(&mut self, interface: CaptureInterface) -> io::Result<u32> {
        if let Some(known) = self.interfaces.iter().position(|known| *known == interface) {
            return Ok(known as u32);
        }
        if self.interfaces.len() >= MAX_WRITTEN_INTERFACES {
            return Err(io::Error::other(format!("more than {MAX_WRITTEN_INTERFACES} kinds of interfaces")));
        }
        self.block.extend((interface.link_type as u16).to_le_bytes());
        self.block.extend([0, 0]);
        self.block.extend(interface.snap_length.to_le_bytes());
        let exponent = 9 - interface.resolution_ns.checked_ilog10().unwrap_or(0).min(9) as u8;
        option(&mut self.block, OPTION_IF_TSRESOL, &[exponent]);
        option(&mut self.block, 0, &[]);
        self.put(INTERFACE_DESCRIPTION)?;
        self.interfaces.push(interface);
        Ok(self.interfaces.len() as u32 - 1)
    }

    fn put(&mut self, kind: u32) -> io::Result<()> {
        let length = (12 + self.block.len() as u32).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.block)?;
        self.block.clear();
        self.out.write_all(&length)
    }
}

impl<W: Write> PacketWriter for PcapngWriter<W> {
    fn packet(&mut self, record: &PacketBlock<'_>) -> io::Result<()> {
        let time = u64::try_from(record.time.0).unwrap_or(0);
        let mut interface = record.interface;
        if interface.resolution_ns == 0 || !time.is_multiple_of(interface.resolution_ns) {
            interface.resolution_ns = 1;
        }
        let id = self.interface(interface)?;
        let ticks = time / interface.resolution_ns;
        let captured: usize = record.parts.iter().map(|part| part.len()).sum();
        let captured = u32::try_from(captured).map_err(|_| io::Error::other("a packet of more than 4 GiB"))?;
        for field in [id, (ticks >> 32) as u32, ticks as u32, captured, record.wire_length] {
            self.block.extend(field.to_le_bytes());
        }
        record.parts.iter().for_each(|part| self.block.extend_from_slice(part));
        pad(&mut self.block);
        self.put(ENHANCED_PACKET)
    }

    fn skip_number(&mut self) -> io::Result<()> {
        // Private Enterprise Number reserved for documentation (RFC 5612).
        self.block.extend(32_473u32.to_le_bytes());
        self.put(CUSTOM_NOT_COPIED)
    }
}

fn option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    block.extend(code.to_le_bytes());
    block.extend((value.len() as u16).to_le_bytes());
    block.extend(value);
    pad(block);
}

fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::CaptureSet;
    use std::io::Cursor;

    const ETHERNET: CaptureInterface = CaptureInterface { link_type: 1, snap_length: 96, resolution_ns: 1000 };

    #[test]
    fn what_is_written_is_read_again_with_its_clock_and_numbers() {
        let mut writer = PcapngWriter::new(Vec::new(), "a comment", "test").unwrap();
        let at =
            |time| PacketBlock { time: Timestamp(time), interface: ETHERNET, parts: [b"ab", b"c"], wire_length: 99 };
        writer.packet(&at(1_700_000_000_000_001_000)).unwrap();
        writer.skip_number().unwrap();
        writer.packet(&at(1_700_000_000_000_002_001)).unwrap();
        let file = writer.finish().unwrap();
        let mut set = CaptureSet::from_reader("-", Box::new(Cursor::new(file))).unwrap();
        let mut read = Vec::new();
        while let Some(packet) = set.next_packet().unwrap() {
            read.push((packet.stamp.packet.number(), packet.stamp.time.0, packet.data.to_vec(), packet.wire_length));
        }
        let expected =
            [(1, 1_700_000_000_000_001_000, b"abc".to_vec(), 99), (3, 1_700_000_000_000_002_001, b"abc".to_vec(), 99)];
        assert_eq!(read, expected);
        assert_eq!(set.captures()[0].snap_length, Some(96));
    }
}
