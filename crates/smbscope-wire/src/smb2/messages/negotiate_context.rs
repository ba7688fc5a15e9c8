//! Contexts of a 3.1.1 NEGOTIATE (MS-SMB2 2.2.3.1, 2.2.4.1): pre-authentication integrity, encryption, signing and
//! server name. Compression is parsed but never offered.

use crate::bytes::u16_at;
use crate::codec::{Buffer, FixedSizeField, List, Put, counted, put_counted};
use crate::kept::{MAX_ENTRIES, RetainedRanges};

const PREAUTH_INTEGRITY_CAPABILITIES: u16 = 0x0001;
const ENCRYPTION_CAPABILITIES: u16 = 0x0002;
const COMPRESSION_CAPABILITIES: u16 = 0x0003;
const NETNAME_NEGOTIATE_CONTEXT_ID: u16 = 0x0005;
const SIGNING_CAPABILITIES: u16 = 0x0008;
/// The only hash algorithm that the specification defines.
const SHA_512: u16 = 0x0001;
/// Contexts of a NEGOTIATE; the rest is ignored.
const MAX_CONTEXTS: usize = 64;
/// ContextType, DataLength, Reserved.
const HEADER: usize = 8;

/// Retains the lists of algorithms in the contexts at this offset, but no salts, hashes or server names.
pub(super) fn retain((start, count): (usize, usize), m: &[u8], kept: &mut RetainedRanges) {
    let mut at = start;
    for _ in 0..count.min(MAX_ENTRIES) {
        let Some((kind, length)) = at.checked_add(2).and_then(|behind| Some((u16_at(m, at)?, u16_at(m, behind)?)))
        else {
            return;
        };
        let data = at + HEADER;
        let end = data + usize::from(length);
        kept.field(at..data);
        if matches!(kind, ENCRYPTION_CAPABILITIES | COMPRESSION_CAPABILITIES | SIGNING_CAPABILITIES) {
            kept.field(data..end);
        }
        at = end.next_multiple_of(8);
    }
}

/// Contexts that a 3.1.1 client offers or a server chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer<'a> {
    pub salt: &'a [u8],
    /// Preferred first (2.2.3.1.2). Omitted if empty.
    pub ciphers: &'a [u16],
    /// Preferred first (2.2.3.1.7). Omitted if empty.
    pub signing_algorithms: &'a [u16],
    /// Server name as the user entered it (2.2.3.1.4). Servers omit it.
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

/// Appends a context, aligned to 8 bytes from the header.
fn context(kind: u16, header: usize, out: &mut Vec<u8>, data: impl FnOnce(&mut Vec<u8>)) {
    out.pad(header, 8);
    let start = out.len();
    out.put(kind);
    out.put_zeros(HEADER - 2);
    data(out);
    ((out.len() - start - HEADER) as u16).set(out, start + 2);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NegotiateContext<'a> {
    pub context_type: u16,
    pub data: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
pub enum NegotiateContextList<'a> {
    Offer(Offer<'a>),
    Read(Iter<'a>),
}

impl Default for NegotiateContextList<'_> {
    fn default() -> Self {
        NegotiateContextList::Read(Iter::default())
    }
}

impl<'a> NegotiateContextList<'a> {
    /// Iterates over the contexts of a message. Ends at the first truncated one.
    pub fn iter(self) -> Iter<'a> {
        match self {
            NegotiateContextList::Read(contexts) => contexts,
            NegotiateContextList::Offer(_) => Iter::default(),
        }
    }

    /// Returns the cipher that the server chose; zero if there was no common one.
    pub fn cipher(self) -> Option<u16> {
        only(self.ciphers()?)
    }

    pub fn ciphers(self) -> Option<List<'a, u16>> {
        counted(self.data(ENCRYPTION_CAPABILITIES)?, 0)
    }

    pub fn signing_algorithm(self) -> Option<u16> {
        only(self.signing_algorithms()?)
    }

    pub fn signing_algorithms(self) -> Option<List<'a, u16>> {
        counted(self.data(SIGNING_CAPABILITIES)?, 0)
    }

    /// Returns the compression algorithms, preferred first (2.2.3.1.3), which follow count, padding and flags.
    pub fn compression_algorithms(self) -> Option<List<'a, u16>> {
        let data = self.data(COMPRESSION_CAPABILITIES)?;
        List::parse(data, 8, u16_at(data, 0)?.into())
    }

    /// Returns true if the message holds as many contexts as it states.
    pub fn are_whole(self) -> bool {
        match self {
            NegotiateContextList::Read(contexts) => contexts.count() == contexts.left,
            NegotiateContextList::Offer(_) => true,
        }
    }

    pub fn hash_algorithm(self) -> Option<u16> {
        u16_at(self.data(PREAUTH_INTEGRITY_CAPABILITIES)?, 4)
    }

    fn data(self, kind: u16) -> Option<&'a [u8]> {
        self.iter().find(|context| context.context_type == kind).map(|context| context.data)
    }
}

/// Returns the entry of a list of one, which a server's choice must be (3.2.5.2).
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
