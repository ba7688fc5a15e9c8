//! The load generator on a host: answers the driver's requests while a separate thread runs the workers.

use super::{Assignment, DriverRequest, HostCompletion, HostReply, HostWorked, News};
use crate::engine::clocks::{Clock, ProcessTime, Time};
use crate::engine::control::LoadPointControl;
use crate::engine::hooks::{LiveFigures, StopFlag, Surroundings};
use crate::engine::load::{LocalUsers, with_workers};
use crate::engine::result::LoadPointEnd;
use crate::engine::schedule::MeasurementWindow;
use crate::engine::session::{ServerConnector, SessionFactory};
use crate::engine::silences::Silences;
use crate::engine::worker::{Connecting, Scripts, Worked, WorkerOrder, WorkerShare};
use crate::workload::{UserSeat, Workload};
use smbscope_model::travel::{from_bytes, to_bytes};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::{Summary, SummaryPrecision};
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub struct LoadHost {
    /// Advances monotonically from its start, unaffected by adjustments of the system clock.
    clock: Clock,
    start: Arc<Start>,
    work: Option<AssignedWorkload>,
    team: Option<Team>,
}

type Start = dyn Fn(&Assignment, &Workload, Inbox) + Send + Sync;

#[derive(Clone)]
struct AssignedWorkload {
    assignment: Arc<Assignment>,
    workload: Workload,
}

struct Team {
    share: WorkerShare,
    orders: Sender<WorkerOrder>,
    done: Receiver<HostCompletion>,
    live: Arc<LiveFigures>,
    control: Option<Arc<LoadPointControl>>,
    clock: Clock,
    thread: JoinHandle<()>,
}

pub(crate) struct Inbox {
    share: WorkerShare,
    orders: Receiver<WorkerOrder>,
    done: Sender<HostCompletion>,
    live: Arc<LiveFigures>,
}

impl fmt::Debug for LoadHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadHost").finish_non_exhaustive()
    }
}

impl Default for LoadHost {
    fn default() -> LoadHost {
        LoadHost::new()
    }
}

impl LoadHost {
    pub fn new() -> LoadHost {
        LoadHost::with(Box::new(|assignment, workload, inbox| {
            let Assignment { plan, options, of, directory, .. } = assignment;
            let server = ServerConnector::new(options, plan.connections_per_session, plan.seed);
            let scripts = |number| {
                let seat = UserSeat { number, of: *of, seed: plan.seed, directory: directory.clone() };
                Box::new(workload.script(&seat)) as Box<dyn crate::workload::Script>
            };
            run_team(assignment, server, &scripts, inbox);
        }))
    }

    pub(crate) fn with(start: Box<Start>) -> LoadHost {
        LoadHost { clock: Clock::at(Instant::now()), start: start.into(), work: None, team: None }
    }

    /// Answers a request of the driver immediately. Long-running work continues in the background.
    pub fn answer(&mut self, request: &[u8]) -> Vec<u8> {
        let answer = match from_bytes(request) {
            Ok(request) => self.answered(request).unwrap_or_else(HostReply::Refused),
            Err(error) => HostReply::Refused(error.to_string()),
        };
        to_bytes(&answer)
    }

    fn answered(&mut self, request: DriverRequest) -> Result<HostReply, String> {
        match request {
            DriverRequest::Begin(assignment) => self.begin(*assignment),
            DriverRequest::Time => Ok(HostReply::Time(self.clock.timestamp(Instant::now()))),
            DriverRequest::Connect { sessions, share, ahead, operations } => {
                self.connect(sessions, share, ahead, operations)
            }
            DriverRequest::Work { begin, start, end, interval, schedule } => {
                let team = self.team.as_ref().ok_or(NO_ORDER)?;
                let (begin, at) = (team.clock.instant(begin), |time: Timestamp| team.clock.instant(time));
                let window = MeasurementWindow { start: at(start), end: at(end), interval };
                team.orders.send(WorkerOrder::Work { begin, window, schedule }).map_err(|_| ENDED_EARLY)?;
                Ok(HostReply::Begun { late_by: Instant::now().saturating_duration_since(begin) })
            }
            DriverRequest::Look { over } => self.team.as_mut().ok_or(NO_ORDER)?.look(over),
            DriverRequest::End => {
                self.end_team();
                self.work = None;
                Ok(HostReply::Ended)
            }
        }
    }

    fn begin(&mut self, assignment: Assignment) -> Result<HostReply, String> {
        self.end_team();
        let workload = assignment.workload.clone().arrived().map_err(|error| error.to_string())?;
        let workers = assignment.plan.workers_for(assignment.of) as u32;
        self.work = Some(AssignedWorkload { assignment: Arc::new(assignment), workload });
        Ok(HostReply::Ready { workers })
    }

    fn connect(
        &mut self,
        sessions: u32,
        share: WorkerShare,
        ahead: Nanos,
        operations: Option<u64>,
    ) -> Result<HostReply, String> {
        let work = self.work.as_ref().ok_or(NO_ORDER)?.clone();
        if self.team.as_ref().is_some_and(|team| team.share != share) {
            self.end_team();
        }
        let mut limits = work.assignment.plan.limits;
        limits.operations = operations;
        let team = match &mut self.team {
            Some(team) => team,
            none => none.insert(Team::start(share.clone(), work, &self.start, self.clock)?),
        };
        team.clock = self.clock.behind(ahead);
        let control = Arc::new(LoadPointControl::of_host(StopFlag::new(), limits));
        team.control = Some(control.clone());
        let connecting = Connecting { sessions, share, control, clock: team.clock, operations };
        team.orders.send(WorkerOrder::Connect(connecting)).map_err(|_| ENDED_EARLY)?;
        Ok(HostReply::Begun { late_by: Duration::ZERO })
    }

    fn end_team(&mut self) {
        if let Some(Team { orders, thread, .. }) = self.team.take() {
            drop(orders);
            // The panic was printed to standard error, and nothing can be saved.
            let _ = thread.join();
        }
    }
}

const NO_ORDER: &str = "it has not been told what to do";
const ENDED_EARLY: &str = "its load generator broke down, please report this";

impl Team {
    fn start(share: WorkerShare, work: AssignedWorkload, start: &Arc<Start>, clock: Clock) -> Result<Team, String> {
        let (orders, for_workers) = channel();
        let (finished, done) = channel();
        let live = Arc::new(LiveFigures::default());
        let inbox = Inbox { share: share.clone(), orders: for_workers, done: finished, live: live.clone() };
        let start = start.clone();
        let thread = std::thread::Builder::new()
            .name("load".to_owned())
            .spawn(move || start(&work.assignment, &work.workload, inbox))
            .map_err(|error| error.to_string())?;
        Ok(Team { share, orders, done, live, control: None, clock, thread })
    }

    fn look(&mut self, over: bool) -> Result<HostReply, String> {
        let control = self.control.as_ref().ok_or(NO_ORDER)?;
        if over {
            control.finish(LoadPointEnd::Interrupted, Instant::now());
        }
        // Check for completion first, so that the figures taken next include all that the workers published.
        let done = match self.done.try_recv() {
            Ok(done) => Some(done),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => return Err(ENDED_EARLY.to_owned()),
        };
        let ended = control.why().filter(|(why, _)| matches!(why, LoadPointEnd::Stopped(_) | LoadPointEnd::Failed(_)));
        Ok(HostReply::News(Box::new(News {
            live: self.live.take(),
            tally: control.tally(),
            ended: ended.map(|(why, at)| (why, self.clock.timestamp(at))),
            done,
        })))
    }
}

pub(crate) fn run_team<C: SessionFactory + Send + 'static>(
    assignment: &Assignment,
    connector: C,
    scripts: Scripts<'_>,
    inbox: Inbox,
) {
    let Inbox { share, orders, done, live } = inbox;
    let (stop, mut nobody) = (StopFlag::new(), ());
    let surroundings = Surroundings { hooks: &mut nobody, live: &live, stop: &stop };
    let users = LocalUsers { connector, scripts, time: Time::Real };
    // If a thread can't be started, the driver notices because its orders have no receiver.
    let _ = with_workers(&assignment.plan, &share, users, surroundings, |engine| {
        let mut point = None;
        for order in orders {
            let finished = match order {
                WorkerOrder::Connect(connecting) => {
                    engine.connect(&connecting);
                    point = Some(connecting);
                    HostCompletion::Connected
                }
                WorkerOrder::Work { begin, window, schedule } => {
                    let Some(Connecting { control, clock, .. }) = point.take() else { continue };
                    let (parts, used) = engine.work((begin, window, schedule), &control);
                    HostCompletion::Worked(Box::new(merged(parts, used, &clock, window)))
                }
            };
            if done.send(finished).is_err() {
                break;
            }
        }
    });
}

fn merged(parts: Vec<Worked>, used: ProcessTime, clock: &Clock, window: MeasurementWindow) -> HostWorked {
    let last = parts.iter().map(|part| part.ended).max().unwrap_or(window.end);
    let mut late = Summary::new(SummaryPrecision::ROW);
    let mut whole: Option<(crate::engine::recorder::LoadPointRecorder, Silences)> = None;
    let (mut alive, mut trouble, mut on_cpu) = (0, None, Duration::ZERO);
    for mut part in parts {
        late.merge(&part.late);
        alive += part.alive;
        on_cpu = on_cpu.max(part.on_cpu);
        trouble = trouble.or(part.trouble);
        let gaps = part.recorder.take_silences(last);
        match &mut whole {
            Some((recorder, silences)) => {
                silences.merge(&gaps);
                recorder.merge(part.recorder);
            }
            None => whole = Some((part.recorder, gaps)),
        }
    }
    let (recorder, silences) = whole.expect("a host has a worker");
    let silences = silences.told(clock);
    HostWorked {
        counted: recorder.into_counted(),
        silences,
        ended: clock.timestamp(last),
        alive,
        trouble,
        on_cpu,
        late,
        used,
    }
}
