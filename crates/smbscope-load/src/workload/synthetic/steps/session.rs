//! Steps that touch no data: `session_setup`, `tree_connect`, `echo`, `think`, and the queries `query_open`, `query`,
//! `query_file_system` and `ioctl`.

use super::{CompiledStep, DialectLimit, StepKind, act};
use crate::workload::WorkloadError;
use crate::workload::action::{Action, Expected};
use crate::workload::suggest;
use crate::workload::synthetic::compile::{FILE, OF, REQUIRED, StepCompiler, StepField, names};
use crate::workload::synthetic::source::times;
use smbscope_client::{FsctlProfile, Info, TreeConnectTarget};

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

const FILE_INFOS: [(&str, Info); 8] = [
    ("basic", Info::FILE_BASIC_INFORMATION),
    ("standard", Info::FILE_STANDARD_INFORMATION),
    ("all", Info::FILE_ALL_INFORMATION),
    ("network_open", Info::FILE_NETWORK_OPEN_INFORMATION),
    ("internal", Info::FILE_INTERNAL_INFORMATION),
    ("ea", Info::FILE_EA_INFORMATION),
    ("stream", Info::FILE_STREAM_INFORMATION),
    ("attribute_tag", Info::FILE_ATTRIBUTE_TAG_INFORMATION),
];
const FILE_SYSTEM_INFOS: [(&str, Info); 5] = [
    ("size", Info::FILE_FS_SIZE_INFORMATION),
    ("full_size", Info::FILE_FS_FULL_SIZE_INFORMATION),
    ("volume", Info::FILE_FS_VOLUME_INFORMATION),
    ("device", Info::FILE_FS_DEVICE_INFORMATION),
    ("attribute", Info::FILE_FS_ATTRIBUTE_INFORMATION),
];

const FILE_INFO: StepField = StepField { key: "info", names: &names(&FILE_INFOS), about: "", default: "" };
const FILE_SYSTEM_INFO: StepField =
    StepField { key: "info", names: &names(&FILE_SYSTEM_INFOS), about: "", default: "" };

pub(super) const QUERY_OPEN: StepKind = StepKind::new("query_open", "queries an open file", &[OF, FILE_INFO], |step| {
    let (slot, info) = (step.handle(0)?.slot, step.choice(&FILE_INFO, &FILE_INFOS)?);
    Ok(act(move |_| Action::QueryFile(slot, info)))
});

pub(super) const QUERY: StepKind = StepKind::new("query", "queries a path", &[FILE, FILE_INFO], |step| {
    let (file, info) = (step.file()?, step.choice(&FILE_INFO, &FILE_INFOS)?);
    let query = act(move |user| {
        let file = user.pick(file);
        user.write_path(file.name);
        Action::QueryPath(&user.path, info)
    });
    Ok(query.finding(file))
});

pub(super) const QUERY_FILE_SYSTEM: StepKind =
    StepKind::new("query_file_system", "queries the file system", &[FILE_SYSTEM_INFO], |step| {
        let info = step.choice(&FILE_SYSTEM_INFO, &FILE_SYSTEM_INFOS)?;
        Ok(act(move |_| Action::QueryFileSystem(info)))
    });

const CODE: StepField = StepField::new("code", REQUIRED, "name of a control code, listed below");

pub(super) const IOCTL: StepKind =
    StepKind::new("ioctl", "sends a control code of a file or of the server", &[CODE, OF], |step| {
        let control = control(step)?;
        let slot = if control.of_file { Some(step.handle(control.access())?.slot) } else { None };
        let ioctl = act(move |_| Action::Control { control, slot });
        let expected = Expected::SuccessOrRefusalOf(control.code);
        let limit: DialectLimit =
            Box::new(move |dialect| Some((control.code.to_string(), control.unsupported_in(dialect)?)));
        Ok(CompiledStep { expected, limit: Some(limit), ..ioctl })
    });

fn control(step: &StepCompiler<'_, '_>) -> Result<&'static FsctlProfile, WorkloadError> {
    let Some(code) = step.value::<String>(&CODE)? else {
        return Err(step.error("the step has no code", "add code = \"GET_REPARSE_POINT\""));
    };
    const ALL: &[FsctlProfile] = &FsctlProfile::ALL;
    let name_of = |control: &FsctlProfile| control.code.to_string().replacen("FSCTL_", "", 1);
    let given = code.get_ref().strip_prefix("FSCTL_").unwrap_or(code.get_ref());
    let Some(control) = ALL.iter().find(|control| name_of(control) == given) else {
        let names: Vec<String> = ALL.iter().map(name_of).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let what = format!("there is no step with the control code \"{}\"", code.get_ref());
        return Err(step.error_at(code.span(), what, &suggest(given, &names)));
    };
    match step.value::<String>(&OF)? {
        Some(of) if !control.of_file => {
            let what = format!("{} is about the server, and not about a file", control.code);
            Err(step.error_at(of.span(), what, "remove of"))
        }
        _ => Ok(control),
    }
}
