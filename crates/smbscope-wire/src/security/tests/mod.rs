//! Tokens from our own captures and tokens built here. `*.spnego` are from `own/smbclient_SMB3_11.pcap.zst`, frames
//! 10, 11 and 12 (client and server of Samba 4.17); the expected values are tshark 4.0.17's.

use super::*;
use proptest::{collection::vec, prelude::*};

const NEGOTIATE: &[u8] = include_bytes!("negotiate.spnego");
const CHALLENGE: &[u8] = include_bytes!("challenge.spnego");
const AUTHENTICATE: &[u8] = include_bytes!("authenticate.spnego");

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let length = match length {
        0..=0x7f => vec![length as u8],
        0x80..=0xff => vec![0x81, length as u8],
        _ => vec![0x82, (length >> 8) as u8, length as u8],
    };
    [&[tag], &length[..], content].concat()
}

/// An AP-REQ with a readable realm and service (RFC 4120 5.5.1). Its ciphertexts are zeros.
fn ap_req(realm: &str, service: &[&str]) -> Vec<u8> {
    let names: Vec<u8> = service.iter().flat_map(|name| der(0x1b, name.as_bytes())).collect();
    let sname = der(0x30, &[der(0xa0, &der(2, &[2])), der(0xa1, &der(0x30, &names))].concat());
    let encrypted = der(0x30, &[der(0xa0, &der(2, &[18])), der(0xa2, &der(4, &[0; 300]))].concat());
    let ticket =
        [der(0xa0, &der(2, &[5])), der(0xa1, &der(0x1b, realm.as_bytes())), der(0xa2, &sname), der(0xa3, &encrypted)];
    let request = [
        der(0xa0, &der(2, &[5])),
        der(0xa1, &der(2, &[14])),
        der(0xa2, &der(3, &[0, 0x20, 0, 0, 0])),
        der(0xa3, &der(0x61, &der(0x30, &ticket.concat()))),
        der(0xa4, &encrypted),
    ];
    der(0x6e, &der(0x30, &request.concat()))
}

/// InitialContextToken of a mechanism (RFC 2743 3.1).
fn gss(mechanism: &[u8], token: &[u8]) -> Vec<u8> {
    der(0x60, &[&der(6, mechanism)[..], token].concat())
}

const SPNEGO: &[u8] = &[0x2b, 6, 1, 5, 5, 2];
const KERBEROS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2];

/// NegTokenInit with one mechanism and its token (RFC 4178 4.2.1).
fn neg_token_init(mechanism: &[u8], token: &[u8]) -> Vec<u8> {
    let fields = [der(0xa0, &der(0x30, &der(6, mechanism))), der(0xa2, &der(4, token))].concat();
    gss(SPNEGO, &der(0xa0, &der(0x30, &fields)))
}

/// AUTHENTICATE_MESSAGE with an NT response of `response` bytes and these names (MS-NLMP 2.2.1.3).
fn authenticate(flags: u32, response: usize, names: [&[u8]; 3]) -> Vec<u8> {
    let mut message = b"NTLMSSP\0\x03\0\0\0".to_vec();
    let mut payload = Vec::new();
    for item in [&[][..], &vec![0xaa; response], names[0], names[1], names[2], &[]] {
        let length = (item.len() as u16).to_le_bytes();
        message.extend([length, length].concat());
        message.extend((64 + payload.len() as u32).to_le_bytes());
        payload.extend(item);
    }
    message.extend(flags.to_le_bytes());
    [message, payload].concat()
}

fn user(domain: &str, user: &str, workstation: &str, anonymous: bool) -> Option<SecurityToken> {
    let [domain, user, workstation] = [domain, user, workstation].map(str::to_owned);
    Some(SecurityToken::NtlmAuthenticate { domain, user, workstation, anonymous })
}

fn kerberos(realm: &str, service: &str) -> Option<SecurityToken> {
    Some(SecurityToken::KerberosApReq { realm: realm.to_owned(), service: service.to_owned() })
}

#[test]
fn three_steps_of_a_logon_name_server_domain_user_and_workstation() {
    assert_eq!(identify(NEGOTIATE), Some(SecurityToken::NtlmNegotiate));
    assert_eq!(identify(CHALLENGE), Some(SecurityToken::NtlmChallenge { target: Some("SMBSRV".into()) }));
    assert_eq!(identify(AUTHENTICATE), user("WORKGROUP", "root", "VM", false));
}

#[test]
fn a_cut_token_gives_the_names_that_are_whole_and_no_others() {
    for cut in 0..AUTHENTICATE.len() {
        match identify(&AUTHENTICATE[..cut]) {
            None => {}
            Some(SecurityToken::NtlmAuthenticate { domain, user, workstation, anonymous }) => {
                assert!(["", "WORKGROUP"].contains(&&*domain) && ["", "root"].contains(&&*user));
                assert!(["", "VM"].contains(&&*workstation) && !anonymous);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn ntlm_needs_no_wrapper() {
    let bob: Vec<u8> = "Böb".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let message = authenticate(1, 24, [b"D\0", &bob, b"W\0S\0"]);
    assert_eq!(identify(&message), user("D", "Böb", "WS", false));
    assert_eq!(identify(b"NTLMSSP\0\x01\0\0\0"), Some(SecurityToken::NtlmNegotiate));
    assert_eq!(identify(b"NTLMSSP\0\x02\0\0\0"), Some(SecurityToken::NtlmChallenge { target: None }));
    assert_eq!(identify(b"NTLMSSP\0\x04\0\0\0"), None);
}

#[test]
fn oem_names_have_one_byte_per_character() {
    assert_eq!(identify(&authenticate(2, 24, [b"DOM", b"user", b"PC\x84"])), user("DOM", "user", "PC\u{fffd}", false));
}

#[test]
fn no_user_and_no_response_is_anonymous() {
    // Expected: MS-NLMP 3.2.5.1.2, and NTLMSSP_NEGOTIATE_ANONYMOUS in 2.2.2.5.
    assert_eq!(identify(&authenticate(1, 0, [b"", b"", b"P\0C\0"])), user("", "", "PC", true));
    assert_eq!(identify(&authenticate(0x801, 24, [b"", b"", b""])), user("", "", "", true));
    assert_eq!(identify(&authenticate(1, 24, [b"", b"", b""])), user("", "", "", false));
}

#[test]
fn names_out_of_range_are_empty() {
    let mut message = authenticate(1, 24, [b"D\0", b"u\0", b"w\0"]);
    message[40..44].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(identify(&message), user("D", "", "w", false));
}

#[test]
fn a_message_without_flags_is_read_by_its_zeros() {
    // The first clients' messages have the payload where later ones have flags, here at 52.
    let mut message = authenticate(0, 0, [b"D\0", b"u\0", b""]);
    message.drain(52..64);
    for at in [28, 36] {
        message[at + 4] -= 12;
    }
    assert_eq!(identify(&message), user("D", "u", "", false));
}

#[test]
fn kerberos_tokens_name_the_service_and_its_realm() {
    let request = ap_req("EXAMPLE.COM", &["cifs", "server.example.com"]);
    let expected = kerberos("EXAMPLE.COM", "cifs/server.example.com");
    assert_eq!(identify(&request), expected);
    let in_gss = gss(KERBEROS, &[&[1, 0][..], &request].concat());
    assert_eq!(identify(&in_gss), expected);
    assert_eq!(identify(&neg_token_init(KERBEROS, &in_gss)), expected);
}

#[test]
fn a_truncated_ticket_keeps_complete_names() {
    let token = neg_token_init(KERBEROS, &ap_req("EXAMPLE.COM", &["cifs", "server"]));
    let until = |end: &[u8]| token.windows(end.len()).position(|window| window == end).unwrap() + end.len();
    assert_eq!(identify(&token[..until(b"EXAMPLE.CO")]), kerberos("", ""));
    assert_eq!(identify(&token[..until(b"EXAMPLE.COM")]), kerberos("EXAMPLE.COM", ""));
    assert_eq!(identify(&token[..until(b"cifs")]), kerberos("EXAMPLE.COM", ""));
    assert_eq!(identify(&token[..until(b"server")]), kerberos("EXAMPLE.COM", "cifs/server"));
}

#[test]
fn tokens_without_a_mechanism_token_identify_nobody() {
    // NegTokenResp accept-completed (RFC 4178 4.2.2), NegTokenInit with mechanisms only, an AP-REP, and an empty token.
    assert_eq!(identify(&der(0xa1, &der(0x30, &der(0xa0, &der(10, &[0]))))), None);
    assert_eq!(identify(&gss(SPNEGO, &der(0xa0, &der(0x30, &der(0xa0, &der(0x30, &der(6, KERBEROS))))))), None);
    assert_eq!(identify(&gss(KERBEROS, &[2, 0, 0x6f, 0])), None);
    assert_eq!(identify(b""), None);
}

#[test]
fn indefinite_lengths_and_endless_wrappers_are_refused() {
    assert_eq!(identify(&[0xa1, 0x80, 0x30, 0x80, 0xa2, 0x80, 4, 0x80]), None);
    let mut token = b"NTLMSSP\0\x01\0\0\0".to_vec();
    for _ in 0..2 {
        token = neg_token_init(KERBEROS, &token);
    }
    assert_eq!(identify(&token), Some(SecurityToken::NtlmNegotiate));
    for _ in 0..2 {
        token = neg_token_init(KERBEROS, &token);
    }
    assert_eq!(identify(&token), None);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..400), kind in 0..4u8) {
        let _ = identify(&bytes);
        let _ = identify(&[&b"NTLMSSP\0"[..], &[kind, 0, 0, 0], &bytes].concat());
        let _ = identify(&neg_token_init(KERBEROS, &bytes));
    }

    #[test]
    fn a_changed_byte_never_panics(at in any::<prop::sample::Index>(), byte: u8, cut in any::<prop::sample::Index>()) {
        for token in [CHALLENGE, AUTHENTICATE, &neg_token_init(KERBEROS, &ap_req("REALM", &["cifs", "host"]))] {
            let mut token = token.to_vec();
            *at.get_mut(&mut token) = byte;
            let _ = identify(&token);
            let _ = identify(&token[..cut.index(token.len())]);
        }
    }
}
