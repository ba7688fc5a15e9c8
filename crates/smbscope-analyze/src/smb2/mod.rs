//! SMB2/3 requests and responses: matched by message id, named by session, tree and open (MS-SMB2 3.3.5).

use crate::connection::{Connection, Opening, Scene};
use crate::content::{Body2, Message2};
use crate::framer::Frame;
use crate::names::{Sessions, Tree, kept, user_name};
use crate::pending::{Causality, FEW_OUTSTANDING, Pending, Span};
use crate::sent_order::SentOrder;
use smbscope_model::{Command, Dialect, Direction, FileId, Half, Outcome, Protocol, Status, Subcommand, groups};
use smbscope_wire::Name;
use smbscope_wire::names::InfoLevel;
use smbscope_wire::smb2::{self, FileReference, flags};
use smbscope_wire::status::NtStatus;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Requests outstanding on a connection at most; servers grant no more than 8,192 credits.
const MAX_OUTSTANDING: usize = 8192;
/// Sessions of one connection that are remembered to be left when it ends.
const MAX_JOINED: usize = 256;
/// The message id of a notification that the server sends of its own accord (MS-SMB2 2.2.23).
const UNSOLICITED: u64 = u64::MAX;
/// SessionFlags of a SESSION_SETUP response (MS-SMB2 2.2.6).
const SESSION_FLAG_GUEST: u16 = 1;
const SESSION_FLAG_ANONYMOUS: u16 = 2;
/// ShareType of a TREE_CONNECT response (MS-SMB2 2.2.10).
const SHARE_TYPE_PIPE: u8 = 2;

/// What is outstanding, and what only the answer makes true.
#[derive(Debug, Default)]
pub(crate) struct Smb2 {
    outstanding: BTreeMap<u64, Request>,
    sent: SentOrder<u64>,
    /// How many that are outstanding have an id of which all bits are known, 32 bits, or fewer.
    by_mask: [usize; 3],
    joined: Vec<u64>,
    /// The highest message id so far: ids begin at 0 and grow (MS-SMB2 3.2.4.1.3).
    highest_id: Option<u64>,
}

#[derive(Debug)]
struct Request {
    pending: Pending,
    /// Which bits of its message id are known.
    id_mask: u64,
    async_id: Option<u64>,
    file: Option<FileReference>,
    /// The member of the same compound whose answer names the file.
    file_from: Option<u64>,
    /// The members of the same compound whose file the answer names.
    followers: Vec<u64>,
    effect: Effect,
}

/// What a successful answer changes.
#[derive(Debug)]
enum Effect {
    None,
    LogOn(Option<Arc<str>>),
    LogOff,
    Connect(Option<Tree>),
    Disconnect,
    Open(Option<Arc<str>>),
    Close,
    Rename(Arc<str>),
}

/// What a related member of a compound takes over from the one before it (MS-SMB2 3.3.5.2.7.2).
#[derive(Debug, Default, Clone)]
struct Previous {
    session_id: Option<u64>,
    tree_id: Option<u32>,
    file: Option<FileReference>,
    file_from: Option<u64>,
    path: Option<Arc<str>>,
}

impl Smb2 {
    pub(crate) fn take_all(&mut self) -> Vec<Pending> {
        (self.sent, self.by_mask) = Default::default();
        std::mem::take(&mut self.outstanding).into_values().map(|request| request.pending).collect()
    }

    /// Adds a request; returns the one with the same id that was outstanding.
    fn insert(&mut self, message_id: u64, request: Request) -> Option<Request> {
        let start = request.pending.request.start;
        let alive = |start: u64, id: u64| self.outstanding.get(&id).is_some_and(|it| it.pending.request.start == start);
        self.sent.push(start, message_id, self.outstanding.len(), alive);
        if let Some(first) = request.file_from.and_then(|id| self.outstanding.get_mut(&id)) {
            first.followers.push(message_id);
        }
        self.by_mask[mask_index(request.id_mask)] += 1;
        let older = self.outstanding.insert(message_id, request);
        older.inspect(|older| self.by_mask[mask_index(older.id_mask)] -= 1)
    }

    fn remove(&mut self, message_id: u64) -> Option<Request> {
        let request = self.outstanding.remove(&message_id)?;
        self.by_mask[mask_index(request.id_mask)] -= 1;
        Some(request)
    }

    /// The requests that may lie in a stretch of the client's stream.
    pub(crate) fn requests_near(&mut self, span: Span, take: &mut impl FnMut(&mut Pending)) {
        if self.outstanding.len() <= FEW_OUTSTANDING {
            return self.iter_mut().for_each(take);
        }
        for id in self.sent.within(span.start, span.end) {
            if let Some(request) = self.outstanding.get_mut(&id) {
                take(&mut request.pending);
            }
        }
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Pending> {
        self.outstanding.values_mut().map(|request| &mut request.pending)
    }

    /// Adds the bits of a message id that a snap length cut: those of the id that is nearest to the highest so far.
    fn complete_id(&mut self, header: &mut smb2::Header, midstream: bool) {
        if header.id_mask != u64::MAX {
            let Some(highest) = self.highest_id.or((!midstream).then_some(0)) else { return };
            let ahead = header.message_id.wrapping_sub(highest) & header.id_mask;
            let behind = (header.id_mask - ahead).wrapping_add(1);
            let unsolicited = header.message_id == header.id_mask && header.command == smb2::Command::OPLOCK_BREAK;
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

    pub(crate) fn outstanding_count(&self) -> usize {
        self.outstanding.len()
    }

    /// The connection ended: its sessions have a channel less.
    pub(crate) fn leave_sessions(&mut self, sessions: &mut Sessions, server: IpAddr) {
        for session_id in self.joined.drain(..) {
            sessions.leave(server, session_id);
        }
    }
}

impl Connection {
    /// Takes in a frame of SMB2 messages.
    pub(crate) fn smb2_frame(
        &mut self,
        scene: &mut Scene<'_, '_>,
        direction: Direction,
        frame: &Frame,
        members: Vec<Message2>,
    ) {
        if members.first().is_some_and(|member| !member.header.is_response()) {
            self.correct_roles(scene, direction);
        }
        let compounded = members.len() > 1;
        let mut previous = Previous::default();
        for mut member in members {
            self.two.complete_id(&mut member.header, scene.view.midstream);
            if member.header.message_id != UNSOLICITED && member.header.command != smb2::Command::CANCEL {
                self.message_ids.note(&member.header);
            }
            self.messages += 1;
            self.signed_messages += u64::from(member.header.is_signed());
            member.cut_name().into_iter().for_each(|missing| scene.shared.quality.name_was_cut(missing));
            match (member.header.is_response(), direction == self.client) {
                (false, true) => self.smb2_request(scene, frame, member, compounded, &mut previous),
                (true, false) => self.smb2_response(scene, frame, member, compounded),
                _ => scene.shared.quality.malformed_messages += 1,
            }
        }
    }

    fn smb2_request(
        &mut self,
        scene: &mut Scene<'_, '_>,
        frame: &Frame,
        member: Message2,
        compounded: bool,
        previous: &mut Previous,
    ) {
        let header = member.header;
        if self.speaks() == Some(Protocol::Smb1) {
            self.dialect = None;
        }
        let related = header.flags & flags::RELATED_OPERATIONS != 0;
        let session_id = if related { previous.session_id } else { header.session_id };
        let tree_id = if related { previous.tree_id } else { header.tree_id };
        if let (Body2::SessionSetup { binding: true, .. }, Some(id)) = (&member.body, session_id) {
            scene.shared.sessions.bind(self.endpoints.server.ip(), id);
        }
        // No session has the id zero (MS-SMB2 3.3.5.5.1).
        let session =
            session_id.filter(|id| *id != 0).and_then(|id| scene.shared.sessions.get(self.endpoints.server.ip(), id));
        let tree = session.zip(tree_id).and_then(|(session, id)| session.trees.get(&id));
        let named = Named::of(&member.body);
        let inherits = named.file == Some(FileReference::RELATED);
        let file = if inherits { previous.file } else { named.file };
        let path = match (&member.body, file) {
            (Body2::Create(name), _) => display_path(name),
            (_, Some(file)) => session.and_then(|session| session.opens.get(&file)).cloned(),
            (_, None) if inherits => previous.path.clone(),
            _ => None,
        };
        let reads_pipe = header.command == smb2::Command::READ && tree.is_some_and(|tree| tree.is_pipe);
        let group = groups::smb2(header.command, named.subcommand, named.waits || reads_pipe);
        let opening = Opening {
            command: Command::Smb2(header.command),
            subcommand: named.subcommand,
            group,
            message_id: whole_id(&header),
            bytes: member.length,
        };
        let user = session.and_then(|session| session.user.clone());
        let share = tree.map(|tree| tree.share.clone());
        let mut pending = self.begin(frame, opening);
        let exchange = &mut pending.exchange;
        (exchange.user, exchange.share, exchange.path) = (user, share, path.clone());
        exchange.session_id = session_id.filter(|id| *id != 0);
        exchange.tree_id = tree_id.filter(|id| *id != 0);
        exchange.file_id = file.and_then(file_id);
        (exchange.offset, exchange.length) = (named.offset, named.length);
        exchange.compounded = compounded;
        exchange.signed = header.is_signed();
        if header.command == smb2::Command::CANCEL {
            exchange.outcome = Outcome::NoResponseByDesign;
            self.report(scene, pending);
            return;
        }
        let effect = effect_of(&member, path.clone());
        if let Effect::LogOn(Some(user)) = &effect {
            pending.exchange.user = Some(user.clone());
        }
        let file_from = previous.file_from.filter(|_| inherits && file.is_none());
        *previous = Previous {
            session_id,
            tree_id,
            file,
            file_from: if matches!(effect, Effect::Open(_)) { Some(header.message_id) } else { file_from },
            path,
        };
        let id_mask = header.id_mask;
        let request = Request { pending, id_mask, async_id: None, file, file_from, followers: Vec::new(), effect };
        self.smb2_start(scene, header.message_id, request);
    }

    fn smb2_start(&mut self, scene: &mut Scene<'_, '_>, message_id: u64, request: Request) {
        self.started(&request.pending);
        if let Some(mut older) = self.two.insert(message_id, request) {
            let lost = scene.server_losses.any_after(older.pending.acknowledged.unwrap_or(0));
            older.pending.exchange.outcome = if lost { Outcome::ResponseNotCaptured } else { Outcome::IdReused };
            self.finish(scene, older.pending);
        }
        if self.two.outstanding.len() > MAX_OUTSTANDING
            && let Some(id) = self.two.outstanding.first_key_value().map(|(id, _)| *id)
            && let Some(mut oldest) = self.two.remove(id)
        {
            oldest.pending.exchange.outcome = Outcome::Evicted;
            self.finish(scene, oldest.pending);
        }
    }

    fn smb2_response(&mut self, scene: &mut Scene<'_, '_>, frame: &Frame, member: Message2, compounded: bool) {
        let header = member.header;
        self.max_credits_granted = self.max_credits_granted.max(header.credits);
        if header.message_id == UNSOLICITED {
            self.smb2_unmatched(scene, frame, &member, Outcome::ServerInitiated);
            return;
        }
        if header.command == smb2::Command::NEGOTIATE {
            if let Body2::Answer(smb2::Response::Negotiate(answer)) = &member.body {
                self.smb2_negotiated(answer);
            }
            // Only the first message id can answer an SMB1 NEGOTIATE (MS-SMB2 3.3.5.3.1, 3.3.5.3.2): the client goes on
            // with an SMB2 NEGOTIATE or SESSION_SETUP of message id 1.
            let may_answer_smb1 = header.message_id == 0 && !self.two.outstanding.contains_key(&0);
            if may_answer_smb1 && self.one.negotiate_is_outstanding() {
                self.smb1_negotiated_as_smb2(scene, frame, &header, member.length);
                return;
            }
        }
        let Some(key) = self.smb2_find(&header) else {
            self.smb2_unmatched(scene, frame, &member, Outcome::RequestNotCaptured);
            return;
        };
        let Some(request) = self.two.outstanding.get_mut(&key) else { return };
        let fits = request.fits(&header);
        if !fits || request.pending.causality(frame) == Causality::Impossible {
            scene.shared.quality.causality_refused += 1;
            self.smb2_unmatched(scene, frame, &member, Outcome::RequestNotCaptured);
            return;
        }
        if header.status == NtStatus::PENDING {
            request.async_id = header.async_id;
            request.pending.exchange.interim.get_or_insert(frame.first);
            scene.shared.quality.interim_responses += 1;
            return;
        }
        let Some(mut request) = self.two.remove(key) else { return };
        request.pending.add_response(frame, member.length, Status::Nt(header.status));
        request.pending.exchange.compounded |= compounded;
        request.pending.exchange.signed |= header.is_signed();
        self.smb2_take_effect(scene, &mut request, &member);
        self.complete(scene, request.pending);
    }

    /// The request of a response, by message id. Where a snap length cut either id, by the bits that both have, if these
    /// fit one request only. An AsyncId finds nothing: servers use the same few again and again.
    fn smb2_find(&self, header: &smb2::Header) -> Option<u64> {
        if self.two.outstanding.contains_key(&header.message_id) {
            return Some(header.message_id);
        }
        let same_bits = self.two.by_mask[mask_index(header.id_mask)];
        if same_bits == self.two.outstanding.len() {
            return None;
        }
        let mut alike = self
            .two
            .outstanding
            .iter()
            .filter(|(_, request)| header.id_mask & request.id_mask != u64::MAX)
            .filter(|(id, request)| (*id ^ header.message_id) & header.id_mask & request.id_mask == 0);
        match (alike.next(), alike.next()) {
            (Some((id, _)), None) => Some(*id),
            _ => None,
        }
    }

    fn smb2_negotiated(&mut self, answer: &smb2::NegotiateResponse) {
        self.dialect = Some(Dialect::Smb2(answer.dialect));
        self.signing_required = answer.signing_required;
    }

    /// A response that answers nothing that was seen.
    fn smb2_unmatched(&mut self, scene: &mut Scene<'_, '_>, frame: &Frame, member: &Message2, outcome: Outcome) {
        let header = &member.header;
        if outcome == Outcome::RequestNotCaptured && header.status == NtStatus::PENDING {
            // The final response will tell.
            scene.shared.quality.interim_responses += 1;
            return;
        }
        let unsolicited = (outcome == Outcome::ServerInitiated).then_some(Subcommand::ServerInitiated);
        let opening = Opening {
            command: Command::Smb2(header.command),
            subcommand: unsolicited,
            group: groups::smb2(header.command, None, false),
            message_id: whole_id(header),
            bytes: member.length,
        };
        self.report_response(scene, frame, opening, Status::Nt(header.status), outcome);
    }

    /// What the answer makes true: a session, a tree, an open, a name.
    fn smb2_take_effect(&mut self, scene: &mut Scene<'_, '_>, request: &mut Request, member: &Message2) {
        let header = &member.header;
        let server = self.endpoints.server.ip();
        let exchange = &mut request.pending.exchange;
        let Some(session_id) = header.session_id.filter(|id| *id != 0).or(exchange.session_id) else { return };
        exchange.session_id = Some(session_id);
        if header.status.is_error() || header.status == NtStatus::MORE_PROCESSING_REQUIRED || session_id == 0 {
            return;
        }
        let answer = match &member.body {
            Body2::Answer(answer) => answer,
            _ => &smb2::Response::Other,
        };
        match std::mem::replace(&mut request.effect, Effect::None) {
            Effect::None => {}
            Effect::LogOn(user) => {
                let flags = if let smb2::Response::SessionSetup(flags) = answer { *flags } else { 0 };
                if !self.two.joined.contains(&session_id) && self.two.joined.len() < MAX_JOINED {
                    self.two.joined.push(session_id);
                    scene.shared.sessions.join(server, session_id);
                }
                exchange.user = scene.shared.sessions.change(server, session_id, |session| {
                    session.user = logged_on(user, flags).or(session.user.take());
                    session.user.clone()
                });
            }
            Effect::LogOff => {
                self.two.joined.retain(|id| *id != session_id);
                scene.shared.sessions.leave(server, session_id);
            }
            Effect::Connect(tree) => {
                let Some((tree_id, mut tree)) = header.tree_id.zip(tree) else { return };
                tree.is_pipe |= *answer == smb2::Response::TreeConnect(SHARE_TYPE_PIPE);
                exchange.tree_id = Some(tree_id);
                exchange.share = Some(tree.share.clone());
                scene.shared.quality.evicted_names +=
                    scene.shared.sessions.change(server, session_id, |session| session.trees.insert(tree_id, tree));
            }
            Effect::Disconnect => {
                if let Some(tree_id) = exchange.tree_id {
                    scene.shared.sessions.change(server, session_id, |session| session.trees.remove(&tree_id));
                }
            }
            Effect::Open(path) => {
                let smb2::Response::Create(file) = answer else { return };
                exchange.file_id = file_id(*file);
                if let Some(path) = path {
                    scene.shared.quality.evicted_names +=
                        scene.shared.sessions.change(server, session_id, |session| session.opens.insert(*file, path));
                }
                self.two.name_followers(std::mem::take(&mut request.followers), header.message_id, *file);
            }
            Effect::Close => {
                if let Some(file) = request.file {
                    scene.shared.sessions.change(server, session_id, |session| session.opens.remove(&file));
                }
            }
            Effect::Rename(path) => {
                if let Some(file) = request.file {
                    scene.shared.sessions.change(server, session_id, |session| {
                        if session.opens.get(&file).is_some() {
                            session.opens.insert(file, path);
                        }
                    });
                }
            }
        }
    }
}

impl Request {
    /// Whether a response repeats what the request and its interim response said: the command, and the AsyncId.
    fn fits(&self, header: &smb2::Header) -> bool {
        let same_operation = self.async_id.zip(header.async_id).is_none_or(|(known, answered)| known == answered);
        same_operation && self.pending.exchange.command == Command::Smb2(header.command)
    }
}

impl Smb2 {
    /// Members of a compound that work on the file which its first member opened.
    fn name_followers(&mut self, followers: Vec<u64>, create: u64, file: FileReference) {
        for id in followers {
            let Some(request) = self.outstanding.get_mut(&id).filter(|request| request.file_from == Some(create))
            else {
                continue;
            };
            request.file = Some(file);
            request.pending.exchange.file_id = file_id(file);
        }
    }
}

/// Index of a mask of known bits in a table of counts.
fn mask_index(id_mask: u64) -> usize {
    match id_mask {
        u64::MAX => 0,
        mask if mask > u64::from(u16::MAX) => 1,
        _ => 2,
    }
}

/// What the body of a request says.
#[derive(Debug, Default)]
struct Named {
    file: Option<FileReference>,
    subcommand: Option<Subcommand>,
    offset: Option<u64>,
    length: Option<u64>,
    waits: bool,
}

impl Named {
    fn of(body: &Body2) -> Named {
        match body {
            Body2::ReadWrite { file, offset, length } => {
                Named { file: Some(*file), offset: Some(*offset), length: Some((*length).into()), ..Named::default() }
            }
            Body2::Lock { file, element } => Named {
                file: Some(*file),
                offset: element.map(|element| element.offset),
                length: element.map(|element| element.length),
                waits: element.is_some_and(|element| element.waits()),
                ..Named::default()
            },
            Body2::Ioctl { file, code } => {
                let file = Some(*file).filter(|file| *file != FileReference::RELATED);
                Named { file, subcommand: Some(Subcommand::Fsctl(*code)), ..Named::default() }
            }
            Body2::Info { file, level, .. } => {
                Named { file: Some(*file), subcommand: Some(Subcommand::Info(*level)), ..Named::default() }
            }
            Body2::File(file) => Named { file: Some(*file), ..Named::default() },
            _ => Named::default(),
        }
    }
}

fn effect_of(member: &Message2, path: Option<Arc<str>>) -> Effect {
    use smb2::Command;
    match (&member.body, member.header.command) {
        (Body2::SessionSetup { identity, .. }, _) => Effect::LogOn(identity.as_ref().and_then(user_name)),
        (_, Command::LOGOFF) => Effect::LogOff,
        (Body2::TreeConnect(path), _) => Effect::Connect(Tree::new(path)),
        (_, Command::TREE_DISCONNECT) => Effect::Disconnect,
        (_, Command::CREATE) => Effect::Open(path),
        (_, Command::CLOSE) => Effect::Close,
        (Body2::Info { level: InfoLevel::File(10), new_name: Some(name), .. }, Command::SET_INFO) => {
            display_path(name).map_or(Effect::None, Effect::Rename)
        }
        _ => Effect::None,
    }
}

/// The user that a logon ended up as.
fn logged_on(user: Option<Arc<str>>, flags: u16) -> Option<Arc<str>> {
    match user {
        Some(user) if flags & SESSION_FLAG_GUEST != 0 => Some(format!("{user} (guest)").into()),
        None if flags & SESSION_FLAG_ANONYMOUS != 0 => Some("(anonymous)".into()),
        user => user,
    }
}

/// The message id, if all of it is there.
fn whole_id(header: &smb2::Header) -> Option<u64> {
    (header.id_mask == u64::MAX).then_some(header.message_id)
}

/// The root of a share has an empty name.
fn display_path(name: &Name) -> Option<Arc<str>> {
    if name.text.is_empty() && name.is_whole() { Some("\\".into()) } else { kept(name) }
}

fn file_id(file: FileReference) -> Option<FileId> {
    (file != FileReference::RELATED).then_some(FileId::Smb2 { persistent: file.persistent, volatile: file.volatile })
}

/// An SMB1 NEGOTIATE that the server answers in SMB2 (MS-SMB2 3.3.5.3).
impl Connection {
    fn smb1_negotiated_as_smb2(&mut self, scene: &mut Scene<'_, '_>, frame: &Frame, header: &smb2::Header, bytes: u64) {
        let Some(mut pending) = self.one.take_negotiate() else { return };
        if pending.causality(frame) == Causality::Impossible {
            scene.shared.quality.causality_refused += 1;
        } else {
            pending.exchange.response = Half::default();
            pending.add_response(frame, bytes, Status::Nt(header.status));
        }
        pending.settle();
        self.finish(scene, pending);
    }
}
