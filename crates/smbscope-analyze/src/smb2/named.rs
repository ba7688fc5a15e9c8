//! Fields of SMB2 requests that name something, and the effect of successful responses on sessions, trees and opens
//! (MS-SMB2 §3.3.1).

use crate::content::{Body2, Message2, RequestOrResponse};
use crate::names::{TrackedTreeConnect, kept, user_name};
use smbscope_model::{FileId, GrantedCaching, Subcommand};
use smbscope_wire::CapturedName;
use smbscope_wire::names::InfoLevel;
use smbscope_wire::smb2::messages::create::oplock;
use smbscope_wire::smb2::messages::session_setup;
use smbscope_wire::smb2::{Created, FileReference, Smb2Command, Smb2Request};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Smb2RequestFields {
    pub(super) file: Option<FileReference>,
    pub(super) subcommand: Option<Subcommand>,
    pub(super) offset: Option<u64>,
    pub(super) length: Option<u64>,
    pub(super) waits: bool,
}

impl Smb2RequestFields {
    pub(super) fn from_body(body: &Body2) -> Smb2RequestFields {
        let RequestOrResponse::Request(request) = body else { return Smb2RequestFields::default() };
        match request {
            Smb2Request::ReadWrite { file, offset, length } => Smb2RequestFields {
                file: Some(*file),
                offset: Some(*offset),
                length: Some((*length).into()),
                ..Smb2RequestFields::default()
            },
            Smb2Request::Lock { file, element } => Smb2RequestFields {
                file: Some(*file),
                offset: element.map(|element| element.offset),
                length: element.map(|element| element.length),
                waits: element.is_some_and(|element| element.waits()),
                ..Smb2RequestFields::default()
            },
            Smb2Request::Ioctl { file, code } => {
                let file = Some(*file).filter(|file| *file != FileReference::RELATED);
                Smb2RequestFields { file, subcommand: Some(Subcommand::Fsctl(*code)), ..Smb2RequestFields::default() }
            }
            Smb2Request::Info { file, level, .. } => Smb2RequestFields {
                file: Some(*file),
                subcommand: Some(Subcommand::Info(*level)),
                ..Smb2RequestFields::default()
            },
            Smb2Request::File(file) => Smb2RequestFields { file: Some(*file), ..Smb2RequestFields::default() },
            _ => Smb2RequestFields::default(),
        }
    }
}

/// Change of state when the request succeeds.
#[derive(Debug)]
pub(super) enum Smb2ResponseEffect {
    None,
    LogOn(Option<Arc<str>>),
    LogOff,
    Connect(Option<TrackedTreeConnect>),
    Disconnect,
    Open { path: Option<Arc<str>>, asked: Option<u8> },
    Close,
    Rename(Arc<str>),
}

impl Smb2ResponseEffect {
    pub(super) fn from_message(member: &Message2, path: Option<Arc<str>>) -> Smb2ResponseEffect {
        match (&member.body, member.header.command) {
            (RequestOrResponse::Request(Smb2Request::SessionSetup { identity, .. }), _) => {
                Smb2ResponseEffect::LogOn(identity.as_ref().and_then(user_name))
            }
            (_, Smb2Command::LOGOFF) => Smb2ResponseEffect::LogOff,
            (RequestOrResponse::Request(Smb2Request::TreeConnect(path)), _) => {
                Smb2ResponseEffect::Connect(TrackedTreeConnect::new(path))
            }
            (_, Smb2Command::TREE_DISCONNECT) => Smb2ResponseEffect::Disconnect,
            (RequestOrResponse::Request(Smb2Request::Create { oplock_level, .. }), _) => {
                Smb2ResponseEffect::Open { path, asked: *oplock_level }
            }
            (_, Smb2Command::CREATE) => Smb2ResponseEffect::Open { path, asked: None },
            (_, Smb2Command::CLOSE) => Smb2ResponseEffect::Close,
            (
                RequestOrResponse::Request(Smb2Request::Info {
                    level: InfoLevel::FILE_RENAME_INFORMATION,
                    new_name: Some(name),
                    ..
                }),
                Smb2Command::SET_INFO,
            ) => display_path(name).map_or(Smb2ResponseEffect::None, Smb2ResponseEffect::Rename),
            _ => Smb2ResponseEffect::None,
        }
    }
}

/// Returns the granted oplock or lease. `None` if the request or the lease was truncated.
pub(super) fn granted(asked: Option<u8>, created: &Created) -> Option<GrantedCaching> {
    match created.oplock_level {
        oplock::NONE => asked.map(|asked| match asked {
            oplock::NONE => GrantedCaching::NotRequested,
            _ => GrantedCaching::NotGranted,
        }),
        oplock::LEASE => created.lease.map(|lease| GrantedCaching::of_lease(lease.state)),
        level => oplock_left(level),
    }
}

pub(super) fn oplock_left(level: u8) -> Option<GrantedCaching> {
    match level {
        oplock::NONE => Some(GrantedCaching::NotGranted),
        oplock::LEVEL_II => Some(GrantedCaching::LevelII),
        oplock::EXCLUSIVE => Some(GrantedCaching::Exclusive),
        oplock::BATCH => Some(GrantedCaching::Batch),
        _ => None,
    }
}

pub(super) fn logged_on(user: Option<Arc<str>>, flags: u16) -> Option<Arc<str>> {
    match user {
        Some(user) if flags & session_setup::Response::GUEST != 0 => Some(format!("{user} (guest)").into()),
        None if flags & session_setup::Response::NULL != 0 => Some("(anonymous)".into()),
        user => user,
    }
}

/// The root of a share has an empty name.
pub(super) fn display_path(name: &CapturedName) -> Option<Arc<str>> {
    if name.text.is_empty() && name.is_whole() { Some("\\".into()) } else { kept(name) }
}

pub(super) fn file_id(file: FileReference) -> Option<FileId> {
    (file != FileReference::RELATED).then_some(FileId::Smb2 { persistent: file.persistent, volatile: file.volatile })
}
