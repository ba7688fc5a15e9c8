//! Session keys of a captured Kerberos logon (RFC 4120 3.2, RFC 4121 2), given keys of the service, and the keytabs
//! from which these are read.
//!
//! The service's key opens the ticket, the key inside opens the authenticator and the server's answer. Each may have a
//! subkey, which the session uses instead; which one is found by trial. Windows and MIT encrypt with AES (RFC 3962,
//! by picky-krb) and RC4 (RFC 4757).
//!
//! Keytabs are files of MIT and Heimdal, version 0x0502 (MIT krb5: *Keytab file format*). Names are ignored: a key that
//! opens a ticket is the right one.

use crate::ntlm::hmac_md5;
use crate::same;
use picky_krb::crypto::CipherSuite;
use rc4::{KeyInit, Rc4, StreamCipher};
use smbscope_wire::security::der;
use std::fmt;
use zeroize::Zeroizing;

/// Key usage numbers (RFC 4120 7.5.1).
mod usage {
    pub(super) const TICKET: i32 = 2;
    pub(super) const AUTHENTICATOR: i32 = 11;
    pub(super) const AP_REP: i32 = 12;
}

/// [APPLICATION n] and [n] of the messages (RFC 4120 5.2.9, 5.3, 5.5).
mod tag {
    pub(super) const SEQUENCE: u8 = 0x30;
    pub(super) const INTEGER: u8 = 0x02;
    pub(super) const OCTET_STRING: u8 = 0x04;
    pub(super) const AP_REQ: u8 = 0x6e;
    pub(super) const AP_REP: u8 = 0x6f;
    pub(super) const TICKET: u8 = 0x61;
    pub(super) const AUTHENTICATOR: u8 = 0x62;
    pub(super) const ENC_TICKET_PART: u8 = 0x63;
    pub(super) const ENC_AP_REP_PART: u8 = 0x7b;

    pub(super) const fn field(number: u8) -> u8 {
        0xa0 | number
    }
}

/// Key of an encryption type (EncryptionKey).
#[derive(Clone, PartialEq, Eq)]
pub struct KerberosKey {
    pub etype: i32,
    pub bytes: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for KerberosKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KerberosKey(secret)")
    }
}

/// Keys of a logon whose ticket was opened.
#[derive(Debug, Clone)]
pub struct KerberosLogon {
    ticket_key: KerberosKey,
    /// The client's subkey.
    subkey: Option<KerberosKey>,
}

/// Returns true if a security token holds an AP-REQ.
pub fn is_request(token: &[u8]) -> bool {
    message(token, tag::AP_REQ).is_some()
}

impl KerberosLogon {
    /// Opens the AP-REQ in a security token. Returns `None` without one, or if no key fits.
    pub fn open(token: &[u8], keys: &[ServiceKey]) -> Option<KerberosLogon> {
        let request = message(token, tag::AP_REQ)?;
        let ticket = sequence(der::find(request, tag::field(3))?, tag::TICKET)?;
        let (etype, sealed) = encrypted_data(der::find(ticket, tag::field(3))?)?;
        let of_type = keys.iter().filter(|key| key.0.etype == etype);
        let opened = of_type.filter_map(|key| decrypt(&key.0, usage::TICKET, sealed)).next()?;
        let ticket_key = key(der::find(sequence(&opened, tag::ENC_TICKET_PART)?, tag::field(1))?)?;
        let subkey = authenticator_subkey(request, &ticket_key);
        Some(KerberosLogon { ticket_key, subkey })
    }

    /// Returns the possible session keys, given the token of the server's answer: the likeliest is first.
    pub fn session_keys(&self, answer: &[u8]) -> impl Iterator<Item = Zeroizing<Vec<u8>>> {
        let keys = [self.acceptor_subkey(answer), self.subkey.clone(), Some(self.ticket_key.clone())];
        keys.into_iter().flatten().map(|key| key.bytes)
    }

    fn acceptor_subkey(&self, answer: &[u8]) -> Option<KerberosKey> {
        let reply = message(answer, tag::AP_REP)?;
        let (_, sealed) = encrypted_data(der::find(reply, tag::field(2))?)?;
        let opened = decrypt(&self.ticket_key, usage::AP_REP, sealed)?;
        key(der::find(sequence(&opened, tag::ENC_AP_REP_PART)?, tag::field(2))?)
    }
}

fn authenticator_subkey(request: &[u8], ticket_key: &KerberosKey) -> Option<KerberosKey> {
    let (_, sealed) = encrypted_data(der::find(request, tag::field(4))?)?;
    let opened = decrypt(ticket_key, usage::AUTHENTICATOR, sealed)?;
    key(der::find(sequence(&opened, tag::AUTHENTICATOR)?, tag::field(6))?)
}

/// Returns the fields of the message of this type in a token, whose wrappers (SPNEGO, GSS) need no parsing: the first
/// position where the message parses with its version number counts.
fn message(token: &[u8], message: u8) -> Option<&[u8]> {
    let starts = token.iter().enumerate().filter(|(_, byte)| **byte == message).map(|(at, _)| at);
    starts.filter_map(|at| sequence(&token[at..], message)).find(|fields| {
        let version = der::find(fields, tag::field(0)).and_then(|field| der::expect(field, tag::INTEGER));
        let kind = der::find(fields, tag::field(1)).and_then(|field| der::expect(field, tag::INTEGER));
        version == Some(&[5]) && kind == Some(&[message & 0x1f])
    })
}

fn sequence(bytes: &[u8], application: u8) -> Option<&[u8]> {
    der::expect(der::expect(bytes, application)?, tag::SEQUENCE)
}

/// Returns etype and cipher of an EncryptedData.
fn encrypted_data(bytes: &[u8]) -> Option<(i32, &[u8])> {
    let fields = der::expect(bytes, tag::SEQUENCE)?;
    let cipher = der::read(der::find(fields, tag::field(2))?)?.0;
    let is_whole = cipher.tag == tag::OCTET_STRING && cipher.whole;
    Some((integer(der::find(fields, tag::field(0))?)?, cipher.content)).filter(|_| is_whole)
}

fn key(bytes: &[u8]) -> Option<KerberosKey> {
    let fields = der::expect(bytes, tag::SEQUENCE)?;
    let etype = integer(der::find(fields, tag::field(0))?)?;
    let value = der::expect(der::find(fields, tag::field(1))?, tag::OCTET_STRING)?;
    Some(KerberosKey { etype, bytes: Zeroizing::new(value.to_vec()) })
}

fn integer(bytes: &[u8]) -> Option<i32> {
    match der::expect(bytes, tag::INTEGER)? {
        [only] => Some(i32::from(*only as i8)),
        [high, low] => Some(i32::from(i16::from_be_bytes([*high, *low]))),
        _ => None,
    }
}

/// Encryption types (RFC 3961 8, RFC 4757 7).
const AES128: i32 = 17;
const AES256: i32 = 18;
const RC4: i32 = 23;

const RC4_CHECKSUM: usize = 16;
const RC4_CONFOUNDER: usize = 8;
/// Confounder and checksum of AES; shorter data holds no message.
const AES_LEAST: usize = 16 + 12;

/// Returns the message, or `None` if the key is wrong or the type unknown: the checksum proves it.
fn decrypt(key: &KerberosKey, usage: i32, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    match (key.etype, key.bytes.len()) {
        (AES128, 16) => aes(CipherSuite::Aes128CtsHmacSha196, &key.bytes, usage, sealed),
        (AES256, 32) => aes(CipherSuite::Aes256CtsHmacSha196, &key.bytes, usage, sealed),
        (RC4, 16) => rc4(key.bytes.as_slice().try_into().ok()?, usage, sealed),
        _ => None,
    }
}

fn aes(suite: CipherSuite, key: &[u8], usage: i32, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let sealed = Some(sealed).filter(|sealed| sealed.len() > AES_LEAST)?;
    suite.cipher().decrypt(key, usage, sealed).ok().map(Zeroizing::new)
}

/// Decrypts RC4. Tickets, authenticators and answers have the same usage numbers as with other types (RFC 4757 3).
fn rc4(key: &[u8; 16], usage: i32, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (checksum, sealed) = sealed.split_at_checked(RC4_CHECKSUM)?;
    let of_usage = Zeroizing::new(hmac_md5(key, &[&usage.to_le_bytes()]));
    let of_message = Zeroizing::new(hmac_md5(&of_usage, &[checksum]));
    let mut message = Zeroizing::new(sealed.to_vec());
    Rc4::new_from_slice(&of_message[..]).ok()?.apply_keystream(&mut message);
    let is_right = message.len() > RC4_CONFOUNDER && same(&hmac_md5(&of_usage, &[&message]), checksum);
    is_right.then(|| Zeroizing::new(message[RC4_CONFOUNDER..].to_vec()))
}

/// First bytes of a keytab.
pub const KEYTAB: [u8; 2] = [5, 2];

/// Components of the longest principal.
const COMPONENTS_MAX: u16 = 32;

/// Key of a service.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceKey(KerberosKey);

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceKey(secret)")
    }
}

impl ServiceKey {
    /// Returns the keys of a keytab. Returns `None` if it is malformed.
    pub fn parse_all(keytab: &[u8]) -> Option<Vec<ServiceKey>> {
        let mut rest = Bytes(keytab.strip_prefix(&KEYTAB)?);
        let mut keys = Vec::new();
        while !rest.0.is_empty() {
            // A negative size is a hole.
            let size = i32::from_be_bytes(*rest.array()?);
            let entry = rest.take(size.unsigned_abs() as usize)?;
            if size > 0 {
                keys.push(ServiceKey(entry_key(Bytes(entry))?));
            }
        }
        Some(keys)
    }
}

fn entry_key(mut entry: Bytes<'_>) -> Option<KerberosKey> {
    let components = Some(entry.number()?).filter(|count| *count <= COMPONENTS_MAX)?;
    for _ in 0..=components {
        entry.counted()?;
    }
    // Name type, time and version.
    entry.take(4 + 4 + 1)?;
    let etype = i32::from(entry.number()? as i16);
    let bytes = Zeroizing::new(entry.counted()?.to_vec());
    Some(KerberosKey { etype, bytes })
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const LENGTH: usize>(&mut self) -> Option<&'a [u8; LENGTH]> {
        self.take(LENGTH)?.first_chunk()
    }

    fn number(&mut self) -> Option<u16> {
        self.array().map(|bytes| u16::from_be_bytes(*bytes))
    }

    fn counted(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(length.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_unknown_data_is_refused() {
        for etype in [AES128, AES256, RC4, 1, 3, -1] {
            for length in [0, 8, 16, 32] {
                let key = KerberosKey { etype, bytes: Zeroizing::new(vec![1; length]) };
                for sealed in 0..64 {
                    assert_eq!(decrypt(&key, 2, &vec![7; sealed]), None);
                }
            }
        }
    }

    /// Made by `ktadd` of MIT krb5 1.20: one service with keys of all types.
    const REAL: &[u8] = include_bytes!("../../../tests/data/encrypted/kerberos_tickets.keytab");

    #[test]
    fn a_keytab_of_mit_gives_its_keys() {
        let keys = ServiceKey::parse_all(REAL).expect("a keytab");
        let types: Vec<(i32, usize)> = keys.iter().map(|key| (key.0.etype, key.0.bytes.len())).collect();
        assert_eq!(types, [(23, 16), (17, 16), (18, 32), (18, 32), (18, 32), (17, 16), (23, 16)]);
    }

    #[test]
    fn a_truncated_keytab_is_refused() {
        let whole = (0..=REAL.len()).filter(|end| ServiceKey::parse_all(&REAL[..*end]).is_some()).count();
        assert_eq!(whole, 8, "the empty keytab, and the end of each entry");
    }

    #[test]
    fn holes_are_skipped() {
        let mut keytab = KEYTAB.to_vec();
        keytab.extend((-4i32).to_be_bytes());
        keytab.extend([0xff; 4]);
        keytab.extend(&REAL[2..]);
        assert_eq!(ServiceKey::parse_all(&keytab), ServiceKey::parse_all(REAL));
    }
}
