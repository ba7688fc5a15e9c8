//! State of a load point.
//!
//! [`LoadPointControl`] is shared by all workers: whether the load point continues, why it ended, and the counts for
//! its limits. [`WorkerLoadPoint`] is shared by the users of one worker.

use super::clocks::{Timers, now};
use super::hooks::StopFlag;
use super::plan::{ErrorLimit, LoadPointLimits, RampPlan};
use super::recorder::LoadPointRecorder;
use super::result::LoadPointEnd;
use super::schedule::{Appointments, LoadSchedule, MeasurementWindow};
use super::session::SessionFactory;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::{Semaphore, watch};

/// Number of operations from which the share of errors is checked.
const SHARE_FROM: u64 = 100;

#[derive(Debug)]
pub(crate) struct LoadPointControl {
    stop: StopFlag,
    limits: LoadPointLimits,
    over: AtomicBool,
    why: Mutex<Option<(LoadPointEnd, Instant)>>,
    wake: watch::Sender<bool>,
    operations: AtomicU64,
    errors: AtomicU64,
    errors_in_a_row: AtomicU64,
    /// Message of the last failed operation. Only present on a host, which reports its counts to the driver.
    last_failure: Option<Mutex<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct HostOperationCounts {
    pub(crate) operations: u64,
    pub(crate) errors: u64,
    pub(crate) last_failure: String,
}

impl HostOperationCounts {
    /// Returns the increase since an earlier count, with the latest failure message.
    pub(crate) fn since(&self, before: &HostOperationCounts) -> HostOperationCounts {
        HostOperationCounts {
            operations: self.operations.saturating_sub(before.operations),
            errors: self.errors.saturating_sub(before.errors),
            last_failure: self.last_failure.clone(),
        }
    }
}

impl LoadPointControl {
    /// Control for one of several hosts. The driver, which knows the counts of all hosts, checks the error limits.
    pub(crate) fn of_host(stop: StopFlag, limits: LoadPointLimits) -> LoadPointControl {
        let limits = LoadPointLimits { errors: None, ..limits };
        LoadPointControl { last_failure: Some(Mutex::default()), ..LoadPointControl::new(stop, limits) }
    }

    pub(crate) fn new(stop: StopFlag, limits: LoadPointLimits) -> LoadPointControl {
        LoadPointControl {
            last_failure: None,
            stop,
            limits,
            over: AtomicBool::new(false),
            why: Mutex::new(None),
            wake: watch::Sender::new(false),
            operations: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            errors_in_a_row: AtomicU64::new(0),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Relaxed) || self.stop.is_stopped()
    }

    pub(crate) fn finish(&self, why: LoadPointEnd, at: Instant) {
        let mut kept = self.why.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if kept.is_none() {
            *kept = Some((why, at));
        }
        self.over.store(true, Relaxed);
        self.wake.send_replace(true);
    }

    /// Wakes waiting users if the [`StopFlag`] is set. They record the time by their own clock.
    pub(crate) fn pass_on_stop(&self) {
        if self.stop.is_stopped() {
            self.wake.send_if_modified(|over| !std::mem::replace(over, true));
        }
    }

    pub(crate) fn look_at_stop(&self, now: Instant) {
        if self.stop.is_stopped() && !self.over.load(Relaxed) {
            self.finish(LoadPointEnd::Interrupted, now);
        }
    }

    pub(crate) fn why(&self) -> Option<(LoadPointEnd, Instant)> {
        self.why.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    pub(crate) fn ending(&self) -> watch::Receiver<bool> {
        self.wake.subscribe()
    }

    /// Counts another measured operation. Returns false, and ends the load point, if the limit is reached.
    pub(crate) fn may_begin(&self, now: Instant) -> bool {
        let Some(most) = self.limits.operations else { return true };
        if self.operations.fetch_add(1, Relaxed) < most {
            return true;
        }
        self.finish(LoadPointEnd::Done, now);
        false
    }

    pub(crate) fn succeeded(&self) {
        self.count_for_share();
        if self.limits.errors_in_a_row.is_some() && self.errors_in_a_row.load(Relaxed) > 0 {
            self.errors_in_a_row.store(0, Relaxed);
        }
    }

    pub(crate) fn tally(&self) -> HostOperationCounts {
        let last = self.last_failure.as_ref().map(|last| last.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        HostOperationCounts {
            operations: self.operations.load(Relaxed),
            errors: self.errors.load(Relaxed),
            last_failure: last.map_or_else(String::new, |last| last.clone()),
        }
    }

    pub(crate) fn add(&self, news: &HostOperationCounts, now: Instant) {
        self.operations.fetch_add(news.operations, Relaxed);
        let errors = self.errors.fetch_add(news.errors, Relaxed) + news.errors;
        if news.errors > 0 {
            self.look_at_errors(errors, &news.last_failure, now);
        }
    }

    /// Counts a failed operation. `how` is quoted if this exceeds a limit.
    pub(crate) fn failed(&self, how: &str, now: Instant) {
        self.count_for_share();
        if let Some(last) = &self.last_failure {
            how.clone_into(&mut last.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        }
        let errors = self.errors.fetch_add(1, Relaxed) + 1;
        self.look_at_errors(errors, how, now);
        if let Some(most) = self.limits.errors_in_a_row {
            let row = self.errors_in_a_row.fetch_add(1, Relaxed) + 1;
            if row >= most {
                let what = format!("{row} operations failed one after the other, the last one with {how}");
                self.finish(LoadPointEnd::Stopped(what), now);
            }
        }
    }

    fn look_at_errors(&self, errors: u64, how: &str, now: Instant) {
        let too_many = match self.limits.errors {
            Some(ErrorLimit::Count(most)) if errors >= most => Some(format!("{errors} operations failed")),
            Some(ErrorLimit::Share(most)) => {
                let operations = self.operations.load(Relaxed);
                let share = errors as f64 / operations as f64;
                let enough = operations >= SHARE_FROM && share > most;
                enough.then(|| format!("{errors} of {operations} operations failed ({:.1}%)", share * 100.0))
            }
            _ => None,
        };
        if let Some(what) = too_many {
            self.finish(LoadPointEnd::Stopped(format!("{what}, the last one with {how}")), now);
        }
    }

    /// Counts a completed operation for the share of errors, unless a limit on operations already counts them at their
    /// start.
    fn count_for_share(&self) {
        let counts = self.last_failure.is_some() || matches!(self.limits.errors, Some(ErrorLimit::Share(_)));
        if self.limits.operations.is_none() && counts {
            self.operations.fetch_add(1, Relaxed);
        }
    }
}

pub(crate) struct Common<C> {
    pub(crate) plan: RampPlan,
    pub(crate) connector: C,
    pub(crate) turns: Semaphore,
    pub(crate) flows: AtomicU64,
}

/// End of a user's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UserExit {
    Over,
    Done,
    Failed(String),
}

pub(crate) struct WorkerLoadPoint<C> {
    common: Arc<Common<C>>,
    pub(crate) control: Arc<LoadPointControl>,
    timers: Rc<Timers>,
    pub(crate) recorder: RefCell<LoadPointRecorder>,
    pub(crate) begin: Cell<Instant>,
    pub(crate) window: Cell<MeasurementWindow>,
    schedule: Cell<LoadSchedule>,
    sessions: u32,
}

impl<C> std::ops::Deref for WorkerLoadPoint<C> {
    type Target = Common<C>;

    fn deref(&self) -> &Common<C> {
        &self.common
    }
}

impl<C: SessionFactory> WorkerLoadPoint<C> {
    pub(crate) fn new(
        common: Arc<Common<C>>,
        control: Arc<LoadPointControl>,
        timers: Rc<Timers>,
        recorder: LoadPointRecorder,
        sessions: u32,
    ) -> WorkerLoadPoint<C> {
        let window = recorder.window();
        let schedule = Cell::new(common.plan.schedule);
        WorkerLoadPoint {
            common,
            schedule,
            control,
            timers,
            recorder: RefCell::new(recorder),
            begin: Cell::new(window.start),
            window: Cell::new(window),
            sessions,
        }
    }

    pub(crate) fn next_flow(&self) -> u64 {
        self.flows.fetch_add(1, Relaxed) + 1
    }

    pub(crate) fn take_recorder(&self) -> LoadPointRecorder {
        let empty = self.recorder.borrow().empty();
        self.recorder.replace(empty)
    }

    pub(crate) fn appointments(&self, number: u32) -> Appointments {
        Appointments::new(self.schedule.get(), number, self.sessions, self.begin.get(), self.plan.seed)
    }

    pub(crate) fn start(&self, begin: Instant, window: MeasurementWindow, schedule: LoadSchedule) {
        self.schedule.set(schedule);
        self.begin.set(begin);
        self.window.set(window);
        self.recorder.borrow_mut().set_window(window);
    }

    pub(crate) async fn ended(&self) {
        self.wait_until(self.window.get().end).await;
    }

    pub(crate) fn last_of<T>(&self, users: &[(T, Option<UserExit>)]) -> Instant {
        let window = self.window.get();
        self.control.look_at_stop(now());
        if let Some((_, at)) = self.control.why() {
            return at.min(window.end);
        }
        // Users who finished or lost their session ended just now at the latest.
        let all_left = users.iter().all(|(_, left)| matches!(left, Some(UserExit::Done | UserExit::Failed(_))));
        if all_left { now().min(window.end) } else { window.end }
    }

    /// Returns true once no more operations may start. The first caller to notice the stop flag records the time: fast
    /// users finish before the engine looks, and their operations would otherwise be divided by the whole planned
    /// duration.
    pub(crate) fn is_over(&self, time: Instant) -> bool {
        self.control.look_at_stop(time);
        time >= self.window.get().end || self.control.is_over()
    }

    /// Waits until `time`, or until the load point ends. Returns the current time.
    pub(crate) async fn wait_until(&self, time: Instant) -> Instant {
        let time = time.min(self.window.get().end);
        if time > now() && !self.control.is_over() {
            let mut ending = self.control.ending();
            tokio::select! {
                () = self.timers.sleep_until(time) => {}
                _ = ending.wait_for(|over| *over) => {}
            }
        }
        let time = now();
        self.control.look_at_stop(time);
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(limits: LoadPointLimits) -> LoadPointControl {
        LoadPointControl::new(StopFlag::new(), limits)
    }

    #[test]
    fn exactly_as_many_operations_begin_as_the_limit_allows() {
        let control = control(LoadPointLimits { operations: Some(3), ..LoadPointLimits::default() });
        let begun = (0..5).filter(|_| control.may_begin(Instant::now())).count();
        assert_eq!((begun, control.is_over()), (3, true));
        assert_eq!(control.why().map(|(why, _)| why), Some(LoadPointEnd::Done));
    }

    #[test]
    fn a_success_ends_a_row_of_errors() {
        let control = control(LoadPointLimits { errors_in_a_row: Some(3), ..LoadPointLimits::default() });
        let now = Instant::now();
        control.failed("a", now);
        control.failed("b", now);
        control.succeeded();
        control.failed("c", now);
        control.failed("d", now);
        assert!(!control.is_over());
        control.failed("e", now);
        let why = "3 operations failed one after the other, the last one with e";
        assert_eq!(control.why().map(|(why, _)| why), Some(LoadPointEnd::Stopped(why.to_owned())));
    }

    #[test]
    fn errors_of_several_hosts_count_together() {
        let limits = LoadPointLimits { errors: Some(ErrorLimit::Count(5)), ..LoadPointLimits::default() };
        let hosts = [(); 2].map(|()| LoadPointControl::of_host(StopFlag::new(), limits));
        let whole = control(limits);
        let now = Instant::now();
        for host in &hosts {
            (0..10).for_each(|_| host.succeeded());
            (0..4).for_each(|_| host.failed("x", now));
            assert!(!host.is_over());
        }
        let tallies = hosts.map(|host| host.tally());
        assert_eq!(tallies[0], HostOperationCounts { operations: 14, errors: 4, last_failure: "x".to_owned() });
        whole.add(&tallies[0], now);
        assert!(!whole.is_over());
        whole.add(&tallies[1], now);
        assert_eq!(
            whole.why().map(|(why, _)| why),
            Some(LoadPointEnd::Stopped("8 operations failed, the last one with x".to_owned()))
        );
    }

    #[test]
    fn a_share_of_errors_counts_from_the_hundredth_operation_on() {
        let control = control(LoadPointLimits { errors: Some(ErrorLimit::Share(0.05)), ..LoadPointLimits::default() });
        let now = Instant::now();
        (0..10).for_each(|_| control.failed("x", now));
        assert!(!control.is_over());
        (0..89).for_each(|_| control.succeeded());
        assert!(!control.is_over());
        control.failed("x", now);
        let why = "11 of 100 operations failed (11.0%), the last one with x";
        assert_eq!(control.why().map(|(why, _)| why), Some(LoadPointEnd::Stopped(why.to_owned())));
    }
}
