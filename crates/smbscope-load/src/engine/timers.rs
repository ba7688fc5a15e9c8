//! Precise wake-ups for users. The runtime's timers have a resolution of 1 ms, many times the response time of a fast
//! server, and such a delay would look like waiting for the server. Linux timers have the resolution of the clock
//! (timerfd_create(2)): each worker has one, set to the earliest moment that a user waits for.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;
use std::io;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// Returns the time by the clock of all measurements, which may be simulated in tests.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Time {
    Real,
    /// Jumps to the next event.
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
        // Cancelled waits left useless entries.
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

#[cfg(not(target_os = "linux"))]
mod timer {
    use std::io;
    use std::time::Instant;

    pub(super) enum SystemTimer {}

    impl SystemTimer {
        pub(super) fn new() -> io::Result<SystemTimer> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn set(&self, _at: Instant) {
            match *self {}
        }

        pub(super) async fn expired(&self) {
            match *self {}
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::time::Duration;

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
}
