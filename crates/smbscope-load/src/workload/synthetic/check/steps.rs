//! Validates and compiles the steps of an operation, with the handles and files that are known at each of them.

use super::{Checker, MOST_STEPS, OpenHandle, StepContext};
use crate::workload::WorkloadError;
use crate::workload::action::Expected;
use crate::workload::draw::SizeDistribution;
use crate::workload::error::suggest;
use crate::workload::paths::{Last, below};
use crate::workload::synthetic::source::{RawStep, size, sizes, times};
use crate::workload::synthetic::{At, Choose, Directory, SyntheticStep, Total, TransferLength, What};
use smbscope_client::{CreateDisposition, FsctlProfile, Info, TreeConnectTarget, access};
use smbscope_wire::status::NtStatus;
use toml::{Spanned, Value};

/// Largest single transfer, in bytes. The client splits one that exceeds the server's limit.
const MOST_TRANSFER: u64 = 8 << 20;

const MOST_IN_BLOCKS: u64 = 1 << 40;
/// Outstanding commands of a step; more are refused.
const QUEUE_MAX: i64 = 256;
/// Values of `do`, each with its keys.
const STEPS: [(&str, &[&str]); 24] = [
    ("open", &["file", "access", "mode", "as"]),
    ("close", &["of"]),
    ("read", &["of", "offset", "length", "block", "depth"]),
    ("write", &["of", "offset", "length", "block", "depth"]),
    ("flush", &["of"]),
    ("lock", &["of", "offset", "length", "exclusive"]),
    ("unlock", &["of", "offset", "length"]),
    ("query_open", &["of", "info"]),
    ("query", &["file", "info"]),
    ("query_file_system", &["info"]),
    ("set_times", &["of"]),
    ("set_size", &["of", "size"]),
    ("list", &["directory", "pattern", "info"]),
    ("remove", &[]),
    ("rename", &[]),
    ("make_directory", &[]),
    ("remove_directory", &[]),
    ("open_read_close", &["file", "offset", "length"]),
    ("walk", &["block", "parallel"]),
    ("ioctl", &["code", "of"]),
    ("session_setup", &[]),
    ("tree_connect", &["share"]),
    ("echo", &[]),
    ("think", &["time"]),
];

const FILE_INFO: [(&str, Info); 8] = [
    ("basic", Info::FILE_BASIC_INFORMATION),
    ("standard", Info::FILE_STANDARD_INFORMATION),
    ("all", Info::FILE_ALL_INFORMATION),
    ("network_open", Info::FILE_NETWORK_OPEN_INFORMATION),
    ("internal", Info::FILE_INTERNAL_INFORMATION),
    ("ea", Info::FILE_EA_INFORMATION),
    ("stream", Info::FILE_STREAM_INFORMATION),
    ("attribute_tag", Info::FILE_ATTRIBUTE_TAG_INFORMATION),
];
const FILE_SYSTEM_INFO: [(&str, Info); 5] = [
    ("size", Info::FILE_FS_SIZE_INFORMATION),
    ("full_size", Info::FILE_FS_FULL_SIZE_INFORMATION),
    ("volume", Info::FILE_FS_VOLUME_INFORMATION),
    ("device", Info::FILE_FS_DEVICE_INFORMATION),
    ("attribute", Info::FILE_FS_ATTRIBUTE_INFORMATION),
];
const LIST_INFO: [(&str, Info); 6] = [
    ("both", Info::FILE_BOTH_DIRECTORY_INFORMATION),
    ("directory", Info::FILE_DIRECTORY_INFORMATION),
    ("full", Info::FILE_FULL_DIRECTORY_INFORMATION),
    ("names", Info::FILE_NAMES_INFORMATION),
    ("id_both", Info::FILE_ID_BOTH_DIRECTORY_INFORMATION),
    ("id_full", Info::FILE_ID_FULL_DIRECTORY_INFORMATION),
];
const MODES: [(&str, CreateDisposition); 6] = [
    ("open", CreateDisposition::Open),
    ("create", CreateDisposition::Create),
    ("open_if", CreateDisposition::OpenIf),
    ("overwrite", CreateDisposition::Overwrite),
    ("overwrite_if", CreateDisposition::OverwriteIf),
    ("supersede", CreateDisposition::Supersede),
];
const FILES: [(&str, Choose); 5] = [
    ("random", Choose::Random),
    ("next", Choose::Next),
    ("same", Choose::Same),
    ("new", Choose::New),
    ("missing", Choose::Missing),
];
const TREES: [(&str, TreeConnectTarget); 2] = [("own", TreeConnectTarget::Own), ("IPC$", TreeConnectTarget::Ipc)];
const DIRECTORIES: [(&str, Directory); 2] = [("random", Directory::Random), ("new", Directory::New)];

impl Checker<'_> {
    pub(super) fn step(
        &mut self,
        step: &Spanned<RawStep>,
        operation: Option<usize>,
        known: &mut StepContext,
        lines: &mut Vec<SyntheticStep>,
    ) -> Result<(), WorkloadError> {
        let raw = step.get_ref();
        let what = raw.what.get_ref().as_str();
        let Some((_, keys)) = STEPS.iter().find(|(name, _)| *name == what) else {
            let names: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
            return Err(self.source.error(
                raw.what.span(),
                format!("there is no step \"{what}\""),
                suggest(what, &names),
            ));
        };
        if let Some((key, span)) = raw.keys().into_iter().find(|(key, _)| !keys.contains(key)) {
            let hint = match keys.is_empty() {
                true => "remove it: this step has no keys of its own".to_owned(),
                false => suggest(key, keys),
            };
            return Err(self.source.error(span, format!("a step \"{what}\" has no key \"{key}\""), hint));
        }
        let checked = self.what(step, what, known)?;
        let expected = self.expected(raw, &checked)?;
        let repeat = raw.repeat.as_ref().map_or(Ok(1), |repeat| self.number(repeat, "repeat", 1, MOST_STEPS as i64))?;
        if repeat > 1
            && matches!(checked, What::Open { .. } | What::Close { .. } | What::Remove | What::RemoveDirectory)
        {
            let hint = "repeat the operation instead, or write the steps several times";
            return Err(self.source.error(step.span(), format!("a step \"{what}\" cannot be repeated"), hint));
        }
        let operation = operation.filter(|_| !matches!(checked, What::Think(_)));
        let line = SyntheticStep { what: checked, expected, operation, completes: false };
        lines.extend(std::iter::repeat_n(line, repeat as usize));
        Ok(())
    }

    fn what(&mut self, step: &Spanned<RawStep>, what: &str, known: &mut StepContext) -> Result<What, WorkloadError> {
        let raw = step.get_ref();
        match what {
            "open" => self.open(step, known),
            "close" => self.close(step, known),
            "read" => self.read(step, known),
            "write" => self.write(step, known),
            "flush" => Ok(What::Flush { slot: self.handle(step, known, access::WRITE_DATA)?.1.slot }),
            "lock" => self.lock(step, known),
            "unlock" => self.unlock(step, known),
            "query_open" => self.query_open(step, known),
            "query" => self.query(step, known),
            "query_file_system" => {
                Ok(What::QueryFileSystem { info: self.named(raw.info.as_ref(), "info", &FILE_SYSTEM_INFO)? })
            }
            "set_times" => Ok(What::SetBasic { slot: self.handle(step, known, 0)?.1.slot }),
            "set_size" => self.set_size(step, known),
            "list" => self.list(step),
            "remove" => self.remove(step, known),
            "rename" => self.rename(step, known),
            "make_directory" => Ok(self.make_directory(known)),
            "remove_directory" => self.remove_directory(step, known),
            "open_read_close" => self.open_read_close(step, known),
            "walk" => self.walk(step, known),
            "ioctl" => self.ioctl(step, known),
            "session_setup" => Ok(What::SessionSetup),
            "tree_connect" => Ok(What::TreeConnect(self.named(raw.share.as_ref(), "share", &TREES)?)),
            "echo" => Ok(What::Echo),
            _ => self.think(step),
        }
    }

    fn close(&self, step: &Spanned<RawStep>, known: &mut StepContext) -> Result<What, WorkloadError> {
        let (name, handle) = self.handle(step, known, 0)?;
        if self.always_open.contains_key(&name) {
            let hint = "what [start] opens stays open until the user leaves";
            return Err(self.source.error(step.span(), format!("\"{name}\" must not be closed"), hint));
        }
        known.open.remove(&name);
        Ok(What::Close { slot: handle.slot })
    }

    fn read(&self, step: &Spanned<RawStep>, known: &StepContext) -> Result<What, WorkloadError> {
        let (_, handle) = self.handle(step, known, access::READ_DATA)?;
        self.must_have_content(step, handle.file)?;
        Ok(What::Read { slot: handle.slot, at: self.at(step.get_ref(), true)?, length: self.length(step)? })
    }

    fn write(&self, step: &Spanned<RawStep>, known: &StepContext) -> Result<What, WorkloadError> {
        let (_, handle) = self.handle(step, known, access::WRITE_DATA)?;
        Ok(What::Write { slot: handle.slot, at: self.at(step.get_ref(), true)?, length: self.length(step)? })
    }

    fn lock(&self, step: &Spanned<RawStep>, known: &StepContext) -> Result<What, WorkloadError> {
        let (slot, offset, length) = self.locked_range(step, known)?;
        let exclusive = step.get_ref().exclusive.as_ref().is_none_or(|exclusive| *exclusive.get_ref());
        Ok(What::Lock { slot, offset, length, exclusive })
    }

    fn unlock(&self, step: &Spanned<RawStep>, known: &StepContext) -> Result<What, WorkloadError> {
        let (slot, offset, length) = self.locked_range(step, known)?;
        Ok(What::Unlock { slot, offset, length })
    }

    /// Returns the slot of the handle, the offset and the length.
    fn locked_range(&self, step: &Spanned<RawStep>, known: &StepContext) -> Result<(u32, u64, u64), WorkloadError> {
        let raw = step.get_ref();
        let (_, handle) = self.handle(step, known, 0)?;
        let offset = self.one_size(raw.offset.as_ref(), 0)?;
        Ok((handle.slot, offset, self.one_size(raw.length.as_ref(), 1)?))
    }

    fn query_open(&self, step: &Spanned<RawStep>, known: &StepContext) -> Result<What, WorkloadError> {
        let (_, handle) = self.handle(step, known, 0)?;
        let info = self.named(step.get_ref().info.as_ref(), "info", &FILE_INFO)?;
        Ok(What::QueryFile { slot: handle.slot, info })
    }

    fn query(&mut self, step: &Spanned<RawStep>, known: &mut StepContext) -> Result<What, WorkloadError> {
        let file = self.choose(step, known)?;
        Ok(What::QueryPath { file, info: self.named(step.get_ref().info.as_ref(), "info", &FILE_INFO)? })
    }

    fn set_size(&self, step: &Spanned<RawStep>, known: &StepContext) -> Result<What, WorkloadError> {
        let (_, handle) = self.handle(step, known, access::WRITE_DATA)?;
        self.must_be_new(step, handle.file, "set the size of")?;
        Ok(What::SetEnd { slot: handle.slot, size: self.one_size(step.get_ref().size.as_ref(), 0)? })
    }

    fn list(&mut self, step: &Spanned<RawStep>) -> Result<What, WorkloadError> {
        let raw = step.get_ref();
        let directory = self.named(raw.directory.as_ref(), "directory", &DIRECTORIES)?;
        match directory {
            Directory::Random => self.must_have_files(step)?,
            Directory::New => self.makes = true,
        }
        let pattern = self.pattern(step)?;
        Ok(What::List { directory, pattern, info: self.named(raw.info.as_ref(), "info", &LIST_INFO)? })
    }

    fn pattern(&self, step: &Spanned<RawStep>) -> Result<String, WorkloadError> {
        let given = step.get_ref().pattern.as_ref();
        let (span, hint) = (given.map_or(step.span(), Spanned::span), "write a pattern such as \"*.txt\"");
        let pattern = below(given.map_or("*", |pattern| pattern.get_ref().as_str()), Last::Pattern)
            .map_err(|what| self.source.error(span.clone(), what, hint))?;
        if pattern.is_empty() || pattern.contains('\\') {
            return Err(self.source.error(span, "the pattern is not a name", hint));
        }
        Ok(pattern)
    }

    fn remove(&self, step: &Spanned<RawStep>, known: &mut StepContext) -> Result<What, WorkloadError> {
        self.must_be_new(step, known.file.unwrap_or(Choose::Random), "remove")?;
        known.file = None;
        Ok(What::Remove)
    }

    fn rename(&self, step: &Spanned<RawStep>, known: &StepContext) -> Result<What, WorkloadError> {
        self.must_be_new(step, known.file.unwrap_or(Choose::Random), "rename")?;
        Ok(What::Rename)
    }

    fn make_directory(&mut self, known: &mut StepContext) -> What {
        (self.makes, known.directory) = (true, true);
        What::MakeDirectory
    }

    fn remove_directory(&self, step: &Spanned<RawStep>, known: &mut StepContext) -> Result<What, WorkloadError> {
        if !std::mem::take(&mut known.directory) {
            let hint = "make one in a step before: { do = \"make_directory\" }";
            return Err(self.source.error(step.span(), "there is no directory to remove", hint));
        }
        Ok(What::RemoveDirectory)
    }

    fn open_read_close(&mut self, step: &Spanned<RawStep>, known: &mut StepContext) -> Result<What, WorkloadError> {
        let file = self.choose(step, known)?;
        self.must_have_content(step, file)?;
        Ok(What::OpenReadClose { file, at: self.at(step.get_ref(), false)?, length: self.transfer(step)? })
    }

    fn walk(&mut self, step: &Spanned<RawStep>, known: &StepContext) -> Result<What, WorkloadError> {
        let raw = step.get_ref();
        self.must_have_files(step)?;
        self.must_have_content(step, Choose::Next)?;
        let slot = free_slot(known);
        self.slots = self.slots.max(slot + 1);
        let parallel = raw.parallel.as_ref().map_or(Ok(1), |n| self.number(n, "parallel", 1, QUEUE_MAX))?;
        Ok(What::Walk { slot, block: self.block(raw)?, parallel: parallel as u32 })
    }

    fn ioctl(&self, step: &Spanned<RawStep>, known: &StepContext) -> Result<What, WorkloadError> {
        let control = self.control(step)?;
        let slot = match control.of_file {
            true => Some(self.handle(step, known, control.access())?.1.slot),
            false => None,
        };
        Ok(What::Control { control, slot })
    }

    fn think(&self, step: &Spanned<RawStep>) -> Result<What, WorkloadError> {
        match &step.get_ref().time {
            Some(value) => Ok(What::Think(times(value.get_ref()).map_err(|wrong| self.wrong(value.span(), wrong))?)),
            None => Err(self.source.error(step.span(), "the step has no time", "add time = \"10ms\"")),
        }
    }

    fn control(&self, step: &Spanned<RawStep>) -> Result<&'static FsctlProfile, WorkloadError> {
        let raw = step.get_ref();
        let Some(code) = &raw.code else {
            return Err(self.source.error(step.span(), "the step has no code", "add code = \"GET_REPARSE_POINT\""));
        };
        let name_of = |control: &FsctlProfile| control.code.to_string().replacen("FSCTL_", "", 1);
        let given = code.get_ref().strip_prefix("FSCTL_").unwrap_or(code.get_ref());
        let Some(control) = FsctlProfile::ALL.iter().find(|control| name_of(control) == given) else {
            let names: Vec<String> = FsctlProfile::ALL.iter().map(name_of).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let what = format!("there is no step with the control code \"{}\"", code.get_ref());
            return Err(self.source.error(code.span(), what, suggest(given, &names)));
        };
        match &raw.of {
            Some(of) if !control.of_file => {
                let what = format!("{} is about the server, and not about a file", control.code);
                Err(self.source.error(of.span(), what, "remove of"))
            }
            _ => Ok(control),
        }
    }

    fn open(&mut self, step: &Spanned<RawStep>, known: &mut StepContext) -> Result<What, WorkloadError> {
        let raw = step.get_ref();
        const READ: u32 = access::READ_DATA | access::READ_ATTRIBUTES;
        const WRITE: u32 = access::WRITE_DATA | access::READ_ATTRIBUTES | access::WRITE_ATTRIBUTES;
        const ACCESS: [(&str, u32); 4] = [
            ("read", READ),
            ("write", WRITE),
            ("both", READ | WRITE),
            ("attributes", access::READ_ATTRIBUTES | access::WRITE_ATTRIBUTES),
        ];
        let file = self.choose(step, known)?;
        let access = self.named(raw.access.as_ref(), "access", &ACCESS)?;
        let usual = if file == Choose::New { CreateDisposition::Create } else { CreateDisposition::Open };
        let disposition = match &raw.mode {
            Some(mode) => self.named(Some(mode), "mode", &MODES)?,
            None => usual,
        };
        let empties = matches!(
            disposition,
            CreateDisposition::Overwrite | CreateDisposition::OverwriteIf | CreateDisposition::Supersede
        );
        let is_new = file == Choose::New || (file == Choose::Same && known.file == Some(Choose::New));
        if (empties || disposition == CreateDisposition::Create) && !is_new && file != Choose::Missing {
            let hint =
                "the files of the set keep their content: use file = \"new\" for files that are created or emptied";
            return Err(self.source.error(step.span(), "a file of the set can only be opened", hint));
        }
        let handle = raw.handle.as_ref().map_or("file", |handle| handle.get_ref().as_str());
        if known.open.contains_key(handle) {
            let hint = "close it first, or call this one something else: as = \"other\"";
            return Err(self.source.error(step.span(), format!("\"{handle}\" is open already"), hint));
        }
        let slot = free_slot(known);
        self.slots = self.slots.max(slot + 1);
        let fails = raw.expect.is_some() || file == Choose::Missing;
        if !fails {
            let file = if file == Choose::Same { known.file.unwrap_or(file) } else { file };
            known.open.insert(handle.to_owned(), OpenHandle { slot, access, file });
        }
        Ok(What::Open { slot, file, access, disposition })
    }

    /// Finds the handle of a step: the named one, or the only one open.
    fn handle(
        &self,
        step: &Spanned<RawStep>,
        known: &StepContext,
        access: u32,
    ) -> Result<(String, OpenHandle), WorkloadError> {
        let raw = step.get_ref();
        let name = match &raw.of {
            Some(name) => name.get_ref().clone(),
            None if known.open.len() == 1 => known.open.keys().next().cloned().unwrap_or_default(),
            None => "file".to_owned(),
        };
        let Some(handle) = known.open.get(&name).copied() else {
            let names: Vec<&str> = known.open.keys().map(String::as_str).collect();
            let hint = match names.is_empty() {
                true => "open a file in a step before: { do = \"open\", file = \"random\" }".to_owned(),
                false => suggest(&name, &names),
            };
            return Err(self.source.error(step.span(), format!("\"{name}\" is not open here"), hint));
        };
        if handle.access & access != access {
            let hint = "open it with access = \"read\", \"write\" or \"both\"";
            return Err(self.source.error(step.span(), format!("\"{name}\" was not opened for this"), hint));
        }
        Ok((name, handle))
    }

    fn choose(&mut self, step: &Spanned<RawStep>, known: &mut StepContext) -> Result<Choose, WorkloadError> {
        let raw = step.get_ref();
        let file = match &raw.file {
            Some(_) => self.named(raw.file.as_ref(), "file", &FILES)?,
            None if known.file.is_some() => Choose::Same,
            None => Choose::Random,
        };
        match file {
            Choose::Random | Choose::Next => self.must_have_files(step)?,
            Choose::New | Choose::Missing => self.makes = true,
            Choose::Same if known.file.is_none() => {
                let hint = "name one: file = \"random\", \"next\", \"new\" or \"missing\"";
                return Err(self.source.error(step.span(), "no step before has chosen a file", hint));
            }
            Choose::Same => {}
        }
        if !matches!(file, Choose::Same | Choose::Missing) {
            known.file = Some(file);
        }
        Ok(file)
    }

    fn must_have_files(&self, step: &Spanned<RawStep>) -> Result<(), WorkloadError> {
        if self.files.files > 0 {
            return Ok(());
        }
        let hint = "add [files] with count and size, or use file = \"new\"";
        Err(self.source.error(step.span(), "the workload has no files", hint))
    }

    fn must_have_content(&self, step: &Spanned<RawStep>, file: Choose) -> Result<(), WorkloadError> {
        if matches!(file, Choose::New | Choose::Missing | Choose::Same) || self.files.sizes.least() > 0 {
            return Ok(());
        }
        let hint = "give them a size above 0: there is nothing to read past the end";
        Err(self.source.error(step.span(), "the files of the set may be empty", hint))
    }

    fn must_be_new(&self, step: &Spanned<RawStep>, file: Choose, what: &str) -> Result<(), WorkloadError> {
        if file == Choose::New {
            return Ok(());
        }
        let hint = "the files of the set stay as they are: choose file = \"new\" in a step before";
        Err(self.source.error(step.span(), format!("there is no file that this step may {what}"), hint))
    }

    fn at(&self, raw: &RawStep, sequential: bool) -> Result<At, WorkloadError> {
        let Some(value) = &raw.offset else { return Ok(At::Offset(0)) };
        match value.get_ref().as_str() {
            Some("random") => Ok(At::Random),
            Some("sequential") if sequential => Ok(At::Sequential),
            _ => {
                let hint = match sequential {
                    true => "write a number of bytes, \"random\" or \"sequential\"",
                    false => "write a number of bytes or \"random\"",
                };
                let offset = size(value.get_ref()).map_err(|(what, _)| self.source.error(value.span(), what, hint))?;
                Ok(At::Offset(offset))
            }
        }
    }

    /// Parses the length of a read or write: a single transfer, or blocks for the whole file or a larger size.
    fn length(&self, step: &Spanned<RawStep>) -> Result<TransferLength, WorkloadError> {
        let raw = step.get_ref();
        let block = self.block(raw)?;
        let depth = raw.depth.as_ref().map_or(Ok(1), |depth| self.number(depth, "depth", 1, QUEUE_MAX))? as u32;
        match raw.length.as_ref() {
            Some(length) if length.get_ref().as_str() == Some("file") => {
                Ok(TransferLength::Blocks { of: Total::File, block, depth })
            }
            Some(length) if raw.block.is_some() => {
                let sizes = sizes(length.get_ref()).map_err(|wrong| self.wrong(length.span(), wrong))?;
                if sizes.least() == 0 || sizes.most() > MOST_IN_BLOCKS {
                    let hint = format!("write 1 to {MOST_IN_BLOCKS} bytes, or \"file\"");
                    return Err(self.source.error(length.span(), "the length is out of bounds", hint));
                }
                Ok(TransferLength::Blocks { of: Total::Bytes(sizes), block, depth })
            }
            _ if depth > 1 => {
                let hint = "write length = \"file\", or add block = \"64KiB\" to a length of several blocks";
                Err(self.source.error(step.span(), "a single transfer has no depth", hint))
            }
            _ => self.transfer(step).map(TransferLength::Once),
        }
    }

    fn block(&self, raw: &RawStep) -> Result<u64, WorkloadError> {
        let block = self.one_size(raw.block.as_ref(), MOST_TRANSFER)?;
        match &raw.block {
            Some(value) if block == 0 || block > MOST_TRANSFER => {
                let hint = format!("write 1 to {MOST_TRANSFER} bytes");
                Err(self.source.error(value.span(), "the block is out of bounds", hint))
            }
            _ => Ok(block),
        }
    }

    fn transfer(&self, step: &Spanned<RawStep>) -> Result<SizeDistribution, WorkloadError> {
        let Some(value) = &step.get_ref().length else {
            return Err(self.source.error(step.span(), "the step has no length", "add length = \"4KiB\""));
        };
        let length = sizes(value.get_ref()).map_err(|wrong| self.wrong(value.span(), wrong))?;
        if length.least() == 0 || length.most() > MOST_TRANSFER {
            let hint = format!("write 1 to {MOST_TRANSFER} bytes, or add block = \"1MiB\" for more");
            return Err(self.source.error(value.span(), "the length is out of bounds", hint));
        }
        Ok(length)
    }

    fn one_size(&self, value: Option<&Spanned<Value>>, usual: u64) -> Result<u64, WorkloadError> {
        let Some(value) = value else { return Ok(usual) };
        size(value.get_ref()).map_err(|wrong| self.wrong(value.span(), wrong))
    }

    fn expected(&self, raw: &RawStep, what: &What) -> Result<Expected, WorkloadError> {
        if let Some(status) = &raw.expect {
            let name = status.get_ref().trim_start_matches("NT_").trim_start_matches("STATUS_");
            let known = NtStatus::KNOWN
                .iter()
                .find(|known| known.name().is_some_and(|known| known == format!("STATUS_{name}")));
            return known.map(|status| Expected::Status(*status)).ok_or_else(|| {
                let hint = "write it as the specification does: \"OBJECT_NAME_NOT_FOUND\"";
                self.source.error(status.span(), format!("\"{}\" is not a status", status.get_ref()), hint)
            });
        }
        let missing = matches!(
            what,
            What::Open {
                file: Choose::Missing,
                disposition: CreateDisposition::Open | CreateDisposition::Overwrite,
                ..
            } | What::QueryPath { file: Choose::Missing, .. }
                | What::OpenReadClose { file: Choose::Missing, .. }
        );
        Ok(match what {
            _ if missing => Expected::Status(NtStatus::OBJECT_NAME_NOT_FOUND),
            What::Control { control, .. } => Expected::SuccessOrRefusalOf(control.code),
            _ => Expected::Success,
        })
    }
}

fn free_slot(known: &StepContext) -> u32 {
    let taken: Vec<u32> = known.open.values().map(|open| open.slot).collect();
    (0..).find(|slot| !taken.contains(slot)).unwrap_or(0)
}
