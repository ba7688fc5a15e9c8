//! The contexts of a 3.1.1 NEGOTIATE (MS-SMB2 2.2.3.1, 2.2.4.1): pre-authentication integrity, encryption, signing, and
//! the server's name. No compression is offered.

use crate::bytes::u16_at;
use crate::codec::{Buffer, FixedSizeField, List, Put, counted, put_counted};

const PREAUTH_INTEGRITY_CAPABILITIES: u16 = 0x0001;
const ENCRYPTION_CAPABILITIES: u16 = 0x0002;
const COMPRESSION_CAPABILITIES: u16 = 0x0003;
const NETNAME_NEGOTIATE_CONTEXT_ID: u16 = 0x0005;
const SIGNING_CAPABILITIES: u16 = 0x0008;
/// The only hash algorithm there is.
const SHA_512: u16 = 0x0001;
/// More contexts than that are not looked at.
const MAX_CONTEXTS: usize = 64;
/// ContextType, DataLength, Reserved.
const HEADER: usize = 8;

/// Whether the analysis reads a context of this type.
pub(crate) fn is_read(kind: u16) -> bool {
    matches!(kind, ENCRYPTION_CAPABILITIES | COMPRESSION_CAPABILITIES | SIGNING_CAPABILITIES)
}

/// What a client of 3.1.1 offers, or a server chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer<'a> {
    /// Random bytes of the pre-authentication hash.
    pub salt: &'a [u8],
    /// Ciphers, the best first (2.2.3.1.2); left out where empty.
    pub ciphers: &'a [u16],
    /// Signing algorithms, the best first (2.2.3.1.7); left out where empty.
    pub signing_algorithms: &'a [u16],
    /// The server as the user calls it (2.2.3.1.4); left out by servers.
    pub net_name: Option<&'a str>,
}

impl Offer<'_> {
    fn emit(&self, header: usize, out: &mut Vec<u8>) -> usize {
        let mut count = 1;
        context(PREAUTH_INTEGRITY_CAPABILITIES, header, out, |out| {
            out.put(1u16);
            out.put(self.salt.len() as u16);
            out.put(SHA_512);
            out.put_bytes(self.salt);
        });
        for (kind, ids) in [(ENCRYPTION_CAPABILITIES, self.ciphers), (SIGNING_CAPABILITIES, self.signing_algorithms)] {
            if !ids.is_empty() {
                count += 1;
                context(kind, header, out, |out| put_counted(ids.into(), out));
            }
        }
        if let Some(name) = self.net_name {
            count += 1;
            context(NETNAME_NEGOTIATE_CONTEXT_ID, header, out, |out| out.put_utf16(name));
        }
        count
    }
}

/// Appends a context at a multiple of eight bytes from the header on.
fn context(kind: u16, header: usize, out: &mut Vec<u8>, data: impl FnOnce(&mut Vec<u8>)) {
    out.pad(header, 8);
    let start = out.len();
    out.put(kind);
    out.put_zeros(HEADER - 2);
    data(out);
    ((out.len() - start - HEADER) as u16).set(out, start + 2);
}

/// A context as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NegotiateContext<'a> {
    /// ContextType.
    pub context_type: u16,
    /// Data.
    pub data: &'a [u8],
}

/// The contexts of a message.
#[derive(Debug, Clone, Copy)]
pub enum NegotiateContextList<'a> {
    /// To be written.
    Offer(Offer<'a>),
    /// As they were read.
    Read(Iter<'a>),
}

impl Default for NegotiateContextList<'_> {
    fn default() -> Self {
        NegotiateContextList::Read(Iter::default())
    }
}

impl<'a> NegotiateContextList<'a> {
    /// What was read; it ends where one is cut off.
    pub fn iter(self) -> Iter<'a> {
        match self {
            NegotiateContextList::Read(contexts) => contexts,
            NegotiateContextList::Offer(_) => Iter::default(),
        }
    }

    /// The cipher that the server chose; zero where it found none.
    pub fn cipher(self) -> Option<u16> {
        only(self.ciphers()?)
    }

    /// The ciphers, the best first.
    pub fn ciphers(self) -> Option<List<'a, u16>> {
        counted(self.data(ENCRYPTION_CAPABILITIES)?, 0)
    }

    /// The signing algorithm that the server chose.
    pub fn signing_algorithm(self) -> Option<u16> {
        only(self.signing_algorithms()?)
    }

    /// The signing algorithms, the best first.
    pub fn signing_algorithms(self) -> Option<List<'a, u16>> {
        counted(self.data(SIGNING_CAPABILITIES)?, 0)
    }

    /// The compression algorithms, the best first (2.2.3.1.3): their count, padding and flags stand in front.
    pub fn compression_algorithms(self) -> Option<List<'a, u16>> {
        let data = self.data(COMPRESSION_CAPABILITIES)?;
        List::parse(data, 8, u16_at(data, 0)?.into())
    }

    /// Whether every context is there that the message says it has.
    pub fn are_whole(self) -> bool {
        match self {
            NegotiateContextList::Read(contexts) => contexts.count() == contexts.left,
            NegotiateContextList::Offer(_) => true,
        }
    }

    /// The hash algorithm of pre-authentication integrity.
    pub fn hash_algorithm(self) -> Option<u16> {
        u16_at(self.data(PREAUTH_INTEGRITY_CAPABILITIES)?, 4)
    }

    fn data(self, kind: u16) -> Option<&'a [u8]> {
        self.iter().find(|context| context.context_type == kind).map(|context| context.data)
    }
}

/// The only entry of a list: a choice is a list of one (3.2.5.2).
fn only(list: List<'_, u16>) -> Option<u16> {
    let mut ids = list.iter();
    ids.next().filter(|_| ids.next().is_none())
}

impl PartialEq for NegotiateContextList<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (NegotiateContextList::Offer(one), NegotiateContextList::Offer(other)) => one == other,
            (NegotiateContextList::Read(one), NegotiateContextList::Read(other)) => one.eq(*other),
            _ => false,
        }
    }
}

impl Eq for NegotiateContextList<'_> {}

impl<'a> Buffer<'a> for NegotiateContextList<'a> {
    fn parse(message: &'a [u8], offset: usize, count: usize) -> Option<NegotiateContextList<'a>> {
        Some(NegotiateContextList::Read(Iter { message, offset, left: count.min(MAX_CONTEXTS) }))
    }

    fn emit(&self, header: usize, out: &mut Vec<u8>) -> usize {
        match self {
            NegotiateContextList::Offer(offer) => offer.emit(header, out),
            NegotiateContextList::Read(contexts) => contexts
                .map(|NegotiateContext { context_type, data }| {
                    context(context_type, header, out, |out| out.put_bytes(data))
                })
                .count(),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, NegotiateContextList::Read(contexts) if contexts.clone().next().is_none())
    }
}

/// The contexts of a message that was read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Iter<'a> {
    message: &'a [u8],
    offset: usize,
    left: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = NegotiateContext<'a>;

    fn next(&mut self) -> Option<NegotiateContext<'a>> {
        self.left = self.left.checked_sub(1)?;
        let start = self.offset;
        let data = start.checked_add(HEADER)?;
        let end = data.checked_add(u16_at(self.message, start.checked_add(2)?)?.into())?;
        self.offset = end.checked_next_multiple_of(8)?;
        Some(NegotiateContext { context_type: u16_at(self.message, start)?, data: self.message.get(data..end)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_a_list_of_one() {
        let bytes = [8, 0, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 2, 0, 6, 0, 0, 0, 0, 0, 2, 0, 1, 0, 2, 0];
        let contexts = NegotiateContextList::parse(&bytes, 0, 2).unwrap();
        assert_eq!(contexts.signing_algorithm(), Some(2));
        assert_eq!(contexts.cipher(), None, "two ciphers are no choice (3.2.5.2)");
        assert_eq!(NegotiateContextList::parse(&bytes[..20], 0, 2).unwrap().iter().count(), 1, "the second is cut off");
    }
}
