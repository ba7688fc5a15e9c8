//! `walk`.

use super::transfer::{BLOCK, block};
use super::{CompiledStep, Part, StepKind, in_parts};
use crate::workload::action::{Action, HandleSlot};
use crate::workload::draw::SizeDistribution;
use crate::workload::file_set::FileSet;
use crate::workload::synthetic::compile::StepField;
use crate::workload::synthetic::user::{At, Choose, ChosenFileName, SyntheticUser};
use smbscope_client::{CreateDisposition, Info, WholeFile, access};

/// Files per place of a parallel walk that are handed out together; more if a directory holds more.
const FILES_A_PLACE: u32 = 16;

const PARALLEL: StepField = StepField::new("parallel", "1", "files at once, up to 256");

pub(super) const WALK: StepKind = StepKind::new(
    "walk",
    "lists each directory of the set, and opens, reads and closes each file in it",
    &[BLOCK, PARALLEL],
    |step| {
        step.must_have_files()?;
        step.must_have_content(Choose::Next)?;
        let slot = step.free_slot();
        let parallel = step.number(&PARALLEL)?;
        let block = block(step)?;
        let walk = in_parts(move |user| match parallel {
            0 | 1 => walk(user, slot, block),
            _ => walk_ahead(user, block, parallel),
        });
        Ok(CompiledStep { is_queued: parallel > 1, ..walk })
    },
);

/// Position of a walk with one file at a time: the next action.
#[derive(Debug, Clone, Copy)]
struct Walk {
    directory: u32,
    stage: WalkStage,
}

#[derive(Debug, Clone, Copy)]
enum WalkStage {
    List,
    Open(u32),
    Read { file: u32, done: u64 },
    Close(u32),
}

impl Walk {
    fn next(self, files: &FileSet, block: u64) -> Option<Walk> {
        let Walk { directory, stage } = self;
        let in_directory = |stage| Some(Walk { directory, stage });
        let next_directory =
            || (directory + 1 < files.directories).then_some(Walk { directory: directory + 1, stage: WalkStage::List });
        match stage {
            WalkStage::List if directory < files.files => in_directory(WalkStage::Open(directory)),
            WalkStage::List => next_directory(),
            WalkStage::Open(file) => in_directory(WalkStage::Read { file, done: 0 }),
            WalkStage::Read { file, done } => {
                let done = done + block.min(files.size(file) - done);
                in_directory(if done < files.size(file) {
                    WalkStage::Read { file, done }
                } else {
                    WalkStage::Close(file)
                })
            }
            WalkStage::Close(file) => match file.checked_add(files.directories) {
                Some(next) if next < files.files => in_directory(WalkStage::Open(next)),
                _ => next_directory(),
            },
        }
    }
}

fn walk(user: &mut SyntheticUser, slot: HandleSlot, block: u64) -> Part<'_> {
    let at: Walk = user.progress.get().unwrap_or(Walk { directory: 0, stage: WalkStage::List });
    let next = at.next(&user.files, block);
    user.progress.set(next);
    let action = match at.stage {
        WalkStage::List => list(user, at.directory),
        WalkStage::Open(file) => {
            let access = access::READ_DATA | access::READ_ATTRIBUTES;
            let file = user.file_of_set(file);
            user.open(slot, file, access, CreateDisposition::Open)
        }
        WalkStage::Read { file, done } => {
            let length = block.min(user.files.size(file) - done);
            user.transfer(slot, At::Offset(done), &SizeDistribution::Fixed(length), false)
        }
        WalkStage::Close(_) => Action::Close(slot),
    };
    Part { action, is_last: next.is_none(), completes: matches!(at.stage, WalkStage::List | WalkStage::Close(_)) }
}

fn list(user: &mut SyntheticUser, directory: u32) -> Action<'_> {
    user.write_set_directory(directory);
    user.path.push_str("\\*");
    Action::List { pattern: &user.path, info: Info::FILE_BOTH_DIRECTORY_INFORMATION, most: 0 }
}

/// Position of a walk with several files at once, which lists directories ahead of the files that it reads.
#[derive(Debug, Clone, Copy, Default)]
struct Ahead {
    listed: u32,
    /// Number of files in them that were not read yet.
    known: u32,
    /// Next of these files: its directory and its index there.
    directory: u32,
    place: u32,
}

impl Ahead {
    fn pass(&mut self, files: &FileSet) {
        self.known -= 1;
        self.place += 1;
        if self.place >= files_in(files, self.directory) {
            (self.directory, self.place) = (self.directory + 1, 0);
        }
    }
}

fn files_in(files: &FileSet, directory: u32) -> u32 {
    files.files.saturating_sub(directory).div_ceil(files.directories.max(1))
}

/// Lists directories until enough files are known for one batch, then reads the batch.
fn walk_ahead(user: &mut SyntheticUser, block: u64, parallel: u32) -> Part<'_> {
    let mut ahead: Ahead = user.progress.get().unwrap_or_default();
    let directory = ahead.listed;
    let batch = FILES_A_PLACE.saturating_mul(parallel);
    let lists = directory < user.files.directories && ahead.known < batch;
    if lists {
        ahead.known += files_in(&user.files, directory);
        ahead.listed += 1;
    } else {
        read_batch(user, &mut ahead, batch);
    }
    let is_last = ahead.listed == user.files.directories && ahead.known == 0;
    user.progress.set((!is_last).then_some(ahead));
    let action = match lists {
        true => list(user, directory),
        // A block is never larger than a single transfer.
        false => Action::ReadFiles { files: &user.whole_files, block: block as u32, at_once: parallel },
    };
    Part { action, is_last, completes: true }
}

fn read_batch(user: &mut SyntheticUser, ahead: &mut Ahead, most: u32) {
    let mut whole_files = std::mem::take(&mut user.whole_files);
    whole_files.resize_with(ahead.known.min(most) as usize, WholeFile::default);
    for whole in &mut whole_files {
        let file = ahead.directory + ahead.place * user.files.directories;
        user.write_path(ChosenFileName::Set(file));
        whole.path.clone_from(&user.path);
        whole.size = user.files.size(file);
        ahead.pass(&user.files);
    }
    user.whole_files = whole_files;
}
