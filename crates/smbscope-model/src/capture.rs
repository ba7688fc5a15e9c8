//! What there is to say about a capture as a file.

use crate::Timestamp;
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
    /// Why the file could not be read to its end: file, reason, packet, byte offset. The first of the warnings.
    #[serde(skip)]
    pub truncated: Option<String>,
    /// What was wrong with the file.
    pub warnings: Vec<String>,
}
