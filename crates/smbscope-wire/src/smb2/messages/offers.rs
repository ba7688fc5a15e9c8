//! Dialects and algorithms of NEGOTIATE (MS-SMB2 2.2.3, 2.2.4), parsed from possibly truncated messages: truncated
//! lists are unknown, not empty.

use super::negotiate_context::NegotiateContextList;
use crate::codec::{Buffer, List};
use crate::smb2::Smb2AlgorithmIds;

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
    use super::super::negotiate_context::Offer;
    use super::super::{Smb2Message, negotiate};
    use super::*;
    use crate::smb2::{Smb2ClientOffer, Smb2Command, Smb2Header, Smb2Request, Smb2Response, flags};

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
