//! Commands as lines of a recording.

use super::Taken;
use super::anonymise::Key;
use super::files::{Files, Found};
use smbscope_model::{Command, FileId, FlowId, Group, Status, Subcommand};
use smbscope_wire::names::InfoLevel;
use smbscope_wire::smb2::{self, Detail};
use smbscope_wire::status::NtStatus;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

/// Shorter pauses are not recorded: a load generator does not wait that exactly.
const SHORTEST_PAUSE_NS: i64 = 1_000_000;
/// FILE_ATTRIBUTE_DIRECTORY (MS-FSCC 2.6).
const DIRECTORY: u32 = 0x10;
/// FILE_DIRECTORY_FILE, FILE_DELETE_ON_CLOSE and FILE_OPEN_BY_FILE_ID (MS-SMB2 2.2.13).
const DIRECTORY_FILE: u32 = 0x0000_0001;
const DELETE_ON_CLOSE: u32 = 0x0000_1000;
const OPEN_BY_FILE_ID: u32 = 0x0000_2000;
/// FILE_OPENED, of CreateAction (2.2.14).
const OPENED: u32 = 1;
const CREATED: u32 = 2;

/// A recording under construction.
pub(super) struct Lines<'k> {
    key: Option<&'k Key>,
    /// Paths begin with the share's name, as there are several.
    with_share: bool,
    text: String,
    commands: u64,
    overlapping: u64,
    files: Files,
    handles: HashMap<(FlowId, FileId), Open>,
    next_handle: u32,
    last_end: Option<i64>,
    /// Nothing is made, removed or renamed, and no file gets longer.
    repeats: bool,
    not_replayed: BTreeMap<String, u64>,
}

struct Open {
    handle: u32,
    path: String,
    size: u64,
}

/// What came of it.
pub(super) struct Done {
    pub(super) files: String,
    pub(super) steps: String,
    pub(super) repeats: bool,
    pub(super) not_replayed: Vec<String>,
}

/// Why a command is not replayed.
type Reason = String;

impl<'k> Lines<'k> {
    pub(super) fn new(key: Option<&'k Key>, taken: &[Taken]) -> Lines<'k> {
        let shares: BTreeSet<&str> =
            taken.iter().filter_map(|taken| taken.share.as_deref()).filter(|s| !is_pipe(s)).collect();
        Lines {
            key,
            with_share: shares.len() > 1,
            text: String::new(),
            commands: 0,
            overlapping: 0,
            files: Files::default(),
            handles: HashMap::new(),
            next_handle: 1,
            last_end: None,
            repeats: true,
            not_replayed: BTreeMap::new(),
        }
    }

    /// Commands that have a line.
    pub(super) fn commands(&self) -> u64 {
        self.commands
    }

    pub(super) fn finish(mut self) -> Done {
        if self.overlapping > 0 {
            let reason = "began before the one before was answered: replayed one after the other";
            self.not_replayed.insert(reason.to_owned(), self.overlapping);
        }
        Done {
            files: self.files.lines(),
            steps: self.text,
            repeats: self.repeats,
            not_replayed: self.not_replayed.into_iter().map(|(reason, count)| format!("{count} × {reason}")).collect(),
        }
    }

    pub(super) fn add(&mut self, taken: &Taken) {
        // Sessions are the load generator's own.
        if taken.group == Group::Session {
            return;
        }
        match self.line(taken) {
            Ok(line) => {
                self.pause(taken);
                self.commands += 1;
                self.text.push_str(&line);
                self.text.push('\n');
            }
            Err(reason) => *self.not_replayed.entry(reason).or_default() += 1,
        }
        self.last_end = self.last_end.max(Some(taken.end.0));
    }

    /// The time in which nothing was outstanding.
    fn pause(&mut self, taken: &Taken) {
        let Some(last) = self.last_end else { return };
        let pause = taken.start.0 - last;
        if pause < 0 && self.commands > 0 {
            self.overlapping += 1;
        }
        if pause >= SHORTEST_PAUSE_NS && self.commands > 0 {
            let _ = writeln!(self.text, "Sleep {} SUCCESS", pause / 1_000);
        }
    }

    fn line(&mut self, taken: &Taken) -> Result<String, Reason> {
        let Command::Smb2(command) = taken.command else {
            return Err(format!("{}: only SMB2 and SMB 3 in the clear can be recorded", taken.command));
        };
        if taken.group == Group::Waiting {
            return Err(format!("{command}: it waits for somebody else"));
        }
        if taken.share.as_deref().is_some_and(is_pipe) {
            return Err(format!("{command} of a named pipe"));
        }
        let status = taken.status.and_then(|status| match status {
            Status::Nt(status) => Some(status),
            Status::Dos(_) => None,
        });
        let status = status.ok_or_else(|| format!("{command} without a status"))?;
        let detail = taken.details.as_ref().map(|details| &details.request);
        let said = said(status);
        if command == smb2::Command::CREATE {
            return self.create(taken, status);
        }
        let key = taken.file_id.map(|file| (taken.flow, file));
        if command == smb2::Command::CLOSE {
            let open = key.and_then(|key| self.handles.remove(&key)).ok_or_else(|| no_open(command))?;
            return Ok(format!("Close {} {said}", open.handle));
        }
        let (with_share, names) = (self.with_share, self.key);
        let open = key.and_then(|key| self.handles.get_mut(&key)).ok_or_else(|| no_open(command))?;
        let handle = open.handle;
        let range = || taken.offset.zip(taken.length).ok_or_else(|| format!("{command} that the capture cut off"));
        Ok(match command {
            smb2::Command::READ => {
                let (offset, length) = range()?;
                format!("ReadX {handle} {offset} {length} {length} {said}")
            }
            smb2::Command::WRITE => {
                let (offset, length) = range()?;
                let end = offset.saturating_add(length);
                self.repeats &= end <= open.size || status.is_error();
                open.size = open.size.max(end);
                format!("WriteX {handle} {offset} {length} {length} {said}")
            }
            smb2::Command::FLUSH => format!("Flush {handle} {said}"),
            smb2::Command::QUERY_INFO => match taken.subcommand {
                Some(Subcommand::Info(level @ (InfoLevel::File(_) | InfoLevel::FileSystem(_)))) => {
                    let [info_type, class]: [u8; 2] = level.to_wire().into();
                    format!("QueryInfo {handle} {info_type} {class} {said}")
                }
                Some(other) => return Err(format!("QUERY_INFO of {other}")),
                None => return Err("QUERY_INFO that the capture cut off".to_owned()),
            },
            smb2::Command::QUERY_DIRECTORY => {
                let Some(Detail::QueryDirectory { pattern, flags }) = detail else {
                    return Err("QUERY_DIRECTORY that the capture cut off".to_owned());
                };
                let Some(Subcommand::Info(InfoLevel::File(class))) = taken.subcommand else {
                    return Err("QUERY_DIRECTORY that the capture cut off".to_owned());
                };
                if pattern.contains('"') {
                    return Err("QUERY_DIRECTORY with a quotation mark in its pattern".to_owned());
                }
                let pattern = names.map_or_else(|| pattern.clone(), |key| key.pattern(pattern));
                format!("QueryDirectory {handle} \"{pattern}\" {class} {flags} {said}")
            }
            smb2::Command::SET_INFO => match (taken.subcommand, detail) {
                (Some(Subcommand::Info(InfoLevel::FILE_BASIC_INFORMATION)), _) => {
                    format!("SET_FILE_INFORMATION {handle} 1004 {said}")
                }
                (_, Some(Detail::EndOfFile(size))) => {
                    self.repeats &= *size == open.size;
                    format!("SetEnd {handle} {size} {said}")
                }
                (_, Some(Detail::Delete(delete))) => {
                    self.repeats &= !*delete;
                    format!("SetDelete {handle} {} {said}", u8::from(*delete))
                }
                (_, Some(Detail::Rename { path, replace })) => {
                    let to = shown_path(with_share, names, taken.share.as_deref(), path)?;
                    self.repeats = false;
                    let line = format!("RenameOpen {handle} \"\\{to}\" {} {said}", u8::from(*replace));
                    if !status.is_error() {
                        let from = std::mem::replace(&mut open.path, to.clone());
                        self.files.rename(&from, &to);
                    }
                    line
                }
                (Some(level), _) => return Err(format!("SET_INFO of {level}")),
                (None, _) => return Err("SET_INFO that the capture cut off".to_owned()),
            },
            smb2::Command::LOCK => {
                let (offset, length) = range()?;
                match detail {
                    Some(Detail::Lock { count: 1, flags }) if flags & 4 != 0 => {
                        format!("UnlockX {handle} {offset} {length} {said}")
                    }
                    Some(Detail::Lock { count: 1, flags }) if flags & 2 != 0 => {
                        format!("LockX {handle} {offset} {length} {said}")
                    }
                    Some(Detail::Lock { count: 1, .. }) => return Err("LOCK that is shared".to_owned()),
                    _ => return Err("LOCK of several ranges".to_owned()),
                }
            }
            smb2::Command::IOCTL => {
                let code = taken.subcommand.map_or_else(|| "an unknown code".to_owned(), |code| code.to_string());
                return Err(format!("IOCTL {code}"));
            }
            other => return Err(other.to_string()),
        })
    }

    fn create(&mut self, taken: &Taken, status: NtStatus) -> Result<String, Reason> {
        let details = taken.details.as_ref().ok_or("CREATE that the capture cut off")?;
        let Detail::Create { desired_access, share_access, create_disposition, create_options, file_attributes } =
            details.request
        else {
            return Err("CREATE that the capture cut off".to_owned());
        };
        if create_options & OPEN_BY_FILE_ID != 0 {
            return Err("CREATE by file id".to_owned());
        }
        let path = taken.path.as_deref().ok_or("CREATE that the capture cut off")?;
        let path = shown_path(self.with_share, self.key, taken.share.as_deref(), path)?;
        let is_directory = create_options & DIRECTORY_FILE != 0;
        match (status, details.created) {
            (NtStatus::OBJECT_NAME_NOT_FOUND | NtStatus::NO_SUCH_FILE, _) => self.files.find(&path, Found::Nothing),
            (NtStatus::OBJECT_PATH_NOT_FOUND, _) => self.files.misses(&path),
            (NtStatus::OBJECT_NAME_COLLISION, _) if is_directory => self.files.find(&path, Found::Directory),
            (NtStatus::OBJECT_NAME_COLLISION, _) => self.files.find(&path, Found::File { size: 0 }),
            (status, _) if status.is_error() => return Err(format!("CREATE that failed with {status}")),
            (_, None) => return Err("CREATE whose answer the capture cut off".to_owned()),
            (_, Some(created)) => {
                let found = match created.action {
                    CREATED => Found::Nothing,
                    _ if created.attributes & DIRECTORY != 0 => Found::Directory,
                    OPENED => Found::File { size: created.size },
                    // It was there, and what it had is gone.
                    _ => Found::File { size: 0 },
                };
                self.files.find(&path, found);
                self.repeats &= created.action == OPENED && create_options & DELETE_ON_CLOSE == 0;
            }
        }
        let handle = self.next_handle;
        self.next_handle += 1;
        if let (Some(created), Some(file)) = (details.created, taken.file_id) {
            let open = Open { handle, path: path.clone(), size: created.size };
            self.handles.insert((taken.flow, file), open);
        }
        Ok(format!(
            "Create \"\\{path}\" {desired_access:#x} {share_access:#x} {create_disposition} {create_options:#x} \
             {file_attributes:#x} {handle} {}",
            said(status)
        ))
    }
}

/// A path as the recording has it, without a backslash in front.
fn shown_path(with_share: bool, key: Option<&Key>, share: Option<&str>, path: &str) -> Result<String, Reason> {
    let path = path.trim_matches('\\');
    if smbscope_model::CUT_NAME_MARK.eq(&path.chars().next_back().unwrap_or_default()) {
        return Err("commands on a path that the capture cut off".to_owned());
    }
    if path.contains(':') {
        return Err("commands on a named stream".to_owned());
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

fn no_open(command: smb2::Command) -> Reason {
    format!("{command} of a file whose open is not replayed or not in the capture")
}

/// A status as lines have it.
fn said(status: NtStatus) -> String {
    if status.is_error() { format!("{:#010x}", status.0) } else { "SUCCESS".to_owned() }
}
