//! SMB1 requests and responses: matched by PID and MID with TID and UID, which all recycle (MS-CIFS 2.2.1.6).
//!
//! Because ids recycle, a response after a gap is accepted only when the gap can't hide both the true response and
//! another request with the same ids.

mod answers;
mod ids;
mod raw;

use crate::connection::{Connection, Opening, Scene};
use crate::content::{Body1, Message1, dialect_named};
use crate::framer::Frame;
use crate::names::{Tree, kept, user_name};
use crate::pending::{Causality, FEW_OUTSTANDING, Pending, Span};
use crate::sent_order::SentOrder;
use answers::Answers;
use ids::IdHistory;
use raw::{Raw, RawRequest};
use smbscope_model::{Command, Dialect, Direction, FileId, Outcome, Protocol, Status, Subcommand, groups};
use smbscope_wire::names::Trans2;
use smbscope_wire::smb1::{self, TransactionKind};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Requests outstanding on a connection at most; servers allow about 50 (MaxMpxCount).
const MAX_OUTSTANDING: usize = 4096;
/// The smallest SMB1 request with its frame: what a gap needs to hide one.
const SMALLEST_REQUEST: u64 = 4 + 32 + 3;
/// Responses without a request that are remembered.
const MAX_UNMATCHED: usize = 64;
/// A TID or UID that stands for none.
const NO_ID: u16 = 0xffff;

/// PID and MID: what a response repeats.
pub(crate) type Key = (u16, u16);

/// What is outstanding, and what the negotiation needs to remember.
#[derive(Debug, Default)]
pub(crate) struct Smb1 {
    pub(crate) outstanding: BTreeMap<Key, Request>,
    sent: SentOrder<Key>,
    /// The responses in several messages that have begun.
    answered_in_part: SentOrder<Key>,
    /// The latest NEGOTIATE.
    negotiate: Option<Key>,
    pub(crate) raw: Raw,
    dialects: Vec<Dialect>,
    ids: IdHistory,
    /// The latest responses without a request, with the positions where they begin.
    unmatched: VecDeque<(Key, u64)>,
}

/// A request that waits for its response, or for more of either.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) pending: Pending,
    tid: u16,
    uid: u16,
    /// The number of the request on the connection.
    number: u64,
    /// Another request with the same ids was still unanswered when it was sent.
    replaces: bool,
    answers: Answers,
    effects: Vec<Effect>,
}

/// What gaps can hide between a request and a response with its ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// Not both the true response and another request with the same ids.
    Nothing,
    /// The true response, and so many requests at most.
    Requests(u64),
    /// The response may be older than the request.
    Unknown,
}

/// What a successful answer changes.
#[derive(Debug)]
enum Effect {
    LogOn(Option<Arc<str>>),
    LogOff,
    Connect(Option<Tree>),
    Disconnect,
    Open(Option<Arc<str>>),
    Close(u16),
}

impl Smb1 {
    fn remember_unmatched(&mut self, key: Key, frame: &Frame) {
        if self.unmatched.len() == MAX_UNMATCHED {
            self.unmatched.pop_front();
        }
        self.unmatched.push_back((key, frame.start));
    }

    pub(crate) fn take_all(&mut self) -> Vec<Pending> {
        (self.sent, self.answered_in_part) = Default::default();
        let mut all: Vec<Pending> =
            std::mem::take(&mut self.outstanding).into_values().map(|request| request.pending).collect();
        all.extend(self.raw.take_all());
        all
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Pending> {
        self.outstanding.values_mut().map(|request| &mut request.pending).chain(self.raw.iter_mut())
    }

    pub(crate) fn negotiate_is_outstanding(&self) -> bool {
        self.negotiate_key().is_some()
    }

    pub(crate) fn take_negotiate(&mut self) -> Option<Pending> {
        let key = self.negotiate_key()?;
        self.outstanding.remove(&key).map(|request| request.pending)
    }

    fn negotiate_key(&self) -> Option<Key> {
        let negotiate = Command::Smb1(smb1::Command::NEGOTIATE);
        let is_outstanding =
            |key: &Key| self.outstanding.get(key).is_some_and(|request| request.pending.exchange.command == negotiate);
        self.negotiate.filter(is_outstanding)
    }

    /// Adds a request; returns the one with the same ids that was outstanding.
    fn insert(&mut self, key: Key, request: Request) -> Option<Request> {
        let start = request.pending.request.start;
        let alive =
            |start: u64, key: Key| self.outstanding.get(&key).is_some_and(|it| it.pending.request.start == start);
        self.sent.push(start, key, self.outstanding.len(), alive);
        if request.pending.exchange.command == Command::Smb1(smb1::Command::NEGOTIATE) {
            self.negotiate = Some(key);
        }
        self.outstanding.insert(key, request)
    }

    /// Removes the request that has been outstanding longest.
    fn remove_oldest(&mut self) -> Option<Request> {
        let alive =
            |start: u64, key: Key| self.outstanding.get(&key).is_some_and(|it| it.pending.request.start == start);
        let oldest = self.sent.oldest(alive)?;
        self.outstanding.remove(&oldest)
    }

    /// A response in several messages began.
    fn begins_to_answer(&mut self, key: Key, start: u64) {
        let answers = |start: u64, key: Key| {
            let response = self.outstanding.get(&key).and_then(|request| request.pending.response);
            response.is_some_and(|response| response.start == start)
        };
        self.answered_in_part.push(start, key, self.outstanding.len(), answers);
    }

    /// The requests that may lie in a stretch of the client's stream. Of very many, those whose secondary requests do may be
    /// left out.
    pub(crate) fn requests_near(&mut self, span: Span, take: &mut impl FnMut(&mut Pending)) {
        self.near(span, true, take);
    }

    /// The requests whose responses may lie in a stretch of the server's stream.
    pub(crate) fn responses_near(&mut self, span: Span, take: &mut impl FnMut(&mut Pending)) {
        self.near(span, false, take);
    }

    fn near(&mut self, span: Span, from_client: bool, take: &mut impl FnMut(&mut Pending)) {
        self.raw.iter_mut().for_each(&mut *take);
        if self.outstanding.len() <= FEW_OUTSTANDING {
            return self.outstanding.values_mut().for_each(|request| take(&mut request.pending));
        }
        let order = if from_client { &self.sent } else { &self.answered_in_part };
        for key in order.within(span.start, span.end) {
            if let Some(request) = self.outstanding.get_mut(&key) {
                take(&mut request.pending);
            }
        }
    }
}

/// Messages that servers send without reply bit: oplock breaks, and the interim answer to Write_Raw (Samba).
pub(crate) fn may_be_servers(command: smb1::Command) -> bool {
    matches!(command, smb1::Command::LOCKING_ANDX | smb1::Command::WRITE_RAW)
}

impl Connection {
    /// Takes in an SMB1 message.
    pub(crate) fn smb1_frame(
        &mut self,
        scene: &mut Scene<'_, '_>,
        direction: Direction,
        frame: &Frame,
        message: Message1,
    ) {
        self.messages += 1;
        self.signed_messages += u64::from(message.header.is_signed());
        message.cut_names().for_each(|missing| scene.shared.quality.name_was_cut(missing));
        let header = message.header;
        if !header.is_reply() && !may_be_servers(header.command) {
            self.correct_roles(scene, direction);
        }
        match (direction == self.client, header.is_reply()) {
            (true, false) => self.smb1_request(scene, frame, message),
            (false, true) => self.smb1_response(scene, frame, message),
            (false, false) if header.command == smb1::Command::WRITE_RAW => {
                self.smb1_response(scene, frame, message);
            }
            (false, false) => {
                let opening = opening(&message, frame, Some(Subcommand::ServerInitiated), true);
                self.report_response(scene, frame, opening, status(&header), Outcome::ServerInitiated);
            }
            (true, true) => scene.shared.quality.malformed_messages += 1,
        }
    }

    fn smb1_request(&mut self, scene: &mut Scene<'_, '_>, frame: &Frame, message: Message1) {
        let header = message.header;
        let key = (header.pid, header.mid);
        if self.smb1_continues(key, frame, &message) {
            return;
        }
        if self.dialect.is_none() {
            // Mid-stream: SMB1 is what it is, whichever of its dialects.
            self.dialect = Some(Dialect::OtherSmb1);
        }
        let tree = self.names.trees.get(&header.tid);
        let is_pipe = tree.is_some_and(|tree| tree.is_pipe);
        let share = tree.map(|tree| tree.share.clone());
        let named = Named::of(&message, is_pipe);
        let mut pending = self.begin(frame, opening(&message, frame, named.subcommand, named.waits));
        let exchange = &mut pending.exchange;
        exchange.session_id = Some(header.uid.into()).filter(|uid| *uid != 0);
        exchange.tree_id = Some(header.tid.into()).filter(|tid| *tid != 0 && *tid != u32::from(NO_ID));
        exchange.user = self.names.users.get(&header.uid).cloned();
        exchange.share = share;
        exchange.file_id = named.fid.map(FileId::Smb1);
        exchange.path = named.path.or_else(|| named.fid.and_then(|fid| self.names.opens.get(&fid).cloned()));
        (exchange.offset, exchange.length) = (named.offset, named.length);
        exchange.signed = header.is_signed();
        let effects = self.smb1_effects(&message, pending.exchange.path.clone());
        if let Some(Effect::LogOn(user)) = effects.first() {
            pending.exchange.user = user.clone();
        }
        if named.unanswered {
            pending.exchange.outcome = Outcome::NoResponseByDesign;
            self.report(scene, pending);
            return;
        }
        let number = self.one.ids.note(key);
        self.mids.note(key.1, scene.client_losses.any_after(self.asked_to));
        self.asked_to = frame.end;
        pending.may_stay_unanswered = named.oplock_release;
        let answers = Answers::to(&message);
        if let Some(block) = self.one.raw.take_block(key) {
            // The client uses the ids again, so the block before was answered, or is given up.
            self.abandon(scene, block);
        }
        self.one.raw.expect(RawRequest::of(&message, key));
        let replaces = self.one.outstanding.contains_key(&key);
        let (tid, uid) = (header.tid, header.uid);
        let request = Request { pending, tid, uid, number, replaces, answers, effects };
        self.started(&request.pending);
        if let Some(mut older) = self.one.insert(key, request) {
            let hidden = scene.server_losses.any_after(older.pending.acknowledged.unwrap_or(0));
            if hidden || older.pending.may_stay_unanswered {
                self.abandon(scene, older.pending);
            } else {
                older.pending.exchange.outcome = Outcome::IdReused;
                self.finish(scene, older.pending);
            }
        }
        self.smb1_make_room(scene);
    }

    fn smb1_make_room(&mut self, scene: &mut Scene<'_, '_>) {
        if self.one.outstanding.len() <= MAX_OUTSTANDING {
            return;
        }
        if let Some(mut oldest) = self.one.remove_oldest() {
            oldest.pending.exchange.outcome = Outcome::Evicted;
            self.finish(scene, oldest.pending);
        }
    }

    /// Secondary requests, and further messages of WRITE_MPX, belong to the request before them.
    fn smb1_continues(&mut self, key: Key, frame: &Frame, message: &Message1) -> bool {
        let command = message.header.command;
        let primary = TransactionKind::primary_of(command)
            .or((command == smb1::Command::WRITE_MPX).then_some(smb1::Command::WRITE_MPX));
        let Some(primary) = primary else { return false };
        let Some(request) = self.one.outstanding.get_mut(&key) else { return false };
        if request.pending.exchange.command != Command::Smb1(primary) {
            return false;
        }
        request.pending.extend_request(frame, frame.length());
        true
    }

    fn smb1_response(&mut self, scene: &mut Scene<'_, '_>, frame: &Frame, message: Message1) {
        let header = message.header;
        let key = (header.pid, header.mid);
        if self.smb1_write_raw_done(scene, frame, &message, key) {
            return;
        }
        let Some(request) = self.one.outstanding.get(&key) else {
            self.one.remember_unmatched(key, frame);
            self.smb1_unmatched(scene, frame, &message, Outcome::RequestNotCaptured);
            return;
        };
        if !request.fits(&header) || request.pending.causality(frame) == Causality::Impossible {
            self.one.remember_unmatched(key, frame);
            scene.shared.quality.causality_refused += 1;
            self.smb1_unmatched(scene, frame, &message, Outcome::RequestNotCaptured);
            return;
        }
        if self.smb1_id_may_be_recycled(scene, frame, key, request) {
            self.smb1_unmatched(scene, frame, &message, Outcome::AmbiguousMatch);
            if let Some(request) = self.one.outstanding.remove(&key) {
                self.abandon(scene, request.pending);
            }
            return;
        }
        self.smb1_answer(scene, frame, message, key);
    }

    /// Whether gaps could hide both the true response and another request with the same ids.
    fn smb1_id_may_be_recycled(&self, scene: &Scene<'_, '_>, frame: &Frame, key: Key, request: &Request) -> bool {
        let pending = &request.pending;
        if pending.exchange.command == Command::Smb1(smb1::Command::WRITE_RAW)
            && scene.server_losses.bytes_between(pending.acknowledged.unwrap_or(0), frame.start) > 0
        {
            // The "go ahead" may be hidden, and this be the answer to the data block.
            return true;
        }
        if request.replaces && pending.acknowledged_by_copy.is_some_and(|seen| frame.start < seen) {
            // The client had got this response when it sent the request, unless that is a late copy: it may as well
            // be meant for the request that was replaced.
            return true;
        }
        match self.smb1_hidden_between(scene, frame, key, pending, request.replaces) {
            Hidden::Nothing => false,
            Hidden::Unknown => true,
            Hidden::Requests(hidden) => {
                hidden + self.one.ids.since(request.number) >= self.one.ids.reuse_distance(request.number)
            }
        }
    }

    /// What gaps can hide between a request and a response with its ids.
    pub(crate) fn smb1_hidden_between(
        &self,
        scene: &Scene<'_, '_>,
        frame: &Frame,
        key: Key,
        pending: &Pending,
        replaces: bool,
    ) -> Hidden {
        // An unknown floor is the lowest.
        let sent = pending.acknowledged.min(pending.acknowledged_before).unwrap_or(0);
        let seen_by_server = frame.acknowledged_first.unwrap_or(u64::MAX);
        let is_late = frame.acknowledged_last.is_none();
        // A request that is no late copy says what the client had not got yet when it sent it.
        let may_be_older = pending.acknowledged.is_none() && scene.client_losses.bytes_between(0, seen_by_server) > 0;
        if is_late && (replaces || may_be_older) {
            // A late copy of a response is out of step with the requests: it may be meant for an older one.
            return Hidden::Unknown;
        }
        let hidden = scene.client_losses.bytes_between(pending.request.end, seen_by_server);
        if hidden > 0 && self.one.unmatched.iter().any(|(known, start)| *known == key && *start >= sent) {
            // If the request is a late copy, that one was the true response.
            return Hidden::Unknown;
        }
        // Where part of the response was seen, its rest may lie in a gap inside a frame, which hides no message.
        let in_parts = pending.response.is_some();
        if hidden == 0 || (!in_parts && scene.server_losses.bytes_between(sent, frame.start) == 0) {
            return Hidden::Nothing;
        }
        Hidden::Requests(hidden.div_ceil(SMALLEST_REQUEST))
    }

    fn smb1_answer(&mut self, scene: &mut Scene<'_, '_>, frame: &Frame, message: Message1, key: Key) {
        let header = message.header;
        let Some(request) = self.one.outstanding.get_mut(&key) else { return };
        let misses_first = matches!(message.body, Body1::Answer(smb1::Response::Echo(number)) if number > 1)
            && request.pending.response.is_none();
        if request.answers.is_interim(&message, frame.length()) {
            request.pending.exchange.interim.get_or_insert(frame.first);
            scene.shared.quality.interim_responses += 1;
            return;
        }
        let begins = request.pending.response.is_none();
        request.pending.add_response(frame, frame.length(), status(&header));
        if misses_first {
            request.pending.exchange.response.first = None;
        }
        request.pending.exchange.signed |= header.is_signed();
        if !request.answers.complete(&message, frame.length()) {
            if begins {
                self.one.begins_to_answer(key, frame.start);
            }
            return;
        }
        let Some(mut request) = self.one.outstanding.remove(&key) else { return };
        if header.is_success() {
            self.smb1_take_effect(scene, &mut request, &message);
        }
        if let Body1::Answer(smb1::Response::Negotiate(index)) = message.body {
            self.dialect = self.one.dialects.get(usize::from(index)).copied().or(self.dialect);
        }
        if header.command == smb1::Command::WRITE_RAW && header.is_success() {
            self.one.raw.go_ahead(key, &request.pending);
        }
        self.complete(scene, request.pending);
    }

    fn smb1_unmatched(&mut self, scene: &mut Scene<'_, '_>, frame: &Frame, message: &Message1, outcome: Outcome) {
        let opening = opening(message, frame, None, false);
        self.report_response(scene, frame, opening, status(&message.header), outcome);
    }

    /// What the answer will make true, for each command of the chain.
    fn smb1_effects(&mut self, message: &Message1, path: Option<Arc<str>>) -> Vec<Effect> {
        let mut effects = Vec::new();
        let commands = std::iter::once(message.header.command).chain(message.chain);
        for (command, body) in commands.zip(std::iter::once(&message.body).chain(&message.chained)) {
            match body {
                Body1::Negotiate(names) => {
                    self.one.dialects = names.iter().map(|name| dialect_named(name)).collect();
                }
                Body1::SessionSetup(identity) => {
                    effects.push(Effect::LogOn(identity.as_ref().and_then(user_name)));
                }
                Body1::TreeConnect(path) => effects.push(Effect::Connect(Tree::new(path))),
                Body1::Open(_) => effects.push(Effect::Open(path.clone())),
                Body1::Transaction(transaction)
                    if transaction.trans2 == Some(Trans2::OPEN2)
                        || transaction.nt == Some(smbscope_wire::names::NtTransact::CREATE) =>
                {
                    effects.push(Effect::Open(path.clone()));
                }
                Body1::File(fid) if command == smb1::Command::CLOSE => effects.push(Effect::Close(*fid)),
                _ if command == smb1::Command::LOGOFF_ANDX => effects.push(Effect::LogOff),
                _ if command == smb1::Command::TREE_DISCONNECT => effects.push(Effect::Disconnect),
                _ => {}
            }
        }
        effects
    }

    fn smb1_take_effect(&mut self, scene: &mut Scene<'_, '_>, request: &mut Request, message: &Message1) {
        let header = &message.header;
        let mut answers = std::iter::once(&message.body).chain(&message.chained);
        for effect in std::mem::take(&mut request.effects) {
            let exchange = &mut request.pending.exchange;
            let forgotten = match effect {
                Effect::LogOn(user) => {
                    exchange.session_id = Some(header.uid.into());
                    user.map_or(0, |user| self.names.users.insert(header.uid, user))
                }
                Effect::LogOff => {
                    self.names.users.remove(&request.uid);
                    0
                }
                Effect::Connect(tree) => {
                    exchange.tree_id = Some(header.tid.into());
                    exchange.share = tree.as_ref().map(|tree| tree.share.clone());
                    tree.map_or(0, |tree| self.names.trees.insert(header.tid, tree))
                }
                Effect::Disconnect => {
                    self.names.trees.remove(&request.tid);
                    0
                }
                Effect::Open(path) => match answers.find_map(opened_fid) {
                    Some(fid) => {
                        exchange.file_id = Some(FileId::Smb1(fid));
                        path.map_or(0, |path| self.names.opens.insert(fid, path))
                    }
                    None => 0,
                },
                Effect::Close(fid) => {
                    self.names.opens.remove(&fid);
                    0
                }
            };
            scene.shared.quality.evicted_names += forgotten;
        }
    }
}

impl Request {
    /// Whether a response repeats what the request said: the command, and the tree and user where these are fixed.
    fn fits(&self, header: &smb1::Header) -> bool {
        let Command::Smb1(command) = self.pending.exchange.command else { return false };
        let same_command = command == header.command
            || (command == smb1::Command::WRITE_RAW && header.command == smb1::Command::WRITE_COMPLETE);
        let sets_ids = matches!(
            command,
            smb1::Command::NEGOTIATE
                | smb1::Command::SESSION_SETUP_ANDX
                | smb1::Command::TREE_CONNECT_ANDX
                | smb1::Command::TREE_CONNECT
                | smb1::Command::ECHO
        );
        let same = |asked: u16, answered: u16| asked == answered || asked == 0 || asked == NO_ID;
        same_command && (sets_ids || (same(self.tid, header.tid) && same(self.uid, header.uid)))
    }
}

fn opened_fid(body: &Body1) -> Option<u16> {
    match body {
        Body1::Answer(smb1::Response::Open(fid)) => Some(*fid),
        Body1::Answer(smb1::Response::Transaction { fid, .. }) => *fid,
        _ => None,
    }
}

fn opening(message: &Message1, frame: &Frame, subcommand: Option<Subcommand>, waits: bool) -> Opening {
    let command = message.header.command;
    let chain = (message.chain[0] != smb1::Command::NO_ANDX).then_some(Subcommand::AndX(message.chain));
    Opening {
        command: Command::Smb1(command),
        group: groups::smb1(command, subcommand, waits),
        subcommand: subcommand.or(chain),
        message_id: Some(message.header.mid.into()),
        bytes: frame.length(),
    }
}

/// The status of a response, of whichever kind the client asked for.
pub(crate) fn status(header: &smb1::Header) -> Status {
    match header.nt_status() {
        Some(status) => Status::Nt(status),
        None => Status::Dos(header.dos_error()),
    }
}

/// What a request says about itself.
#[derive(Debug, Default)]
struct Named {
    subcommand: Option<Subcommand>,
    fid: Option<u16>,
    path: Option<Arc<str>>,
    offset: Option<u64>,
    length: Option<u64>,
    waits: bool,
    unanswered: bool,
    oplock_release: bool,
}

impl Named {
    fn of(message: &Message1, is_pipe: bool) -> Named {
        let command = message.header.command;
        let base = Named { unanswered: command == smb1::Command::NT_CANCEL, ..Named::default() };
        match &message.body {
            Body1::Open(path) | Body1::Path(path) => Named { path: path.as_ref().and_then(kept), ..base },
            Body1::File(fid) => Named { fid: Some(*fid), ..base },
            Body1::Range { fid, offset, length } => Named {
                fid: Some(*fid),
                offset: Some(*offset),
                length: Some(*length),
                waits: is_pipe && command == smb1::Command::READ_ANDX,
                ..base
            },
            Body1::WriteRaw { fid, offset, length, .. } => {
                Named { fid: Some(*fid), offset: Some(*offset), length: Some(*length), ..base }
            }
            Body1::Locking { fid, waits, oplock_release, range } => Named {
                fid: Some(*fid),
                offset: range.map(|(offset, _)| offset),
                length: range.map(|(_, length)| length),
                waits: *waits || *oplock_release,
                oplock_release: *oplock_release,
                ..base
            },
            Body1::Echo(count) => Named { unanswered: *count == 0, ..base },
            Body1::Transaction(transaction) => Named {
                subcommand: transaction
                    .trans2
                    .map(Subcommand::Trans2)
                    .or(transaction.fsctl.map(Subcommand::Fsctl))
                    .or(transaction.nt.map(Subcommand::NtTransact))
                    .or(transaction.trans.map(Subcommand::Transaction)),
                fid: transaction.fid,
                path: transaction.path.as_ref().and_then(kept),
                ..base
            },
            _ => base,
        }
    }
}

/// Whether a connection speaks SMB1, as far as it is known.
impl Connection {
    pub(crate) fn expects_raw(&self) -> bool {
        self.speaks() != Some(Protocol::Smb2)
    }
}
