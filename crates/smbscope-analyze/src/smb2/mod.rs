//! SMB2/3 requests and responses, matched by message id and named by session, tree and open (MS-SMB2 §3.3.5).

mod credits;
mod effects;
mod requests;
mod target;

use crate::content::{Message2, RequestOrResponse};
use crate::frame::Frame;
use crate::ledger::{Ledger, Opening};
use crate::offers;
use crate::pending::{Causality, PendingExchange, StreamSpan};
use crate::rereads::{OpenFacts, ReadCaching};
use crate::smb1::Smb1ConnectionState;
use crate::unseen::MessageIds;
use credits::ObservedCredits;
use requests::{
    Smb2RequestFields, Smb2RequestTracker, Smb2ResponseEffect, Smb2TrackedRequest, UNSOLICITED, file_id, oplock_left,
};
use smbscope_model::connection::ServerInterface;
use smbscope_model::exchange::Details;
use smbscope_model::{
    Command, CommandGroup, Dialect, ExchangeOutcome, FlowDirection, GrantedCaching, Nanos, Protocol, ResponseStatus,
    Subcommand, groups,
};
use smbscope_wire::smb2::{self, FileReference, NetworkInterfaceInfo};
use smbscope_wire::status::NtStatus;
use target::{Previous, Smb2RequestTarget};

#[derive(Debug, Default)]
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
        if self.credits.are_known() {
            self.take_credits(ledger, frame, &header, pending.exchange.group);
        }
        let id_mask = header.id_mask;
        let request =
            Smb2TrackedRequest { pending, id_mask, async_id: None, file, file_from, followers: Vec::new(), effect };
        self.start(ledger, header.message_id, request);
    }

    fn take_credits(&mut self, ledger: &mut Ledger<'_>, frame: &Frame, header: &smb2::Smb2Header, group: CommandGroup) {
        // Missing or encrypted messages may grant credits.
        if ledger.may_have_missed_any() {
            self.credits.forget();
            return;
        }
        let outstanding = ledger.accounts.busy() + u32::from(group != CommandGroup::Waiting);
        let trip = ledger.view.round_trip[ledger.client().reverse().index()].unwrap_or_default();
        let waited = self.credits.take(header, frame.first.time, outstanding, trip);
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
