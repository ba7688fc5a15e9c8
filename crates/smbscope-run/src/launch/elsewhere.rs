//! Launches on systems other than Linux: each is refused with one line.

pub use crate::bench::progress::LaunchObserver;
use crate::files::Sources;
use crate::options::LaunchOptions;
use crate::server::{Connect, Passwords, ServerUnderTest};
use crate::{BenchError, BenchOutcome};
use smbscope_lab::Launcher;
use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

/// Never made.
#[derive(Debug)]
pub struct SeriesOptions {
    pub launch: LaunchOptions,
    pub files: ProgramFilesLocation,
    pub sources: Sources,
    pub invocation: Option<String>,
    pub never: Infallible,
}

impl SeriesOptions {
    pub fn new(_: LaunchOptions, _: Launcher, _: Box<Passwords>) -> Result<SeriesOptions, BenchError> {
        let way =
            if cfg!(windows) { "run smbscope in WSL (wsl --install)" } else { "run smbscope in a virtual machine" };
        Err(BenchError::Unavailable(format!("launches are timed on Linux only: {way}")))
    }
}

#[derive(Debug)]
pub enum ProgramFilesLocation {
    Temporary,
    Share(Box<OnShare>),
}

#[derive(Debug)]
pub struct OnShare {
    pub server: ServerUnderTest,
    pub connect: Connect,
}

pub enum Series {}

impl Series {
    pub fn open(options: SeriesOptions) -> Result<Series, BenchError> {
        match options.never {}
    }

    pub fn run(self, _: &mut dyn LaunchObserver, _: &AtomicBool) -> Result<BenchOutcome, BenchError> {
        match self {}
    }
}
