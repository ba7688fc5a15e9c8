//! Outstanding SMB2 requests by message id, even if the snap length truncated the ids; session, tree and open that a
//! request refers to.

use super::credits::CreditRequest;
use crate::content::{Body2, Message2, RequestOrResponse};
use crate::ledger::Ledger;
use crate::names::{TrackedTreeConnect, kept, user_name};
use crate::pending::{OutstandingRequests, PendingExchange};
use crate::rereads::OpenFacts;
use smbscope_model::{Command, FileId, GrantedCaching, Subcommand};
use smbscope_wire::CapturedName;
use smbscope_wire::names::InfoLevel;
use smbscope_wire::smb2::messages::create::oplock;
use smbscope_wire::smb2::messages::session_setup;
use smbscope_wire::smb2::{self, Created, FileReference, Smb2Command, Smb2Header, Smb2Request, flags};
use std::sync::Arc;

/// Outstanding SMB2 requests per connection: `evicted_requests`. Servers grant no more than 8,192 credits.
const MAX_OUTSTANDING: usize = 8192;
/// Message id of an unsolicited notification (MS-SMB2 §2.2.23).
pub(super) const UNSOLICITED: u64 = u64::MAX;

#[derive(Debug, Clone, Default)]
pub(super) struct Smb2RequestTracker {
    pub(super) outstanding: OutstandingRequests<u64, Smb2TrackedRequest>,
    /// Number of outstanding requests by known bits of the id: all, at least 17, or fewer.
    by_mask: [usize; 3],
    asynchronous: u32,
    /// Highest message id so far: ids begin at 0 and grow (MS-SMB2 §3.2.4.1.3).
    highest_id: Option<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct Smb2TrackedRequest {
    pub(super) pending: Box<PendingExchange>,
    pub(super) id_mask: u64,
    pub(super) async_id: Option<u64>,
    /// Credits that count as outstanding: `None` after the first response, even an interim one.
    pub(super) credits: Option<CreditRequest>,
    pub(super) file: Option<FileReference>,
    pub(super) file_from: Option<u64>,
    pub(super) followers: Vec<u64>,
    pub(super) effect: Smb2ResponseEffect,
}

impl AsRef<PendingExchange> for Smb2TrackedRequest {
    fn as_ref(&self) -> &PendingExchange {
        &self.pending
    }
}

impl AsMut<PendingExchange> for Smb2TrackedRequest {
    fn as_mut(&mut self) -> &mut PendingExchange {
        &mut self.pending
    }
}

impl Smb2TrackedRequest {
    pub(super) fn fits(&self, header: &smb2::Smb2Header) -> bool {
        let same_operation = self.async_id.zip(header.async_id).is_none_or(|(known, answered)| known == answered);
        same_operation && self.pending.exchange.command == Command::Smb2(header.command)
    }
}

impl Smb2RequestTracker {
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Box<PendingExchange>> {
        (self.by_mask, self.asynchronous) = Default::default();
        self.outstanding.take_all().map(|request| request.pending)
    }

    pub(super) fn insert(&mut self, message_id: u64, request: Smb2TrackedRequest) -> Option<Smb2TrackedRequest> {
        if let Some(first) = request.file_from.and_then(|id| self.outstanding.get_mut(id)) {
            first.followers.push(message_id);
        }
        self.by_mask[mask_index(request.id_mask)] += 1;
        let older = self.outstanding.insert(message_id, request);
        older.inspect(|older| self.leaves(older.id_mask, older.async_id))
    }

    fn leaves(&mut self, id_mask: u64, async_id: Option<u64>) {
        self.by_mask[mask_index(id_mask)] -= 1;
        self.asynchronous -= u32::from(async_id.is_some());
    }

    pub(super) fn put_off(&mut self, message_id: u64, async_id: Option<u64>) -> u32 {
        if let Some(request) = self.outstanding.get_mut(message_id) {
            self.asynchronous += u32::from(request.async_id.is_none() && async_id.is_some());
            request.async_id = request.async_id.or(async_id);
        }
        self.asynchronous
    }

    pub(super) fn remove(&mut self, message_id: u64) -> Option<Smb2TrackedRequest> {
        let request = self.outstanding.remove(message_id)?;
        self.leaves(request.id_mask, request.async_id);
        Some(request)
    }

    pub(super) fn remove_excess(&mut self) -> Option<Smb2TrackedRequest> {
        let requests = self.outstanding.by_id();
        if requests.len() <= MAX_OUTSTANDING {
            return None;
        }
        let lowest = requests.first_key_value().map(|(id, _)| *id)?;
        self.remove(lowest)
    }

    /// Finds the request of a response. If the snap length truncated either id, compares the bits that both have; only
    /// one request may match. AsyncIds are useless here, because servers reuse the same few values.
    pub(super) fn find(&self, header: &smb2::Smb2Header) -> Option<u64> {
        let requests = self.outstanding.by_id();
        if requests.contains_key(&header.message_id) {
            return Some(header.message_id);
        }
        let same_bits = self.by_mask[mask_index(header.id_mask)];
        if same_bits == requests.len() {
            return None;
        }
        let mut alike = requests
            .iter()
            .filter(|(_, request)| header.id_mask & request.id_mask != u64::MAX)
            .filter(|(id, request)| (*id ^ header.message_id) & header.id_mask & request.id_mask == 0);
        match (alike.next(), alike.next()) {
            (Some((id, _)), None) => Some(*id),
            _ => None,
        }
    }

    /// Restores the bits of a truncated message id from the nearest possible id to the highest so far.
    pub(super) fn complete_id(&mut self, header: &mut smb2::Smb2Header, midstream: bool) {
        if header.id_mask != u64::MAX {
            let Some(highest) = self.highest_id.or((!midstream).then_some(0)) else { return };
            let ahead = header.message_id.wrapping_sub(highest) & header.id_mask;
            let behind = (header.id_mask - ahead).wrapping_add(1);
            let unsolicited = header.message_id == header.id_mask && header.command == smb2::Smb2Command::OPLOCK_BREAK;
            header.message_id = match highest.checked_sub(behind) {
                _ if unsolicited => UNSOLICITED,
                Some(id) if behind < ahead => id,
                _ => highest.saturating_add(ahead),
            };
            header.id_mask = u64::MAX;
        }
        if header.message_id != UNSOLICITED {
            self.highest_id = self.highest_id.max(Some(header.message_id));
        }
    }

    pub(super) fn name_followers(&mut self, followers: Vec<u64>, create: u64, file: FileReference) {
        for id in followers {
            let Some(request) = self.outstanding.get_mut(id).filter(|request| request.file_from == Some(create)) else {
                continue;
            };
            request.file = Some(file);
            request.pending.exchange.file_id = file_id(file);
        }
    }
}

fn mask_index(id_mask: u64) -> usize {
    match id_mask {
        u64::MAX => 0,
        mask if mask > u64::from(u16::MAX) => 1,
        _ => 2,
    }
}

#[derive(Debug, Clone, Default)]
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

#[derive(Debug, Clone)]
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

pub(super) fn display_path(name: &CapturedName) -> Option<Arc<str>> {
    if name.text.is_empty() && name.is_whole() { Some("\\".into()) } else { kept(name) }
}

pub(super) fn file_id(file: FileReference) -> Option<FileId> {
    (file != FileReference::RELATED).then_some(FileId::Smb2 { persistent: file.persistent, volatile: file.volatile })
}

/// Properties that a related member of a compound inherits (MS-SMB2 §3.3.5.2.7.2).
#[derive(Debug, Default, Clone)]
pub(super) struct Previous {
    session_id: Option<u64>,
    tree_id: Option<u32>,
    file: Option<FileReference>,
    file_from: Option<u64>,
    path: Option<Arc<str>>,
}

impl Previous {
    #[inline]
    pub(super) fn session_id_of(&self, header: &Smb2Header) -> Option<u64> {
        if is_related(header) { self.session_id } else { header.session_id }
    }

    #[inline]
    fn tree_id_of(&self, header: &Smb2Header) -> Option<u32> {
        if is_related(header) { self.tree_id } else { header.tree_id }
    }
}

#[inline]
fn is_related(header: &Smb2Header) -> bool {
    header.flags & flags::RELATED_OPERATIONS != 0
}

#[derive(Debug, Clone)]
pub(super) struct Smb2RequestTarget {
    pub(super) session_id: Option<u64>,
    pub(super) tree_id: Option<u32>,
    pub(super) file: Option<FileReference>,
    /// Message id of the CREATE in the same compound whose response will contain the file id.
    pub(super) file_from: Option<u64>,
    pub(super) path: Option<Arc<str>>,
    pub(super) user: Option<Arc<str>>,
    pub(super) share: Option<Arc<str>>,
    pub(super) is_pipe: bool,
    pub(super) facts: Option<OpenFacts>,
}

impl Smb2RequestTarget {
    #[inline]
    pub(super) fn resolve(
        ledger: &mut Ledger<'_>,
        member: &Message2,
        named: &Smb2RequestFields,
        previous: &Previous,
    ) -> Smb2RequestTarget {
        let header = &member.header;
        let (session_id, tree_id) = (previous.session_id_of(header), previous.tree_id_of(header));
        let server = ledger.server();
        // 0 is not a valid session id (MS-SMB2 §3.3.5.5.1).
        let session = session_id.filter(|id| *id != 0).and_then(|id| ledger.sessions.get(server, id));
        let tree = session.zip(tree_id).and_then(|(session, id)| session.trees.get(&id));
        let is_pipe = tree.is_some_and(|tree| tree.is_pipe);
        let inherits = named.file == Some(FileReference::RELATED);
        let file = if inherits { previous.file } else { named.file };
        let open = file.and_then(|file| session.and_then(|session| session.opens.get(&file)));
        let path = match (&member.body, file) {
            (RequestOrResponse::Request(Smb2Request::Create { name, .. }), _) => display_path(name),
            (_, Some(_)) => open.map(|open| open.path.clone()),
            (_, None) if inherits => previous.path.clone(),
            _ => None,
        };
        Smb2RequestTarget {
            session_id,
            tree_id,
            file,
            file_from: previous.file_from.filter(|_| inherits && file.is_none()),
            path,
            user: session.and_then(|session| session.user.clone()),
            share: tree.map(|tree| tree.share.clone()),
            is_pipe,
            facts: open.map(|open| open.facts).filter(|_| !is_pipe),
        }
    }

    #[inline]
    pub(super) fn into_previous(self, message_id: u64, effect: &Smb2ResponseEffect) -> Previous {
        let is_open = matches!(effect, Smb2ResponseEffect::Open { .. });
        Previous {
            session_id: self.session_id,
            tree_id: self.tree_id,
            file: self.file,
            file_from: if is_open { Some(message_id) } else { self.file_from },
            path: self.path,
        }
    }
}
