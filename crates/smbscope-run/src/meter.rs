//! Processor time of this process by thread, from `/proc/self/task/…/schedstat`. Other systems than Linux provide no
//! figures.

use crate::progress::Cpu;
use smbscope_load::engine::LIMITED_ABOVE;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// CPU time in nanoseconds, by thread ID.
type Threads = BTreeMap<u64, u64>;

#[derive(Debug, Default)]
pub(crate) struct CpuMeter {
    before: Option<(Instant, Threads)>,
}

impl CpuMeter {
    /// Returns the usage since the last call. Returns `None` on the first one.
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
