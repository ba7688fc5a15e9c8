//! Runs load points in sequence on threads that live for the whole ramp, and merges their results.

use super::clocks::{Clock, LIMITED_ABOVE, ProcessTime, Time};
use super::control::{Common, LoadPointControl};
use super::exchanges::ExchangeLog;
use super::hooks::{EnginePhase, LOOK, Meter, Surroundings};
use super::hosts::{Fleet, HostLink, OnLostHost, begin};
use super::plan::{EngineError, RampPlan};
use super::recorder::{LoadPointFigures, LoadPointRecorder};
use super::result::{
    ClientCpuUsage, HostFailure, HostResult, LoadPointEnd, LoadPointResult, PacingResult, ResponseStall,
};
use super::schedule::{LoadSchedule, MeasurementWindow};
use super::session::SessionFactory;
use super::silences::Silences;
use super::worker::{
    Connecting, HostFacts, HostLost, LoadWorker, Scripts, Worked, WorkerOrder, WorkerReply, WorkerShare,
};
use smbscope_client::SessionOptions;
use smbscope_stats::{Summary, SummaryPrecision};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Lead time between the order to work and the start.
const NOTICE: Duration = Duration::from_millis(2);
const NOTICE_TO_HOSTS: Duration = Duration::from_millis(300);

/// Bits of a connection number below the number of the host's first worker, so that hosts never share one.
const FLOWS_OF_A_HOST: u32 = 32;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OfferedLoad {
    pub(crate) users: u32,
    pub(crate) rate: Option<f64>,
}

pub(crate) struct Engine<'a> {
    plan: RampPlan,
    names: Vec<String>,
    has_end: bool,
    lanes: Vec<WorkerLink>,
    replies: Receiver<WorkerReply>,
    on_lost: OnLostHost,
    lost: Vec<HostLost>,
    surroundings: Surroundings<'a>,
}

/// Users of this process: how they connect, what they do, and which clock they follow.
pub(crate) struct LocalUsers<'a, C> {
    pub(crate) connector: C,
    pub(crate) scripts: Scripts<'a>,
    pub(crate) time: Time,
}

struct WorkerLink {
    orders: Sender<WorkerOrder>,
    /// `None` for a worker of this process.
    host: Option<KnownHost>,
}

struct KnownHost {
    name: String,
    workers: u32,
    is_lost: bool,
    share: WorkerShare,
}

/// A load point whose measured part is over.
struct MeasuredLoadPoint<'a> {
    users: u32,
    schedule: LoadSchedule,
    window: MeasurementWindow,
    clock: Clock,
    control: &'a LoadPointControl,
}

/// Records of all workers, and the results of the hosts with their lanes.
struct MergedParts {
    recorder: LoadPointRecorder,
    late: Summary,
    silences: Option<Silences>,
    hosts: Vec<(usize, HostResult)>,
}

impl WorkerLink {
    fn is_lost(&self) -> bool {
        self.host.as_ref().is_some_and(|host| host.is_lost)
    }
}

pub(crate) fn with_engine<C: SessionFactory + Send + 'static, R>(
    plan: &RampPlan,
    most: u32,
    users: LocalUsers<'_, C>,
    surroundings: Surroundings<'_>,
    ramp: impl FnOnce(&mut Engine<'_>) -> R,
) -> Result<R, EngineError> {
    plan.check()?;
    let share = WorkerShare::whole(plan.workers_for(plan.sessions.of_users(most)));
    with_workers(plan, &share, users, surroundings, ramp)
}

pub(crate) fn with_workers<C: SessionFactory + Send + 'static, R>(
    plan: &RampPlan,
    share: &WorkerShare,
    users: LocalUsers<'_, C>,
    surroundings: Surroundings<'_>,
    ramp: impl FnOnce(&mut Engine<'_>) -> R,
) -> Result<R, EngineError> {
    let LocalUsers { connector, scripts, time } = users;
    let first_flow = share.workers.first().map_or(0, |first| u64::from(*first) << FLOWS_OF_A_HOST);
    let common = Arc::new(Common {
        plan: plan.clone(),
        connector,
        turns: Semaphore::new(plan.connects.at_once.min(Semaphore::MAX_PERMITS)),
        flows: AtomicU64::new(first_flow),
    });
    let runtimes = share.workers.iter().map(|_| time.runtime()).collect::<io::Result<Vec<_>>>()?;
    let (reply, replies) = channel();
    let live = surroundings.live;
    std::thread::scope(|scope| {
        let mut engine = Engine::new(plan, scripts, replies, surroundings);
        for (index, runtime) in share.workers.iter().copied().zip(runtimes) {
            let (orders, received) = channel();
            let (reply, common, operations) = (reply.clone(), common.clone(), engine.names.len());
            let worker = move || {
                let worker =
                    LoadWorker { index, workers: share.of, common, scripts, live, operations, users: Vec::new() };
                worker.run(time, &runtime, &received, &reply);
            };
            std::thread::Builder::new().name(format!("users-{index}")).spawn_scoped(scope, worker)?;
            engine.lanes.push(WorkerLink { orders, host: None });
        }
        drop(reply);
        Ok(engine.run(ramp))
    })
}

pub(crate) fn with_hosts<R>(
    plan: &RampPlan,
    fleet: Fleet,
    options: &SessionOptions,
    scripts: Scripts<'_>,
    surroundings: Surroundings<'_>,
    ramp: impl FnOnce(&mut Engine<'_>) -> R,
) -> Result<R, EngineError> {
    plan.check()?;
    let Fleet { hosts, on_lost, work } = fleet;
    let links = begin(hosts, work, plan, options)?;
    let (reply, replies) = channel();
    let live = surroundings.live;
    std::thread::scope(|scope| {
        let mut engine = Engine { on_lost, ..Engine::new(plan, scripts, replies, surroundings) };
        for (lane, link) in links.into_iter().enumerate() {
            let (orders, received) = channel();
            let reply = reply.clone();
            let (name, workers) = (link.name().to_owned(), link.workers);
            let run = move || HostLink::run(link, lane, &received, &reply, live);
            std::thread::Builder::new().name(format!("host-{lane}")).spawn_scoped(scope, run)?;
            let share = WorkerShare { workers: Vec::new(), of: 0 };
            engine.lanes.push(WorkerLink { orders, host: Some(KnownHost { name, workers, is_lost: false, share }) });
        }
        drop(reply);
        Ok(engine.run(ramp))
    })
}

impl<'a> Engine<'a> {
    fn new(
        plan: &RampPlan,
        scripts: Scripts<'_>,
        replies: Receiver<WorkerReply>,
        surroundings: Surroundings<'a>,
    ) -> Engine<'a> {
        let first = scripts(0);
        let (names, has_end) = (first.operations().to_vec(), first.passes().is_some());
        let (lanes, lost, on_lost) = (Vec::new(), Vec::new(), OnLostHost::default());
        Engine { plan: plan.clone(), names, has_end, lanes, replies, on_lost, lost, surroundings }
    }

    fn run<R>(mut self, ramp: impl FnOnce(&mut Engine<'_>) -> R) -> R {
        let result = ramp(&mut self);
        self.surroundings.live.enter(EnginePhase::Idle, 0);
        result
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.surroundings.stop.is_stopped()
    }

    /// Converts a load point's number to a load: users or, if the plan has rates, operations per second.
    pub(crate) fn load(&self, number: u32) -> OfferedLoad {
        match self.plan.rates.is_empty() {
            true => OfferedLoad { users: number, rate: None },
            false => OfferedLoad { users: self.plan.users.most(), rate: Some(number.into()) },
        }
    }

    pub(crate) fn point(&mut self, load: OfferedLoad) -> LoadPointResult {
        let users = load.users;
        let schedule = self.plan.schedule.at(users, load.rate);
        let sessions = self.plan.sessions.of_users(users);
        let control = Arc::new(LoadPointControl::new(self.surroundings.stop.clone(), self.plan.limits));
        let clock = Clock::at(Instant::now());
        self.surroundings.hooks.point_begins(users);
        self.surroundings.live.enter(EnginePhase::Connecting, users);
        self.lost.clear();
        self.deal();
        let share = WorkerShare::whole(self.lanes.len());
        let connecting = Connecting { sessions, share, operations: None, control: control.clone(), clock };
        let ready = self.connect(&connecting);

        self.surroundings.hooks.work_begins(users);
        self.surroundings.live.enter(EnginePhase::Warmup, users);
        let notice = if self.is_of_hosts() { NOTICE_TO_HOSTS } else { NOTICE };
        let begin = ready.max(Instant::now()) + notice;
        let start = begin + self.plan.warmup;
        let window = MeasurementWindow { start, end: start + self.plan.duration, interval: self.plan.interval };
        let (parts, used) = self.work((begin, window, schedule), &control);
        let measured = MeasuredLoadPoint { users, schedule, window, clock, control: &control };
        let (run, exchanges) = self.finish(&measured, parts, used);
        self.surroundings.live.enter(EnginePhase::Idle, users);
        self.surroundings.hooks.point_ends(&run, exchanges);
        run
    }

    fn is_of_hosts(&self) -> bool {
        self.lanes.iter().any(|lane| lane.host.is_some())
    }

    pub(crate) fn is_without_hosts(&self) -> bool {
        self.is_of_hosts() && self.lanes.iter().all(WorkerLink::is_lost)
    }

    fn deal(&mut self) {
        let mut hosts: Vec<&mut KnownHost> = self.lanes.iter_mut().filter_map(|lane| lane.host.as_mut()).collect();
        let workers: Vec<u32> = hosts.iter().map(|host| if host.is_lost { 0 } else { host.workers }).collect();
        for (host, share) in hosts.iter_mut().zip(WorkerShare::deal(&workers)) {
            host.share = share;
        }
    }

    pub(crate) fn connect(&mut self, connecting: &Connecting) -> Instant {
        let shares: Vec<WorkerShare> =
            self.lanes.iter().filter_map(|lane| Some(lane.host.as_ref()?.share.clone())).collect();
        let operations = self.plan.limits.operations;
        let asked = self.order(|lane| {
            let Some(host) = &lane.host else { return WorkerOrder::Connect(connecting.clone()) };
            let part = |whole| host.share.part_of(whole, &shares, connecting.sessions);
            let (share, operations) = (host.share.clone(), operations.map(part));
            WorkerOrder::Connect(Connecting { share, operations, ..connecting.clone() })
        });
        let mut ready = Instant::now();
        for reply in self.collect(asked, &connecting.control, None) {
            if let WorkerReply::Connected(time) = reply {
                ready = ready.max(time);
            }
        }
        ready
    }

    pub(crate) fn work(
        &mut self,
        (begin, window, schedule): (Instant, MeasurementWindow, LoadSchedule),
        control: &LoadPointControl,
    ) -> (Vec<Worked>, ProcessTime) {
        let asked = self.order(|_| WorkerOrder::Work { begin, window, schedule });
        let users = self.surroundings.live.users();
        let mut meter = Meter::new(users, window);
        let mut parts: Vec<Worked> = Vec::new();
        for reply in self.collect(asked, control, Some(&mut meter)) {
            if let WorkerReply::Worked(worked) = reply {
                parts.push(*worked);
            }
        }
        (parts, meter.finish(&mut self.surroundings))
    }

    fn order(&self, order: impl Fn(&WorkerLink) -> WorkerOrder) -> usize {
        let there = self.lanes.iter().filter(|lane| !lane.is_lost());
        there
            .map(|lane| {
                lane.orders.send(order(lane)).expect("a worker listens until its orders end, or panics with all of us")
            })
            .count()
    }

    /// Collects `asked` replies. Meanwhile drives the meter and watches the stop flag.
    fn collect(&mut self, asked: usize, control: &LoadPointControl, mut meter: Option<&mut Meter>) -> Vec<WorkerReply> {
        let mut replies = Vec::new();
        let mut answered = 0;
        let of_hosts = self.is_of_hosts();
        while answered < asked {
            let wait = meter.as_ref().map_or(LOOK, |meter| meter.wait());
            let received = self.replies.recv_timeout(wait);
            answered += usize::from(received.is_ok());
            match received {
                Ok(WorkerReply::Lost(lost)) => self.lose(lost, control),
                Ok(reply) => replies.push(reply),
                Err(RecvTimeoutError::Timeout) => {}
                // All workers are gone: one of them panicked, and the thread scope propagates the panic.
                Err(RecvTimeoutError::Disconnected) => panic!("the workers of the load generator ended early"),
            }
            control.pass_on_stop();
            if of_hosts {
                // Users of this process check the flag themselves, by their own (possibly simulated) clock.
                control.look_at_stop(Instant::now());
            }
            if let Some(meter) = &mut meter {
                meter.look(&mut self.surroundings, control.is_over());
            }
        }
        replies
    }

    fn lose(&mut self, lost: HostLost, control: &LoadPointControl) {
        let Some(host) = &mut self.lanes[lost.lane].host else { return };
        host.is_lost = true;
        let what = format!("the load host {} was lost: {}", host.name, lost.why);
        if self.lanes.iter().all(WorkerLink::is_lost) {
            control.finish(LoadPointEnd::Failed(format!("{what}; there is no other")), lost.at);
        } else if self.on_lost == OnLostHost::Stop {
            control.finish(LoadPointEnd::Stopped(what), lost.at);
        }
        self.lost.push(lost);
    }

    fn finish(
        &self,
        point: &MeasuredLoadPoint<'_>,
        parts: Vec<Worked>,
        used: ProcessTime,
    ) -> (LoadPointResult, Option<ExchangeLog>) {
        // If all hosts are lost there are no parts, and the load point ends now.
        let last = parts.iter().map(|part| part.ended).max().unwrap_or_else(|| Instant::now().min(point.window.end));
        let start = point.window.start;
        let duration = last.saturating_duration_since(start);
        let busiest = parts.iter().map(|part| part.on_cpu).max().unwrap_or_default();
        let of_hosts = parts.iter().filter_map(|part| part.host.as_ref()).map(|host| host.used);
        let used = of_hosts.reduce(ProcessTime::add).unwrap_or(used);
        let ended = point.end(&parts);
        let MergedParts { mut recorder, late, silences, hosts } = self.merge(point, parts, last);
        let exchanges = recorder.take_exchanges().map(ExchangeLog::finish);
        let figures = recorder.finish(&self.names, duration, &self.plan.sessions);
        let run = LoadPointResult {
            users: point.users,
            started: point.clock.timestamp(start),
            duration,
            warmup: start.min(last).saturating_duration_since(start - self.plan.warmup),
            stalls: stalls(silences, &figures, &point.clock),
            counted: figures.counted,
            due: figures.due,
            operations: figures.operations,
            bytes_read: figures.bytes_read,
            bytes_written: figures.bytes_written,
            intervals: figures.intervals,
            connects: figures.connects,
            connect_commands: figures.connect_commands,
            failures: figures.failures,
            unanswered: figures.unanswered,
            client_cpu: self.client_cpu(used, busiest, duration, &late),
            ended,
            pace: match point.schedule {
                LoadSchedule::Closed { .. } => PacingResult::Closed,
                LoadSchedule::Open { rate, .. } => PacingResult::Open { rate, not_begun: figures.not_begun },
            },
            jobs: self.has_end.then_some(figures.jobs),
            overload: figures.overload,
            queue: Some(figures.queue).filter(|queue| queue.asked > 1),
            hosts: hosts.into_iter().map(|(_, host)| host).collect(),
        };
        (run, exchanges)
    }

    /// Merges the workers' parts, and accounts for the lost hosts. Sorts the hosts by lane.
    fn merge(&self, point: &MeasuredLoadPoint<'_>, parts: Vec<Worked>, last: Instant) -> MergedParts {
        let duration = last.saturating_duration_since(point.window.start);
        let mut merged = MergedParts {
            recorder: self.recorder(point),
            late: Summary::new(SummaryPrecision::ROW),
            silences: None,
            hosts: Vec::new(),
        };
        for mut part in parts {
            merged.hosts.extend(self.host_run(&mut part, point.users, duration));
            merged.add(part, last);
        }
        for lost in &self.lost {
            let run = self.lost_run(lost, point.users, &point.clock);
            merged.recorder.lost(&format!("the load host {} was lost: {}", run.name, lost.why), run.sessions.into());
            merged.hosts.push((lost.lane, run));
        }
        merged.hosts.sort_by_key(|(lane, _)| *lane);
        merged
    }

    fn recorder(&self, point: &MeasuredLoadPoint<'_>) -> LoadPointRecorder {
        let open = self.plan.schedule.is_open();
        let exchanges = self.plan.exchanges.then(|| ExchangeLog::new(0));
        let recorder = LoadPointRecorder::new(point.window, point.clock, self.names.len(), open, exchanges);
        recorder.sliced(&self.plan.by).limited(self.plan.overload)
    }

    fn client_cpu(&self, used: ProcessTime, busiest: Duration, duration: Duration, late: &Summary) -> ClientCpuUsage {
        let busiest = if duration.is_zero() { 0.0 } else { busiest.as_secs_f64() / duration.as_secs_f64() };
        ClientCpuUsage {
            user: used.user,
            system: used.system,
            busy_poll: self.plan.busy_poll,
            busiest,
            limited: busiest > LIMITED_ABOVE,
            late_p99: late.figures().p99,
            late_max: late.figures().max,
        }
    }

    fn host_run(&self, part: &mut Worked, users: u32, duration: Duration) -> Option<(usize, HostResult)> {
        let HostFacts { lane, used, clock, late_by } = *part.host.as_ref()?;
        let (name, sessions) = self.host(lane, users)?;
        let sum = part.recorder.sum();
        let run = HostResult {
            name,
            sessions,
            commands: sum.commands,
            errors: sum.errors,
            bytes_read: sum.bytes_read,
            bytes_written: sum.bytes_written,
            times: sum.times,
            cpu: self.client_cpu(used, part.on_cpu, duration, &part.late),
            clock,
            late_by,
            lost: None,
        };
        Some((lane, run))
    }

    fn lost_run(&self, lost: &HostLost, users: u32, clock: &Clock) -> HostResult {
        let (name, sessions) = self.host(lost.lane, users).unwrap_or_default();
        HostResult {
            name,
            sessions,
            commands: 0,
            errors: 0,
            bytes_read: 0,
            bytes_written: 0,
            times: Summary::new(SummaryPrecision::ROW),
            cpu: ClientCpuUsage::default(),
            clock: lost.clock,
            late_by: Duration::ZERO,
            lost: Some(HostFailure { at: clock.timestamp(lost.at), why: lost.why.clone(), commands: lost.commands }),
        }
    }

    fn host(&self, lane: usize, users: u32) -> Option<(String, u32)> {
        let host = self.lanes[lane].host.as_ref()?;
        Some((host.name.clone(), host.share.sessions(self.plan.sessions.of_users(users))))
    }
}

impl MeasuredLoadPoint<'_> {
    /// Returns why the load point ended.
    fn end(&self, parts: &[Worked]) -> LoadPointEnd {
        let alive: usize = parts.iter().map(|part| part.alive).sum();
        let trouble = parts.iter().find_map(|part| part.trouble.clone());
        match (self.control.why(), trouble) {
            (Some((why, _)), _) => why,
            (None, Some(trouble)) if alive == 0 => LoadPointEnd::Failed(trouble),
            (None, _) => LoadPointEnd::Done,
        }
    }
}

impl MergedParts {
    fn add(&mut self, mut part: Worked, last: Instant) {
        let gaps = part.recorder.take_silences(last);
        match &mut self.silences {
            Some(all) => all.merge(&gaps),
            None => self.silences = Some(gaps),
        }
        self.late.merge(&part.late);
        self.recorder.merge(part.recorder);
    }
}

fn stalls(silences: Option<Silences>, figures: &LoadPointFigures, clock: &Clock) -> Vec<ResponseStall> {
    let total = figures.counted.response_times(|(_, _, group)| group.in_headline());
    let median = total.figures().p50.map(|p50| Duration::from_nanos(p50.0.max(0) as u64));
    let stalls = silences.map_or_else(Vec::new, |silences| silences.stalls(median));
    stalls.iter().map(|s| ResponseStall { start: clock.timestamp(s.from), length: s.length }).collect()
}
