//! One user of a TOML workload: chooses an operation, performs its steps, thinks, and chooses the next.

use super::super::action::{Action, Expected, HandleSlot, Script, ScriptStep};
use super::super::draw::SizeDistribution;
use super::super::file_set::FileSet;
use super::super::{Own, UserSeat};
use super::{At, Choose, Directory, OperationOrder, SHARE_ALL, Synthetic, SyntheticStep, TransferLength, What};
use smbscope_client::{ByteRangeLock, CreateDisposition, FileRange, WholeFile};
use smbscope_stats::Random;
use std::fmt::Write;
use std::sync::Arc;

/// Size at which a file that grows without end wraps around to its beginning.
const LARGEST_NEW_FILE: u64 = 1 << 30;

#[derive(Debug)]
pub(in super::super) struct SyntheticScript {
    synthetic: Arc<Synthetic>,
    user: SyntheticUser,
}

#[derive(Debug)]
pub(super) struct SyntheticUser {
    pub(super) random: Random,
    next: SyntheticPhase,
    /// In a sequence: current operation, and number of consecutive runs completed.
    choice: usize,
    round: u64,
    passes: u32,
    file: Option<ChosenFile>,
    pub(super) place: Option<StepProgress>,
    pub(super) ranges: Vec<FileRange>,
    pub(super) whole_files: Vec<WholeFile>,
    pub(super) open: Vec<SyntheticOpen>,
    /// Number of files and directories created so far. Each has a unique name.
    made: u64,
    directory: u64,
    in_turn: u32,
    pub(super) set: String,
    own: String,
    pub(super) path: String,
    other: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SyntheticPhase {
    Empty,
    Make,
    Start(usize),
    Choose,
    Operation { choice: usize, step: usize },
    Think,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChosenFile {
    pub(super) name: ChosenFileName,
    pub(super) size: u64,
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

/// Position within a step of several parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepProgress {
    Transfer { done: u64, of: u64 },
    Walk { directory: u32, stage: Stage },
    Ahead(Ahead),
}

/// Position of a walk with several files at once, which lists directories ahead of the files that it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ahead {
    pub(super) listed: u32,
    /// Number of files in them that were not read yet.
    pub(super) known: u32,
    /// Next of these files: its directory and its index there.
    pub(super) directory: u32,
    pub(super) place: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    List,
    Open(u32),
    Read { file: u32, done: u64 },
    Close(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepPart {
    Whole,
    Transfer { at: At, length: u64 },
    Walk { directory: u32, stage: Stage },
    Files { from: Ahead, count: u32 },
}

impl StepPart {
    pub(super) fn transfer(self) -> (At, u64) {
        match self {
            StepPart::Transfer { at, length } => (at, length),
            _ => (At::Offset(0), 1),
        }
    }
}

impl SyntheticScript {
    pub(in super::super) fn new(synthetic: Arc<Synthetic>, seat: &UserSeat) -> SyntheticScript {
        let (mut set, own) = (String::new(), format!("{}\\new", seat.own_directory()));
        synthetic.files.root(&mut set, &seat.directory, synthetic.files.owner(seat.number));
        let nothing = SyntheticOpen { file: ChosenFile { name: ChosenFileName::Missing, size: 0 }, position: 0 };
        let user = SyntheticUser {
            random: Random::new(&[seat.seed, synthetic.salt, u64::from(seat.number)]),
            next: SyntheticPhase::first(&synthetic),
            choice: 0,
            round: 0,
            passes: 0,
            file: None,
            place: None,
            ranges: Vec::new(),
            whole_files: Vec::new(),
            open: vec![nothing; synthetic.slots as usize],
            made: 0,
            directory: 0,
            // Users of a shared set start at different files.
            in_turn: (u64::from(seat.number) * u64::from(synthetic.files.files) / u64::from(seat.of.max(1))) as u32,
            set,
            own,
            path: String::new(),
            other: String::new(),
        };
        SyntheticScript { synthetic, user }
    }
}

impl Script for SyntheticScript {
    fn operations(&self) -> &[String] {
        self.synthetic.operations()
    }

    fn next(&mut self) -> Option<ScriptStep<'_>> {
        let SyntheticScript { synthetic, user } = self;
        let next = match user.next {
            SyntheticPhase::Choose => user.choose(synthetic),
            next => next,
        };
        let line = match next {
            SyntheticPhase::Start(step) => Some(&synthetic.start[step]),
            SyntheticPhase::Operation { choice, step } => Some(&synthetic.choices[choice].1[step]),
            _ => None,
        };
        let (part, is_last, completes) =
            line.map_or((StepPart::Whole, true, true), |line| user.part(&synthetic.files, &line.what));
        user.next = if is_last { user.after(next, synthetic) } else { next };
        if let Some(line) = line {
            // The last part completes an operation only if the whole step does.
            let completes = if is_last { line.completes } else { completes };
            return Some(ScriptStep { completes, ..user.step(synthetic, line, part) });
        }
        Some(match next {
            SyntheticPhase::Empty => {
                user.path.clone_from(&user.own);
                let directory = user.own.strip_suffix("\\new").unwrap_or(&user.own);
                let own = Own { made: &synthetic.made, directory };
                uncounted(Action::RemoveTree(&user.path, own), Expected::Anything)
            }
            SyntheticPhase::Make => {
                user.path.clone_from(&user.own);
                uncounted(Action::MakeDirectory(&user.path), Expected::Success)
            }
            _ => uncounted(Action::Think(synthetic.think.draw(&mut user.random)), Expected::Anything),
        })
    }

    fn restart(&mut self) {
        self.user.next = SyntheticPhase::first(&self.synthetic);
        (self.user.file, self.user.place) = (None, None);
        (self.user.round, self.user.choice) = (0, 0);
    }

    fn sets_up(&self) -> bool {
        matches!(self.user.next, SyntheticPhase::Empty | SyntheticPhase::Make | SyntheticPhase::Start(_))
    }

    fn passes(&self) -> Option<u32> {
        self.synthetic.has_end().then_some(self.user.passes)
    }
}

impl SyntheticPhase {
    fn first(synthetic: &Synthetic) -> SyntheticPhase {
        match synthetic.makes {
            true => SyntheticPhase::Empty,
            false => SyntheticPhase::start(synthetic, 0),
        }
    }

    fn start(synthetic: &Synthetic, step: usize) -> SyntheticPhase {
        if step < synthetic.start.len() { SyntheticPhase::Start(step) } else { SyntheticPhase::Choose }
    }
}

fn uncounted(action: Action<'_>, expected: Expected) -> ScriptStep<'_> {
    ScriptStep { action, operation: None, expected, completes: false, line: None }
}

impl SyntheticUser {
    fn after(&mut self, next: SyntheticPhase, synthetic: &Synthetic) -> SyntheticPhase {
        match next {
            SyntheticPhase::Empty => SyntheticPhase::Make,
            SyntheticPhase::Make => SyntheticPhase::start(synthetic, 0),
            SyntheticPhase::Start(step) => SyntheticPhase::start(synthetic, step + 1),
            SyntheticPhase::Operation { choice, step } if step + 1 < synthetic.choices[choice].1.len() => {
                SyntheticPhase::Operation { choice, step: step + 1 }
            }
            SyntheticPhase::Operation { choice, .. } => {
                self.performed(choice, synthetic);
                if synthetic.think.is_zero() { SyntheticPhase::Choose } else { SyntheticPhase::Think }
            }
            SyntheticPhase::Think | SyntheticPhase::Choose => SyntheticPhase::Choose,
        }
    }

    /// Advances a sequence when the last step of an operation is handed out.
    fn performed(&mut self, choice: usize, synthetic: &Synthetic) {
        if synthetic.order == OperationOrder::Random {
            return;
        }
        self.round += 1;
        if self.round >= synthetic.choices[choice].0 {
            (self.round, self.choice) = (0, choice + 1);
        }
        if self.choice == synthetic.choices.len() {
            self.choice = 0;
            self.passes += 1;
        }
    }

    fn choose(&mut self, synthetic: &Synthetic) -> SyntheticPhase {
        self.file = None;
        if synthetic.order == OperationOrder::Sequence {
            return SyntheticPhase::Operation { choice: self.choice, step: 0 };
        }
        let total = synthetic.choices.last().map_or(0, |(sum, _)| *sum);
        let drawn = self.random.below(total);
        let choice = synthetic.choices.partition_point(|(sum, _)| *sum <= drawn);
        SyntheticPhase::Operation { choice, step: 0 }
    }

    fn step(&mut self, synthetic: &Synthetic, line: &SyntheticStep, part: StepPart) -> ScriptStep<'_> {
        let (operation, completes, expected) = (line.operation, line.completes, line.expected);
        ScriptStep {
            action: self.action(&synthetic.files, &line.what, part),
            operation,
            expected,
            completes,
            line: None,
        }
    }

    fn action(&mut self, files: &FileSet, what: &What, part: StepPart) -> Action<'_> {
        match what {
            What::Open { slot, file, access, disposition } => {
                self.open_action(files, *slot, *file, (*access, *disposition))
            }
            What::Close { slot } => Action::Close(HandleSlot(*slot)),
            What::Read { slot, at, length } => self.read_action(*slot, *at, length, part),
            What::Write { slot, at, length } => self.write_action(*slot, *at, length, part),
            What::Flush { slot } => Action::Flush(HandleSlot(*slot)),
            What::Lock { slot, offset, length, exclusive } => {
                let range = ByteRangeLock { offset: *offset, length: *length, exclusive: *exclusive, wait: false };
                Action::Lock(HandleSlot(*slot), range)
            }
            What::Unlock { slot, offset, length } => {
                Action::Unlock { slot: HandleSlot(*slot), offset: *offset, length: *length }
            }
            What::QueryFile { slot, info } => Action::QueryFile(HandleSlot(*slot), *info),
            What::QueryPath { file, info } => Action::QueryPath(self.pick_path(files, *file), *info),
            What::QueryFileSystem { info } => Action::QueryFileSystem(*info),
            What::SetBasic { slot } => Action::SetBasic(HandleSlot(*slot)),
            What::SetEnd { slot, size } => self.set_end_action(*slot, *size),
            What::List { directory, pattern, info } => {
                Action::List { pattern: self.search_path(files, directory, pattern), info: *info, most: 0 }
            }
            What::Remove => self.remove_action(files),
            What::Rename => self.rename_action(files),
            What::MakeDirectory => self.make_directory_action(),
            What::RemoveDirectory => Action::RemoveDirectory(self.write_directory()),
            What::OpenReadClose { file, at, length } => self.open_read_close_action(files, *file, *at, length),
            What::Walk { slot, block, parallel } => match part {
                StepPart::Walk { directory, stage } => self.walk_action(files, *slot, *block, directory, stage),
                StepPart::Files { from, count } => self.files_action(files, (*block, *parallel), from, count),
                _ => Action::Echo,
            },
            What::Control { control, slot } => Action::Control { control, slot: slot.map(HandleSlot) },
            What::SessionSetup => Action::SessionSetup,
            What::TreeConnect(tree) => Action::TreeConnect(*tree),
            What::Echo => Action::Echo,
            What::Think(time) => Action::Think(time.draw(&mut self.random)),
        }
    }

    fn open_action(
        &mut self,
        files: &FileSet,
        slot: u32,
        file: Choose,
        (access, disposition): (u32, CreateDisposition),
    ) -> Action<'_> {
        let file = self.pick(files, file);
        self.open[slot as usize] = SyntheticOpen { file, position: 0 };
        self.write_path(files, file.name);
        Action::Open {
            slot: HandleSlot(slot),
            path: &self.path,
            access,
            share: SHARE_ALL,
            disposition,
            options: smbscope_client::create_options::NON_DIRECTORY,
            attributes: 0,
        }
    }

    fn read_action(&mut self, slot: u32, at: At, length: &TransferLength, part: StepPart) -> Action<'_> {
        if let TransferLength::Blocks { block, depth: depth @ 2.., .. } = length {
            return self.queue(slot, part.transfer(), (*block, *depth), false);
        }
        let (offset, length) = self.transfer_part(slot, at, length, part, false);
        Action::Read { slot: HandleSlot(slot), offset, length }
    }

    fn write_action(&mut self, slot: u32, at: At, length: &TransferLength, part: StepPart) -> Action<'_> {
        if let TransferLength::Blocks { block, depth: depth @ 2.., .. } = length {
            return self.queue(slot, part.transfer(), (*block, *depth), true);
        }
        let (offset, length) = self.transfer_part(slot, at, length, part, true);
        Action::Write { slot: HandleSlot(slot), offset, length }
    }

    fn set_end_action(&mut self, slot: u32, size: u64) -> Action<'static> {
        self.open[slot as usize].file.size = size;
        self.remember(slot);
        Action::SetEnd(HandleSlot(slot), size)
    }

    fn remove_action(&mut self, files: &FileSet) -> Action<'_> {
        let name = self.file.take().map_or(ChosenFileName::Missing, |file| file.name);
        self.write_path(files, name);
        Action::RemoveFile(&self.path)
    }

    fn rename_action(&mut self, files: &FileSet) -> Action<'_> {
        let file = self.file.unwrap_or(ChosenFile { name: ChosenFileName::Missing, size: 0 });
        self.write_path(files, file.name);
        std::mem::swap(&mut self.path, &mut self.other);
        self.made += 1;
        let name = ChosenFileName::New(self.made);
        self.file = Some(ChosenFile { name, ..file });
        self.write_path(files, name);
        Action::Rename { from: &self.other, to: &self.path }
    }

    fn make_directory_action(&mut self) -> Action<'_> {
        self.made += 1;
        self.directory = self.made;
        Action::MakeDirectory(self.write_directory())
    }

    fn open_read_close_action(
        &mut self,
        files: &FileSet,
        file: Choose,
        at: At,
        length: &SizeDistribution,
    ) -> Action<'_> {
        let file = self.pick(files, file);
        self.write_path(files, file.name);
        let (offset, length) = place(&mut self.random, SyntheticOpen { file, position: 0 }, at, length, false);
        Action::OpenReadClose { path: &self.path, offset, length }
    }

    fn pick_path(&mut self, files: &FileSet, choose: Choose) -> &str {
        let file = self.pick(files, choose);
        self.write_path(files, file.name);
        &self.path
    }

    /// Returns the path to list: a directory and a pattern.
    fn search_path(&mut self, files: &FileSet, directory: &Directory, pattern: &str) -> &str {
        self.path.clear();
        match directory {
            Directory::Random => {
                self.path.push_str(&self.set);
                self.path.push('\\');
                let number = self.random.below(u64::from(files.directories)) as u32;
                files.directory_name(&mut self.path, number);
            }
            Directory::New => self.path.push_str(&self.own),
        }
        self.path.push('\\');
        self.path.push_str(pattern);
        &self.path
    }

    /// Chooses the file of a step, which later steps refer to as "same".
    fn pick(&mut self, files: &FileSet, choose: Choose) -> ChosenFile {
        let of_set = |file: u32| ChosenFile { name: ChosenFileName::Set(file), size: files.size(file) };
        let file = match choose {
            Choose::Random => of_set(self.random.below(u64::from(files.files)) as u32),
            Choose::Next => {
                let file = self.in_turn % files.files.max(1);
                self.in_turn = (file + 1) % files.files.max(1);
                of_set(file)
            }
            Choose::New => {
                self.made += 1;
                ChosenFile { name: ChosenFileName::New(self.made), size: 0 }
            }
            Choose::Same => self.file.unwrap_or(ChosenFile { name: ChosenFileName::Missing, size: 0 }),
            Choose::Missing => return ChosenFile { name: ChosenFileName::Missing, size: 0 },
        };
        self.file = Some(file);
        file
    }

    pub(super) fn write_path(&mut self, files: &FileSet, name: ChosenFileName) {
        self.path.clear();
        self.path.push_str(if matches!(name, ChosenFileName::Set(_)) { &self.set } else { &self.own });
        self.path.push('\\');
        let _ = match name {
            ChosenFileName::Set(file) => {
                files.file_name(&mut self.path, file);
                Ok(())
            }
            ChosenFileName::New(number) => write!(self.path, "file{number:08}.dat"),
            ChosenFileName::Missing => write!(self.path, "missing.dat"),
        };
    }

    fn write_directory(&mut self) -> &str {
        self.path.clear();
        let _ = write!(self.path, "{}\\dir{:08}", self.own, self.directory);
        &self.path
    }

    fn transfer_part(
        &mut self,
        slot: u32,
        at: At,
        length: &TransferLength,
        part: StepPart,
        writes: bool,
    ) -> (u64, u32) {
        match length {
            TransferLength::Once(length) => self.transfer(slot, at, length, writes),
            TransferLength::Blocks { .. } => {
                let (at, length) = part.transfer();
                self.transfer(slot, at, &SizeDistribution::Fixed(length), writes)
            }
        }
    }

    pub(super) fn transfer(&mut self, slot: u32, at: At, length: &SizeDistribution, writes: bool) -> (u64, u32) {
        let open = self.open[slot as usize];
        let (offset, length) = place(&mut self.random, open, at, length, writes);
        let end = offset + u64::from(length);
        let open = &mut self.open[slot as usize];
        open.position = end;
        if writes && matches!(open.file.name, ChosenFileName::New(_)) {
            open.file.size = open.file.size.max(end);
            self.remember(slot);
        }
        (offset, length)
    }

    fn remember(&mut self, slot: u32) {
        let file = self.open[slot as usize].file;
        if let Some(current) = self.file.as_mut().filter(|current| current.name == file.name) {
            current.size = file.size;
        }
    }
}

/// Returns offset and length of a transfer. Files of the set never grow, and reads stay within the file unless the
/// workload gives a larger offset.
fn place(random: &mut Random, open: SyntheticOpen, at: At, length: &SizeDistribution, writes: bool) -> (u64, u32) {
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
