//! Rings of slim captures: rotation, removal, restart, full disks, and other files in the folder.

use smbscope_analyze::slim::{self, SlimOptions};
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_model::Nanos;
use smbscope_run::ring::{self, RingEvent, RingLimits, RingSummary};
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// Time, bytes and length on the wire of a packet.
type Kept = (i64, Vec<u8>, u32);

fn capture() -> CaptureSet {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/demo-slow-server.pcap.zst");
    CaptureSet::open(&[CaptureInput::File(path)]).expect("a capture")
}

fn packets(mut set: CaptureSet) -> Vec<Kept> {
    let mut packets = Vec::new();
    while let Some(packet) = set.next_packet().expect("readable") {
        packets.push((packet.stamp.time.0, packet.data.to_vec(), packet.wire_length));
    }
    assert_eq!(set.quality().truncated_captures, 0);
    packets
}

/// Returns the packets of a plain slim copy, and its length.
fn slim_copy() -> (Vec<Kept>, u64) {
    let mut copy = Vec::new();
    slim::slim(&mut capture(), &SlimOptions::default(), &mut copy, &mut |_| ()).expect("it is written");
    let length = copy.len() as u64;
    (packets(CaptureSet::from_reader("-", Box::new(Cursor::new(copy))).expect("a capture")), length)
}

fn keep(folder: &Path, size: u64, age: Option<Nanos>) -> (RingSummary, Vec<RingEvent>) {
    let events = Mutex::new(Vec::new());
    let limits = RingLimits { folder: folder.to_owned(), size, age };
    let notify = |event: &RingEvent| events.lock().expect("no panic").push(event.clone());
    let summary = ring::keep(&mut capture(), &SlimOptions::default(), &limits, &Arc::default(), &mut |_| (), &notify)
        .expect("it runs");
    (summary, events.into_inner().expect("no panic"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).expect("a folder").map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Reads each file by itself, in the order of its first packet.
fn packets_in(files: &[PathBuf]) -> Vec<Kept> {
    let mut parts: Vec<Vec<Kept>> = files
        .iter()
        .map(|file| packets(CaptureSet::open(&[CaptureInput::File(file.clone())]).expect("a capture")))
        .collect();
    parts.sort_by_key(|part| part.first().map(|(time, ..)| *time));
    parts.concat()
}

fn total(files: &[PathBuf]) -> u64 {
    files.iter().map(|file| fs::metadata(file).expect("a file").len()).sum()
}

#[test]
fn the_files_of_a_ring_hold_the_packets_of_a_slim_copy() {
    let folder = tempfile::tempdir().expect("a directory");
    let (expected, length) = slim_copy();
    let (summary, events) = keep(folder.path(), length * 2, None);
    let files = files(folder.path());
    assert_eq!((summary.files, summary.removed_files, summary.dropped_packets), (files.len() as u64, 0, 0));
    // A file has a sixteenth of the size of the ring.
    assert!((8..=9).contains(&files.len()), "{files:?}");
    assert!(packets_in(&files) == expected);
    assert!(events.is_empty(), "{events:?}");
}

#[test]
fn a_full_ring_holds_the_newest_packets_within_its_size() {
    let folder = tempfile::tempdir().expect("a directory");
    let (expected, length) = slim_copy();
    let size = length / 3;
    let (summary, _) = keep(folder.path(), size, None);
    let files = files(folder.path());
    assert_eq!(summary.files, summary.removed_files + files.len() as u64);
    assert!((size * 7 / 8..=size).contains(&total(&files)), "{} of {size}", total(&files));
    let kept = packets_in(&files);
    assert!(expected.ends_with(&kept));
}

#[test]
fn a_ring_holds_all_packets_up_to_its_age() {
    let folder = tempfile::tempdir().expect("a directory");
    let (expected, _) = slim_copy();
    let last = expected.last().expect("packets").0;
    let age = (last - expected[0].0) / 2;
    let (summary, _) = keep(folder.path(), 1 << 30, Some(Nanos(age)));
    let kept = packets_in(&files(folder.path()));
    assert!(summary.removed_files > 0 && expected.ends_with(&kept));
    let young = expected.iter().filter(|(time, ..)| *time >= last - age).count();
    assert!(kept.len() >= young && kept.len() < expected.len(), "{young} of {}, {} kept", expected.len(), kept.len());
}

#[test]
fn a_restarted_ring_counts_its_files_and_touches_no_others() {
    let folder = tempfile::tempdir().expect("a directory");
    let outside = tempfile::NamedTempFile::new().expect("a file");
    fs::write(outside.path(), vec![7; 1 << 20]).expect("it is written");
    let path = |name: &str| folder.path().join(name);
    // Earlier names than in the ring: they would go first.
    std::os::unix::fs::symlink(outside.path(), path("smbscope-19990101T000000Z.pcapng")).expect("a link");
    fs::create_dir(path("smbscope-19990102T000000Z.pcapng")).expect("a directory");
    fs::write(path("smbscope-19990103.pcapng"), vec![7; 1 << 20]).expect("it is written");
    fs::write(path("office.pcapng"), vec![7; 1 << 20]).expect("it is written");
    fs::write(path("smbscope-19990104T000000Z.pcapng"), vec![7; 1 << 20]).expect("it is written");
    let others = |files: &[PathBuf]| files.iter().filter(|file| !file.to_string_lossy().contains("pe-20")).count();
    let (expected, length) = slim_copy();
    let size = length * 3 / 2;
    let (first, _) = keep(folder.path(), size, None);
    assert_eq!(first.removed_files, 1, "the old file of the ring");
    assert_eq!(others(&files(folder.path())), 4);
    let (second, _) = keep(folder.path(), size, None);
    assert!(second.removed_files > 0);
    let files = files(folder.path());
    assert_eq!(others(&files), 4);
    let own: Vec<PathBuf> = files.into_iter().filter(|file| file.to_string_lossy().contains("pe-20")).collect();
    assert!((length..=size).contains(&total(&own)), "{} of {size}", total(&own));
    assert!(packets_in(&own).len() >= expected.len());
    assert_eq!(fs::metadata(outside.path()).expect("a file").len(), 1 << 20);
}

struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts a file system of this size. Returns `None` without the right to mount.
    fn mount(bytes: u64) -> Option<SmallDisk> {
        let folder = tempfile::tempdir().expect("a directory");
        let size = format!("size={bytes}");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path());
        command.output().ok()?.status.success().then(|| SmallDisk(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_does_not_end_a_ring() {
    let (expected, length) = slim_copy();
    let Some(disk) = SmallDisk::mount(length / 3) else {
        assert!(std::env::var_os("CI").is_none(), "mounting a tmpfs needs root");
        eprintln!("not run: mounting a tmpfs needs root");
        return;
    };
    let folder = disk.0.path();
    let (summary, events) = keep(folder, length, None);
    assert_eq!(events, [RingEvent::DiskFull { folder: folder.to_owned() }]);
    assert!(summary.removed_files > 0 && summary.dropped_packets == 0);
    let kept = packets_in(&files(folder));
    assert!(kept.len() > expected.len() / 6 && expected.ends_with(&kept), "{} of {}", kept.len(), expected.len());
    for file in files(folder) {
        fs::remove_file(file).expect("it is removed");
    }
    // Filled by another program, it has nothing to remove.
    fs::write(folder.join("other"), vec![7; length as usize]).expect_err("the disk is full");
    let (summary, events) = keep(folder, length, None);
    assert!(matches!(events.as_slice(), [RingEvent::Stopped { .. }]), "{events:?}");
    assert_eq!(summary.dropped_packets, expected.len() as u64);
    assert_eq!(files(folder), [folder.join("other")]);
}
