//! Memory-mapped files.
//!
//! If another process truncates a file while it is mapped, touching pages beyond the new end raises SIGBUS. The handler
//! here maps zero pages in their place and sets a flag, so that the reader can fail with a proper error.

#![allow(unsafe_code)]

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

use memmap2::Mmap;
#[cfg(not(unix))]
use other as platform;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(unix)]
use unix as platform;

#[derive(Debug)]
pub(super) struct Map {
    // Must be dropped before the map: fields are dropped in declaration order.
    _guard: Option<platform::Guard>,
    bytes: Mmap,
    cut_short: Arc<AtomicBool>,
}

impl Map {
    pub(super) fn new(file: &File) -> io::Result<Map> {
        // SAFETY: the map is read-only and nothing in this process writes to the file. If another process rewrites it,
        // bytes change under us, but the parsers use checked accessors and stay memory-safe with any bytes. If another
        // process truncates it, the guard below makes the missing pages read as zeros.
        let bytes = unsafe { Mmap::map(file)? };
        platform::read_ahead(&bytes);
        let cut_short = Arc::default();
        let guard = platform::Guard::new(&bytes, &cut_short);
        Ok(Map { _guard: guard, bytes, cut_short })
    }

    pub(super) fn cut_short(&self) -> &Arc<AtomicBool> {
        &self.cut_short
    }

    /// Releases pages that have been read, so that they do not count as used memory. A later access reads them again.
    pub(super) fn release(&self, offset: usize, length: usize) {
        let is_whole = !self.cut_short.load(Ordering::Relaxed);
        if is_whole && offset.saturating_add(length) <= self.bytes.len() {
            platform::release(&self.bytes, offset, length);
        }
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn bytes_behind_the_new_end_of_a_file_read_as_zeros_and_it_is_noted() {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&[7; 64 << 10]).expect("room for 64 KiB");
        let (map, other) = (Map::new(&file).expect("a map"), Map::new(&file).expect("a map"));
        assert_eq!((map[0], map[60_000]), (7, 7));
        file.set_len(5_000).expect("it can be cut short");
        // The page with the new end exists, zero-filled; the next one does not.
        assert_eq!((map[4_999], map[40_000], map[65_535]), (7, 0, 0));
        assert!(map.cut_short().load(Ordering::Relaxed));
        assert!(!other.cut_short().load(Ordering::Relaxed), "the untouched map is not marked as cut short");
        drop(map);
        assert_eq!(other[50_000], 0);
        assert!(other.cut_short().load(Ordering::Relaxed));
    }
}
