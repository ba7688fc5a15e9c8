//! Clocks of this host: precise wake-ups, wall-clock time, and processor time.
//!
//! Precise wake-ups for users. The runtime's timers have a resolution of 1 ms, many times the response time of a fast
//! server, and such a delay would look like waiting for the server. Linux timers have the resolution of the clock
//! (timerfd_create(2)): each worker has one, set to the earliest moment that a user waits for. Elsewhere a thread sleeps
//! until then.

pub(crate) use processor::thread_time;
use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// Returns the time by the clock of all measurements, which may be simulated in tests.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    Real,
    #[cfg(test)]
    Simulated,
}

impl Time {
    pub(crate) fn runtime(self) -> io::Result<Runtime> {
        let mut builder = Builder::new_current_thread();
        builder.enable_all();
        #[cfg(test)]
        if self == Time::Simulated {
            builder.start_paused(true);
        }
        builder.build()
    }

    /// Creates the timers of a worker. Must be called within its runtime.
    pub(crate) fn timers(self) -> Timers {
        let timer = match self {
            Time::Real => timer::SystemTimer::new().ok(),
            #[cfg(test)]
            Time::Simulated => None,
        };
        Timers { timer, waiting: RefCell::default() }
    }
}

pub(crate) struct Timers {
    /// `None` without a precise timer; the runtime's timers are used instead.
    timer: Option<timer::SystemTimer>,
    waiting: RefCell<BinaryHeap<Reverse<TimerWaiter>>>,
}

struct TimerWaiter {
    until: Instant,
    wake: oneshot::Sender<()>,
}

impl Timers {
    /// Waits until a moment. Requires [`Timers::run`] to be polled concurrently.
    pub(crate) async fn sleep_until(&self, until: Instant) {
        let Some(timer) = &self.timer else { return tokio::time::sleep_until(until.into()).await };
        let (wake, woken) = oneshot::channel();
        let first = {
            let mut waiting = self.waiting.borrow_mut();
            let first = waiting.peek().is_none_or(|Reverse(earliest)| until < earliest.until);
            waiting.push(Reverse(TimerWaiter { until, wake }));
            first
        };
        if first {
            timer.set(until);
        }
        // The sender is only dropped unused along with the timers.
        let _ = woken.await;
    }

    pub(crate) async fn run(&self) -> Infallible {
        let Some(timer) = &self.timer else { return std::future::pending().await };
        // Drop the entries of cancelled waits.
        self.waiting.borrow_mut().retain(|Reverse(waiting)| !waiting.wake.is_closed());
        loop {
            timer.expired().await;
            let mut waiting = self.waiting.borrow_mut();
            let now = now();
            while waiting.peek().is_some_and(|Reverse(earliest)| earliest.until <= now) {
                if let Some(Reverse(due)) = waiting.pop() {
                    let _ = due.wake.send(());
                }
            }
            if let Some(Reverse(next)) = waiting.peek() {
                timer.set(next.until);
            }
        }
    }
}

impl PartialEq for TimerWaiter {
    fn eq(&self, other: &TimerWaiter) -> bool {
        self.until == other.until
    }
}

impl Eq for TimerWaiter {}

impl PartialOrd for TimerWaiter {
    fn partial_cmp(&self, other: &TimerWaiter) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TimerWaiter {
    fn cmp(&self, other: &TimerWaiter) -> std::cmp::Ordering {
        self.until.cmp(&other.until)
    }
}

#[cfg(target_os = "linux")]
mod timer {
    use rustix::fd::OwnedFd;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };
    use std::io;
    use std::time::{Duration, Instant};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    pub(super) struct SystemTimer(AsyncFd<OwnedFd>);

    impl SystemTimer {
        #[expect(
            deprecated,
            reason = "what replaces it is unsafe, as a type could give out another descriptor; OwnedFd can't"
        )]
        pub(super) fn new() -> io::Result<SystemTimer> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            Ok(SystemTimer(AsyncFd::with_interest(
                timerfd_create(TimerfdClockId::Monotonic, flags)?,
                Interest::READABLE,
            )?))
        }

        pub(super) fn set(&self, at: Instant) {
            // Zero would disarm the timer.
            let left = at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
            let value = Timespec {
                tv_sec: left.as_secs().min(i64::MAX as u64) as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)
                .expect("a timer of our own takes every time of less than 2^63 seconds");
        }

        pub(super) async fn expired(&self) {
            loop {
                // The runtime is shutting down, and no task is left to wake.
                let Ok(mut ready) = self.0.readable().await else { return std::future::pending().await };
                let mut count = [0; 8];
                let read = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut count)?));
                if matches!(read, Ok(Ok(_))) {
                    return;
                }
            }
        }
    }
}

/// A thread that sleeps in small pieces: the system's sleep is precise, while waits that end early are not.
#[cfg(not(target_os = "linux"))]
mod timer {
    use std::io;
    use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
    use std::thread;
    use std::time::{Duration, Instant};
    use tokio::sync::Notify;

    /// An earlier moment that is set during a piece is late by this time at most.
    const PIECE: Duration = Duration::from_micros(500);

    pub(super) struct SystemTimer(Arc<Shared>);

    #[derive(Default)]
    struct Shared {
        state: Mutex<State>,
        changed: Condvar,
        expired: Notify,
    }

    #[derive(Default)]
    struct State {
        at: Option<Instant>,
        ended: bool,
    }

    impl SystemTimer {
        pub(super) fn new() -> io::Result<SystemTimer> {
            let shared = Arc::<Shared>::default();
            let own = Arc::clone(&shared);
            thread::Builder::new().name("timer".to_owned()).spawn(move || own.follow())?;
            Ok(SystemTimer(shared))
        }

        pub(super) fn set(&self, at: Instant) {
            self.0.state().at = Some(at);
            self.0.changed.notify_one();
        }

        pub(super) async fn expired(&self) {
            self.0.expired.notified().await;
        }
    }

    impl Drop for SystemTimer {
        fn drop(&mut self) {
            self.0.state().ended = true;
            self.0.changed.notify_one();
        }
    }

    impl Shared {
        fn state(&self) -> MutexGuard<'_, State> {
            self.state.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn follow(&self) {
            let mut state = self.state();
            while !state.ended {
                let Some(at) = state.at else {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    continue;
                };
                let left = at.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    state.at = None;
                    self.expired.notify_one();
                    continue;
                }
                drop(state);
                thread::sleep(left.min(PIECE));
                state = self.state();
            }
        }
    }
}

/// Share of processor time above which the busiest worker, not the server, limited the load.
pub const LIMITED_ABOVE: f64 = 0.9;
/// Limit for the 99th percentile of the workers' wake-up delay. Above it, other programs occupied the client's
/// processors, and response times include the wait.
pub const LATE_ABOVE: Duration = Duration::from_millis(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ProcessTime {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
}

impl ProcessTime {
    pub(crate) fn now() -> ProcessTime {
        let whole = processor::process_time();
        let system = whole.mul_f64(system_share().unwrap_or(0.0));
        ProcessTime { user: whole - system, system }
    }

    pub(crate) fn add(self, other: ProcessTime) -> ProcessTime {
        ProcessTime { user: self.user + other.user, system: self.system + other.system }
    }

    pub(crate) fn since(self, before: ProcessTime) -> ProcessTime {
        ProcessTime { user: self.user.saturating_sub(before.user), system: self.system.saturating_sub(before.system) }
    }
}

#[cfg(unix)]
mod processor {
    use rustix::time::{ClockId, clock_gettime};
    use std::time::Duration;

    pub(super) fn process_time() -> Duration {
        read(ClockId::ProcessCPUTime)
    }

    pub(crate) fn thread_time() -> Duration {
        read(ClockId::ThreadCPUTime)
    }

    fn read(clock: ClockId) -> Duration {
        let time = clock_gettime(clock);
        Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, 999_999_999) as u32)
    }
}

/// Windows counts processor time in ticks of its clock, 15.6 ms.
#[cfg(windows)]
mod processor {
    use cpu_time::{ProcessTime, ThreadTime};
    use std::time::Duration;

    pub(super) fn process_time() -> Duration {
        ProcessTime::now().as_duration()
    }

    pub(crate) fn thread_time() -> Duration {
        ThreadTime::now().as_duration()
    }
}

/// Returns the share of processor time spent in the kernel, from fields utime and stime of proc(5), or `None` if the
/// system has no such file. Only their ratio is used, because their sum is coarser than the clock.
fn system_share() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The program name, in parentheses, may contain anything. After it, utime is the 12th and stime the 13th field.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11).map(|field| field.parse::<f64>().ok());
    let (user, system) = (fields.next()??, fields.next()??);
    (user + system > 0.0).then(|| system / (user + system))
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    instant: Instant,
    timestamp: Timestamp,
}

impl Clock {
    pub(crate) fn at(instant: Instant) -> Clock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { instant, timestamp: Timestamp(Nanos::from(since).0) }
    }

    /// Returns the clock of a peer that is behind this one by `by`.
    pub(crate) fn behind(self, by: Nanos) -> Clock {
        Clock { timestamp: Timestamp(self.timestamp.0.saturating_sub(by.0)), ..self }
    }

    pub(crate) fn instant(&self, at: Timestamp) -> Instant {
        let since = at.0.saturating_sub(self.timestamp.0);
        let distance = Duration::from_nanos(since.unsigned_abs());
        let instant = if since < 0 { self.instant.checked_sub(distance) } else { self.instant.checked_add(distance) };
        instant.unwrap_or(self.instant)
    }

    pub(crate) fn timestamp(&self, at: Instant) -> Timestamp {
        let since = match at.checked_duration_since(self.instant) {
            Some(later) => Nanos::from(later).0,
            None => -Nanos::from(self.instant - at).0,
        };
        Timestamp(self.timestamp.0.saturating_add(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_wake_in_the_order_of_their_moments_and_never_before() {
        let runtime = Time::Real.runtime().unwrap();
        let woken = RefCell::new(Vec::new());
        runtime.block_on(async {
            let timers = Time::Real.timers();
            let begin = now();
            let wait = |micros: u64| {
                let (timers, woken) = (&timers, &woken);
                async move {
                    let until = begin + Duration::from_micros(micros);
                    timers.sleep_until(until).await;
                    woken.borrow_mut().push((micros, now() >= until));
                }
            };
            let all = async { tokio::join!(wait(7_300), wait(400), wait(2_950), wait(0)) };
            tokio::select! {
                _ = all => {}
                never = timers.run() => match never {},
            }
        });
        assert_eq!(woken.into_inner(), [(0, true), (400, true), (2_950, true), (7_300, true)]);
    }

    #[test]
    fn a_busy_thread_is_on_a_processor_and_a_sleeping_one_is_not() {
        let (thread, process) = (thread_time(), ProcessTime::now());
        let begin = Instant::now();
        while thread_time() - thread < Duration::from_millis(30) {
            std::hint::black_box(begin.elapsed());
        }
        let used = ProcessTime::now().since(process);
        assert!(used.user + used.system >= Duration::from_millis(29), "{used:?}");
        let before = thread_time();
        std::thread::sleep(Duration::from_millis(50));
        assert!(thread_time() - before < Duration::from_millis(20));
    }
}
