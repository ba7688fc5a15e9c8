//! A worker thread with its share of the users, each of which is a task that does its own I/O.

use super::clocks::{Clock, ProcessTime, Time, Timers, now, thread_time};
use super::control::{Common, LoadPointControl, UserExit, WorkerLoadPoint};
use super::exchanges::{EXCHANGES_MAX, ExchangeLog};
use super::hooks::{LiveFigures, PUBLISH};
use super::recorder::LoadPointRecorder;
use super::result::HostClockOffset;
use super::schedule::{LoadSchedule, MeasurementWindow};
use super::session::SessionFactory;
use super::user::ScriptedSession;
use crate::workload::Script;
use serde::{Deserialize, Serialize};
use smbscope_stats::{Summary, SummaryPrecision};
use std::cell::Cell;
use std::convert::Infallible;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

const SENTINEL: Duration = Duration::from_millis(10);
/// A duration that never elapses.
const FAR: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// Creates the script of a session, numbered from 0 over all users.
pub(crate) type Scripts<'a> = &'a (dyn Fn(u32) -> Box<dyn Script> + Sync);

#[derive(Clone)]
pub(crate) enum WorkerOrder {
    Connect(Connecting),
    Work { begin: Instant, window: MeasurementWindow, schedule: LoadSchedule },
}

#[derive(Clone)]
pub(crate) struct Connecting {
    pub(crate) sessions: u32,
    /// On a host: its own workers, and the number of operations after which its part of the load point ends.
    pub(crate) share: WorkerShare,
    pub(crate) operations: Option<u64>,
    pub(crate) control: Arc<LoadPointControl>,
    pub(crate) clock: Clock,
}

pub(crate) enum WorkerReply {
    Connected(Instant),
    Worked(Box<Worked>),
    Lost(HostLost),
}

pub(crate) struct HostLost {
    pub(crate) lane: usize,
    pub(crate) at: Instant,
    pub(crate) why: String,
    /// Commands that it had reported for the load point.
    pub(crate) commands: u64,
    pub(crate) clock: HostClockOffset,
}

pub(crate) struct HostFacts {
    pub(crate) lane: usize,
    /// Processor time of its process in the measured part.
    pub(crate) used: ProcessTime,
    pub(crate) clock: HostClockOffset,
    pub(crate) late_by: Duration,
}

pub(crate) struct Worked {
    pub(crate) recorder: LoadPointRecorder,
    pub(crate) ended: Instant,
    /// Number of users who could continue.
    pub(crate) alive: usize,
    pub(crate) trouble: Option<String>,
    pub(crate) on_cpu: Duration,
    pub(crate) late: Summary,
    /// Present if these are the merged workers of a host.
    pub(crate) host: Option<HostFacts>,
}

pub(crate) struct LoadWorker<'a, C: SessionFactory> {
    pub(crate) index: u32,
    pub(crate) workers: u32,
    pub(crate) common: Arc<Common<C>>,
    pub(crate) scripts: Scripts<'a>,
    pub(crate) live: &'a LiveFigures,
    pub(crate) operations: usize,
    pub(crate) users: Vec<ScriptedSession<C::Session>>,
}

impl<C: SessionFactory + 'static> LoadWorker<'_, C> {
    pub(crate) fn run(
        mut self,
        time: Time,
        runtime: &Runtime,
        orders: &Receiver<WorkerOrder>,
        replies: &Sender<WorkerReply>,
    ) {
        let timers = {
            let _entered = runtime.enter();
            Rc::new(time.timers())
        };
        let mut point = None;
        for order in orders {
            let reply = match order {
                WorkerOrder::Connect(Connecting { sessions, control, clock, .. }) => {
                    let (next, time) = runtime.block_on(self.connect(sessions, control, &timers, clock));
                    point = Some(next);
                    WorkerReply::Connected(time)
                }
                WorkerOrder::Work { begin, window, schedule } => {
                    let Some(point) = point.take() else { continue };
                    WorkerReply::Worked(Box::new(runtime.block_on(self.work(
                        point,
                        &timers,
                        (begin, window, schedule),
                    ))))
                }
            };
            if replies.send(reply).is_err() {
                break;
            }
        }
        runtime.block_on(LocalSet::new().run_until(self.disconnect(0)));
    }

    /// Brings the number of sessions to this worker's share of `sessions`: connects and sets up the missing ones, ends
    /// the surplus.
    async fn connect(
        &mut self,
        sessions: u32,
        control: Arc<LoadPointControl>,
        timers: &Rc<Timers>,
        clock: Clock,
    ) -> (Rc<WorkerLoadPoint<C>>, Instant) {
        let begin = now();
        let recorder = self.recorder(begin, clock);
        let point = WorkerLoadPoint::new(self.common.clone(), control, timers.clone(), recorder, sessions);
        let point = Rc::new(point);
        let numbers = (self.index..sessions).step_by(self.workers as usize);
        let wanted = numbers.len();
        for number in numbers.skip(self.users.len()) {
            self.users.push(ScriptedSession::new(number, (self.scripts)(number)));
        }
        let live = self.live;
        let connecting = self.connect_users(&point, wanted, begin);
        let publishing = async { tokio::join!(publish(&point, live), timers.run()).0 };
        LocalSet::new().run_until(beside(connecting, publishing)).await;
        point.recorder.borrow_mut().publish(live);
        (point, now())
    }

    fn recorder(&self, begin: Instant, clock: Clock) -> LoadPointRecorder {
        let plan = &self.common.plan;
        // The measured part is not known yet.
        let window = MeasurementWindow { start: begin + FAR, end: begin + FAR + FAR, interval: plan.interval };
        let exchanges = plan.exchanges.then(|| ExchangeLog::new(EXCHANGES_MAX / self.workers as usize));
        let recorder = LoadPointRecorder::new(window, clock, self.operations, plan.schedule.is_open(), exchanges);
        recorder.sliced(&plan.by).limited(plan.overload).observed(self.live.observer())
    }

    /// Ends the users above `wanted`, and connects those without a session while the others rest.
    async fn connect_users(&mut self, point: &Rc<WorkerLoadPoint<C>>, wanted: usize, begin: Instant) {
        let ended = self.disconnect(wanted).await;
        point.recorder.borrow_mut().live.sessions -= ended;
        let (kept, missing): (Vec<_>, Vec<_>) = self.users.drain(..).partition(ScriptedSession::is_connected);
        point.recorder.borrow_mut().kept(kept.len());
        let ready = watch::Sender::new(false);
        let kept = kept.into_iter().map(|user| spawn_local(rest_until_ready(user, point.clone(), ready.subscribe())));
        let kept: Vec<_> = kept.collect();
        let missing = missing
            .into_iter()
            .enumerate()
            .map(|(i, user)| spawn_local(connect_in_time(user, point.clone(), begin + self.delay(i))));
        let mut users = joined(missing.collect()).await;
        ready.send_replace(true);
        users.extend(joined(kept).await);
        users.sort_by_key(|user| user.number);
        self.users = users;
    }

    /// Returns the time after which this worker may connect one of its sessions. All workers together respect the
    /// connect rate.
    fn delay(&self, missing: usize) -> Duration {
        let turn = missing * self.workers as usize + self.index as usize;
        Duration::from_secs_f64(turn as f64 / self.common.plan.connects.rate)
    }

    async fn work(
        &mut self,
        point: Rc<WorkerLoadPoint<C>>,
        timers: &Timers,
        (begin, window, schedule): (Instant, MeasurementWindow, LoadSchedule),
    ) -> Worked {
        point.start(begin, window, schedule);
        let live = self.live;
        let abandon = watch::Sender::new(false);
        let tasks = LocalSet::new();
        let working = async {
            let tasks = self.users.drain(..).map(|mut user| {
                let (point, mut abandoned) = (point.clone(), abandon.subscribe());
                spawn_local(async move {
                    let left = tokio::select! {
                        biased;
                        left = user.work(&point) => Some(left),
                        _ = abandoned.wait_for(|abandoned| *abandoned) => None,
                    };
                    user.leave(&point, left.as_ref());
                    (user, left)
                })
            });
            joined(tasks.collect()).await
        };
        let patience = async {
            point.ended().await;
            tokio::time::sleep(point.plan.grace).await;
            abandon.send_replace(true);
            std::future::pending().await
        };
        let mut sentinel = Sentinel::default();
        let watching = async {
            tokio::join!(patience, publish(&point, live), timers.run(), sentinel.watch(&point, window, timers)).0
        };
        let idle = Cell::new(Duration::ZERO);
        let watching = async { tokio::join!(watching, poll_busily(&point, window, &idle)).0 };
        let ended = tasks.run_until(beside(working, watching)).await;

        let mut worked = Worked {
            recorder: point.take_recorder(),
            ended: point.last_of(&ended),
            alive: 0,
            trouble: None,
            on_cpu: sentinel.on_cpu().saturating_sub(idle.get()),
            late: sentinel.late,
            host: None,
        };
        for (user, left) in ended {
            match left {
                Some(UserExit::Failed(reason)) => worked.trouble = Some(reason),
                _ => worked.alive += 1,
            }
            self.users.push(user);
        }
        worked.recorder.publish(live);
        worked
    }

    async fn disconnect(&mut self, keep: usize) -> i64 {
        let grace = self.common.plan.grace;
        let surplus = self.users.split_off(keep.min(self.users.len()));
        let connected = surplus.iter().filter(|user| user.is_connected()).count();
        let tasks = surplus.into_iter().map(|mut user| spawn_local(async move { user.disconnect(grace).await }));
        joined(tasks.collect()).await;
        connected as i64
    }
}

async fn rest_until_ready<C: SessionFactory>(
    mut user: ScriptedSession<C::Session>,
    point: Rc<WorkerLoadPoint<C>>,
    mut ready: watch::Receiver<bool>,
) -> ScriptedSession<C::Session> {
    let _ = user.rest_until(&point, ready.wait_for(|ready| *ready)).await;
    user
}

/// Connects and sets up a user from `due` on, or gives it up if that takes longer than the load point and its grace.
async fn connect_in_time<C: SessionFactory>(
    mut user: ScriptedSession<C::Session>,
    point: Rc<WorkerLoadPoint<C>>,
    due: Instant,
) -> ScriptedSession<C::Session> {
    let ready = async {
        point.wait_until(due).await;
        user.connect(&point).await;
        user.set_up(&point).await;
    };
    let patience = async {
        point.ended().await;
        tokio::time::sleep(point.plan.grace).await;
    };
    let in_time = tokio::select! {
        biased;
        () = ready => true,
        () = patience => false,
    };
    if !in_time {
        user.give_up(&point);
    }
    user
}

async fn joined<T>(tasks: Vec<JoinHandle<T>>) -> Vec<T> {
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        match task.await {
            Ok(result) => results.push(result),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => unreachable!("no task is cancelled before its end"),
            },
        }
    }
    results
}

async fn beside<T>(work: impl Future<Output = T>, endless: impl Future<Output = Infallible>) -> T {
    tokio::select! {
        biased;
        result = work => result,
        never = endless => match never {},
    }
}

async fn publish<C: SessionFactory>(point: &WorkerLoadPoint<C>, live: &LiveFigures) -> Infallible {
    loop {
        tokio::time::sleep(PUBLISH).await;
        point.recorder.borrow_mut().publish(live);
    }
}

/// Keeps the thread from sleeping if the plan says so: the runtime polls the system between any two turns. Adds up the
/// idle time in the measured part.
async fn poll_busily<C: SessionFactory>(
    point: &WorkerLoadPoint<C>,
    window: MeasurementWindow,
    idle: &Cell<Duration>,
) -> Infallible {
    if !point.plan.busy_poll {
        return std::future::pending().await;
    }
    let mut before = Instant::now();
    let mut shortest = Duration::MAX;
    loop {
        tokio::task::yield_now().await;
        let now = Instant::now();
        let turn = now - before;
        shortest = shortest.min(turn);
        // A turn in which a command was sent or a response received is many times longer than an idle one.
        if turn <= 2 * shortest && window.contains(now) {
            idle.set(idle.get() + turn);
        }
        before = now;
    }
}

/// Measures how late the worker wakes up, and its processor time.
struct Sentinel {
    /// Processor time of the thread at the start of the measured part and at the latest check.
    began: Option<Duration>,
    last: Duration,
    late: Summary,
}

impl Default for Sentinel {
    fn default() -> Sentinel {
        Sentinel { began: None, last: Duration::ZERO, late: Summary::new(SummaryPrecision::ROW) }
    }
}

impl Sentinel {
    async fn watch<C>(&mut self, point: &WorkerLoadPoint<C>, window: MeasurementWindow, timers: &Timers) -> Infallible {
        timers.sleep_until(window.start).await;
        self.began = Some(thread_time());
        while now() < window.end {
            let due = (now() + SENTINEL).min(window.end);
            timers.sleep_until(due).await;
            let woke = now();
            self.late.record(woke.saturating_duration_since(due).into());
            point.recorder.borrow_mut().paused(due, woke);
            self.last = thread_time();
        }
        std::future::pending().await
    }

    fn on_cpu(&self) -> Duration {
        self.began.map_or(Duration::ZERO, |began| self.last.saturating_sub(began))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerShare {
    /// Numbers of the workers, counted across all hosts.
    pub(crate) workers: Vec<u32>,
    pub(crate) of: u32,
}

impl WorkerShare {
    pub(crate) fn whole(workers: usize) -> WorkerShare {
        WorkerShare { workers: (0..workers as u32).collect(), of: workers as u32 }
    }

    /// Deals out workers to hosts with these numbers of workers. Hosts take turns, so that even a few sessions spread
    /// over all hosts.
    pub(crate) fn deal(hosts: &[u32]) -> Vec<WorkerShare> {
        let of = hosts.iter().sum();
        let mut shares: Vec<WorkerShare> = hosts.iter().map(|_| WorkerShare { workers: Vec::new(), of }).collect();
        let mut next = 0;
        while next < of {
            for (share, most) in shares.iter_mut().zip(hosts) {
                if share.workers.len() < *most as usize {
                    share.workers.push(next);
                    next += 1;
                }
            }
        }
        shares
    }

    /// Returns how many of `of` sessions belong to this share.
    pub(crate) fn sessions(&self, of: u32) -> u32 {
        self.workers.iter().map(|worker| of.saturating_sub(*worker).div_ceil(self.of.max(1))).sum()
    }

    /// Returns this share's part of a quantity of all sessions. The parts of all hosts add up to the whole.
    pub(crate) fn part_of(&self, whole: u64, hosts: &[WorkerShare], sessions: u32) -> u64 {
        let before: u32 = hosts.iter().take_while(|host| *host != self).map(|host| host.sessions(sessions)).sum();
        let up_to = |sum: u32| (u128::from(whole) * u128::from(sum) / u128::from(sessions.max(1))) as u64;
        up_to(before + self.sessions(sessions)) - up_to(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_take_turns_and_every_worker_is_that_of_one() {
        let shares = WorkerShare::deal(&[4, 2, 0]);
        let workers: Vec<_> = shares.iter().map(|share| share.workers.clone()).collect();
        assert_eq!(workers, [vec![0, 2, 4, 5], vec![1, 3], vec![]]);
        assert_eq!(WorkerShare::deal(&[3]), [WorkerShare::whole(3)]);
    }

    #[test]
    fn sessions_and_limits_are_divided_without_a_rest() {
        let shares = WorkerShare::deal(&[4, 2]);
        for sessions in 0..30 {
            let each: Vec<u32> = shares.iter().map(|share| share.sessions(sessions)).collect();
            let counted = |share: &WorkerShare| {
                share.workers.iter().map(|worker| (*worker..sessions).step_by(6).count() as u32).sum::<u32>()
            };
            assert_eq!(each, shares.iter().map(counted).collect::<Vec<_>>());
            assert_eq!(each.iter().sum::<u32>(), sessions);
            let whole = if sessions == 0 { 0 } else { 1_001 };
            let parts = shares.iter().map(|share| share.part_of(1_001, &shares, sessions));
            assert_eq!(parts.sum::<u64>(), whole);
        }
    }
}
