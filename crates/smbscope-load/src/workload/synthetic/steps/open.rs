//! `open` and `close`.

use super::{StepKind, act};
use crate::workload::action::Action;
use crate::workload::synthetic::compile::{FILE, OF, OpenHandle, StepField, names};
use crate::workload::synthetic::user::Choose;
use smbscope_client::{CreateDisposition, access};

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
