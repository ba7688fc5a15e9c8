//! Input files of a command, identified by device and inode, so that no output overwrites an input under another name.

use smbscope_capture::reader::CaptureInput;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

#[derive(Debug, Default)]
pub struct Sources(Vec<SourceIdentity>);

#[derive(Debug)]
struct SourceIdentity {
    name: String,
    device: u64,
    inode: u64,
}

impl Sources {
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

    /// Adds a file, or a directory with the files in it. Ignores paths that can't be read; reading them later reports
    /// the error.
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

    fn add_stdin(&mut self) {
        let found = io::stdin().as_fd().try_clone_to_owned().and_then(|stdin| File::from(stdin).metadata());
        if let Ok(found) = found {
            self.note("standard input".to_owned(), &found);
        }
    }

    fn note(&mut self, name: String, found: &Metadata) {
        // Writing to devices and pipes destroys no input.
        if found.is_file() {
            self.0.push(SourceIdentity { name, device: found.dev(), inode: found.ino() });
        }
    }

    pub fn name_of(&self, found: &Metadata) -> Option<&str> {
        let is_it = |source: &&SourceIdentity| (source.device, source.inode) == (found.dev(), found.ino());
        self.0.iter().find(is_it).map(|source| source.name.as_str())
    }
}
