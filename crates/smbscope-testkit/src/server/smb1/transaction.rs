//! TRANSACTION2 (MS-CIFS 2.2.6): listings, and information about paths, files and the file system.

use super::*;
use crate::server::info::Listing;
use smbscope_wire::bytes::{u16_at, u32_at};
use smbscope_wire::names::{InfoLevel, Trans2};
use smbscope_wire::smb1::TransactionRequest;
use smbscope_wire::smb1::messages::trans2::{InformationLevel, find_class};

#[derive(Debug)]
pub(super) struct Search {
    pattern: String,
    position: usize,
}

/// Levels from this value on are MS-FSCC classes (MS-SMB 2.2.2.3.5).
const PASS_THROUGH: u16 = 1000;
#[derive(Default)]
pub(super) struct Reply {
    pub(super) parameters: Vec<u8>,
    pub(super) data: Vec<u8>,
}

impl Smb1 {
    pub(super) fn transaction2(
        &mut self,
        request: &TransactionRequest,
        message: &[u8],
        script: &Script,
    ) -> Result<Reply, NtStatus> {
        let Transaction2 { subcommand, max_data_count, parameters, .. } =
            Transaction2::parse(message).map_err(|_| INVALID)?;
        let room = usize::from(max_data_count);
        let path = request.path.as_ref().map_or("", |name| &name.text).trim_start_matches('\\');
        let mut reply = Reply::default();
        match subcommand {
            Trans2::FIND_FIRST2 => {
                let pattern = path.rsplit('\\').next().unwrap_or_default().to_owned();
                self.next_search = self.next_search.wrapping_add(1);
                self.searches.insert(self.next_search, Search { pattern, position: 0 });
                reply.parameters.put_u16(self.next_search);
                let (most, level) = (u16_at(parameters, 2), u16_at(parameters, 6));
                self.find(self.next_search, most.zip(level).ok_or(INVALID)?, room, script, &mut reply)?;
            }
            Trans2::FIND_NEXT2 => {
                let sid = u16_at(parameters, 0).ok_or(INVALID)?;
                let (most, level) = (u16_at(parameters, 2), u16_at(parameters, 4));
                self.find(sid, most.zip(level).ok_or(INVALID)?, room, script, &mut reply)?;
            }
            Trans2::QUERY_FS_INFORMATION => {
                put_file_system(u16_at(parameters, 0).ok_or(INVALID)?, &mut reply.data)?;
            }
            Trans2::QUERY_PATH_INFORMATION => {
                let node = Node { is_directory: path.is_empty(), size: script.file_size, index: 999 };
                reply.parameters.put_u16(0);
                put_info(node, u16_at(parameters, 0).ok_or(INVALID)?, &mut reply.data)?;
            }
            Trans2::QUERY_FILE_INFORMATION => {
                let node = node(u16_at(parameters, 0).ok_or(INVALID)?, script);
                reply.parameters.put_u16(0);
                put_info(node, u16_at(parameters, 2).ok_or(INVALID)?, &mut reply.data)?;
            }
            Trans2::SET_PATH_INFORMATION | Trans2::SET_FILE_INFORMATION | Trans2::CREATE_DIRECTORY => {
                reply.parameters.put_u16(0);
            }
            Trans2::GET_DFS_REFERRAL => return Err(NtStatus::NOT_FOUND),
            _ => return Err(NtStatus::NOT_SUPPORTED),
        }
        reply.data.truncate(room);
        Ok(reply)
    }

    /// Appends SearchCount, EndOfSearch, EaErrorOffset, LastNameOffset, and the entries (2.2.6.2.2).
    fn find(
        &mut self,
        sid: u16,
        (most, level): (u16, u16),
        room: usize,
        script: &Script,
        reply: &mut Reply,
    ) -> Answered {
        let search = self.searches.get_mut(&sid).ok_or(NtStatus::INVALID_HANDLE)?;
        let class = match find_class(InformationLevel(level)) {
            Some(class) => class.to_wire().1,
            None => level.checked_sub(PASS_THROUGH).ok_or(NtStatus::INVALID_LEVEL)? as u8,
        };
        let Script { entries, file_size, nested, looping, .. } = *script;
        let listing = Listing { pattern: &search.pattern, entries, file_size, nested };
        if looping && search.position >= entries.saturating_add(2) {
            search.position = 0;
        }
        let before = search.position;
        let after = listing.put(class, before, room, most.into(), &mut reply.data).ok_or(NtStatus::INVALID_LEVEL)?;
        search.position = after;
        if after == before && before == 0 {
            return Err(NtStatus::NO_SUCH_FILE);
        }
        let is_end = !looping && listing.put(class, after, usize::MAX, 1, &mut Vec::new()) == Some(after);
        if is_end {
            self.searches.remove(&sid);
        }
        reply.parameters.put_u16((after - before) as u16);
        reply.parameters.put_u16(is_end.into());
        reply.parameters.put_u16(0);
        reply.parameters.put_u16(last_entry(&reply.data) as u16);
        Ok(())
    }
}

fn last_entry(entries: &[u8]) -> usize {
    let mut at = 0;
    while let Some(next @ 1..) = u32_at(entries, at) {
        at += next as usize;
    }
    at
}

/// MS-CIFS 2.2.8.3
fn put_info(node: Node, level: u16, data: &mut Vec<u8>) -> Answered {
    let class = match level {
        // SMB_INFO_STANDARD: DOS dates and times.
        1 => {
            (0..3).for_each(|_| data.put_u32(0x5221));
            data.put_u32(node.end_of_file() as u32);
            data.put_u32(node.allocation() as u32);
            data.put_u16(node.attributes() as u16);
            return Ok(());
        }
        0x0101 => InfoLevel::FILE_BASIC_INFORMATION,
        0x0102 => InfoLevel::FILE_STANDARD_INFORMATION,
        0x0103 => InfoLevel::FILE_EA_INFORMATION,
        0x0104 => InfoLevel::FILE_NAME_INFORMATION,
        // SMB_QUERY_FILE_ALL_INFO: less than the MS-FSCC class of the same name.
        0x0107 => {
            let parts = [
                InfoLevel::FILE_BASIC_INFORMATION,
                InfoLevel::FILE_STANDARD_INFORMATION,
                InfoLevel::FILE_EA_INFORMATION,
                InfoLevel::FILE_NAME_INFORMATION,
            ];
            return parts.iter().try_for_each(|part| node.put_info(*part, data)).ok_or(NtStatus::INVALID_LEVEL);
        }
        0x0108 => InfoLevel::FILE_ALTERNATE_NAME_INFORMATION,
        0x0109 => InfoLevel::FILE_STREAM_INFORMATION,
        0x010b => InfoLevel::FILE_COMPRESSION_INFORMATION,
        _ => InfoLevel::File(level.checked_sub(PASS_THROUGH).ok_or(NtStatus::INVALID_LEVEL)? as u8),
    };
    node.put_info(class, data).ok_or(NtStatus::INVALID_LEVEL)
}

/// MS-CIFS 2.2.8.2
fn put_file_system(level: u16, data: &mut Vec<u8>) -> Answered {
    let class = match level {
        // SMB_INFO_ALLOCATION
        1 => {
            for value in [0, 8, 1 << 28, 1 << 27] {
                data.put_u32(value);
            }
            data.put_u16(512);
            return Ok(());
        }
        // SMB_INFO_VOLUME
        2 => {
            data.put_u32(0x5eed_5eed);
            data.put_u8(8);
            data.put_utf16("SCRIPTED");
            return Ok(());
        }
        0x0102 => InfoLevel::FILE_FS_VOLUME_INFORMATION,
        0x0103 => InfoLevel::FILE_FS_SIZE_INFORMATION,
        0x0104 => InfoLevel::FILE_FS_DEVICE_INFORMATION,
        0x0105 => InfoLevel::FILE_FS_ATTRIBUTE_INFORMATION,
        _ => InfoLevel::FileSystem(level.checked_sub(PASS_THROUGH).ok_or(NtStatus::INVALID_LEVEL)? as u8),
    };
    let root = Node { is_directory: true, size: 0, index: 1 };
    root.put_info(class, data).ok_or(NtStatus::INVALID_LEVEL)
}
