//! Serialised segments for another process: some connections of one capture file, in time order.
//!
//! A piece is a sequence of length-prefixed blocks, each compressed on its own (LZ4), so that neither side holds more
//! than one in memory. Values are encoded with [postcard](https://postcard.jamesmunns.com/wire-format). There is no
//! format version: a piece lives no longer than the analysis that wrote it.

use crate::segment::TcpSegment;
use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use serde::{Deserialize, Serialize};
use smbscope_model::Stamp;
use std::io::{self, ErrorKind, Read, Write};
use std::marker::PhantomData;

/// Block size in bytes at which a block is written; the last value may exceed it.
const BLOCK_BYTES: usize = 256 << 10;
/// Bytes of a block between processes; more is damage. Each value, including the longest segment, is below 128 KiB.
const BLOCK_BYTES_MAX: usize = BLOCK_BYTES + (128 << 10);

pub struct BlockWriter<W: Write> {
    out: W,
    block: Vec<u8>,
    written: u64,
}

impl<W: Write> BlockWriter<W> {
    pub fn new(out: W) -> BlockWriter<W> {
        BlockWriter { out, block: Vec::with_capacity(BLOCK_BYTES), written: 0 }
    }

    pub fn push(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.block = postcard::to_extend(value, std::mem::take(&mut self.block)).map_err(io::Error::other)?;
        if self.block.len() >= BLOCK_BYTES { self.write_block() } else { Ok(()) }
    }

    /// Writes the last block and flushes. Returns the total number of bytes written.
    pub fn finish(mut self) -> io::Result<u64> {
        self.write_block()?;
        self.out.flush()?;
        Ok(self.written)
    }

    /// Writes the last block and returns the underlying writer, unflushed.
    pub fn into_inner(mut self) -> io::Result<W> {
        self.write_block()?;
        Ok(self.out)
    }

    fn write_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let compressed = compress_prepend_size(&self.block);
        self.block.clear();
        self.out.write_all(&(compressed.len() as u32).to_le_bytes())?;
        self.out.write_all(&compressed)?;
        self.written += 4 + compressed.len() as u64;
        Ok(())
    }
}

struct Blocks<R: Read> {
    input: R,
    block: Vec<u8>,
    at: usize,
}

impl<R: Read> Blocks<R> {
    fn new(input: R) -> Blocks<R> {
        Blocks { input, block: Vec::new(), at: 0 }
    }

    fn fill(&mut self) -> io::Result<bool> {
        if self.at < self.block.len() {
            return Ok(true);
        }
        let mut length = [0; 4];
        if self.input.read(&mut length[..1])? == 0 {
            return Ok(false);
        }
        self.input.read_exact(&mut length[1..])?;
        let length = u32::from_le_bytes(length) as usize;
        if length > BLOCK_BYTES_MAX + BLOCK_BYTES_MAX / 200 + 64 {
            return Err(damaged("a block exceeds the maximum length"));
        }
        let mut compressed = vec![0; length];
        self.input.read_exact(&mut compressed)?;
        let whole = compressed.first_chunk().map_or(0, |whole| u32::from_le_bytes(*whole) as usize);
        if whole > BLOCK_BYTES_MAX || whole == 0 {
            return Err(damaged("a block exceeds the maximum length"));
        }
        self.block = decompress_size_prepended(&compressed).map_err(damaged)?;
        self.at = 0;
        Ok(true)
    }

    fn rest(&self) -> &[u8] {
        self.block.get(self.at..).unwrap_or_default()
    }
}

fn damaged(why: impl ToString) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why.to_string())
}

pub struct BlockReader<R: Read, T> {
    blocks: Blocks<R>,
    kind: PhantomData<T>,
}

impl<R: Read, T: for<'de> Deserialize<'de>> BlockReader<R, T> {
    pub fn new(input: R) -> BlockReader<R, T> {
        BlockReader { blocks: Blocks::new(input), kind: PhantomData }
    }

    pub fn next_value(&mut self) -> io::Result<Option<T>> {
        if !self.blocks.fill()? {
            return Ok(None);
        }
        let (value, rest) = postcard::take_from_bytes(self.blocks.rest()).map_err(damaged)?;
        self.blocks.at = self.blocks.block.len() - rest.len();
        Ok(Some(value))
    }
}

pub struct PieceReader<R: Read>(Blocks<R>);

impl<R: Read> PieceReader<R> {
    pub fn new(input: R) -> PieceReader<R> {
        PieceReader(Blocks::new(input))
    }

    pub fn next_stamp(&mut self) -> io::Result<Option<Stamp>> {
        if !self.0.fill()? {
            return Ok(None);
        }
        // The first fields of a `TcpSegment`, in declaration order.
        let ((_, _, stamp), _) = postcard::take_from_bytes::<(u64, Stamp, Stamp)>(self.0.rest()).map_err(damaged)?;
        Ok(Some(stamp))
    }

    pub fn next_segment(&mut self) -> io::Result<Option<TcpSegment<'_>>> {
        if !self.0.fill()? {
            return Ok(None);
        }
        let (at, length) = (self.0.at, self.0.block.len());
        let (segment, rest) = postcard::take_from_bytes(self.0.block.get(at..).unwrap_or_default()).map_err(damaged)?;
        self.0.at = length - rest.len();
        Ok(Some(segment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{TcpFlags, WindowScale};
    use proptest::prelude::*;
    use smbscope_model::{CaptureId, PacketRef, Timestamp};

    fn segment(number: u64, payload: &[u8]) -> TcpSegment<'_> {
        let packet = PacketRef::new(CaptureId(3), number);
        let stamp = Stamp { time: Timestamp(1_700_000_000_000_000_000 + number as i64), packet };
        TcpSegment {
            ordinal: number + 7,
            first: stamp,
            stamp,
            origin: Default::default(),
            source: ([10, 0, 0, 1], 50_000).into(),
            destination: ([0xfe80, 0, 0, 0, 0, 0, 0, 9], 445).into(),
            sequence: 1,
            acknowledgment: u32::MAX,
            flags: TcpFlags(TcpFlags::ACK),
            window: 512,
            window_scale: WindowScale::Shift(7),
            timestamp_value: Some(5),
            names_later_bytes: true,
            duplicate_sack: Some((7, 9)),
            ip_id: None,
            hops_left: 64,
            payload,
            payload_length: payload.len() as u32 + 1_000,
        }
    }

    fn written(payloads: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = BlockWriter::new(&mut bytes);
        for (number, payload) in (1..).zip(payloads) {
            writer.push(&segment(number, payload)).expect("memory can be written");
        }
        let length = writer.finish().expect("memory can be written");
        assert_eq!(length, bytes.len() as u64);
        bytes
    }

    #[test]
    fn segments_come_out_as_they_went_in() {
        let payloads =
            [vec![1; 65_000], Vec::new(), (0..=255).collect(), vec![2; 65_000], vec![3; 65_000], vec![4; 65_535]];
        let bytes = written(&payloads);
        let mut reader = PieceReader::new(&bytes[..]);
        for (number, payload) in (1..).zip(&payloads) {
            let expected = segment(number, payload);
            assert_eq!(reader.next_stamp().expect("a whole piece"), Some(expected.stamp));
            assert_eq!(format!("{:?}", reader.next_segment().expect("a whole piece")), format!("{:?}", Some(expected)));
        }
        assert!(
            reader.next_stamp().expect("a whole piece").is_none()
                && reader.next_segment().expect("a whole piece").is_none()
        );
    }

    #[test]
    fn a_piece_that_was_cut_is_an_error() {
        let bytes = written(&[vec![1; 1_000], vec![2; 1_000]]);
        for length in 1..bytes.len() {
            assert!(PieceReader::new(&bytes[..length]).next_segment().is_err(), "{length} of {} bytes", bytes.len());
        }
    }

    #[test]
    fn times_come_out_as_they_went_in() {
        let times: Vec<i64> = (0..100_000).map(|n| n * n % 1_000_003).collect();
        let mut bytes = Vec::new();
        let mut writer = BlockWriter::new(&mut bytes);
        times.iter().for_each(|time| writer.push(time).expect("memory can be written"));
        writer.finish().expect("memory can be written");
        let mut reader: BlockReader<_, i64> = BlockReader::new(&bytes[..]);
        let read: Vec<i64> = std::iter::from_fn(|| reader.next_value().expect("a whole file")).collect();
        assert_eq!(read, times);
    }

    proptest! {
        #[test]
        fn any_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..100, good in any::<bool>()) {
            if good {
                let written = written(&[vec![7; 300]]);
                let mut damaged = written.clone();
                for (at, byte) in bytes.iter().enumerate().take(4) {
                    let place = (cut + at * 13) % damaged.len();
                    damaged[place] = *byte;
                }
                bytes = damaged;
            }
            let mut reader = PieceReader::new(&bytes[..]);
            let mut left = 1_000;
            while left > 0 && matches!(reader.next_segment(), Ok(Some(_))) {
                left -= 1;
            }
        }
    }
}
