//! Target for files with keys and passwords, and for the tokens of logons.

use smbscope_crypto::kerberos::{KerberosLogon, ServiceKey};
use smbscope_crypto::key_ring::KeyRing;
use smbscope_crypto::ntlm::{CapturedLogon, server_challenge};

/// Reads the bytes as a file with keys, as a file with passwords, and as the tokens of NTLM and Kerberos.
pub fn keys(data: &[u8]) {
    let mut ring = KeyRing::default();
    let added = ring.add_keys(data);
    assert_eq!(added.is_ok(), !ring.is_empty());
    if let Err(error) = ring.add_passwords(data) {
        assert!(ring.passwords().is_empty(), "{error}");
    }
    let challenge = server_challenge(data).unwrap_or_default();
    if let Some(logon) = CapturedLogon::parse(challenge, data) {
        for password in ring.passwords().iter().filter(|known| known.may_belong_to(&logon.user, &logon.domain)) {
            let _wrong = logon.session_key(&password.text);
        }
    }
    for etype in [17, 18, 23] {
        let service = service_key(etype);
        if let Some(logon) = KerberosLogon::open(data, &service) {
            assert!(logon.session_keys(data).count() > 0);
        }
    }
}

/// A keytab with one key, whose bytes are known to the seeds.
fn service_key(etype: u16) -> Vec<ServiceKey> {
    let key = vec![7; if etype == 18 { 32 } else { 16 }];
    let mut entry = vec![0; 13];
    entry.extend(etype.to_be_bytes());
    entry.extend((key.len() as u16).to_be_bytes());
    entry.extend(key);
    let keytab = [&[5, 2][..], &(entry.len() as u32).to_be_bytes(), &entry].concat();
    ServiceKey::parse_all(&keytab).expect("a keytab")
}
