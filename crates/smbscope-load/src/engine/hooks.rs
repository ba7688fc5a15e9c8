//! The caller's view of a running ramp: hooks, stop flag, and live figures for a display.
//!
//! Workers publish their figures four times a second, and a display takes the changes since its last look. `Meter`
//! tracks the start and end of the measured part, and the processor time that it costs.

use super::clocks::ProcessTime;
use super::exchanges::ExchangeLog;
use super::result::LoadPointResult;
use super::schedule::MeasurementWindow;
use super::session::Performed;
use serde::{Deserialize, Serialize};
use smbscope_model::{CommandGroup, Exchange, Nanos};
use smbscope_stats::{DurationStatistics, Summary, SummaryPrecision};
use smbscope_wire::status::NtStatus;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Notifications about the progress of a ramp. All calls come from the engine's thread, which waits for them.
pub trait Hooks {
    /// Called before the sessions of a load point connect, so that a capture started here sees all of them.
    fn point_begins(&mut self, users: u32) {
        let _ = users;
    }

    /// Called when the sessions are connected and the users are about to start the warm-up.
    fn work_begins(&mut self, users: u32) {
        let _ = users;
    }

    /// Called at the start of the measured part. A slow implementation delays `measuring_ends`.
    fn measuring_begins(&mut self) {}

    /// Called after the end of the measured part, when all operations that started in it have ended.
    fn measuring_ends(&mut self) {}

    /// Called with the result of a load point, and with its exchanges if the plan keeps them.
    fn point_ends(&mut self, run: &LoadPointResult, exchanges: Option<ExchangeLog>) {
        let _ = (run, exchanges);
    }
}

impl Hooks for () {}

pub(crate) struct Surroundings<'a> {
    pub(crate) hooks: &'a mut dyn Hooks,
    pub(crate) live: &'a LiveFigures,
    pub(crate) stop: &'a StopFlag,
}

/// Ends the engine early, for example on Ctrl-C. The results of the current load point are kept.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub fn new() -> StopFlag {
        StopFlag::default()
    }

    pub fn stop(&self) {
        self.0.store(true, Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Receives the measured commands of one worker, on the worker's thread, which waits for it.
pub trait ExchangeObserver: fmt::Debug + Send {
    fn exchange(&mut self, exchange: &Exchange);

    /// Called four times a second, and after the last command of a load point.
    fn publish(&mut self);
}

pub(crate) const PUBLISH: Duration = Duration::from_millis(250);

/// Error statuses per look at a run.
const STATUSES_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct LiveFigures {
    phase: AtomicU8,
    users: AtomicU32,
    looked: Mutex<Option<Instant>>,
    parts: Mutex<LivePart>,
    observers: Option<ObserverSource>,
}

/// Creates the observer of a worker.
struct ObserverSource(Box<dyn Fn() -> Box<dyn ExchangeObserver> + Send + Sync>);

impl fmt::Debug for ObserverSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObserverSource").finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EnginePhase {
    /// Before, between and after load points.
    #[default]
    Idle,
    Connecting,
    Warmup,
    Measuring,
    Ending,
}

const PHASES: [EnginePhase; 5] =
    [EnginePhase::Idle, EnginePhase::Connecting, EnginePhase::Warmup, EnginePhase::Measuring, EnginePhase::Ending];

#[derive(Debug, Clone, PartialEq, Default)]
pub struct EngineSnapshot {
    pub phase: EnginePhase,
    pub users_planned: u32,
    pub sessions: u32,
    pub over: Duration,
    pub commands: u64,
    pub operations: u64,
    pub errors: u64,
    /// Operations with an unexpected outcome. Errors that the workload expects do not count.
    pub unexpected: u64,
    /// Error responses by status, limited to 64 different ones.
    pub statuses: BTreeMap<NtStatus, u64>,
    pub failures: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub p50: Option<Nanos>,
    /// Their 95th percentile. Requires 20 commands.
    pub p95: Option<Nanos>,
    pub groups: Vec<LiveGroup>,
}

/// Figures of a group since the last look. Percentiles are within 1.6%.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveGroup {
    pub group: CommandGroup,
    pub commands: u64,
    pub p50: Option<Nanos>,
    /// Requires 20 commands.
    pub p95: Option<Nanos>,
    /// Requires 100 commands.
    pub p99: Option<Nanos>,
}

impl LiveFigures {
    /// Creates figures of a ramp that also gives its measured commands to observers, one per worker and load point.
    pub fn observed(observer: impl Fn() -> Box<dyn ExchangeObserver> + Send + Sync + 'static) -> LiveFigures {
        LiveFigures { observers: Some(ObserverSource(Box::new(observer))), ..LiveFigures::default() }
    }

    pub(crate) fn observer(&self) -> Option<Box<dyn ExchangeObserver>> {
        self.observers.as_ref().map(|source| (source.0)())
    }

    pub fn look(&self) -> EngineSnapshot {
        let now = Instant::now();
        let before = self.looked.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).replace(now);
        let mut part = self.parts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let sessions = part.sessions;
        let taken = std::mem::replace(&mut *part, LivePart { sessions, ..LivePart::default() });
        drop(part);
        let mut all = Summary::new(SummaryPrecision::FILE);
        let mut groups = Vec::new();
        for (group, times) in CommandGroup::ALL.into_iter().zip(&taken.groups).filter(|(_, times)| times.count() > 0) {
            let DurationStatistics { count, p50, p95, p99, .. } = times.figures();
            groups.push(LiveGroup { group, commands: count, p50, p95, p99 });
            if group.in_headline() {
                all.merge(times);
            }
        }
        let all = all.figures();
        EngineSnapshot {
            phase: PHASES[usize::from(self.phase.load(Relaxed))],
            users_planned: self.users.load(Relaxed),
            sessions: sessions.clamp(0, u32::MAX.into()) as u32,
            over: before.map_or(Duration::ZERO, |before| now - before),
            commands: groups.iter().map(|group| group.commands).sum(),
            operations: taken.operations,
            errors: taken.errors,
            unexpected: taken.unexpected,
            statuses: taken.statuses.list.into_iter().collect(),
            failures: taken.failures,
            bytes_read: taken.bytes_read,
            bytes_written: taken.bytes_written,
            p50: all.p50,
            p95: all.p95,
            groups,
        }
    }

    pub(crate) fn enter(&self, phase: EnginePhase, users: u32) {
        self.users.store(users, Relaxed);
        let number = PHASES.iter().position(|known| *known == phase).unwrap_or(0);
        self.phase.store(number as u8, Relaxed);
    }

    pub(crate) fn users(&self) -> u32 {
        self.users.load(Relaxed)
    }

    pub(crate) fn take(&self) -> LivePart {
        std::mem::take(&mut *self.parts.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    pub(crate) fn publish(&self, part: &mut LivePart) {
        let mut shared = self.parts.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for (mine, theirs) in shared.groups.iter_mut().zip(part.groups.iter_mut()) {
            mine.merge(theirs);
            *theirs = Summary::new(SummaryPrecision::FILE);
        }
        shared.sessions += std::mem::take(&mut part.sessions);
        shared.operations += std::mem::take(&mut part.operations);
        shared.errors += std::mem::take(&mut part.errors);
        shared.unexpected += std::mem::take(&mut part.unexpected);
        shared.statuses.take_from(&mut part.statuses);
        shared.failures += std::mem::take(&mut part.failures);
        shared.bytes_read += std::mem::take(&mut part.bytes_read);
        shared.bytes_written += std::mem::take(&mut part.bytes_written);
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LivePart {
    groups: [Summary; CommandGroup::ALL.len()],
    /// Sessions connected minus sessions ended.
    pub(crate) sessions: i64,
    pub(crate) operations: u64,
    pub(crate) unexpected: u64,
    errors: u64,
    statuses: Statuses,
    pub(crate) failures: u64,
    bytes_read: u64,
    bytes_written: u64,
}

impl Default for LivePart {
    fn default() -> LivePart {
        LivePart {
            groups: std::array::from_fn(|_| Summary::new(SummaryPrecision::FILE)),
            sessions: 0,
            operations: 0,
            unexpected: 0,
            errors: 0,
            statuses: Statuses::default(),
            failures: 0,
            bytes_read: 0,
            bytes_written: 0,
        }
    }
}

impl LivePart {
    pub(crate) fn commands(&self) -> u64 {
        self.groups.iter().map(|times| times.count()).sum()
    }

    pub(crate) fn answered(&mut self, group: CommandGroup, time: Duration, error: Option<NtStatus>) {
        self.groups[group as usize].record(Nanos::from(time));
        if let Some(status) = error {
            self.errors += 1;
            self.statuses.add(status, 1);
        }
    }

    pub(crate) fn moved(&mut self, performed: &Performed) {
        self.bytes_read += performed.bytes_read;
        self.bytes_written += performed.bytes_written;
    }
}

/// Error counts by status. A list, because there are few, and because it keeps its capacity when drained: a worker only
/// allocates for a new status.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Statuses {
    list: Vec<(NtStatus, u64)>,
}

impl Statuses {
    fn add(&mut self, status: NtStatus, count: u64) {
        match self.list.iter().position(|(known, _)| *known == status) {
            Some(i) => self.list[i].1 += count,
            None if self.list.len() < STATUSES_MAX => self.list.push((status, count)),
            None => {}
        }
    }

    fn take_from(&mut self, other: &mut Statuses) {
        other.list.drain(..).for_each(|(status, count)| self.add(status, count));
    }
}

pub(super) const LOOK: Duration = Duration::from_millis(20);

pub(super) struct Meter {
    users: u32,
    window: MeasurementWindow,
    phase: EnginePhase,
    began: Option<ProcessTime>,
    used: Option<ProcessTime>,
}

impl Meter {
    pub(super) fn new(users: u32, window: MeasurementWindow) -> Meter {
        Meter { users, window, phase: EnginePhase::Warmup, began: None, used: None }
    }

    pub(super) fn wait(&self) -> Duration {
        let next = match self.phase {
            EnginePhase::Warmup => self.window.start,
            EnginePhase::Measuring => self.window.end,
            _ => return LOOK,
        };
        next.saturating_duration_since(Instant::now()).min(LOOK)
    }

    pub(super) fn look(&mut self, surroundings: &mut Surroundings<'_>, over: bool) {
        let now = Instant::now();
        if self.phase == EnginePhase::Warmup && now >= self.window.start {
            self.phase = EnginePhase::Measuring;
            self.began = Some(ProcessTime::now());
            surroundings.live.enter(self.phase, self.users);
            surroundings.hooks.measuring_begins();
        }
        if matches!(self.phase, EnginePhase::Warmup | EnginePhase::Measuring) && (over || now >= self.window.end) {
            self.used = self.began.map(|began| ProcessTime::now().since(began));
            self.phase = EnginePhase::Ending;
            surroundings.live.enter(self.phase, self.users);
        }
    }

    /// Returns the processor time of the measured part, which may have been cut short.
    pub(super) fn finish(mut self, surroundings: &mut Surroundings<'_>) -> ProcessTime {
        self.look(surroundings, true);
        if self.began.is_some() {
            surroundings.hooks.measuring_ends();
        }
        self.used.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_takes_what_came_since_the_last_one() {
        let live = LiveFigures::default();
        let mut worker = LivePart { sessions: 3, ..LivePart::default() };
        for _ in 0..20 {
            worker.answered(CommandGroup::Read, Duration::from_millis(2), None);
        }
        worker.answered(CommandGroup::OpenClose, Duration::from_millis(1), Some(NtStatus::OBJECT_NAME_NOT_FOUND));
        worker.moved(&Performed { bytes_read: 4096, ..Performed::DONE });
        live.publish(&mut worker);
        live.enter(EnginePhase::Measuring, 4);
        let first = live.look();
        assert_eq!((first.phase, first.users_planned, first.sessions), (EnginePhase::Measuring, 4, 3));
        assert_eq!((first.commands, first.errors, first.bytes_read), (21, 1, 4096));
        assert_eq!(first.statuses, [(NtStatus::OBJECT_NAME_NOT_FOUND, 1)].into());
        // All but one are in the 2 ms bin, which is 1.6% wide.
        let near = |time: Option<Nanos>| time.is_some_and(|time| (time.0 - 2_000_000).abs() <= 32_000);
        assert!(near(first.p50) && near(first.p95), "{:?} {:?}", first.p50, first.p95);
        let groups: Vec<_> = first.groups.iter().map(|g| (g.group, g.commands, g.p95.is_some())).collect();
        assert_eq!(groups, [(CommandGroup::OpenClose, 1, false), (CommandGroup::Read, 20, true)]);
        let second = live.look();
        assert_eq!((second.commands, second.sessions, second.groups.len()), (0, 3, 0));
        assert!(second.statuses.is_empty());
    }

    #[test]
    fn errors_of_all_workers_add_up_by_status_and_are_bounded() {
        let live = LiveFigures::default();
        let mut workers = [LivePart::default(), LivePart::default()];
        let kinds = STATUSES_MAX as u32 + 10;
        for (count, worker) in (2..).zip(&mut workers) {
            for status in (0..kinds).flat_map(|kind| std::iter::repeat_n(NtStatus(0xc000_0000 + kind), count)) {
                worker.answered(CommandGroup::Locking, Duration::from_millis(1), Some(status));
            }
            live.publish(worker);
        }
        let seen = live.look();
        assert_eq!(seen.errors, 5 * u64::from(kinds));
        assert_eq!(seen.statuses, (0..STATUSES_MAX as u32).map(|kind| (NtStatus(0xc000_0000 + kind), 5)).collect());
    }

    #[test]
    fn a_status_that_is_known_is_counted_without_allocating() {
        let live = LiveFigures::default();
        let mut worker = LivePart::default();
        worker.answered(CommandGroup::Read, Duration::from_millis(1), Some(NtStatus::END_OF_FILE));
        let room = |worker: &LivePart| (worker.statuses.list.as_ptr(), worker.statuses.list.capacity());
        let before = room(&worker);
        for _ in 0..10 {
            live.publish(&mut worker);
            worker.answered(CommandGroup::Read, Duration::from_millis(1), Some(NtStatus::END_OF_FILE));
        }
        assert_eq!(room(&worker), before);
    }

    #[test]
    fn groups_index_their_table() {
        assert!(CommandGroup::ALL.iter().enumerate().all(|(i, group)| *group as usize == i));
    }
}
