//! What there is to say about a capture as a file.

use crate::{Nanos, Timestamp};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One capture file or stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureInfo {
    /// The name as given; `-` for standard input.
    pub name: String,
    /// `pcap`, `pcap (ns)`, `modified pcap`, `pcapng` or `snoop`.
    pub format: Cow<'static, str>,
    /// `gzip`, `zstd`, `lz4` or `xz`; null for a plain file.
    pub compression: Option<Cow<'static, str>>,
    /// Packets in the file.
    pub packets: u64,
    /// Length of the file, compressed where it is.
    pub bytes: u64,
    /// The earliest timestamp.
    #[serde(rename = "first_ns")]
    pub first: Option<Timestamp>,
    /// The latest timestamp.
    #[serde(rename = "last_ns")]
    pub last: Option<Timestamp>,
    /// Nanoseconds between two ticks of the coarsest clock, at least 1.
    pub resolution_ns: u64,
    /// The largest snap length that the file states.
    pub snap_length: Option<u32>,
    /// LINKTYPE_* values of its interfaces.
    pub link_types: Vec<u32>,
    /// The smallest step of the clock where that is 100 µs or more, whatever resolution the file states; 0 if the clock stood
    /// still. Null for a finer clock. Shorter times are not known.
    #[serde(rename = "coarse_clock_ns")]
    pub coarse_clock: Option<Nanos>,
    /// The two directions were stamped by two clocks, and times were corrected; null where one clock stamped both.
    pub clock_offset: Option<CaptureClockOffset>,
    /// Why the file could not be read to its end: file, reason, packet, byte offset. The first of the warnings.
    #[serde(skip)]
    pub truncated: Option<String>,
    /// What was wrong with the file.
    pub warnings: Vec<String>,
}

impl CaptureInfo {
    /// The smallest time that the clocks of captures can tell; none where no clock is coarse. A clock that stood still can
    /// tell none.
    pub fn least_time(captures: &[CaptureInfo]) -> Option<Nanos> {
        let told = |step: Nanos| if step.0 == 0 { Nanos(i64::MAX) } else { step };
        captures.iter().filter_map(|capture| capture.coarse_clock).map(told).max()
    }
}

/// By how much the clock of one direction was ahead of the other's. The least delays between data and acknowledgments bound
/// it; the sum of a response time and the following think time is exact, whatever the offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureClockOffset {
    /// Packets of servers had the late time; otherwise those of clients.
    pub of_servers: bool,
    /// Taken off the times of those packets.
    #[serde(rename = "applied_ns")]
    pub applied: Nanos,
    /// At least this.
    #[serde(rename = "low_ns")]
    pub low: Nanos,
    /// At most this.
    #[serde(rename = "high_ns")]
    pub high: Nanos,
}

impl CaptureClockOffset {
    /// Senders of the packets that had the late time.
    pub fn whose(self) -> &'static str {
        if self.of_servers { "servers" } else { "clients" }
    }
}
