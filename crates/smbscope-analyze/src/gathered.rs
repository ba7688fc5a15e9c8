//! Batches of segments per shard, and the decision when to pass a batch to a worker.
//!
//! Shards fill at about the same rate. If each batch were passed on when full, all would be full at once, and the
//! workers would be overloaded and idle by turns. So there is room for half the segments that all shards ask for, and
//! the fullest batch goes when that is used up. At the beginning the limit is lower, so that workers start early.

use smbscope_capture::TcpSegment;
use smbscope_capture::batch::SegmentBatch;
use smbscope_capture::reader::Backing;
use std::sync::Arc;

/// Segments of the smallest batch. Passing on a batch has a cost.
const BATCH_LEAST: usize = 1024;
/// Segments per connection in a batch. Loading the connection's state into the CPU cache must pay off.
const BATCH_OF_EACH: usize = 128;
/// Segments of the largest batch.
const BATCH_SEGMENTS: usize = 16384;
/// Bytes of copied payload per batch.
const BATCH_BYTES: usize = 2 << 20;
const INTERVAL: usize = 512;

pub(crate) struct ShardBatches {
    batches: Vec<SegmentBatch>,
    until_look: usize,
    looks: usize,
}

impl ShardBatches {
    pub(crate) fn new(shards: usize) -> ShardBatches {
        ShardBatches { batches: (0..shards).map(|_| SegmentBatch::default()).collect(), until_look: INTERVAL, looks: 0 }
    }

    /// Adds a segment. `take` empties a batch or replaces it; the segments alone determine when it is called.
    #[inline]
    pub(crate) fn push(
        &mut self,
        shard: usize,
        segment: &TcpSegment<'_>,
        backing: Option<&Arc<Backing>>,
        mut take: impl FnMut(usize, &mut SegmentBatch),
    ) {
        let batch = &mut self.batches[shard];
        if !batch.fits(segment) {
            take(shard, batch);
        }
        batch.push(segment, backing);
        if batch.copied_bytes() >= BATCH_BYTES {
            take(shard, batch);
        }
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = INTERVAL;
            self.looks += 1;
            if let Some(shard) = self.due() {
                take(shard, &mut self.batches[shard]);
            }
        }
    }

    #[inline(never)]
    fn due(&self) -> Option<usize> {
        let filled = self.batches.iter().filter(|batch| !batch.is_empty());
        let (gathered, asked) =
            filled.fold((0, 0), |(gathered, asked), batch| (gathered + batch.len(), asked + enough(batch)));
        let (shard, fullest) = self.batches.iter().enumerate().max_by_key(|(_, batch)| batch.len())?;
        let room = asked.min(self.looks * INTERVAL) / 2;
        let is_due = fullest.len() >= enough(fullest) || gathered >= room && fullest.len() >= BATCH_LEAST;
        is_due.then_some(shard)
    }

    pub(crate) fn finish(&mut self, mut take: impl FnMut(usize, &mut SegmentBatch)) {
        let left = self.batches.iter_mut().enumerate().filter(|(_, batch)| !batch.is_empty());
        left.for_each(|(shard, batch)| take(shard, batch));
    }
}

fn enough(batch: &SegmentBatch) -> usize {
    (batch.connections() * BATCH_OF_EACH).clamp(BATCH_LEAST, BATCH_SEGMENTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_capture::{TcpFlags, WindowScale};
    use smbscope_model::Stamp;
    use std::net::SocketAddr;

    fn sizes(shards: usize, connections: u16, segments: usize) -> Vec<(usize, usize)> {
        let mut gathered = ShardBatches::new(shards);
        let mut sizes = Vec::new();
        for ordinal in 0..segments {
            let (shard, connection) = (ordinal % shards, (ordinal / shards) as u16 % connections);
            let segment = TcpSegment {
                ordinal: ordinal as u64,
                first: Stamp::default(),
                stamp: Stamp::default(),
                origin: Default::default(),
                source: SocketAddr::from(([10, 0, 0, shard as u8], 50_000 + connection)),
                destination: SocketAddr::from(([10, 0, 1, 1], 445)),
                sequence: 0,
                acknowledgment: 0,
                flags: TcpFlags(TcpFlags::ACK),
                window: 0,
                window_scale: WindowScale::Unknown,
                timestamp_value: None,
                names_later_bytes: false,
                duplicate_sack: None,
                ip_id: None,
                hops_left: 64,
                payload: &[],
                payload_length: 0,
            };
            let mut take = |shard: usize, batch: &mut SegmentBatch| {
                sizes.push((shard, batch.len()));
                batch.clear();
            };
            gathered.push(shard, &segment, None, &mut take);
        }
        sizes
    }

    #[test]
    fn shards_go_in_turn_and_as_full_as_they_ask_for() {
        // 16 shards of 32 connections ask for 4,096 segments each; half of that is 32,768, and 16 of them leave in
        // turn.
        let sizes = sizes(16, 32, 400_000);
        let late = &sizes[sizes.len() - 16..];
        let mut shards: Vec<usize> = late.iter().map(|(shard, _)| *shard).collect();
        shards.sort_unstable();
        assert_eq!(shards, (0..16).collect::<Vec<_>>());
        assert!(late.iter().all(|(_, size)| (3_400..=4_600).contains(size)), "{late:?}");
    }

    #[test]
    fn one_shard_alone_has_half_of_what_it_asks_for_and_at_first_half_of_all_but_no_less_than_the_least() {
        assert_eq!(sizes(1, 4, 5_000), [(0, 1_024); 4]);
        let sizes: Vec<usize> = sizes(1, 1_000, 40_000).into_iter().map(|(_, size)| size).collect();
        assert_eq!(sizes, [1_024, 1_024, 2_048, 4_096, 8_192, 8_192, 8_192]);
    }
}
