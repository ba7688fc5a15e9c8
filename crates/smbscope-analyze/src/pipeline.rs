//! Captures → exchanges on several threads, with the same result for any number of them.
//!
//! The calling thread reads and decodes. Segments are sharded by their connection, and each shard is followed by
//! itself: its flows, connections and sessions, with limits of its own. There are always [`SHARDS`] shards, whatever
//! number of threads works on them, so their number changes nothing but the time it takes.
//!
//! What would differ from one shard for everything is an SMB2 session with channels in several shards. Where one is
//! met, the analysis says so ([`Failure::Coupled`]) and is to be repeated with coarser shards.

use crate::analyzer::{Analyzer, Initials, Options, Outcome};
use crate::channels::Channels;
use crate::sink::ExchangeSink;
use smbscope_capture::batch::Batch;
use smbscope_capture::decode::Decoder;
use smbscope_capture::reader::{Backing, CaptureSet};
use smbscope_capture::tcp::FlowTable;
use smbscope_capture::{Packet, TcpSegment};
use smbscope_model::{
    ClockStep, Connection, Exchange, ForeignReply, Nanos, Quality, SeenTwice, Settled, SkippedPackets, Timestamp,
};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Into how many parts the flows are divided.
pub const SHARDS: usize = 16;
/// Segments handed to a worker at once.
const BATCH_SEGMENTS: usize = 256;
/// Copied bytes handed to a worker at once.
const BATCH_BYTES: usize = 1 << 20;
/// Batches that may wait for a worker.
const BATCHES_AHEAD: usize = 16;
/// Protocols that are no TCP that are listed; the packets of others are added up.
pub const SKIPPED_LISTED: usize = 32;
/// Packets between two calls of the observer.
const INTERVAL: usize = 1 << 12;

/// How flows are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharding {
    /// By connection.
    Connections,
    /// By the pair of hosts.
    Hosts,
    /// Not at all: exchanges come in one order, that of their ends.
    None,
}

/// Who does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threading {
    /// The calling thread does everything, for the first sink.
    Inline,
    /// The calling thread reads, and every sink has a thread of its own.
    Workers,
}

/// What an analysis found, apart from the exchanges.
#[derive(Debug, Default)]
pub struct Analysis {
    /// Counts of reading, decoding and analysing.
    pub quality: Quality,
    /// The connections, by first packet.
    pub connections: Vec<Connection>,
    /// Connections that are not in the list because it was full.
    pub connections_left_out: u64,
    /// The busiest TCP ports with their packets.
    pub busiest_ports: Vec<(u16, u64)>,
    /// Packets that are no TCP, by protocol, most packets first.
    pub skipped: Vec<SkippedPackets>,
    /// Where the clock of the captures stepped within exchanges, in the order of time.
    pub clock_steps: Vec<ClockStep>,
    /// Servers that answered in another protocol.
    pub foreign_replies: Vec<ForeignReply>,
    /// Connections that were captured at two places, at most [`SeenTwice::MAX_NAMED`].
    pub seen_twice: Vec<SeenTwice>,
    /// The earliest packet.
    pub first: Option<Timestamp>,
    /// The latest packet.
    pub last: Option<Timestamp>,
}

/// Why an analysis has to be made again in another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The capture was trusted to be in time order and is not.
    OutOfOrder,
    /// A session spans shards.
    Coupled,
}

/// What is done for every exchange, on the thread that found it.
pub trait Sink: Send {
    /// An exchange is over.
    fn exchange(&mut self, exchange: &Exchange);

    /// Something is settled about a connection. Told every few exchanges.
    fn settled(&mut self, _: &Settled) {}

    /// A connection is over; all its exchanges were passed on.
    fn closed(&mut self, _: &Connection) {}
}

impl<F: FnMut(&Exchange) + Send> Sink for F {
    fn exchange(&mut self, exchange: &Exchange) {
        self(exchange);
    }
}

/// Reads `set` to its end, or until its stop flag is set, and passes every exchange to one of `sinks`, of which there
/// is at least one. `observe` is called now and then.
pub fn run<S: Sink>(
    set: &mut CaptureSet,
    options: &Options,
    sharding: Sharding,
    threading: Threading,
    sinks: &mut [S],
    mut observe: impl FnMut(&CaptureSet),
) -> Result<Analysis, Failure> {
    let mut sinks: Vec<&mut dyn Sink> = sinks.iter_mut().map(|sink| sink as &mut dyn Sink).collect();
    follow(set, options, sharding, threading, &mut sinks, &mut observe)
}

/// The same for sinks of any type, so that what every packet passes is compiled once, here: one call through a table for an
/// exchange costs nothing beside it.
fn follow(
    set: &mut CaptureSet,
    options: &Options,
    sharding: Sharding,
    threading: Threading,
    sinks: &mut [&mut dyn Sink],
    observe: &mut dyn FnMut(&CaptureSet),
) -> Result<Analysis, Failure> {
    let shards = if sharding == Sharding::None { 1 } else { SHARDS };
    let channels = Arc::new(Channels::default());
    let stop = set.stop_flag();
    let steps_back: Arc<[ClockStep]> = set.clock_steps().into();
    let mut reader = Reader { decoder: Decoder::new(), analysis: Analysis::default(), channels: Arc::clone(&channels) };
    let outcomes = match (threading, sinks) {
        (_, []) => Vec::new(),
        (Threading::Inline, [sink, ..]) => {
            let mut worker = Worker::new(0, 1, shards, options, &mut **sink, &channels, &steps_back);
            reader.read(set, &stop, observe, |segment, _| worker.segment(shard_of(segment, sharding), segment))?;
            vec![worker.finish()]
        }
        (Threading::Workers, sinks) => std::thread::scope(|scope| {
            let count = sinks.len();
            let mut lines: Vec<Line> = Vec::new();
            let mut threads = Vec::new();
            for (index, sink) in sinks.iter_mut().enumerate() {
                let (line, batches, empties) = Line::new();
                let (channels, steps_back) = (&channels, &steps_back);
                threads.push(scope.spawn(move || {
                    let mut worker = Worker::new(index, count, shards, options, &mut **sink, channels, steps_back);
                    worker.work(&batches, &empties);
                    worker.finish()
                }));
                lines.push(line);
            }
            let read = reader.read(set, &stop, observe, |segment, backing| {
                let shard = shard_of(segment, sharding);
                lines[shard % count].push(shard, segment, backing);
            });
            lines.into_iter().for_each(Line::finish);
            let outcomes = threads.into_iter().map(|thread| match thread.join() {
                Ok(outcomes) => outcomes,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            let outcomes: Vec<Vec<Outcome>> = outcomes.collect();
            read.map(|()| outcomes)
        })?,
    };
    if channels.are_coupled() {
        return Err(Failure::Coupled);
    }
    let mut analysis = reader.finish(set);
    let mut initials = Vec::new();
    for outcome in outcomes.into_iter().flatten() {
        analysis.quality.merge(&outcome.quality);
        analysis.connections.extend(outcome.connections);
        analysis.connections_left_out += outcome.connections_left_out;
        analysis.clock_steps.extend(outcome.clock_steps);
        analysis.foreign_replies.extend(outcome.foreign_replies);
        analysis.seen_twice.extend(outcome.routed.into_iter().map(SeenTwice::Routed));
        initials.extend(outcome.initials);
    }
    analysis.clock_steps.extend(steps_back.iter());
    analysis.clock_steps = distinct(analysis.clock_steps);
    analysis.seen_twice.extend(translated(initials));
    analysis.seen_twice.truncate(SeenTwice::MAX_NAMED);
    analysis.foreign_replies.sort_unstable();
    analysis.foreign_replies.dedup();
    analysis.foreign_replies.truncate(ForeignReply::MAX_LISTED);
    analysis.connections.sort_by_key(|connection| connection.flow);
    let too_many = analysis.connections.len().saturating_sub(options.limits.connections);
    analysis.connections.truncate(options.limits.connections);
    analysis.connections_left_out += too_many as u64;
    Ok(analysis)
}

/// Steps of the clock, each once: every flow that it is seen in has packets of its own around it.
fn distinct(mut steps: Vec<ClockStep>) -> Vec<ClockStep> {
    steps.sort_by_key(|step| (step.after.packet.capture, step.after.packet.number));
    let mut distinct: Vec<ClockStep> = Vec::new();
    for step in steps {
        let is_known = |known: &ClockStep| {
            known.after.packet.capture == step.after.packet.capture
                && step.before.packet.number <= known.after.packet.number
        };
        if !distinct.iter().any(is_known) {
            distinct.push(step);
        }
    }
    distinct.truncate(ClockStep::MAX_CLOCK_STEPS);
    distinct
}

/// Connections with the same initial sequence numbers on both sides, at about the same time and with other addresses: the
/// one that began first, and the other one.
fn translated(mut initials: Vec<Initials>) -> Vec<SeenTwice> {
    const MAX_APART: Nanos = Nanos(10_000_000_000);
    initials.sort_unstable_by_key(|(numbers, first, ends)| (*numbers, *first, ends.client, ends.server));
    let pairs = initials.windows(2).filter_map(|pair| match pair {
        [(one, began, ends), (other, later, others)] => {
            (one == other && ends != others && *later - *began <= MAX_APART)
                .then_some((*began, SeenTwice::Translated(*ends, *others)))
        }
        _ => None,
    });
    let mut pairs: Vec<(Timestamp, SeenTwice)> = pairs.collect();
    pairs.sort_by_key(|(began, _)| *began);
    pairs.into_iter().map(|(_, pair)| pair).collect()
}

/// Which shard follows the flow of a segment: the same for both directions.
#[inline]
fn shard_of(segment: &TcpSegment<'_>, sharding: Sharding) -> usize {
    let mix = |end: SocketAddr| {
        let port = if sharding == Sharding::Connections { u64::from(end.port()) << 40 } else { 0 };
        let address = match end.ip() {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                (bits >> 64) as u64 ^ bits as u64
            }
        };
        // Fibonacci hashing; nothing depends on the quality of it but how evenly the work is divided.
        // Only the highest bits depend on all of the number.
        (address ^ port).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56
    };
    if sharding == Sharding::None {
        return 0;
    }
    (mix(segment.source).wrapping_add(mix(segment.destination)) % SHARDS as u64) as usize
}

/// The part that goes from packet to packet.
struct Reader {
    decoder: Decoder,
    analysis: Analysis,
    channels: Arc<Channels>,
}

impl Reader {
    fn read(
        &mut self,
        set: &mut CaptureSet,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(&CaptureSet),
        mut take: impl FnMut(&TcpSegment<'_>, Option<&Arc<Backing>>),
    ) -> Result<(), Failure> {
        let Analysis { quality, first, last, .. } = &mut self.analysis;
        let decoder = &mut self.decoder;
        let mut packet = |packet: &Packet<'_>, backing: Option<&Arc<Backing>>| {
            first.get_or_insert(packet.stamp.time);
            *last = (*last).max(Some(packet.stamp.time));
            if let Some(segment) = decoder.decode(packet, quality) {
                take(&segment, backing);
            }
        };
        let mut until_observed = INTERVAL;
        while !stop.load(Ordering::Relaxed) {
            let straight = set.advance_straight(INTERVAL, |next, backing| packet(next, Some(backing)));
            if straight == 0 {
                let Some(next) = set.advance().then(|| set.current_packet()).flatten() else { break };
                packet(&next, set.current_backing());
            }
            if set.is_out_of_order() {
                return Err(Failure::OutOfOrder);
            }
            until_observed = until_observed.saturating_sub(straight.max(1));
            if until_observed == 0 {
                until_observed = INTERVAL;
                observe(set);
                if self.channels.are_coupled() {
                    return Err(Failure::Coupled);
                }
            }
        }
        Ok(())
    }

    fn finish(mut self, set: &CaptureSet) -> Analysis {
        self.decoder.finish(&mut self.analysis.quality);
        self.analysis.quality.merge(set.quality());
        self.analysis.busiest_ports = self.decoder.busiest_ports(5);
        self.analysis.skipped = self.decoder.skipped(SKIPPED_LISTED);
        self.analysis
    }
}

/// The way to a worker, and the batch that is being filled for it.
struct Line {
    batch: Batch,
    batches: SyncSender<Batch>,
    empties: Receiver<Batch>,
}

impl Line {
    fn new() -> (Line, Receiver<Batch>, SyncSender<Batch>) {
        let (batches, worker_batches) = sync_channel(BATCHES_AHEAD);
        let (worker_empties, empties) = sync_channel(BATCHES_AHEAD + 2);
        (Line { batch: Batch::default(), batches, empties }, worker_batches, worker_empties)
    }

    #[inline]
    fn push(&mut self, shard: usize, segment: &TcpSegment<'_>, backing: Option<&Arc<Backing>>) {
        self.batch.push(shard as u16, segment, backing);
        if self.batch.len() >= BATCH_SEGMENTS || self.batch.copied_bytes() >= BATCH_BYTES {
            self.send();
        }
    }

    fn send(&mut self) {
        let empty = self.empties.try_recv().unwrap_or_default();
        // A worker goes away early only when it panicked, and then its thread is joined.
        let _gone = self.batches.send(std::mem::replace(&mut self.batch, empty));
    }

    fn finish(mut self) {
        if !self.batch.is_empty() {
            self.send();
        }
    }
}

/// Lets the shards of a thread share its sink.
struct Emit<'s>(Rc<RefCell<&'s mut dyn Sink>>);

impl ExchangeSink for Emit<'_> {
    fn exchange(&mut self, exchange: Box<Exchange>) {
        self.0.borrow_mut().exchange(&exchange);
    }

    fn settled(&mut self, settled: &Settled) {
        self.0.borrow_mut().settled(settled);
    }

    fn closed(&mut self, connection: &Connection) {
        self.0.borrow_mut().closed(connection);
    }
}

/// The shards of one thread.
struct Worker<'s> {
    /// Shard `i` is at `i / stride`.
    stride: usize,
    shards: Vec<FlowTable<Analyzer<Emit<'s>>>>,
}

impl<'s> Worker<'s> {
    fn new(
        index: usize,
        count: usize,
        shards: usize,
        options: &Options,
        sink: &'s mut dyn Sink,
        channels: &Arc<Channels>,
        steps_back: &Arc<[ClockStep]>,
    ) -> Worker<'s> {
        let sink = Rc::new(RefCell::new(sink));
        let options = Options { limits: options.limits.part(shards), ..options.clone() };
        let tables = (index..shards).step_by(count).map(|shard| {
            let mut analyzer = Analyzer::new(options.clone(), Emit(Rc::clone(&sink)));
            analyzer.know_steps_back(Arc::clone(steps_back));
            if shards > 1 {
                analyzer.watch_channels(shard, Arc::clone(channels));
            }
            FlowTable::within(analyzer, options.limits.flows).beside(options.beside)
        });
        Worker { stride: count, shards: tables.collect() }
    }

    #[inline]
    fn segment(&mut self, shard: usize, segment: &TcpSegment<'_>) {
        self.shards[shard / self.stride].segment(segment);
    }

    fn work(&mut self, batches: &Receiver<Batch>, empties: &SyncSender<Batch>) {
        while let Ok(mut batch) = batches.recv() {
            for (shard, segment) in batch.iter() {
                self.segment(usize::from(shard), &segment);
            }
            batch.clear();
            // There is room for all batches there are.
            let _reused = empties.try_send(batch);
        }
    }

    fn finish(self) -> Vec<Outcome> {
        self.shards.into_iter().map(|table| table.finish().finish()).collect()
    }
}
