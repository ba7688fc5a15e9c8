//! Memory-mapped files: the one place in the workspace that needs `unsafe`.

#![allow(unsafe_code)]

use memmap2::{Advice, Mmap, UncheckedAdvice};
use std::fs::File;
use std::io;
use std::ops::Deref;

/// A file's bytes, mapped read-only.
#[derive(Debug)]
pub(super) struct Map(Mmap);

impl Map {
    /// Maps the file as long as it is now.
    pub(super) fn new(file: &File) -> io::Result<Map> {
        // SAFETY: the map is read-only and nothing in this process writes to the file. Another process that rewrites
        // the file changes bytes under our hands: the parsers read each byte they rely on through checked accessors
        // and stay memory safe whatever the bytes are. Another process that cuts the file short makes the operating
        // system end this one with SIGBUS, as for every program that maps files.
        let map = unsafe { Mmap::map(file)? };
        // Advice may be refused, and nothing depends on it.
        let _ = map.advise(Advice::Sequential);
        Ok(Map(map))
    }

    /// Gives pages back that have been read, so that a long capture does not count as memory in use. They are read
    /// from the file again when they are touched again.
    pub(super) fn release(&self, offset: usize, length: usize) {
        if cfg!(target_os = "linux") && offset.saturating_add(length) <= self.0.len() {
            // SAFETY: MADV_DONTNEED on a shared read-only map of a file drops no data: the next access reads the page
            // from the file, as the first one did.
            let _ = unsafe { self.0.unchecked_advise_range(UncheckedAdvice::DontNeed, offset, length) };
        }
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
