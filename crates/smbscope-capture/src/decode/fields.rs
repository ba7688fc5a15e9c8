//! Records the header fields that the decoder reads: an anonymised copy of a packet keeps only these.
//!
//! Each parser enters a field where it reads it. Bytes that no parser entered become zero, so that keys, identifiers,
//! options, padding and unsupported protocols can't leak an address.

use smbscope_model::{SkippedProtocol, TunnelKind, TunnelPorts};
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stays {
    Whole,
    Bits(u8),
    As(u8),
    Address,
    Checksummed,
}

pub(super) trait Fields {
    /// False if [`enter`](Fields::enter) does nothing, so that parsers can skip work that serves only this purpose.
    const RECORDS: bool;

    /// Enters a field, given as a slice of the packet. Ignores `None`, i.e. a field that was not captured.
    fn enter(&mut self, field: Option<&[u8]>, stays: Stays);

    /// Notes a header, outermost first. The packet inside may turn out not to be TCP.
    #[inline(always)]
    fn pass(&mut self, _: Enclosure) {}

    /// Notes the first frame of an 802.11 aggregate, by the offset of its header.
    #[inline(always)]
    fn note_aggregate(&mut self, _at: usize) {}

    /// Notes the process that a header names.
    #[inline(always)]
    fn note_process(&mut self, _id: Option<u32>, _name: &[u8]) {}

    /// Returns the tunnel that the user declared for a UDP port.
    #[inline(always)]
    fn declared_tunnel(&self, _: u16) -> Option<TunnelKind> {
        None
    }
}

/// Header around a packet other than Ethernet and IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Enclosure {
    Link(u32),
    EtherType(u16),
    IpProtocol(u8),
    /// EtherType in a GRE header.
    Gre(u16),
    Udp(TunnelKind, u16),
}

/// Parses with the tunnels that the user declared.
impl Fields for &TunnelPorts {
    const RECORDS: bool = false;

    #[inline(always)]
    fn enter(&mut self, _: Option<&[u8]>, _: Stays) {}

    fn declared_tunnel(&self, port: u16) -> Option<TunnelKind> {
        self.kind(port)
    }
}

impl Fields for () {
    const RECORDS: bool = false;

    #[inline(always)]
    fn enter(&mut self, _: Option<&[u8]>, _: Stays) {}
}

/// Leading bytes of a packet, with everything the decoder does not read set to zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Understood {
    tunnels: TunnelPorts,
    start: usize,
    pub bytes: Vec<u8>,
    pub addresses: Vec<Range<usize>>,
    pub ipv4_headers: Vec<Range<usize>>,
}

impl Understood {
    pub(super) fn new(packet: &[u8], length: usize, tunnels: &TunnelPorts) -> Understood {
        let bytes = vec![0; length.min(packet.len())];
        Understood {
            tunnels: tunnels.clone(),
            start: packet.as_ptr() as usize,
            bytes,
            addresses: Vec::new(),
            ipv4_headers: Vec::new(),
        }
    }
}

impl Fields for Understood {
    const RECORDS: bool = true;

    fn declared_tunnel(&self, port: u16) -> Option<TunnelKind> {
        self.tunnels.kind(port)
    }

    fn enter(&mut self, field: Option<&[u8]>, stays: Stays) {
        let Some(field) = field else { return };
        let start = (field.as_ptr() as usize).wrapping_sub(self.start).min(self.bytes.len());
        let place = start..start.saturating_add(field.len()).min(self.bytes.len());
        match stays {
            Stays::Checksummed if place.len() == field.len() => self.ipv4_headers.push(place),
            Stays::Checksummed => {}
            Stays::As(value) => self.bytes[place].fill(value),
            Stays::Bits(bits) => {
                self.bytes[place].iter_mut().zip(field).for_each(|(kept, byte)| *kept |= byte & bits);
            }
            Stays::Whole | Stays::Address => {
                let length = place.len();
                self.bytes[place.clone()].copy_from_slice(&field[..length]);
                if stays == Stays::Address && length > 0 {
                    self.addresses.push(place);
                }
            }
        }
    }
}

pub(super) fn be16(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(data.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

#[inline(always)]
pub(super) fn read16<F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<u16> {
    fields.enter(data.get(at..at.checked_add(2)?), Stays::Whole);
    be16(data, at)
}

#[inline(always)]
pub(super) fn read8<F: Fields>(data: &[u8], at: usize, bits: u8, fields: &mut F) -> Option<u8> {
    let byte = data.get(at..at.checked_add(1)?)?;
    fields.enter(Some(byte), Stays::Bits(bits));
    byte.first().copied()
}

/// Layer inside a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    /// Another link type.
    Link(u32),
    Ethernet,
    EtherType(u16),
    /// IEEE 802.2.
    LogicalLink,
    /// IP of this version, or of the version in its header.
    Ip(Option<u8>),
    Ppp,
    Mpls,
    Skipped(SkippedProtocol),
}
