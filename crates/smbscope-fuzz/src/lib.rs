//! Test support: the bodies of the fuzz targets as ordinary functions.
//!
//! A target in `fuzz/fuzz_targets/` passes its bytes to the function of the same name here, and a normal test runs the
//! same functions on `fuzz/corpus/` and `fuzz/finds/`. A body panics only if a parser breaks a promise. [`mutate`]
//! damages captures packet by packet, for the target that reads whole captures.

#![forbid(unsafe_code)]

pub mod captures;
pub mod compression;
pub mod keys;
pub mod mutate;
pub mod packets;
pub mod pipeline;
pub mod reassembly;
pub mod security;
pub mod smb1;
pub mod smb2;
pub mod streams;

#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name of the target and of its directories below `fuzz/`.
    pub name: &'static str,
    pub body: fn(&[u8]),
}

pub const TARGETS: [Target; 17] = [
    Target { name: "pcap", body: captures::pcap },
    Target { name: "pcapng", body: captures::pcapng },
    Target { name: "snoop", body: captures::snoop },
    Target { name: "netmon", body: captures::netmon },
    Target { name: "erf", body: captures::erf },
    Target { name: "compressed", body: captures::compressed },
    Target { name: "packets", body: packets::packets },
    Target { name: "reassembly", body: reassembly::reassembly },
    Target { name: "smb1", body: smb1::smb1 },
    Target { name: "smb1_stream", body: streams::smb1_stream },
    Target { name: "smb2", body: smb2::smb2 },
    Target { name: "smb2_stream", body: streams::smb2_stream },
    Target { name: "sealed_stream", body: streams::sealed_stream },
    Target { name: "keys", body: keys::keys },
    Target { name: "compression", body: compression::compression },
    Target { name: "security", body: security::security },
    Target { name: "pipeline", body: pipeline::pipeline },
];

pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn u8(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes([self.u8()?, self.u8()?]))
    }

    pub(crate) fn up_to(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }
}
