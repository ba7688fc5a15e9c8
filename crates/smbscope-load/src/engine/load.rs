//! Load points one after the other, with threads that live from the first to the last.

use super::control::{Control, Stop};
use super::cpu::{LIMITED_ABOVE, ProcessTime};
use super::exchanges::{Clock, Exchanges};
use super::live_figures::{LiveFigures, Phase};
use super::load_point::Common;
use super::plan::{EngineError, Plan};
use super::recorder::{Recorder, Window};
use super::result::{ClientCpu, Ended, Pace, Run, Stall};
use super::schedule::Schedule;
use super::session::Connector;
use super::silences::Silences;
use super::timers::Time;
use super::worker::{Order, Reply, Scripts, Worked, Worker};
use smbscope_stats::{Limit, Summary};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How often [`Stop`] is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Workers get the order to work this long before it begins.
const NOTICE: Duration = Duration::from_millis(2);

/// Is told where a ramp is: to take packet captures and metrics of the server, or to show it. All calls come from the
/// thread that runs the engine, which waits for them.
pub trait Hooks {
    /// Before the sessions of a load point are made: a capture that begins here knows all of them.
    fn point_begins(&mut self, users: u32) {
        let _ = users;
    }

    /// Sessions are made, users are about to work. The warm-up comes first.
    fn work_begins(&mut self, users: u32) {
        let _ = users;
    }

    /// The measured part begins now. What takes long here makes the call of `measuring_ends` late.
    fn measuring_begins(&mut self) {}

    /// The measured part has ended, and all operations that began in it too.
    fn measuring_ends(&mut self) {}

    /// A load point is over, and this is what came out; with every command where the plan says so.
    fn point_ends(&mut self, run: &Run, exchanges: Option<Exchanges>) {
        let _ = (run, exchanges);
    }
}

/// Nobody wants to know.
impl Hooks for () {}

/// What belongs to the caller.
pub(crate) struct Surroundings<'a> {
    pub(crate) hooks: &'a mut dyn Hooks,
    pub(crate) live: &'a LiveFigures,
    pub(crate) stop: &'a Stop,
}

/// What a load point puts on the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Load {
    pub(crate) users: u32,
    /// Operations a second, where they are not the plan's.
    pub(crate) rate: Option<f64>,
}

/// Threads with their users, between load points.
pub(crate) struct Engine<'a> {
    plan: Plan,
    names: Vec<String>,
    /// Scripts have an end.
    has_end: bool,
    orders: Vec<Sender<Order>>,
    replies: Receiver<Reply>,
    surroundings: Surroundings<'a>,
}

/// Starts threads for up to `most` users, lets `ramp` run load points, and ends the threads.
pub(crate) fn with_engine<C: Connector + Send + 'static, R>(
    plan: &Plan,
    most: u32,
    connector: C,
    scripts: Scripts<'_>,
    time: Time,
    surroundings: Surroundings<'_>,
    ramp: impl FnOnce(&mut Engine<'_>) -> R,
) -> Result<R, EngineError> {
    plan.check()?;
    let workers = plan.workers_for(most.saturating_mul(plan.sessions_per_user));
    let first = scripts(0);
    let (names, has_end) = (first.operations().to_vec(), first.passes().is_some());
    drop(first);
    let common = Arc::new(Common {
        plan: plan.clone(),
        connector,
        turns: Semaphore::new(plan.connects.at_once.min(Semaphore::MAX_PERMITS)),
        flows: AtomicU64::new(0),
    });
    let runtimes = (0..workers).map(|_| time.runtime()).collect::<io::Result<Vec<_>>>()?;
    let (reply, replies) = channel();
    let live = surroundings.live;
    std::thread::scope(|scope| {
        let mut engine = Engine { plan: plan.clone(), names, has_end, orders: Vec::new(), replies, surroundings };
        for (index, runtime) in runtimes.into_iter().enumerate() {
            let (order, orders) = channel();
            let (reply, common, operations) = (reply.clone(), common.clone(), engine.names.len());
            let worker = move || {
                let (index, workers) = (index as u32, workers as u32);
                let worker = Worker { index, workers, common, scripts, live, operations, users: Vec::new() };
                worker.run(time, &runtime, &orders, &reply);
            };
            std::thread::Builder::new().name(format!("users-{index}")).spawn_scoped(scope, worker)?;
            engine.orders.push(order);
        }
        drop(reply);
        let result = ramp(&mut engine);
        engine.surroundings.live.enter(Phase::Idle, 0);
        Ok(result)
    })
}

impl Engine<'_> {
    /// Whether the caller wants no further load point.
    pub(crate) fn is_stopped(&self) -> bool {
        self.surroundings.stop.is_stopped()
    }

    /// What load the number of a load point is: of users, or of operations a second where the plan says so.
    pub(crate) fn load(&self, number: u32) -> Load {
        match self.plan.rates.is_empty() {
            true => Load { users: number, rate: None },
            false => Load { users: self.plan.users.most(), rate: Some(number.into()) },
        }
    }

    /// Runs one load point.
    pub(crate) fn point(&mut self, load: Load) -> Run {
        let users = load.users;
        let schedule = self.plan.schedule.at(users, load.rate);
        let sessions = users.saturating_mul(self.plan.sessions_per_user);
        let control = Arc::new(Control::new(self.surroundings.stop.clone(), self.plan.limits));
        let clock = Clock::at(Instant::now());
        self.surroundings.hooks.point_begins(users);
        self.surroundings.live.enter(Phase::Connecting, users);
        self.order(&Order::Connect { sessions, control: control.clone(), clock });
        let mut ready = Instant::now();
        for reply in self.collect(&control, None) {
            if let Reply::Connected(time) = reply {
                ready = ready.max(time);
            }
        }

        self.surroundings.hooks.work_begins(users);
        self.surroundings.live.enter(Phase::Warmup, users);
        let begin = ready.max(Instant::now()) + NOTICE;
        let start = begin + self.plan.warmup;
        let window = Window { start, end: start + self.plan.duration, interval: self.plan.interval };
        self.order(&Order::Work { begin, window, schedule });
        let mut meter = Meter { users, window, phase: Phase::Warmup, began: None, used: None };
        let mut parts: Vec<Worked> = Vec::new();
        for reply in self.collect(&control, Some(&mut meter)) {
            if let Reply::Worked(worked) = reply {
                parts.push(*worked);
            }
        }
        let used = meter.finish(&mut self.surroundings);
        let (run, exchanges) = self.finish((users, schedule), parts, &control, window, &clock, used);
        self.surroundings.live.enter(Phase::Idle, users);
        self.surroundings.hooks.point_ends(&run, exchanges);
        run
    }

    fn order(&self, order: &Order) {
        for worker in &self.orders {
            worker.send(order.clone()).expect("a worker listens until its orders end, or panics with all of us");
        }
    }

    /// A reply of each worker. Meanwhile looks at the clock and at what the caller wants.
    fn collect(&mut self, control: &Control, mut meter: Option<&mut Meter>) -> Vec<Reply> {
        let mut replies = Vec::new();
        while replies.len() < self.orders.len() {
            let wait = meter.as_ref().map_or(LOOK, |meter| meter.wait());
            match self.replies.recv_timeout(wait) {
                Ok(reply) => replies.push(reply),
                Err(RecvTimeoutError::Timeout) => {}
                // All workers are gone: one of them panicked, and the scope of the threads passes that on.
                Err(RecvTimeoutError::Disconnected) => panic!("the workers of the load generator ended early"),
            }
            control.pass_on_stop();
            if let Some(meter) = &mut meter {
                meter.look(&mut self.surroundings, control.is_over());
            }
        }
        replies
    }

    /// Puts together what workers have.
    fn finish(
        &self,
        (users, schedule): (u32, Schedule),
        parts: Vec<Worked>,
        control: &Control,
        window: Window,
        clock: &Clock,
        used: ProcessTime,
    ) -> (Run, Option<Exchanges>) {
        let open = self.plan.schedule.is_open();
        let exchanges = self.plan.exchanges.then(|| Exchanges::new(0));
        let whole = Recorder::new(window, *clock, self.names.len(), open, exchanges).sliced(&self.plan.by);
        let mut whole = whole.limited(self.plan.overload);
        let mut late = Summary::new(Limit::ROW);
        let busiest = parts.iter().map(|part| part.on_cpu).max().unwrap_or_default();
        let last = parts.iter().map(|part| part.ended).max().unwrap_or(window.end);
        let alive: usize = parts.iter().map(|part| part.alive).sum();
        let trouble = parts.iter().find_map(|part| part.trouble.clone());
        let mut silences: Option<Silences> = None;
        for mut part in parts {
            let gaps = part.recorder.take_silences(last);
            match &mut silences {
                Some(all) => all.merge(&gaps),
                None => silences = Some(gaps),
            }
            late.merge(&part.late);
            whole.merge(part.recorder);
        }
        let duration = last.saturating_duration_since(window.start);
        let ended = match (control.why(), trouble) {
            (Some((why, _)), _) => why,
            (None, Some(trouble)) if alive == 0 => Ended::Failed(trouble),
            (None, _) => Ended::Done,
        };
        let exchanges = whole.exchanges.take().map(Exchanges::finish);
        let figures = whole.finish(&self.names, duration, self.plan.sessions_per_user);
        let total = figures.counted.response_times(|(_, _, group)| group.in_headline());
        let median = total.figures().p50.map(|p50| Duration::from_nanos(p50.0.max(0) as u64));
        let stalls = silences.map_or_else(Vec::new, |silences| silences.stalls(median));
        let stalls = stalls.iter().map(|s| Stall { start: clock.timestamp(s.from), length: s.length }).collect();
        let busiest = if duration.is_zero() { 0.0 } else { busiest.as_secs_f64() / duration.as_secs_f64() };
        let run = Run {
            users,
            started: clock.timestamp(window.start),
            duration,
            warmup: window.start.min(last).saturating_duration_since(window.start - self.plan.warmup),
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
            stalls,
            client_cpu: ClientCpu {
                user: used.user,
                system: used.system,
                busy_poll: self.plan.busy_poll,
                busiest,
                limited: busiest > LIMITED_ABOVE,
                late_p99: late.figures().p99,
            },
            ended,
            pace: match schedule {
                Schedule::Closed { .. } => Pace::Closed,
                Schedule::Open { rate, .. } => Pace::Open { rate, not_begun: figures.not_begun },
            },
            jobs: self.has_end.then_some(figures.jobs),
            overload: figures.overload,
            queue: Some(figures.queue).filter(|queue| queue.asked > 1),
        };
        (run, exchanges)
    }
}

/// Follows the clock through a load point: tells when the measured part begins and ends, and what it cost.
struct Meter {
    users: u32,
    window: Window,
    phase: Phase,
    began: Option<ProcessTime>,
    used: Option<ProcessTime>,
}

impl Meter {
    /// Until the next moment that matters, or the next look at [`Stop`].
    fn wait(&self) -> Duration {
        let next = match self.phase {
            Phase::Warmup => self.window.start,
            Phase::Measuring => self.window.end,
            _ => return LOOK,
        };
        next.saturating_duration_since(Instant::now()).min(LOOK)
    }

    fn look(&mut self, surroundings: &mut Surroundings<'_>, over: bool) {
        let now = Instant::now();
        if self.phase == Phase::Warmup && now >= self.window.start {
            self.phase = Phase::Measuring;
            self.began = Some(ProcessTime::now());
            surroundings.live.enter(self.phase, self.users);
            surroundings.hooks.measuring_begins();
        }
        if matches!(self.phase, Phase::Warmup | Phase::Measuring) && (over || now >= self.window.end) {
            self.used = self.began.map(|began| ProcessTime::now().since(began));
            self.phase = Phase::Ending;
            surroundings.live.enter(self.phase, self.users);
        }
    }

    /// Processor time of the measured part, as far as it came.
    fn finish(mut self, surroundings: &mut Surroundings<'_>) -> ProcessTime {
        self.look(surroundings, true);
        if self.began.is_some() {
            surroundings.hooks.measuring_ends();
        }
        self.used.unwrap_or_default()
    }
}
