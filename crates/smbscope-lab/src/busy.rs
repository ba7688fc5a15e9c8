//! CPU load that competes with the server.

use crate::LabError;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Each period's work is done in one piece. The kernel's time slices are a few milliseconds.
const PERIOD: Duration = Duration::from_millis(10);

/// Threads per core for a load of 100%. A single thread would share the core equally with a server.
const STARVING: usize = 4;

#[derive(Debug)]
pub(crate) struct CpuStressor(Arc<AtomicBool>);

impl CpuStressor {
    /// Uses `percent` of every available core with pinned threads: one per core, and several at 100%.
    pub(crate) fn start(percent: u8) -> Result<CpuStressor, LabError> {
        let failed = |error: io::Error| LabError::Unavailable(format!("cannot keep the cores busy: {error}"));
        let done = Arc::new(AtomicBool::new(false));
        let busy = CpuStressor(Arc::clone(&done));
        let cores = cores().map_err(failed)?;
        let threads = if percent >= 100 { STARVING } else { 1 };
        for core in cores.into_iter().flat_map(|core| std::iter::repeat_n(core, threads)) {
            let done = Arc::clone(&done);
            let work = move || {
                bind(core);
                work(percent, &done);
            };
            thread::Builder::new().name("lab-busy".to_owned()).stack_size(64 << 10).spawn(work).map_err(failed)?;
        }
        Ok(busy)
    }
}

impl Drop for CpuStressor {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(target_os = "linux")]
fn cores() -> io::Result<Vec<usize>> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let cores = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core)).collect())
}

#[cfg(not(target_os = "linux"))]
fn cores() -> io::Result<Vec<usize>> {
    Ok((0..thread::available_parallelism()?.get()).collect())
}

#[cfg(target_os = "linux")]
fn bind(core: usize) {
    let mut one = rustix::thread::CpuSet::new();
    one.set(core);
    let _ = rustix::thread::sched_setaffinity(None, &one);
}

#[cfg(not(target_os = "linux"))]
fn bind(_core: usize) {}

/// Measures its share by the thread's own clock, so that other load on the core does not reduce the work.
fn work(percent: u8, done: &AtomicBool) {
    let share = PERIOD * u32::from(percent) / 100;
    let mut period = Instant::now();
    while !done.load(Ordering::Relaxed) {
        let until = own_time() + share;
        while own_time() < until {
            for number in 0..1000u32 {
                black_box(number);
            }
        }
        period += PERIOD;
        match period.checked_duration_since(Instant::now()) {
            Some(rest) => thread::sleep(rest),
            None => period = Instant::now(),
        }
    }
}

fn own_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs().try_into().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_100_percent_another_thread_on_the_core_gets_its_turn_behind_four() {
        let measured = || {
            let core = cores().expect("this process runs on one")[0];
            thread::spawn(move || {
                bind(core);
                let _busy = CpuStressor::start(100).expect("threads can be made");
                let (begun, started) = (own_time(), Instant::now());
                while started.elapsed() < Duration::from_millis(600) {
                    black_box(started);
                }
                (own_time() - begun).as_secs_f64() / started.elapsed().as_secs_f64()
            })
        };
        // A fair scheduler gives it a fifth. Other load on this machine affects both sides alike.
        let share = measured().join().expect("it ends");
        assert!(share < 0.4, "{share}");
    }

    /// 40% of 300 ms are 120 ms: less on a busy core, and never more than one period above.
    #[test]
    fn a_share_of_the_time_is_used() {
        let done = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&done);
        let worker = thread::spawn(move || {
            work(40, &other);
            own_time()
        });
        let started = Instant::now();
        thread::sleep(Duration::from_millis(300));
        done.store(true, Ordering::Relaxed);
        let used = worker.join().expect("it ends");
        assert!(used <= (started.elapsed() + 2 * PERIOD).mul_f64(0.45), "{used:?} of {:?}", started.elapsed());
        assert!(used >= Duration::from_millis(20), "{used:?}");
    }
}
