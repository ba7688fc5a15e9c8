//! `delete`.

use super::{Part, StepKind, in_parts};
use crate::workload::action::Action;
use crate::workload::synthetic::user::ChosenFile;
use smbscope_client::{CreateDisposition, access};

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
