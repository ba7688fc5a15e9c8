//! Slim copies of captures: the analysis finds the same in them, and nothing of the removed data is left.

use crate::common;
use crate::decrypted;
use memchr::memmem;
use proptest::prelude::*;
use smbscope_analyze::pipeline::{self, Sharding, Threading};
use smbscope_analyze::pseudonym::PseudonymKey;
use smbscope_analyze::slim::Anonymize;
use smbscope_analyze::{AnalyzerOptions, slim};
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_crypto::key_ring::KeyRing;
use smbscope_model::Exchange;
use smbscope_testkit::damage::{RandomDamage, plans};
use smbscope_testkit::recording::{Kept, Nonces, Recording};
use smbscope_testkit::script::scripts;
use smbscope_testkit::{Conversation, pcap, smb2};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All findings of an analysis, except for properties of the file.
#[derive(Debug, PartialEq)]
struct Found {
    exchanges: Vec<String>,
    connections: Vec<String>,
    rest: String,
}

fn found(path: &Path) -> Found {
    found_in(CaptureSet::open(&[CaptureInput::File(path.to_owned())]).expect("it is a capture"), None)
}

fn found_in(mut set: CaptureSet, keys: Option<Arc<KeyRing>>) -> Found {
    let mut exchanges = Vec::new();
    let mut sink = |exchange: &Exchange| exchanges.push(format!("{exchange:?}"));
    let options = AnalyzerOptions { details: true, keys, ..AnalyzerOptions::default() };
    let sinks = std::slice::from_mut(&mut sink);
    let analysis =
        pipeline::run(&mut set, &options, Sharding::None, Threading::Inline, sinks, |_| ()).expect("it runs");
    let mut quality = analysis.quality.clone();
    (quality.captured_bytes, quality.snapped_packets, quality.longest_cut_packet) = (0, 0, 0);
    // Defects of the file are not copied.
    (quality.truncated_captures, quality.unreadable_records) = (0, 0);
    let connections = analysis.connections.iter().map(|connection| format!("{connection:?}")).collect();
    let rest = format!(
        "{quality:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        analysis.busiest_ports,
        analysis.skipped,
        analysis.clock_steps,
        analysis.foreign_replies,
        analysis.seen_twice,
        analysis.first,
        analysis.last
    );
    Found { exchanges, connections, rest }
}

fn slimmed(path: &Path, anonymize: Option<Anonymize>) -> Vec<u8> {
    slim_of(CaptureSet::open(&[CaptureInput::File(path.to_owned())]).expect("it is a capture"), anonymize)
}

fn slim_of(set: CaptureSet, anonymize: Option<Anonymize>) -> Vec<u8> {
    slim_with(set, slim::SlimOptions { anonymize, ..slim::SlimOptions::default() })
}

fn slim_with(mut set: CaptureSet, options: slim::SlimOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    slim::slim(&mut set, &options, &mut bytes, &mut |_| ()).expect("memory takes all");
    bytes
}

/// The bundled captures, or those in the folder `SLIM_CAPTURES`.
fn all_captures() -> Vec<PathBuf> {
    let bundled = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let folder = std::env::var_os("SLIM_CAPTURES").map_or_else(bundled, PathBuf::from);
    let mut paths = Vec::new();
    captures(&folder, &mut paths);
    // Captures in `known` are already slim copies, full of common words.
    paths.retain(|path| !path.components().any(|part| part.as_os_str() == "known"));
    paths.retain(|path| CaptureSet::open(&[CaptureInput::File(path.clone())]).is_ok());
    assert!(!paths.is_empty());
    paths
}

fn captures(folder: &Path, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it can be read").path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            captures(&path, into);
        } else if name.contains(".pcap") && !name.contains(".tsv") && !name.contains(".txt") {
            into.push(path);
        }
    }
}

#[test]
fn the_analysis_of_every_bundled_capture_is_that_of_its_slim_copy() {
    let paths = all_captures();
    let place = tempfile::tempdir().expect("a folder");
    let mut differing = Vec::new();
    for path in &paths {
        let copy = place.path().join("slim.pcapng");
        let bytes = slimmed(path, None);
        fs::write(&copy, &bytes).expect("it is written");
        let (before, after) = (found(path), found(&copy));
        if before != after {
            let exchange = before.exchanges.iter().zip(&after.exchanges).find(|(one, other)| one != other);
            let connection = before.connections.iter().zip(&after.connections).find(|(one, other)| one != other);
            differing.push(format!(
                "{}: {} {} exchanges\n{exchange:#?}\n{connection:#?}\n{}\n{}\n",
                path.display(),
                before.exchanges.len(),
                after.exchanges.len(),
                before.rest,
                after.rest
            ));
        }
        let again = slimmed(&copy, None);
        if again != bytes {
            let place = again.iter().zip(&bytes).position(|(one, other)| one != other);
            let lengths = (bytes.len(), again.len());
            differing
                .push(format!("{}: its slim copy, slimmed, differs at {place:?} of {lengths:?}\n", path.display()));
        }
    }
    assert!(differing.is_empty(), "{} of {}\n{}", differing.len(), paths.len(), differing.concat());
}

/// All findings except names and addresses, and the numbers of these.
#[derive(Debug, PartialEq)]
struct Nameless {
    exchanges: Vec<String>,
    paths: usize,
    shares: usize,
    users: usize,
    ends: usize,
}

#[derive(Default)]
struct Told {
    names: BTreeSet<String>,
    addresses: BTreeSet<IpAddr>,
}

fn nameless(path: &Path) -> (Nameless, Told) {
    let mut set = CaptureSet::open(&[CaptureInput::File(path.to_owned())]).expect("it is a capture");
    let mut exchanges = Vec::new();
    let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut told = Told::default();
    let mut sink = |exchange: &Exchange| {
        // Names are case-insensitive, for a server and in an anonymous copy.
        let mut see = |kind, name: &Option<std::sync::Arc<str>>| {
            seen.entry(kind).or_default().extend(name.as_ref().map(|name| name.to_lowercase()));
        };
        see("path", &exchange.path);
        see("share", &exchange.share);
        see("user", &exchange.user);
        for end in [exchange.endpoints.client, exchange.endpoints.server] {
            seen.entry("end").or_default().insert(end.to_string());
            told.addresses.insert(end.ip());
        }
        for name in [&exchange.path, &exchange.share, &exchange.user].into_iter().flatten() {
            told.names.extend(name.split(['\\', '/', '@']).map(str::to_owned));
        }
        let times = [exchange.request, exchange.response];
        exchanges.push(format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {times:?} {:?} {:?} {:?} {:?} {:?}",
            exchange.command,
            exchange.subcommand,
            exchange.message_id,
            exchange.session_id,
            exchange.tree_id,
            exchange.file_id,
            exchange.status,
            exchange.offset,
            exchange.length,
            exchange.outcome,
            exchange.dialect,
            exchange.caching
        ));
    };
    let sinks = std::slice::from_mut(&mut sink);
    pipeline::run(&mut set, &AnalyzerOptions::default(), Sharding::None, Threading::Inline, sinks, |_| ())
        .expect("it runs");
    let count = |kind| seen.get(kind).map_or(0, BTreeSet::len);
    let (paths, shares, users, ends) = (count("path"), count("share"), count("user"), count("end"));
    (Nameless { exchanges, paths, shares, users, ends }, told)
}

#[test]
fn an_anonymous_copy_tells_the_same_without_any_name_or_address() {
    let place = tempfile::tempdir().expect("a folder");
    let copy = place.path().join("slim.pcapng");
    let mut wrong = Vec::new();
    for path in all_captures() {
        let key = PseudonymKey::of_bytes(path.to_string_lossy().as_bytes());
        let bytes = slimmed(&path, Some(Anonymize { key, depth: true, extensions: true }));
        fs::write(&copy, &bytes).expect("it is written");
        let (before, told) = nameless(&path);
        let (after, _) = nameless(&copy);
        if before != after {
            let exchange = before.exchanges.iter().zip(&after.exchanges).find(|(one, other)| one != other);
            let counts = |of: &Nameless| (of.exchanges.len(), of.paths, of.shares, of.users, of.ends);
            wrong.push(format!("{}: {:?} {:?} {exchange:#?}\n", path.display(), counts(&before), counts(&after)));
        }
        wrong.extend(leaks(&told, &bytes).into_iter().map(|leak| format!("{}: {leak} is in it\n", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

/// A copy without its first block, which contains words.
fn behind_comment(copy: &[u8]) -> &[u8] {
    let length = copy[4..8].try_into().map_or(0, u32::from_le_bytes);
    &copy[length as usize..]
}

/// Returns the names and addresses of the original that the copy contains.
fn leaks(told: &Told, copy: &[u8]) -> Vec<String> {
    // Names that the documentation lists as preserved, and names too short to distinguish from other bytes.
    const KEPT: [&str; 15] = [
        "ipc$",
        "pipe",
        "mailslot",
        "srvsvc",
        "wkssvc",
        "lsarpc",
        "samr",
        "netlogon",
        "spoolss",
        "desktop.ini",
        "lanman",
        "thumbs.db",
        "atsvc",
        "mdssvc",
        "autorun.inf",
    ];
    let copy = behind_comment(copy);
    let lower = copy.to_ascii_lowercase();
    let holds = |bytes: &[u8]| memmem::find(&lower, bytes).is_some();
    let stem = |name: &str| name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_lowercase();
    let is_secret = |name: &&String| name.len() >= 5 && !KEPT.contains(&name.to_lowercase().as_str());
    let names: BTreeSet<String> = told.names.iter().filter(is_secret).map(|name| stem(name)).collect();
    let mut found = Vec::new();
    for name in names.iter().filter(|name| name.len() >= 4 && name.is_ascii()) {
        let utf16: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        if holds(&utf16) || holds(name.as_bytes()) {
            found.push(format!("{name:?}"));
        }
    }
    for address in told.addresses.iter().filter(|address| !address.is_loopback()) {
        let is_there = match address {
            IpAddr::V4(address) => memmem::find(copy, &address.octets()).is_some(),
            IpAddr::V6(address) => memmem::find(copy, &address.octets()).is_some(),
        };
        if is_there {
            found.push(address.to_string());
        }
    }
    found
}

#[test]
fn no_payload_is_left() {
    let mut wrong = Vec::new();
    for path in all_captures() {
        let copy = slimmed(&path, None);
        let left: HashSet<&[u8]> = behind_comment(&copy).windows(8).collect();
        let mut set = CaptureSet::open(&[CaptureInput::File(path.clone())]).expect("it is a capture");
        while let Some(packet) = set.next_packet().expect("it goes on") {
            // The names in a Kerberos ticket are preserved, however deep in the packet they are.
            if packet.data.windows(4).any(|word| word == b"cifs") {
                continue;
            }
            // Large packets have content after the initial headers, but names and ids may repeat.
            let content = packet.data.get(400..).filter(|content| content.len() >= 600).unwrap_or_default();
            for window in content.windows(8).step_by(61) {
                let distinct: BTreeSet<&u8> = window.iter().collect();
                // The bytes of a preserved file time, which may also occur in a listing, end with a one.
                if distinct.len() >= 7 && window.iter().all(|byte| *byte > 1) && left.contains(window) {
                    wrong.push(format!(
                        "{}: {window:02x?} of packet {}\n",
                        path.display(),
                        packet.stamp.packet.number()
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.concat());
}

/// File content that occurs in no header.
const CONTENT: &[u8] = b"Salary of A. Miller: 4711 ";

/// A logon, and a read and a write of a file whose content is [`CONTENT`].
fn payroll() -> Vec<u8> {
    let content: Vec<u8> = CONTENT.iter().copied().cycle().take(8000).collect();
    let session = 7;
    let conversation = Conversation::new()
        .client_says(0, smb2::negotiate(0, &[0x0302]))
        .server_says(100, smb2::negotiate_response(0, 0x0302))
        .client_says(200, smb2::session_setup(1, "CORP", "miller"))
        .server_says(300, smb2::session_setup_response(1, session))
        .client_says(400, smb2::tree_connect(2, r"\\files\payroll").session(session))
        .server_says(500, smb2::tree_connect_response(2, 5).session(session))
        .client_says(600, smb2::create(3, r"2026\november.xlsx").session(session).tree(5))
        .server_says(700, smb2::create_response(3, 9).session(session).tree(5))
        .client_says(800, smb2::read(4, 9, 0, 8000).session(session).tree(5))
        .server_says(900, smb2::read_response(4, &content).session(session).tree(5))
        .client_says(1000, smb2::write(5, 9, 0, &content).session(session).tree(5))
        .server_says(1100, smb2::write_response(5, 8000).session(session).tree(5));
    pcap::nanos(&conversation.packets())
}

/// Command, user, share and path of each exchange.
fn told(capture: &[u8]) -> Vec<[String; 4]> {
    let mut told = Vec::new();
    let mut sink = |exchange: &Exchange| {
        let text = |name: &Option<std::sync::Arc<str>>| name.as_deref().unwrap_or_default().to_owned();
        told.push([exchange.command.to_string(), text(&exchange.user), text(&exchange.share), text(&exchange.path)]);
    };
    let sinks = std::slice::from_mut(&mut sink);
    let options = AnalyzerOptions::default();
    pipeline::run(&mut opened(capture), &options, Sharding::None, Threading::Inline, sinks, |_| ()).expect("it runs");
    told
}

fn holds(bytes: &[u8], text: &[u8]) -> bool {
    memmem::find(bytes, text).is_some()
}

#[test]
fn a_slim_copy_has_the_names_and_an_anonymous_one_has_others_as_long() {
    let capture = payroll();
    assert!(holds(&capture, CONTENT));
    let copy = slim_of(opened(&capture), None);
    assert!(!holds(&copy, &[7; 24]), "the answer to the challenge, by which passwords are guessed");
    assert!(!holds(&copy, b"Salary") && copy.len() < capture.len() / 5, "{} of {}", copy.len(), capture.len());
    assert_eq!(told(&copy), told(&capture));
    let [_, user, share, path] = told(&copy).pop().expect("there are exchanges");
    assert_eq!((share.as_str(), path.as_str()), ("payroll", r"2026\november.xlsx"));
    assert!(user.contains("miller"), "{user}");
    let anonymize = |depth, extensions| Some(Anonymize { key: PseudonymKey::new([1; 32]), depth, extensions });
    let hidden = told(&slim_of(opened(&capture), anonymize(true, true))).pop().expect("as many");
    assert_eq!([hidden[1].len(), hidden[2].len(), hidden[3].len()], [user.len(), share.len(), path.len()]);
    assert!(hidden[3].ends_with(".xlsx") && hidden[3].find('\\') == Some(4), "{hidden:?}");
    assert!(!hidden.concat().contains("miller") && !hidden.concat().contains("november"), "{hidden:?}");
    // The same key gives the same names, another key different ones.
    assert_eq!(told(&slim_of(opened(&capture), anonymize(true, true))).pop(), Some(hidden.clone()));
    let other = Anonymize { key: PseudonymKey::new([2; 32]), depth: true, extensions: true };
    assert_ne!(told(&slim_of(opened(&capture), Some(other))).pop(), Some(hidden));
}

#[test]
fn packets_keep_their_places_lengths_and_times() {
    let capture = payroll();
    let packets = |mut set: CaptureSet| {
        let mut packets = Vec::new();
        while let Some(packet) = set.next_packet().expect("it goes on") {
            packets.push((packet.stamp, packet.wire_length, packet.data.len().min(54)));
        }
        packets
    };
    assert_eq!(packets(opened(&slim_of(opened(&capture), None))), packets(opened(&capture)));
}

fn opened(bytes: &[u8]) -> CaptureSet {
    let file = tempfile::NamedTempFile::new().expect("there is a directory for temporary files");
    fs::write(file.path(), bytes).expect("it is written");
    CaptureSet::open(&[CaptureInput::File(file.path().to_owned())]).expect("it begins as a capture")
}

/// Slims a capture twice: the findings are equal, and the second pass changes nothing.
fn check(capture: &[u8]) -> Result<(), TestCaseError> {
    let copy = slim_of(opened(capture), None);
    let (before, after) = (found_in(opened(capture), None), found_in(opened(&copy), None));
    prop_assert_eq!(before.exchanges, after.exchanges);
    prop_assert_eq!(before.connections, after.connections);
    prop_assert_eq!(before.rest, after.rest);
    prop_assert!(slim_of(opened(&copy), None) == copy, "slim of the slim copy");
    let anonymize = Anonymize { key: PseudonymKey::new([1; 32]), depth: false, extensions: false };
    slim_of(opened(capture), Some(anonymize));
    Ok(())
}

/// Compares an encrypted capture, read with its keys, with its decrypted slim copy, read without.
fn check_decrypted(name: &str, capture: &[u8], ring: &Arc<KeyRing>) {
    let keys = || Some(Arc::clone(ring));
    let slimmed = |capture: &[u8]| slim_with(opened(capture), slim::SlimOptions { keys: keys(), ..Default::default() });
    let copy = slimmed(capture);
    let (before, after) = (found_in(opened(capture), keys()), found_in(opened(&copy), None));
    let exchanges = before.exchanges.iter().zip(&after.exchanges);
    assert_eq!(exchanges.clone().find(|(one, other)| one != other), None, "{name}");
    assert_eq!(before.exchanges.len(), after.exchanges.len(), "{name}");
    assert_eq!(before.connections, after.connections, "{name}");
    assert_eq!(before.rest, after.rest, "{name}");
    let again = slim_of(opened(&copy), None);
    assert!(behind_comment(&again) == behind_comment(&copy), "{name}: slim of the slim copy");
    assert!(slimmed(&copy) == copy, "{name}: slim of the slim copy, with keys");
}

#[test]
fn a_decrypted_copy_tells_without_keys_what_the_original_tells_with_them() {
    let mut decrypted = 0;
    for path in decrypted::plain_captures() {
        let plain = Recording::read(&path).expect("a capture");
        let Some(twin) = plain.sealed(Nonces::Random, 7) else { continue };
        decrypted += 1;
        let mut exchanges = Vec::new();
        let sinks = &mut [|exchange: &Exchange| exchanges.push(exchange.clone())];
        let mut set = opened(&plain.to_pcap(&plain.undamaged()));
        pipeline::run(&mut set, &AnalyzerOptions::default(), Sharding::None, Threading::Inline, sinks, |_| ())
            .expect("it runs");
        let ring = Arc::new(decrypted::twin_keys(&exchanges));
        check_decrypted(&twin.name, &twin.to_pcap(&twin.undamaged()), &ring);
        for snap in [300, 256, 160, 150, 128] {
            let cut: Vec<Kept> = twin.undamaged().into_iter().map(|kept| Kept { snap, ..kept }).collect();
            check_decrypted(&format!("{}, {snap} bytes", twin.name), &twin.to_pcap(&cut), &ring);
        }
        for damage in (0..6).map(RandomDamage::of_seed) {
            let capture = twin.to_pcap(&damage.apply(&twin));
            check_decrypted(&format!("{}, {damage}", twin.name), &capture, &ring);
        }
    }
    assert!(decrypted > 5, "{decrypted}");
}

#[test]
fn a_decrypted_copy_holds_every_cipher_and_kind_of_message() {
    let real = Recording::read(&common::bundled(decrypted::REAL)).expect("a capture");
    let password = Arc::new(decrypted::passwords(decrypted::PASSWORD));
    check_decrypted("password", &real.to_pcap(&real.undamaged()), &password);
    check_decrypted("wrong", &real.to_pcap(&real.undamaged()), &Arc::new(decrypted::passwords(b"wrong")));
    let bench = Arc::new(decrypted::passwords(b"benchpw"));
    for name in ["reauthentication", "second_channel"] {
        let real = Recording::read(&common::bundled(&format!("encrypted/{name}.pcap.zst"))).expect("a capture");
        check_decrypted(name, &real.to_pcap(&real.undamaged()), &bench);
    }
    let ring = Arc::new(decrypted::sealed_keys());
    check_decrypted("kinds", &pcap::nanos(&decrypted::sealed_kinds().packets()), &ring);
    check_decrypted("damage", &pcap::nanos(&decrypted::sealed_damage().packets()), &ring);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: (common::truth::config().cases / 4).max(1), ..common::truth::config() })]

    #[test]
    fn damage_is_the_same_in_the_slim_copy(script in scripts(), plan in plans()) {
        check(&pcap::nanos(&plan.apply(&script.play().packets).packets))?;
    }

    /// Header and name bytes that no client sends.
    #[test]
    fn hostile_bytes_are_read_alike_in_the_slim_copy(
        script in scripts(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..60),
    ) {
        let mut capture = pcap::nanos(&script.play().packets);
        // The file header and the first packet's record stay, so that it remains a capture.
        for (place, byte) in changes {
            let places = capture.len() - 100;
            capture[100 + place.index(places)] = byte;
        }
        check(&capture)?;
    }
}
