//! Load points one after the other: the engine on a thread of its own, whoever watches on this one.

use crate::document::{self, CaptureFacts, Seen};
use crate::meter::CpuMeter;
use crate::progress::{self, GroupFigures, Point, Progress, Wish};
use crate::results::{Keeper, Metrics};
use crate::sniffer::{Capture, Sniffer, Taken};
use crate::wire::Wire;
use crate::{names, proof};
use anyhow::Context;
use smbscope_load::client::Options;
use smbscope_load::engine::result::Run;
use smbscope_load::engine::{self, Criterion, Exchanges, Hooks, Live, Phase, Plan, Search, Stop};
use smbscope_load::workload::Script;
use smbscope_report::bench;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How often the display is brought up to date.
const REFRESH: Duration = Duration::from_secs(1);

/// What is asked of the engine.
pub(crate) struct Ramp<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) options: &'a Options,
    pub(crate) scripts: &'a (dyn Fn(u32) -> Box<dyn Script> + Sync),
    /// What must hold at the capacity, and where to look for it.
    pub(crate) capacity: Option<(&'a Criterion, Search)>,
    /// How captures are taken, or why not; absent where none is asked for.
    pub(crate) capture: Option<Result<Sniffer, String>>,
    /// Where captures are put.
    pub(crate) folder: &'a Path,
    /// What is known of the server's side.
    pub(crate) metrics: &'a Metrics<'a>,
    /// Set when the load point is to end, and with it the ramp.
    pub(crate) stop: &'a AtomicBool,
}

/// What came out of all load points.
pub(crate) struct Measured {
    pub(crate) runs: Vec<bench::Run>,
    pub(crate) capacity: Option<bench::Capacity>,
    /// What could not be kept, and why.
    pub(crate) losses: Vec<String>,
}

impl Ramp<'_> {
    /// Runs all load points, and shows how they get on.
    pub(crate) fn run(self, watcher: &mut dyn Progress, keeper: &mut Keeper<'_>) -> anyhow::Result<Measured> {
        let (live, stop) = (Live::default(), Stop::new());
        let (sender, events) = channel();
        let points = match self.capacity {
            Some(_) => None,
            None => Some(self.plan.users.points().len().max(self.plan.rates.len()) as u32),
        };
        let times = [self.plan.warmup, self.plan.duration];
        let mut watch = Watch {
            sniffer: self.capture.as_ref(),
            folder: self.folder,
            port: self.options.address.port(),
            under_way: None,
            taken: None,
            runs: Vec::new(),
            losses: Vec::new(),
            keeper,
            events: sender,
        };
        let capacity = std::thread::scope(|scope| {
            let (plan, options, scripts, capacity) = (self.plan, self.options, self.scripts, self.capacity);
            let (shared, stopped, watch) = (&live, &stop, &mut watch);
            let engine =
                std::thread::Builder::new().name("engine".to_owned()).spawn_scoped(scope, move || match capacity {
                    None => engine::run(plan, options, scripts, watch, shared, stopped).map(|_| None),
                    Some((criterion, search)) => {
                        engine::find_capacity(plan, criterion, search, options, scripts, watch, shared, stopped)
                            .map(Some)
                    }
                });
            let engine = engine.context("no thread for the load generator")?;
            let mut place = Place {
                point: Point { of: points, ..Point::default() },
                since: None,
                times,
                meter: CpuMeter::default(),
                busy_poll: plan.busy_poll,
            };
            while !engine.is_finished() {
                place.show(&live, &events, watcher);
                self.metrics.look();
                let wish = watcher.wait(Instant::now() + REFRESH);
                if wish == Wish::Stop || self.stop.load(Ordering::Relaxed) {
                    stop.stop();
                }
            }
            place.show(&live, &events, watcher);
            let found =
                engine.join().map_err(|_| anyhow::anyhow!("the load generator broke down; please report this"))?;
            anyhow::Ok(found?)
        })?;
        let by_rate = !self.plan.rates.is_empty();
        watch.losses.extend(capacity.as_ref().and_then(|capacity| names::reservation(capacity, by_rate)));
        let capacity = capacity.as_ref().map(|capacity| names::capacity(capacity, by_rate));
        Ok(Measured { runs: watch.runs, capacity, losses: watch.losses })
    }
}

/// What whoever watches hears from the engine's thread.
enum Event {
    Begins(u32),
    Done(Box<bench::Run>),
}

/// Follows the engine from its own thread: takes captures, and turns what comes out into the document's runs.
struct Watch<'a, 'k> {
    sniffer: Option<&'a Result<Sniffer, String>>,
    folder: &'a Path,
    port: u16,
    under_way: Option<Result<Capture, String>>,
    taken: Option<Result<Taken, String>>,
    runs: Vec<bench::Run>,
    losses: Vec<String>,
    keeper: &'a mut Keeper<'k>,
    events: Sender<Event>,
}

impl Watch<'_, '_> {
    fn capture_name(&self, users: u32) -> String {
        format!("point-{:02}-{users}-users.pcap", self.runs.len() + 1)
    }

    fn begin(&mut self, sniffer: &Sniffer, users: u32) -> anyhow::Result<Capture> {
        let name = self.capture_name(users);
        let kept = self.keeper.capture(&name)?;
        sniffer.begin(&kept.unwrap_or_else(|| self.folder.join(name)))
    }

    fn tell(&self, event: Event) {
        let _nobody_looks = self.events.send(event);
    }

    /// The load point beside its capture.
    fn held_against(&mut self, run: &Run, exchanges: Option<&Exchanges>) -> bench::Run {
        let taken = match self.taken.take() {
            None => return document::of(run, Seen::NotAsked),
            Some(Err(why)) => return document::of(run, Seen::Skipped(why)),
            Some(Ok(taken)) => taken,
        };
        // Where some did not fit, those that did are still held against the wire one by one.
        let mut wire = Wire::new(run, exchanges.map(|exchanges| exchanges.list.as_slice()));
        match proof::read(&taken, self.port, &mut wire) {
            Ok(facts) => {
                let file = Some(self.capture_name(run.users));
                document::of(run, Seen::Made(&wire, CaptureFacts { file, ..facts }))
            }
            Err(error) => document::of(run, Seen::Skipped(crate::one_line(&error))),
        }
    }
}

impl Hooks for Watch<'_, '_> {
    fn point_begins(&mut self, users: u32) {
        self.tell(Event::Begins(users));
    }

    fn work_begins(&mut self, users: u32) {
        self.under_way = self.sniffer.map(|sniffer| match sniffer {
            Ok(sniffer) => self.begin(sniffer, users).map_err(|error| crate::one_line(&error)),
            Err(why) => Err(why.clone()),
        });
    }

    fn measuring_ends(&mut self) {
        let ended = |capture: Capture| capture.end().map_err(|error| crate::one_line(&error));
        self.taken = self.under_way.take().map(|capture| capture.and_then(ended));
    }

    fn point_ends(&mut self, run: &Run, exchanges: Option<Exchanges>) {
        if self.taken.is_none() {
            // It ended before anything was measured.
            self.measuring_ends();
        }
        let shown = self.held_against(run, exchanges.as_ref());
        self.tell(Event::Done(Box::new(shown.clone())));
        self.runs.push(shown);
        if let Err(error) = self.keeper.point(run, exchanges.as_ref(), &self.runs) {
            self.losses.push(crate::one_line(&error));
        }
    }
}

/// Where in the ramp it is.
struct Place {
    point: Point,
    since: Option<(Phase, Instant)>,
    /// Of warm-up and measured part.
    times: [Duration; 2],
    /// What this process costs.
    meter: CpuMeter,
    busy_poll: bool,
}

impl Place {
    /// Shows what happened since the last time.
    fn show(&mut self, live: &Live, events: &Receiver<Event>, watcher: &mut dyn Progress) {
        for event in events.try_iter() {
            match event {
                Event::Begins(users) => {
                    self.point.number += 1;
                    self.point.users = users;
                }
                Event::Done(run) => watcher.point_done(&run),
            }
        }
        let seen = live.look();
        let since = match self.since {
            Some((phase, since)) if phase == seen.phase => since,
            _ => Instant::now(),
        };
        self.since = Some((seen.phase, since));
        let length = match seen.phase {
            Phase::Warmup => Some(self.times[0]),
            Phase::Measuring => Some(self.times[1]),
            _ => None,
        };
        let snapshot = self.snapshot(seen, length.map(|length| (since.elapsed(), length)));
        watcher.update(snapshot);
    }

    fn snapshot(&mut self, seen: engine::Snapshot, length: Option<(Duration, Duration)>) -> progress::Snapshot {
        let groups = seen.groups.iter().map(|group| GroupFigures {
            group: group.group,
            commands: group.commands,
            p50: group.p50,
            p95: group.p95,
            p99: group.p99,
        });
        progress::Snapshot {
            phase: match seen.phase {
                Phase::Idle => progress::Phase::Idle,
                Phase::Connecting => progress::Phase::Connecting,
                Phase::Warmup => progress::Phase::WarmUp,
                Phase::Measuring => progress::Phase::Measuring,
                Phase::Ending => progress::Phase::Ending,
            },
            point: self.point,
            remaining: length.map(|(gone, whole)| (whole.saturating_sub(gone), whole)),
            connected: seen.sessions,
            over: seen.over,
            commands: seen.commands,
            errors: seen.errors,
            unexpected: seen.unexpected,
            statuses: seen.statuses.iter().map(|(status, count)| (status.to_string(), *count)).collect(),
            failures: seen.failures,
            bytes_read: seen.bytes_read,
            bytes_written: seen.bytes_written,
            p50: seen.p50,
            p95: seen.p95,
            groups: groups.collect(),
            // A thread that asks for answers without a pause is always busy.
            cpu: self.meter.look().filter(|_| !self.busy_poll),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_load::engine::LiveGroup;
    use smbscope_model::{Group, Nanos};
    use smbscope_wire::status::NtStatus;

    #[test]
    fn what_the_engine_tells_is_all_shown() {
        let read = LiveGroup {
            group: Group::Read,
            commands: 1_000,
            p50: Some(Nanos(1)),
            p95: Some(Nanos(2)),
            p99: Some(Nanos(3)),
        };
        let seen = engine::Snapshot {
            phase: Phase::Measuring,
            commands: 1_000,
            errors: 7,
            statuses: [(NtStatus::END_OF_FILE, 5), (NtStatus(0xc000_0abc), 2)].into(),
            groups: vec![read],
            ..engine::Snapshot::default()
        };
        let point = Point { number: 1, of: Some(1), users: 1 };
        let mut place =
            Place { point, since: None, times: [Duration::ZERO; 2], meter: CpuMeter::default(), busy_poll: false };
        let shown = place.snapshot(seen, None);
        assert_eq!(shown.errors, 7);
        // Names as in the report.
        assert_eq!(shown.statuses, [("0xc0000abc".to_owned(), 2), ("STATUS_END_OF_FILE".to_owned(), 5)].into());
        let times = shown.groups.iter().map(|group| (group.p50, group.p95, group.p99)).collect::<Vec<_>>();
        assert_eq!(times, [(Some(Nanos(1)), Some(Nanos(2)), Some(Nanos(3)))]);
    }
}
