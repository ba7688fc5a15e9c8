//! Commands as exchanges, one by one: for the table that a capture of the same run can be put beside.

use super::session::Identity;
use crate::client::Sample;
use smbscope_model::{Exchange, FlowId, Half, Outcome, PacketRef, Stamp, Status, Timestamp};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Exchanges of a load point that are kept, of all workers together; further ones are counted. About 130 MB.
pub const EXCHANGES_MAX: usize = 250_000;

/// Tells wall-clock time from the clock that only goes forward, which all measuring uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    instant: Instant,
    timestamp: Timestamp,
}

impl Clock {
    /// At this moment, which is `instant` of the clock that only goes forward.
    pub(crate) fn at(instant: Instant) -> Clock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { instant, timestamp: Timestamp(since.as_nanos().min(i64::MAX as u128) as i64) }
    }

    pub(crate) fn timestamp(&self, at: Instant) -> Timestamp {
        let later = at.saturating_duration_since(self.instant).as_nanos() as i64;
        let earlier = self.instant.saturating_duration_since(at).as_nanos() as i64;
        Timestamp(self.timestamp.0 + later - earlier)
    }
}

/// What the exchanges of one connection, and of one action on it, have in common.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) flow: FlowId,
    pub(crate) identity: Identity,
    pub(crate) path: Option<Arc<str>>,
}

/// Exchanges of a load point, and how many did not fit.
#[derive(Debug, Clone)]
pub struct Exchanges {
    /// Those that were kept, in the order in which they began.
    pub list: Vec<Exchange>,
    /// Those that were not, because there were too many.
    pub left_out: u64,
    most: usize,
    clock: Clock,
}

impl Exchanges {
    pub(crate) fn new(clock: Clock, most: usize) -> Exchanges {
        Exchanges { list: Vec::new(), left_out: 0, most, clock }
    }

    pub(crate) fn add(&mut self, sample: &Sample, origin: &Origin) {
        if self.list.len() == self.most {
            self.left_out += 1;
            return;
        }
        let stamp = |at: Instant| Stamp { time: self.clock.timestamp(at), packet: PacketRef::default() };
        let answered = sample.outcome == Outcome::Complete;
        let identity = &origin.identity;
        self.list.push(Exchange {
            dialect: Some(identity.dialect),
            subcommand: sample.subcommand,
            message_id: Some(sample.message_id),
            session_id: Some(sample.session_id),
            tree_id: Some(sample.tree_id),
            file_id: sample.file_id,
            user: identity.user.clone(),
            share: identity.share.clone(),
            path: origin.path.clone(),
            status: sample.status.map(Status::Nt),
            request: Half {
                first: Some(stamp(sample.request_first)),
                last: Some(stamp(sample.request_last)),
                packets: 0,
                bytes: sample.request_bytes.into(),
            },
            interim: sample.interim.map(stamp),
            response: Half {
                first: answered.then(|| stamp(sample.response_first)),
                last: answered.then(|| stamp(sample.response_last)),
                packets: 0,
                bytes: sample.response_bytes.into(),
            },
            offset: sample.offset,
            length: sample.length.map(u64::from),
            compounded: sample.compounded,
            signed: sample.signed,
            encrypted: sample.encrypted,
            outcome: sample.outcome,
            ..Exchange::new(origin.flow, identity.endpoints, sample.command, sample.group)
        });
    }

    pub(crate) fn merge(&mut self, other: Exchanges) {
        self.most += other.most;
        self.left_out += other.left_out;
        self.list.extend(other.list);
    }

    /// In the order in which they began.
    pub(crate) fn finish(mut self) -> Exchanges {
        self.list.sort_by_key(|exchange| (exchange.start(), exchange.flow, exchange.message_id));
        self
    }
}
