//! Steps for new files by path: `rename` and `remove`.

use super::{StepKind, act};
use crate::workload::action::Action;
use crate::workload::synthetic::user::{ChosenFile, ChosenFileName};

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
