//! Converts commands to the exchanges that a capture would yield, for `smbscope_stats` and for a table that can be
//! compared with a capture of the same run.

use super::clocks::Clock;
use super::session::SessionIdentity;
use serde::{Deserialize, Serialize};
use smbscope_client::Sample;
use smbscope_model::{
    Command, CommandGroup, Endpoints, Exchange, ExchangeOutcome, FlowId, PacketRef, ResponseStatus, Stamp, Timestamp,
};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

/// Exchanges kept per load point; more: no `exchanges.parquet`. Over all workers, about 130 MB. Further ones are
/// counted.
pub const EXCHANGES_MAX: usize = 250_000;

#[derive(Debug)]
struct ConnectionIdentity {
    flow: FlowId,
    identity: SessionIdentity,
}

#[derive(Debug)]
pub(crate) struct CommandSource {
    ends: Arc<ConnectionIdentity>,
    path: Option<Arc<str>>,
    answered: Option<Instant>,
}

impl CommandSource {
    pub(crate) fn new(flow: FlowId, identity: SessionIdentity) -> CommandSource {
        CommandSource { ends: Arc::new(ConnectionIdentity { flow, identity }), path: None, answered: None }
    }

    pub(crate) fn is_about(&mut self, path: Option<Arc<str>>) {
        self.path = path;
    }

    /// Returns the context of a batch of commands, and updates the time of the last response.
    pub(crate) fn commands(&mut self, samples: &[Sample]) -> ActionBatch {
        let batch = ActionBatch {
            commands: samples.len(),
            ends: self.ends.clone(),
            path: self.path.clone(),
            answered: self.answered,
        };
        let complete = samples.iter().filter(|sample| sample.outcome == ExchangeOutcome::Complete);
        self.answered = self.answered.max(complete.map(|sample| sample.response_last).max());
        batch
    }
}

#[derive(Debug)]
pub(crate) struct ActionBatch {
    pub(crate) commands: usize,
    ends: Arc<ConnectionIdentity>,
    path: Option<Arc<str>>,
    answered: Option<Instant>,
}

/// Converts commands to exchanges, reusing a single one so that only differing fields are copied.
#[derive(Debug)]
pub(crate) struct Maker {
    clock: Clock,
    exchange: Exchange,
    ends: Option<Arc<ConnectionIdentity>>,
    answered: Option<Timestamp>,
}

impl Maker {
    pub(crate) fn new(clock: Clock) -> Maker {
        Maker { clock, exchange: blank(), ends: None, answered: None }
    }

    pub(crate) fn begin(&mut self, batch: ActionBatch) {
        let ActionBatch { ends, path, answered, .. } = batch;
        let exchange = &mut self.exchange;
        if self.ends.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &ends)) {
            let identity = &ends.identity;
            exchange.flow = ends.flow;
            exchange.endpoints = identity.endpoints;
            exchange.dialect = Some(identity.dialect);
            own(&mut exchange.user, identity.user.as_deref());
            own(&mut exchange.share, identity.share.as_deref());
            self.ends = Some(ends);
        }
        exchange.path = path;
        self.answered = answered.map(|at| self.clock.timestamp(at));
    }

    /// Converts a command to the exchange that a capture inside the client would show, without packet numbers and
    /// round-trip times.
    pub(crate) fn exchange(&mut self, sample: &Sample) -> &Exchange {
        let clock = self.clock;
        let stamp = |time: Timestamp| Some(Stamp { time, packet: PacketRef::default() });
        let answered = sample.outcome == ExchangeOutcome::Complete;
        let begun = clock.timestamp(sample.request_first);
        let last = clock.timestamp(sample.response_last);
        let is_short = sample.response_first == sample.response_last;
        let first = if is_short { last } else { clock.timestamp(sample.response_first) };
        // Unless the command started before the previous response, nothing else was outstanding.
        let think_time = self.answered.filter(|before| *before <= begun).map(|before| begun - before);
        if answered {
            self.answered = self.answered.max(Some(last));
        }
        let exchange = &mut self.exchange;
        exchange.command = sample.command;
        exchange.subcommand = sample.subcommand;
        exchange.group = sample.group;
        exchange.message_id = Some(sample.message_id);
        exchange.session_id = Some(sample.session_id);
        exchange.tree_id = Some(sample.tree_id);
        exchange.file_id = sample.file_id;
        exchange.status = sample.status.map(ResponseStatus::Nt);
        exchange.request.first = stamp(begun);
        exchange.request.last = stamp(clock.timestamp(sample.request_last));
        exchange.request.bytes = sample.request_bytes.into();
        exchange.interim = sample.interim.and_then(|at| stamp(clock.timestamp(at)));
        exchange.response.first = stamp(first).filter(|_| answered);
        exchange.response.last = stamp(last).filter(|_| answered);
        exchange.response.bytes = sample.response_bytes.into();
        exchange.offset = sample.offset;
        exchange.length = sample.length.map(u64::from);
        exchange.compounded = sample.compounded;
        exchange.signed = sample.signed;
        exchange.encrypted = sample.encrypted;
        exchange.outcome = sample.outcome;
        exchange.think_time = think_time;
        exchange
    }
}

/// Copies a string instead of sharing it, so that no other thread touches its reference count.
fn own(place: &mut Option<Arc<str>>, name: Option<&str>) {
    if place.as_deref() != name {
        *place = name.map(Arc::from);
    }
}

fn blank() -> Exchange {
    let nobody = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let endpoints = Endpoints { client: nobody, server: nobody };
    Exchange::new(FlowId(0), endpoints, Command::EncryptedFrame, CommandGroup::Encrypted)
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExchangeLog {
    /// Kept exchanges in order of their start.
    pub list: Vec<Exchange>,
    pub left_out: u64,
    most: usize,
}

impl ExchangeLog {
    pub(crate) fn new(most: usize) -> ExchangeLog {
        ExchangeLog { list: Vec::new(), left_out: 0, most }
    }

    pub(crate) fn add(&mut self, exchange: &Exchange) {
        if self.list.len() == self.most {
            self.left_out += 1;
        } else {
            self.list.push(exchange.clone());
        }
    }

    pub(crate) fn merge(&mut self, other: ExchangeLog) {
        self.most += other.most;
        self.left_out += other.left_out;
        self.list.extend(other.list);
    }

    pub(crate) fn finish(mut self) -> ExchangeLog {
        self.list.sort_by_key(|exchange| (exchange.start(), exchange.flow, exchange.message_id));
        self
    }
}
