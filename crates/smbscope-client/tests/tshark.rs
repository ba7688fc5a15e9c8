//! Wireshark's decryption as a second implementation of key derivation and encryption: it derives the keys from the
//! messages of a session setup and its session key.

use smbscope_client::Cipher;
use smbscope_crypto::{PreauthHash, Sealer, SessionKeys};
use smbscope_testkit::{Conversation, pcap};
use std::io::Write;
use std::process::Command;

/// Messages of a Windows client and server, published by Microsoft as described in the file.
const SESSION_SETUP: &str = include_str!("../../smbscope-crypto/src/vectors/keys_3_1_1.txt");
const SEALED: &str = include_str!("../../smbscope-crypto/src/vectors/sealed_3_1_1.txt");
const SESSION_ID: u64 = 0x1000_0000_0019;

fn vector(file: &str, name: &str) -> Vec<u8> {
    let value = file.split("\n\n").find_map(|part| part.strip_prefix(name)?.strip_prefix('\n')).unwrap();
    let digits: Vec<char> = value.chars().filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&String::from_iter(pair), 16).unwrap()).collect()
}

/// Builds a capture file with a session setup for this dialect and cipher, and an encrypted WRITE.
fn capture(dialect: u16, cipher: Cipher, cipher_id: u16) -> Vec<u8> {
    let mut negotiate_response = vector(SESSION_SETUP, "negotiate_response");
    negotiate_response[68..70].copy_from_slice(&dialect.to_le_bytes());
    let end = negotiate_response.len();
    negotiate_response[end - 2..].copy_from_slice(&cipher_id.to_le_bytes());
    let messages = [
        vector(SESSION_SETUP, "negotiate_request"),
        negotiate_response,
        vector(SESSION_SETUP, "first_session_setup_request"),
        vector(SESSION_SETUP, "first_session_setup_response"),
        vector(SESSION_SETUP, "second_session_setup_request"),
    ];
    let mut preauth = PreauthHash::new();
    messages.iter().for_each(|message| preauth.update(message));
    let session_key = vector(SESSION_SETUP, "session_key");
    let keys = match dialect {
        0x0311 => SessionKeys::smb3_1_1(&session_key, &preauth, Some(cipher)),
        _ => SessionKeys::smb3_0(&session_key),
    };

    let mut write = vector(SEALED, "request");
    write[40..48].copy_from_slice(&SESSION_ID.to_le_bytes());
    let mut sealed = Vec::new();
    Sealer::new(cipher, &keys.encryption, &keys.decryption).unwrap().seal(SESSION_ID, &write, &mut sealed);

    let mut conversation = Conversation::new();
    let last = vector(SESSION_SETUP, "second_session_setup_response");
    for (turn, message) in messages.into_iter().chain([last, sealed]).enumerate() {
        let at = 1000 * (1 + turn as i64);
        conversation =
            if turn % 2 == 0 { conversation.client_says(at, message) } else { conversation.server_says(at, message) };
    }
    pcap::micros(&conversation.packets())
}

#[test]
fn wireshark_opens_what_we_seal() {
    if Command::new("tshark").arg("--version").output().is_err() {
        smbscope_testkit::skip::unable("tshark is not installed");
        return;
    }
    let session_key: String = vector(SESSION_SETUP, "session_key").iter().map(|byte| format!("{byte:02x}")).collect();
    for (dialect, cipher, cipher_id) in [
        (0x0300, Cipher::Aes128Ccm, 1),
        (0x0311, Cipher::Aes128Ccm, 1),
        (0x0311, Cipher::Aes128Gcm, 2),
        (0x0311, Cipher::Aes256Ccm, 3),
        (0x0311, Cipher::Aes256Gcm, 4),
    ] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&capture(dialect, cipher, cipher_id)).unwrap();
        let session_id: String = SESSION_ID.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let output = Command::new("tshark")
            .arg("-r")
            .arg(file.path())
            .arg("-o")
            .arg(format!("uat:smb2_seskey_list:{session_id},{session_key},\"\",\"\""))
            .args(["-T", "fields", "-e", "smb2.cmd", "-e", "smb2.write_length"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().rfind(|line| !line.trim().is_empty());
        assert_eq!(last, Some("9\t23"), "{dialect:#x} {cipher:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    }
}
