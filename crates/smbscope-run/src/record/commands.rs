//! Converts commands into recording lines. SMB1's become lines that a load generator can perform over any dialect.

use crate::record::lines::{Reason, RecordingBuilder, range, said};
use crate::record::{InitialPathState, nt};
use smbscope_model::{Exchange, ResponseStatus, Subcommand};
use smbscope_wire::RequestDetail;
use smbscope_wire::names::{InfoLevel, Trans2};
use smbscope_wire::smb1::Smb1Command;
use smbscope_wire::smb2::Smb2Command;
use smbscope_wire::status::NtStatus;
use std::fmt::Display;

impl RecordingBuilder<'_> {
    pub(super) fn smb2(&mut self, taken: &Exchange, command: Smb2Command, status: NtStatus) -> Result<String, Reason> {
        let said = &said(status);
        let detail = taken.details.as_ref().map(|details| &details.request);
        match command {
            Smb2Command::CREATE => self.create(taken, status, said),
            Smb2Command::CLOSE => self.close(taken, said),
            Smb2Command::READ => {
                let (offset, length) = range(taken)?;
                Ok(format!("ReadX {} {offset} {length} {length} {said}", self.open(taken)?.handle))
            }
            Smb2Command::WRITE => self.write(taken, status, said),
            Smb2Command::FLUSH => Ok(format!("Flush {} {said}", self.open(taken)?.handle)),
            Smb2Command::LOCK => self.lock(taken, detail, said),
            Smb2Command::QUERY_INFO => self.query_info(taken, said),
            Smb2Command::QUERY_DIRECTORY => self.query_directory(taken, said),
            Smb2Command::SET_INFO => self.set_info(taken, status, said),
            Smb2Command::IOCTL => match taken.subcommand {
                Some(Subcommand::Fsctl(code)) => match self.open(taken) {
                    Ok(open) => Ok(format!("Control {} {:#x} {said}", open.handle, code.0)),
                    Err(_) => Err(format!("IOCTL {code}")),
                },
                _ => Err("IOCTL an unknown code".to_owned()),
            },
            other => Err(other.to_string()),
        }
    }

    fn query_info(&mut self, taken: &Exchange, said: &str) -> Result<String, Reason> {
        match taken.subcommand {
            Some(Subcommand::Info(level @ (InfoLevel::File(_) | InfoLevel::FileSystem(_)))) => {
                let [info_type, class]: [u8; 2] = level.to_wire().into();
                Ok(format!("QueryInfo {} {info_type} {class} {said}", self.open(taken)?.handle))
            }
            Some(other) => Err(format!("QUERY_INFO of {other}")),
            None => Err(cut_off(Smb2Command::QUERY_INFO)),
        }
    }

    fn query_directory(&mut self, taken: &Exchange, said: &str) -> Result<String, Reason> {
        let detail = taken.details.as_ref().map(|details| &details.request);
        let (Some(RequestDetail::QueryDirectory { pattern, flags }), Some(Subcommand::Info(InfoLevel::File(class)))) =
            (detail, taken.subcommand)
        else {
            return Err(cut_off(Smb2Command::QUERY_DIRECTORY));
        };
        let pattern = self.key.map_or_else(|| pattern.clone(), |key| key.pattern(pattern));
        if pattern.contains('"') {
            return Err("QUERY_DIRECTORY with a quotation mark in its pattern".to_owned());
        }
        Ok(format!("QueryDirectory {} \"{pattern}\" {class} {flags} {said}", self.open(taken)?.handle))
    }

    fn set_info(&mut self, taken: &Exchange, status: NtStatus, said: &str) -> Result<String, Reason> {
        let detail = taken.details.as_ref().map(|details| &details.request);
        match (taken.subcommand, detail) {
            (Some(Subcommand::Info(InfoLevel::FILE_BASIC_INFORMATION)), _) => {
                Ok(format!("SET_FILE_INFORMATION {} 1004 {said}", self.open(taken)?.handle))
            }
            (_, Some(RequestDetail::EndOfFile(size))) => self.set_end(taken, *size, said),
            (_, Some(RequestDetail::Delete(delete))) => self.set_delete(taken, *delete, said),
            (_, Some(RequestDetail::Rename { path, replace })) => {
                let to = self.shown(taken, path)?;
                let handle = self.open(taken)?.handle;
                self.repeats = false;
                if !status.is_error() {
                    self.rename_open(taken, &to)?;
                }
                Ok(format!("RenameOpen {handle} \"\\{to}\" {} {said}", u8::from(*replace)))
            }
            (Some(level), _) => Err(format!("SET_INFO of {level}")),
            (None, _) => Err(cut_off(Smb2Command::SET_INFO)),
        }
    }
}

fn cut_off(command: impl Display) -> Reason {
    format!("{command} that the capture cut off")
}

/// SMB_QUERY_FILE_BASIC_INFO and SMB_QUERY_FS_SIZE_INFO: the equivalents of core commands (MS-CIFS 2.2.2.3).
const BASIC_INFO: u16 = 0x0101;
const SIZE_INFO: u16 = 0x0103;
/// FileBasicInformation as a pass-through level (MS-SMB 2.2.2.3.5), which replays set without changing anything.
const SET_BASIC: u16 = 1004;

impl RecordingBuilder<'_> {
    pub(super) fn smb1(
        &mut self,
        taken: &Exchange,
        command: Smb1Command,
        status: ResponseStatus,
    ) -> Result<String, Reason> {
        self.leave_out_chain(taken, command);
        // The original client negotiated DOS errors; a load generator negotiates NT status codes.
        let is_dos = matches!(status, ResponseStatus::Dos(_));
        let status = nt(status);
        let said = &if is_dos && status.is_error() { "ERROR".to_owned() } else { said(status) };
        let detail = taken.details.as_ref().map(|details| &details.request);
        match command {
            Smb1Command::NT_CREATE_ANDX
            | Smb1Command::OPEN_ANDX
            | Smb1Command::OPEN
            | Smb1Command::CREATE
            | Smb1Command::CREATE_NEW => self.create(taken, status, said),
            Smb1Command::CLOSE => self.close(taken, said),
            Smb1Command::READ | Smb1Command::READ_ANDX | Smb1Command::READ_RAW | Smb1Command::READ_MPX => {
                self.read(taken, said)
            }
            Smb1Command::WRITE | Smb1Command::WRITE_ANDX | Smb1Command::WRITE_RAW | Smb1Command::WRITE_MPX => {
                match detail {
                    Some(RequestDetail::EndOfFile(size)) => self.set_end(taken, *size, said),
                    _ => self.write(taken, status, said),
                }
            }
            Smb1Command::FLUSH => Ok(format!("Flush {} {said}", self.open(taken)?.handle)),
            Smb1Command::LOCKING_ANDX | Smb1Command::LOCK_BYTE_RANGE | Smb1Command::UNLOCK_BYTE_RANGE => {
                self.lock(taken, detail, said)
            }
            Smb1Command::QUERY_INFORMATION | Smb1Command::CHECK_DIRECTORY => {
                self.query_path(taken, BASIC_INFO, status, said)
            }
            Smb1Command::QUERY_INFORMATION2 => {
                Ok(format!("QUERY_FILE_INFORMATION {} {BASIC_INFO} {said}", self.open(taken)?.handle))
            }
            Smb1Command::QUERY_INFORMATION_DISK => Ok(format!("QUERY_FS_INFORMATION {SIZE_INFO} {said}")),
            Smb1Command::DELETE => {
                let path = self.finds(taken, InitialPathState::File { size: 0 }, status)?;
                Ok(format!("Unlink \"\\{path}\" {said}"))
            }
            Smb1Command::DELETE_DIRECTORY => {
                let path = self.finds(taken, InitialPathState::Directory, status)?;
                Ok(format!("Rmdir \"\\{path}\" {said}"))
            }
            Smb1Command::CREATE_DIRECTORY => self.create_directory(taken, status, said),
            Smb1Command::RENAME => self.rename(taken, status, said),
            Smb1Command::TRANSACTION2 => self.transaction2(taken, status, said),
            _ => Err(match taken.subcommand {
                Some(subcommand) => format!("{command} {subcommand}"),
                None => command.to_string(),
            }),
        }
    }

    fn leave_out_chain(&mut self, taken: &Exchange, command: Smb1Command) {
        if let Some(Subcommand::AndX(chain)) = taken.subcommand {
            for chained in chain.into_iter().filter(|chained| *chained != Smb1Command::NO_ANDX) {
                self.leave_out(format!("{chained} that was chained to {command}"), 1);
            }
        }
    }

    fn create_directory(&mut self, taken: &Exchange, status: NtStatus, said: &str) -> Result<String, Reason> {
        let path = self.path(taken)?;
        let there = if status == NtStatus::OBJECT_NAME_COLLISION {
            InitialPathState::Directory
        } else {
            InitialPathState::Nothing
        };
        self.files.find(&path, there);
        self.repeats &= status.is_error();
        Ok(format!("Mkdir \"\\{path}\" {said}"))
    }

    fn rename(&mut self, taken: &Exchange, status: NtStatus, said: &str) -> Result<String, Reason> {
        let Some(RequestDetail::Rename { path: to, .. }) = taken.details.as_ref().map(|details| &details.request)
        else {
            return Err(cut_off(Smb1Command::RENAME));
        };
        let to = self.shown(taken, to)?;
        let from = self.finds(taken, InitialPathState::Something, status)?;
        if !status.is_error() {
            self.files.rename(&from, &to);
        }
        Ok(format!("Rename \"\\{from}\" \"\\{to}\" {said}"))
    }

    fn transaction2(&mut self, taken: &Exchange, status: NtStatus, said: &str) -> Result<String, Reason> {
        let Some(Subcommand::Trans2(subcommand)) = taken.subcommand else {
            return Err("TRANSACTION2 that the capture cut off".to_owned());
        };
        let detail = taken.details.as_ref().map(|details| &details.request);
        match (subcommand, detail) {
            (Trans2::QUERY_PATH_INFORMATION, Some(RequestDetail::Level(level))) => {
                self.query_path(taken, *level, status, said)
            }
            (Trans2::QUERY_FILE_INFORMATION, Some(RequestDetail::Level(level))) => {
                Ok(format!("QUERY_FILE_INFORMATION {} {level} {said}", self.open(taken)?.handle))
            }
            (Trans2::QUERY_FS_INFORMATION, Some(RequestDetail::Level(level))) => {
                Ok(format!("QUERY_FS_INFORMATION {level} {said}"))
            }
            (Trans2::SET_FILE_INFORMATION, Some(RequestDetail::EndOfFile(size))) => self.set_end(taken, *size, said),
            (Trans2::SET_FILE_INFORMATION, Some(RequestDetail::Delete(delete))) => {
                self.set_delete(taken, *delete, said)
            }
            // SMB_INFO_STANDARD and SMB_SET_FILE_BASIC_INFO set times and attributes.
            (Trans2::SET_FILE_INFORMATION, Some(RequestDetail::Level(1 | 0x101 | SET_BASIC))) => {
                Ok(format!("SET_FILE_INFORMATION {} {SET_BASIC} {said}", self.open(taken)?.handle))
            }
            (Trans2::FIND_FIRST2, Some(RequestDetail::Level(level))) => self.find_first(taken, *level, status, said),
            (Trans2::FIND_NEXT2, _) => Err(format!("{subcommand}: a replayed listing asks for all of it")),
            (_, Some(RequestDetail::Level(level))) => Err(format!("{subcommand} of level {level:#x}")),
            _ => Err(subcommand.to_string()),
        }
    }

    /// Formats a read. Past the end of a file, SMB1 succeeds with no bytes.
    fn read(&mut self, taken: &Exchange, said: &str) -> Result<String, Reason> {
        let (offset, length) = range(taken)?;
        let open = self.open(taken)?;
        let handle = open.handle;
        if offset >= open.size && length > 0 && said == "SUCCESS" {
            return Ok(format!("ReadX {handle} {offset} {length} 0 NT_STATUS_OK"));
        }
        Ok(format!("ReadX {handle} {offset} {length} {length} {said}"))
    }

    fn query_path(&mut self, taken: &Exchange, level: u16, status: NtStatus, said: &str) -> Result<String, Reason> {
        let path = self.path(taken)?;
        self.note(&path, InitialPathState::Something, status);
        Ok(format!("QUERY_PATH_INFORMATION \"\\{path}\" {level} {said}"))
    }

    fn find_first(&mut self, taken: &Exchange, level: u16, status: NtStatus, said: &str) -> Result<String, Reason> {
        let path = taken.path.as_deref().ok_or("FIND_FIRST2 that the capture cut off")?;
        let (above, pattern) = path.rsplit_once('\\').unwrap_or(("", path));
        let is_name = !pattern.contains(['*', '?', '<', '>', '"']);
        let above = self.shown(taken, above)?;
        let pattern = self.key.map_or_else(|| pattern.to_owned(), |key| key.pattern(pattern));
        if pattern.contains('"') {
            return Err("FIND_FIRST2 with a quotation mark in its pattern".to_owned());
        }
        let blank = if above.is_empty() { "" } else { "\\" };
        let whole = format!("{above}{blank}{pattern}");
        if is_name {
            self.note(&whole, InitialPathState::Something, status);
        } else if !status.is_error() {
            self.files.find(&above, InitialPathState::Directory);
        }
        Ok(format!("FIND_FIRST \"\\{whole}\" {level} 0 0 {said}"))
    }

    fn finds(&mut self, taken: &Exchange, found: InitialPathState, status: NtStatus) -> Result<String, Reason> {
        let path = self.path(taken)?;
        self.note(&path, found, status);
        self.repeats &= status.is_error();
        Ok(path)
    }

    fn note(&mut self, path: &str, found: InitialPathState, status: NtStatus) {
        match status {
            NtStatus::OBJECT_NAME_NOT_FOUND | NtStatus::NO_SUCH_FILE => {
                self.files.find(path, InitialPathState::Nothing)
            }
            NtStatus::OBJECT_PATH_NOT_FOUND => self.files.misses(path),
            status if status.is_error() => {}
            _ => self.files.find(path, found),
        }
    }
}
