//! What the users of one worker share during a load point.

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

/// What all workers share for as long as they live.
pub(crate) struct Common<C> {
    pub(crate) plan: RampPlan,
    pub(crate) connector: C,
    /// Connects that may go on at the same time.
    pub(crate) turns: Semaphore,
    pub(crate) flows: AtomicU64,
}

/// How a user's work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UserExit {
    /// The load point is over.
    Over,
    /// The script has no more steps.
    Done,
    /// There is no session: why.
    Failed(String),
}

/// What the users of a worker share during a load point.
pub(crate) struct WorkerLoadPoint<C> {
    common: Arc<Common<C>>,
    pub(crate) control: Arc<LoadPointControl>,
    timers: Rc<Timers>,
    pub(crate) recorder: RefCell<LoadPointRecorder>,
    pub(crate) begin: Cell<Instant>,
    pub(crate) window: Cell<MeasurementWindow>,
    /// Of the load point.
    schedule: Cell<LoadSchedule>,
    /// Of all workers.
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

    /// The number of a connection that is made now, from 1.
    pub(crate) fn next_flow(&self) -> u64 {
        self.flows.fetch_add(1, Relaxed) + 1
    }

    /// What was counted, when all users have left.
    pub(crate) fn take_recorder(&self) -> LoadPointRecorder {
        let empty = self.recorder.borrow().empty();
        self.recorder.replace(empty)
    }

    /// The intended starts of a user.
    pub(crate) fn appointments(&self, number: u32) -> Appointments {
        Appointments::new(self.schedule.get(), number, self.sessions, self.begin.get(), self.plan.seed)
    }

    /// The load begins, and the measured part is fixed.
    pub(crate) fn start(&self, begin: Instant, window: MeasurementWindow, schedule: LoadSchedule) {
        self.schedule.set(schedule);
        self.begin.set(begin);
        self.window.set(window);
        self.recorder.borrow_mut().set_window(window);
    }

    /// Waits until users begin no more operations.
    pub(crate) async fn ended(&self) {
        self.wait_until(self.window.get().end).await;
    }

    /// When users ended, of whom this is how.
    pub(crate) fn last_of<T>(&self, users: &[(T, Option<UserExit>)]) -> Instant {
        let window = self.window.get();
        self.control.look_at_stop(now());
        if let Some((_, at)) = self.control.why() {
            return at.min(window.end);
        }
        // Who has no more to do, or no session, ended just now at the latest.
        let all_left = users.iter().all(|(_, left)| matches!(left, Some(UserExit::Done | UserExit::Failed(_))));
        if all_left { now().min(window.end) } else { window.end }
    }

    /// Whether no operation is begun any more. Who is the first to notice that the caller wants to end notes when that was:
    /// fast users are gone before the engine looks, and what they did would be divided by the whole time planned.
    pub(crate) fn is_over(&self, time: Instant) -> bool {
        self.control.look_at_stop(time);
        time >= self.window.get().end || self.control.is_over()
    }

    /// Waits, but not beyond the end of the load point, nor when it ends before its time; the time then.
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
