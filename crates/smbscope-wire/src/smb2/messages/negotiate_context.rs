//! The contexts of a 3.1.1 NEGOTIATE (MS-SMB2 2.2.3.1, 2.2.4.1): pre-authentication integrity, encryption, signing, and
//! the server's name. No compression is offered.

use super::put::Put;
use crate::bytes::u16_at;

const PREAUTH_INTEGRITY_CAPABILITIES: u16 = 0x0001;
const ENCRYPTION_CAPABILITIES: u16 = 0x0002;
const NETNAME_NEGOTIATE_CONTEXT_ID: u16 = 0x0005;
const SIGNING_CAPABILITIES: u16 = 0x0008;
/// The only hash algorithm there is.
const SHA_512: u16 = 0x0001;
/// More contexts than that are not looked at.
const MAX_CONTEXTS: u16 = 64;

/// What a client of 3.1.1 offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer<'a> {
    /// Random bytes of the pre-authentication hash.
    pub salt: &'a [u8],
    /// Ciphers, the best first (2.2.3.1.2); left out where empty.
    pub ciphers: &'a [u16],
    /// Signing algorithms, the best first (2.2.3.1.7); left out where empty.
    pub signing_algorithms: &'a [u16],
    /// The server as the user calls it (2.2.3.1.4).
    pub net_name: &'a str,
}

impl Offer<'_> {
    /// Appends the contexts; how many there are.
    pub(super) fn emit(&self, header: usize, out: &mut Vec<u8>) -> usize {
        let mut count = 1;
        context(PREAUTH_INTEGRITY_CAPABILITIES, header, out, |out| {
            out.put_u16(1);
            out.put_u16(self.salt.len() as u16);
            out.put_u16(SHA_512);
            out.extend_from_slice(self.salt);
        });
        for (kind, ids) in [(ENCRYPTION_CAPABILITIES, self.ciphers), (SIGNING_CAPABILITIES, self.signing_algorithms)] {
            if !ids.is_empty() {
                count += 1;
                context(kind, header, out, |out| {
                    out.put_u16(ids.len() as u16);
                    ids.iter().for_each(|id| out.put_u16(*id));
                });
            }
        }
        context(NETNAME_NEGOTIATE_CONTEXT_ID, header, out, |out| {
            out.put_utf16(self.net_name);
        });
        count + 1
    }
}

/// Appends a context at a multiple of eight bytes from the header on.
fn context(kind: u16, header: usize, out: &mut Vec<u8>, data: impl FnOnce(&mut Vec<u8>)) {
    out.pad_to_8(header);
    let start = out.len();
    out.put_u16(kind);
    out.put_u16(0);
    out.put_u32(0);
    data(out);
    out.set_u16(start + 2, out.len() - start - 8);
}

/// A context as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context<'a> {
    /// ContextType.
    pub context_type: u16,
    /// Data.
    pub data: &'a [u8],
}

/// The contexts of a message; they end where one is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Contexts<'a> {
    message: &'a [u8],
    offset: usize,
    left: u16,
}

impl<'a> Contexts<'a> {
    /// From an offset on, which counts from the header.
    pub(super) fn new(message: &'a [u8], offset: usize, count: u16) -> Contexts<'a> {
        Contexts { message, offset, left: count.min(MAX_CONTEXTS) }
    }

    /// The cipher that the server chose; zero where it found none.
    pub fn cipher(self) -> Option<u16> {
        self.chosen(ENCRYPTION_CAPABILITIES)
    }

    /// The signing algorithm that the server chose.
    pub fn signing_algorithm(self) -> Option<u16> {
        self.chosen(SIGNING_CAPABILITIES)
    }

    /// The hash algorithm of pre-authentication integrity.
    pub fn hash_algorithm(mut self) -> Option<u16> {
        self.find(|context| context.context_type == PREAUTH_INTEGRITY_CAPABILITIES)
            .and_then(|context| u16_at(context.data, 4))
    }

    /// The only entry of a list of ids.
    fn chosen(mut self, kind: u16) -> Option<u16> {
        let context = self.find(|context| context.context_type == kind)?;
        if u16_at(context.data, 0)? != 1 {
            return None;
        }
        u16_at(context.data, 2)
    }
}

impl<'a> Iterator for Contexts<'a> {
    type Item = Context<'a>;

    fn next(&mut self) -> Option<Context<'a>> {
        self.left = self.left.checked_sub(1)?;
        let start = self.offset;
        let data = start.checked_add(8)?;
        let end = data.checked_add(u16_at(self.message, start.checked_add(2)?)?.into())?;
        self.offset = end.checked_next_multiple_of(8)?;
        Some(Context { context_type: u16_at(self.message, start)?, data: self.message.get(data..end)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_a_list_of_one() {
        let bytes = [8, 0, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 2, 0, 6, 0, 0, 0, 0, 0, 2, 0, 1, 0, 2, 0];
        let contexts = Contexts::new(&bytes, 0, 2);
        assert_eq!(contexts.signing_algorithm(), Some(2));
        assert_eq!(contexts.cipher(), None, "two ciphers are no choice (3.2.5.2)");
        assert_eq!(Contexts::new(&bytes[..20], 0, 2).count(), 1, "the second is cut off");
    }
}
