//! Replay parameters of SMB2 requests.

use super::messages::*;
use super::{LockElement, Smb2Command, Smb2Header};
use crate::RequestDetail;
use crate::bytes::utf16_text;
use crate::codec::FixedSizeField;
use crate::fscc::Data;
use crate::names::InfoLevel;

/// Parses a request from its header on. Returns `None` if the command has no parameters or they are truncated.
pub fn detail(command: Smb2Command, m: &[u8]) -> Option<RequestDetail> {
    Some(match command {
        Smb2Command::CREATE => RequestDetail::Create {
            desired_access: create::Request::desired_access(m)?,
            share_access: create::Request::share_access(m)?,
            create_disposition: create::Request::create_disposition(m)?,
            create_options: create::Request::create_options(m)?,
            file_attributes: create::Request::file_attributes(m)?,
        },
        Smb2Command::QUERY_DIRECTORY => {
            let (start, length) = query_directory::Request::pattern(m)?;
            let pattern = utf16_text(m.get(start..start.checked_add(length)?)?);
            RequestDetail::QueryDirectory { pattern, flags: query_directory::Request::flags(m)? }
        }
        Smb2Command::SET_INFO => {
            let (start, length) = set_info::Request::information(m)?;
            match set_info::Request::level(m)? {
                InfoLevel::FILE_END_OF_FILE_INFORMATION => RequestDetail::EndOfFile(u64::at(m, start)?),
                InfoLevel::FILE_DISPOSITION_INFORMATION => RequestDetail::Delete(u8::at(m, start)? != 0),
                InfoLevel::FILE_RENAME_INFORMATION => {
                    let name = Data::new_name(m, start..start.checked_add(length)?)?;
                    RequestDetail::Rename { path: utf16_text(m.get(name)?), replace: u8::at(m, start)? != 0 }
                }
                _ => return None,
            }
        }
        Smb2Command::LOCK => {
            let count = u16::at(m, Smb2Header::LENGTH + 2)?;
            RequestDetail::Lock { count, flags: LockElement::at(m, lock::Request::END)?.flags }
        }
        Smb2Command::QUERY_INFO => {
            RequestDetail::QueryInfo { additional_information: query_info::Request::additional_information(m)? }
        }
        _ => return None,
    })
}

/// Returns the number of bytes that [`detail`] needs. `prefix` holds at least the fixed fields.
pub fn detail_needed(command: Smb2Command, prefix: &[u8]) -> usize {
    let reach = |place: Option<(usize, usize)>| place.map_or(0, |(start, length)| start.saturating_add(length));
    match command {
        Smb2Command::QUERY_DIRECTORY => reach(query_directory::Request::pattern(prefix)),
        Smb2Command::SET_INFO => reach(set_info::Request::information(prefix)),
        Smb2Command::QUERY_INFO => query_info::Request::END,
        _ => 0,
    }
}
