//! Converts commands into recording lines: the parts common to SMB1 and SMB2.

use super::BufferedCommand;
use super::{InitialPathState, RecordedPaths};
use smbscope_analyze::pseudonym::PseudonymKey;
use smbscope_client::FileRange;
use smbscope_load::workload::{check_line, ranges_text};
use smbscope_model::{Command, CommandGroup, FileId, FlowId, ResponseStatus, Subcommand};
use smbscope_wire::RequestDetail;
use smbscope_wire::status::{DosError, NtStatus};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

/// Shortest recorded pause. A load generator can't wait more precisely.
const SHORTEST_PAUSE_NS: i64 = 1_000_000;
/// FILE_ATTRIBUTE_DIRECTORY (MS-FSCC 2.6).
const DIRECTORY: u32 = 0x10;
/// FILE_DIRECTORY_FILE, FILE_DELETE_ON_CLOSE and FILE_OPEN_BY_FILE_ID (MS-SMB2 2.2.13).
const DIRECTORY_FILE: u32 = 0x0000_0001;
const DELETE_ON_CLOSE: u32 = 0x0000_1000;
const OPEN_BY_FILE_ID: u32 = 0x0000_2000;
/// CreateAction (MS-SMB2 2.2.14).
const OPENED: u32 = 1;
const CREATED: u32 = 2;

/// Levels of a recorded path; deeper ones are not replayed. 255 one-letter directories exceed the 260 characters that
/// most clients and servers accept.
const RECORDED_LEVELS_MAX: usize = 255;

pub(super) struct RecordingBuilder<'k> {
    pub(super) key: Option<&'k PseudonymKey>,
    with_share: bool,
    text: String,
    commands: u64,
    overlapping: u64,
    pub(super) files: RecordedPaths,
    handles: HashMap<(FlowId, FileId), RecordedOpen>,
    next_handle: u32,
    last_end: Option<i64>,
    /// True while nothing has been created, removed, renamed or extended, so the recording can run repeatedly.
    pub(super) repeats: bool,
    not_replayed: BTreeMap<String, u64>,
}

pub(super) struct RecordedOpen {
    pub(super) handle: u32,
    path: String,
    pub(super) size: u64,
}

pub(super) struct FinishedRecording {
    pub(super) files: String,
    pub(super) steps: String,
    pub(super) repeats: bool,
    pub(super) not_replayed: Vec<String>,
}

pub(super) type Reason = String;

impl<'k> RecordingBuilder<'k> {
    pub(super) fn new(key: Option<&'k PseudonymKey>, taken: &[BufferedCommand]) -> RecordingBuilder<'k> {
        let shares: BTreeSet<&str> =
            taken.iter().filter_map(|taken| taken.share.as_deref()).filter(|s| !is_pipe(s)).collect();
        RecordingBuilder {
            key,
            with_share: shares.len() > 1,
            text: String::new(),
            commands: 0,
            overlapping: 0,
            files: RecordedPaths::default(),
            handles: HashMap::new(),
            next_handle: 1,
            last_end: None,
            repeats: true,
            not_replayed: BTreeMap::new(),
        }
    }

    pub(super) fn commands(&self) -> u64 {
        self.commands
    }

    pub(super) fn finish(mut self) -> FinishedRecording {
        if self.overlapping > 0 {
            let reason = "began before the one before was answered: replayed one after the other";
            self.not_replayed.insert(reason.to_owned(), self.overlapping);
        }
        for (count, reason) in [
            (self.files.shortened(), "a file of more than 1 TiB, or 16 TiB of files: made shorter"),
            (self.files.left_out, "a file or directory that is not made: more than 32 MiB of paths"),
        ] {
            if count > 0 {
                self.not_replayed.insert(reason.to_owned(), count);
            }
        }
        FinishedRecording {
            files: self.files.lines(),
            steps: self.text,
            repeats: self.repeats,
            not_replayed: self.not_replayed.into_iter().map(|(reason, count)| format!("{count} × {reason}")).collect(),
        }
    }

    pub(super) fn add(&mut self, taken: &[BufferedCommand]) {
        let Some(first) = taken.first() else { return };
        // The load generator sets up its own sessions. The data of a Write_Raw belongs to its request.
        if first.group == CommandGroup::Session || first.subcommand == Some(Subcommand::AsyncPortion) {
            return;
        }
        let line = if taken.len() > 1 { self.queue(taken) } else { self.line(first) };
        let line = line.and_then(|line| match check_line(&line) {
            Ok(()) => Ok(line),
            Err(why) => Err(format!("{}: {why}", first.command)),
        });
        match line {
            Ok(line) => {
                self.pause(first);
                self.commands += taken.len() as u64;
                self.text.push_str(&line);
                self.text.push('\n');
            }
            Err(reason) => self.leave_out(reason, taken.len() as u64),
        }
        self.last_end = taken.iter().map(|taken| taken.end.0).max().max(self.last_end);
    }

    pub(super) fn leave_out(&mut self, reason: Reason, count: u64) {
        *self.not_replayed.entry(reason).or_default() += count;
    }

    fn pause(&mut self, taken: &BufferedCommand) {
        let Some(last) = self.last_end else { return };
        let pause = taken.start.0 - last;
        if pause < 0 && self.commands > 0 {
            self.overlapping += 1;
        }
        if pause >= SHORTEST_PAUSE_NS && self.commands > 0 {
            let _ = writeln!(self.text, "Sleep {} SUCCESS", pause / 1_000);
        }
    }

    fn line(&mut self, taken: &BufferedCommand) -> Result<String, Reason> {
        let name = taken.command;
        if taken.group == CommandGroup::Waiting {
            return Err(format!("{name}: it waits for another client"));
        }
        if taken.share.as_deref().is_some_and(is_pipe) {
            return Err(format!("{name} of a named pipe"));
        }
        let status = || taken.status.ok_or_else(|| format!("{name} without a status"));
        match name {
            Command::Smb1(command) => self.smb1(taken, command, status()?),
            Command::Smb2(command) => self.smb2(taken, command, nt(status()?)),
            Command::EncryptedFrame => Err("encrypted: what it asks for can't be seen".to_owned()),
        }
    }

    fn queue(&mut self, taken: &[BufferedCommand]) -> Result<String, Reason> {
        let writes = taken[0].group == CommandGroup::Write;
        let mut order: Vec<&BufferedCommand> = taken.iter().collect();
        order.sort_by_key(|taken| taken.start);
        let mut ranges = Vec::new();
        for taken in order {
            let (offset, length) = range(taken)?;
            let length = u32::try_from(length).map_err(|_| format!("{} of 4 GiB and more", taken.command))?;
            ranges.push(FileRange { offset, length });
        }
        let end = ranges.iter().map(|range| range.offset.saturating_add(range.length.into())).max().unwrap_or(0);
        let open = self.open(&taken[0])?;
        let (handle, longer) = (open.handle, end > open.size);
        if writes {
            open.size = open.size.max(end);
            self.repeats &= !longer;
        }
        let name = if writes { "WriteQueue" } else { "ReadQueue" };
        Ok(format!("{name} {handle} {} \"{}\" SUCCESS", outstanding(taken), ranges_text(&ranges)))
    }

    pub(super) fn open(&mut self, taken: &BufferedCommand) -> Result<&mut RecordedOpen, Reason> {
        let key = taken.file_id.map(|file| (taken.flow, file));
        key.and_then(|key| self.handles.get_mut(&key)).ok_or_else(|| no_open(taken.command))
    }

    pub(super) fn close(&mut self, taken: &BufferedCommand, said: &str) -> Result<String, Reason> {
        let key = taken.file_id.map(|file| (taken.flow, file));
        let open = key.and_then(|key| self.handles.remove(&key)).ok_or_else(|| no_open(taken.command))?;
        Ok(format!("Close {} {said}", open.handle))
    }

    pub(super) fn write(&mut self, taken: &BufferedCommand, status: NtStatus, said: &str) -> Result<String, Reason> {
        let (offset, length) = range(taken)?;
        let end = offset.saturating_add(length);
        let open = self.open(taken)?;
        let longer = end > open.size && !status.is_error();
        if longer {
            open.size = end;
        }
        let handle = open.handle;
        self.repeats &= !longer;
        Ok(format!("WriteX {handle} {offset} {length} {length} {said}"))
    }

    pub(super) fn set_end(&mut self, taken: &BufferedCommand, size: u64, said: &str) -> Result<String, Reason> {
        let open = self.open(taken)?;
        let (handle, same) = (open.handle, size == open.size);
        open.size = size;
        self.repeats &= same;
        Ok(format!("SetEnd {handle} {size} {said}"))
    }

    pub(super) fn set_delete(&mut self, taken: &BufferedCommand, delete: bool, said: &str) -> Result<String, Reason> {
        let handle = self.open(taken)?.handle;
        self.repeats &= !delete;
        Ok(format!("SetDelete {handle} {} {said}", u8::from(delete)))
    }

    pub(super) fn lock(
        &mut self,
        taken: &BufferedCommand,
        detail: Option<&RequestDetail>,
        said: &str,
    ) -> Result<String, Reason> {
        let (offset, length) = range(taken)?;
        let handle = self.open(taken)?.handle;
        let name = match detail {
            Some(RequestDetail::Lock { count: 1, flags }) if flags & 4 != 0 => "UnlockX",
            Some(RequestDetail::Lock { count: 1, flags }) if flags & 2 != 0 => "LockX",
            Some(RequestDetail::Lock { count: 1, .. }) => "LockShared",
            _ => return Err(format!("{} of several ranges", taken.command)),
        };
        Ok(format!("{name} {handle} {offset} {length} {said}"))
    }

    pub(super) fn rename_open(&mut self, taken: &BufferedCommand, to: &str) -> Result<(), Reason> {
        let from = std::mem::replace(&mut self.open(taken)?.path, to.to_owned());
        self.files.rename(&from, to);
        Ok(())
    }

    pub(super) fn create(&mut self, taken: &BufferedCommand, status: NtStatus, said: &str) -> Result<String, Reason> {
        let name = taken.command;
        let cut_off = || format!("{name} that the capture cut off");
        let details = taken.details.as_ref().ok_or_else(cut_off)?;
        let RequestDetail::Create { desired_access, share_access, create_disposition, create_options, file_attributes } =
            details.request
        else {
            return Err(cut_off());
        };
        if create_options & OPEN_BY_FILE_ID != 0 {
            return Err(format!("{name} by file id"));
        }
        let path = self.path(taken)?;
        let is_directory = create_options & DIRECTORY_FILE != 0;
        match (status, details.created) {
            (NtStatus::OBJECT_NAME_NOT_FOUND | NtStatus::NO_SUCH_FILE, _) => {
                self.files.find(&path, InitialPathState::Nothing)
            }
            (NtStatus::OBJECT_PATH_NOT_FOUND, _) => self.files.misses(&path),
            (NtStatus::OBJECT_NAME_COLLISION, _) if is_directory => self.files.find(&path, InitialPathState::Directory),
            (NtStatus::OBJECT_NAME_COLLISION, _) => self.files.find(&path, InitialPathState::File { size: 0 }),
            (status, _) if status.is_error() => return Err(format!("{name} that failed with {status}")),
            (_, None) => return Err(format!("{name} whose answer the capture cut off")),
            (_, Some(created)) => {
                let found = match created.action {
                    CREATED => InitialPathState::Nothing,
                    _ if created.attributes & DIRECTORY != 0 => InitialPathState::Directory,
                    OPENED => InitialPathState::File { size: created.size },
                    // The file existed and was truncated.
                    _ => InitialPathState::File { size: 0 },
                };
                self.files.find(&path, found);
                self.repeats &= created.action == OPENED && create_options & DELETE_ON_CLOSE == 0;
            }
        }
        let handle = self.next_handle;
        self.next_handle += 1;
        if let (Some(created), Some(file)) = (details.created, taken.file_id) {
            let open = RecordedOpen { handle, path: path.clone(), size: created.size };
            self.handles.insert((taken.flow, file), open);
        }
        Ok(format!(
            "Create \"\\{path}\" {desired_access:#x} {share_access:#x} {create_disposition} {create_options:#x} \
             {file_attributes:#x} {handle} {said}"
        ))
    }

    pub(super) fn path(&self, taken: &BufferedCommand) -> Result<String, Reason> {
        let path = taken.path.as_deref().ok_or_else(|| format!("{} that the capture cut off", taken.command))?;
        self.shown(taken, path)
    }

    pub(super) fn shown(&self, taken: &BufferedCommand, path: &str) -> Result<String, Reason> {
        shown_path(self.with_share, self.key, taken.share.as_deref(), path)
    }
}

fn shown_path(with_share: bool, key: Option<&PseudonymKey>, share: Option<&str>, path: &str) -> Result<String, Reason> {
    let path = path.trim_matches('\\');
    if smbscope_model::CUT_NAME_MARK.eq(&path.chars().next_back().unwrap_or_default()) {
        return Err("commands on a path that the capture cut off".to_owned());
    }
    if path.contains(':') {
        return Err("commands on a named stream".to_owned());
    }
    if path.matches('\\').count() >= RECORDED_LEVELS_MAX {
        return Err(format!("commands on a path of more than {RECORDED_LEVELS_MAX} levels"));
    }
    let path = match (with_share, share) {
        (true, Some(share)) => format!("{share}\\{path}"),
        _ => path.to_owned(),
    };
    let path = path.trim_end_matches('\\');
    smbscope_load::workload::relative_path(path)
        .map_err(|_| "commands on a name that no workload may have".to_owned())?;
    Ok(key.map_or_else(|| path.to_owned(), |key| key.path(path)))
}

fn is_pipe(share: &str) -> bool {
    share.eq_ignore_ascii_case("IPC$")
}

fn no_open(command: Command) -> Reason {
    format!("{command} of a file whose open is not replayed or not in the capture")
}

pub(super) fn range(taken: &BufferedCommand) -> Result<(u64, u64), Reason> {
    taken.offset.zip(taken.length).ok_or_else(|| format!("{} that the capture cut off", taken.command))
}

fn outstanding(taken: &[BufferedCommand]) -> usize {
    let mut moments: Vec<(i64, bool)> =
        taken.iter().flat_map(|taken| [(taken.start.0, true), (taken.end.0, false)]).collect();
    // At equal times, ends sort before starts.
    moments.sort_unstable();
    let (mut now, mut most) = (0usize, 1);
    for (_, begins) in moments {
        now = if begins { now + 1 } else { now.saturating_sub(1) };
        most = most.max(now);
    }
    most
}

/// Returns the number of commands at the start of `taken` that are overlapping, successful transfers of the same file,
/// and 1 if the first command isn't such a transfer. `taken` is sorted by response time.
pub(super) fn together(taken: &[BufferedCommand]) -> usize {
    let Some(first) = taken.first() else { return 0 };
    if !is_transfer(first) {
        return 1;
    }
    let mut end = first.end;
    let others = taken[1..].iter().take_while(|next| {
        let overlaps = next.start < end;
        end = end.max(next.end);
        overlaps
            && is_transfer(next)
            && next.group == first.group
            && (next.flow, next.file_id) == (first.flow, first.file_id)
    });
    1 + others.count()
}

fn is_transfer(taken: &BufferedCommand) -> bool {
    matches!(taken.group, CommandGroup::Read | CommandGroup::Write)
        && !taken.compounded
        && taken.file_id.is_some()
        && taken.offset.is_some()
        && taken.length.is_some_and(|length| length > 0)
        && taken.status.is_some_and(|status| !nt(status).is_error())
        && taken.subcommand.is_none()
        && !taken.share.as_deref().is_some_and(is_pipe)
}

/// Maps a DOS error to the NT status, as far as recordings distinguish them (MS-CIFS 2.2.2.4).
pub(super) fn nt(status: ResponseStatus) -> NtStatus {
    match status {
        ResponseStatus::Nt(status) => status,
        ResponseStatus::Dos(error) if !error.is_error() => NtStatus::SUCCESS,
        ResponseStatus::Dos(DosError { class: 1, code: 2 }) => NtStatus::OBJECT_NAME_NOT_FOUND,
        ResponseStatus::Dos(DosError { class: 1, code: 3 }) => NtStatus::OBJECT_PATH_NOT_FOUND,
        ResponseStatus::Dos(DosError { class: 1, code: 18 }) => NtStatus::NO_SUCH_FILE,
        ResponseStatus::Dos(DosError { class: 1, code: 80 | 183 }) => NtStatus::OBJECT_NAME_COLLISION,
        ResponseStatus::Dos(_) => NtStatus::UNSUCCESSFUL,
    }
}

pub(super) fn said(status: NtStatus) -> String {
    if status.is_error() { format!("{:#010x}", status.0) } else { "SUCCESS".to_owned() }
}
