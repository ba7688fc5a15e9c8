//! `--keys` and `--password-file`: commands of encrypted sessions, compared with tshark, and secrets that stay secret.

use crate::common::{Said, contents, directory, finish, table};
use smbscope_testkit::skip;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Of user root, who made the bundled capture.
const PASSWORD: &str = "secret1";
const SESSIONS: usize = 6;

fn smbscope(directory: &Path, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(arguments).current_dir(directory).env_remove("SMBSCOPE_PASSWORD").stdin(Stdio::null());
    finish(command)
}

/// Returns a directory with the encrypted capture `smb.pcap`, and the password in `password`.
fn encrypted(name: &str) -> PathBuf {
    let directory = directory(name);
    let capture = contents("encrypted/samba_ciphers.pcap.zst");
    std::fs::write(directory.join("smb.pcap"), capture).expect("it is written");
    std::fs::write(directory.join("password"), format!("{PASSWORD}\n")).expect("it is written");
    directory
}

/// Packet of the first and last byte of each half, command and status of each encrypted exchange.
fn pairs(out: &str) -> BTreeSet<[String; 4]> {
    let (header, rows) = table(out);
    let at = |name: &str| header.iter().position(|column| column == name).expect("the column is there");
    let columns = ["request_last_packet", "response_last_packet", "command", "encrypted"].map(at);
    let rows = rows.iter().map(|row| columns.map(|column| row[column].clone()));
    rows.filter(|row| row[3] == "true").collect()
}

#[test]
fn pairs_and_commands_are_those_of_tshark_with_the_same_password() {
    let directory = encrypted("keys-tshark");
    let preferences = format!("ntlmssp.nt_password:{PASSWORD}");
    let tshark = Command::new("tshark")
        .args(["-n", "-r", "smb.pcap", "-d", "tcp.port==14450,nbss"])
        .current_dir(&directory)
        .args([
            "-o",
            &preferences,
            "-Y",
            "smb2.flags.response == 1 && smb2.response_to && smb2.header.transform.signature && smb2.nt_status != 0x103",
        ])
        .args(["-T", "fields", "-e", "smb2.response_to", "-e", "frame.number", "-e", "smb2.cmd"])
        .output();
    let Ok(tshark) = tshark else { return skip::missing("tshark is not installed") };
    let expected = String::from_utf8(tshark.stdout).expect("text");
    let expected: BTreeSet<[String; 2]> = expected
        .lines()
        .map(|line| {
            let mut fields = line.split('\t');
            [(); 2].map(|()| fields.next().expect("a packet number").to_owned())
        })
        .collect();
    assert!(expected.len() > 200, "tshark decrypts: {}", expected.len());
    let said = smbscope(&directory, &["analyze", "-q", "--format", "csv", "--password-file", "password", "smb.pcap"]);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
    let found = pairs(&said.out);
    let ends: BTreeSet<[String; 2]> =
        found.iter().map(|[request, response, ..]| [request.clone(), response.clone()]).collect();
    assert_eq!(ends, expected);
}

#[test]
fn a_wrong_password_and_a_wrong_key_are_said_and_the_report_stays() {
    let directory = encrypted("keys-wrong");
    std::fs::write(directory.join("wrong"), "hunter2-the-wrong-one\n").expect("it is written");
    let read = |options: &[&str]| {
        let said = smbscope(&directory, &[&["analyze", "-q", "--format", "json", "smb.pcap"], options].concat());
        assert_eq!(said.status, Some(0), "{}", said.err);
        serde_json::from_str::<serde_json::Value>(&said.out).expect("a report")
    };
    let (without, mut with) = (read(&[]), read(&["--password-file", "wrong"]));
    let warnings = with["warnings"].as_array_mut().expect("a list");
    let said = "the password does not fit the logon of session 0x";
    let sentences = std::mem::take(warnings);
    assert_eq!(sentences.len(), SESSIONS);
    assert!(sentences.iter().all(|sentence| sentence.as_str().is_some_and(|text| text.starts_with(said))));
    assert_eq!(with, without, "the rest of the report");
    let without = smbscope(&directory, &["analyze", "-q", "smb.pcap"]);
    assert!(without.out.contains("--keys"), "without keys, the answer says how to get at the commands");
}

#[test]
fn files_that_hold_no_keys_are_refused_without_their_content() {
    let directory = encrypted("keys-refused");
    for (content, expected) in [
        ("hunter2", "keys: unknown format; expected lines of Wireshark's"),
        ("0100000000000000,hunter2", "keys: line 1: expected a session key of 1 to 64 bytes"),
        ("Session Id 01 00 00 00 00 00 00 00", "keys: it contains no key of a session"),
    ] {
        std::fs::write(directory.join("keys"), content).expect("it is written");
        let said = smbscope(&directory, &["analyze", "-q", "--keys", "keys", "smb.pcap"]);
        assert_eq!(said.status, Some(1));
        assert!(said.err.contains(expected) && !said.err.contains("hunter2"), "{}", said.err);
    }
    let said = smbscope(&directory, &["analyze", "-q", "--keys", "missing", "smb.pcap"]);
    assert!(said.err.contains("cannot read missing: "), "{}", said.err);
}

#[test]
fn secrets_reach_no_output() {
    let directory = encrypted("keys-secret");
    let read = ["--password-file", "password", "smb.pcap", "-q"];
    for format in ["text", "json", "html", "csv", "markdown"] {
        let said = smbscope(&directory, &[&["analyze", "--format", format], &read[..]].concat());
        assert_eq!(said.status, Some(0), "{}", said.err);
        assert!(!said.out.contains(PASSWORD) && !said.err.contains(PASSWORD), "{format}");
    }
    let said = smbscope(&directory, &[&["record"], &read[..]].concat());
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert!(said.out.contains("big.bin") && !said.out.contains(PASSWORD), "recorded from decrypted commands");
}

#[test]
fn the_files_with_keys_are_never_written() {
    let directory = encrypted("keys-kept");
    let said = smbscope(
        &directory,
        &["analyze", "-q", "--password-file", "password", "smb.pcap", "-o", "password", "--format", "text"],
    );
    assert_eq!(said.status, Some(1));
    assert_eq!(std::fs::read_to_string(directory.join("password")).expect("it is there"), format!("{PASSWORD}\n"));
}
