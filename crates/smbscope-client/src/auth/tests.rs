use super::*;
use crate::Secret;
use proptest::prelude::*;
use smbscope_wire::security::{SecurityToken, identify};

/// Samba 4.17's answer to smbclient. The tests of smbscope-wire's reader describe the capture.
const CHALLENGE: &[u8] = include_bytes!("../../../smbscope-wire/src/security/tests/challenge.spnego");

fn user() -> Credentials {
    let password = Secret::new("hunter2".to_owned());
    Credentials::Ntlm { domain: "LAB".to_owned(), user: "bench".to_owned(), password }
}

fn answered(credentials: &Credentials) -> (Authenticator, Vec<u8>) {
    let mut authenticator = Authenticator::new(credentials, "server").unwrap();
    assert_eq!(identify(&authenticator.first()), Some(SecurityToken::NtlmNegotiate));
    let token = authenticator.next(CHALLENGE).unwrap();
    (authenticator, token)
}

/// Expected: the first token of a Windows client in the published vectors of `smbscope-crypto`, with our NTLM message inside.
#[test]
fn first_token_is_framed_as_windows_frames_it() {
    let token = Authenticator::new(&Credentials::Guest, "server").unwrap().first();
    let frame = [
        &[0x60, 0x48, 0x06, 0x06, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x02, 0xa0, 0x3e, 0x30, 0x3c, 0xa0, 0x0e][..],
        &[0x30, 0x0c, 0x06, 0x0a, 0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x02, 0x0a, 0xa2, 0x2a, 0x04, 0x28],
    ];
    assert_eq!(token[..34], frame.concat());
    assert_eq!(token.len(), 34 + 40);
}

#[test]
fn answers_name_the_user_and_sign_the_list_of_mechanisms() {
    let (authenticator, token) = answered(&user());
    let Some(SecurityToken::NtlmAuthenticate { domain, user, anonymous, .. }) = identify(&token) else {
        panic!("no AUTHENTICATE_MESSAGE");
    };
    assert_eq!((&domain[..], &user[..], anonymous), ("LAB", "bench", false));
    assert!(authenticator.session_key().is_some());
    let mic = NegTokenResp::parse(&token).unwrap().mech_list_mic.unwrap();
    assert_eq!((mic.len(), mic[0]), (16, 1));
}

#[test]
fn guests_have_a_name_and_nobody_has_none() {
    let (_, token) = answered(&Credentials::Guest);
    assert!(matches!(identify(&token), Some(SecurityToken::NtlmAuthenticate { user, .. }) if user == "Guest"));
    let (authenticator, token) = answered(&Credentials::Anonymous);
    assert!(matches!(identify(&token), Some(SecurityToken::NtlmAuthenticate { anonymous: true, .. })));
    assert_eq!(authenticator.session_key(), None);
    assert!(NegTokenResp::parse(&token).unwrap().mech_list_mic.is_none());
}

#[test]
fn last_token_may_be_empty_or_without_mic_but_not_with_a_wrong_one() {
    let completed = |mic: &[u8]| [&[0xa1, 27, 0x30, 25, 0xa0, 3, 0x0a, 1, 0, 0xa3, 18, 4, 16], mic].concat();
    assert_eq!(answered(&user()).0.finish(&[]), Ok(()));
    assert_eq!(answered(&user()).0.finish(&[0xa1, 7, 0x30, 5, 0xa0, 3, 0x0a, 1, 0]), Ok(()));
    assert_eq!(answered(&user()).0.finish(&completed(&[1; 16])), Err(AuthError::WrongMic));
}

#[test]
fn refusals_and_other_mechanisms_are_told_apart_from_rubbish() {
    let mut authenticator = Authenticator::new(&user(), "server").unwrap();
    authenticator.first();
    assert_eq!(authenticator.next(&[0xa1, 7, 0x30, 5, 0xa0, 3, 0x0a, 1, 2]), Err(AuthError::Rejected("NTLM")));
    let other_mechanism = [0xa1, 14, 0x30, 12, 0xa0, 3, 0x0a, 1, 1, 0xa1, 5, 6, 3, 0x2a, 3, 4];
    assert_eq!(authenticator.next(&other_mechanism), Err(AuthError::Rejected("NTLM")));
    let nothing_in_it = [0xa1, 7, 0x30, 5, 0xa0, 3, 0x0a, 1, 1];
    assert_eq!(authenticator.next(&nothing_in_it), Err(AuthError::Malformed("mechanism's answer")));
    assert_eq!(authenticator.next(b"HTTP/1.1"), Err(AuthError::Malformed("NegTokenResp")));
}

#[test]
fn nothing_prints_the_password_or_the_key() {
    let (authenticator, _) = answered(&user());
    let text = format!("{authenticator:?} {:?}", user());
    let key = format!("{:?}", authenticator.session_key().unwrap());
    assert!(!text.contains("hunter2") && !text.contains(&key), "{text}");
}

proptest! {
    #[test]
    fn tokens_of_any_length_are_read_back(length in prop_oneof![0..300usize, 65_000..67_000usize]) {
        let token = vec![0x5a; length];
        let response = response_token(&token, Some(&[1; 16]));
        let read = NegTokenResp::parse(&response).unwrap();
        prop_assert_eq!(read.response_token, Some(&token[..]));
        prop_assert_eq!(read.mech_list_mic, Some(&[1; 16][..]));
        prop_assert_eq!(read.neg_state, Some(NegState::AcceptIncomplete));
    }

    #[test]
    fn servers_tokens_never_panic(at in 0..CHALLENGE.len(), byte: u8, cut in 0..CHALLENGE.len(), any: Vec<u8>) {
        let mut token = CHALLENGE.to_vec();
        token[at] = byte;
        for token in [&token[..], &token[..cut], &any] {
            let mut authenticator = Authenticator::new(&user(), "server").unwrap();
            authenticator.first();
            let _ = authenticator.next(token);
            let _ = authenticator.finish(token);
        }
    }
}
