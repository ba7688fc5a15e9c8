//! Slim copies of captures: the analysis finds the same in them, and nothing of what was removed is left.

use smbscope_analyze::pipeline::{self, Sharding, Threading};
use smbscope_analyze::{Options, slim};
use smbscope_capture::reader::{CaptureSet, Input};
use smbscope_model::{Exchange, Quality};
use std::fs;
use std::path::{Path, PathBuf};

/// All that an analysis finds, but for what describes the file.
#[derive(Debug, PartialEq)]
struct Found {
    exchanges: Vec<String>,
    connections: Vec<String>,
    rest: String,
}

fn found(path: &Path) -> Found {
    let mut set = CaptureSet::open(&[Input::File(path.to_owned())]).expect("it is a capture");
    let mut exchanges = Vec::new();
    let mut sink = |exchange: &Exchange| exchanges.push(format!("{exchange:?}"));
    let options = Options { details: true, ..Options::default() };
    let sinks = std::slice::from_mut(&mut sink);
    let analysis =
        pipeline::run(&mut set, &options, Sharding::None, Threading::Inline, sinks, |_| ()).expect("it runs");
    let mut quality = analysis.quality.clone();
    (quality.captured_bytes, quality.snapped_packets, quality.longest_cut_packet) = (0, 0, 0);
    // What is wrong with the file as a file is not in the copy.
    (quality.truncated_captures, quality.unreadable_records) = (0, 0);
    let Quality { .. } = quality;
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

fn slimmed(path: &Path) -> Vec<u8> {
    let mut set = CaptureSet::open(&[Input::File(path.to_owned())]).expect("it is a capture");
    let mut bytes = Vec::new();
    slim::slim(&mut set, &slim::Options::default(), &mut bytes, |_| ()).expect("memory takes all");
    bytes
}

/// Every capture below a folder.
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
    let folder = std::env::var_os("SLIM_CAPTURES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data"), PathBuf::from);
    let mut paths = Vec::new();
    captures(&folder, &mut paths);
    assert!(!paths.is_empty());
    let place = tempfile::tempdir().expect("a folder");
    let mut differing = Vec::new();
    for path in &paths {
        let Ok(_) = CaptureSet::open(&[Input::File(path.clone())]) else { continue };
        let copy = place.path().join("slim.pcapng");
        let bytes = slimmed(path);
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
        let again = slimmed(&copy);
        if again != bytes {
            let place = again.iter().zip(&bytes).position(|(one, other)| one != other);
            let lengths = (bytes.len(), again.len());
            differing
                .push(format!("{}: its slim copy, slimmed, differs at {place:?} of {lengths:?}\n", path.display()));
        }
    }
    assert!(differing.is_empty(), "{} of {}\n{}", differing.len(), paths.len(), differing.concat());
}
