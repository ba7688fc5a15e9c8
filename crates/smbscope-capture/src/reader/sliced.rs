//! Files outside the file system, read in slices: a web page gets no path of a file that the user drops, and can't map it.

use std::fmt::Debug;
use std::io::{self, Read};
use std::sync::Arc;

/// Access to the bytes of such a file. They don't change while it is read.
pub trait FileSlices: Debug + Send + Sync {
    fn name(&self) -> String;

    fn length(&self) -> u64;

    /// Reads up to `buffer.len()` bytes from `offset` on. Returns their number, 0 only at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

#[derive(Debug, Clone)]
pub struct SlicedFile(Arc<dyn FileSlices>);

impl SlicedFile {
    pub fn new(file: impl FileSlices + 'static) -> SlicedFile {
        SlicedFile(Arc::new(file))
    }

    pub(super) fn name(&self) -> String {
        self.0.name()
    }

    pub(super) fn length(&self) -> u64 {
        self.0.length()
    }

    pub(super) fn reader(&self) -> SliceReader {
        SliceReader { file: Arc::clone(&self.0), offset: 0 }
    }
}

impl PartialEq for SlicedFile {
    fn eq(&self, other: &SlicedFile) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SlicedFile {}

pub(super) struct SliceReader {
    file: Arc<dyn FileSlices>,
    offset: u64,
}

impl Read for SliceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.offset, buffer)?;
        self.offset += count as u64;
        Ok(count)
    }
}
