//! State of one user, and what its steps do with it: choose files, write paths, place transfers.

use super::Synthetic;
use crate::workload::UserSeat;
use crate::workload::action::{Action, HandleSlot};
use crate::workload::draw::SizeDistribution;
use crate::workload::paths::FileSet;
use smbscope_client::{CreateDisposition, FileRange, WholeFile, create_options};
use smbscope_stats::Random;
use std::any::Any;
use std::fmt::{Debug, Write};
use std::sync::Arc;

/// Size at which a file that grows without end wraps around to its beginning.
const LARGEST_NEW_FILE: u64 = 1 << 30;
/// FILE_SHARE_READ, FILE_SHARE_WRITE and FILE_SHARE_DELETE.
const SHARE_ALL: u32 = 0x7;

#[derive(Debug)]
pub(super) struct SyntheticUser {
    pub(super) random: Random,
    pub(super) files: Arc<FileSet>,
    /// The file that later steps call "same".
    pub(super) file: Option<ChosenFile>,
    pub(super) progress: StepProgress,
    pub(super) ranges: Vec<FileRange>,
    pub(super) whole_files: Vec<WholeFile>,
    pub(super) open: Vec<SyntheticOpen>,
    /// Number of files and directories created so far. Each has a unique name.
    pub(super) made: u64,
    pub(super) directory: u64,
    in_turn: u32,
    set: String,
    pub(super) own: String,
    pub(super) path: String,
    pub(super) other: String,
}

/// Choice of a file in a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choose {
    Random,
    Next,
    Same,
    New,
    Missing,
}

impl Choose {
    pub(super) const NAMED: [(&'static str, Choose); 5] = [
        ("random", Choose::Random),
        ("next", Choose::Next),
        ("same", Choose::Same),
        ("new", Choose::New),
        ("missing", Choose::Missing),
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Offset(u64),
    /// A random multiple of the length within the file.
    Random,
    /// After the previous transfer, or from the beginning if the file has no room left.
    Sequential,
}

impl At {
    pub(super) fn after(self, done: u64) -> At {
        match self {
            At::Offset(offset) => At::Offset(offset + done),
            other => other,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChosenFile {
    pub(super) name: ChosenFileName,
    pub(super) size: u64,
}

impl ChosenFile {
    pub(super) const MISSING: ChosenFile = ChosenFile { name: ChosenFileName::Missing, size: 0 };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChosenFileName {
    Set(u32),
    New(u64),
    Missing,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct SyntheticOpen {
    pub(super) file: ChosenFile,
    pub(super) position: u64,
}

/// Position within a step of several actions, in a type of the step.
#[derive(Debug, Default)]
pub(super) struct StepProgress(Option<Box<dyn Any + Send>>);

impl StepProgress {
    pub(super) fn get<T: Copy + 'static>(&self) -> Option<T> {
        self.0.as_ref()?.downcast_ref().copied()
    }

    /// Keeps the position of the next action, or forgets it with the last.
    pub(super) fn set<T: Send + 'static>(&mut self, position: Option<T>) {
        match (position, self.0.as_mut().and_then(|kept| kept.downcast_mut())) {
            (Some(position), Some(kept)) => *kept = position,
            (position, _) => self.0 = position.map(|position| Box::new(position) as Box<dyn Any + Send>),
        }
    }
}

impl SyntheticUser {
    pub(super) fn new(synthetic: &Synthetic, seat: &UserSeat) -> SyntheticUser {
        let files = Arc::clone(&synthetic.files);
        let mut set = String::new();
        files.root(&mut set, &seat.directory, files.owner(seat.number));
        let nothing = SyntheticOpen { file: ChosenFile::MISSING, position: 0 };
        SyntheticUser {
            random: Random::new(&[seat.seed, synthetic.salt, u64::from(seat.number)]),
            file: None,
            progress: StepProgress::default(),
            ranges: Vec::new(),
            whole_files: Vec::new(),
            open: vec![nothing; synthetic.slots as usize],
            made: 0,
            directory: 0,
            // Users of a shared set start at different files.
            in_turn: (u64::from(seat.number) * u64::from(files.files) / u64::from(seat.of.max(1))) as u32,
            files,
            set,
            own: format!("{}\\new", seat.own_directory()),
            path: String::new(),
            other: String::new(),
        }
    }

    /// Chooses the file of a step, which later steps refer to as "same".
    pub(super) fn pick(&mut self, choose: Choose) -> ChosenFile {
        let count = self.files.files;
        let file = match choose {
            Choose::Random => {
                let file = self.random.below(u64::from(count)) as u32;
                self.file_of_set(file)
            }
            Choose::Next => {
                let file = self.in_turn % count.max(1);
                self.in_turn = (file + 1) % count.max(1);
                self.file_of_set(file)
            }
            Choose::New => {
                self.made += 1;
                ChosenFile { name: ChosenFileName::New(self.made), size: 0 }
            }
            Choose::Same => self.file.unwrap_or(ChosenFile::MISSING),
            Choose::Missing => return ChosenFile::MISSING,
        };
        self.file = Some(file);
        file
    }

    pub(super) fn file_of_set(&self, file: u32) -> ChosenFile {
        ChosenFile { name: ChosenFileName::Set(file), size: self.files.size(file) }
    }

    pub(super) fn write_path(&mut self, name: ChosenFileName) {
        self.path.clone_from(if matches!(name, ChosenFileName::Set(_)) { &self.set } else { &self.own });
        self.path.push('\\');
        let _ = match name {
            ChosenFileName::Set(file) => {
                self.files.file_name(&mut self.path, file);
                Ok(())
            }
            ChosenFileName::New(number) => write!(self.path, "file{number:08}.dat"),
            ChosenFileName::Missing => write!(self.path, "missing.dat"),
        };
    }

    pub(super) fn write_set_directory(&mut self, number: u32) {
        self.path.clone_from(&self.set);
        self.path.push('\\');
        self.files.directory_name(&mut self.path, number);
    }

    pub(super) fn write_directory(&mut self) {
        self.path.clear();
        let _ = write!(self.path, "{}\\dir{:08}", self.own, self.directory);
    }

    pub(super) fn open(
        &mut self,
        slot: HandleSlot,
        file: ChosenFile,
        access: u32,
        disposition: CreateDisposition,
    ) -> Action<'_> {
        self.open[slot.0 as usize] = SyntheticOpen { file, position: 0 };
        self.write_path(file.name);
        Action::Open {
            slot,
            path: &self.path,
            access,
            share: SHARE_ALL,
            disposition,
            options: create_options::NON_DIRECTORY,
            attributes: 0,
        }
    }

    pub(super) fn transfer(&mut self, slot: HandleSlot, at: At, length: &SizeDistribution, writes: bool) -> Action<'_> {
        let (offset, length) = self.range(slot, at, length, writes);
        if writes { Action::Write { slot, offset, length } } else { Action::Read { slot, offset, length } }
    }

    /// Places the next transfer of an open file. Returns offset and length.
    pub(super) fn range(&mut self, slot: HandleSlot, at: At, length: &SizeDistribution, writes: bool) -> (u64, u32) {
        let open = &mut self.open[slot.0 as usize];
        let (offset, length) = place(&mut self.random, *open, at, length, writes);
        let end = offset + u64::from(length);
        open.position = end;
        if writes && matches!(open.file.name, ChosenFileName::New(_)) {
            let size = open.file.size.max(end);
            self.resize(slot, size);
        }
        (offset, length)
    }

    /// Remembers the size of an open file.
    pub(super) fn resize(&mut self, slot: HandleSlot, size: u64) {
        let file = &mut self.open[slot.0 as usize].file;
        file.size = size;
        if let Some(current) = self.file.as_mut().filter(|current| current.name == file.name) {
            current.size = size;
        }
    }
}

/// Returns offset and length of a transfer. Files of the set never grow, and reads stay within the file unless the
/// workload gives a larger offset.
pub(super) fn place(
    random: &mut Random,
    open: SyntheticOpen,
    at: At,
    length: &SizeDistribution,
    writes: bool,
) -> (u64, u32) {
    let size = open.file.size;
    let grows = writes && matches!(open.file.name, ChosenFileName::New(_));
    let mut length = length.draw(random);
    if !grows && size > 0 {
        length = length.min(size);
    }
    let room = if grows { LARGEST_NEW_FILE } else { size };
    let offset = match at {
        At::Offset(offset) if writes && !grows => offset.min(size - length),
        At::Offset(offset) => offset,
        At::Random if grows => random.below(size / length + 1) * length,
        At::Random => random.below((size / length).max(1)) * length,
        At::Sequential if open.position + length > room => 0,
        At::Sequential => open.position,
    };
    // Lengths are limited by the largest step, far below 4 GiB.
    (offset, u32::try_from(length).unwrap_or(u32::MAX))
}
