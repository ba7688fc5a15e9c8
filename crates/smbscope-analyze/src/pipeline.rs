//! Captures → exchanges on several threads, with the same result for any number of threads.
//!
//! The calling thread reads and decodes. Segments are sharded by connection, and each of the [`SHARDS`] shards has its
//! own flows, connections, sessions and limits, whatever the number of threads. If connections are sharded, a shard
//! collects batches of segments, larger ones for more connections, and processes each batch connection by connection.
//!
//! The only difference from a single shard would be an SMB2 session with channels in several shards. The analysis then
//! fails with [`RerunReason::Coupled`] and has to be repeated with coarser shards. Start reading at [`run`].

use crate::analyzer::{Analyzer, AnalyzerOptions, AnalyzerOutcome};
use crate::channels::SessionRegistry;
use crate::gathered::ShardBatches;
use crate::partial::Partial;
pub use crate::partial::{CaptureFindings, SKIPPED_LISTED};
use crate::pending::ExchangeSink;
use smbscope_capture::batch::{BatchOrder, SegmentBatch};
use smbscope_capture::decode::{Decoder, Origins};
use smbscope_capture::reader::{Backing, CaptureSet};
use smbscope_capture::tcp::FlowTable;
use smbscope_capture::{Packet, TcpSegment};
use smbscope_model::{ClockStep, ConnectionSummary, Exchange, Quality, Settled, Timestamp};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

pub const SHARDS: usize = 16;
/// Batches queued per worker; then the reader waits. One worker can continue while another has more work.
const BATCHES_AHEAD: usize = 8;
const INTERVAL: usize = 1 << 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharding {
    Connections,
    Hosts,
    /// A single shard: all exchanges in order of completion.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threading {
    /// The calling thread does everything and uses the first sink.
    Inline,
    /// The calling thread reads, and each sink has its own thread.
    Workers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RerunReason {
    OutOfOrder,
    Coupled,
}

pub trait Sink: Send {
    /// Announces the shard of the following calls. Threads don't affect the order of exchanges within a shard.
    fn turn_to(&mut self, _shard: usize) {}

    fn exchange(&mut self, exchange: &Exchange);

    /// Called after every few exchanges of a connection with the time up to which it is settled.
    fn settled(&mut self, _: &Settled) {}

    fn closed(&mut self, _: &ConnectionSummary) {}
}

impl<F: FnMut(&Exchange) + Send> Sink for F {
    fn exchange(&mut self, exchange: &Exchange) {
        self(exchange);
    }
}

/// Reads `set` to its end or stop flag; each exchange goes to one of `sinks` (not empty). Calls `observe` periodically.
pub fn run<S: Sink>(
    set: &mut CaptureSet,
    options: &AnalyzerOptions,
    sharding: Sharding,
    threading: Threading,
    sinks: &mut [S],
    mut observe: impl FnMut(&CaptureSet),
) -> Result<CaptureFindings, RerunReason> {
    let mut sinks: Vec<&mut dyn Sink> = sinks.iter_mut().map(|sink| sink as &mut dyn Sink).collect();
    let (partial, without_threads) = follow(set, options, sharding, threading, &mut sinks, &mut observe)?;
    Ok(CaptureFindings { without_threads, ..partial.finish() })
}

/// Implements [`run`] for all sink types, so that the code per packet is compiled only once; a virtual call per
/// exchange is negligible. Returns true with the result if the system refused to start a requested worker thread.
fn follow(
    set: &mut CaptureSet,
    options: &AnalyzerOptions,
    sharding: Sharding,
    threading: Threading,
    sinks: &mut [&mut dyn Sink],
    observe: &mut dyn FnMut(&CaptureSet),
) -> Result<(Partial, bool), RerunReason> {
    let shards = if sharding == Sharding::None { 1 } else { SHARDS };
    let channels = Arc::new(SessionRegistry::default());
    let watched = (shards > 1).then_some(&channels);
    let steps_back: Arc<[ClockStep]> = set.clock_steps().into();
    let mut reader = SegmentReader {
        decoder: Decoder::with_tunnels(options.tunnels.clone()),
        partial: Partial::new(options.limits.connections),
        channels: Arc::clone(&channels),
    };
    let by_connection = sharding == Sharding::Connections;
    let origins = reader.decoder.origins();
    let work = PipelineConfig {
        by_connection,
        shards,
        options,
        channels: watched,
        steps_back: &steps_back,
        origins: &origins,
    };
    let by_workers = match threading {
        Threading::Inline => None,
        Threading::Workers => follow_on_workers(&mut reader, set, &work, sharding, &mut *sinks, &mut *observe)?,
    };
    let without_threads = threading == Threading::Workers && by_workers.is_none();
    let outcomes = match (by_workers, sinks) {
        (Some(outcomes), _) => outcomes,
        (None, []) => Vec::new(),
        (None, [sink, ..]) => vec![follow_inline(&mut reader, set, &work, sharding, &mut **sink, observe)?],
    };
    if channels.are_coupled() {
        return Err(RerunReason::Coupled);
    }
    let mut partial = reader.finish(set);
    partial.add_clock_steps(&steps_back);
    outcomes.into_iter().flatten().for_each(|outcome| partial.add(outcome));
    Ok((partial, without_threads))
}

/// Passes batches to a thread per sink. Returns `None`, with nothing read, if the system refuses a thread.
fn follow_on_workers(
    reader: &mut SegmentReader,
    set: &mut CaptureSet,
    work: &PipelineConfig<'_>,
    sharding: Sharding,
    sinks: &mut [&mut dyn Sink],
    observe: &mut dyn FnMut(&CaptureSet),
) -> Result<Option<Vec<Vec<AnalyzerOutcome>>>, RerunReason> {
    std::thread::scope(|scope| {
        let count = sinks.len();
        let mut lines: Vec<WorkerBatchQueue> = Vec::new();
        let mut threads = Vec::new();
        for (index, sink) in sinks.iter_mut().enumerate() {
            let (line, batches, empties) = WorkerBatchQueue::new();
            let follow = move || {
                let mut worker = ShardWorker::new(index, count, work, &mut **sink);
                worker.work(&batches, &empties);
                worker.finish()
            };
            // Nothing is read yet, so if one thread is refused, the calling thread can do all the work.
            let Ok(thread) = std::thread::Builder::new().spawn_scoped(scope, follow) else { return Ok(None) };
            threads.push(thread);
            lines.push(line);
        }
        let mut gathered = ShardBatches::new(work.shards);
        let take = |segment: &TcpSegment<'_>, backing: Option<&Arc<Backing>>| {
            gathered.push(shard_of(segment, sharding), segment, backing, |shard, batch| {
                lines[shard % count].send(shard, batch);
            });
        };
        let read = reader.read(set, observe, |_, _| {}, take);
        gathered.finish(|shard, batch| lines[shard % count].send(shard, batch));
        drop(lines);
        let outcomes = threads.into_iter().map(|thread| match thread.join() {
            Ok(outcomes) => outcomes,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let outcomes: Vec<Vec<AnalyzerOutcome>> = outcomes.collect();
        read.map(|()| Some(outcomes))
    })
}

fn follow_inline(
    reader: &mut SegmentReader,
    set: &mut CaptureSet,
    work: &PipelineConfig<'_>,
    sharding: Sharding,
    sink: &mut dyn Sink,
    observe: &mut dyn FnMut(&CaptureSet),
) -> Result<Vec<AnalyzerOutcome>, RerunReason> {
    let mut worker = ShardWorker::new(0, 1, work, sink);
    if work.by_connection {
        let mut gathered = ShardBatches::new(work.shards);
        let take = |segment: &TcpSegment<'_>, backing: Option<&Arc<Backing>>| {
            gathered.push(shard_of(segment, sharding), segment, backing, |shard, batch| {
                worker.take(shard, batch);
                batch.clear();
            });
        };
        reader.read(set, observe, |_, _| {}, take)?;
        gathered.finish(|shard, batch| worker.take(shard, batch));
    } else {
        let take = |segment: &TcpSegment<'_>, _: Option<&Arc<Backing>>| {
            worker.segment(shard_of(segment, sharding), segment);
        };
        reader.read(set, observe, |_, _| {}, take)?;
    }
    Ok(worker.finish())
}

/// Assigns the pair of hosts of a segment to one of `parts` parts. Both directions belong to the same part.
pub fn part_of(segment: &TcpSegment<'_>, parts: usize) -> usize {
    (mixed(segment, false) % parts.max(1) as u64) as usize
}

#[inline]
fn shard_of(segment: &TcpSegment<'_>, sharding: Sharding) -> usize {
    if sharding == Sharding::None {
        return 0;
    }
    (mixed(segment, sharding == Sharding::Connections) % SHARDS as u64) as usize
}

#[inline]
fn mixed(segment: &TcpSegment<'_>, with_ports: bool) -> u64 {
    let mix = |end: SocketAddr| {
        let port = if with_ports { u64::from(end.port()) << 40 } else { 0 };
        let address = match end.ip() {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                (bits >> 64) as u64 ^ bits as u64
            }
        };
        // Fibonacci hashing, good enough to distribute work. Only the highest bits depend on the whole number.
        (address ^ port).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56
    };
    mix(segment.source).wrapping_add(mix(segment.destination))
}

/// Reads `set` to its end, or until its stop flag is set, for [`HostPairFollower`]s elsewhere. Before each packet, calls
/// `each` with its time and the counters so far.
pub fn decode(
    set: &mut CaptureSet,
    decoder: Decoder,
    observe: &mut dyn FnMut(&CaptureSet),
    each: &mut dyn FnMut(Timestamp, &Quality),
    take: &mut dyn FnMut(&TcpSegment<'_>),
) -> Result<Partial, RerunReason> {
    let mut reader =
        SegmentReader { decoder, partial: Partial::default(), channels: Arc::new(SessionRegistry::default()) };
    reader.read(set, observe, each, |segment, _| take(segment))?;
    Ok(reader.finish(set))
}

/// Findings of a [`HostPairFollower`] before its end.
pub struct Progress {
    /// Final findings since the last call. Lists the connections that ended.
    pub settled: Partial,
    /// Further findings if the capture ended here: the open connections and their counters.
    pub open: Partial,
}

/// Follows some pairs of hosts on the calling thread. Expects the ordinals and packets of a single analysis.
pub struct HostPairFollower<'s> {
    worker: ShardWorker<'s>,
    sharding: Sharding,
    channels: Arc<SessionRegistry>,
    steps_back: Arc<[ClockStep]>,
    connections_max: usize,
}

impl<'s> HostPairFollower<'s> {
    /// Passes exchanges to `sink`. `steps_back` are the clock steps of all captures.
    pub fn new(
        options: &AnalyzerOptions,
        sharding: Sharding,
        sink: &'s mut dyn Sink,
        steps_back: &[ClockStep],
        origins: &Origins,
    ) -> HostPairFollower<'s> {
        let (channels, steps_back) = (Arc::new(SessionRegistry::default()), Arc::from(steps_back));
        let shards = if sharding == Sharding::None { 1 } else { SHARDS };
        let work = PipelineConfig {
            by_connection: false,
            shards,
            options,
            channels: Some(&channels),
            steps_back: &steps_back,
            origins,
        };
        let worker = ShardWorker::new(0, 1, &work, sink);
        HostPairFollower { worker, sharding, channels, steps_back, connections_max: options.limits.connections }
    }

    pub fn segment(&mut self, segment: &TcpSegment<'_>) {
        self.worker.segment(shard_of(segment, self.sharding), segment);
    }

    /// Takes the findings since the last call, and ends copies of the open connections. Passes their unfinished exchanges,
    /// and those that may still change, to `unfinished`.
    pub fn progress(&mut self, unfinished: &mut dyn Sink) -> Progress {
        let mut progress = Progress { settled: Partial::new(self.connections_max), open: Partial::new(usize::MAX / 2) };
        let unfinished = Rc::new(RefCell::new(unfinished));
        for table in &mut self.worker.shards {
            let mut copies = table.sink().for_copies(Emit(Rc::clone(&unfinished)));
            table.look(&mut copies);
            progress.open.add(copies.finish());
            progress.settled.add(table.sink_mut().take_outcome());
        }
        progress
    }

    /// Ends the connections without a packet since this time, as if the capture ended.
    pub fn end_silent(&mut self, since: Timestamp) {
        self.worker.shards.iter_mut().for_each(|table| table.end_silent(since));
    }

    pub fn is_coupled(&self) -> bool {
        self.sharding != Sharding::None && self.channels.are_coupled()
    }

    pub fn finish(self) -> Result<Partial, RerunReason> {
        let mut partial = Partial::new(self.connections_max);
        partial.add_clock_steps(&self.steps_back);
        self.worker.finish().into_iter().for_each(|outcome| partial.add(outcome));
        partial.add_sessions(self.channels.met());
        // Sessions may be found until the last flow ends.
        let is_coupled = self.sharding != Sharding::None && self.channels.are_coupled();
        if is_coupled { Err(RerunReason::Coupled) } else { Ok(partial) }
    }
}

struct SegmentReader {
    decoder: Decoder,
    partial: Partial,
    channels: Arc<SessionRegistry>,
}

impl SegmentReader {
    fn read(
        &mut self,
        set: &mut CaptureSet,
        observe: &mut dyn FnMut(&CaptureSet),
        mut each: impl FnMut(Timestamp, &Quality),
        mut take: impl FnMut(&TcpSegment<'_>, Option<&Arc<Backing>>),
    ) -> Result<(), RerunReason> {
        let stop = set.stop_flag();
        let Partial { quality, first, last, .. } = &mut self.partial;
        let decoder = &mut self.decoder;
        let mut packet = |packet: &Packet<'_>, backing: Option<&Arc<Backing>>| {
            each(packet.stamp.time, quality);
            first.get_or_insert(packet.stamp.time);
            *last = (*last).max(Some(packet.stamp.time));
            if let Some(segment) = decoder.decode(packet, quality) {
                take(&segment, backing);
            }
            while let Some(more) = decoder.decode_more(packet, quality) {
                more.into_iter().for_each(|segment| take(&segment, backing));
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
                return Err(RerunReason::OutOfOrder);
            }
            until_observed = until_observed.saturating_sub(straight.max(1));
            if until_observed == 0 {
                until_observed = INTERVAL;
                observe(set);
                if self.channels.are_coupled() {
                    return Err(RerunReason::Coupled);
                }
            }
        }
        Ok(())
    }

    fn finish(mut self, set: &CaptureSet) -> Partial {
        self.decoder.finish(&mut self.partial.quality);
        self.partial.quality.merge(set.quality());
        self.partial.add_ports(self.decoder.ports());
        self.partial.add_skipped(self.decoder.skipped(usize::MAX).into_iter().map(|one| (one.protocol, one.packets)));
        self.partial
    }
}

struct WorkerBatchQueue {
    batches: SyncSender<(usize, SegmentBatch)>,
    empties: Receiver<SegmentBatch>,
}

impl WorkerBatchQueue {
    fn new() -> (WorkerBatchQueue, Receiver<(usize, SegmentBatch)>, SyncSender<SegmentBatch>) {
        let (batches, worker_batches) = sync_channel(BATCHES_AHEAD);
        let (worker_empties, empties) = sync_channel(BATCHES_AHEAD + SHARDS);
        (WorkerBatchQueue { batches, empties }, worker_batches, worker_empties)
    }

    fn send(&self, shard: usize, batch: &mut SegmentBatch) {
        let empty = self.empties.try_recv().unwrap_or_default();
        // A worker ends early only if it panicked; the panic is reported when its thread is joined.
        let _ = self.batches.send((shard, std::mem::replace(batch, empty)));
    }
}

struct Emit<'s>(Rc<RefCell<&'s mut dyn Sink>>);

impl ExchangeSink for Emit<'_> {
    fn exchange(&mut self, exchange: &Exchange) {
        self.0.borrow_mut().exchange(exchange);
    }

    fn settled(&mut self, settled: &Settled) {
        self.0.borrow_mut().settled(settled);
    }

    fn closed(&mut self, connection: &ConnectionSummary) {
        self.0.borrow_mut().closed(connection);
    }
}

struct PipelineConfig<'a> {
    by_connection: bool,
    shards: usize,
    options: &'a AnalyzerOptions,
    channels: Option<&'a Arc<SessionRegistry>>,
    steps_back: &'a Arc<[ClockStep]>,
    origins: &'a Origins,
}

struct ShardWorker<'s> {
    sink: Rc<RefCell<&'s mut dyn Sink>>,
    first: usize,
    stride: usize,
    shards: Vec<FlowTable<Analyzer<Emit<'s>>>>,
    at: Option<usize>,
    by_connection: bool,
    order: BatchOrder,
}

impl<'s> ShardWorker<'s> {
    fn new(index: usize, count: usize, work: &PipelineConfig<'_>, sink: &'s mut dyn Sink) -> ShardWorker<'s> {
        let PipelineConfig { by_connection, shards, channels, steps_back, origins, .. } = *work;
        let sink = Rc::new(RefCell::new(sink));
        let options = AnalyzerOptions { limits: work.options.limits.part(shards), ..work.options.clone() };
        let tables = (index..shards).step_by(count).map(|shard| {
            let mut analyzer = Analyzer::new(options.clone(), Emit(Rc::clone(&sink)));
            analyzer.set_steps_back(Arc::clone(steps_back));
            analyzer.set_origins(origins.clone());
            if let Some(channels) = channels {
                analyzer.watch_channels(shard, by_connection, Arc::clone(channels));
            }
            FlowTable::within(analyzer, options.limits.flows).beside(options.beside)
        });
        let shards = tables.collect();
        ShardWorker { sink, first: index, stride: count, shards, at: None, by_connection, order: BatchOrder::default() }
    }

    #[inline]
    fn turn_to(&mut self, shard: usize) {
        if self.at != Some(shard) {
            self.at = Some(shard);
            self.sink.borrow_mut().turn_to(shard);
        }
    }

    #[inline]
    fn segment(&mut self, shard: usize, segment: &TcpSegment<'_>) {
        self.turn_to(shard);
        self.shards[shard / self.stride].segment(segment);
    }

    fn take(&mut self, shard: usize, batch: &SegmentBatch) {
        match batch.begins() {
            Some(begins) if self.by_connection => {
                self.turn_to(shard);
                self.shards[shard / self.stride].stretch(begins, batch.by_connection(&mut self.order));
            }
            _ => batch.iter().for_each(|segment| self.segment(shard, &segment)),
        }
    }

    fn work(&mut self, batches: &Receiver<(usize, SegmentBatch)>, empties: &SyncSender<SegmentBatch>) {
        while let Ok((shard, mut batch)) = batches.recv() {
            self.take(shard, &batch);
            batch.clear();
            // The channel has room for all existing batches.
            let _ = empties.try_send(batch);
        }
    }

    fn finish(mut self) -> Vec<AnalyzerOutcome> {
        let shards = std::mem::take(&mut self.shards).into_iter().zip((self.first..).step_by(self.stride));
        shards
            .map(|(table, shard)| {
                self.turn_to(shard);
                table.finish().finish()
            })
            .collect()
    }
}
