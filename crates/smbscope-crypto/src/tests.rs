use super::*;
use crate::{Cipher, SigningAlgorithm};

const KEYS_3_1_1: &str = include_str!("vectors/keys_3_1_1.txt");
const SEALED_3_0: &str = include_str!("vectors/sealed_3_0.txt");
const SEALED_3_1_1: &str = include_str!("vectors/sealed_3_1_1.txt");
const SEALED_AES256: &str = include_str!("vectors/sealed_aes256.txt");

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&String::from_iter(pair), 16).unwrap()).collect()
}

pub(crate) fn vector(file: &str, name: &str) -> Vec<u8> {
    let value = file.split("\n\n").find_map(|part| part.strip_prefix(name)?.strip_prefix('\n'));
    bytes(value.unwrap_or_else(|| panic!("no vector {name}")))
}

fn key(file: &str, name: &str) -> CipherKey {
    CipherKey::Bits128(vector(file, name).try_into().unwrap())
}

fn counting<const N: usize>() -> [u8; N] {
    std::array::from_fn(|i| u8::try_from(i).unwrap())
}

fn preauth_of_3_1_1() -> PreauthHash {
    let mut hash = PreauthHash::new();
    for name in [
        "negotiate_request",
        "negotiate_response",
        "first_session_setup_request",
        "first_session_setup_response",
        "second_session_setup_request",
    ] {
        hash.update(&vector(KEYS_3_1_1, name));
        assert_eq!(hash.value()[..], vector(KEYS_3_1_1, &format!("hash_after_{name}")), "{name}");
    }
    hash
}

#[test]
fn keys_of_3_1_1_follow_from_session_key_and_messages() {
    let session_key = vector(KEYS_3_1_1, "session_key");
    let keys = SessionKeys::smb3_1_1(&session_key, &preauth_of_3_1_1(), Some(Cipher::Aes128Gcm));
    assert_eq!(keys.signing[..], vector(KEYS_3_1_1, "signing_key"));
    assert_eq!(keys.encryption, key(KEYS_3_1_1, "client_to_server_key"));
    assert_eq!(keys.decryption, key(KEYS_3_1_1, "server_to_client_key"));
}

/// The SMB 3.0 example of the same article, both channels.
#[test]
fn keys_of_3_0_follow_from_session_key() {
    let keys = SessionKeys::smb3_0(&bytes("7CD451825D0450D235424E44BA6E78CC"));
    assert_eq!(keys.signing[..], bytes("0B7E9C5CAC36C0F6EA9AB275298CEDCE"));
    assert_eq!(keys.encryption.as_bytes(), bytes("FAD27796665B313EBB578F388632B4F7"));
    assert_eq!(keys.decryption.as_bytes(), bytes("B0F0427F7CEB416D1D9DCC0CD4F99447"));
    let second_channel = SessionKeys::smb3_0(&bytes("4E01A2B313BCF660CC250BEF021AEDE6"));
    assert_eq!(second_channel.signing[..], bytes("BA1A17DBBFEC349BCA105563D598952F"));
}

/// Expected: impacket 0.13.1, `crypto.KDF_CounterMode` with a length of 256 bits.
#[test]
fn ciphers_of_256_bits_take_the_whole_session_key() {
    let preauth = PreauthHash::from(counting());
    let keys = |key: &[u8]| SessionKeys::smb3_1_1(key, &preauth, Some(Cipher::Aes256Gcm));
    let (short, long) = (keys(&counting::<16>()), keys(&counting::<32>()));
    let key = |hex| CipherKey::Bits256(bytes(hex).try_into().unwrap());
    assert_eq!(short.encryption, key("d09c44a545f554240ddf8ac2777570de0f590e402196d1006261f7448076384d"));
    assert_eq!(short.decryption, key("7a55e2deed408102591fdea4192f54895bd7e4c879d11927493898b42c8a9ccd"));
    assert_eq!(long.encryption, key("e568de865ae188f20138931c5423898fc0d5e94fa094b72d474fc56cf5703db6"));
    assert_eq!(long.decryption, key("53f8b2fb513a90f5231f5ac12ba0a24b9eed8f6e80596136560f1b0003e8d2ae"));
    assert_eq!(short.signing, long.signing);
}

#[test]
fn short_session_keys_are_padded_with_zeros() {
    assert_eq!(session_key_from(&[1, 2])[..], bytes("01020000000000000000000000000000"));
    assert_eq!(session_key_from(&counting::<32>()), counting::<16>());
}

/// The published response contains its signature: AES-CMAC, which 3.1.1 used before signing algorithms were negotiated.
#[test]
fn published_session_setup_response_is_signed_right() {
    let signing_key = vector(KEYS_3_1_1, "signing_key").try_into().unwrap();
    let signer = Signer::new(SigningAlgorithm::AesCmac, &signing_key);
    let response = vector(KEYS_3_1_1, "second_session_setup_response");
    assert!(signer.verify(&response));
    let mut again = response.clone();
    again[48..64].fill(0xff);
    signer.sign(&mut again);
    assert_eq!(again, response);
}

/// Expected: OpenSSL through Python's cryptography 50.0, HMAC-SHA256 and AESGCM with empty plaintext, over the WRITE
/// request of the 3.1.1 encryption example with the key 00 01 02 … 0f.
#[test]
fn signatures_agree_with_openssl() {
    const WRITE: u16 = 9;
    const CANCEL: u16 = 12;
    for (algorithm, command, flags, expected) in [
        (SigningAlgorithm::HmacSha256, WRITE, 8, "25c4fb7154c630ab83b6aee286a22a70"),
        (SigningAlgorithm::AesGmac, WRITE, 8, "65890875b1ee7bf4ff0db5c780e16cf9"),
        (SigningAlgorithm::AesGmac, WRITE, 9, "96f4cd09bab7b0ae585e89a38562e6f5"),
        (SigningAlgorithm::AesGmac, CANCEL, 8, "b43161416b698f54e03611af48e095d5"),
    ] {
        let signer = Signer::new(algorithm, &counting());
        let mut message = vector(SEALED_3_1_1, "request");
        message[12..14].copy_from_slice(&command.to_le_bytes());
        message[16] = flags;
        signer.sign(&mut message);
        assert_eq!(message[48..64], bytes(expected), "{signer:?} {command} {flags}");
        assert!(signer.verify(&message));
    }
}

/// Flipping any bit is detected, also in the signature.
#[test]
fn changed_messages_are_refused() {
    for algorithm in [SigningAlgorithm::HmacSha256, SigningAlgorithm::AesCmac, SigningAlgorithm::AesGmac] {
        let signer = Signer::new(algorithm, &counting());
        let mut message = vector(SEALED_3_1_1, "request");
        signer.sign(&mut message);
        for at in 0..message.len() {
            message[at] ^= 0x10;
            assert!(!signer.verify(&message), "{signer:?} byte {at}");
            message[at] ^= 0x10;
        }
        for length in 0..message.len() {
            assert!(!signer.verify(&message[..length]), "{signer:?} of {length} bytes");
        }
        assert!(signer.verify(&message));
    }
}

fn published_sealing(file: &str, cipher: Cipher, nonce_length: usize, session_id: u64) {
    let (encryption, decryption) = (key(file, "client_to_server_key"), key(file, "server_to_client_key"));
    let sealer = Sealer::new(cipher, &encryption, &decryption).unwrap();

    let expected = vector(file, "sealed_request");
    let mut nonce = [0; 16];
    // Windows fills the whole field, but the cipher uses only its start.
    nonce.copy_from_slice(&expected[20..36]);
    assert!(nonce[..nonce_length].iter().any(|&byte| byte != 0));
    let mut sealed = b"before".to_vec();
    sealer.seal_with(nonce, session_id, &vector(file, "request"), &mut sealed);
    assert_eq!(sealed, [b"before", &expected[..]].concat());

    let mut frame = vector(file, "sealed_response");
    assert_eq!(sealer.open(&mut frame).unwrap(), vector(file, "response"));
}

#[test]
fn published_sealing_of_3_0_is_reproduced() {
    let keys = SessionKeys::smb3_0(&vector(SEALED_3_0, "session_key"));
    assert_eq!(keys.encryption, key(SEALED_3_0, "client_to_server_key"));
    assert_eq!(keys.decryption, key(SEALED_3_0, "server_to_client_key"));
    published_sealing(SEALED_3_0, Cipher::Aes128Ccm, 11, 0x0008_e400_1400_0011);
}

#[test]
fn published_sealing_of_3_1_1_is_reproduced() {
    published_sealing(SEALED_3_1_1, Cipher::Aes128Gcm, 12, 0x1000_0000_0025);
}

/// Expected: OpenSSL, as described in the file.
#[test]
fn sealing_with_256_bits_agrees_with_openssl() {
    let key = CipherKey::Bits256(counting());
    for (cipher, name, length) in [(Cipher::Aes256Ccm, "aes_256_ccm", 11), (Cipher::Aes256Gcm, "aes_256_gcm", 12)] {
        let sealer = Sealer::new(cipher, &key, &key).unwrap();
        let mut nonce = [0; 16];
        (0xa0..).zip(&mut nonce[..length]).for_each(|(value, byte)| *byte = value);
        let mut sealed = Vec::new();
        sealer.seal_with(nonce, 0x1000_0000_0025, &vector(SEALED_3_1_1, "request"), &mut sealed);
        assert_eq!(sealed, vector(SEALED_AES256, name), "{sealer:?}");
    }
}

#[test]
fn nonces_never_come_again_and_sealed_messages_open_again() {
    for cipher in [Cipher::Aes128Ccm, Cipher::Aes128Gcm, Cipher::Aes256Ccm, Cipher::Aes256Gcm] {
        let key = match cipher {
            Cipher::Aes128Ccm | Cipher::Aes128Gcm => CipherKey::Bits128(counting()),
            Cipher::Aes256Ccm | Cipher::Aes256Gcm => CipherKey::Bits256(counting()),
        };
        let mut sealer = Sealer::new(cipher, &key, &key).unwrap();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        sealer.seal(7, b"message", &mut first);
        sealer.seal(7, b"message", &mut second);
        assert_ne!(first[20..36], second[20..36], "{sealer:?}");
        assert_eq!(sealer.open(&mut first).unwrap(), b"message", "{sealer:?}");
        assert_eq!(sealer.open(&mut second).unwrap(), b"message", "{sealer:?}");
    }
}

#[test]
fn changed_or_cut_frames_do_not_open() {
    let key = CipherKey::Bits128(counting());
    let mut sealer = Sealer::new(Cipher::Aes128Gcm, &key, &key).unwrap();
    let mut sealed = Vec::new();
    sealer.seal(7, b"message", &mut sealed);
    // GCM doesn't use the last four bytes of the nonce field, but they are authenticated as well.
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        assert!(sealer.open(&mut changed).is_none(), "byte {at}");
        assert!(sealer.open(&mut sealed[..at].to_vec()).is_none(), "{at} bytes");
    }
}

#[test]
fn keys_of_another_length_make_no_sealer() {
    let (short, long) = (CipherKey::Bits128(counting()), CipherKey::Bits256(counting()));
    assert!(Sealer::new(Cipher::Aes256Gcm, &short, &short).is_none());
    assert!(Sealer::new(Cipher::Aes128Ccm, &long, &long).is_none());
}

#[test]
fn nothing_keyed_prints_its_key() {
    let key = CipherKey::Bits128([0xab; 16]);
    let keys = SessionKeys { signing: [0xab; 16], encryption: key.clone(), decryption: key.clone() };
    let signer = Signer::new(SigningAlgorithm::HmacSha256, &[0xab; 16]);
    let sealer = Sealer::new(Cipher::Aes128Gcm, &key, &key);
    let text = format!("{key:?} {keys:?} {signer:?} {sealer:?} {:?}", Smb1Signer::new(&[0xab; 16]));
    assert!(!text.contains("171") && !text.to_lowercase().contains("abab"), "{text}");
}

/// Expected: impacket 0.13.1, `SMB.signSMB` of an ECHO with sequence number 2 and the key 00 01 02 … 0f.
#[test]
fn smb1_signature_agrees_with_impacket() {
    let mut signer = Smb1Signer::new(&counting::<16>());
    let mut echo = bytes("ff534d422b000000000007c800000000000000000000000001004d0064000700010100050068656c6c6f");
    let response = signer.sign(&mut echo);
    assert_eq!(echo[14..22], bytes("c681741d3d0e9f8a"));
    assert_eq!(response, 3);
}

/// MS-CIFS 3.2.4.1.4 and 3.2.4.27: a request and its response take two numbers, NT_CANCEL one.
#[test]
fn smb1_sequence_numbers_count_responses_that_come() {
    let mut signer = Smb1Signer::new(&counting::<16>());
    let mut message = [0; 35];
    assert_eq!(signer.sign(&mut message), 3);
    signer.sign_without_response(&mut message);
    assert!(signer.verify(&message, 4));
    assert_eq!(signer.sign(&mut message), 6);
    assert!(signer.verify(&message, 5));
    assert!(!signer.verify(&message, 6));
    message[34] ^= 1;
    assert!(!signer.verify(&message, 5));
    assert!(!signer.verify(&message[..21], 5));
}
