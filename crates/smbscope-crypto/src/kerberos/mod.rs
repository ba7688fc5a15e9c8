//! Session keys of a captured Kerberos logon, given keys of the service (RFC 4120 3.2, RFC 4121 2).
//!
//! The service's key opens the ticket, the key inside opens the authenticator and the server's answer. Each may have a
//! subkey, which the session uses instead; which one is found by trial.

mod encryption;
mod keytab;

pub use keytab::{KEYTAB, ServiceKey};

use encryption::decrypt;
use smbscope_wire::security::der;
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

impl std::fmt::Debug for KerberosKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
