//! Processor time of the client: of the process and of single threads.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::time::Duration;

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
        let whole = read(ClockId::ProcessCPUTime);
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

pub(crate) fn thread_time() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, 999_999_999) as u32)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

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
