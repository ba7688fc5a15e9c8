//! Contexts of a 3.1.1 NEGOTIATE (MS-SMB2 2.2.3.1, 2.2.4.1): pre-authentication integrity, encryption, signing and
//! server name. Compression is parsed but never offered.
//!
//! Dialects and algorithms are also parsed from possibly truncated messages (2.2.3, 2.2.4): truncated lists are unknown,
//! not empty.

use crate::bytes::u16_at;
use crate::codec::{Buffer, FixedSizeField, List, Put, counted, put_counted};
use crate::kept::{MAX_ENTRIES, RetainedRanges};
use crate::smb2::Smb2AlgorithmIds;

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

/// Dialects, or algorithms of a kind, of a NEGOTIATE. The specification has seven dialects and six compression
/// algorithms.
const MAX_OFFERED: usize = 16;
/// Bytes parsed of a NEGOTIATE. The contexts of a response follow a token of usually a few hundred bytes.
pub(super) const MAX_NEGOTIATE: usize = 8 * 1024;
/// The only dialect with contexts.
const SMB_3_1_1: u16 = 0x0311;

/// Returns the part of a message that is parsed.
pub(super) fn parsed(m: &[u8]) -> &[u8] {
    &m[..m.len().min(MAX_NEGOTIATE)]
}

/// Reads the dialects at this offset and count. Returns `None` if they are truncated.
pub(super) fn dialects(m: &[u8], (offset, count): (usize, usize)) -> Option<Vec<u16>> {
    Some(List::parse(m, offset, count)?.iter().take(MAX_OFFERED).collect())
}

impl Smb2AlgorithmIds {
    /// Reads the lists from the contexts of a dialect, which are at `place` (offset and count).
    pub(super) fn offered(dialects: &[u16], m: &[u8], place: Option<(usize, usize)>) -> Smb2AlgorithmIds {
        match dialects.contains(&SMB_3_1_1) {
            true => Smb2AlgorithmIds::read(m, place),
            false => Smb2AlgorithmIds::none(),
        }
    }

    fn none() -> Smb2AlgorithmIds {
        Smb2AlgorithmIds { ciphers: Some(Vec::new()), signing: Some(Vec::new()), compression: Some(Vec::new()) }
    }

    fn read(m: &[u8], place: Option<(usize, usize)>) -> Smb2AlgorithmIds {
        let contexts = place.and_then(|(offset, count)| NegotiateContextList::parse(m, offset, count));
        let Some(contexts) = contexts else { return Smb2AlgorithmIds::default() };
        // A missing context was not sent, unless the message is truncated before the last one.
        let listed = |list: Option<List<'_, u16>>| match list {
            Some(list) => Some(list.iter().take(MAX_OFFERED).collect()),
            None => contexts.are_whole().then(Vec::new),
        };
        Smb2AlgorithmIds {
            ciphers: listed(contexts.ciphers()),
            signing: listed(contexts.signing_algorithms()),
            compression: listed(contexts.compression_algorithms()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Smb2Message, negotiate};
    use super::*;
    use crate::smb2::{Smb2ClientOffer, Smb2Command, Smb2Header, Smb2Request, Smb2Response, flags};

    #[test]
    fn a_choice_is_a_list_of_one() {
        let bytes = [8, 0, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 2, 0, 6, 0, 0, 0, 0, 0, 2, 0, 1, 0, 2, 0];
        let contexts = NegotiateContextList::parse(&bytes, 0, 2).unwrap();
        assert_eq!(contexts.signing_algorithm(), Some(2));
        assert_eq!(contexts.cipher(), None, "two ciphers are no choice (3.2.5.2)");
        assert_eq!(NegotiateContextList::parse(&bytes[..20], 0, 2).unwrap().iter().count(), 1, "the second is cut off");
    }

    fn message<M: Smb2Message>(flags: u32, body: &M) -> Vec<u8> {
        let mut bytes = Vec::new();
        Smb2Header { flags, ..Smb2Header::new(Smb2Command::NEGOTIATE) }.emit(&mut bytes);
        body.emit(&mut bytes);
        bytes
    }

    const CONTEXTS: Offer<'static> =
        Offer { salt: &[7; 32], ciphers: &[2, 1], signing_algorithms: &[2, 1], net_name: Some("srv") };

    fn request(dialects: &[u16]) -> Vec<u8> {
        let contexts = if dialects.contains(&0x0311) {
            NegotiateContextList::Offer(CONTEXTS)
        } else {
            NegotiateContextList::default()
        };
        let dialects = List::Values(dialects);
        let body =
            negotiate::Request { security_mode: 1, capabilities: 0x7f, dialects, contexts, ..Default::default() };
        message(0, &body)
    }

    fn offer(message: &[u8]) -> Option<Smb2ClientOffer> {
        match Smb2Request::parse(Smb2Command::NEGOTIATE, message) {
            Smb2Request::Negotiate(offer) => Some(*offer),
            _ => None,
        }
    }

    #[test]
    fn a_client_lists_dialects_and_algorithms() {
        let mut message = request(&[0x0202, 0x0210, 0x0300, 0x0302, 0x0311]);
        let offered = offer(&message).unwrap();
        assert_eq!((offered.security_mode, offered.capabilities), (1, 0x7f));
        assert_eq!(offered.dialects, [0x0202, 0x0210, 0x0300, 0x0302, 0x0311]);
        let Smb2AlgorithmIds { ciphers, signing, compression } = offered.algorithms;
        assert_eq!((ciphers, signing, compression), (Some(vec![2, 1]), Some(vec![2, 1]), Some(vec![])));
        // Inserts the context of 2.2.3.1.3 before the others: two algorithms, padding, flags, LZ77 and LZ77+Huffman.
        let at = usize::try_from(u32::from_le_bytes(message[92..96].try_into().unwrap())).unwrap();
        let compression = [3u8, 0, 12, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 0, 0, 0, 0];
        message.splice(at..at, compression);
        message[96] = 5;
        assert_eq!(offer(&message).unwrap().algorithms.compression, Some(vec![2, 3]));
    }

    #[test]
    fn truncated_lists_are_unknown_and_lists_not_sent_are_empty() {
        let message = request(&[0x0311]);
        // The contexts begin at 104: pre-authentication has 8 + 38 bytes, padded to 48, the ciphers 8 + 6.
        let cut = |length: usize| offer(&message[..length]).map(|offer| offer.algorithms);
        assert_eq!(cut(104), Some(Smb2AlgorithmIds::default()));
        let ciphers_only = Smb2AlgorithmIds { ciphers: Some(vec![2, 1]), ..Smb2AlgorithmIds::default() };
        assert_eq!(cut(104 + 48 + 14), Some(ciphers_only));
        assert_eq!(offer(&message[..101]), None, "the dialect is cut off");
        assert_eq!(offer(&request(&[0x0210])).unwrap().algorithms, Smb2AlgorithmIds::none(), "2.1 has no contexts");
    }

    #[test]
    fn a_server_chooses_one_of_each() {
        let contexts = NegotiateContextList::Offer(Offer {
            salt: &[9; 32],
            ciphers: &[2],
            signing_algorithms: &[],
            net_name: None,
        });
        let body = negotiate::Response {
            security_mode: 3,
            dialect: 0x0311,
            capabilities: 0x2f,
            max_read_size: 0x80_0000,
            max_write_size: 0x10_0000,
            contexts,
            ..Default::default()
        };
        let bytes = message(flags::SERVER_TO_REDIR, &body);
        let Smb2Response::Negotiate(answer) = Smb2Response::parse(Smb2Command::NEGOTIATE, &bytes) else { panic!() };
        assert_eq!((answer.dialect, answer.security_mode, answer.capabilities), (0x0311, 3, 0x2f));
        assert_eq!((answer.max_read_size, answer.max_write_size), (0x80_0000, 0x10_0000));
        let Smb2AlgorithmIds { ciphers, signing, compression } = &answer.algorithms;
        assert_eq!((ciphers, signing, compression), (&Some(vec![2]), &Some(vec![]), &Some(vec![])));
    }
}
