//! Steps that touch no file: `session_setup`, `tree_connect`, `echo` and `think`.

use super::{CompiledStep, StepKind, act};
use crate::workload::action::Action;
use crate::workload::synthetic::compile::{REQUIRED, StepField, names};
use crate::workload::synthetic::source::times;
use smbscope_client::TreeConnectTarget;

const TREES: [(&str, TreeConnectTarget); 2] = [("own", TreeConnectTarget::Own), ("IPC$", TreeConnectTarget::Ipc)];
const SHARE: StepField =
    StepField { key: "share", names: &names(&TREES), about: "`\"own\"`: of the target", default: "" };
const TIME: StepField = StepField::new("time", REQUIRED, "a [time](#sizes-and-times)");

pub(super) const SESSION_SETUP: StepKind = StepKind::new(
    "session_setup",
    "re-authenticates on the session (two requests with NTLM); opens and tree connects stay",
    &[],
    |_| Ok(act(|_| Action::SessionSetup)),
);

pub(super) const TREE_CONNECT: StepKind =
    StepKind::new("tree_connect", "connects to a share once more and disconnects", &[SHARE], |step| {
        let tree = step.choice(&SHARE, &TREES)?;
        Ok(act(move |_| Action::TreeConnect(tree)))
    });

pub(super) const ECHO: StepKind = StepKind::new("echo", "a round trip", &[], |_| Ok(act(|_| Action::Echo)));

pub(super) const THINK: StepKind = StepKind::new("think", "waits", &[TIME], |step| {
    let Some(time) = step.parsed(&TIME, times)? else {
        return Err(step.error("the step has no time", "add time = \"10ms\""));
    };
    let think = act(move |user| Action::Think(time.get_ref().draw(&mut user.random)));
    Ok(CompiledStep { is_counted: false, ..think })
});
