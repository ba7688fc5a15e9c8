//! SMB2/3 requests and responses, matched by message id and named by session, tree and open (MS-SMB2 §3.3.5).

mod requests;

use crate::content::{Message2, RequestOrResponse};
use crate::frame::Frame;
use crate::ledger::{Ledger, Opening};
use crate::names::TrackedTreeConnect;
use crate::offers;
use crate::pending::{Causality, PendingExchange, StreamSpan};
use crate::rereads::{OpenFacts, ReadCaching, TrackedOpen};
use crate::smb1::Smb1ConnectionState;
use crate::unseen::MessageIds;
use requests::{
    CreditRequest, ObservedCredits, Previous, Smb2RequestFields, Smb2RequestTarget, Smb2RequestTracker,
    Smb2ResponseEffect, Smb2TrackedRequest, UNSOLICITED, file_id, granted, logged_on, oplock_left,
};
use smbscope_model::connection::ServerInterface;
use smbscope_model::exchange::{CreatedFile, Details};
use smbscope_model::{
    Command, CommandGroup, Dialect, Exchange, ExchangeOutcome, FlowDirection, GrantedCaching, Nanos, Protocol,
    ResponseStatus, Subcommand, groups,
};
use smbscope_wire::smb2::{self, Created, FileReference, NetworkInterfaceInfo, Smb2Response};
use smbscope_wire::status::NtStatus;
use std::sync::Arc;

#[derive(Debug, Clone, Default)]
pub(crate) struct Smb2 {
    requests: Smb2RequestTracker,
    joined: Vec<u64>,
    used: Option<u64>,
    pub(crate) message_ids: MessageIds,
    credits: ObservedCredits,
}

impl Smb2 {
    pub(crate) fn outstanding(&self) -> usize {
        self.requests.outstanding.by_id().len()
    }

    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Box<PendingExchange>> {
        self.requests.take_all()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PendingExchange> {
        self.requests.outstanding.iter_mut()
    }

    pub(crate) fn requests_near(&mut self, span: StreamSpan, take: &mut impl FnMut(&mut PendingExchange)) {
        self.requests.outstanding.near(span, None, take);
    }

    pub(crate) fn leave_sessions(&mut self, ledger: &mut Ledger<'_>) {
        let server = ledger.server();
        for session_id in self.joined.drain(..) {
            ledger.sessions.leave(server, session_id);
        }
    }

    pub(crate) fn take(
        &mut self,
        ledger: &mut Ledger<'_>,
        smb1: &mut Smb1ConnectionState,
        direction: FlowDirection,
        frame: &Frame,
        mut members: Vec<Message2>,
    ) {
        let compounded = members.len() > 1;
        let mut previous = Previous::default();
        for member in &mut members {
            self.requests.complete_id(&mut member.header, ledger.view.midstream);
            if member.header.message_id != UNSOLICITED && member.header.command != smb2::Smb2Command::CANCEL {
                self.message_ids.note(&member.header);
            }
            ledger.note_message(member.header.is_signed());
            member.cut_name().into_iter().for_each(|missing| ledger.quality.name_was_cut(missing));
            match (member.header.is_response(), direction == ledger.client()) {
                (false, true) => self.request(ledger, frame, member, compounded, &mut previous),
                (true, false) => self.response(ledger, smb1, frame, member, compounded),
                _ => ledger.quality.malformed_messages += 1,
            }
        }
    }

    fn request(
        &mut self,
        ledger: &mut Ledger<'_>,
        frame: &Frame,
        member: &Message2,
        compounded: bool,
        previous: &mut Previous,
    ) {
        let header = member.header;
        note_negotiation(ledger, member);
        note_binding(ledger, member, previous.session_id_of(&header));
        let named = Smb2RequestFields::from_body(&member.body);
        let mut target = Smb2RequestTarget::resolve(ledger, member, &named, previous);
        self.used = target.session_id.filter(|id| *id != 0).or(self.used);
        let mut pending = begin(ledger, frame, member, &named, &mut target);
        pending.exchange.compounded = compounded;
        if header.command == smb2::Smb2Command::CANCEL {
            pending.exchange.outcome = ExchangeOutcome::NoResponseByDesign;
            ledger.report(pending);
            return;
        }
        let effect = Smb2ResponseEffect::from_message(member, target.path.clone());
        if let Smb2ResponseEffect::LogOn(Some(user)) = &effect {
            pending.exchange.user = Some(user.clone());
        }
        let (file, file_from) = (target.file, target.file_from);
        *previous = target.into_previous(header.message_id, &effect);
        let credits = CreditRequest::from_header(&header);
        let known = self.credits.are_known().then_some(credits);
        if known.is_some() {
            self.take_credits(ledger, frame, credits, pending.exchange.group);
        } else {
            self.credits.note_wanted(credits);
        }
        let id_mask = header.id_mask;
        let request = Smb2TrackedRequest {
            pending,
            id_mask,
            async_id: None,
            credits: known,
            file,
            file_from,
            followers: Vec::new(),
            effect,
        };
        self.start(ledger, header.message_id, request);
    }

    fn take_credits(&mut self, ledger: &mut Ledger<'_>, frame: &Frame, credits: CreditRequest, group: CommandGroup) {
        // Missing or encrypted messages may grant credits.
        if ledger.may_have_missed_any() {
            self.credits.forget();
            return;
        }
        let outstanding = ledger.accounts.busy() + u32::from(group != CommandGroup::Waiting);
        let trip = ledger.view.round_trip[ledger.client().reverse().index()].unwrap_or_default();
        let waited = self.credits.take(credits, frame.first.time, outstanding, trip);
        let summary = &mut ledger.accounts.summary;
        summary.credit_wait = Nanos(summary.credit_wait.0.saturating_add(waited.0));
    }

    fn start(&mut self, ledger: &mut Ledger<'_>, message_id: u64, request: Smb2TrackedRequest) {
        ledger.started(&request.pending);
        if let Some(mut older) = self.requests.insert(message_id, request) {
            let lost = ledger.server_losses.any_after(older.pending.acknowledged.unwrap_or(0));
            older.pending.exchange.outcome =
                if lost { ExchangeOutcome::ResponseNotCaptured } else { ExchangeOutcome::IdReused };
            ledger.finish(older.pending);
        }
        if let Some(mut oldest) = self.requests.remove_excess() {
            oldest.pending.exchange.outcome = ExchangeOutcome::Evicted;
            ledger.finish(oldest.pending);
        }
    }

    fn response(
        &mut self,
        ledger: &mut Ledger<'_>,
        smb1: &mut Smb1ConnectionState,
        frame: &Frame,
        member: &Message2,
        compounded: bool,
    ) {
        let header = member.header;
        let connection = &mut ledger.accounts.summary;
        connection.max_credits_granted = connection.max_credits_granted.max(header.credits);
        self.credits.grant(&header, frame.last.unwrap_or(frame.first).time);
        if header.message_id == UNSOLICITED {
            match &member.body {
                RequestOrResponse::Response(smb2::Smb2Response::OplockBreak { file, oplock_level }) => {
                    self.broken(ledger, oplock_left(*oplock_level).map(|left| (*file, left)));
                }
                RequestOrResponse::Response(smb2::Smb2Response::LeaseBreak) => self.broken(ledger, None),
                _ => {}
            }
            report_unmatched(ledger, frame, member, ExchangeOutcome::ServerInitiated);
            return;
        }
        if header.command == smb2::Smb2Command::NEGOTIATE {
            if let RequestOrResponse::Response(smb2::Smb2Response::Negotiate(answer)) = &member.body {
                connection.dialect = Some(Dialect::Smb2(answer.dialect));
                ledger.note_server_offer(offers::smb2_server(answer));
            }
            // Only message id 0 can answer an SMB1 NEGOTIATE (MS-SMB2 §3.3.5.3.1, §3.3.5.3.2): the client continues
            // with an SMB2 NEGOTIATE or SESSION_SETUP of message id 1.
            let may_answer_smb1 = header.message_id == 0 && !self.requests.outstanding.by_id().contains_key(&0);
            if may_answer_smb1 && smb1.take_smb2_negotiate(ledger, frame, &header, member.length) {
                return;
            }
        }
        let Some(key) = self.requests.find(&header) else {
            report_unmatched(ledger, frame, member, ExchangeOutcome::RequestNotCaptured);
            return;
        };
        let Some(request) = self.requests.outstanding.get_mut(key) else { return };
        let fits = request.fits(&header);
        if !fits || request.pending.causality(frame) == Causality::Impossible {
            ledger.quality.causality_refused += 1;
            report_unmatched(ledger, frame, member, ExchangeOutcome::RequestNotCaptured);
            return;
        }
        if let Some(credits) = request.credits.take() {
            self.credits.answered(credits);
        }
        if header.status == NtStatus::PENDING {
            request.pending.exchange.interim.get_or_insert(frame.first);
            ledger.quality.interim_responses += 1;
            let put_off = self.requests.put_off(key, header.async_id);
            // Missing messages may include the final responses of some.
            if !ledger.server_losses.any_after(0) {
                let summary = &mut ledger.accounts.summary;
                summary.max_asynchronous = summary.max_asynchronous.max(put_off);
            }
            return;
        }
        if let RequestOrResponse::Response(smb2::Smb2Response::Interfaces(interfaces)) = &member.body {
            ledger.accounts.summary.server_interfaces = kept_interfaces(interfaces);
        }
        let Some(mut request) = self.requests.remove(key) else { return };
        request.pending.add_response(frame, member.length, ResponseStatus::Nt(header.status));
        request.pending.exchange.compounded |= compounded;
        request.pending.exchange.signed |= header.is_signed();
        request.pending.exchange.encrypted |= member.decrypted;
        self.take_effect(ledger, &mut request, member);
        ledger.complete(request.pending);
    }

    fn broken(&mut self, ledger: &mut Ledger<'_>, oplock: Option<(FileReference, GrantedCaching)>) {
        let server = ledger.server();
        let used = self.used.filter(|used| !self.joined.contains(used));
        for session_id in self.joined.iter().copied().chain(used) {
            ledger.sessions.note_break(server, session_id, oplock);
        }
    }
}

#[inline]
fn note_negotiation(ledger: &mut Ledger<'_>, member: &Message2) {
    if ledger.accounts.speaks() == Some(Protocol::Smb1) {
        ledger.accounts.summary.dialect = None;
    }
    if let RequestOrResponse::Request(smb2::Smb2Request::Negotiate(offer)) = &member.body {
        let before = ledger.accounts.summary.offers.client.clone();
        ledger.note_client_offer(offers::smb2_client(offer, before.as_deref()));
    }
}

#[inline]
fn note_binding(ledger: &mut Ledger<'_>, member: &Message2, session_id: Option<u64>) {
    let server = ledger.server();
    if let (RequestOrResponse::Request(smb2::Smb2Request::SessionSetup { binding: true, .. }), Some(id)) =
        (&member.body, session_id)
    {
        ledger.sessions.bind(server, id);
        ledger.accounts.summary.binds_session = true;
    }
}

#[inline]
fn begin(
    ledger: &mut Ledger<'_>,
    frame: &Frame,
    member: &Message2,
    named: &Smb2RequestFields,
    target: &mut Smb2RequestTarget,
) -> Box<PendingExchange> {
    let header = &member.header;
    let session_id = target.session_id;
    let reads_pipe = header.command == smb2::Smb2Command::READ && target.is_pipe;
    let opening = Opening {
        command: Command::Smb2(header.command),
        subcommand: named.subcommand,
        group: groups::smb2(header.command, named.subcommand, named.waits || reads_pipe),
        message_id: whole_id(header),
        bytes: member.length,
    };
    let held = target.facts.zip(session_id).map(|(facts, id)| note_use(ledger, id, &facts, header.command, named));
    let mut pending = ledger.begin(frame, opening);
    let exchange = &mut pending.exchange;
    (exchange.user, exchange.share, exchange.path) = (target.user.take(), target.share.take(), target.path.clone());
    exchange.details = Details::from_request(member.detail.as_deref());
    if let Some(ReadCaching { caching, repeated }) = held {
        (exchange.caching, exchange.repeated) = (caching, repeated);
    }
    exchange.session_id = session_id.filter(|id| *id != 0);
    exchange.tree_id = target.tree_id.filter(|id| *id != 0);
    exchange.file_id = target.file.and_then(file_id);
    (exchange.offset, exchange.length) = (named.offset, named.length);
    exchange.signed = header.is_signed();
    exchange.encrypted = member.decrypted;
    pending
}

fn note_use(
    ledger: &mut Ledger<'_>,
    session_id: u64,
    open: &OpenFacts,
    command: smb2::Smb2Command,
    named: &Smb2RequestFields,
) -> ReadCaching {
    let server = ledger.server();
    match (command, named.offset, named.length) {
        (smb2::Smb2Command::READ, Some(offset), Some(length)) => {
            ledger.sessions.note_read(server, session_id, open, offset..offset.saturating_add(length))
        }
        (smb2::Smb2Command::WRITE | smb2::Smb2Command::SET_INFO | smb2::Smb2Command::IOCTL, ..) => {
            ledger.sessions.note_change(server, session_id, open);
            ReadCaching::default()
        }
        _ => ReadCaching::default(),
    }
}

fn report_unmatched(ledger: &mut Ledger<'_>, frame: &Frame, member: &Message2, outcome: ExchangeOutcome) {
    let header = &member.header;
    if outcome == ExchangeOutcome::RequestNotCaptured && header.status == NtStatus::PENDING {
        ledger.quality.interim_responses += 1;
        return;
    }
    let unsolicited = (outcome == ExchangeOutcome::ServerInitiated).then_some(Subcommand::ServerInitiated);
    let opening = Opening {
        command: Command::Smb2(header.command),
        subcommand: unsolicited,
        group: groups::smb2(header.command, None, false),
        message_id: whole_id(header),
        bytes: member.length,
    };
    ledger.report_response(frame, opening, ResponseStatus::Nt(header.status), outcome);
}

fn kept_interfaces(interfaces: &[NetworkInterfaceInfo]) -> Vec<ServerInterface> {
    let kept = interfaces.iter().take(ServerInterface::MAX_SERVER_INTERFACES);
    kept.map(|NetworkInterfaceInfo { index, link_speed, address, .. }| ServerInterface {
        index: *index,
        link_speed: *link_speed,
        address: *address,
    })
    .collect()
}

fn whole_id(header: &smb2::Smb2Header) -> Option<u64> {
    (header.id_mask == u64::MAX).then_some(header.message_id)
}

/// Sessions of a connection: `evicted_names`.
const MAX_JOINED: usize = 256;
/// ShareType of a TREE_CONNECT response (MS-SMB2 §2.2.10).
const SHARE_TYPE_PIPE: u8 = 2;

impl Smb2 {
    fn take_effect(&mut self, ledger: &mut Ledger<'_>, request: &mut Smb2TrackedRequest, member: &Message2) {
        let header = &member.header;
        let server = ledger.server();
        let exchange = &mut request.pending.exchange;
        let Some(session_id) = header.session_id.filter(|id| *id != 0).or(exchange.session_id) else { return };
        exchange.session_id = Some(session_id);
        if header.status.is_error() || header.status == NtStatus::MORE_PROCESSING_REQUIRED || session_id == 0 {
            return;
        }
        let answer = match &member.body {
            RequestOrResponse::Response(answer) => answer,
            _ => &Smb2Response::Other,
        };
        match std::mem::replace(&mut request.effect, Smb2ResponseEffect::None) {
            Smb2ResponseEffect::None => {}
            Smb2ResponseEffect::LogOn(user) => {
                let flags = if let Smb2Response::SessionSetup(flags) = answer { *flags } else { 0 };
                exchange.user = self.log_on(ledger, session_id, user, flags);
            }
            Smb2ResponseEffect::LogOff => {
                self.joined.retain(|id| *id != session_id);
                ledger.sessions.leave(server, session_id);
            }
            Smb2ResponseEffect::Connect(tree) => {
                let Some((tree_id, mut tree)) = header.tree_id.zip(tree) else { return };
                tree.is_pipe |= *answer == Smb2Response::TreeConnect(SHARE_TYPE_PIPE);
                connect(ledger, exchange, session_id, tree_id, tree);
            }
            Smb2ResponseEffect::Disconnect => {
                if let Some(tree_id) = exchange.tree_id {
                    ledger.sessions.change(server, session_id, |session| session.trees.remove(&tree_id));
                }
            }
            Smb2ResponseEffect::Open { path, asked } => {
                let Smb2Response::Create(created) = answer else { return };
                note_created(exchange, asked, created);
                if let Some(path) = path {
                    track_open(ledger, exchange, session_id, path, created);
                }
                self.requests.name_followers(std::mem::take(&mut request.followers), header.message_id, created.file);
            }
            Smb2ResponseEffect::Close => {
                if let Some(file) = request.file {
                    ledger.sessions.change(server, session_id, |session| session.opens.remove(&file));
                }
            }
            Smb2ResponseEffect::Rename(path) => {
                if let Some(file) = request.file {
                    rename_open(ledger, session_id, file, path);
                }
            }
        }
    }

    fn log_on(
        &mut self,
        ledger: &mut Ledger<'_>,
        session_id: u64,
        user: Option<Arc<str>>,
        flags: u16,
    ) -> Option<Arc<str>> {
        let server = ledger.server();
        if !self.joined.contains(&session_id) && self.joined.len() < MAX_JOINED {
            self.joined.push(session_id);
            ledger.sessions.join(server, session_id);
        }
        ledger.sessions.change(server, session_id, |session| {
            session.user = logged_on(user, flags).or(session.user.take());
            session.user.clone()
        })
    }
}

fn connect(ledger: &mut Ledger<'_>, exchange: &mut Exchange, session_id: u64, tree_id: u32, tree: TrackedTreeConnect) {
    let server = ledger.server();
    exchange.tree_id = Some(tree_id);
    exchange.share = Some(tree.share.clone());
    ledger.quality.evicted_names +=
        ledger.sessions.change(server, session_id, |session| session.trees.insert(tree_id, tree));
}

#[inline]
fn note_created(exchange: &mut Exchange, asked: Option<u8>, created: &Created) {
    exchange.file_id = file_id(created.file);
    exchange.caching = granted(asked, created);
    if let Some(details) = &mut exchange.details {
        let (action, attributes) = (created.create_action, created.file_attributes);
        details.created = Some(CreatedFile { action, size: created.end_of_file, attributes });
    }
}

#[inline]
fn track_open(ledger: &mut Ledger<'_>, exchange: &Exchange, session_id: u64, path: Arc<str>, created: &Created) {
    let server = ledger.server();
    let version = (created.last_write, created.end_of_file);
    let facts = OpenFacts::new(exchange.share.as_deref(), Some(&path), version, exchange.caching);
    ledger.quality.evicted_names += ledger.sessions.change(server, session_id, |session| {
        let facts = session.rereads.opened(facts);
        session.opens.insert(created.file, TrackedOpen { path, facts })
    });
}

fn rename_open(ledger: &mut Ledger<'_>, session_id: u64, file: FileReference, path: Arc<str>) {
    let server = ledger.server();
    ledger.sessions.change(server, session_id, |session| {
        if session.opens.get(&file).is_some() {
            // The file under the new name may differ from the one read before.
            session.opens.insert(file, TrackedOpen::named(path));
        }
    });
}
