//! Follows a capture while it is being made: a report of every minute, of the last hour, and of everything at the end.
//!
//! One thread reads and decodes packets into a batch; the calling thread empties it when there is enough, at least ten
//! times a second. Nothing in the analysis differs from a finished capture. At the end of a minute, the recorder's tables
//! are taken and replaced by empty ones, and copies of the open connections are ended; their counts before the minute are
//! subtracted. So a minute has its own figures, while sessions, names and outstanding requests go on. The hour is the
//! merge of its parts, and so is the whole. Memory depends on the number of connections, not on the time that passes.

use super::recorder::{AggregatedExchanges, AnalysisRecorder};
use super::{AnalysisError, AnalysisOptions, AnalyzedCaptures, CaptureSetAnalysis, catalogue, how, names};
use smbscope_analyze::Partial;
use smbscope_analyze::pipeline::{self, HostPairFollower, Progress, Sharding, Sink};
use smbscope_capture::TcpSegment;
use smbscope_capture::batch::SegmentBatch;
use smbscope_capture::decode::Decoder;
use smbscope_capture::reader::CaptureSet;
use smbscope_diagnose::Catalogue;
use smbscope_model::{
    CaptureInfo, CommandGroup, ConnectionSummary, Exchange, ExchangeOutcome, FlowId, Nanos, Quality, ResponseStatus,
    Settled, TimeKind, Timestamp,
};
use smbscope_report::Report;
use smbscope_stats::{DurationStatistics, Summary, SummaryPrecision};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Segments, or bytes of their payload, that wake the analysis: few enough that it finds them in the processor's cache.
const ENOUGH: usize = 1 << 12;
const ENOUGH_BYTES: usize = 1 << 20;
/// Segments that wait for the analysis; then reading waits, and the kernel's buffer fills.
const WAITING_MAX: usize = 1 << 17;
/// Bytes of their payload; then reading waits as well.
const WAITING_BYTES_MAX: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_millis(100);
const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
/// Parts of the last hour, the current one included: it covers 50 to 60 minutes.
const HOUR_PARTS: usize = 6;
const PART_MINUTES: u32 = 10;
/// Interval in seconds at which outstanding commands are counted.
const LOOK_SECONDS: i64 = 5;
/// Time that a packet may take from the wire to the analysis. Without one for this long, the clock ends a minute.
const LATE_MAX: Nanos = Nanos(3_000_000_000);
/// A command that is outstanding for as long as this counts as unanswered in the report of a minute.
const OUTSTANDING_LEAST: Nanos = Nanos(1_000_000_000);
/// A connection without a packet for longer than this is gone: TCP keepalives come after two hours (RFC 9293 §3.8.4).
const SILENCE_MAX: Nanos = Nanos(3 * 60 * MINUTE);
/// Connections that the report at the end lists; up to a quarter more are kept. Each takes about 1.5 kB.
const WATCHED_CONNECTIONS_MAX: usize = 10_000;
/// Outstanding commands listed, the oldest first.
const OUTSTANDING_LISTED: usize = 64;

/// Follows the progress of a live analysis. Every call is made by the thread that called [`follow`].
pub trait LiveObserver: Send {
    /// Called for each exchange of the analysis.
    fn exchange(&mut self, _: &Exchange) {}

    /// Called about every second of the capture, also of those without packets if there is a clock.
    fn second(&mut self, _: &LiveSecond) {}

    /// Called at the end of each minute of the capture, and at its end for the part of the last minute.
    fn minute(&mut self, _: LiveMinute) {}

    /// Called about ten times a second. Returns true to get the report of everything so far.
    fn pulse(&mut self) -> bool {
        false
    }

    fn report(&mut self, _: Result<Report, AnalysisError>) {}
}

/// The 60 seconds up to `time`.
#[derive(Debug, Clone, Default)]
pub struct LiveSecond {
    pub time: Timestamp,
    /// Seconds that the figures cover, at most 60.
    pub seconds: u32,
    pub groups: Vec<LastMinuteGroup>,
    /// Commands of each of these seconds, the oldest first.
    pub commands: Vec<u64>,
    /// Outstanding commands at `looked`, the oldest first, and their number.
    pub outstanding: Vec<Outstanding>,
    pub outstanding_count: u64,
    pub looked: Timestamp,
    pub last_packet: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub struct LastMinuteGroup {
    pub group: CommandGroup,
    pub commands: u64,
    pub errors: u64,
    pub outstanding: u64,
    pub response_time: DurationStatistics,
}

/// Command without a response so far.
#[derive(Debug, Clone)]
pub struct Outstanding {
    pub group: CommandGroup,
    pub since: Timestamp,
    pub client: SocketAddr,
    pub server: SocketAddr,
    pub share: Option<Arc<str>>,
    pub path: Option<Arc<str>>,
}

#[derive(Debug)]
pub struct LiveMinute {
    pub from: Timestamp,
    pub to: Timestamp,
    /// False if the capture ended in the minute.
    pub is_over: bool,
    /// Report of the minute. Fails if it had no SMB.
    pub minute: Result<Report, AnalysisError>,
    /// Report of the last hour, or of the time since the start.
    pub hour: Result<Report, AnalysisError>,
    pub hour_from: Timestamp,
}

/// Follows `set` to its end, or until its stop flag is set. With a `clock`, minutes without packets end, too, for
/// captures made now. Returns the report of everything.
pub fn follow(
    set: &mut CaptureSet,
    options: &AnalysisOptions,
    clock: Option<fn() -> Timestamp>,
    observer: &mut dyn LiveObserver,
) -> Result<Report, AnalysisError> {
    let (analyzer, catalogue) = (how(options)?, catalogue(options)?);
    let decoder = Decoder::with_tunnels(options.reading.tunnels.ports());
    let origins = decoder.origins();
    let recorder = AnalysisRecorder::new(options, &names(set), set.first_packet());
    let tables = Arc::new(Mutex::new(Tables { recorder, observer, second: BTreeMap::new() }));
    let mut sink = SharedTables(Arc::clone(&tables));
    let mut live = Live {
        options,
        catalogue: catalogue.clone(),
        captures: set.captures().to_vec(),
        tables: Arc::clone(&tables),
        follower: Some(HostPairFollower::new(&analyzer, Sharding::None, &mut sink, &[], &origins)),
        clock,
        seconds: VecDeque::new(),
        second_ends: 0,
        minute_ends: 0,
        minute: LivePart::default(),
        ten: LivePart::default(),
        tens: VecDeque::new(),
        whole: LivePart::default(),
        minutes: 0,
        read: Quality::default(),
        open: Partial::default(),
        outstanding: Vec::new(),
        looked: Timestamp::default(),
        last_packet: None,
    };
    let (inbox, stop) = (SegmentInbox::default(), set.stop_flag());
    let read = std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name("smbscope-decode".to_owned());
        let reading = named.spawn_scoped(scope, || inbox.fill(set, decoder, &stop)).map_err(AnalysisError::Thread)?;
        live.run(&inbox);
        // In a single shard nothing is coupled, and a live capture is taken in any order.
        reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(AnalysisError::Failed)
    })?;
    let LivePart { settled: mut partial, recorded, .. } = live.finish()?;
    partial.merge(read);
    drop(sink);
    let tables = Arc::into_inner(tables).expect("the follower, which shared them, has ended");
    let rest = tables.into_inner().unwrap_or_else(PoisonError::into_inner).recorder.finish();
    let found = AnalyzedCaptures {
        captures: set.captures().to_vec(),
        unread: Vec::new(),
        analysis: partial.finish(),
        interrupted: false,
    };
    found.refuse_without_smb(options)?;
    let recorded = merged(recorded, rest);
    CaptureSetAnalysis { found, recorded, catalogue, sides: None }.into_report(options)
}

fn nothing(options: &AnalysisOptions) -> AggregatedExchanges {
    AnalysisRecorder::new(options, &[], Arc::default()).finish()
}

fn merged(into: Option<AggregatedExchanges>, other: AggregatedExchanges) -> AggregatedExchanges {
    match into {
        Some(mut whole) => {
            whole.merge(other);
            whole
        }
        None => other,
    }
}

/// Segments between the reading thread and the analysis.
#[derive(Default)]
struct SegmentInbox {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    batch: SegmentBatch,
    read: Quality,
    ended: bool,
}

impl Waiting {
    fn is_enough(&self) -> bool {
        self.batch.len() >= ENOUGH || self.batch.copied_bytes() >= ENOUGH_BYTES
    }

    fn is_full(&self) -> bool {
        self.batch.len() >= WAITING_MAX || self.batch.copied_bytes() >= WAITING_BYTES_MAX
    }
}

impl SegmentInbox {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill(
        &self,
        set: &mut CaptureSet,
        decoder: Decoder,
        stop: &AtomicBool,
    ) -> Result<Partial, pipeline::RerunReason> {
        let mut each = |_: Timestamp, quality: &Quality| {
            // Every packet would cost too much; the figures of a minute may lack a few packets.
            if quality.packets.is_multiple_of(64) {
                self.waiting().read.clone_from(quality);
            }
        };
        let mut take = |segment: &TcpSegment<'_>| {
            let mut waiting = self.waiting();
            while waiting.is_full() && !stop.load(Ordering::Relaxed) || !waiting.batch.fits(segment) {
                self.changed.notify_all();
                waiting = self.changed.wait_timeout(waiting, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
            }
            let had_enough = waiting.is_enough();
            waiting.batch.push(segment, None);
            if !had_enough && waiting.is_enough() {
                self.changed.notify_all();
            }
        };
        let read = pipeline::decode(set, decoder, &mut |_| {}, &mut each, &mut take);
        self.waiting().ended = true;
        self.changed.notify_all();
        read
    }

    /// Exchanges the full batch for an empty one after waiting a moment. Returns true at the end of the capture.
    fn empty(&self, batch: &mut SegmentBatch, read: &mut Quality) -> bool {
        let mut waiting = self.waiting();
        if !waiting.ended && !waiting.is_enough() {
            waiting = self.changed.wait_timeout(waiting, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut waiting.batch, batch);
        read.clone_from(&waiting.read);
        self.changed.notify_all();
        waiting.ended
    }
}

struct Tables<'o> {
    recorder: AnalysisRecorder<'o>,
    observer: &'o mut dyn LiveObserver,
    second: BTreeMap<CommandGroup, SecondTally>,
}

struct SharedTables<'o>(Arc<Mutex<Tables<'o>>>);

impl Sink for SharedTables<'_> {
    fn exchange(&mut self, exchange: &Exchange) {
        let mut tables = lock(&self.0);
        tables.observer.exchange(exchange);
        tables.second.entry(exchange.group).or_default().record(exchange);
        tables.recorder.exchange(exchange);
    }

    fn settled(&mut self, settled: &Settled) {
        lock(&self.0).recorder.settled(settled);
    }

    fn closed(&mut self, connection: &ConnectionSummary) {
        lock(&self.0).recorder.closed(connection);
    }
}

fn lock<'t, 'o>(tables: &'t Mutex<Tables<'o>>) -> MutexGuard<'t, Tables<'o>> {
    tables.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Clone)]
struct SecondTally {
    commands: u64,
    errors: u64,
    response_time: Summary,
}

impl Default for SecondTally {
    fn default() -> SecondTally {
        SecondTally { commands: 0, errors: 0, response_time: Summary::new(SummaryPrecision::FILE) }
    }
}

impl SecondTally {
    fn record(&mut self, exchange: &Exchange) {
        self.commands += 1;
        self.errors += u64::from(exchange.status.is_some_and(ResponseStatus::is_error));
        if let Some(time) = exchange.time(TimeKind::ResponseTime) {
            self.response_time.record(time);
        }
    }

    fn merge(&mut self, other: &SecondTally) {
        self.commands += other.commands;
        self.errors += other.errors;
        self.response_time.merge(&other.response_time);
    }
}

/// Findings in a stretch of time.
#[derive(Default, Clone)]
struct LivePart {
    from: Timestamp,
    settled: Partial,
    recorded: Option<AggregatedExchanges>,
    /// The counters that grow from the start, as they were at `from`.
    before: Arc<CumulativeState>,
}

impl LivePart {
    fn add(&mut self, other: &LivePart) {
        self.settled.merge(other.settled.clone());
        if let Some(recorded) = &other.recorded {
            self.recorded = Some(merged(self.recorded.take(), recorded.clone()));
        }
    }
}

/// Counters that grow from the start, at a moment.
#[derive(Default)]
struct CumulativeState {
    connections: HashMap<FlowId, ConnectionSummary>,
    quality: Quality,
}

struct Live<'o, 'f> {
    options: &'o AnalysisOptions,
    catalogue: Catalogue,
    captures: Vec<CaptureInfo>,
    tables: Arc<Mutex<Tables<'o>>>,
    /// None once it ended.
    follower: Option<HostPairFollower<'f>>,
    clock: Option<fn() -> Timestamp>,
    seconds: VecDeque<BTreeMap<CommandGroup, SecondTally>>,
    /// Ends of the current second and minute; zero before the first packet.
    second_ends: i64,
    minute_ends: i64,
    minute: LivePart,
    ten: LivePart,
    tens: VecDeque<LivePart>,
    whole: LivePart,
    minutes: u32,
    read: Quality,
    /// The open connections when they were last looked at, and their outstanding commands.
    open: Partial,
    outstanding: Vec<Exchange>,
    looked: Timestamp,
    last_packet: Option<Timestamp>,
}

impl<'f> Live<'_, 'f> {
    fn run(&mut self, inbox: &SegmentInbox) {
        let mut batch = SegmentBatch::default();
        let mut next_pulse = Instant::now();
        loop {
            let ended = inbox.empty(&mut batch, &mut self.read);
            for segment in batch.iter() {
                self.pass(segment.stamp.time.0);
                self.follower().segment(&segment);
                self.last_packet = Some(segment.stamp.time);
            }
            if let Some(now) = self.clock.filter(|_| batch.is_empty() && self.second_ends > 0) {
                self.pass(now().0 - LATE_MAX.0);
            }
            batch.clear();
            let is_due = ended || Instant::now() >= next_pulse;
            if is_due {
                next_pulse = Instant::now() + PATIENCE;
            }
            if is_due && lock(&self.tables).observer.pulse() {
                self.collect();
                let mut part = self.whole.clone();
                part.add(&self.minute);
                let report = self.report(&part, self.looked);
                lock(&self.tables).observer.report(report);
            }
            if ended {
                return;
            }
        }
    }

    fn follower(&mut self) -> &mut HostPairFollower<'f> {
        self.follower.as_mut().expect("it ends with the analysis")
    }

    /// Ends all seconds and minutes before `time`.
    fn pass(&mut self, time: i64) {
        if self.second_ends == 0 {
            self.begin(time);
        }
        let is_far = time - self.second_ends > 2 * MINUTE || time < self.minute.from.0 - MINUTE;
        if is_far {
            // The capture paused, or the clock was set.
            self.end_second();
            self.end_minute();
            self.begin(time);
        }
        while time >= self.second_ends {
            self.end_second();
            if self.second_ends >= self.minute_ends {
                self.end_minute();
                self.minute_ends += MINUTE;
            }
            self.second_ends += SECOND;
        }
    }

    fn begin(&mut self, time: i64) {
        self.second_ends = (time.div_euclid(SECOND) + 1) * SECOND;
        self.minute_ends = (time.div_euclid(MINUTE) + 1) * MINUTE;
        self.minute.from = Timestamp(time);
        if self.ten.recorded.is_none() {
            self.ten.from = Timestamp(time);
        }
        if self.whole.recorded.is_none() {
            self.whole.from = Timestamp(time);
        }
    }

    fn end_second(&mut self) {
        if self.seconds.len() == 60 {
            self.seconds.pop_front();
        }
        self.seconds.push_back(std::mem::take(&mut lock(&self.tables).second));
        if self.second_ends % (LOOK_SECONDS * SECOND) == 0 {
            self.look();
        }
        let second = self.last_minute();
        lock(&self.tables).observer.second(&second);
    }

    fn last_minute(&self) -> LiveSecond {
        let mut sums: BTreeMap<CommandGroup, SecondTally> = BTreeMap::new();
        for (group, tally) in self.seconds.iter().flatten() {
            sums.entry(*group).or_default().merge(tally);
        }
        let mut waiting: BTreeMap<CommandGroup, u64> = BTreeMap::new();
        for exchange in &self.outstanding {
            *waiting.entry(exchange.group).or_default() += 1;
            sums.entry(exchange.group).or_default();
        }
        let groups = sums.into_iter().map(|(group, tally)| LastMinuteGroup {
            group,
            commands: tally.commands,
            errors: tally.errors,
            outstanding: waiting.get(&group).copied().unwrap_or_default(),
            response_time: tally.response_time.figures(),
        });
        let count = |second: &BTreeMap<CommandGroup, SecondTally>| second.values().map(|tally| tally.commands).sum();
        LiveSecond {
            time: Timestamp(self.second_ends),
            seconds: self.seconds.len() as u32,
            groups: groups.collect(),
            commands: self.seconds.iter().map(count).collect(),
            outstanding: self.outstanding.iter().take(OUTSTANDING_LISTED).filter_map(Outstanding::new).collect(),
            outstanding_count: self.outstanding.len() as u64,
            looked: self.looked,
            last_packet: self.last_packet,
        }
    }

    /// Takes final findings about connections, and looks at the open ones.
    fn look(&mut self) {
        let mut outstanding = Vec::new();
        let mut unfinished = |exchange: &Exchange| {
            if exchange.outcome == ExchangeOutcome::Unanswered && exchange.group != CommandGroup::Waiting {
                outstanding.push(exchange.clone());
            }
        };
        let Progress { settled, open } = self.follower().progress(&mut unfinished);
        outstanding.sort_by_key(Exchange::start);
        self.minute.settled.merge(settled);
        self.open = open;
        self.outstanding = outstanding;
        self.looked = Timestamp(self.second_ends);
    }

    /// Brings the current minute up to date.
    fn collect(&mut self) {
        self.look();
        let recorded = lock(&self.tables).recorder.take_part(self.open.connections());
        self.minute.recorded = Some(merged(self.minute.recorded.take(), recorded));
    }

    fn end_minute(&mut self) {
        let silent_since = Timestamp(self.second_ends.saturating_sub(SILENCE_MAX.0));
        self.follower().end_silent(silent_since);
        self.collect();
        self.tell_minute(true);
    }

    fn tell_minute(&mut self, is_over: bool) {
        let (from, to) = (self.minute.from, Timestamp(self.second_ends));
        let minute = self.report(&self.minute, to);
        self.ten.add(&self.minute);
        self.whole.add(&self.minute);
        self.whole.settled.list_about(WATCHED_CONNECTIONS_MAX);
        let mut hour: Option<LivePart> = None;
        for part in self.tens.iter().chain([&self.ten]) {
            match &mut hour {
                Some(hour) => hour.add(part),
                None => hour = Some(part.clone()),
            }
        }
        let hour = hour.unwrap_or_default();
        let (hour_from, hour) = (hour.from, self.report(&hour, to));
        lock(&self.tables).observer.minute(LiveMinute { from, to, is_over, minute, hour, hour_from });
        let state = Arc::new(self.state());
        self.minute = LivePart { from: to, before: Arc::clone(&state), ..LivePart::default() };
        self.minutes += 1;
        if self.minutes.is_multiple_of(PART_MINUTES) {
            let next = LivePart { from: to, before: state, ..LivePart::default() };
            self.tens.push_back(std::mem::replace(&mut self.ten, next));
            if self.tens.len() >= HOUR_PARTS {
                self.tens.pop_front();
            }
        }
    }

    fn state(&self) -> CumulativeState {
        let mut quality = self.open.quality().clone();
        quality.merge(&self.read);
        let small = |connection: &ConnectionSummary| ConnectionSummary {
            resent_at: [Vec::new(), Vec::new()],
            ..connection.clone()
        };
        let connections = self.open.connections().iter().map(|connection| (connection.flow, small(connection)));
        CumulativeState { connections: connections.collect(), quality }
    }

    fn report(&self, part: &LivePart, to: Timestamp) -> Result<Report, AnalysisError> {
        let mut partial = part.settled.clone();
        let mut open = self.open.clone();
        open.forget_attempts_before(part.from);
        partial.merge(open);
        let mut quality = partial.quality().clone();
        quality.merge(&self.read);
        *partial.quality_mut() = quality.since(&part.before.quality);
        let connections = std::mem::take(partial.connections_mut()).into_iter();
        let of_part = connections.map(|connection| match part.before.connections.get(&connection.flow) {
            Some(before) => connection.since(before),
            None => connection,
        });
        *partial.connections_mut() =
            of_part.filter(|connection| connection.to_server.packets + connection.to_client.packets > 0).collect();
        partial.set_span(part.from, to);
        let mut recorded = part.recorded.clone().unwrap_or_else(|| nothing(self.options));
        let long = |exchange: &&Exchange| exchange.start().is_some_and(|start| to - start >= OUTSTANDING_LEAST);
        self.outstanding.iter().filter(long).for_each(|exchange| recorded.add_outstanding(exchange));
        let found = AnalyzedCaptures {
            captures: self.captures.clone(),
            unread: Vec::new(),
            analysis: partial.finish(),
            interrupted: false,
        };
        found.refuse_without_smb(self.options)?;
        CaptureSetAnalysis { found, recorded, catalogue: self.catalogue.clone(), sides: None }.into_report(self.options)
    }

    /// Ends all connections, and the minute.
    fn finish(mut self) -> Result<LivePart, AnalysisError> {
        if self.second_ends > 0 {
            self.end_second();
        }
        let follower = self.follower.take().expect("it ends only here");
        self.minute.settled.merge(follower.finish().map_err(AnalysisError::Failed)?);
        (self.open, self.outstanding) = (Partial::default(), Vec::new());
        let recorded = lock(&self.tables).recorder.take_part(&[]);
        self.minute.recorded = Some(merged(self.minute.recorded.take(), recorded));
        self.tell_minute(false);
        Ok(self.whole)
    }
}

impl Outstanding {
    fn new(exchange: &Exchange) -> Option<Outstanding> {
        Some(Outstanding {
            group: exchange.group,
            since: exchange.start()?,
            client: exchange.endpoints.client,
            server: exchange.endpoints.server,
            share: exchange.share.clone(),
            path: exchange.path.clone(),
        })
    }
}
