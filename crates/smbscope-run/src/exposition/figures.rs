//! Counts of commands by server, share and group with bounded labels, and the figures that are not counted per command.

use smbscope_capture::live::PacketDrops;
use smbscope_diagnose::{Answer, Catalogue};
use smbscope_load::engine::ExchangeObserver;
use smbscope_model::{
    CUT_NAME_MARK, CommandGroup, Exchange, ExchangeOutcome, FlowDirection, Nanos, ResponseStatus, TimeKind, Timestamp,
};
use smbscope_stats::{OTHER, TimeSplit, derived, is_apart};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Servers with labels of their own in the metrics; commands of others count as `(other)`.
pub const SERVERS_LABELLED_MAX: usize = 100;
/// Shares with labels of their own in the metrics, over all servers; commands of others count as `(other)`.
pub const SHARES_LABELLED_MAX: usize = 500;
/// Error statuses with labels of their own in the metrics; others count as `(other)`.
pub const STATUSES_LABELLED_MAX: usize = 100;
/// Bytes of a label's value in the metrics; longer names are cut.
const LABEL_BYTES_MAX: usize = 128;

/// Commands that a thread counts before it locks the shared counts.
const PENDING_MAX: u32 = 1_024;

const US: i64 = 1_000;
const MS: i64 = 1_000_000;
const S: i64 = 1_000_000_000;

/// Upper bounds of the buckets of response times, in nanoseconds: 10 µs to 60 s, about three a decade.
pub const RESPONSE_TIME_BOUNDS_NS: [i64; 21] = [
    10 * US,
    25 * US,
    50 * US,
    100 * US,
    250 * US,
    500 * US,
    MS,
    5 * MS / 2,
    5 * MS,
    10 * MS,
    20 * MS,
    50 * MS,
    100 * MS,
    250 * MS,
    500 * MS,
    S,
    5 * S / 2,
    5 * S,
    10 * S,
    30 * S,
    60 * S,
];

/// Schema of native histograms: 8 buckets for each factor of 2, so that one is 9% wide.
pub(super) const NATIVE_SCHEMA: i32 = 3;

/// MetricFigures of a running command, shared by all threads. Clones refer to the same figures.
#[derive(Debug, Clone, Default)]
pub struct MetricsRegistry {
    shared: Arc<Mutex<MetricFigures>>,
}

impl MetricsRegistry {
    pub fn new() -> MetricsRegistry {
        MetricsRegistry::default()
    }

    /// Returns a recorder for one thread.
    pub fn recorder(&self) -> MetricsRecorder {
        MetricsRecorder { registry: self.clone(), pending: Vec::new(), places: HashMap::new(), latest: 0, count: 0 }
    }

    /// Changes the figures that are not counted per command.
    pub fn update(&self, change: impl FnOnce(&mut ObservedFigures)) {
        change(&mut self.lock().observed);
    }

    /// Marks the causes of an answer as active and all others as inactive, and adds the time that they cost. Call it
    /// once for each stretch of time that has an answer.
    pub fn add_answer(&self, answer: &Answer) {
        let mut figures = self.lock();
        let causes = figures.causes.get_or_insert_with(|| {
            let catalogue = Catalogue::default();
            catalogue.entries().map(|(id, _)| (id.to_owned(), CauseFigures::default())).collect()
        });
        causes.values_mut().for_each(|cause| cause.is_active = false);
        for cause in &answer.causes {
            let known = causes.entry(cause.id.clone()).or_default();
            known.is_active = true;
            let lost = cause.lost_ns.as_ref().map_or(0, |lost| lost.best.0.max(0));
            known.lost = Nanos(known.lost.0.saturating_add(lost));
        }
    }

    pub(super) fn snapshot(&self) -> MetricFigures {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, MetricFigures> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// MetricFigures that are not counted per command. Those that are absent are not exposed.
#[derive(Debug, Clone, Default)]
pub struct ObservedFigures {
    /// Requests without a response yet.
    pub outstanding: BTreeMap<CommandGroup, u64>,
    pub connections: Option<u64>,
    /// Retransmitted segments since the start, by server and direction; forward is to the server. Servers without a
    /// label of their own count together.
    pub retransmitted: Vec<(SocketAddr, FlowDirection, u64)>,
    /// Time of all connections since the start.
    pub time: Option<TimeSplit>,
    /// Packets lost on the way to the capture since the start.
    pub dropped: Option<PacketDrops>,
    /// Packets acknowledged by the receiver, but not captured, since the start.
    pub missing: Option<u64>,
    pub last_packet: Option<Timestamp>,
}

/// Counts commands on one thread. Adds them to the registry every 1,024 commands, on
/// [`publish`](ExchangeObserver::publish) and when dropped.
#[derive(Debug)]
pub struct MetricsRecorder {
    registry: MetricsRegistry,
    pending: Vec<(ShareKey, ShareFigures)>,
    places: HashMap<ShareKey, usize>,
    latest: usize,
    count: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ShareKey {
    server: SocketAddr,
    share: Option<Arc<str>>,
}

impl ExchangeObserver for MetricsRecorder {
    fn exchange(&mut self, exchange: &Exchange) {
        let is_of_server = exchange.outcome == ExchangeOutcome::ServerInitiated;
        if is_of_server || is_apart(&(exchange.command, exchange.subcommand, exchange.group)) {
            return;
        }
        self.share(exchange).record(exchange);
        self.count += 1;
        if self.count >= PENDING_MAX {
            self.publish();
        }
    }

    fn publish(&mut self) {
        if self.count == 0 {
            return;
        }
        self.count = 0;
        self.places.clear();
        let mut figures = self.registry.lock();
        for (key, counted) in self.pending.drain(..) {
            figures.add(&key, counted);
        }
    }
}

impl MetricsRecorder {
    fn share(&mut self, exchange: &Exchange) -> &mut ShareFigures {
        let is_of = |key: &ShareKey| key.server == exchange.endpoints.server && key.share == exchange.share;
        if self.pending.get(self.latest).is_none_or(|(key, _)| !is_of(key)) {
            let key = ShareKey { server: exchange.endpoints.server, share: exchange.share.clone() };
            self.latest = *self.places.entry(key.clone()).or_insert_with(|| {
                self.pending.push((key, ShareFigures::default()));
                self.pending.len() - 1
            });
        }
        &mut self.pending[self.latest].1
    }
}

impl Drop for MetricsRecorder {
    fn drop(&mut self) {
        self.publish();
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct MetricFigures {
    /// By the labels `server` and `share`. An empty share is not known, or belongs to no share.
    pub(super) shares: BTreeMap<(String, String), ShareFigures>,
    servers: BTreeSet<String>,
    shares_labelled: usize,
    statuses: BTreeSet<ResponseStatus>,
    pub(super) overflow: LabelOverflow,
    pub(super) causes: Option<BTreeMap<String, CauseFigures>>,
    pub(super) observed: ObservedFigures,
}

/// Commands or segments counted under `(other)`, by label.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LabelOverflow {
    pub(super) server: u64,
    pub(super) share: u64,
    pub(super) status: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CauseFigures {
    pub(super) is_active: bool,
    pub(super) lost: Nanos,
}

impl MetricFigures {
    fn add(&mut self, key: &ShareKey, mut counted: ShareFigures) {
        let labels = self.labels(key, counted.commands());
        let mut errors = BTreeMap::new();
        for (status, count) in std::mem::take(&mut counted.errors) {
            *errors.entry(self.status(status, count)).or_default() += count;
        }
        counted.errors = errors;
        self.shares.entry(labels).or_default().merge(counted);
    }

    fn labels(&mut self, key: &ShareKey, commands: u64) -> (String, String) {
        let server = key.server.to_string();
        if !self.servers.contains(&server) {
            if self.servers.len() >= SERVERS_LABELLED_MAX {
                self.overflow.server += commands;
                return (OTHER.to_owned(), OTHER.to_owned());
            }
            self.servers.insert(server.clone());
        }
        let labels = (server, key.share.as_deref().map_or_else(String::new, label_value));
        if labels.1.is_empty() || self.shares.contains_key(&labels) {
            return labels;
        }
        if self.shares_labelled >= SHARES_LABELLED_MAX {
            self.overflow.share += commands;
            return (labels.0, OTHER.to_owned());
        }
        self.shares_labelled += 1;
        labels
    }

    /// Returns `None` for a status that counts under `(other)`.
    fn status(&mut self, status: Option<ResponseStatus>, count: u64) -> Option<ResponseStatus> {
        let status = status?;
        if self.statuses.contains(&status) || self.statuses.len() < STATUSES_LABELLED_MAX {
            self.statuses.insert(status);
            return Some(status);
        }
        self.overflow.status += count;
        None
    }

    /// Returns the server's label, if it has one of its own.
    pub(super) fn server_label(&self, server: SocketAddr) -> String {
        let server = server.to_string();
        if self.servers.contains(&server) || self.servers.len() < SERVERS_LABELLED_MAX {
            server
        } else {
            OTHER.to_owned()
        }
    }
}

/// Cuts a name that is too long for a label. The encoder escapes quotes and line breaks.
pub(super) fn label_value(name: &str) -> String {
    if name.len() <= LABEL_BYTES_MAX {
        return name.to_owned();
    }
    let most = LABEL_BYTES_MAX - CUT_NAME_MARK.len_utf8();
    let kept = name.char_indices().take_while(|(at, letter)| at + letter.len_utf8() <= most);
    kept.map(|(_, letter)| letter).chain([CUT_NAME_MARK]).collect()
}

/// Counts of one share of one server.
#[derive(Debug, Clone, Default)]
pub(super) struct ShareFigures {
    pub(super) groups: BTreeMap<CommandGroup, GroupFigures>,
    /// `None` counts statuses without a label of their own.
    pub(super) errors: BTreeMap<Option<ResponseStatus>, u64>,
    pub(super) untimed: BTreeMap<ExchangeOutcome, u64>,
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct GroupFigures {
    pub(super) commands: u64,
    pub(super) timed: u64,
    pub(super) sum: Nanos,
    /// Commands by bucket, not cumulated; the last bucket has no upper bound.
    pub(super) buckets: [u64; RESPONSE_TIME_BOUNDS_NS.len() + 1],
    /// Commands by bucket of the native histogram: bucket i ends at 2^(i/8) seconds. 0 s is in none.
    pub(super) native: BTreeMap<i32, u64>,
}

impl ShareFigures {
    fn record(&mut self, exchange: &Exchange) {
        let group = self.groups.entry(exchange.group).or_default();
        group.commands += 1;
        match exchange.time(TimeKind::ResponseTime).filter(|_| exchange.is_complete()) {
            Some(time) => group.record(time),
            None => *self.untimed.entry(exchange.outcome).or_default() += 1,
        }
        if exchange.status.is_some_and(ResponseStatus::is_error) {
            *self.errors.entry(exchange.status).or_default() += 1;
        }
        let moved = derived::moved(exchange).filter(|_| exchange.is_complete()).unwrap_or(0);
        match exchange.group {
            CommandGroup::Read => self.bytes_read += moved,
            _ => self.bytes_written += moved,
        }
    }

    fn commands(&self) -> u64 {
        self.groups.values().map(|group| group.commands).sum()
    }

    fn merge(&mut self, other: ShareFigures) {
        for (group, counted) in other.groups {
            self.groups.entry(group).or_default().merge(&counted);
        }
        for (status, count) in other.errors {
            *self.errors.entry(status).or_default() += count;
        }
        for (outcome, count) in other.untimed {
            *self.untimed.entry(outcome).or_default() += count;
        }
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
    }
}

impl GroupFigures {
    fn record(&mut self, time: Nanos) {
        self.timed += 1;
        self.sum = Nanos(self.sum.0.saturating_add(time.0));
        self.buckets[RESPONSE_TIME_BOUNDS_NS.partition_point(|bound| *bound < time.0)] += 1;
        if time.0 > 0 {
            let octaves = (time.0 as f64 / 1e9).log2();
            *self.native.entry((octaves * f64::from(1 << NATIVE_SCHEMA)).ceil() as i32).or_default() += 1;
        }
    }

    fn merge(&mut self, other: &GroupFigures) {
        self.commands += other.commands;
        self.timed += other.timed;
        self.sum = Nanos(self.sum.0.saturating_add(other.sum.0));
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets) {
            *mine += theirs;
        }
        for (bucket, count) in &other.native {
            *self.native.entry(*bucket).or_default() += count;
        }
    }
}
