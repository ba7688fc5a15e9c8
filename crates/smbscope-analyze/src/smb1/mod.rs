//! SMB1 requests and responses, matched by PID and MID with TID and UID. All of these are recycled (MS-CIFS §2.2.1.6).
//!
//! Because ids are recycled, a response after a gap is accepted only if the gap can't hide both the true response and
//! another request with the same ids.

mod named;
mod raw;
mod requests;

use crate::content::{Message1, RequestOrResponse, dialect_named};
use crate::frame::Frame;
use crate::ledger::{Ledger, Opening};
use crate::names::ConnectionNames;
use crate::offers;
use crate::pending::{Causality, PendingExchange, StreamSpan};
use crate::rereads::{OpenFacts, Rereads};
use crate::unseen::MidCounter;
use named::{Smb1RequestFields, Smb1ResponseEffect};
use raw::{RawRequest, Smb1RawTransfer};
use requests::{Answers, NO_ID, PidMid, Smb1RequestTracker, Smb1TrackedRequest, status};
use smbscope_model::exchange::Details;
use smbscope_model::{
    Command, CommandGroup, Dialect, Exchange, ExchangeOutcome, FileId, FlowDirection, Half, ResponseStatus, Subcommand,
    groups,
};
use smbscope_wire::names::Trans2;
use smbscope_wire::smb1::{self, TransactionKind};
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;

/// Length of a Read_Raw request with its frame header: 8 words and no bytes (MS-CIFS §2.2.4.22.1).
const SMALLEST_READ_RAW: u64 = 4 + 32 + 1 + 16 + 2;

#[derive(Debug, Clone, Default)]
pub(crate) struct Smb1ConnectionState {
    requests: Smb1RequestTracker,
    raw: Smb1RawTransfer,
    names: ConnectionNames,
    dialects: Vec<Dialect>,
    pub(crate) mids: MidCounter,
    asked_to: u64,
}

impl Smb1ConnectionState {
    pub(crate) fn outstanding(&self) -> usize {
        self.requests.outstanding.by_id().len()
    }

    pub(crate) fn name_bytes(&self) -> usize {
        self.names.bytes()
    }

    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Box<PendingExchange>> {
        self.requests.take_all().chain(self.raw.take_all())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PendingExchange> {
        self.requests.outstanding.iter_mut().chain(self.raw.iter_mut())
    }

    pub(crate) fn near(&mut self, span: StreamSpan, from_client: bool, take: &mut impl FnMut(&mut PendingExchange)) {
        self.raw.iter_mut().for_each(&mut *take);
        self.requests.near(span, from_client, take);
    }

    pub(crate) fn take(
        &mut self,
        ledger: &mut Ledger<'_>,
        direction: FlowDirection,
        frame: &Frame,
        message: &Message1,
    ) {
        let header = message.header;
        ledger.note_message(header.is_signed());
        message.cut_names().for_each(|missing| ledger.quality.name_was_cut(missing));
        match (direction == ledger.client(), header.is_reply()) {
            (true, false) => self.request(ledger, frame, message),
            (false, true) => self.response(ledger, frame, message),
            (false, false) if header.command == smb1::Smb1Command::WRITE_RAW => self.response(ledger, frame, message),
            (false, false) => {
                if let RequestOrResponse::Request(smb1::Smb1Request::Locking { fid, oplock_release: true, .. }) =
                    &message.body
                {
                    self.names.oplock_broken(*fid);
                }
                let opening = opening(message, frame, Some(Subcommand::ServerInitiated), true);
                ledger.report_response(frame, opening, status(&header), ExchangeOutcome::ServerInitiated);
            }
            (true, true) => ledger.quality.malformed_messages += 1,
        }
    }

    pub(crate) fn take_raw(&mut self, ledger: &mut Ledger<'_>, direction: FlowDirection, frame: &Frame) -> bool {
        if direction == ledger.client() {
            self.raw.take_block_of_write(&mut self.requests, ledger, frame)
        } else {
            self.raw.take_answer_to_read(&mut self.requests, ledger, frame) || self.take_lost_read(ledger, frame)
        }
    }

    /// Processes data without a header that does not answer a captured request. Returns true if a gap since the last
    /// request can hide a Read_Raw, the only command answered like this.
    fn take_lost_read(&mut self, ledger: &mut Ledger<'_>, frame: &Frame) -> bool {
        let received = frame.acknowledged_first.unwrap_or(u64::MAX);
        if ledger.client_losses.bytes_between(self.asked_to, received) < SMALLEST_READ_RAW {
            return false;
        }
        let command = smb1::Smb1Command::READ_RAW;
        let opening = Opening {
            command: Command::Smb1(command),
            group: groups::smb1(command, None, false),
            subcommand: None,
            message_id: None,
            bytes: frame.length(),
        };
        ledger.report_response(
            frame,
            opening,
            ResponseStatus::Nt(NtStatus::SUCCESS),
            ExchangeOutcome::RequestNotCaptured,
        );
        true
    }

    pub(crate) fn take_smb2_negotiate(
        &mut self,
        ledger: &mut Ledger<'_>,
        frame: &Frame,
        header: &smb2::Smb2Header,
        bytes: u64,
    ) -> bool {
        let Some(mut pending) = self.requests.take_negotiate() else { return false };
        if pending.causality(frame) == Causality::Impossible {
            ledger.quality.causality_refused += 1;
        } else {
            pending.exchange.response = Half::default();
            pending.add_response(frame, bytes, ResponseStatus::Nt(header.status));
        }
        ledger.complete(pending);
        true
    }

    fn request(&mut self, ledger: &mut Ledger<'_>, frame: &Frame, message: &Message1) {
        let header = message.header;
        let key = (header.pid, header.mid);
        if self.continues(key, frame, message) {
            return;
        }
        if ledger.accounts.summary.dialect.is_none() {
            // Mid-stream: it is SMB1, but the dialect is unknown.
            ledger.accounts.summary.dialect = Some(Dialect::OtherSmb1);
        }
        let (mut pending, named) = self.begin(ledger, frame, message);
        self.note_client_dialects(ledger, message);
        let effects = Smb1ResponseEffect::all_from_message(message, pending.exchange.path.clone());
        if let Some(Smb1ResponseEffect::LogOn(user)) = effects.first() {
            pending.exchange.user = user.clone();
        }
        if named.unanswered {
            pending.exchange.outcome = ExchangeOutcome::NoResponseByDesign;
            ledger.report(pending);
            return;
        }
        let number = self.requests.ids.note(key);
        self.mids.note(u64::from(key.1), ledger.client_losses.any_after(self.asked_to));
        self.asked_to = frame.end;
        pending.may_stay_unanswered = named.oplock_release;
        let answers = Answers::to(message);
        if let Some(block) = self.raw.take_block(key) {
            // The client reuses the ids, so the previous block was answered or never will be.
            ledger.abandon(block);
        }
        self.raw.expect(RawRequest::new(message, key));
        let replaces = self.requests.outstanding.by_id().get(&key).is_some();
        let (tid, uid) = (header.tid, header.uid);
        self.start(ledger, key, Smb1TrackedRequest { pending, tid, uid, number, replaces, answers, effects });
    }

    #[inline]
    fn begin(
        &mut self,
        ledger: &mut Ledger<'_>,
        frame: &Frame,
        message: &Message1,
    ) -> (Box<PendingExchange>, Smb1RequestFields) {
        let header = message.header;
        let tree = self.names.trees.get(&header.tid);
        let is_pipe = tree.is_some_and(|tree| tree.is_pipe);
        let share = tree.map(|tree| tree.share.clone());
        let mut named = Smb1RequestFields::from_message(message, is_pipe);
        let mut pending = ledger.begin(frame, opening(message, frame, named.subcommand, named.waits));
        let exchange = &mut pending.exchange;
        exchange.session_id = Some(header.uid.into()).filter(|uid| *uid != 0);
        exchange.tree_id = Some(header.tid.into()).filter(|tid| *tid != 0 && *tid != u32::from(NO_ID));
        exchange.user = self.names.users.get(&header.uid).cloned();
        exchange.share = share;
        exchange.file_id = named.fid.map(FileId::Smb1);
        let open = named.fid.and_then(|fid| self.names.opens.get(&fid));
        let facts = open.map(|open| open.facts).filter(|_| !is_pipe);
        exchange.path = named.path.take().or_else(|| open.map(|open| open.path.clone()));
        (exchange.offset, exchange.length) = (named.offset, named.length);
        exchange.details = Details::from_request(message.detail.as_deref());
        exchange.signed = header.is_signed();
        if let Some(facts) = facts {
            note_use(&mut self.names.rereads, exchange, &facts, named.subcommand);
        }
        (pending, named)
    }

    #[inline]
    fn note_client_dialects(&mut self, ledger: &mut Ledger<'_>, message: &Message1) {
        for body in message.bodies() {
            if let RequestOrResponse::Request(smb1::Smb1Request::Negotiate(names)) = body {
                self.dialects = names.iter().map(|name| dialect_named(name)).collect();
                ledger.note_client_offer(offers::smb1_client(names));
            }
        }
    }

    /// Adds an outstanding request. Ends the exchange that it replaces, and the oldest one if there are too many.
    #[inline]
    fn start(&mut self, ledger: &mut Ledger<'_>, key: PidMid, request: Smb1TrackedRequest) {
        ledger.started(&request.pending);
        if let Some(mut older) = self.requests.insert(key, request) {
            let hidden = ledger.server_losses.any_after(older.pending.acknowledged.unwrap_or(0));
            if hidden || older.pending.may_stay_unanswered {
                ledger.abandon(older.pending);
            } else {
                older.pending.exchange.outcome = ExchangeOutcome::IdReused;
                ledger.finish(older.pending);
            }
        }
        if let Some(mut oldest) = self.requests.remove_excess() {
            oldest.pending.exchange.outcome = ExchangeOutcome::Evicted;
            ledger.finish(oldest.pending);
        }
    }

    /// Adds secondary requests, and further messages of WRITE_MPX, to their request. Returns false for other messages.
    fn continues(&mut self, key: PidMid, frame: &Frame, message: &Message1) -> bool {
        let command = message.header.command;
        let primary = TransactionKind::primary_of(command)
            .or((command == smb1::Smb1Command::WRITE_MPX).then_some(smb1::Smb1Command::WRITE_MPX));
        let Some(primary) = primary else { return false };
        let Some(request) = self.requests.outstanding.get_mut(key) else { return false };
        if request.pending.exchange.command != Command::Smb1(primary) {
            return false;
        }
        request.pending.extend_request(frame, frame.length());
        true
    }

    fn response(&mut self, ledger: &mut Ledger<'_>, frame: &Frame, message: &Message1) {
        let header = message.header;
        let key = (header.pid, header.mid);
        if self.raw.take_answer(&self.requests, ledger, frame, message, key) {
            return;
        }
        let Some(request) = self.requests.outstanding.by_id().get(&key) else {
            self.requests.remember_unmatched(key, frame);
            report_unmatched(ledger, frame, message, ExchangeOutcome::RequestNotCaptured);
            return;
        };
        if !request.fits(&header) || request.pending.causality(frame) == Causality::Impossible {
            self.requests.remember_unmatched(key, frame);
            ledger.quality.causality_refused += 1;
            report_unmatched(ledger, frame, message, ExchangeOutcome::RequestNotCaptured);
            return;
        }
        if self.requests.id_may_be_recycled(ledger, frame, key, request) {
            report_unmatched(ledger, frame, message, ExchangeOutcome::AmbiguousMatch);
            if let Some(request) = self.requests.outstanding.remove(key) {
                ledger.abandon(request.pending);
            }
            return;
        }
        self.answer(ledger, frame, message, key);
    }

    fn answer(&mut self, ledger: &mut Ledger<'_>, frame: &Frame, message: &Message1, key: PidMid) {
        let header = message.header;
        let Some(request) = self.requests.outstanding.get_mut(key) else { return };
        let misses_first = matches!(message.body, RequestOrResponse::Response(smb1::Smb1Response::Echo(number)) if number > 1)
            && request.pending.response.is_none();
        if request.answers.is_interim(message, frame.length()) {
            request.pending.exchange.interim.get_or_insert(frame.first);
            ledger.quality.interim_responses += 1;
            return;
        }
        let begins = request.pending.response.is_none();
        request.pending.add_response(frame, frame.length(), status(&header));
        if misses_first {
            request.pending.exchange.response.first = None;
        }
        request.pending.exchange.signed |= header.is_signed();
        if !request.answers.complete(message, frame.length()) {
            if begins {
                self.requests.begins_to_answer(key, frame.start);
            }
            return;
        }
        let Some(mut request) = self.requests.outstanding.remove(key) else { return };
        if header.is_success() {
            let effects = std::mem::take(&mut request.effects);
            ledger.quality.evicted_names +=
                Smb1ResponseEffect::take(effects, &mut self.names, &mut request.pending.exchange, message);
        }
        if let RequestOrResponse::Response(smb1::Smb1Response::Negotiate(answer)) = &message.body {
            let chosen = self.dialects.get(usize::from(answer.dialect_index)).copied();
            let dialect = &mut ledger.accounts.summary.dialect;
            *dialect = chosen.or(*dialect);
            ledger.note_server_offer(offers::smb1_server(answer, chosen));
        }
        if header.command == smb1::Smb1Command::WRITE_RAW && header.is_success() {
            self.raw.go_ahead(key, &request.pending);
        }
        ledger.complete(request.pending);
    }
}

#[inline]
fn note_use(rereads: &mut Rereads, exchange: &mut Exchange, facts: &OpenFacts, subcommand: Option<Subcommand>) {
    match (exchange.group, exchange.offset.zip(exchange.length)) {
        (CommandGroup::Read, Some((offset, length))) => {
            let held = rereads.read(facts, offset..offset.saturating_add(length));
            (exchange.caching, exchange.repeated) = (held.caching, held.repeated);
        }
        (CommandGroup::Write, Some(_)) => rereads.changed(facts),
        // Assume a change without looking at the information level: times, end of file, name.
        _ if subcommand == Some(Subcommand::Trans2(Trans2::SET_FILE_INFORMATION)) => rereads.changed(facts),
        _ => {}
    }
}

fn report_unmatched(ledger: &mut Ledger<'_>, frame: &Frame, message: &Message1, outcome: ExchangeOutcome) {
    let opening = opening(message, frame, None, false);
    ledger.report_response(frame, opening, status(&message.header), outcome);
}

fn opening(message: &Message1, frame: &Frame, subcommand: Option<Subcommand>, waits: bool) -> Opening {
    let command = message.header.command;
    let chain = (message.chain[0] != smb1::Smb1Command::NO_ANDX).then_some(Subcommand::AndX(message.chain));
    Opening {
        command: Command::Smb1(command),
        group: groups::smb1(command, subcommand, waits),
        subcommand: subcommand.or(chain),
        message_id: Some(message.header.mid.into()),
        bytes: frame.length(),
    }
}
