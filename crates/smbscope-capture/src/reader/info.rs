//! What goes in and what is said about it: inputs and errors.

use std::io;
use std::path::PathBuf;

/// Where a capture comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureInput {
    /// A file, or a named pipe.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl CaptureInput {
    /// An argument of the command line, where `-` is standard input.
    pub fn from_argument(argument: impl Into<PathBuf>) -> CaptureInput {
        let path = argument.into();
        if path.as_os_str() == "-" { CaptureInput::Stdin } else { CaptureInput::File(path) }
    }

    /// Whether it is an ordinary file: what is read from it once is there a second time.
    pub fn can_be_read_again(&self) -> bool {
        matches!(self, CaptureInput::File(path) if path.is_file())
    }

    /// The name as given; `-` for standard input.
    pub fn name(&self) -> String {
        match self {
            CaptureInput::File(path) => path.display().to_string(),
            CaptureInput::Stdin => "-".to_owned(),
        }
    }
}

/// Input that cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file can't be opened or read: missing, no permission, an I/O error.
    #[error("cannot open {name}: {source}")]
    Open {
        /// The input.
        name: String,
        /// The operating system's reason.
        source: io::Error,
    },
    /// There is not a single byte.
    #[error("{name}: empty file")]
    Empty {
        /// The input.
        name: String,
    },
    /// The file ends before its first record could start.
    #[error("{name}: the {format} file header is cut off after {length} bytes")]
    HeaderCut {
        /// The input.
        name: String,
        /// What it would be.
        format: &'static str,
        /// How long it is.
        length: usize,
    },
    /// A capture in a format that is not read.
    #[error("{name}: {format} captures are not read; convert it with: editcap -F pcapng {name} OUT.pcapng")]
    Unsupported {
        /// The input.
        name: String,
        /// What it is.
        format: &'static str,
    },
    /// Packed by something that is not read.
    #[error("{name}: {format} files are not read; unpack it first with {remedy}")]
    Packed {
        /// The input.
        name: String,
        /// What it is.
        format: &'static str,
        /// The program to use.
        remedy: &'static str,
    },
    /// Something else.
    #[error("{name}: not a capture file (starts with {starts_with})")]
    NotACapture {
        /// The input.
        name: String,
        /// Its first bytes.
        starts_with: String,
    },
    /// Compressed data of which nothing can be read.
    #[error("{name}: damaged {compression} data: {reason}")]
    Decompress {
        /// The input.
        name: String,
        /// What it seems to be.
        compression: &'static str,
        /// The decompressor's reason.
        reason: String,
    },
    /// Another process made the file shorter while it was read.
    #[error("{name}: the file was cut short while it was read; try again once nobody writes to it")]
    CutShort {
        /// The input.
        name: String,
    },
    /// Compressed with a larger window than may be taken.
    #[error(
        "{name}: {compression} data that needs a window of more than the {} MiB that --memory allows; raise --memory",
        allowed >> 20
    )]
    Window {
        /// The input.
        name: String,
        /// Its compression.
        compression: &'static str,
        /// Bytes that a window may take.
        allowed: u64,
    },
    /// There is no room to sort a compressed capture.
    #[error(
        "{name}: out of time order, and it cannot be decompressed into {}: {source}; decompress it first, or set TMPDIR",
        std::env::temp_dir().display()
    )]
    Spool {
        /// The input.
        name: String,
        /// The operating system's reason.
        source: io::Error,
    },
    /// More inputs than captures can be numbered.
    #[error("{count} inputs are too many: at most 65,535 are read at once")]
    TooManyInputs {
        /// How many were given.
        count: usize,
    },
}
