//! Segments on their way from the thread that reads to one that follows flows.
//!
//! A batch keeps the segments' headers and knows where their payloads are: in the file, which stays mapped as long as
//! a batch needs it, or in an arena of the batch where they were on the way in a stream or were put together from
//! fragments. Batches are filled again after use, so nothing is allocated for a packet.

use crate::reader::Backing;
use crate::segment::TcpSegment;
use std::sync::Arc;

/// Marks payloads that are in the arena.
const ARENA: u32 = u32::MAX;

/// Segments in the order in which they were read.
#[derive(Default)]
pub struct Batch {
    segments: Vec<Packed>,
    arena: Vec<u8>,
    backings: Vec<Arc<Backing>>,
}

/// A segment without its payload, and where that is.
struct Packed {
    header: TcpSegment<'static>,
    /// What the caller tags segments with.
    tag: u32,
    backing: u32,
    start: usize,
    length: usize,
}

impl Batch {
    /// Adds a segment; its payload stays where it is if that is in `backing`.
    #[inline]
    pub fn push(&mut self, tag: u32, segment: &TcpSegment<'_>, backing: Option<&Arc<Backing>>) {
        let length = segment.payload.len();
        let in_place = backing.and_then(|backing| {
            let start = (segment.payload.as_ptr() as usize).checked_sub(backing.as_ptr() as usize)?;
            (start.checked_add(length)? <= backing.len()).then_some((backing, start))
        });
        let (backing, start) = match in_place {
            Some((backing, start)) => (self.backing(backing), start),
            None => {
                self.arena.extend_from_slice(segment.payload);
                (ARENA, self.arena.len() - length)
            }
        };
        let header = TcpSegment { payload: &[], ..*segment };
        self.segments.push(Packed { header, tag, backing, start, length });
    }

    /// How many segments there are.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes that were copied.
    pub fn copied_bytes(&self) -> usize {
        self.arena.len()
    }

    /// The segments with their tags.
    pub fn iter(&self) -> impl Iterator<Item = (u32, TcpSegment<'_>)> {
        self.segments.iter().map(|packed| {
            let bytes: &[u8] = match packed.backing {
                ARENA => &self.arena,
                index => &self.backings[index as usize],
            };
            let payload = &bytes[packed.start..packed.start + packed.length];
            (packed.tag, TcpSegment { payload, ..packed.header })
        })
    }

    /// Empties the batch and keeps its room.
    pub fn clear(&mut self) {
        self.segments.clear();
        self.arena.clear();
        self.backings.clear();
    }

    #[inline]
    fn backing(&mut self, backing: &Arc<Backing>) -> u32 {
        if !self.backings.last().is_some_and(|last| Arc::ptr_eq(last, backing)) {
            self.backings.push(Arc::clone(backing));
        }
        (self.backings.len() - 1) as u32
    }
}
