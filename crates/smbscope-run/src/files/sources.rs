//! What a command reads, so that no output is ever one of its inputs: by device and inode, under whatever name.

use smbscope_capture::reader::CaptureInput;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Regular files that are read.
#[derive(Debug, Default)]
pub struct Sources(Vec<SourceIdentity>);

#[derive(Debug)]
struct SourceIdentity {
    name: String,
    device: u64,
    inode: u64,
}

impl Sources {
    /// Captures.
    pub fn of_inputs(inputs: &[CaptureInput]) -> Sources {
        let mut sources = Sources::default();
        for input in inputs {
            match input {
                CaptureInput::File(path) => sources.add(path),
                CaptureInput::Stdin => sources.add_stdin(),
            }
        }
        sources
    }

    /// A file, or a directory with the files in it. What cannot be looked at is left to whoever reads it.
    pub fn add(&mut self, path: &Path) {
        let Ok(found) = fs::metadata(path) else { return };
        if !found.is_dir() {
            return self.note(path.display().to_string(), &found);
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let file = entry.path();
            if let Ok(found) = fs::metadata(&file) {
                self.note(file.display().to_string(), &found);
            }
        }
    }

    /// What standard input comes from.
    fn add_stdin(&mut self) {
        let found = io::stdin().as_fd().try_clone_to_owned().and_then(|stdin| File::from(stdin).metadata());
        if let Ok(found) = found {
            self.note("standard input".to_owned(), &found);
        }
    }

    fn note(&mut self, name: String, found: &Metadata) {
        // Devices and pipes are no less afterwards.
        if found.is_file() {
            self.0.push(SourceIdentity { name, device: found.dev(), inode: found.ino() });
        }
    }

    /// The name of the source that this file is.
    pub fn name_of(&self, found: &Metadata) -> Option<&str> {
        let is_it = |source: &&SourceIdentity| (source.device, source.inode) == (found.dev(), found.ino());
        self.0.iter().find(is_it).map(|source| source.name.as_str())
    }
}
