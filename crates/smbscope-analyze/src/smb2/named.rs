//! What SMB2 requests name, and what their answers make true: sessions, trees and opens (MS-SMB2 3.3.1).

use crate::content::{Body, Body2, Message2};
use crate::names::{Tree, kept, user_name};
use smbscope_model::{GrantedCaching, FileId, Subcommand};
use smbscope_wire::CapturedName;
use smbscope_wire::names::InfoLevel;
use smbscope_wire::smb2::messages::create::oplock;
use smbscope_wire::smb2::messages::session_setup;
use smbscope_wire::smb2::{Created, FileReference, Smb2Command, Smb2Request};
use std::sync::Arc;

/// What the body of a request says.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) file: Option<FileReference>,
    pub(super) subcommand: Option<Subcommand>,
    pub(super) offset: Option<u64>,
    pub(super) length: Option<u64>,
    pub(super) waits: bool,
}

impl Named {
    pub(super) fn from_body(body: &Body2) -> Named {
        let Body::Request(request) = body else { return Named::default() };
        match request {
            Smb2Request::ReadWrite { file, offset, length } => {
                Named { file: Some(*file), offset: Some(*offset), length: Some((*length).into()), ..Named::default() }
            }
            Smb2Request::Lock { file, element } => Named {
                file: Some(*file),
                offset: element.map(|element| element.offset),
                length: element.map(|element| element.length),
                waits: element.is_some_and(|element| element.waits()),
                ..Named::default()
            },
            Smb2Request::Ioctl { file, code } => {
                let file = Some(*file).filter(|file| *file != FileReference::RELATED);
                Named { file, subcommand: Some(Subcommand::Fsctl(*code)), ..Named::default() }
            }
            Smb2Request::Info { file, level, .. } => {
                Named { file: Some(*file), subcommand: Some(Subcommand::Info(*level)), ..Named::default() }
            }
            Smb2Request::File(file) => Named { file: Some(*file), ..Named::default() },
            _ => Named::default(),
        }
    }
}

/// What a successful answer changes.
#[derive(Debug)]
pub(super) enum Effect {
    None,
    LogOn(Option<Arc<str>>),
    LogOff,
    Connect(Option<Tree>),
    Disconnect,
    Open {
        path: Option<Arc<str>>,
        /// The oplock level that is asked for.
        asked: Option<u8>,
    },
    Close,
    Rename(Arc<str>),
}

impl Effect {
    /// What a successful answer to a request will change.
    pub(super) fn from_message(member: &Message2, path: Option<Arc<str>>) -> Effect {
        match (&member.body, member.header.command) {
            (Body::Request(Smb2Request::SessionSetup { identity, .. }), _) => {
                Effect::LogOn(identity.as_ref().and_then(user_name))
            }
            (_, Smb2Command::LOGOFF) => Effect::LogOff,
            (Body::Request(Smb2Request::TreeConnect(path)), _) => Effect::Connect(Tree::new(path)),
            (_, Smb2Command::TREE_DISCONNECT) => Effect::Disconnect,
            (Body::Request(Smb2Request::Create { oplock_level, .. }), _) => Effect::Open { path, asked: *oplock_level },
            (_, Smb2Command::CREATE) => Effect::Open { path, asked: None },
            (_, Smb2Command::CLOSE) => Effect::Close,
            (
                Body::Request(Smb2Request::Info {
                    level: InfoLevel::FILE_RENAME_INFORMATION,
                    new_name: Some(name),
                    ..
                }),
                Smb2Command::SET_INFO,
            ) => display_path(name).map_or(Effect::None, Effect::Rename),
            _ => Effect::None,
        }
    }
}

/// What an open was granted that asked for this oplock level; absent where that, or the lease, was cut off.
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

/// An oplock by its level.
pub(super) fn oplock_left(level: u8) -> Option<GrantedCaching> {
    match level {
        oplock::NONE => Some(GrantedCaching::NotGranted),
        oplock::LEVEL_II => Some(GrantedCaching::LevelII),
        oplock::EXCLUSIVE => Some(GrantedCaching::Exclusive),
        oplock::BATCH => Some(GrantedCaching::Batch),
        _ => None,
    }
}

/// The user that a logon ended up as.
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
