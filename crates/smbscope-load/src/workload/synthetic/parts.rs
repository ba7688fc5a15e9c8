//! Steps that expand to several: transfers in blocks, and walks through the directories of the set. Each part is a step
//! of its own with its own response time.

use super::super::action::{Action, HandleSlot};
use super::super::draw::SizeDistribution;
use super::super::file_set::FileSet;
use super::script::{Ahead, ChosenFile, ChosenFileName, Stage, StepPart, StepProgress, SyntheticOpen, SyntheticUser};
use super::{At, SHARE_ALL, Total, TransferLength, What};
use smbscope_client::{CreateDisposition, FileRange, Info, WholeFile, access, create_options};

/// Blocks per queue place that are handed out together. The drain at the end, with fewer commands outstanding, is then
/// a hundredth of the time.
const BLOCKS_A_PLACE: u64 = 64;
/// Bytes handed out together, unless the queue needs more to stay full. A load point can only end between two parts.
const BYTES_AT_ONCE: u64 = 64 << 20;

/// Files per place of a parallel walk that are handed out together; more if a directory holds more.
const FILES_A_PLACE: u32 = 16;

fn files_in(files: &FileSet, directory: u32) -> u32 {
    files.files.saturating_sub(directory).div_ceil(files.directories.max(1))
}

fn at_once(block: u64, depth: u32) -> u64 {
    let places = u64::from(depth);
    match depth {
        0 | 1 => block,
        _ => (BYTES_AT_ONCE / block).clamp(4 * places, BLOCKS_A_PLACE * places) * block,
    }
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

impl SyntheticUser {
    /// Returns the next part of a step, whether it is the last, and whether it completes an operation.
    pub(super) fn part(&mut self, files: &FileSet, what: &What) -> (StepPart, bool, bool) {
        match what {
            What::Read { slot, at, length: TransferLength::Blocks { of, block, depth } }
            | What::Write { slot, at, length: TransferLength::Blocks { of, block, depth } } => {
                self.block(*slot, *at, of, at_once(*block, *depth))
            }
            What::Walk { block, parallel: 0 | 1, .. } => self.walk(files, *block),
            What::Walk { parallel, .. } => self.walk_ahead(files, *parallel),
            _ => (StepPart::Whole, true, true),
        }
    }

    fn block(&mut self, slot: u32, at: At, of: &Total, block: u64) -> (StepPart, bool, bool) {
        let (done, of) = match self.place.take() {
            Some(StepProgress::Transfer { done, of }) => (done, of),
            _ => {
                let of = match of {
                    Total::File => self.open[slot as usize].file.size,
                    Total::Bytes(sizes) => sizes.draw(&mut self.random),
                };
                // For an empty file, request one byte; the server answers END_OF_FILE.
                (0, of.max(1))
            }
        };
        let length = block.min(of - done);
        let at = match at {
            At::Offset(offset) => At::Offset(offset + done),
            other => other,
        };
        let is_last = done + length >= of;
        if !is_last {
            self.place = Some(StepProgress::Transfer { done: done + length, of });
        }
        (StepPart::Transfer { at, length }, is_last, is_last)
    }

    fn walk(&mut self, files: &FileSet, block: u64) -> (StepPart, bool, bool) {
        let (directory, stage) = match self.place.take() {
            Some(StepProgress::Walk { directory, stage }) => (directory, stage),
            _ => (0, Stage::List),
        };
        let next_file = |file: u32| match file.checked_add(files.directories) {
            Some(next) if next < files.files => Some((directory, Stage::Open(next))),
            _ => None,
        };
        let next_directory = || (directory + 1 < files.directories).then_some((directory + 1, Stage::List));
        let next = match stage {
            Stage::List if directory < files.files => Some((directory, Stage::Open(directory))),
            Stage::List => next_directory(),
            Stage::Open(file) => Some((directory, Stage::Read { file, done: 0 })),
            Stage::Read { file, done } => {
                let done = done + block.min(files.size(file) - done);
                let stage = if done < files.size(file) { Stage::Read { file, done } } else { Stage::Close(file) };
                Some((directory, stage))
            }
            Stage::Close(file) => next_file(file).or_else(next_directory),
        };
        self.place = next.map(|(directory, stage)| StepProgress::Walk { directory, stage });
        let completes = matches!(stage, Stage::List | Stage::Close(_));
        (StepPart::Walk { directory, stage }, next.is_none(), completes)
    }

    /// Lists directories until enough files are known for one batch, then reads the batch.
    fn walk_ahead(&mut self, files: &FileSet, parallel: u32) -> (StepPart, bool, bool) {
        let mut ahead = match self.place.take() {
            Some(StepProgress::Ahead(ahead)) => ahead,
            _ => Ahead::default(),
        };
        if ahead.listed < files.directories && ahead.known < FILES_A_PLACE.saturating_mul(parallel) {
            let part = StepPart::Walk { directory: ahead.listed, stage: Stage::List };
            ahead.known += files_in(files, ahead.listed);
            ahead.listed += 1;
            let is_last = ahead.listed == files.directories && ahead.known == 0;
            self.place = (!is_last).then_some(StepProgress::Ahead(ahead));
            return (part, is_last, true);
        }
        let count = ahead.known.min(FILES_A_PLACE.saturating_mul(parallel));
        let part = StepPart::Files { from: ahead, count };
        (0..count).for_each(|_| ahead.pass(files));
        let is_last = ahead.listed == files.directories && ahead.known == 0;
        self.place = (!is_last).then_some(StepProgress::Ahead(ahead));
        (part, is_last, true)
    }

    pub(super) fn files_action(
        &mut self,
        files: &FileSet,
        (block, at_once): (u64, u32),
        mut ahead: Ahead,
        count: u32,
    ) -> Action<'_> {
        let mut whole_files = std::mem::take(&mut self.whole_files);
        whole_files.resize_with(count as usize, WholeFile::default);
        for whole in &mut whole_files {
            let file = ahead.directory + ahead.place * files.directories;
            self.write_path(files, ChosenFileName::Set(file));
            whole.path.clone_from(&self.path);
            whole.size = files.size(file);
            ahead.pass(files);
        }
        self.whole_files = whole_files;
        // A block is never larger than a single transfer.
        let block = u32::try_from(block).unwrap_or(u32::MAX);
        Action::ReadFiles { files: &self.whole_files, block, at_once }
    }

    pub(super) fn queue(
        &mut self,
        slot: u32,
        (at, bytes): (At, u64),
        (block, depth): (u64, u32),
        writes: bool,
    ) -> Action<'_> {
        self.ranges.clear();
        let mut done = 0;
        while done < bytes {
            let at = match at {
                At::Offset(offset) => At::Offset(offset + done),
                other => other,
            };
            let (offset, length) = self.transfer(slot, at, &SizeDistribution::Fixed(block.min(bytes - done)), writes);
            self.ranges.push(FileRange { offset, length });
            done += block;
        }
        Action::Queue { slot: HandleSlot(slot), ranges: &self.ranges, depth, writes }
    }

    pub(super) fn walk_action(
        &mut self,
        files: &FileSet,
        slot: u32,
        block: u64,
        directory: u32,
        stage: Stage,
    ) -> Action<'_> {
        let slot_of = HandleSlot(slot);
        match stage {
            Stage::List => {
                self.path.clone_from(&self.set);
                self.path.push('\\');
                files.directory_name(&mut self.path, directory);
                self.path.push_str("\\*");
                Action::List { pattern: &self.path, info: Info::FILE_BOTH_DIRECTORY_INFORMATION, most: 0 }
            }
            Stage::Open(file) => {
                let opened = ChosenFile { name: ChosenFileName::Set(file), size: files.size(file) };
                self.open[slot as usize] = SyntheticOpen { file: opened, position: 0 };
                self.write_path(files, opened.name);
                Action::Open {
                    slot: slot_of,
                    path: &self.path,
                    access: access::READ_DATA | access::READ_ATTRIBUTES,
                    share: SHARE_ALL,
                    disposition: CreateDisposition::Open,
                    options: create_options::NON_DIRECTORY,
                    attributes: 0,
                }
            }
            Stage::Read { done, .. } => {
                let size = self.open[slot as usize].file.size;
                let (offset, length) =
                    self.transfer(slot, At::Offset(done), &SizeDistribution::Fixed(block.min(size - done)), false);
                Action::Read { slot: slot_of, offset, length }
            }
            Stage::Close(_) => Action::Close(slot_of),
        }
    }
}
