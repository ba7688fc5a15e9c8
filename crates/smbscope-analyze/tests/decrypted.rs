//! With keys, an encrypted capture yields what the same traffic yields in the clear.

use crate::common::{bundled, read_exchanges};
use smbscope_analyze::{Analyzer, AnalyzerOptions, AnalyzerOutcome};
use smbscope_capture::tcp::FlowTable;
use smbscope_crypto::key_ring::KeyRing;
use smbscope_crypto::{Cipher, CipherKey, Keystream};
use smbscope_model::decryption::DecryptedSession;
use smbscope_model::{CUT_NAME_MARK, Command, Exchange, ExchangeOutcome, Quality};
use smbscope_testkit::damage::{Combination, RandomDamage};
use smbscope_testkit::judge::{Judgement, Truth};
use smbscope_testkit::recording::{Kept, Nonces, Recording, TWIN_KEY};
use smbscope_testkit::{Conversation, smb2};
use smbscope_wire::smb2::{COMPRESSION_ID, Smb2Command, TRANSFORM_ID};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// User root with this password made the bundled capture.
pub(crate) const PASSWORD: &[u8] = b"secret1\n";

struct Decrypted {
    exchanges: Vec<Exchange>,
    quality: Quality,
    sessions: Vec<(u64, DecryptedSession)>,
    problems: Vec<String>,
}

fn analyze(recording: &Recording, copy: &[Kept], keys: Option<KeyRing>) -> Decrypted {
    let options = AnalyzerOptions { keys: keys.map(Arc::new), ..AnalyzerOptions::default() };
    let mut exchanges = Vec::new();
    let mut flows = FlowTable::new(Analyzer::new(options, |exchange| exchanges.push(exchange)));
    recording.segments(copy, |_, segment| flows.segment(segment));
    let AnalyzerOutcome { quality, decryption, .. } = flows.finish().finish();
    let sessions = decryption.iter().map(|(id, session)| (id, *session)).collect();
    Decrypted { exchanges, quality, sessions, problems: decryption.problems().collect() }
}

fn read(name: &str) -> Recording {
    Recording::read(&bundled(name)).expect("a bundled capture")
}

/// Sessions of smbclient with SMB 3.0, 3.0.2, and 3.1.1 with each of its four ciphers.
pub(crate) const REAL: &str = "encrypted/samba_ciphers.pcap.zst";
const SESSIONS: usize = 6;

fn real() -> Recording {
    read(REAL)
}

/// The server's log with the keys of these sessions.
fn log() -> KeyRing {
    let mut ring = KeyRing::default();
    let log = std::fs::read(bundled("encrypted/samba_ciphers.log")).expect("a log");
    assert_eq!(ring.add_keys(&log), Ok(SESSIONS));
    ring
}

pub(crate) fn passwords(content: &[u8]) -> KeyRing {
    let mut ring = KeyRing::default();
    ring.add_passwords(content).expect("a password");
    ring
}

fn keys(lines: &str) -> KeyRing {
    let mut ring = KeyRing::default();
    ring.add_keys(lines.as_bytes()).expect("lines of Wireshark");
    ring
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Keys for every session of a twin.
pub(crate) fn twin_keys(plain: &[Exchange]) -> KeyRing {
    let lines: String =
        session_ids(plain).iter().map(|id| format!("{},,{}\n", hex(&id.to_le_bytes()), hex(&TWIN_KEY))).collect();
    keys(&lines)
}

fn session_ids(exchanges: &[Exchange]) -> BTreeSet<u64> {
    exchanges.iter().filter_map(|exchange| exchange.session_id).collect()
}

/// Packet number of the request, command, name and status of each timed command.
fn named(exchanges: &[Exchange]) -> BTreeSet<String> {
    let timed = exchanges.iter().filter(|exchange| exchange.outcome == ExchangeOutcome::Complete);
    let packet = |stamp: Option<smbscope_model::Stamp>| stamp.map(|stamp| stamp.packet.number());
    timed
        .map(|exchange| {
            let Exchange { request, response, command, path, share, status, .. } = exchange;
            format!("{:?} {:?} {command} {share:?} {path:?} {status:?}", packet(request.first), packet(response.last))
        })
        .collect()
}

/// Exchanges of an encrypted capture, comparable with those in the clear.
fn as_if_plain(exchanges: &[Exchange]) -> Vec<String> {
    let mut all: Vec<String> =
        exchanges.iter().map(|exchange| format!("{:?}", Exchange { encrypted: false, ..exchange.clone() })).collect();
    all.sort();
    all
}

pub(crate) fn plain_captures() -> Vec<PathBuf> {
    let all = ["demo-smb311-office.pcap.zst", "demo-slow-server.pcap.zst", "demo-before-scanner.pcap.zst"];
    let mut found: Vec<PathBuf> = all.iter().map(|name| bundled(name)).collect();
    for entry in std::fs::read_dir(bundled("own")).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.to_string_lossy().ends_with(".pcap.zst") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Every field but the flag.
#[test]
fn every_exchange_equals_the_one_in_the_clear() {
    let mut compared = 0;
    for path in plain_captures() {
        let plain = Recording::read(&path).expect("a capture");
        for nonces in Nonces::ALL {
            let Some(twin) = plain.sealed(nonces, 7) else { continue };
            let in_clear = analyze(&plain, &plain.undamaged(), None);
            let decrypted = analyze(&twin, &twin.undamaged(), Some(twin_keys(&in_clear.exchanges)));
            assert_eq!(as_if_plain(&decrypted.exchanges), as_if_plain(&in_clear.exchanges), "{}", twin.name);
            assert_eq!(decrypted.quality.encrypted_frames, 0, "{}", twin.name);
            assert!(decrypted.exchanges.iter().any(|exchange| exchange.encrypted), "{}", twin.name);
            assert_eq!(decrypted.problems, [""; 0]);
            compared += in_clear.exchanges.len();
        }
    }
    assert!(compared > 1_000, "{compared} exchanges");
}

#[test]
fn password_and_log_name_every_command_of_each_dialect_and_cipher() {
    let capture = real();
    let without = analyze(&capture, &capture.undamaged(), None);
    let by_password = analyze(&capture, &capture.undamaged(), Some(passwords(PASSWORD)));
    let by_log = analyze(&capture, &capture.undamaged(), Some(log()));
    assert_eq!(as_if_plain(&by_password.exchanges), as_if_plain(&by_log.exchanges));
    for found in [by_password, by_log] {
        assert_eq!((found.quality.encrypted_frames, found.problems.len()), (0, 0));
        assert_eq!(found.sessions.len(), SESSIONS);
        let decrypted: u64 = found.sessions.iter().map(|(_, session)| session.decrypted).sum();
        assert_eq!(decrypted, without.quality.encrypted_frames);
        assert!(found.sessions.iter().all(|(_, session)| (session.refused, session.without_key) == (0, 0)));
        assert!(found.exchanges.iter().all(|exchange| exchange.outcome == ExchangeOutcome::Complete));
        // 256 final responses to encrypted requests, says tshark with this password.
        assert_eq!(found.exchanges.iter().filter(|exchange| exchange.encrypted).count(), 256);
        let is_write = |exchange: &&Exchange| exchange.command == Command::Smb2(Smb2Command::WRITE);
        let written: Vec<_> = found.exchanges.iter().filter(is_write).collect();
        let of_document = written.iter().filter(|exchange| exchange.path.as_deref() == Some(r"docs\big.bin"));
        assert_eq!(of_document.map(|exchange| exchange.length).collect::<Vec<_>>(), [Some(9_000); SESSIONS]);
    }
}

/// The tickets are encrypted with the service's keys for AES-256 (twice), AES-128 and RC4.
#[test]
fn a_keytab_opens_sessions_that_began_with_kerberos() {
    let capture = read("encrypted/kerberos_tickets.pcap.zst");
    let ring = |name: &str| {
        let mut ring = KeyRing::default();
        ring.add_keys(&std::fs::read(bundled(name)).expect("a bundled file")).expect("keys");
        ring
    };
    let by_log = analyze(&capture, &capture.undamaged(), Some(ring("encrypted/kerberos_tickets.log")));
    let by_keytab = analyze(&capture, &capture.undamaged(), Some(ring("encrypted/kerberos_tickets.keytab")));
    assert_eq!((by_keytab.quality.encrypted_frames, by_keytab.problems.len()), (0, 0));
    assert_eq!(as_if_plain(&by_keytab.exchanges), as_if_plain(&by_log.exchanges));
    assert_eq!(by_keytab.sessions.len(), 4);
    assert!(by_keytab.exchanges.iter().any(|exchange| exchange.path.as_deref() == Some(r"docs\notes.txt")));
    // A keytab of another server.
    let mut other = vec![5, 2];
    let entry = [&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 18, 0, 32][..], &[7; 32]].concat();
    other.extend((entry.len() as u32).to_be_bytes());
    other.extend(entry);
    let mut ring = KeyRing::default();
    assert_eq!(ring.add_keys(&other), Ok(1));
    let found = analyze(&capture, &capture.undamaged(), Some(ring));
    assert_eq!(found.problems.len(), 4);
    assert!(
        found.problems[0].starts_with("no key of the keytab opens the ticket of session 0x"),
        "{:?}",
        found.problems
    );
}

/// The last packets of the first session move to a connection of their own, like another channel: its keys derive from
/// the logon on the first connection.
#[test]
fn another_channel_of_a_session_has_its_keys() {
    const CHANNEL_FROM: usize = 60;
    let capture = real();
    let options = AnalyzerOptions { keys: Some(Arc::new(passwords(PASSWORD))), ..AnalyzerOptions::default() };
    let mut exchanges = Vec::new();
    let mut flows = FlowTable::new(Analyzer::new(options, |exchange| exchanges.push(exchange)));
    let mut port = None;
    capture.segments(&capture.undamaged(), |place, segment| {
        let mut segment = *segment;
        let client = *port.get_or_insert(segment.source.port());
        for end in [&mut segment.source, &mut segment.destination] {
            if place >= CHANNEL_FROM && end.port() == client {
                end.set_port(50_000);
            }
        }
        flows.segment(&segment);
    });
    let AnalyzerOutcome { quality, connections, decryption, .. } = flows.finish().finish();
    assert_eq!((quality.encrypted_frames, decryption.problems().count()), (0, 0));
    assert_eq!(connections.len(), SESSIONS + 1);
    let of_channel = exchanges.iter().filter(|exchange| exchange.endpoints.client.port() == 50_000);
    assert!(of_channel.filter(|exchange| exchange.encrypted && exchange.user.is_some()).count() > 5);
}

/// smbtorture's smb2.session.reauth1 on an encrypted share: the user logs on twice more within the session (MS-SMB2
/// §3.2.5.3.3), whose keys stay. tshark decrypts 24 messages with the password.
#[test]
fn a_session_stays_readable_when_its_user_authenticates_again() {
    let capture = read("encrypted/reauthentication.pcap.zst");
    let found = analyze(&capture, &capture.undamaged(), Some(passwords(b"benchpw\n")));
    assert_eq!((found.quality.encrypted_frames, found.problems.len(), found.sessions.len()), (0, 0, 1));
    assert_eq!((found.sessions[0].1.decrypted, found.sessions[0].1.refused), (24, 0));
    let is_logon = |exchange: &&Exchange| exchange.command == Command::Smb2(Smb2Command::SESSION_SETUP);
    let logons: Vec<bool> = found.exchanges.iter().filter(is_logon).map(|exchange| exchange.encrypted).collect();
    assert_eq!(logons, [false, false, true, true, true, true], "the later logons are encrypted");
    let last = found.exchanges.last().expect("there are exchanges");
    assert!(last.encrypted && last.path.is_some() && last.outcome == ExchangeOutcome::Complete, "{last:?}");
}

/// smbtorture's smb2.session.bind1: a second connection joins a session by SESSION_SETUP with the flag BINDING (MS-SMB2
/// §3.2.5.3.2), and the first one joins the session of the second. tshark decrypts 20 messages with the password.
#[test]
fn sessions_are_readable_on_each_connection_that_they_are_bound_to() {
    let capture = read("encrypted/second_channel.pcap.zst");
    let found = analyze(&capture, &capture.undamaged(), Some(passwords(b"benchpw\n")));
    assert_eq!((found.quality.encrypted_frames, found.problems.len(), found.sessions.len()), (0, 0, 2));
    assert_eq!(found.sessions.iter().map(|(_, session)| session.decrypted).sum::<u64>(), 20);
    let of_session = |id: u64| {
        let encrypted = found.exchanges.iter().filter(move |it| it.encrypted && it.session_id == Some(id));
        encrypted.map(|exchange| exchange.endpoints.client.port()).collect::<BTreeSet<u16>>().len()
    };
    assert_eq!(found.sessions.iter().map(|(id, _)| of_session(*id)).collect::<Vec<_>>(), [2, 2]);
    let queries: Vec<&Exchange> =
        found.exchanges.iter().filter(|exchange| exchange.command == Command::Smb2(Smb2Command::QUERY_INFO)).collect();
    let paths: BTreeSet<&Option<Arc<str>>> = queries.iter().map(|query| &query.path).collect();
    assert_eq!((queries.len(), paths.len()), (2, 1), "one file, opened on one connection and queried on both");
    assert!(queries.iter().all(|query| query.path.is_some()));
}

/// Puts messages into TRANSFORM_HEADERs of session 7, with the key of the twins.
fn sealed(nonce: u8, message: &[u8]) -> Vec<u8> {
    let nonce = [nonce; 16];
    let key = CipherKey::Bits128(TWIN_KEY);
    let mut frame = TRANSFORM_ID.to_vec();
    frame.extend([0; 16]);
    frame.extend(nonce);
    frame.extend((message.len() as u32).to_le_bytes());
    frame.extend([0, 0, 1, 0]);
    frame.extend(7u64.to_le_bytes());
    let start = frame.len();
    frame.extend(message);
    Keystream::new(Cipher::Aes128Ccm, &key).expect("a key of 128 bits").apply(&nonce, 0, &mut frame[start..]);
    frame
}

/// Wraps a message in an unchained COMPRESSION_TRANSFORM_HEADER (MS-SMB2 §2.2.42.1): the header stays plain, the rest is
/// an uncompressed chunk of LZNT1 (MS-XCA §2.5).
fn compressed(message: &[u8]) -> Vec<u8> {
    let (header, body) = message.split_at(64);
    let mut frame = COMPRESSION_ID.to_vec();
    frame.extend((body.len() as u32).to_le_bytes());
    frame.extend([1, 0, 0, 0, 64, 0, 0, 0]);
    frame.extend(header);
    frame.extend((0x3000 | (body.len() - 1) as u16).to_le_bytes());
    frame.extend(body);
    frame
}

/// Keys of [`sealed`] messages.
pub(crate) fn sealed_keys() -> KeyRing {
    keys(&format!("0700000000000000,,{}", hex(&TWIN_KEY)))
}

fn analyze_sealed(conversation: &Conversation) -> Decrypted {
    let options = AnalyzerOptions { keys: Some(Arc::new(sealed_keys())), ..AnalyzerOptions::default() };
    let mut exchanges = Vec::new();
    let mut flows = FlowTable::new(Analyzer::new(options, |exchange| exchanges.push(exchange)));
    for (index, packet) in conversation.packets().iter().enumerate() {
        flows.segment(&packet.segment(index + 1));
    }
    let AnalyzerOutcome { quality, decryption, .. } = flows.finish().finish();
    let sessions = decryption.iter().map(|(id, session)| (id, *session)).collect();
    Decrypted { exchanges, quality, sessions, problems: decryption.problems().collect() }
}

/// A compound, a break and a compressed message in session 7.
pub(crate) fn sealed_kinds() -> Conversation {
    let message = |message: smb2::Message| Vec::from(message.session(7).tree(5));
    let request =
        smb2::compound(&[smb2::create(1, "a.txt").session(7).tree(5), smb2::close(2, 0).session(7).tree(5).related()]);
    let response = smb2::compound(&[smb2::create_response(1, 9).session(7), smb2::close_response(2).session(7)]);
    Conversation::new()
        .client_says(100, sealed(1, &request))
        .server_says(300, sealed(2, &response))
        .server_says(400, sealed(3, &Vec::from(smb2::oplock_break(9))))
        .client_says(500, sealed(4, &compressed(&message(smb2::echo(3)))))
        .server_says(600, sealed(5, &message(smb2::echo_response(3))))
}

#[test]
fn compounds_breaks_and_compression_inside_encryption_are_read() {
    let found = analyze_sealed(&sealed_kinds());
    assert_eq!((found.quality.encrypted_frames, found.quality.compressed_frames), (0, 1));
    let outcomes: Vec<String> =
        found.exchanges.iter().map(|exchange| format!("{} {}", exchange.command, exchange.outcome)).collect();
    assert_eq!(outcomes, ["CREATE complete", "CLOSE complete", "OPLOCK_BREAK server_initiated", "ECHO complete"]);
    assert_eq!(found.sessions[0].1.decrypted, 5);
}

/// The second of two requests is damaged.
pub(crate) fn sealed_damage() -> Conversation {
    let message = |message: smb2::Message| Vec::from(message.session(7));
    let mut damaged = sealed(3, &message(smb2::echo(2)));
    damaged[52] ^= 0x10;
    Conversation::new()
        .client_says(100, sealed(1, &message(smb2::echo(1))))
        .server_says(200, sealed(2, &message(smb2::echo_response(1))))
        .client_says(300, damaged)
        .server_says(400, sealed(4, &message(smb2::echo_response(2))))
}

#[test]
fn a_damaged_message_among_decrypted_ones_is_not_paired_by_its_size() {
    let found = analyze_sealed(&sealed_damage());
    let complete = found.exchanges.iter().filter(|exchange| exchange.outcome == ExchangeOutcome::Complete);
    assert_eq!((complete.count(), found.quality.headers_truncated, found.quality.encrypted_frames), (1, 1, 0));
    assert_eq!((found.sessions[0].1.decrypted, found.sessions[0].1.refused), (3, 1));
}

/// A logon that was cut leaves a password without keys, but decryption keys need no logon.
#[test]
fn keys_of_the_log_decrypt_a_capture_that_begins_late_or_is_cut() {
    let capture = real();
    let whole = named(&analyze(&capture, &capture.undamaged(), Some(log())).exchanges);
    // 288 bytes hold the file id in the response to CREATE, after all headers.
    let cut: Vec<Kept> = capture.undamaged().into_iter().map(|kept| Kept { snap: 288, ..kept }).collect();
    let found = analyze(&capture, &cut, Some(log()));
    assert_eq!(found.quality.encrypted_frames, 0);
    let names = named(&found.exchanges);
    let missing: Vec<&String> = whole.difference(&names).filter(|name| !name.contains("NEGOTIATE")).collect();
    assert_eq!(missing, [""; 0]);
    let late: Vec<Kept> = capture.undamaged().into_iter().skip(40).collect();
    let found = analyze(&capture, &late, Some(log()));
    assert_eq!((found.quality.encrypted_frames, found.problems.len()), (0, 0));
    let by_password = analyze(&capture, &cut, Some(passwords(PASSWORD)));
    assert!(by_password.quality.encrypted_frames > 0);
}

#[test]
fn a_wrong_password_is_said_and_changes_nothing_else() {
    let capture = real();
    let without = analyze(&capture, &capture.undamaged(), None);
    let found = analyze(&capture, &capture.undamaged(), Some(passwords(b"secret2")));
    assert_eq!(as_if_plain(&found.exchanges), as_if_plain(&without.exchanges));
    assert_eq!(found.quality.encrypted_frames, without.quality.encrypted_frames);
    let expected = |id| format!("the password does not fit the logon of session {id:#018x}, which stays encrypted");
    assert_eq!(found.problems, session_ids(&without.exchanges).into_iter().map(expected).collect::<Vec<_>>());
}

#[test]
fn a_wrong_key_is_said_once_per_session() {
    let capture = real();
    let without = analyze(&capture, &capture.undamaged(), None);
    let id = session_ids(&without.exchanges).into_iter().next().expect("an id");
    for line in ["{id},,000102030405060708090a0b0c0d0e0f", "{id},000102030405060708090a0b0c0d0e0f"] {
        let ring = keys(&line.replace("{id}", &hex(&id.to_le_bytes())));
        let found = analyze(&capture, &capture.undamaged(), Some(ring));
        assert_eq!(as_if_plain(&found.exchanges), as_if_plain(&without.exchanges));
        assert_eq!(found.problems, [format!("key for session {id:#018x} does not decrypt")]);
    }
}

#[test]
fn keys_of_other_sessions_change_nothing() {
    let capture = real();
    let without = analyze(&capture, &capture.undamaged(), None);
    let ring = keys("0807060504030201,,000102030405060708090a0b0c0d0e0f");
    let found = analyze(&capture, &capture.undamaged(), Some(ring));
    assert_eq!(as_if_plain(&found.exchanges), as_if_plain(&without.exchanges));
    assert_eq!(found.problems, [""; 0]);
}

/// Returns true if a name is the right one, not captured, or cut.
fn is_part_of(found: Option<&str>, whole: Option<&str>) -> bool {
    let stem = |name: &str| name.trim_end_matches(CUT_NAME_MARK).to_owned();
    match (found, whole) {
        (Some(found), Some(whole)) => whole.starts_with(&stem(found)),
        (found, _) => found.is_none(),
    }
}

#[test]
fn a_short_snap_length_leaves_every_pair_and_makes_no_name_wrong() {
    for path in plain_captures() {
        let plain = Recording::read(&path).expect("a capture");
        let Some(twin) = plain.sealed(Nonces::Counted, 7) else { continue };
        let ring = || twin_keys(&analyze(&plain, &plain.undamaged(), None).exchanges);
        let whole = analyze(&twin, &twin.undamaged(), Some(ring()));
        for snap in [256, 160] {
            let cut: Vec<Kept> = twin.undamaged().into_iter().map(|kept| Kept { snap, ..kept }).collect();
            let found = analyze(&twin, &cut, Some(ring()));
            type NamesByPair = BTreeMap<String, (Option<Arc<str>>, Option<Arc<str>>)>;
            let pairs = |exchanges: &[Exchange]| -> NamesByPair {
                let complete = exchanges.iter().filter(|exchange| exchange.outcome == ExchangeOutcome::Complete);
                let key = |exchange: &Exchange| {
                    let Exchange { flow, request, response, command, message_id, status, .. } = exchange;
                    let (first, last) = (request.first.map(|it| it.packet), response.last.map(|it| it.packet));
                    format!("{flow:?} {first:?} {last:?} {command} {message_id:?} {status:?}")
                };
                complete.map(|exchange| (key(exchange), (exchange.share.clone(), exchange.path.clone()))).collect()
            };
            let (whole, found) = (pairs(&whole.exchanges), pairs(&found.exchanges));
            let kept = found.keys().filter(|pair| whole.contains_key(*pair)).count();
            assert_eq!(kept, found.len(), "{}, {snap} bytes: a pair that is not in the whole capture", twin.name);
            // A packet may hold several messages, and a message several commands: the later ones are cut.
            let enough = if snap == 256 { 80 } else { 1 };
            assert!(kept * 100 >= whole.len() * enough, "{}, {snap} bytes: {kept} of {}", twin.name, whole.len());
            for (pair, (share, path)) in &found {
                let right = &whole[pair];
                assert!(is_part_of(share.as_deref(), right.0.as_deref()), "{}, {pair}: {share:?}", twin.name);
                assert!(is_part_of(path.as_deref(), right.1.as_deref()), "{}, {pair}: {path:?}", twin.name);
            }
        }
    }
}

#[test]
fn losses_make_no_false_pair_and_cost_only_what_is_lost() {
    for name in ["demo-smb311-office.pcap.zst", "own/smbclient_SMB3_11.pcap.zst"] {
        let plain = read(name);
        let twin = plain.sealed(Nonces::Random, 7).expect("a twin");
        let in_clear = analyze(&plain, &plain.undamaged(), None);
        // Both have the same packets, so the readable one is the judge of both.
        let truth = Truth::new(&plain, &in_clear.exchanges);
        let (mut allowed, mut right) = (0, 0);
        for damage in (0..60).map(RandomDamage::of_seed).filter(|it| it.combination != Combination::SnapLength) {
            let copy = damage.apply(&twin);
            let found = analyze(&twin, &copy, Some(twin_keys(&in_clear.exchanges)));
            let Judgement { counts, wrong, .. } = truth.judge(&plain, &copy, &found.exchanges, false);
            assert_eq!(counts.false_pairs, 0, "{name}, {damage}: {}", wrong[0]);
            allowed += counts.allowed;
            right += counts.right;
        }
        assert!(right as f64 >= 0.995 * allowed as f64, "{name}: {right} of {allowed}");
    }
}

#[test]
fn the_unencrypted_part_of_the_real_capture_is_as_before() {
    let capture = real();
    let found = analyze(&capture, &capture.undamaged(), Some(passwords(PASSWORD)));
    let before = read_exchanges(&bundled(REAL), |_| true);
    let logon = |exchanges: &[Exchange]| -> Vec<String> {
        let plain: Vec<Exchange> = exchanges.iter().filter(|exchange| !exchange.encrypted).cloned().collect();
        as_if_plain(&plain)
    };
    assert_eq!(logon(&found.exchanges), logon(&before));
}
