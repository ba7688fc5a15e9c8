//! Description of a capture file: format, extent, clock and problems.

use crate::{Nanos, Timestamp};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One capture file or stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureInfo {
    /// Name as given on the command line; `-` for standard input.
    pub name: String,
    /// `pcap`, `pcap (ns)`, `modified pcap`, `pcapng` or `snoop`.
    pub format: Cow<'static, str>,
    /// `gzip`, `zstd`, `lz4` or `xz`; null for a plain file.
    pub compression: Option<Cow<'static, str>>,
    /// Packets in the file.
    pub packets: u64,
    /// File size, after compression if any.
    pub bytes: u64,
    /// Earliest timestamp.
    #[serde(rename = "first_ns")]
    pub first: Option<Timestamp>,
    /// Latest timestamp.
    #[serde(rename = "last_ns")]
    pub last: Option<Timestamp>,
    /// Tick of the coarsest clock in nanoseconds, at least 1.
    pub resolution_ns: u64,
    /// Largest snap length stated in the file.
    pub snap_length: Option<u32>,
    /// LINKTYPE_* values of the interfaces.
    pub link_types: Vec<u32>,
    /// Smallest observed step of the clock if it is 100 µs or more, whatever resolution the file states; 0 if the
    /// clock stood still, null for a finer clock. Shorter times cannot be measured.
    #[serde(rename = "coarse_clock_ns")]
    pub coarse_clock: Option<Nanos>,
    /// Correction applied because the two directions were stamped by different clocks; null if one clock stamped both.
    pub clock_offset: Option<CaptureClockOffset>,
    /// Reason for not reading the file to its end: file, reason, packet, byte offset. The first of the warnings.
    #[serde(skip)]
    pub truncated: Option<String>,
    /// Problems found in the file.
    pub warnings: Vec<String>,
}

impl CaptureInfo {
    /// Returns the shortest time that the captures' clocks can measure. Absent if no clock is coarse; the maximum if a
    /// clock stood still.
    pub fn least_time(captures: &[CaptureInfo]) -> Option<Nanos> {
        let told = |step: Nanos| if step.0 == 0 { Nanos(i64::MAX) } else { step };
        captures.iter().filter_map(|capture| capture.coarse_clock).map(told).max()
    }
}

/// Offset between the clocks of the two directions, bounded by the minimum delays between data and acknowledgments.
/// The sum of a response time and the following think time is exact for any offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureClockOffset {
    /// True if packets from servers carried the later time, false if packets from clients did.
    pub of_servers: bool,
    /// Time subtracted from these packets.
    #[serde(rename = "applied_ns")]
    pub applied: Nanos,
    /// Lower bound of the offset.
    #[serde(rename = "low_ns")]
    pub low: Nanos,
    /// Upper bound of the offset.
    #[serde(rename = "high_ns")]
    pub high: Nanos,
}

impl CaptureClockOffset {
    /// Returns the senders of the packets that carried the later time.
    pub fn whose(self) -> &'static str {
        if self.of_servers { "servers" } else { "clients" }
    }
}
