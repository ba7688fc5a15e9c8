//! Steps that transfer no data: on open files (`open`, `close`, `flush`, `set_times`, `set_size`, `lock` and `unlock`),
//! the queries `query_open`, `query`, `query_file_system` and `ioctl`, and `session_setup`, `tree_connect`, `echo` and
//! `think`.

use super::{
    CompiledStep, DialectLimit, FILE, OF, OpenHandle, REQUIRED, StepCompiler, StepField, StepKind, act, names,
};
use crate::workload::action::{Action, Expected, HandleSlot};
use crate::workload::synthetic::source::times;
use crate::workload::synthetic::user::Choose;
use crate::workload::{WorkloadError, suggest};
use smbscope_client::{ByteRangeLock, CreateDisposition, FsctlProfile, Info, TreeConnectTarget, access};

const READ: u32 = access::READ_DATA | access::READ_ATTRIBUTES;
const WRITE: u32 = access::WRITE_DATA | access::READ_ATTRIBUTES | access::WRITE_ATTRIBUTES;
const ACCESSES: [(&str, u32); 4] = [
    ("read", READ),
    ("write", WRITE),
    ("both", READ | WRITE),
    ("attributes", access::READ_ATTRIBUTES | access::WRITE_ATTRIBUTES),
];
const MODES: [(&str, CreateDisposition); 6] = [
    ("open", CreateDisposition::Open),
    ("create", CreateDisposition::Create),
    ("open_if", CreateDisposition::OpenIf),
    ("overwrite", CreateDisposition::Overwrite),
    ("overwrite_if", CreateDisposition::OverwriteIf),
    ("supersede", CreateDisposition::Supersede),
];

const ACCESS: StepField = StepField { key: "access", names: &names(&ACCESSES), about: "", default: "" };
const MODE: StepField =
    StepField { key: "mode", names: &names(&MODES), about: "", default: "`\"open\"`, for new files `\"create\"`" };
const AS: StepField = StepField::new("as", "`\"file\"`", "name of the open file for later steps");

pub(super) const OPEN: StepKind = StepKind::new("open", "opens a file", &[FILE, ACCESS, MODE, AS], |step| {
    let file = step.file()?;
    let access = step.choice(&ACCESS, &ACCESSES)?;
    let usual = if file == Choose::New { CreateDisposition::Create } else { CreateDisposition::Open };
    let disposition = if step.is_given(&MODE) { step.choice(&MODE, &MODES)? } else { usual };
    use CreateDisposition::{Create, Open, Overwrite, OverwriteIf, Supersede};
    let is_new = file == Choose::New || (file == Choose::Same && step.known.file == Some(Choose::New));
    if matches!(disposition, Create | Overwrite | OverwriteIf | Supersede) && !is_new && file != Choose::Missing {
        let hint = "the files of the set keep their content: use file = \"new\" for files that are created or emptied";
        return Err(step.error("a file of the set can only be opened", hint));
    }
    let name = step.value::<String>(&AS)?.map_or_else(|| "file".to_owned(), |name| name.into_inner());
    if step.known.open.contains_key(&name) {
        let hint = "close it first, or call this one something else: as = \"other\"";
        return Err(step.error(format!("\"{name}\" is open already"), hint));
    }
    let slot = step.free_slot();
    if !step.expects_status() && file != Choose::Missing {
        let file = if file == Choose::Same { step.known.file.unwrap_or(file) } else { file };
        step.known.open.insert(name, OpenHandle { slot, access, file });
    }
    let open = act(move |user| {
        let file = user.pick(file);
        user.open(slot, file, access, disposition)
    });
    Ok(if matches!(disposition, Open | Overwrite) { open.finding(file) } else { open }.once())
});

pub(super) const CLOSE: StepKind = StepKind::new("close", "closes it", &[OF], |step| {
    let (name, handle) = step.named_handle(0)?;
    if step.is_always_open(&name) {
        let hint = "what [start] opens stays open until the user leaves";
        return Err(step.error(format!("\"{name}\" must not be closed"), hint));
    }
    step.known.open.remove(&name);
    Ok(act(move |_| Action::Close(handle.slot)).once())
});

const OFFSET: StepField = StepField::new("offset", "0", "bytes");
const LENGTH: StepField = StepField::new("length", "1", "bytes");
const EXCLUSIVE: StepField = StepField::new("exclusive", "`true`", "`false` for a shared lock");
const SIZE: StepField = StepField::new("size", "0", "bytes");

pub(super) const FLUSH: StepKind = StepKind::new("flush", "flushes written data to disk", &[OF], |step| {
    let slot = step.handle(access::WRITE_DATA)?.slot;
    Ok(act(move |_| Action::Flush(slot)))
});

pub(super) const SET_TIMES: StepKind =
    StepKind::new("set_times", "sets times and attributes to their current values", &[OF], |step| {
        let slot = step.handle(0)?.slot;
        Ok(act(move |_| Action::SetBasic(slot)))
    });

pub(super) const SET_SIZE: StepKind = StepKind::new("set_size", "sets the size of a new file", &[OF, SIZE], |step| {
    let handle = step.handle(access::WRITE_DATA)?;
    step.must_be_new(Some(handle.file), "set the size of")?;
    let (slot, size) = (handle.slot, step.bytes(&SIZE, 0)?);
    Ok(act(move |user| {
        user.resize(slot, size);
        Action::SetEnd(slot, size)
    }))
});

pub(super) const LOCK: StepKind =
    StepKind::new("lock", "locks a range; fails instead of waiting", &[OF, OFFSET, LENGTH, EXCLUSIVE], |step| {
        let (slot, offset, length) = range(step)?;
        let exclusive = step.value::<bool>(&EXCLUSIVE)?.is_none_or(|exclusive| *exclusive.get_ref());
        Ok(act(move |_| Action::Lock(slot, ByteRangeLock { offset, length, exclusive, wait: false })))
    });

pub(super) const UNLOCK: StepKind = StepKind::new("unlock", "unlocks it", &[OF, OFFSET, LENGTH], |step| {
    let (slot, offset, length) = range(step)?;
    Ok(act(move |_| Action::Unlock { slot, offset, length }))
});

fn range(step: &StepCompiler<'_, '_>) -> Result<(HandleSlot, u64, u64), WorkloadError> {
    Ok((step.handle(0)?.slot, step.bytes(&OFFSET, 0)?, step.bytes(&LENGTH, 1)?))
}

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
