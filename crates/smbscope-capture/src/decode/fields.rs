//! The header fields that the decoder reads: all that an anonymous copy of a packet keeps of its headers.
//!
//! Each parser enters a field where it reads it. Bytes that no parser entered become zero, so that keys, identifiers,
//! options, padding and protocols that are not read can't carry an address out.

use std::ops::Range;

/// What stays of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stays {
    /// All of its bits.
    Whole,
    /// These bits of each byte.
    Bits(u8),
    /// Nothing: each byte becomes this.
    As(u8),
    /// It is an address of IPv4 or IPv6, which another one replaces.
    Address,
    /// It is an IPv4 header, whose checksum is made anew.
    Checksummed,
}

/// Receives the fields that a parser reads.
pub(super) trait Fields {
    /// Whether anything comes of [`enter`](Fields::enter): parsers skip what serves nothing else.
    const RECORDS: bool;

    /// Enters a field, a part of the packet. Ignores `None`, a field that was not captured.
    fn enter(&mut self, field: Option<&[u8]>, stays: Stays);
}

/// Decoding keeps no fields.
impl Fields for () {
    const RECORDS: bool = false;

    #[inline(always)]
    fn enter(&mut self, _: Option<&[u8]>, _: Stays) {}
}

/// The first bytes of a packet without what the decoder does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Understood {
    /// Start of the packet in memory: parsers enter slices of it.
    start: usize,
    /// Fields at their places, and zeros between them.
    pub bytes: Vec<u8>,
    /// Places of IP addresses, whole or cut short. Their bytes are those of the packet.
    pub addresses: Vec<Range<usize>>,
    /// Places of whole IPv4 headers, whose checksums are zero.
    pub ipv4_headers: Vec<Range<usize>>,
}

impl Understood {
    /// Nothing yet of the first `length` bytes of a packet.
    pub(super) fn new(packet: &[u8], length: usize) -> Understood {
        let bytes = vec![0; length.min(packet.len())];
        Understood { start: packet.as_ptr() as usize, bytes, addresses: Vec::new(), ipv4_headers: Vec::new() }
    }
}

impl Fields for Understood {
    const RECORDS: bool = true;

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
