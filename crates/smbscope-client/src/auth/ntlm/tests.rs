//! Compares with MS-NLMP 4.2.4 and with the logon in Microsoft's "SMB 2 and SMB 3 security in Windows 10: the anatomy
//! of signing and cryptographic keys", whose messages are among the vectors of `smbscope-crypto`.

use super::*;
use smbscope_wire::bytes::u32_at;
use smbscope_wire::security::{SecurityToken, identify};

const PUBLISHED_LOGON: &str = include_str!("../../../../smbscope-crypto/src/vectors/keys_3_1_1.txt");

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&String::from_iter(pair), 16).unwrap()).collect()
}

fn array<const N: usize>(hex: &str) -> [u8; N] {
    bytes(hex).try_into().unwrap()
}

/// Returns the NTLM message of a published session setup, which only a mechListMIC may follow.
fn published_message(name: &str, length: usize) -> Vec<u8> {
    let value = PUBLISHED_LOGON.split("\n\n").find_map(|part| part.strip_prefix(name)?.strip_prefix('\n'));
    let session_setup = bytes(value.unwrap());
    let start = session_setup.windows(8).position(|window| window == b"NTLMSSP\0").unwrap();
    session_setup[start..start + length].to_vec()
}

fn published_negotiate() -> Vec<u8> {
    published_message("first_session_setup_request", 40)
}

fn published_challenge() -> Vec<u8> {
    published_message("first_session_setup_response", 148)
}

fn published_authenticate() -> Vec<u8> {
    published_message("second_session_setup_request", 422)
}

/// MechTypeList of the published first token.
fn published_mech_types() -> Vec<u8> {
    bytes("300c060a2b06010401823702020a")
}

mod specification {
    use super::*;

    /// 4.2.4: domain name `Domain` and computer name `Server`.
    const TARGET_INFO: &str = "02000c0044006f006d00610069006e0001000c0053006500720076006500720000000000";

    fn responses() -> ntlm::NtlmResponses {
        let response_key = ntlm::nt_owf_v2("Password", "User", "Domain");
        let server_challenge = array("0123456789abcdef");
        ntlm::respond(&response_key, &server_challenge, &[0xaa; 8], 0, &bytes(TARGET_INFO))
    }

    /// 4.2.4.1.1
    #[test]
    fn response_key_is_that_of_4_2_4() {
        assert_eq!(ntlm::nt_owf_v2("Password", "User", "Domain"), array("0c868a403bfd7a93a3001ef22ef02e3f"));
        assert_eq!(ntlm::nt_owf_v2("Password", "uSER", "Domain"), array("0c868a403bfd7a93a3001ef22ef02e3f"));
    }

    /// 4.2.4.1.2, 4.2.4.1.3, 4.2.4.2.1 and 4.2.4.2.2
    #[test]
    fn responses_are_those_of_4_2_4() {
        let responses = responses();
        let temp = "01010000000000000000000000000000aaaaaaaaaaaaaaaa00000000";
        let nt_response = ["68cd0ab851e51c96aabc927bebef6a1c", temp, TARGET_INFO, "00000000"].concat();
        assert_eq!(responses.nt, bytes(&nt_response));
        assert_eq!(responses.lm, array("86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa"));
        assert_eq!(responses.session_base_key, array("8de40ccadbc14a82f15cb0ad0de95ca3"));
    }

    /// 4.2.4.2.3 and 4.2.4.3, except for the version.
    #[test]
    fn authenticate_message_is_that_of_4_2_4() {
        let responses = responses();
        let encrypted = ntlm::rc4_key(&responses.session_base_key, &[0x55; 16]);
        assert_eq!(encrypted, array("c5dad2544fc9799094ce1ce90bc9d03e"));
        let message = Authenticate {
            flags: 0xe288_8235,
            lm_response: &responses.lm,
            nt_response: &responses.nt,
            domain: "Domain",
            user: "User",
            workstation: "COMPUTER",
            encrypted_session_key: &encrypted,
        };
        let mut encoded = message.encode(None);
        encoded[64..72].copy_from_slice(&bytes("0501280a0000000f"));
        let expected = bytes(
            "4e544c4d5353500003000000180018006c00000054005400840000000c000c00480000000800080054000000100010005c00000010001000
             d8000000358288e20501280a0000000f44006f006d00610069006e00550073006500720043004f004d005000550054004500520086c35097
             ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa68cd0ab851e51c96aabc927bebef6a1c01010000000000000000000000000000aaaaaaaa
             aaaaaaaa0000000002000c0044006f006d00610069006e0001000c005300650072007600650072000000000000000000c5dad2544fc97990
             94ce1ce90bc9d03e",
        );
        assert_eq!(encoded, expected);
    }

    /// The challenge of 4.2.4.3 has no time, so the answer has an LM response and no MIC.
    #[test]
    fn challenge_without_time_is_answered_without_mic() {
        let random = Unpredictable { client_challenge: [0xaa; 8], session_key: [0x55; 16], time: 0 };
        let mut client = NtlmClient::new(NtlmAccount::new("Domain", "User", "Password"), "Server", "COMPUTER", random);
        client.negotiate();
        let challenge = bytes(
            "4e544c4d53535000020000000c000c003800000033828ae20123456789abcdef000000000000000024002400440000000600701700
             00000f53006500720076006500720002000c0044006f006d00610069006e0001000c0053006500720076006500720000000000",
        );
        let message = client.authenticate(&challenge).unwrap();
        let lm_response = u32_at(&message, 16).unwrap() as usize;
        assert_eq!(message[lm_response..][..24], bytes("86c35097ac9cec102554764a57cccc19aaaaaaaaaaaaaaaa"));
        assert_eq!(u32_at(&message, 32), Some(72), "the payload begins where the MIC would be");
        assert_eq!(client.session_key(), Some(&[0x55; 16][..]));
    }
}

mod published_logon {
    use super::*;

    const SESSION_KEY: &str = "270e1ba896585eeb7af3472d3b4c75a7";

    fn context() -> (MessageSigner, MessageSigner) {
        let flags = u32_at(&published_authenticate(), 60).unwrap();
        let signer = |mode| MessageSigner::new(&array(SESSION_KEY), flags, mode);
        (signer(NtlmSender::Client), signer(NtlmSender::Server))
    }

    #[test]
    fn session_key_follows_from_the_password() {
        let response_key = ntlm::nt_owf_v2("Password01!", "administrator", "SUT311");
        assert_eq!(response_key, array("aee3959b44a815f1eb28c9511b4f533b"));
        let authenticate = published_authenticate();
        let nt_response = &authenticate[168..168 + 238];
        let challenge = published_challenge();
        let challenge = Challenge::parse(&challenge).unwrap();
        let target_info = &nt_response[44..nt_response.len() - 4];
        let time = 0x01d0_aecb_adf5_a1a1;
        let responses =
            ntlm::respond(&response_key, &challenge.server_challenge, &array("bc4ad05f223cc90f"), time, target_info);
        assert_eq!(responses.nt, nt_response);
        assert_eq!(responses.session_base_key, array("b4cf22566926b1c069acd80e4d73c814"));
        let encrypted = array("3b9bdff38f5ee8f9663f11a0f4c03a78");
        assert_eq!(ntlm::rc4_key(&responses.session_base_key, &encrypted), array(SESSION_KEY));
    }

    #[test]
    fn mic_covers_the_three_messages() {
        let mut authenticate = published_authenticate();
        let mic: Vec<u8> = authenticate.splice(72..88, [0; 16]).collect();
        let parts = [&published_negotiate()[..], &published_challenge(), &authenticate];
        assert_eq!(ntlm::hmac_md5(&array(SESSION_KEY), &parts)[..], mic);
    }

    #[test]
    fn mech_list_mics_of_both_sides_are_those_on_the_wire() {
        let (mut client, mut server) = context();
        assert_eq!(client.sign(&published_mech_types()), array("0100000063775a9a5fd97f0600000000"));
        assert_eq!(server.sign(&published_mech_types()), array("010000003b453cdc3524164200000000"));
    }

    #[test]
    fn published_challenge_is_answered_with_mic_and_target_name() {
        let session_key = array(SESSION_KEY);
        let random = Unpredictable { client_challenge: array("bc4ad05f223cc90f"), session_key, time: 0 };
        let account = NtlmAccount::new("SUT311", "administrator", "Password01!");
        let mut client = NtlmClient::new(account, "SUT311", "DRIVER311", random);
        let negotiate = client.negotiate();
        let mut message = client.authenticate(&published_challenge()).unwrap();
        let Some(SecurityToken::NtlmAuthenticate { domain, user, workstation, anonymous }) = identify(&message) else {
            panic!("no AUTHENTICATE_MESSAGE");
        };
        assert_eq!([domain, user, workstation], ["SUT311", "administrator", "DRIVER311"].map(str::to_owned));
        assert!(!anonymous);
        let spn = ntlm::utf16("cifs/SUT311");
        assert!(message.windows(spn.len()).any(|window| window == spn));
        let mic: Vec<u8> = message.splice(72..88, [0; 16]).collect();
        assert_eq!(ntlm::hmac_md5(&session_key, &[&negotiate, &published_challenge(), &message])[..], mic);
        assert!(client.verify(&published_mech_types(), &bytes("010000003b453cdc3524164200000000")));
    }
}

#[test]
fn nobody_sends_neither_name_nor_proof_and_has_no_key() {
    let mut client = NtlmClient::new(NtlmAccount::Nobody, "host", "DESK", Unpredictable::now().unwrap());
    client.negotiate();
    let message = client.authenticate(&published_challenge()).unwrap();
    let [domain, user] = [String::new(), String::new()];
    let nobody = SecurityToken::NtlmAuthenticate { domain, user, workstation: "DESK".to_owned(), anonymous: true };
    assert_eq!(identify(&message), Some(nobody));
    assert_eq!(client.session_key(), None);
    assert_eq!(client.sign(b"any"), None);
}

#[test]
fn servers_without_extended_session_security_are_refused() {
    let mut client = NtlmClient::new(NtlmAccount::guest(), "host", "DESK", Unpredictable::now().unwrap());
    client.negotiate();
    let mut challenge = published_challenge();
    challenge[22] &= !0x08;
    assert_eq!(client.authenticate(&challenge), Err(AuthError::Weak("extended session security")));
}

#[test]
fn cut_challenges_are_malformed() {
    let challenge = published_challenge();
    let mut client = NtlmClient::new(NtlmAccount::guest(), "host", "DESK", Unpredictable::now().unwrap());
    client.negotiate();
    for length in 0..challenge.len() {
        let answer = client.authenticate(&challenge[..length]);
        // Cut below the field of the target information, or in the information itself.
        assert!(answer.is_err() || length < 48, "{length} bytes");
    }
}

/// Windows upper-cases character by character, and ß has no single capital.
#[test]
fn user_names_keep_what_has_no_single_capital() {
    assert_eq!(ntlm::nt_owf_v2("p", "straße", ""), ntlm::nt_owf_v2("p", "STRAßE", ""));
    assert_ne!(ntlm::nt_owf_v2("p", "straße", ""), ntlm::nt_owf_v2("p", "STRASSE", ""));
}
