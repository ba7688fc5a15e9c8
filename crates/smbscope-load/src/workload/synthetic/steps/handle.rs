//! Steps on open files that transfer no data: `open`, `close`, `flush`, `set_times`, `set_size`, `lock` and `unlock`.

use super::{StepKind, act};
use crate::workload::WorkloadError;
use crate::workload::action::{Action, HandleSlot};
use crate::workload::synthetic::compile::{FILE, OF, OpenHandle, StepCompiler, StepField, names};
use crate::workload::synthetic::user::Choose;
use smbscope_client::{ByteRangeLock, CreateDisposition, access};

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
