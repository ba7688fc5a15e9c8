//! Listing, creating, renaming and deleting by name (MS-CIFS 3.2.4.6 to 3.2.4.8, 3.2.4.25), and querying and setting
//! information on files, paths and the file system (3.2.4.9 to 3.2.4.14).

use crate::file::{FileHandle, Info, ListingEntry, SetInfo};
use crate::limits::Listing;
use crate::sample::RequestDetails;
use crate::smb1::connection::malformed;
use crate::smb1::{MAX_TRANSACT, Smb1ClientSession, fid_of, rooted};
use crate::{ClientError, FsctlProfile};
use smbscope_model::Subcommand;
use smbscope_wire::fscc::{Data, DirectoryEntries};
use smbscope_wire::names::InfoLevel;
use smbscope_wire::smb1::flags2;
use smbscope_wire::smb1::messages::trans2::{
    FindFirst2, FindFirst2Response, FindNext2, FindNext2Response, InformationLevel, QueryFileInformation,
    QueryFsInformation, QueryPathInformation, SetFileInformation, SetPathInformation, find_class, find_flags,
    find_level, query_file_level, query_fs_level, set_level,
};
use smbscope_wire::smb1::messages::{
    CheckDirectory, CreateDirectory, Delete, DeleteDirectory, FindClose2, NtTransactIoctl, NtTransactResponse, Rename,
    capabilities, search_attributes as attributes,
};
use smbscope_wire::status::NtStatus;

/// Entries to request at a time. The response has room for fewer.
const AT_ONCE: u16 = 1366;
const FILES: u16 = attributes::HIDDEN | attributes::SYSTEM;
const ALL: u16 = FILES | attributes::DIRECTORY;

impl Smb1ClientSession {
    pub async fn list(
        &mut self,
        pattern: &str,
        info: Info,
        most: usize,
        entries: Option<&mut Vec<ListingEntry>>,
    ) -> Result<usize, ClientError> {
        let level = match info {
            InfoLevel::File(class) => find_level(class),
            _ => None,
        };
        let Some(information_level) = level else {
            return Err(ClientError::Unsupported(format!("{info}: SMB1 has no level that lists with it")));
        };
        let mut listing = Listing::new(most, entries, self.connection.timeout);
        let find = FindFirst2 {
            search_attributes: ALL,
            search_count: count(listing.wanted),
            flags: find_flags::CLOSE_AT_EOS,
            information_level,
            max_data_count: MAX_TRANSACT,
            file_name: rooted(&mut self.path, pattern),
        };
        self.connection.transact(&find, RequestDetails::default()).await?;
        let FindFirst2Response { sid, end_of_search, .. } =
            FindFirst2Response::parse(&self.connection.dialect.assembly.parameters).map_err(malformed)?;
        self.take(information_level, &mut listing)?;
        let mut is_through = end_of_search;
        while !is_through && listing.wanted > 0 && !self.resume.is_empty() {
            let next = FindNext2 {
                sid,
                search_count: count(listing.wanted),
                information_level,
                flags: find_flags::CLOSE_AT_EOS | find_flags::CONTINUE_FROM_LAST,
                max_data_count: MAX_TRANSACT,
                raw_name: &self.resume,
            };
            match self.connection.transact(&next, RequestDetails::default()).await {
                Err(error) if error.status() == Some(NtStatus::NO_MORE_FILES) => return Ok(listing.found),
                result => result?,
            }
            let answer = FindNext2Response::parse(&self.connection.dialect.assembly.parameters).map_err(malformed)?;
            is_through = answer.end_of_search;
            self.take(information_level, &mut listing)?;
        }
        if !is_through {
            self.connection.run(&FindClose2 { sid }, RequestDetails::default()).await?;
        }
        Ok(listing.found)
    }

    /// Takes the entries of a response, and keeps the last name to resume from.
    fn take(&mut self, level: InformationLevel, listing: &mut Listing<'_>) -> Result<(), ClientError> {
        let unicode = self.connection.dialect.header.flags2 & flags2::UNICODE != 0;
        self.resume.clear();
        let entries =
            find_class(level).and_then(|class| DirectoryEntries::new(&self.connection.dialect.assembly.data, class));
        let entries = entries.map(|entries| if unicode { entries } else { entries.in_oem() }).into_iter().flatten();
        listing
            .take(entries.inspect(|entry| {
                self.resume.clear();
                self.resume.extend_from_slice(entry.name);
            }))
            .map(drop)
    }

    pub async fn remove_file(&mut self, path: &str) -> Result<(), ClientError> {
        let delete = Delete { search_attributes: FILES, file_name: rooted(&mut self.path, path).into() };
        self.connection.run(&delete, RequestDetails::default()).await
    }

    pub async fn rename(&mut self, from: &str, to: &str) -> Result<(), ClientError> {
        let rename = Rename {
            search_attributes: ALL,
            old_file_name: rooted(&mut self.path, from).into(),
            new_file_name: rooted(&mut self.second_path, to).into(),
        };
        self.connection.run(&rename, RequestDetails::default()).await
    }

    pub async fn make_directory(&mut self, path: &str) -> Result<(), ClientError> {
        let make = CreateDirectory { directory_name: rooted(&mut self.path, path).into() };
        self.connection.run(&make, RequestDetails::default()).await
    }

    pub async fn remove_directory(&mut self, path: &str) -> Result<(), ClientError> {
        let remove = DeleteDirectory { directory_name: rooted(&mut self.path, path).into() };
        self.connection.run(&remove, RequestDetails::default()).await
    }

    pub async fn check_directory(&mut self, path: &str) -> Result<(), ClientError> {
        let check = CheckDirectory { directory_name: rooted(&mut self.path, path).into() };
        self.connection.run(&check, RequestDetails::default()).await
    }
}

fn count(most: usize) -> u16 {
    u16::try_from(most).unwrap_or(AT_ONCE).min(AT_ONCE)
}

impl Smb1ClientSession {
    pub async fn query_file(&mut self, handle: FileHandle, info: Info) -> Result<&[u8], ClientError> {
        let information_level = self.file_level(info)?;
        let fid = fid_of(handle);
        let query = QueryFileInformation { fid, information_level, max_data_count: MAX_TRANSACT };
        self.connection.transact(&query, RequestDetails::file(fid)).await?;
        Ok(&self.connection.dialect.assembly.data)
    }

    /// Returns information about a path without opening it, in the level's encoding.
    pub async fn query_path(&mut self, path: &str, info: Info) -> Result<&[u8], ClientError> {
        let information_level = self.file_level(info)?;
        let file_name = rooted(&mut self.path, path);
        let query = QueryPathInformation { information_level, max_data_count: MAX_TRANSACT, file_name };
        self.connection.transact(&query, RequestDetails::default()).await?;
        Ok(&self.connection.dialect.assembly.data)
    }

    pub async fn query_file_system(&mut self, info: Info) -> Result<&[u8], ClientError> {
        let InfoLevel::FileSystem(class) = info else {
            return Err(ClientError::Unsupported(format!("{info}: no class of file systems")));
        };
        let information_level = self.allowed(query_fs_level(class), info)?;
        let query = QueryFsInformation { information_level, max_data_count: MAX_TRANSACT };
        self.connection.transact(&query, RequestDetails::default()).await?;
        Ok(&self.connection.dialect.assembly.data)
    }

    pub async fn set_file(&mut self, handle: FileHandle, set: SetInfo<'_>) -> Result<(), ClientError> {
        let information = self.change(set)?;
        let fid = fid_of(handle);
        self.connection.transact(&SetFileInformation { fid, information }, RequestDetails::file(fid)).await
    }

    pub async fn set_path(&mut self, path: &str, set: SetInfo<'_>) -> Result<(), ClientError> {
        let information = self.change(set)?;
        let file_name = rooted(&mut self.path, path);
        self.connection.transact(&SetPathInformation { information, file_name }, RequestDetails::default()).await
    }

    pub async fn control(&mut self, control: &FsctlProfile, handle: Option<FileHandle>) -> Result<(), ClientError> {
        let Some(handle) = handle else {
            return Err(ClientError::Unsupported(format!("SMB1: {} without an open file", control.code)));
        };
        let fid = fid_of(handle);
        let input = control.input(&self.options.host, &self.options.share);
        let max_data_count = control.max_output.min(MAX_TRANSACT.into());
        let ioctl = NtTransactIoctl { fid, code: control.code, input: &input, max_data_count };
        let about = RequestDetails::file(fid).with(Subcommand::Fsctl(control.code));
        let reply = self.connection.call(&ioctl, about).await?;
        NtTransactResponse::parse(self.connection.message(&reply)).map_err(malformed).map(drop)
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
