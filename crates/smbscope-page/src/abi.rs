//! Border to the page: what its worker imports (`web/src/drop/worker.ts`), and what it calls.
//!
//! Numbers pass as they are, texts and bytes as address and length in the module's memory. File sizes and offsets are
//! doubles, which are exact up to 2^53. One thread calls all of it.

#![allow(unsafe_code)]

use crate::session::{ExportFormat, PageSession};
use smbscope_capture::reader::FileSlices;
use std::cell::RefCell;
use std::io::{self, Write};

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Reads a slice of a file. Returns the number of bytes, or a negative number if the browser refuses.
    fn read(file: u32, offset: f64, buffer: *mut u8, length: usize) -> i32;
    fn write(bytes: *const u8, length: usize);
    fn progress(done: f64, total: f64);
    fn random(buffer: *mut u8, length: usize);
    /// Takes the reason of a failure, or of a panic.
    fn fail(text: *const u8, length: usize);
}

thread_local! {
    static SESSION: RefCell<PageSession> = RefCell::default();
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// File that the user dropped, by its number in the page.
#[derive(Debug)]
struct PageFile {
    number: u32,
    name: String,
    length: u64,
}

impl FileSlices for PageFile {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(rest);
        // SAFETY: the page writes at most `wanted` bytes, all in `buffer`.
        let count = unsafe { read(self.number, offset as f64, buffer.as_mut_ptr(), wanted) };
        match usize::try_from(count) {
            Ok(count) if count <= wanted => Ok(count),
            _ => Err(io::Error::other("the browser can't read the file: it was changed, moved or removed")),
        }
    }
}

struct PageOutput;

impl Write for PageOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: the page copies the bytes before it returns.
        unsafe { write(bytes.as_ptr(), bytes.len()) };
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn show(done: u64, total: u64) {
    // SAFETY: passes numbers only.
    unsafe { progress(done as f64, total as f64) };
}

fn failed(text: &str) {
    // SAFETY: the page copies the text before it returns.
    unsafe { fail(text.as_ptr(), text.len()) };
}

/// Reports a result to the page. Returns 1 for success.
fn settled(result: Result<(), String>) -> i32 {
    result.map_err(|error| failed(&error)).is_ok().into()
}

/// Prepares the module; called once, first.
#[unsafe(no_mangle)]
extern "C" fn start() {
    std::panic::set_hook(Box::new(|panic| failed(&format!("a bug in smbscope: {panic}"))));
}

/// Makes room for a text of the page, which the next call uses. Returns its address.
#[unsafe(no_mangle)]
extern "C" fn text(length: usize) -> *mut u8 {
    TEXT.with_borrow_mut(|text| {
        text.clear();
        text.resize(length, 0);
        text.as_mut_ptr()
    })
}

/// Adds a file, whose name is the text.
#[unsafe(no_mangle)]
extern "C" fn add(number: u32, length: f64) {
    let name = TEXT.with_borrow(|text| String::from_utf8_lossy(text).into_owned());
    SESSION.with_borrow_mut(|session| session.add(PageFile { number, name, length: length as u64 }));
}

/// Analyses the files. Returns 1 if there is a report.
#[unsafe(no_mangle)]
extern "C" fn analyze() -> i32 {
    SESSION.with_borrow_mut(|session| settled(session.analyze(&mut show)))
}

/// Writes an export, by its place in [`ExportFormat::ALL`]. Returns 1 if it is complete.
#[unsafe(no_mangle)]
extern "C" fn export(format: usize) -> i32 {
    let known = ExportFormat::ALL.get(format).ok_or_else(|| "unknown format".to_owned());
    SESSION.with_borrow(|session| {
        settled(known.and_then(|format| {
            let mut out = io::BufWriter::with_capacity(1 << 20, PageOutput);
            session.export(*format, &mut out, &mut show)?;
            out.flush().map_err(|error| error.to_string())
        }))
    })
}

/// Random source of all crates; `getrandom` names it so in its versions 0.3 and 0.4.
///
/// # Safety
///
/// `buffer` must be valid for `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(buffer: *mut u8, length: usize) -> Result<(), getrandom::Error> {
    // SAFETY: the caller guarantees the buffer, which the page fills.
    unsafe { random(buffer, length) };
    Ok(())
}
