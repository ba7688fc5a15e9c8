//! Model of a slow disk: completion times of requests, and statistics as in iostat(1).
//!
//! Requests pass one queue in the order of arrival. The limits of operations and bytes per second delay requests in
//! the queue. The latency is added afterwards, so that requests overlap in it as in a disk with many channels. A hard
//! disk with a single arm has an IOPS limit that matches its latency: 8 ms and 120 IOPS.

use crate::StorageFigures;
use crate::settings::Storage;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskRequest {
    Read(u64),
    Write(u64),
    Flush,
}

impl DiskRequest {
    fn bytes(self) -> u64 {
        match self {
            DiskRequest::Read(bytes) | DiskRequest::Write(bytes) => bytes,
            DiskRequest::Flush => 0,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Device {
    storage: Storage,
    free: Duration,
    figures: StorageFigures,
    /// Time up to which the figures are current.
    counted: Duration,
}

impl Device {
    pub(crate) fn new(storage: Storage) -> Device {
        Device { storage, free: Duration::ZERO, figures: StorageFigures::default(), counted: Duration::ZERO }
    }

    pub(crate) fn begin(&mut self, now: Duration, request: DiskRequest) -> Duration {
        self.count(now);
        self.figures.outstanding += 1;
        let transfer = self
            .storage
            .bandwidth
            .map_or(Duration::ZERO, |rate| Duration::from_secs_f64(request.bytes() as f64 / rate.max(1) as f64));
        let turn = self.storage.iops.map_or(Duration::ZERO, |rate| Duration::from_secs(1) / rate.max(1));
        let start = self.free.max(now);
        self.free = start + transfer.max(turn);
        start + self.storage.latency.unwrap_or_default() + transfer
    }

    pub(crate) fn end(&mut self, now: Duration, request: DiskRequest) {
        self.count(now);
        self.figures.outstanding = self.figures.outstanding.saturating_sub(1);
        match request {
            DiskRequest::Read(bytes) => {
                self.figures.reads += 1;
                self.figures.bytes_read += bytes;
            }
            DiskRequest::Write(bytes) => {
                self.figures.writes += 1;
                self.figures.bytes_written += bytes;
            }
            DiskRequest::Flush => self.figures.flushes += 1,
        }
    }

    pub(crate) fn figures(&mut self, now: Duration) -> StorageFigures {
        self.count(now);
        self.figures
    }

    fn count(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.counted);
        self.counted = self.counted.max(now);
        if self.figures.outstanding > 0 {
            self.figures.busy += passed;
            self.figures.weighted += passed * u32::try_from(self.figures.outstanding).unwrap_or(u32::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// Without limits, ten simultaneous requests overlap: each takes the latency.
    #[test]
    fn requests_overlap_in_the_latency() {
        let mut device = Device::new(Storage { latency: Some(ms(5)), ..Storage::default() });
        for _ in 0..10 {
            assert_eq!(device.begin(ms(100), DiskRequest::Read(4096)), ms(105));
        }
    }

    /// 100 per second are one per 10 ms: the tenth of ten simultaneous requests leaves the queue after nine intervals.
    #[test]
    fn a_limit_of_operations_lines_requests_up_and_does_not_save_turns_up() {
        let mut device = Device::new(Storage { latency: Some(ms(2)), iops: Some(100), bandwidth: None });
        let done: Vec<Duration> = (0..10).map(|_| device.begin(ms(0), DiskRequest::Flush)).collect();
        assert_eq!((done[0], done[9]), (ms(2), ms(92)));
        assert_eq!(device.begin(ms(10_000), DiskRequest::Read(1)), ms(10_002));
        assert_eq!(device.begin(ms(10_000), DiskRequest::Read(1)), ms(10_012));
    }

    /// 1 MB at 10 MB/s take 100 ms; a limit of 100 operations per second adds nothing.
    #[test]
    fn bytes_take_their_time_and_what_is_behind_them_waits() {
        let mut device = Device::new(Storage { latency: Some(ms(1)), iops: Some(100), bandwidth: Some(10_000_000) });
        assert_eq!(device.begin(ms(0), DiskRequest::Write(1_000_000)), ms(101));
        assert_eq!(device.begin(ms(0), DiskRequest::Flush), ms(101));
        assert_eq!(device.begin(ms(0), DiskRequest::Flush), ms(111));
    }

    /// One request is outstanding from 0 to 30 ms, another from 10 to 20 ms: busy for 30 ms, weighted 40 ms.
    #[test]
    fn figures_are_those_of_iostat() {
        let mut device = Device::new(Storage::default());
        device.begin(ms(0), DiskRequest::Read(100));
        device.begin(ms(10), DiskRequest::Write(7));
        device.end(ms(20), DiskRequest::Write(7));
        device.end(ms(30), DiskRequest::Read(100));
        let figures = device.figures(ms(1_000));
        let expected = StorageFigures {
            reads: 1,
            writes: 1,
            flushes: 0,
            bytes_read: 100,
            bytes_written: 7,
            outstanding: 0,
            busy: ms(30),
            weighted: ms(40),
        };
        assert_eq!(figures, expected);
    }
}
