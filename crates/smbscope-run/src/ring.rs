//! A ring of slim captures: a folder of pcapng files with the newest packets.
//!
//! A file is named after its first packet, such as `smbscope-20261127T140200Z.pcapng`, and complete in itself. Old files
//! are removed by total size and age. The ring reads and removes only regular files with such names.

use smbscope_analyze::slim::{self, PROGRAM, SlimOptions, SlimSummary};
use smbscope_capture::private::create_new_private;
use smbscope_capture::reader::CaptureSet;
use smbscope_capture::writer::{CaptureInterface, PacketBlock, PacketWriter, PcapngWriter};
use smbscope_model::{Nanos, Timestamp};
use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const PREFIX: &str = "smbscope-";
const STAMP: &str = "%Y%m%dT%H%M%SZ";
const ENDING: &str = ".pcapng";

/// A ring has at least this many files when it is full, so that removing one loses a small part of it.
const FILES_LEAST: u64 = 16;
/// Maximum size of a file.
const FILE_MAX: u64 = 256 << 20;
/// Maximum time that a file covers.
const FILE_TIME_MAX: Nanos = Nanos(3_600_000_000_000);
/// Minimum time that a file covers, unless it reaches its maximum size.
const FILE_TIME_MIN: Nanos = Nanos(1_000_000_000);
/// Bytes after which the buffer is written. It is also written every [`FLUSH_INTERVAL`].
const FLUSH_BYTES: usize = 256 << 10;
/// Maximum time that a packet stays in the buffer. A killed process loses no older ones.
const FLUSH_INTERVAL: Duration = Duration::from_millis(500);
/// Time between attempts after the folder could not be written.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingLimits {
    /// An existing folder. Files of an earlier ring in it count.
    pub folder: PathBuf,
    /// Maximum total size of the files in bytes.
    pub size: u64,
    /// Files whose packets are all older than this are removed, by the time of the newest packet.
    pub age: Option<Nanos>,
}

/// A problem of a running ring. None of them ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RingEvent {
    /// The disk is full before the ring has its size, so each new file replaces old ones. Reported once.
    DiskFull { folder: PathBuf },
    /// The folder can't be written. Packets are dropped until an attempt succeeds.
    Stopped { folder: PathBuf, reason: String },
    /// Packets are written again, after this many were dropped.
    Resumed { folder: PathBuf, dropped: u64 },
}

impl fmt::Display for RingEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RingEvent::DiskFull { folder } => {
                write!(f, "{}: the disk is full, so old captures are removed early", folder.display())
            }
            RingEvent::Stopped { folder, reason } => {
                let seconds = RETRY_INTERVAL.as_secs();
                write!(f, "{}: packets are not kept: {reason}; retrying every {seconds} s", folder.display())
            }
            RingEvent::Resumed { folder, dropped } => {
                write!(f, "{}: packets are kept again; {dropped} were not", folder.display())
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RingSummary {
    pub slim: SlimSummary,
    /// Number of files written, those removed since included.
    pub files: u64,
    pub removed_files: u64,
    /// Packets that are in no file because the folder could not be written.
    pub dropped_packets: u64,
}

/// The time up to which a ring has written packets, for other threads.
#[derive(Debug)]
pub struct RingProgress {
    newest: AtomicI64,
    ended: AtomicBool,
}

impl Default for RingProgress {
    fn default() -> RingProgress {
        RingProgress { newest: AtomicI64::new(i64::MIN), ended: AtomicBool::new(false) }
    }
}

impl RingProgress {
    /// Returns whether packets up to `time` are in the files, or no more will come.
    pub fn has_reached(&self, time: Timestamp) -> bool {
        self.ended.load(Ordering::Acquire) || self.newest.load(Ordering::Acquire) >= time.0
    }
}

/// Copies the packets between two times from a ring, which may be running, to a new capture. Returns their number.
pub fn copy_part(folder: &Path, from: Timestamp, to: Timestamp, out: impl Write) -> io::Result<u64> {
    let mut files = files_in(folder)?;
    let second = |time: Timestamp| time.0.div_euclid(1_000_000_000);
    files.retain(|file| file.start <= second(to));
    let first = files.iter().rposition(|file| file.start < second(from)).unwrap_or(0);
    let mut writer = PcapngWriter::new(out, "part of a ring", PROGRAM)?;
    let mut copied = 0;
    for file in files.drain(first..) {
        // Read as a stream: the ring may cut the end off a file, which a memory map would not survive.
        let Ok(opened) = File::open(&file.path) else { continue };
        let name = file.path.display().to_string();
        let Ok(mut set) = CaptureSet::from_reader(&name, Box::new(opened)) else { continue };
        while set.advance() {
            let (Some(packet), Some(info)) = (set.current_packet(), set.captures().first()) else { break };
            if (from..=to).contains(&packet.stamp.time) {
                let interface = CaptureInterface {
                    link_type: packet.link_type,
                    snap_length: info.snap_length.unwrap_or(0),
                    resolution_ns: info.resolution_ns,
                };
                let parts = [packet.data, &[]];
                let (time, wire_length) = (packet.stamp.time, packet.wire_length);
                writer.packet(&PacketBlock { time, interface, parts, wire_length })?;
                copied += 1;
            }
        }
    }
    writer.finish()?;
    Ok(copied)
}

/// Reads `set` to its end, or until its stop flag is set, and keeps the newest packets in a ring.
///
/// `notify` may be called from another thread. Fails only if the folder can't be listed at the start or the packets can't
/// be processed; later problems of the folder are reported to `notify`.
pub fn keep(
    set: &mut CaptureSet,
    options: &SlimOptions,
    limits: &RingLimits,
    progress: &Arc<RingProgress>,
    observe: &mut dyn FnMut(&CaptureSet),
    notify: &(dyn Fn(&RingEvent) + Sync),
) -> io::Result<RingSummary> {
    let _guard = RingEndGuard(progress);
    let ring = Ring::open(limits.clone(), options.comment(), Arc::clone(progress))?;
    let shared = SharedRing { ring: Mutex::new(ring), notify };
    let slim = thread::scope(|scope| {
        let (end, ended) = channel::<()>();
        scope.spawn(|| {
            let ended = ended;
            while ended.recv_timeout(FLUSH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                shared.with(Ring::tick);
            }
        });
        let slim = slim::copy_to(set, options, &mut &shared, observe);
        drop(end);
        slim
    });
    shared.with(Ring::finish);
    let ring = shared.ring.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(RingSummary { slim: slim?, ..ring.summary })
}

/// Tells those who wait for packets that no more come, however the ring ends.
struct RingEndGuard<'p>(&'p RingProgress);

impl Drop for RingEndGuard<'_> {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
    }
}

struct SharedRing<'n> {
    ring: Mutex<Ring>,
    notify: &'n (dyn Fn(&RingEvent) + Sync),
}

impl SharedRing<'_> {
    fn with(&self, act: impl FnOnce(&mut Ring)) {
        let events = {
            let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
            act(&mut ring);
            std::mem::take(&mut ring.events)
        };
        events.iter().for_each(|event| (self.notify)(event));
    }
}

impl PacketWriter for &SharedRing<'_> {
    fn packet(&mut self, record: &PacketBlock<'_>) -> io::Result<()> {
        self.with(|ring| ring.packet(record));
        Ok(())
    }

    fn skip_number(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Ring {
    limits: RingLimits,
    comment: String,
    /// Files that are complete, oldest first.
    complete: VecDeque<CompleteFile>,
    current: Option<CurrentFile>,
    newest: Timestamp,
    retry_at: Option<Instant>,
    /// Packets dropped since the ring stopped.
    dropped: u64,
    was_full: bool,
    events: Vec<RingEvent>,
    summary: RingSummary,
    progress: Arc<RingProgress>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CompleteFile {
    /// Seconds since the Unix epoch.
    start: i64,
    /// Counts the files that begin in the same second, from 1.
    ordinal: u32,
    length: u64,
    path: PathBuf,
}

struct CurrentFile {
    place: CompleteFile,
    begin: Timestamp,
    file: File,
    /// Writes to a buffer, which holds whole records.
    writer: PcapngWriter<Vec<u8>>,
    buffered_packets: u64,
}

impl Ring {
    fn open(limits: RingLimits, comment: String, progress: Arc<RingProgress>) -> io::Result<Ring> {
        let complete = files_in(&limits.folder)?;
        Ok(Ring {
            limits,
            comment,
            complete: complete.into(),
            current: None,
            newest: Timestamp(i64::MIN),
            retry_at: None,
            dropped: 0,
            was_full: false,
            events: Vec::new(),
            summary: RingSummary::default(),
            progress,
        })
    }

    fn packet(&mut self, record: &PacketBlock<'_>) {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return self.drop_packets(1);
        }
        if let Err(error) = self.write(record) {
            self.drop_packets(1);
            self.failed(&error);
        }
    }

    fn write(&mut self, record: &PacketBlock<'_>) -> io::Result<()> {
        self.newest = self.newest.max(record.time);
        if self.current.as_ref().is_some_and(|current| self.is_full(current, record.time)) {
            self.close()?;
        }
        if self.current.is_none() {
            self.current = Some(self.begin(record.time)?);
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        current.writer.packet(record)?;
        current.buffered_packets += 1;
        if current.writer.get_mut().len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    fn is_full(&self, current: &CurrentFile, time: Timestamp) -> bool {
        let age = self.limits.age.unwrap_or(Nanos(i64::MAX)).0 / FILES_LEAST as i64;
        let covered = Nanos(age).clamp(FILE_TIME_MIN, FILE_TIME_MAX);
        let buffered = current.writer.get_ref().len() as u64;
        // A clock may also step back.
        let elapsed = time.0.abs_diff(current.begin.0);
        elapsed >= covered.0 as u64 || current.place.length + buffered >= (self.limits.size / FILES_LEAST).min(FILE_MAX)
    }

    fn begin(&mut self, time: Timestamp) -> io::Result<CurrentFile> {
        let start = time.0.div_euclid(1_000_000_000);
        let mut ordinal = 1;
        let (path, file) = loop {
            let path = self.limits.folder.join(name(start, ordinal)?);
            match create_new_private(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && ordinal < u32::MAX => ordinal += 1,
                created => break (path, created?),
            }
        };
        self.summary.files += 1;
        let place = CompleteFile { start, ordinal, length: 0, path };
        let writer = PcapngWriter::new(Vec::new(), &self.comment, PROGRAM)?;
        Ok(CurrentFile { place, begin: time, file, writer, buffered_packets: 0 })
    }

    /// Writes the buffer, after removing files beyond the limits.
    fn flush(&mut self) -> io::Result<()> {
        self.remove_old()?;
        let Some(current) = &mut self.current else { return Ok(()) };
        if current.writer.get_ref().is_empty() {
            return Ok(());
        }
        while let Err(error) = current.write_buffer() {
            // Cuts off a record that was written in part.
            current.file.set_len(current.place.length)?;
            current.file.seek(SeekFrom::Start(current.place.length))?;
            let oldest = if is_disk_full(&error) { self.complete.pop_front() } else { None };
            let Some(oldest) = oldest else { return Err(error) };
            remove(&oldest.path)?;
            self.summary.removed_files += 1;
            if !std::mem::replace(&mut self.was_full, true) {
                self.events.push(RingEvent::DiskFull { folder: self.limits.folder.clone() });
            }
        }
        self.progress.newest.store(self.newest.0, Ordering::Release);
        if self.retry_at.take().is_some() {
            let dropped = std::mem::take(&mut self.dropped);
            self.events.push(RingEvent::Resumed { folder: self.limits.folder.clone(), dropped });
        }
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        self.flush()?;
        if let Some(current) = self.current.take() {
            let later = self.complete.partition_point(|file| *file < current.place);
            self.complete.insert(later, current.place);
        }
        Ok(())
    }

    fn remove_old(&mut self) -> io::Result<()> {
        let current = self.current.as_ref();
        let open = current.map_or(0, |current| current.place.length + current.writer.get_ref().len() as u64);
        let mut total = open + self.complete.iter().map(|file| file.length).sum::<u64>();
        let oldest_time = self.limits.age.map(|age| self.newest.0.saturating_sub(age.0).div_euclid(1_000_000_000));
        while let Some(oldest) = self.complete.front() {
            let next = self.complete.get(1).map(|next| next.start);
            let end = next.or(current.map(|current| current.place.start)).unwrap_or(i64::MAX);
            let is_old = oldest_time.is_some_and(|time| end < time);
            if total <= self.limits.size && !is_old {
                break;
            }
            total -= oldest.length;
            remove(&oldest.path)?;
            self.complete.pop_front();
            self.summary.removed_files += 1;
        }
        Ok(())
    }

    /// Writes what the buffer holds, and notices a folder that is gone, also while no packets arrive.
    fn tick(&mut self) {
        let flushed = self.flush().and_then(|()| match &self.current {
            Some(current) => fs::symlink_metadata(&current.place.path).map(drop),
            None => Ok(()),
        });
        if let Err(error) = flushed {
            self.failed(&error);
        }
    }

    fn finish(&mut self) {
        if let Err(error) = self.close() {
            self.failed(&error);
        }
    }

    /// Abandons the current file, and waits before the next attempt.
    fn failed(&mut self, error: &io::Error) {
        if let Some(current) = self.current.take() {
            self.drop_packets(current.buffered_packets);
            if current.place.length > 0 && current.place.path.is_file() {
                self.complete.push_back(current.place);
            } else {
                let _ = remove(&current.place.path);
            }
        }
        if self.retry_at.replace(Instant::now() + RETRY_INTERVAL).is_none() {
            let folder = self.limits.folder.clone();
            self.events.push(RingEvent::Stopped { folder, reason: error.to_string() });
        }
    }

    fn drop_packets(&mut self, count: u64) {
        self.dropped += count;
        self.summary.dropped_packets += count;
    }
}

impl CurrentFile {
    fn write_buffer(&mut self) -> io::Result<()> {
        let buffer = self.writer.get_mut();
        self.file.write_all(buffer)?;
        self.place.length += buffer.len() as u64;
        self.buffered_packets = 0;
        buffer.clear();
        Ok(())
    }
}

fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns the files of a ring, the oldest first.
fn files_in(folder: &Path) -> io::Result<Vec<CompleteFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some((start, ordinal)) = name.to_str().and_then(parse_name) else { continue };
        // Does not follow links.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() {
            files.push(CompleteFile { start, ordinal, length: metadata.len(), path: entry.path() });
        }
    }
    files.sort();
    Ok(files)
}

/// Removes a file unless it has become something else.
fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => fs::remove_file(path),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Formats a time as in the names of files: 20261127T140200Z.
pub(crate) fn stamp(second: i64) -> io::Result<String> {
    Ok(jiff::Timestamp::from_second(second).map_err(io::Error::other)?.strftime(STAMP).to_string())
}

fn name(start: i64, ordinal: u32) -> io::Result<String> {
    let stamp = stamp(start)?;
    let ordinal = if ordinal == 1 { String::new() } else { format!("-{ordinal}") };
    Ok(format!("{PREFIX}{stamp}{ordinal}{ENDING}"))
}

/// Returns the start and ordinal in the name of a ring's file.
fn parse_name(given: &str) -> Option<(i64, u32)> {
    let stamp = given.strip_prefix(PREFIX)?.strip_suffix(ENDING)?;
    let (stamp, ordinal) =
        stamp.split_once('-').map_or(Some((stamp, 1)), |(stamp, ordinal)| Some((stamp, ordinal.parse().ok()?)))?;
    let time = jiff::civil::DateTime::strptime(STAMP, stamp).ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    let start = time.timestamp().as_second();
    // Only the very names that `name` gives.
    (name(start, ordinal).ok()? == given).then_some((start, ordinal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_capture::writer::CaptureInterface;

    fn ring(folder: &Path) -> Ring {
        let limits = RingLimits { folder: folder.to_owned(), size: 1 << 20, age: None };
        Ring::open(limits, "a test".to_owned(), Arc::default()).expect("the folder is there")
    }

    fn packet(second: i64) -> PacketBlock<'static> {
        let interface = CaptureInterface { link_type: 1, snap_length: 0, resolution_ns: 1_000 };
        PacketBlock { time: Timestamp(second * 1_000_000_000), interface, parts: [b"ab", b"c"], wire_length: 3 }
    }

    #[test]
    fn only_names_of_the_ring_are_its_files() {
        // 2026-11-27 14:02:00 UTC
        assert_eq!(name(1_795_788_120, 1).unwrap(), "smbscope-20261127T140200Z.pcapng");
        assert_eq!(parse_name("smbscope-20261127T140200Z.pcapng"), Some((1_795_788_120, 1)));
        assert_eq!(parse_name("smbscope-20261127T140200Z-2.pcapng"), Some((1_795_788_120, 2)));
        for other in ["", "-1", "Z-1", "Z-02", "Z-x", "Z.pcapng", "Z ", "1Z"] {
            assert_eq!(parse_name(&format!("smbscope-20261127T140200{other}.pcapng")), None, "{other}");
        }
        assert_eq!(parse_name("smbscope-20261327T140200Z.pcapng"), None);
        assert_eq!(parse_name("x-20261127T140200Z.pcapng"), None);
    }

    #[test]
    fn a_vanished_folder_stops_the_ring_until_it_is_back() {
        let above = tempfile::tempdir().expect("a directory");
        let folder = above.path().join("ring");
        fs::create_dir(&folder).expect("a directory");
        let mut ring = ring(&folder);
        ring.packet(&packet(1));
        ring.tick();
        assert!(ring.events.is_empty());
        fs::remove_dir_all(&folder).expect("it is removed");
        ring.packet(&packet(2));
        ring.tick();
        assert!(matches!(ring.events.as_slice(), [RingEvent::Stopped { .. }]), "{:?}", ring.events);
        ring.packet(&packet(3));
        ring.retry_at = Some(Instant::now());
        ring.packet(&packet(4));
        assert_eq!(ring.events.len(), 1, "an outage is reported once");
        fs::create_dir(&folder).expect("a directory");
        ring.retry_at = Some(Instant::now());
        ring.packet(&packet(5));
        ring.finish();
        // Packet 2 was written to the removed file before its absence was noticed.
        assert_eq!(ring.events.last(), Some(&RingEvent::Resumed { folder: folder.clone(), dropped: 2 }));
        assert!(folder.join("smbscope-19700101T000005Z.pcapng").is_file());
    }
}
