//! Records the header fields that the decoder reads: an anonymised copy of a packet keeps only these.
//!
//! Each parser enters a field where it reads it. Bytes that no parser entered become zero, so that keys, identifiers,
//! options, padding and unsupported protocols can't leak an address.

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
}

impl Fields for () {
    const RECORDS: bool = false;

    #[inline(always)]
    fn enter(&mut self, _: Option<&[u8]>, _: Stays) {}
}

/// Leading bytes of a packet, with everything the decoder does not read set to zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Understood {
    start: usize,
    pub bytes: Vec<u8>,
    pub addresses: Vec<Range<usize>>,
    pub ipv4_headers: Vec<Range<usize>>,
}

impl Understood {
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
