//! Progress of a run: position in the ramp, counts since the last update, finished load points, and the processor time
//! of this process, which Linux provides per thread (`/proc/self/task/…/schedstat`).

use smbscope_load::engine::{self, LIMITED_ABOVE};
use smbscope_load::prepare;
use smbscope_report::bench;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Observes a run on the thread that called it. Errors of the display must not end the measurement, so there are none
/// to return.
pub trait BenchObserver {
    fn preparing(&mut self, made: &prepare::PrepareProgress) {
        let _ = made;
    }

    fn update(&mut self, snapshot: RampSnapshot) {
        let _ = snapshot;
    }

    fn point_done(&mut self, run: &bench::BenchRun) {
        let _ = run;
    }

    fn note(&mut self, text: &str) {
        let _ = text;
    }

    /// Waits until then, or until the user wants to stop.
    fn wait(&mut self, until: Instant) -> Wish {
        thread::sleep(until.saturating_duration_since(Instant::now()));
        Wish::GoOn
    }
}

impl BenchObserver for () {}

/// Observes a series of launches.
pub trait LaunchObserver {
    /// `number` is 0 for a launch that is not measured.
    fn launched(&mut self, number: u32, elapsed: Duration);

    /// Called with a limitation of the result, as a sentence without the full stop.
    fn note(&mut self, text: &str);
}

impl LaunchObserver for () {
    fn launched(&mut self, _: u32, _: Duration) {}

    fn note(&mut self, _: &str) {}
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    GoOn,
    Stop,
}

/// The part of the display that stays the same throughout the run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heading {
    /// Example: `netbench-like`.
    pub workload: String,
    /// Example: `smb://share@127.0.0.1:14450/share, SMB 3.1.1`.
    pub target: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RampPosition {
    pub number: u32,
    /// Number of load points. `None` during a capacity search.
    pub of: Option<u32>,
    pub users: u32,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct RampSnapshot {
    pub point: RampPosition,
    /// Time until the phase ends and its whole length, if known.
    pub remaining: Option<(Duration, Duration)>,
    pub live: engine::EngineSnapshot,
    pub cpu: Option<Cpu>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cpu {
    pub percent: f64,
    /// Of the busiest thread, in percent of one core.
    pub busiest_percent: f64,
    pub limited: bool,
}

impl RampSnapshot {
    pub fn per_second(&self, count: u64) -> f64 {
        let seconds = self.live.over.as_secs_f64();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }
}

type Threads = BTreeMap<u64, u64>;

#[derive(Debug, Default)]
pub(crate) struct CpuMeter {
    before: Option<(Instant, Threads)>,
}

impl CpuMeter {
    pub(crate) fn look(&mut self) -> Option<Cpu> {
        let now = Instant::now();
        let threads = threads(Path::new("/proc/self/task"))?;
        let (then, before) = self.before.replace((now, threads.clone()))?;
        between(&before, &threads, now - then)
    }
}

fn between(before: &Threads, after: &Threads, over: Duration) -> Option<Cpu> {
    let whole = over.as_nanos() as f64;
    if whole <= 0.0 {
        return None;
    }
    let cost = |(thread, ns): (&u64, &u64)| ns.saturating_sub(before.get(thread).copied().unwrap_or(0)) as f64 / whole;
    let shares: Vec<f64> = after.iter().map(cost).collect();
    let busiest = shares.iter().copied().fold(0.0, f64::max);
    Some(Cpu {
        percent: 100.0 * shares.iter().sum::<f64>(),
        busiest_percent: 100.0 * busiest,
        limited: busiest > LIMITED_ABOVE,
    })
}

fn threads(tasks: &Path) -> Option<Threads> {
    let mut found = Threads::new();
    for task in fs::read_dir(tasks).ok()?.flatten() {
        let thread: Option<u64> = task.file_name().to_str().and_then(|name| name.parse().ok());
        // The file of a thread that has just ended is gone.
        let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        let on_processor: Option<u64> = text.split(' ').next().and_then(|ns| ns.parse().ok());
        found.extend(thread.zip(on_processor));
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_thread_tells_whether_the_client_is_the_limit() {
        let before = Threads::from([(1, 1_000_000_000), (2, 0), (4, 5)]);
        // In two seconds: 1.9 s and 0.5 s, 0.1 s of a new thread, and one that has ended.
        let after = Threads::from([(1, 2_900_000_000), (2, 500_000_000), (3, 100_000_000)]);
        let cpu = between(&before, &after, Duration::from_secs(2)).unwrap();
        assert!((cpu.percent - 125.0).abs() < 1e-9 && (cpu.busiest_percent - 95.0).abs() < 1e-9, "{cpu:?}");
        assert!(cpu.limited);
        assert_eq!(between(&before, &after, Duration::ZERO), None);
    }

    #[test]
    fn work_shows_where_linux_tells() {
        let mut meter = CpuMeter::default();
        assert_eq!(meter.look(), None);
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(30) {
            std::hint::black_box(start);
        }
        match meter.look() {
            Some(cpu) => assert!(cpu.percent > 0.0),
            None => println!("skipped: no /proc/self/task"),
        }
    }
}
