//! State that the users of one worker share during a load point.

use super::control::LoadPointControl;
use super::plan::RampPlan;
use super::recorder::{LoadPointRecorder, MeasurementWindow};
use super::schedule::{Appointments, LoadSchedule};
use super::session::SessionFactory;
use super::timers::{Timers, now};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use tokio::sync::Semaphore;

/// State that all workers share for their whole life.
pub(crate) struct Common<C> {
    pub(crate) plan: RampPlan,
    pub(crate) connector: C,
    pub(crate) turns: Semaphore,
    pub(crate) flows: AtomicU64,
}

/// How a user's work ended.
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

    /// Allocates a connection number, starting at 1.
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

    /// Returns the time at which the last user ended.
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
