//! Detects reads of bytes that the session has read before, unless there is a sign that the file changed.
//!
//! Such signs are a write, a change of attributes or a control code through the same session, an oplock or lease break,
//! and a different last write time or size when the file is opened again. Changes by other clients while a session
//! keeps the file open without oplock or lease are not detected.

use crate::bounded::{FifoMap, HeapBytes};
use ahash::RandomState;
use smbscope_model::GrantedCaching;
use std::ops::Range;
use std::sync::Arc;

/// Files of a session remembered as read.
const MAX_READ_FILES: usize = 1024;
/// Ranges remembered per file. Adjacent reads share one range.
const MAX_STRETCHES_READ: usize = 3;

#[derive(Debug, Clone)]
pub(crate) struct TrackedOpen {
    pub(crate) path: Arc<str>,
    pub(crate) facts: OpenFacts,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OpenFacts {
    /// Hash of share and path; 0 if the path is unknown.
    file: u64,
    /// Hash of last write time and size at the time of the open.
    version: u64,
    /// Number of lease breaks of the session at the time of the open.
    lease_breaks: u32,
    caching: Option<GrantedCaching>,
}

impl TrackedOpen {
    pub(crate) fn named(path: Arc<str>) -> TrackedOpen {
        TrackedOpen { path, facts: OpenFacts::default() }
    }
}

impl HeapBytes for TrackedOpen {
    fn heap_bytes(&self) -> usize {
        self.path.len()
    }
}

impl OpenFacts {
    pub(crate) fn new(
        share: Option<&str>,
        path: Option<&str>,
        (last_write, size): (u64, u64),
        caching: Option<GrantedCaching>,
    ) -> OpenFacts {
        let file = path.map_or(0, |path| hasher().hash_one((share, path)).max(1));
        OpenFacts { file, version: hasher().hash_one((last_write, size)), lease_breaks: 0, caching }
    }
}

fn hasher() -> RandomState {
    RandomState::with_seeds(5, 6, 7, 8)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReadCaching {
    pub(crate) caching: Option<GrantedCaching>,
    pub(crate) repeated: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Rereads {
    files: Option<Box<FifoMap<u64, Read>>>,
    lease_breaks: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Read {
    version: u64,
    lease_breaks: u32,
    oldest: u8,
    stretches: [(u64, u64); MAX_STRETCHES_READ],
}

impl HeapBytes for Read {
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl HeapBytes for Rereads {
    fn heap_bytes(&self) -> usize {
        self.files.as_ref().map_or(0, |files| size_of::<FifoMap<u64, Read>>() + files.bytes())
    }
}

impl Rereads {
    pub(crate) fn opened(&self, facts: OpenFacts) -> OpenFacts {
        OpenFacts { lease_breaks: self.lease_breaks, ..facts }
    }

    /// Returns true if the file is tracked or can't be, so that [`Self::read`] needs no more memory.
    pub(crate) fn knows(&self, open: &OpenFacts) -> bool {
        open.file == 0 || self.files.as_ref().is_some_and(|files| files.get(&open.file).is_some())
    }

    pub(crate) fn read(&mut self, open: &OpenFacts, bytes: Range<u64>) -> ReadCaching {
        let lease_breaks = self.lease_breaks;
        let caching = open.caching.filter(|_| open.lease_breaks == lease_breaks);
        if open.file == 0 || bytes.is_empty() {
            return ReadCaching { caching, repeated: false };
        }
        let files = self.files.get_or_insert_with(|| Box::new(FifoMap::new(MAX_READ_FILES)));
        let fresh = Read { version: open.version, lease_breaks, ..Read::default() };
        let Some(read) = files.get_mut(&open.file) else {
            let mut read = fresh;
            read.add(bytes);
            files.insert(open.file, read);
            return ReadCaching { caching, repeated: false };
        };
        if (read.version, read.lease_breaks) != (open.version, lease_breaks) {
            *read = fresh;
        }
        ReadCaching { caching, repeated: read.add(bytes) }
    }

    pub(crate) fn changed(&mut self, open: &OpenFacts) {
        if let Some(read) = self.files.as_mut().and_then(|files| files.get_mut(&open.file)) {
            read.stretches = Default::default();
        }
    }

    pub(crate) fn oplock_broken(&mut self, open: &mut OpenFacts, left: GrantedCaching) {
        open.caching = Some(left);
        self.changed(open);
    }

    /// Forgets all reads, since a lease break does not say which files it affects.
    pub(crate) fn lease_broken(&mut self) {
        self.lease_breaks = self.lease_breaks.wrapping_add(1);
    }
}

impl Read {
    fn add(&mut self, bytes: Range<u64>) -> bool {
        let Range { mut start, mut end } = bytes;
        let touches = |(from, to): (u64, u64), start: u64, end: u64| from < to && from <= end && start <= to;
        if self.stretches.iter().any(|(from, to)| *from <= start && end <= *to && from < to) {
            return true;
        }
        let mut place = None;
        for (at, stretch) in self.stretches.iter_mut().enumerate() {
            if touches(*stretch, start, end) {
                (start, end) = (start.min(stretch.0), end.max(stretch.1));
                *stretch = (0, 0);
                place = Some(at);
            }
        }
        let free = || self.stretches.iter().position(|(from, to)| from >= to);
        let at = place.or_else(free).unwrap_or_else(|| {
            let oldest = usize::from(self.oldest) % MAX_STRETCHES_READ;
            self.oldest = self.oldest.wrapping_add(1) % MAX_STRETCHES_READ as u8;
            oldest
        });
        self.stretches[at] = (start, end);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(version: u64, caching: Option<GrantedCaching>) -> OpenFacts {
        OpenFacts::new(Some("data"), Some("a.ini"), (version, 100), caching)
    }

    fn repeated(reads: &mut Rereads, open: &OpenFacts, bytes: Range<u64>) -> bool {
        reads.read(open, bytes).repeated
    }

    #[test]
    fn bytes_that_were_read_in_other_pieces_are_read_again() {
        let (mut reads, file) = (Rereads::default(), open(1, None));
        assert!(!repeated(&mut reads, &file, 0..100));
        assert!(!repeated(&mut reads, &file, 100..200), "behind what was read");
        assert!(repeated(&mut reads, &file, 50..150), "in both pieces");
        assert!(!repeated(&mut reads, &file, 150..201), "one byte is new");
        assert!(!repeated(&mut reads, &open(1, None), 5..5), "no byte");
    }

    #[test]
    fn a_change_is_a_reason_to_read_again() {
        let (mut reads, file) = (Rereads::default(), open(1, Some(GrantedCaching::LeaseRead)));
        repeated(&mut reads, &file, 0..100);
        reads.changed(&file);
        assert!(!repeated(&mut reads, &file, 0..100), "the session wrote");
        assert!(!repeated(&mut reads, &open(2, None), 0..100), "opened again, with another last write time");
        assert!(repeated(&mut reads, &open(2, None), 0..100), "opened again, unchanged");
        reads.lease_broken();
        let held = reads.read(&file, 0..100);
        assert_eq!(held, ReadCaching { caching: None, repeated: false }, "the lease may be gone");
        let again = reads.opened(open(2, Some(GrantedCaching::LeaseReadHandle)));
        assert!(!repeated(&mut reads, &again, 0..100));
        assert_eq!(
            reads.read(&again, 0..100),
            ReadCaching { caching: Some(GrantedCaching::LeaseReadHandle), repeated: true }
        );
    }

    #[test]
    fn a_broken_oplock_leaves_what_the_server_says() {
        let (mut reads, mut file) = (Rereads::default(), open(1, Some(GrantedCaching::Batch)));
        repeated(&mut reads, &file, 0..100);
        reads.oplock_broken(&mut file, GrantedCaching::LevelII);
        let held = [(); 2].map(|()| reads.read(&file, 0..100));
        let level_ii = |repeated| ReadCaching { caching: Some(GrantedCaching::LevelII), repeated };
        assert_eq!(held, [level_ii(false), level_ii(true)]);
    }

    #[test]
    fn of_scattered_reads_the_last_three_are_remembered() {
        let (mut reads, file) = (Rereads::default(), open(1, None));
        for block in 0..4u64 {
            assert!(!repeated(&mut reads, &file, block * 1000..block * 1000 + 10));
        }
        let again = [3, 2, 1, 0].map(|block: u64| repeated(&mut reads, &file, block * 1000..block * 1000 + 10));
        assert_eq!(again, [true, true, true, false], "the first one gave way to the fourth");
    }

    #[test]
    fn the_file_read_first_is_forgotten_when_there_are_too_many() {
        let mut reads = Rereads::default();
        let file = |number: usize| OpenFacts::new(None, Some(&format!("f{number}")), (1, 1), None);
        for number in 0..=MAX_READ_FILES {
            assert!(!reads.knows(&file(number)));
            reads.read(&file(number), 0..10);
        }
        assert!(!reads.knows(&file(0)) && reads.knows(&file(1)) && reads.knows(&file(MAX_READ_FILES)));
    }
}
