//! For tests only: what the fuzz targets do with their bytes, as ordinary functions.
//!
//! A target in `fuzz/fuzz_targets/` hands its bytes to the function of the same name here; so does a plain test, with
//! the inputs that are kept in `fuzz/corpus/` and `fuzz/finds/`. A body never fails on bad input: it panics where the
//! parsers break a promise. [`mutate`] damages captures packet by packet for the target that reads them whole.

#![forbid(unsafe_code)]

pub mod captures;
pub mod compression;
pub mod mutate;
pub mod packets;
pub mod pipeline;
pub mod reassembly;
pub mod security;
pub mod smb1;
pub mod smb2;
pub mod streams;

mod bytes;

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, and that of its directories below `fuzz/`.
    pub name: &'static str,
    /// What it does with an input.
    pub body: fn(&[u8]),
}

/// Every target, from the outside in.
pub const TARGETS: [Target; 13] = [
    Target { name: "pcap", body: captures::pcap },
    Target { name: "pcapng", body: captures::pcapng },
    Target { name: "snoop", body: captures::snoop },
    Target { name: "compressed", body: captures::compressed },
    Target { name: "packets", body: packets::packets },
    Target { name: "reassembly", body: reassembly::reassembly },
    Target { name: "smb1", body: smb1::smb1 },
    Target { name: "smb1_stream", body: streams::smb1_stream },
    Target { name: "smb2", body: smb2::smb2 },
    Target { name: "smb2_stream", body: streams::smb2_stream },
    Target { name: "compression", body: compression::compression },
    Target { name: "security", body: security::security },
    Target { name: "pipeline", body: pipeline::pipeline },
];
