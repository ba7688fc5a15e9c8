//! Querying and setting information on files, paths and the file system (MS-CIFS 3.2.4.9 to 3.2.4.14).

use super::super::file::{FileHandle, Info, SetInfo};
use super::super::{ClientError, FsctlProfile};
use super::connection::malformed;
use super::{MAX_TRANSACT, Smb1ClientSession, fid_of, rooted};
use crate::smb1::requests::Smb1RequestDetails;
use smbscope_model::Subcommand;
use smbscope_wire::fscc::Data;
use smbscope_wire::names::InfoLevel;
use smbscope_wire::smb1::messages::trans2::{
    InformationLevel, QueryFileInformation, QueryFsInformation, QueryPathInformation, SetFileInformation,
    SetPathInformation, query_file_level, query_fs_level, set_level,
};
use smbscope_wire::smb1::messages::{NtTransactIoctl, NtTransactResponse, capabilities};

impl Smb1ClientSession {
    /// Returns information about an open file, in the level's encoding.
    pub async fn query_file(&mut self, handle: FileHandle, info: Info) -> Result<&[u8], ClientError> {
        let information_level = self.file_level(info)?;
        let fid = fid_of(handle);
        let query = QueryFileInformation { fid, information_level, max_data_count: MAX_TRANSACT };
        self.connection.transact(&query, Smb1RequestDetails::file(fid)).await?;
        Ok(&self.connection.assembly.data)
    }

    /// Returns information about a path without opening it, in the level's encoding.
    pub async fn query_path(&mut self, path: &str, info: Info) -> Result<&[u8], ClientError> {
        let information_level = self.file_level(info)?;
        let file_name = rooted(&mut self.path, path);
        let query = QueryPathInformation { information_level, max_data_count: MAX_TRANSACT, file_name };
        self.connection.transact(&query, Smb1RequestDetails::default()).await?;
        Ok(&self.connection.assembly.data)
    }

    pub async fn query_file_system(&mut self, info: Info) -> Result<&[u8], ClientError> {
        let InfoLevel::FileSystem(class) = info else {
            return Err(ClientError::Unsupported(format!("{info}: no class of file systems")));
        };
        let information_level = self.allowed(query_fs_level(class), info)?;
        let query = QueryFsInformation { information_level, max_data_count: MAX_TRANSACT };
        self.connection.transact(&query, Smb1RequestDetails::default()).await?;
        Ok(&self.connection.assembly.data)
    }

    pub async fn set_file(&mut self, handle: FileHandle, set: SetInfo<'_>) -> Result<(), ClientError> {
        let information = self.change(set)?;
        let fid = fid_of(handle);
        self.connection.transact(&SetFileInformation { fid, information }, Smb1RequestDetails::file(fid)).await
    }

    /// Changes a file or directory without opening it.
    pub async fn set_path(&mut self, path: &str, set: SetInfo<'_>) -> Result<(), ClientError> {
        let information = self.change(set)?;
        let file_name = rooted(&mut self.path, path);
        self.connection.transact(&SetPathInformation { information, file_name }, Smb1RequestDetails::default()).await
    }

    pub async fn control(&mut self, control: &FsctlProfile, handle: Option<FileHandle>) -> Result<(), ClientError> {
        let Some(handle) = handle else {
            return Err(ClientError::Unsupported(format!("SMB1: {} without an open file", control.code)));
        };
        let fid = fid_of(handle);
        let input = control.input(&self.options.host, &self.options.share);
        let max_data_count = control.max_output.min(MAX_TRANSACT.into());
        let ioctl = NtTransactIoctl { fid, code: control.code, input: &input, max_data_count };
        let about =
            Smb1RequestDetails { subcommand: Some(Subcommand::Fsctl(control.code)), ..Smb1RequestDetails::file(fid) };
        self.connection.call(&ioctl, about).await?;
        NtTransactResponse::parse(self.connection.message()).map_err(malformed)?;
        Ok(())
    }

    fn change<'a>(&self, set: SetInfo<'a>) -> Result<Data<'a>, ClientError> {
        match set {
            SetInfo::Rename { path, .. } if path.contains('\\') => {
                let what = "an open file is renamed within its directory: give the name alone, or rename by path";
                return Err(ClientError::Unsupported(format!("SMB1: {what}")));
            }
            SetInfo::Rename { .. } => {
                self.allowed(set_level(&set.into()), InfoLevel::FILE_RENAME_INFORMATION)?;
            }
            _ => {}
        }
        Ok(set.into())
    }

    fn file_level(&self, info: Info) -> Result<InformationLevel, ClientError> {
        let InfoLevel::File(class) = info else {
            return Err(ClientError::Unsupported(format!("{info}: no class of files")));
        };
        self.allowed(query_file_level(class), info)
    }

    fn allowed(&self, level: InformationLevel, info: Info) -> Result<InformationLevel, ClientError> {
        if level.is_pass_through() && self.server.capabilities & capabilities::INFOLEVEL_PASSTHRU == 0 {
            let what = "SMB1 has no level for it, and the server passes no classes through";
            return Err(ClientError::Unsupported(format!("{info}: {what}")));
        }
        Ok(level)
    }
}
