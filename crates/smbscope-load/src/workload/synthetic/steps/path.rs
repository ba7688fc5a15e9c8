//! Steps on paths: `list`, `make_directory`, `remove_directory`, `rename`, `remove` and `delete`.

use super::{Part, StepKind, act, in_parts};
use crate::workload::action::Action;
use crate::workload::paths::{Last, below};
use crate::workload::synthetic::compile::{StepField, names};
use crate::workload::synthetic::user::{ChosenFile, ChosenFileName};
use smbscope_client::{CreateDisposition, Info, access};
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
