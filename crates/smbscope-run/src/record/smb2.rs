//! Converts SMB2 and SMB 3 commands into recording lines.

use super::BufferedCommand;
use super::lines::{Reason, RecordingBuilder, range, said};
use smbscope_model::Subcommand;
use smbscope_wire::RequestDetail;
use smbscope_wire::names::InfoLevel;
use smbscope_wire::smb2::Smb2Command;
use smbscope_wire::status::NtStatus;

impl RecordingBuilder<'_> {
    pub(super) fn smb2(
        &mut self,
        taken: &BufferedCommand,
        command: Smb2Command,
        status: NtStatus,
    ) -> Result<String, Reason> {
        let said = &said(status);
        let cut_off = || format!("{command} that the capture cut off");
        let detail = taken.details.as_ref().map(|details| &details.request);
        Ok(match command {
            Smb2Command::CREATE => self.create(taken, status, said)?,
            Smb2Command::CLOSE => self.close(taken, said)?,
            Smb2Command::READ => {
                let (offset, length) = range(taken)?;
                format!("ReadX {} {offset} {length} {length} {said}", self.open(taken)?.handle)
            }
            Smb2Command::WRITE => self.write(taken, status, said)?,
            Smb2Command::FLUSH => format!("Flush {} {said}", self.open(taken)?.handle),
            Smb2Command::LOCK => self.lock(taken, detail, said)?,
            Smb2Command::QUERY_INFO => match taken.subcommand {
                Some(Subcommand::Info(level @ (InfoLevel::File(_) | InfoLevel::FileSystem(_)))) => {
                    let [info_type, class]: [u8; 2] = level.to_wire().into();
                    format!("QueryInfo {} {info_type} {class} {said}", self.open(taken)?.handle)
                }
                Some(other) => return Err(format!("QUERY_INFO of {other}")),
                None => return Err(cut_off()),
            },
            Smb2Command::QUERY_DIRECTORY => {
                let (
                    Some(RequestDetail::QueryDirectory { pattern, flags }),
                    Some(Subcommand::Info(InfoLevel::File(class))),
                ) = (detail, taken.subcommand)
                else {
                    return Err(cut_off());
                };
                let pattern = self.key.map_or_else(|| pattern.clone(), |key| key.pattern(pattern));
                if pattern.contains('"') {
                    return Err("QUERY_DIRECTORY with a quotation mark in its pattern".to_owned());
                }
                format!("QueryDirectory {} \"{pattern}\" {class} {flags} {said}", self.open(taken)?.handle)
            }
            Smb2Command::SET_INFO => match (taken.subcommand, detail) {
                (Some(Subcommand::Info(InfoLevel::FILE_BASIC_INFORMATION)), _) => {
                    format!("SET_FILE_INFORMATION {} 1004 {said}", self.open(taken)?.handle)
                }
                (_, Some(RequestDetail::EndOfFile(size))) => self.set_end(taken, *size, said)?,
                (_, Some(RequestDetail::Delete(delete))) => self.set_delete(taken, *delete, said)?,
                (_, Some(RequestDetail::Rename { path, replace })) => {
                    let to = self.shown(taken, path)?;
                    let handle = self.open(taken)?.handle;
                    self.repeats = false;
                    if !status.is_error() {
                        self.rename_open(taken, &to)?;
                    }
                    format!("RenameOpen {handle} \"\\{to}\" {} {said}", u8::from(*replace))
                }
                (Some(level), _) => return Err(format!("SET_INFO of {level}")),
                (None, _) => return Err(cut_off()),
            },
            Smb2Command::IOCTL => match taken.subcommand {
                Some(Subcommand::Fsctl(code)) => match self.open(taken) {
                    Ok(open) => format!("Control {} {:#x} {said}", open.handle, code.0),
                    Err(_) => return Err(format!("IOCTL {code}")),
                },
                _ => return Err("IOCTL an unknown code".to_owned()),
            },
            other => return Err(other.to_string()),
        })
    }
}
