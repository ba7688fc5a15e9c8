//! Keytab files of MIT and Heimdal, version 0x0502 (MIT krb5: *Keytab file format*). Names are ignored: a key that opens
//! a ticket is the right one.

use super::KerberosKey;
use std::fmt;
use zeroize::Zeroizing;

/// First bytes of a keytab.
pub const KEYTAB: [u8; 2] = [5, 2];

/// Components of the longest principal.
const COMPONENTS_MAX: u16 = 32;

/// Key of a service.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceKey(pub(super) KerberosKey);

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

    /// Made by `ktadd` of MIT krb5 1.20: one service with keys of all types.
    const REAL: &[u8] = include_bytes!("../../../../tests/data/encrypted/kerberos_tickets.keytab");

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
