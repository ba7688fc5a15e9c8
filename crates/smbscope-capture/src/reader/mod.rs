//! Reads inputs and returns their packets in time order.
//!
//! Formats are pcap, pcapng, snoop, Network Monitor and ERF, plain or compressed, from files or a pipe; several inputs form one capture.
//! Plain files are mapped, surveyed once and read in place. Disorder is repaired by merging ascending runs or by a
//! bounded window. Start with [`CaptureSet`], which merges lanes; a lane is a source with or without a window, a source
//! walks records, and the format parsers are pure functions over bytes.

mod capture;
mod clocks;
mod format;
mod lane;
mod map;
mod netmon;
mod pcap;
mod pcapng;
mod set;
mod stream;
mod survey;
#[cfg(test)]
mod tests;

pub use capture::Backing;
pub use format::{FOREIGN_FORMATS, FORMATS, RECOGNISED_FORMATS};
#[cfg(not(target_family = "wasm"))]
pub(crate) use pcap::NANOSECOND_MAGIC;
pub use set::CaptureSet;
use std::io;
use std::path::{Path, PathBuf};
pub use stream::{FileSlices, SlicedFile};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureInput {
    File(PathBuf),
    Stdin,
    Sliced(SlicedFile),
}

impl CaptureInput {
    /// Parses a command-line argument; `-` is standard input.
    pub fn from_argument(argument: impl Into<PathBuf>) -> CaptureInput {
        let path = argument.into();
        if path.as_os_str() == "-" { CaptureInput::Stdin } else { CaptureInput::File(path) }
    }

    /// Parses command-line arguments. A directory stands for the captures in it, which are recognised by their content,
    /// and has at least one. Links and directories in it are not read.
    pub fn from_arguments<P: AsRef<Path>>(
        arguments: impl IntoIterator<Item = P>,
    ) -> Result<Vec<CaptureInput>, CaptureError> {
        let mut inputs = Vec::new();
        for argument in arguments {
            match CaptureInput::from_argument(argument.as_ref()) {
                CaptureInput::File(path) if path.is_dir() => {
                    let found = captures_in(&path)?.into_iter().map(CaptureInput::File);
                    inputs.extend(found.filter(|input| !inputs.contains(input)).collect::<Vec<_>>());
                }
                input => inputs.push(input),
            }
        }
        Ok(inputs)
    }

    pub fn can_be_read_again(&self) -> bool {
        match self {
            CaptureInput::File(path) => path.is_file(),
            CaptureInput::Sliced(_) => true,
            CaptureInput::Stdin => false,
        }
    }

    pub fn name(&self) -> String {
        match self {
            CaptureInput::File(path) => path.display().to_string(),
            CaptureInput::Stdin => "-".to_owned(),
            CaptureInput::Sliced(file) => file.name(),
        }
    }
}

/// Returns the captures in a directory, by name.
fn captures_in(directory: &Path) -> Result<Vec<PathBuf>, CaptureError> {
    let name = directory.display().to_string();
    let failed = |source| CaptureError::Open { name: name.clone(), source };
    let mut captures = Vec::new();
    for entry in directory.read_dir().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // A ring may have removed the file.
        if entry.file_type().is_ok_and(|kind| kind.is_file()) && capture::is_capture(&entry.path())? {
            captures.push(entry.path());
        }
    }
    captures.sort();
    if captures.is_empty() { Err(CaptureError::NoCaptures { name }) } else { Ok(captures) }
}

/// Quotes a file name for a shell if it needs that.
fn quoted(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+:=,".contains(letter);
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    #[error("cannot open {name}: is a directory; name the captures in it")]
    IsDirectory { name: String },
    #[error("{name}: a directory without captures; directories in it are not read")]
    NoCaptures { name: String },
    #[error("cannot open {name}: {source}")]
    Open { name: String, source: io::Error },
    #[error("{name}: empty file; capture or copy it again")]
    Empty { name: String },
    #[error("{name}: the {format} file header is cut off after {length} bytes")]
    HeaderCut { name: String, format: &'static str, length: usize },
    #[error("{name}: {format} captures are not supported; convert it with: {}", converter.replace("FILE", &quoted(name)))]
    Unsupported { name: String, format: &'static str, converter: &'static str },
    #[error("{name}: {format} files are not supported; unpack it first with {remedy}")]
    Packed { name: String, format: &'static str, remedy: &'static str },
    #[error(
        "{name}: not a capture file (starts with {starts_with}); known are pcap, pcapng, snoop, Network Monitor and ERF"
    )]
    NotACapture { name: String, starts_with: String },
    #[error("{name}: damaged {compression} data: {reason}")]
    Decompress { name: String, compression: &'static str, reason: String },
    #[error("{name}: the file was truncated while it was being read; retry when no program writes to it")]
    CutShort { name: String },
    #[error(
        "{name}: {compression} data that needs a window of more than the {} MiB that --memory allows; raise --memory",
        allowed >> 20
    )]
    Window { name: String, compression: &'static str, allowed: u64 },
    #[error(
        "{name}: out of time order, and it cannot be decompressed into {}: {source}; decompress it first, or set TMPDIR",
        std::env::temp_dir().display()
    )]
    Spool { name: String, source: io::Error },
    #[error("{name}: out of time order, and more than {} MiB, which is too large to sort here; sort it with reordercap", most >> 20)]
    TooLargeToSort { name: String, most: u64 },
    #[error("{count} inputs are too many: the maximum is 65,535")]
    TooManyInputs { count: usize },
}

/// Bytes of a packet; more is damage. No capture tool writes longer ones.
const MAX_CAPTURED_LENGTH: u32 = 256 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PacketRecord {
    /// Nanoseconds since the Unix epoch.
    time: i64,
    link_type: u32,
    /// Length on the wire, at least `data_length`.
    wire_length: u32,
    data_start: usize,
    data_length: usize,
    /// Number of its process in the table of the file; zero if unknown.
    process: u32,
}

/// A parser changes its state only for `Packet` and `Skip`, so a window may be offered again with more data.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ParseStep {
    /// A packet in a record of this length, entirely within the window.
    Packet(PacketRecord, usize),
    Skip {
        length: usize,
        what: SkipReason,
    },
    More(usize),
    Stop(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SkipReason {
    Description,
    /// Not a packet, but Wireshark shows and numbers it as one.
    Numbered,
    /// Should have been a packet or an interface description.
    Unreadable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ByteOrder {
    big_endian: bool,
}

impl ByteOrder {
    const BIG: ByteOrder = ByteOrder { big_endian: true };
    const LITTLE: ByteOrder = ByteOrder { big_endian: false };

    #[inline]
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let field: [u8; 2] = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if self.big_endian { u16::from_be_bytes(field) } else { u16::from_le_bytes(field) })
    }

    #[inline]
    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let field: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.big_endian { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) })
    }

    #[inline]
    fn i64(self, bytes: &[u8], at: usize) -> Option<i64> {
        let field: [u8; 8] = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(if self.big_endian { i64::from_be_bytes(field) } else { i64::from_le_bytes(field) })
    }
}

fn absurd_length(length: u32) -> ParseStep {
    ParseStep::Stop(format!("captured length {length} is beyond {MAX_CAPTURED_LENGTH} bytes"))
}
