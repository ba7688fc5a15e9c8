//! `--keys` and `--password-file`: commands of encrypted sessions, compared with tshark, and secrets that stay secret.

use crate::common::{Said, bundled, contents, directory, finish, table};
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

/// Returns packet of the request, packet of the response, commands and statuses of each final response that tshark pairs
/// among the packets of a filter.
fn tshark(directory: &Path, capture: &str, options: &[&str], filter: &str) -> Option<BTreeSet<[String; 4]>> {
    let filter = format!("smb2.flags.response == 1 && smb2.response_to && smb2.nt_status != 0x103 && {filter}");
    let fields = ["smb2.response_to", "frame.number", "smb2.cmd", "smb2.nt_status"];
    let tshark = Command::new("tshark")
        .args(["-n", "-r", capture, "-d", "tcp.port==14450,nbss", "-Y", &filter, "-T", "fields"])
        .args(options)
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .current_dir(directory)
        .output();
    let Ok(tshark) = tshark else {
        skip::missing("tshark is not installed");
        return None;
    };
    let rows = String::from_utf8(tshark.stdout).expect("text");
    let row = |line: &str| {
        let mut fields = line.split('\t').map(str::to_owned);
        [(); 4].map(|()| fields.next().unwrap_or_default())
    };
    let rows: BTreeSet<[String; 4]> = rows.lines().map(row).collect();
    assert!(rows.len() > 200, "tshark reads: {}", rows.len());
    Some(rows)
}

/// Responses of the bundled capture that tshark decrypts with the password.
fn decrypted_by_tshark(directory: &Path) -> Option<BTreeSet<[String; 4]>> {
    let password = format!("ntlmssp.nt_password:{PASSWORD}");
    tshark(directory, "smb.pcap", &["-o", &password], "smb2.header.transform.signature")
}

#[test]
fn pairs_and_commands_are_those_of_tshark_with_the_same_password() {
    let directory = encrypted("keys-tshark");
    let Some(expected) = decrypted_by_tshark(&directory) else { return };
    let expected: BTreeSet<[String; 2]> =
        expected.into_iter().map(|[request, response, ..]| [request, response]).collect();
    let said = smbscope(&directory, &["analyze", "-q", "--format", "csv", "--password-file", "password", "smb.pcap"]);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
    let found = pairs(&said.out);
    let ends: BTreeSet<[String; 2]> =
        found.iter().map(|[request, response, ..]| [request.clone(), response.clone()]).collect();
    assert_eq!(ends, expected);
}

#[test]
fn tshark_reads_the_same_commands_and_pairs_in_a_decrypted_slim_copy() {
    let directory = encrypted("keys-slim-tshark");
    let Some(expected) = decrypted_by_tshark(&directory) else { return };
    let said = smbscope(&directory, &["slim", "-q", "--password-file", "password", "-o", "slim.pcapng", "smb.pcap"]);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
    let mark = "smb2.signature == fd:53:4d:42:2c:20:64:65:63:72:79:70:74:65:64:00";
    assert_eq!(tshark(&directory, "slim.pcapng", &[], mark).expect("it is installed"), expected);
}

#[test]
fn the_report_on_a_decrypted_slim_copy_is_that_of_the_original_with_keys() {
    let directory = encrypted("keys-slim");
    let said = smbscope(&directory, &["slim", "--password-file", "password", "-o", "slim.pcapng", "smb.pcap"]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    let read = |capture: &str, options: &[&str]| {
        let said = smbscope(&directory, &[&["analyze", "-q", "--format", "json", capture], options].concat());
        assert_eq!(said.status, Some(0), "{}", said.err);
        let report = said.out.replace(capture, "CAPTURE");
        let mut report: serde_json::Value = serde_json::from_str(&report).expect("a report");
        report["captures"] = serde_json::Value::Null;
        for of_the_file in ["captured_bytes", "snapped_packets", "longest_cut_packet"] {
            report["quality"].as_object_mut().expect("an object").remove(of_the_file);
        }
        report
    };
    assert_eq!(read("slim.pcapng", &[]), read("smb.pcap", &["--password-file", "password"]));
    let said = smbscope(&directory, &["slim", "--password-file", "wrong", "-o", "none.pcapng", "smb.pcap"]);
    assert!(said.err.contains("cannot read wrong: "), "{}", said.err);
    std::fs::write(directory.join("wrong"), "hunter2-the-wrong-one\n").expect("it is written");
    let said = smbscope(&directory, &["slim", "--password-file", "wrong", "-o", "as-is.pcapng", "smb.pcap"]);
    let warnings = said.err.matches("warning: the password does not fit the logon of session 0x").count();
    assert_eq!((said.status, warnings), (Some(0), SESSIONS), "{}", said.err);
}

#[test]
fn an_anonymous_decrypted_slim_copy_has_neither_names_nor_secrets() {
    let directory = encrypted("keys-slim-anonymous");
    let listing =
        smbscope(&directory, &["analyze", "-q", "--format", "csv", "--password-file", "password", "smb.pcap"]);
    let (header, rows) = table(&listing.out);
    let names: BTreeSet<&str> = ["path", "share", "user"]
        .iter()
        .map(|name| header.iter().position(|column| column == name).expect("the column is there"))
        .flat_map(|column| rows.iter().map(move |row| row[column].as_str()))
        .flat_map(|name| name.split(['\\', '.', '/', '@']))
        .filter(|name| name.len() >= 4 && !["ipc$", "srvsvc"].contains(&name.to_lowercase().as_str()))
        .collect();
    assert!(names.len() > 3, "{names:?}");
    let copy = |name: &str, options: &[&str]| {
        let all = [&["slim", "-q", "--password-file", "password", "-o", name, "smb.pcap"], options].concat();
        let said = smbscope(&directory, &all);
        assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
        std::fs::read(directory.join(name)).expect("it was written")
    };
    let (plain, anonymous) = (copy("plain.pcapng", &[]), copy("anonymous.pcapng", &["--anonymize"]));
    let holds = |copy: &[u8], name: &str| {
        let utf16: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        copy.windows(utf16.len()).any(|window| window.eq_ignore_ascii_case(&utf16))
    };
    for name in names {
        assert!(holds(&plain, name) && !holds(&anonymous, name), "{name}");
    }
    assert!(!holds(&plain, PASSWORD) && !plain.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes()));
    let log = std::fs::read(bundled("encrypted/samba_ciphers.log")).expect("a log");
    let log = String::from_utf8_lossy(&log);
    for key in log.lines().filter_map(|line| line.trim().strip_prefix("Session Key")) {
        let bytes = key.split_whitespace().skip(1).take(16).map(|byte| u8::from_str_radix(byte, 16));
        let bytes: Vec<u8> = bytes.collect::<Result<_, _>>().expect("16 bytes in hexadecimal");
        assert!(!plain.windows(bytes.len()).any(|window| window == bytes), "{key}");
    }
    let said = smbscope(&directory, &["slim", "--password-file", "password", "-o", "password", "smb.pcap"]);
    assert_eq!(said.status, Some(1), "a file with secrets was overwritten");
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
