//! Outstanding SMB2 requests by message id, even if the snap length truncated the ids; session, tree and open that a
//! request refers to; and clients that wait for credits (MS-SMB2 §3.2.4.1.2, §3.3.1.2): requests cost credits,
//! responses grant some.
//!
//! A request waited for credits if it follows a grant immediately, costs more credits than were left before the grant,
//! and other requests were outstanding in between. That is the server's doing only if the client has asked for more
//! credits than it has altogether; a client that asks for few limits itself.

use crate::content::{Body2, Message2, RequestOrResponse};
use crate::ledger::Ledger;
use crate::names::{TrackedTreeConnect, kept, user_name};
use crate::pending::{OutstandingRequests, PendingExchange};
use crate::rereads::OpenFacts;
use smbscope_model::{Command, FileId, GrantedCaching, Nanos, Subcommand, Timestamp};
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

/// Maximum reaction time of a client that waits for credits, in addition to the round trip.
const SOON: Nanos = Nanos(1_000_000);
/// With fewer outstanding requests, a client may be sequential instead of waiting for credits, unless its requests cost
/// several credits each, like the large reads and writes of a copy.
const OUTSTANDING_LEAST: u32 = 2;

#[derive(Debug, Clone, Default)]
pub(super) struct ObservedCredits {
    /// Credits of the client. Unknown before the first response, and permanently after a missing message.
    left: Option<u32>,
    /// Credits before the last response that granted any, and the time of that response.
    before: u32,
    granted: Timestamp,
    asked: Timestamp,
    outstanding: u32,
    cost: u32,
    in_flight: CreditRequest,
    /// The most credits that the client would have had if the server had granted all that it asked for.
    wanted: u32,
}

/// Credits that requests cost, and credits that they ask for (CreditCharge and CreditRequest, MS-SMB2 §2.2.1.2).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CreditRequest {
    cost: u32,
    asked: u32,
}

impl CreditRequest {
    #[inline]
    pub(super) fn from_header(request: &Smb2Header) -> CreditRequest {
        CreditRequest { cost: request.credit_charge.max(1).into(), asked: request.credits.into() }
    }
}

impl ObservedCredits {
    pub(super) fn forget(&mut self) {
        self.left = None;
    }

    #[inline]
    pub(super) fn are_known(&self) -> bool {
        self.left.is_some()
    }

    #[inline]
    pub(super) fn grant(&mut self, header: &Smb2Header, time: Timestamp) {
        let granted = u32::from(header.credits);
        match &mut self.left {
            // Before the NEGOTIATE the client had one credit, which that request used.
            None if header.message_id == 0 && header.command == Smb2Command::NEGOTIATE => self.left = Some(granted),
            Some(left) if granted > 0 => {
                (self.before, self.granted) = (*left, time);
                *left = left.saturating_add(granted);
            }
            _ => {}
        }
    }

    /// Records a request before credits are known: the NEGOTIATE.
    #[inline]
    pub(super) fn note_wanted(&mut self, request: CreditRequest) {
        self.wanted = self.wanted.max(request.asked);
    }

    /// Records that the server has dealt with a request, once per request.
    #[inline]
    pub(super) fn answered(&mut self, request: CreditRequest) {
        self.in_flight.cost = self.in_flight.cost.saturating_sub(request.cost);
        self.in_flight.asked = self.in_flight.asked.saturating_sub(request.asked);
    }

    /// Records a request. Returns the time for which the client waited for credits before it. `outstanding` includes
    /// this request; `trip` is the round trip between capture point and client.
    #[inline]
    pub(super) fn take(&mut self, request: CreditRequest, time: Timestamp, outstanding: u32, trip: Nanos) -> Nanos {
        let Some(left) = self.left else { return Nanos(0) };
        let cost = request.cost;
        let waited = self.before < cost
            && left.saturating_add(self.in_flight.cost) < self.wanted
            && self.granted > self.asked
            && (self.outstanding >= OUTSTANDING_LEAST || self.cost.min(cost) > 1)
            && time - self.granted <= Nanos(SOON.0.saturating_add(trip.0));
        let waited = if waited { self.granted - self.asked } else { Nanos(0) };
        (self.asked, self.outstanding, self.cost) = (time, outstanding, cost);
        // A client that spends more than it has got credits from somewhere else.
        self.left = left.checked_sub(cost);
        self.in_flight.cost = self.in_flight.cost.saturating_add(cost);
        self.in_flight.asked = self.in_flight.asked.saturating_add(request.asked);
        self.wanted = self.wanted.max(self.left.unwrap_or(0).saturating_add(self.in_flight.asked));
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const ONE: CreditRequest = CreditRequest { cost: 1, asked: 1 };
    const EIGHT: CreditRequest = CreditRequest { cost: 8, asked: 8 };

    fn message(credits: u16, charge: u16) -> Smb2Header {
        Smb2Header { credits, credit_charge: charge, message_id: 7, ..Smb2Header::new(Smb2Command::READ) }
    }

    /// A client that asked for 31 credits with its NEGOTIATE.
    fn with(credits: u16) -> ObservedCredits {
        let mut known = ObservedCredits::default();
        known.note_wanted(CreditRequest { cost: 1, asked: 31 });
        known.grant(&Smb2Header { credits, ..Smb2Header::new(Smb2Command::NEGOTIATE) }, Timestamp(0));
        known
    }

    /// Two requests of 4 credits each at 10 ms, the first response at 30 ms, and a third request `later` ms after that.
    fn third_request(credits: u16, later: i64) -> Nanos {
        let mut known = with(credits);
        let ask = |known: &mut ObservedCredits, at: i64, outstanding| {
            known.take(CreditRequest { cost: 4, asked: 4 }, Timestamp(at * MS), outstanding, Nanos(0))
        };
        assert_eq!([ask(&mut known, 10, 1), ask(&mut known, 10, 2)], [Nanos(0); 2]);
        known.grant(&message(4, 4), Timestamp(30 * MS));
        ask(&mut known, 30 + later, 2)
    }

    #[test]
    fn a_request_that_follows_the_grant_that_it_needs_waited_since_the_one_before() {
        // Of 8 credits none is left, of 11 three, and 4 are needed.
        assert_eq!([third_request(8, 0), third_request(11, 1)], [Nanos(20 * MS); 2]);
        assert_eq!(third_request(12, 0), Nanos(0), "there were enough");
        assert_eq!(third_request(8, 2), Nanos(0), "it took its time");
    }

    #[test]
    fn a_client_with_one_request_at_a_time_does_not_wait_for_credits() {
        let mut known = with(1);
        for at in 1..10 {
            assert_eq!(known.take(ONE, Timestamp(at * 10 * MS), 1, Nanos(0)), Nanos(0));
            known.grant(&message(1, 1), Timestamp((at * 10 + 9) * MS));
        }
    }

    #[test]
    fn a_copy_whose_blocks_take_all_credits_waits_for_them_one_by_one() {
        let mut known = with(8);
        assert_eq!(known.take(EIGHT, Timestamp(10 * MS), 1, Nanos(0)), Nanos(0));
        known.grant(&message(8, 8), Timestamp(50 * MS));
        // From 10 to 50 ms nothing was left for the next block.
        assert_eq!(known.take(EIGHT, Timestamp(50 * MS), 1, Nanos(0)), Nanos(40 * MS));
    }

    /// Three requests of 8 credits each by a client that has 16 and asks for `asked` with each request.
    fn third_of_two(asked: u32) -> Nanos {
        let mut known = with(16);
        known.wanted = 0;
        let request = CreditRequest { asked, ..EIGHT };
        for outstanding in [1, 2] {
            assert_eq!(known.take(request, Timestamp(10 * MS), outstanding, Nanos(0)), Nanos(0));
        }
        known.answered(request);
        known.grant(&message(8, 8), Timestamp(30 * MS));
        known.take(request, Timestamp(30 * MS), 2, Nanos(0))
    }

    #[test]
    fn a_client_that_asks_for_no_more_than_it_spends_limits_itself() {
        assert_eq!([third_of_two(8), third_of_two(12)], [Nanos(0), Nanos(20 * MS)]);
    }

    #[test]
    fn nothing_is_known_before_the_first_response_and_after_credits_from_nowhere() {
        let mut known = ObservedCredits::default();
        known.grant(&message(8, 1), Timestamp(0));
        assert!(!known.are_known());
        let mut known = with(3);
        known.take(CreditRequest { cost: 4, asked: 4 }, Timestamp(0), 1, Nanos(0));
        assert!(!known.are_known());
    }
}
