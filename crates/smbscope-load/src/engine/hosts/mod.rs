//! Load generation on several hosts, and the driver's end of a host: it forwards orders, polls for news, and returns
//! replies as a worker does.
//!
//! Each host runs workers like this process does ([`LoadHost`]). The engine has a [`Host`] in place of a thread, which
//! forwards orders and returns the counts of the host's workers. Workers are numbered across all hosts, so that users
//! are divided and results merged as among threads. Messages are requests and answers in bytes; the transport is the
//! caller's. Their times are by the driver's clock.

mod served;

pub use served::LoadHost;
#[cfg(test)]
pub(crate) use served::run_team;

use super::clocks::{Clock, ProcessTime};
use super::control::{HostOperationCounts, LoadPointControl};
use super::hooks::{LiveFigures, LivePart, PUBLISH};
use super::plan::{Connects, EngineError, RampPlan};
use super::recorder::{LoadPointRecorder, MergeableFigures};
use super::result::{HostClockOffset, LoadPointEnd};
use super::schedule::{LoadSchedule, MeasurementWindow};
use super::silences::{HostResponseGaps, Silences};
use super::worker::{Connecting, HostFacts, HostLost, Worked, WorkerOrder, WorkerReply, WorkerShare};
use crate::workload::Travelling;
use serde::{Deserialize, Serialize};
use smbscope_client::SessionOptions;
use smbscope_model::travel::{from_bytes, to_bytes};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::Summary;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

/// Plan, workload and target of a run. Contains passwords.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Assignment {
    pub(crate) plan: RampPlan,
    pub(crate) options: SessionOptions,
    pub(crate) workload: Travelling,
    /// Sessions of the largest load point, and the users' working directory on the share.
    pub(crate) of: u32,
    pub(crate) directory: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum DriverRequest {
    Begin(Box<Assignment>),
    Time,
    /// Connect your share of these sessions. `ahead` is the offset of your clock; the load point ends after
    /// `operations`.
    Connect {
        sessions: u32,
        share: WorkerShare,
        ahead: Nanos,
        operations: Option<u64>,
    },
    Work {
        begin: Timestamp,
        start: Timestamp,
        end: Timestamp,
        interval: Duration,
        schedule: LoadSchedule,
    },
    /// Report news. `over` says that the load point has ended for all hosts.
    Look {
        over: bool,
    },
    End,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostReply {
    Ready { workers: u32 },
    Time(Timestamp),
    Begun { late_by: Duration },
    News(Box<News>),
    Ended,
    Refused(String),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct News {
    pub(crate) live: LivePart,
    pub(crate) tally: HostOperationCounts,
    /// Time and reason of an early end, unless it only concerns this host.
    pub(crate) ended: Option<(LoadPointEnd, Timestamp)>,
    pub(crate) done: Option<HostCompletion>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostCompletion {
    Connected,
    Worked(Box<HostWorked>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostWorked {
    pub(crate) counted: MergeableFigures,
    pub(crate) silences: HostResponseGaps,
    pub(crate) ended: Timestamp,
    pub(crate) alive: usize,
    pub(crate) trouble: Option<String>,
    pub(crate) on_cpu: Duration,
    pub(crate) late: Summary,
    pub(crate) used: ProcessTime,
}

/// Poll interval while sessions connect and after the measured part.
const SHORTLY: Duration = Duration::from_millis(50);
/// Interval at which an early end of the load point is noticed.
const LOOK: Duration = Duration::from_millis(20);

pub struct Host {
    name: String,
    is_here: bool,
    talk: Box<dyn Talk>,
}

impl Host {
    /// `call` delivers a request to the remote [`LoadHost`] and returns its answer. An error,
    /// including a timeout, means that the host is lost. Requests may contain passwords. `is_here` says that the host
    /// is this machine.
    pub fn new(
        name: String,
        is_here: bool,
        call: impl FnMut(&[u8]) -> Result<Vec<u8>, String> + Send + 'static,
    ) -> Host {
        Host { name, is_here, talk: Box::new(ByteExchange(call)) }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn is_here(&self) -> bool {
        self.is_here
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLostHost {
    /// The other hosts continue. Later load points divide all users among them.
    #[default]
    Continue,
    Stop,
}

pub struct Fleet {
    pub hosts: Vec<Host>,
    pub on_lost: OnLostHost,
    pub work: LoadWork,
}

#[derive(Debug, Clone)]
pub struct LoadWork {
    pub workload: Travelling,
    pub of: u32,
    /// Working directory of all users on the share.
    pub directory: String,
}

trait Talk: Send {
    fn ask(&mut self, request: &DriverRequest) -> Result<HostReply, String>;
}

/// Serialises requests and answers. Generic, so that programs without hosts do not contain this code.
struct ByteExchange<F>(F);

impl<F: FnMut(&[u8]) -> Result<Vec<u8>, String> + Send> Talk for ByteExchange<F> {
    fn ask(&mut self, request: &DriverRequest) -> Result<HostReply, String> {
        let answer = (self.0)(&to_bytes(request))?;
        match from_bytes(&answer).map_err(|error| error.to_string())? {
            HostReply::Refused(why) => Err(why),
            answer => Ok(answer),
        }
    }
}

pub(crate) struct HostLink {
    host: Host,
    pub(crate) workers: u32,
    sessions: i64,
    commands: u64,
    tally: HostOperationCounts,
    point: Option<HostLoadPoint>,
}

struct HostLoadPoint {
    connecting: Connecting,
    offset: HostClockOffset,
}

pub(crate) fn begin(
    hosts: Vec<Host>,
    work: LoadWork,
    plan: &RampPlan,
    options: &SessionOptions,
) -> Result<Vec<HostLink>, EngineError> {
    let Connects { rate, at_once } = plan.connects;
    let connects = Connects { rate, at_once: (at_once / hosts.len().max(1)).max(1) };
    let LoadWork { workload, of, directory } = work;
    let plan = RampPlan { connects, ..plan.clone() };
    let assignment = Assignment { plan, options: options.clone(), workload, of, directory };
    let link = |mut host: Host| match host.talk.ask(&DriverRequest::Begin(Box::new(assignment.clone()))) {
        Ok(HostReply::Ready { workers }) => {
            Ok(HostLink { host, workers, sessions: 0, commands: 0, tally: HostOperationCounts::default(), point: None })
        }
        Ok(_) => Err(EngineError::Host { name: host.name, why: UNEXPECTED.to_owned() }),
        Err(why) => Err(EngineError::Host { name: host.name, why }),
    };
    hosts.into_iter().map(link).collect()
}

const UNEXPECTED: &str = "it sent an unexpected answer";

impl HostLink {
    pub(crate) fn name(&self) -> &str {
        &self.host.name
    }

    pub(crate) fn run(
        mut self,
        lane: usize,
        orders: &Receiver<WorkerOrder>,
        replies: &Sender<WorkerReply>,
        live: &LiveFigures,
    ) {
        for order in orders {
            let reply = self.carry_out(lane, order, live).unwrap_or_else(|why| {
                self.forget_sessions(live);
                let clock = self.point.as_ref().map_or_else(HostClockOffset::default, |point| point.offset);
                WorkerReply::Lost(HostLost { lane, at: Instant::now(), why, commands: self.commands, clock })
            });
            let is_lost = matches!(reply, WorkerReply::Lost(_));
            if replies.send(reply).is_err() || is_lost {
                return;
            }
        }
        // All results have already arrived.
        let _ = self.host.talk.ask(&DriverRequest::End);
    }

    fn carry_out(&mut self, lane: usize, order: WorkerOrder, live: &LiveFigures) -> Result<WorkerReply, String> {
        match order {
            WorkerOrder::Connect(connecting) => {
                self.connect(connecting, live)?;
                Ok(WorkerReply::Connected(Instant::now()))
            }
            WorkerOrder::Work { begin, window, schedule } => {
                let Some(point) = self.point.take() else { return Err(UNEXPECTED.to_owned()) };
                let worked = self.work(lane, &point, (begin, window, schedule), live);
                self.point = Some(point);
                worked.map(|worked| WorkerReply::Worked(Box::new(worked)))
            }
        }
    }

    fn connect(&mut self, connecting: Connecting, live: &LiveFigures) -> Result<(), String> {
        let before = self.point.take();
        if before.is_some_and(|before| before.connecting.share != connecting.share) {
            self.forget_sessions(live);
        }
        self.commands = 0;
        self.tally = HostOperationCounts::default();
        let talk = &mut self.host.talk;
        let offset = clock_offset(&connecting.clock, || match talk.ask(&DriverRequest::Time)? {
            HostReply::Time(time) => Ok(time),
            _ => Err(UNEXPECTED.to_owned()),
        })?;
        let Connecting { sessions, share, operations, .. } = &connecting;
        let request = DriverRequest::Connect {
            sessions: *sessions,
            share: share.clone(),
            ahead: offset.ahead,
            operations: *operations,
        };
        self.begun(&request)?;
        let (control, clock) = (connecting.control.clone(), connecting.clock);
        self.point = Some(HostLoadPoint { connecting, offset });
        match self.until_done(&control, &clock, None, live)? {
            HostCompletion::Connected => Ok(()),
            HostCompletion::Worked(_) => Err(UNEXPECTED.to_owned()),
        }
    }

    fn work(
        &mut self,
        lane: usize,
        point: &HostLoadPoint,
        (begin, window, schedule): (Instant, MeasurementWindow, LoadSchedule),
        live: &LiveFigures,
    ) -> Result<Worked, String> {
        let Connecting { control, clock, .. } = &point.connecting;
        let late_by = self.begun(&DriverRequest::Work {
            begin: clock.timestamp(begin),
            start: clock.timestamp(window.start),
            end: clock.timestamp(window.end),
            interval: window.interval,
            schedule,
        })?;
        let HostCompletion::Worked(worked) = self.until_done(control, clock, Some(window), live)? else {
            return Err(UNEXPECTED.to_owned());
        };
        let silences = Silences::heard(worked.silences, clock);
        Ok(Worked {
            recorder: LoadPointRecorder::of_host(window, *clock, worked.counted, silences),
            ended: clock.instant(worked.ended),
            alive: worked.alive,
            trouble: worked.trouble,
            on_cpu: worked.on_cpu,
            late: worked.late,
            host: Some(HostFacts { lane, used: worked.used, clock: point.offset, late_by }),
        })
    }

    fn begun(&mut self, request: &DriverRequest) -> Result<Duration, String> {
        match self.host.talk.ask(request)? {
            HostReply::Begun { late_by } => Ok(late_by),
            _ => Err(UNEXPECTED.to_owned()),
        }
    }

    fn until_done(
        &mut self,
        control: &Arc<LoadPointControl>,
        clock: &Clock,
        window: Option<MeasurementWindow>,
        live: &LiveFigures,
    ) -> Result<HostCompletion, String> {
        let mut over = false;
        loop {
            let left = window.map(|window| window.end.saturating_duration_since(Instant::now()));
            let until = Instant::now() + left.map_or(SHORTLY, |left| left.clamp(SHORTLY, PUBLISH));
            while Instant::now() < until && (over || !control.is_over()) {
                std::thread::sleep(LOOK);
            }
            over = control.is_over();
            let HostReply::News(news) = self.host.talk.ask(&DriverRequest::Look { over })? else {
                return Err(UNEXPECTED.to_owned());
            };
            let News { live: mut part, tally, ended, done } = *news;
            self.sessions += part.sessions;
            self.commands += part.commands();
            live.publish(&mut part);
            control.add(&tally.since(&self.tally), Instant::now());
            self.tally = tally;
            if let Some((why @ (LoadPointEnd::Stopped(_) | LoadPointEnd::Failed(_)), at)) = ended {
                control.finish(why, clock.instant(at));
            }
            if let Some(done) = done {
                return Ok(done);
            }
        }
    }

    fn forget_sessions(&mut self, live: &LiveFigures) {
        let mut less = LivePart::default();
        less.sessions = -std::mem::take(&mut self.sessions);
        live.publish(&mut less);
    }
}

const ROUND_TRIPS: usize = 8;

/// Measures the offset of a host's clock: of several requests, the one with the shortest round trip counts
/// (RFC 5905, section 10).
fn clock_offset<E>(clock: &Clock, mut ask: impl FnMut() -> Result<Timestamp, E>) -> Result<HostClockOffset, E> {
    let mut best: Option<HostClockOffset> = None;
    for _ in 0..ROUND_TRIPS {
        let asked = clock.timestamp(Instant::now());
        let theirs = ask()?;
        let answered = clock.timestamp(Instant::now());
        let found = from_round_trip(asked, theirs, answered);
        if best.is_none_or(|best| found.bound < best.bound) {
            best = Some(found);
        }
    }
    Ok(best.unwrap_or_default())
}

fn from_round_trip(asked: Timestamp, theirs: Timestamp, answered: Timestamp) -> HostClockOffset {
    let round_trip = answered.0 - asked.0;
    HostClockOffset { ahead: Nanos(theirs.0 - asked.0 - round_trip / 2), bound: Nanos((round_trip + 1) / 2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_true_offset_is_within_the_bound_however_the_way_is_divided() {
        for there in 0..=100 {
            // The host's clock is 5,000 ahead; the request takes `there` of the 100.
            let found = from_round_trip(Timestamp(1_000), Timestamp(1_000 + there + 5_000), Timestamp(1_100));
            assert!((found.ahead.0 - 5_000).abs() <= found.bound.0, "{there}: {found:?}");
            assert_eq!(found.bound, Nanos(50));
        }
    }

    #[test]
    fn the_shortest_round_trip_counts() {
        let clock = Clock::at(Instant::now());
        let mut trips = [5, 1, 20].into_iter().cycle();
        let found = clock_offset(&clock, || {
            std::thread::sleep(std::time::Duration::from_millis(trips.next().unwrap()));
            Ok::<_, ()>(Timestamp(clock.timestamp(Instant::now()).0 - 7_000_000_000))
        });
        let found = found.unwrap();
        assert!(found.bound.0 < 5_000_000 && (found.ahead.0 + 7_000_000_000).abs() <= found.bound.0, "{found:?}");
    }
}
