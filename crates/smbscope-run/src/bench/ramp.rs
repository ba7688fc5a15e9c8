//! Runs the load points: the engine on its own thread, the observer on the caller's. Each load point is captured if
//! wanted, and its capture compared with the client's measurements.

use crate::bench::progress::{BenchObserver, CpuMeter, RampPosition, RampSnapshot, Wish};
use crate::bench::setup::Setup;
use crate::bench::{RampResults, RunResultWriter};
use crate::capture::{self, CaptureFacts, FinishedCaptures, RunningCaptures, Sniffers};
use crate::document::wire::Wire;
use crate::document::{self, LoadPointCapture};
use crate::exposition::MetricsRegistry;
use crate::metrics::Metrics;
use crate::{BenchError, keys, one_line};
use smbscope_client::KeyLog;
use smbscope_crypto::key_ring::KeyRing;
use smbscope_load::engine::result::LoadPointResult;
use smbscope_load::engine::{self, EnginePhase, EngineRun, ExchangeLog, Fleet, Hooks, LiveFigures, StopFlag};
use smbscope_report::bench::{self, ServerCapture};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

const REFRESH: Duration = Duration::from_secs(1);

/// Runs all load points and reports progress. When `stop` is set, the current load point is the last one.
pub(crate) fn run(
    setup: &Setup,
    fleet: Option<Fleet>,
    (captures, exposed): (Captures, Option<&MetricsRegistry>),
    keeper: &mut RunResultWriter<'_>,
    progress: &mut dyn BenchObserver,
    stop: &AtomicBool,
) -> Result<RampResults, BenchError> {
    let metrics = keeper.metrics;
    let live = exposed
        .cloned()
        .map_or_else(LiveFigures::default, |registry| LiveFigures::observed(move || Box::new(registry.recorder())));
    let ends = StopFlag::new();
    let (sender, events) = channel();
    let mut follower =
        RampFollower { captures, exposed, keeper, metrics, measured: RampResults::default(), events: sender };
    let capacity = thread::scope(|scope| {
        let (follower, shared, ends) = (&mut follower, &live, &ends);
        let engine = thread::Builder::new()
            .name("engine".to_owned())
            .spawn_scoped(scope, move || load(setup, fleet, follower, shared, ends))
            .map_err(BenchError::system("thread for the load generator"))?;
        let mut watch = RampMonitor::new(setup, &live, exposed, events);
        while !engine.is_finished() {
            watch.tell(progress);
            let wish = progress.wait(Instant::now() + REFRESH);
            if wish == Wish::Stop || stop.load(Ordering::Relaxed) {
                ends.stop();
            }
        }
        watch.tell(progress);
        engine.join().map_err(|_| BenchError::Broken)?
    })?;
    let mut measured = follower.measured;
    measured.losses.extend(metrics.trouble().map(|why| format!("The server's metrics are incomplete: {why}.")));
    measured.losses.extend(metrics.missing().map(|what| format!("Samba does not tell {what}.")));
    if let Some(capacity) = capacity {
        let by_rate = !setup.options.plan.rates.is_empty();
        measured.losses.extend(document::reservation(&capacity, by_rate));
        measured.capacity = Some(document::capacity(&capacity, by_rate));
    }
    Ok(measured)
}

fn load(
    setup: &Setup,
    fleet: Option<Fleet>,
    hooks: &mut dyn Hooks,
    live: &LiveFigures,
    stop: &StopFlag,
) -> Result<Option<engine::CapacityResult>, BenchError> {
    let (plan, options) = (&setup.options.plan, &setup.site.options);
    let run = EngineRun { plan, fleet, options, scripts: &|number| setup.script(number), hooks, live, stop };
    match &setup.options.capacity {
        None => run.ramp().map(|_| None),
        Some((criterion, search)) => run.find_capacity(criterion, *search).map(Some),
    }
    .map_err(Into::into)
}

enum LoadPointEvent {
    Begins(u32),
    Done(Box<bench::BenchRun>),
}

/// Handles the engine's events on its thread: takes captures, converts results into the document's runs and stores
/// them.
struct RampFollower<'a, 'k> {
    captures: Captures,
    exposed: Option<&'a MetricsRegistry>,
    keeper: &'a mut RunResultWriter<'k>,
    metrics: &'a Metrics,
    measured: RampResults,
    events: Sender<LoadPointEvent>,
}

impl RampFollower<'_, '_> {
    fn tell(&self, event: LoadPointEvent) {
        let _ = self.events.send(event);
    }

    /// Returns the start of the names of a load point's captures.
    fn capture_base(&self, users: u32) -> String {
        format!("point-{:02}-{users}-users", self.measured.runs.len() + 1)
    }
}

impl Hooks for RampFollower<'_, '_> {
    fn point_begins(&mut self, users: u32) {
        self.tell(LoadPointEvent::Begins(users));
    }

    fn work_begins(&mut self, users: u32) {
        let base = self.capture_base(users);
        self.captures.begin(&base, |name| self.keeper.capture(name));
    }

    fn measuring_ends(&mut self) {
        self.captures.end();
    }

    fn point_ends(&mut self, run: &LoadPointResult, exchanges: Option<ExchangeLog>) {
        let base = self.capture_base(run.users);
        if let Some(Err(error)) = self.captures.kept_keys().map(|keys| self.keeper.keys(&base, &keys)) {
            self.measured.losses.push(crate::one_line(&error));
        }
        let mut shown = self.captures.finish_point(run, exchanges.as_ref(), &base);
        if let (Some(exposed), Some(answer)) = (self.exposed, &shown.answer) {
            exposed.add_answer(answer);
        }
        shown.server = self.metrics.within(run.started, run.duration);
        self.tell(LoadPointEvent::Done(Box::new(shown.clone())));
        self.measured.runs.push(shown);
        if let Err(error) = self.keeper.point(run, exchanges.as_ref(), &self.measured) {
            self.measured.losses.push(crate::one_line(&error));
        }
    }
}

struct RampMonitor<'a> {
    setup: &'a Setup,
    live: &'a LiveFigures,
    exposed: Option<&'a MetricsRegistry>,
    events: Receiver<LoadPointEvent>,
    point: RampPosition,
    since: Option<(EnginePhase, Instant)>,
    meter: CpuMeter,
}

impl<'a> RampMonitor<'a> {
    fn new(
        setup: &'a Setup,
        live: &'a LiveFigures,
        exposed: Option<&'a MetricsRegistry>,
        events: Receiver<LoadPointEvent>,
    ) -> RampMonitor<'a> {
        let plan = &setup.options.plan;
        let points = plan.users.points().len().max(plan.rates.len()) as u32;
        let of = setup.options.capacity.is_none().then_some(points);
        RampMonitor {
            setup,
            live,
            exposed,
            events,
            point: RampPosition { of, ..RampPosition::default() },
            since: None,
            meter: CpuMeter::default(),
        }
    }

    fn tell(&mut self, progress: &mut dyn BenchObserver) {
        for event in self.events.try_iter() {
            match event {
                LoadPointEvent::Begins(users) => {
                    self.point.number += 1;
                    self.point.users = users;
                }
                LoadPointEvent::Done(run) => progress.point_done(&run),
            }
        }
        let live = self.live.look();
        let since = match self.since {
            Some((phase, since)) if phase == live.phase => since,
            _ => Instant::now(),
        };
        self.since = Some((live.phase, since));
        let plan = &self.setup.options.plan;
        if let Some(exposed) = self.exposed {
            let connections = u64::from(live.sessions) * u64::from(plan.connections_per_session);
            exposed.update(|figures| figures.connections = Some(connections));
        }
        let length = match live.phase {
            EnginePhase::Warmup => Some(plan.warmup),
            EnginePhase::Measuring => Some(plan.duration),
            _ => None,
        };
        let remaining = length.map(|length| (length.saturating_sub(since.elapsed()), length));
        // A busy-polling thread always shows 100%.
        let cpu = self.meter.look().filter(|_| !plan.busy_poll);
        progress.update(RampSnapshot { point: self.point, remaining, live, cpu });
    }
}

/// Keys of the sessions in the captures.
#[derive(Debug, Clone, Default)]
pub(crate) struct CapturedKeys {
    pub(crate) log: Option<KeyLog>,
    /// Stores them next to the captures.
    pub(crate) keep: bool,
}

impl CapturedKeys {
    /// Returns the lines of Wireshark's `smb2_seskey_list`. `None` if no session has keys.
    fn lines(&self) -> Option<Zeroizing<String>> {
        self.log.as_ref().map(KeyLog::text).filter(|lines| !lines.is_empty())
    }

    fn ring(&self) -> Option<Arc<KeyRing>> {
        keys::ring_of_lines(&self.lines()?)
    }
}

/// Captures each load point. A failure is reported with the load point and doesn't end the run.
pub(crate) struct Captures {
    sniffers: Option<Result<Sniffers, String>>,
    server: SocketAddr,
    keys: CapturedKeys,
    under_way: Option<Result<RunningCaptures, String>>,
    taken: Option<Result<FinishedCaptures, String>>,
}

impl Captures {
    /// Captures the traffic with `server`. No sniffers: captures were not asked for.
    pub(crate) fn new(server: SocketAddr, sniffers: Option<Result<Sniffers, String>>, keys: CapturedKeys) -> Captures {
        Captures { sniffers, server, keys, under_way: None, taken: None }
    }

    /// Returns the session keys to store next to the captures.
    fn kept_keys(&self) -> Option<Zeroizing<String>> {
        self.keys.lines().filter(|_| self.keys.keep && self.sniffers.as_ref().is_some_and(Result::is_ok))
    }

    pub(crate) fn why_not(&self) -> Option<&str> {
        self.sniffers.as_ref()?.as_ref().err().map(String::as_str)
    }

    pub(crate) fn begin(&mut self, base: &str, mut file: impl FnMut(&str) -> Result<PathBuf, BenchError>) {
        self.under_way = self.sniffers.as_ref().map(|sniffers| {
            let sniffers = sniffers.as_ref().map_err(String::clone)?;
            let names = [capture::client_file(base, sniffers.is_pair()), capture::server_file(base)];
            sniffers.begin(names.each_ref().map(String::as_str), |name| file(name).map_err(|error| one_line(&error)))
        });
    }

    pub(crate) fn end(&mut self) {
        self.taken = self.under_way.take().map(|captures| captures.and_then(RunningCaptures::end));
    }

    pub(crate) fn finish_point(
        &mut self,
        run: &LoadPointResult,
        exchanges: Option<&ExchangeLog>,
        base: &str,
    ) -> bench::BenchRun {
        if self.taken.is_none() {
            self.end();
        }
        let taken = match self.taken.take() {
            None => return document::load_point(run, LoadPointCapture::NotAsked),
            Some(Err(why)) => return document::load_point(run, LoadPointCapture::Skipped(why)),
            Some(Ok(taken)) => taken,
        };
        // An incomplete list of commands is still matched one by one.
        let ring = self.keys.ring();
        let mut wire = Wire::of_capture(run, exchanges.map(|exchanges| exchanges.list.as_slice()), ring.is_some());
        let server = taken.server.as_ref().map(|taken| ServerCapture {
            file: capture::server_file(base),
            dropped_packets: taken.dropped.unwrap_or_default(),
        });
        match capture::read(&taken.client, self.server.port(), ring, &mut |exchange| wire.record(exchange)) {
            Ok(facts) => {
                let file = Some(capture::client_file(base, server.is_some()));
                document::load_point(run, LoadPointCapture::Made(&wire, CaptureFacts { file, server, ..facts }))
            }
            Err(why) => document::load_point(run, LoadPointCapture::Skipped(why)),
        }
    }
}
