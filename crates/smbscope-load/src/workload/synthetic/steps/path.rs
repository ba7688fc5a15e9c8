//! Steps on paths: `list`, `make_directory`, `remove_directory`, `rename`, `remove` and `delete`; and `walk` through all
//! directories of the set.

use super::transfer::{BLOCK, block};
use super::{CompiledStep, Part, StepField, StepKind, act, in_parts, names};
use crate::workload::action::{Action, HandleSlot};
use crate::workload::draw::SizeDistribution;
use crate::workload::paths::{FileSet, Last, below};
use crate::workload::synthetic::user::{At, Choose, ChosenFile, ChosenFileName, SyntheticUser};
use smbscope_client::{CreateDisposition, Info, WholeFile, access};
use toml::Spanned;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directory {
    Random,
    New,
}

const DIRECTORIES: [(&str, Directory); 2] = [("random", Directory::Random), ("new", Directory::New)];
const LIST_INFOS: [(&str, Info); 6] = [
    ("both", Info::FILE_BOTH_DIRECTORY_INFORMATION),
    ("directory", Info::FILE_DIRECTORY_INFORMATION),
    ("full", Info::FILE_FULL_DIRECTORY_INFORMATION),
    ("names", Info::FILE_NAMES_INFORMATION),
    ("id_both", Info::FILE_ID_BOTH_DIRECTORY_INFORMATION),
    ("id_full", Info::FILE_ID_FULL_DIRECTORY_INFORMATION),
];

const DIRECTORY: StepField = StepField {
    key: "directory",
    names: &names(&DIRECTORIES),
    about: "`\"random\"`: of the set; `\"new\"`: where the user creates files",
    default: "",
};
const PATTERN: StepField = StepField::new("pattern", "`\"*\"`", "name with wildcards");
const INFO: StepField = StepField { key: "info", names: &names(&LIST_INFOS), about: "", default: "" };

pub(super) const LIST: StepKind = StepKind::new("list", "lists a directory", &[DIRECTORY, PATTERN, INFO], |step| {
    let directory = step.choice(&DIRECTORY, &DIRECTORIES)?;
    match directory {
        Directory::Random => step.must_have_files()?,
        Directory::New => step.makes_files(),
    }
    let given = step.value::<String>(&PATTERN)?;
    let span = given.as_ref().map_or_else(|| step.span(), Spanned::span);
    let hint = "write a pattern such as \"*.txt\"";
    let pattern = below(given.as_ref().map_or("*", |pattern| pattern.get_ref()), Last::Pattern)
        .map_err(|what| step.error_at(span.clone(), what, hint))?;
    if pattern.is_empty() || pattern.contains('\\') {
        return Err(step.error_at(span, "the pattern is not a name", hint));
    }
    let info = step.choice(&INFO, &LIST_INFOS)?;
    Ok(act(move |user| {
        match directory {
            Directory::Random => {
                let number = user.random.below(u64::from(user.files.directories)) as u32;
                user.write_set_directory(number);
            }
            Directory::New => user.path.clone_from(&user.own),
        }
        user.path.push('\\');
        user.path.push_str(&pattern);
        Action::List { pattern: &user.path, info, most: 0 }
    }))
});

pub(super) const MAKE_DIRECTORY: StepKind = StepKind::new("make_directory", "creates a directory", &[], |step| {
    step.makes_files();
    step.known.directory = true;
    Ok(act(|user| {
        user.made += 1;
        user.directory = user.made;
        user.write_directory();
        Action::MakeDirectory(&user.path)
    }))
});

pub(super) const REMOVE_DIRECTORY: StepKind = StepKind::new("remove_directory", "removes it", &[], |step| {
    if !std::mem::take(&mut step.known.directory) {
        let hint = "make one in a step before: { do = \"make_directory\" }";
        return Err(step.error("there is no directory to remove", hint));
    }
    let remove = act(|user| {
        user.write_directory();
        Action::RemoveDirectory(&user.path)
    });
    Ok(remove.once())
});

pub(super) const RENAME: StepKind = StepKind::new("rename", "renames the new file", &[], |step| {
    step.must_be_new(step.known.file, "rename")?;
    Ok(act(|user| {
        let file = user.file.unwrap_or(ChosenFile::MISSING);
        user.write_path(file.name);
        std::mem::swap(&mut user.path, &mut user.other);
        user.made += 1;
        let name = ChosenFileName::New(user.made);
        user.file = Some(ChosenFile { name, ..file });
        user.write_path(name);
        Action::Rename { from: &user.other, to: &user.path }
    }))
});

pub(super) const REMOVE: StepKind = StepKind::new("remove", "removes the new file", &[], |step| {
    step.must_be_new(step.known.file, "remove")?;
    step.known.file = None;
    let remove = act(|user| {
        let file = user.file.take().unwrap_or(ChosenFile::MISSING);
        user.write_path(file.name);
        Action::RemoveFile(&user.path)
    });
    Ok(remove.once())
});

/// Next action. The file is gone when the handle is closed.
#[derive(Debug, Clone, Copy)]
enum DeleteStage {
    Open,
    Mark,
    Close,
}

pub(super) const DELETE: StepKind = StepKind::new(
    "delete",
    "removes the new file as Windows Explorer does: opens it, marks it for deletion, closes it",
    &[],
    |step| {
        step.must_be_new(step.known.file, "delete")?;
        step.known.file = None;
        let slot = step.free_slot();
        let delete = in_parts(move |user| {
            let stage = user.progress.get().unwrap_or(DeleteStage::Open);
            let next = match stage {
                DeleteStage::Open => Some(DeleteStage::Mark),
                DeleteStage::Mark => Some(DeleteStage::Close),
                DeleteStage::Close => None,
            };
            user.progress.set(next);
            let action = match stage {
                DeleteStage::Open => {
                    let file = user.file.take().unwrap_or(ChosenFile::MISSING);
                    user.open(slot, file, access::DELETE | access::READ_ATTRIBUTES, CreateDisposition::Open)
                }
                DeleteStage::Mark => Action::SetDelete(slot, true),
                DeleteStage::Close => Action::Close(slot),
            };
            Part { action, is_last: next.is_none(), completes: next.is_none() }
        });
        Ok(delete.once())
    },
);

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
