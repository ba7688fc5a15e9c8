//! Counters of this machine (proc(5)).

use super::counters::{Counters, Disk, LinkBytes};
use procfs::{Current, CurrentSI, KernelStats, Meminfo};
use std::path::Path;

pub(super) const HAS_COUNTERS: bool = true;

/// Sector size of /proc/diskstats, independent of the disk's (Documentation/admin-guide/iostats.rst of Linux).
const SECTOR: f64 = 512.0;

pub(super) fn counters() -> Result<Counters, String> {
    let unreadable = |error: procfs::ProcError| format!("/proc can't be read: {error}");
    let mut counters = Counters::now();
    let stat = KernelStats::current().map_err(unreadable)?;
    let ticks = procfs::ticks_per_second() as f64;
    for (number, cpu) in stat.cpu_time.iter().enumerate() {
        let idle = (cpu.idle + cpu.iowait.unwrap_or(0)) as f64 / ticks;
        // User time includes guest time.
        let parts = [cpu.irq, cpu.softirq, cpu.steal].map(|part| part.unwrap_or(0));
        let busy = (cpu.user + cpu.nice + cpu.system + parts.iter().sum::<u64>()) as f64 / ticks;
        counters.processors.insert(number.to_string(), (busy, busy + idle));
    }
    let memory = Meminfo::current().map_err(unreadable)?;
    counters.memory = memory.mem_available.map(|available| memory.mem_total.saturating_sub(available) as f64);
    for disk in procfs::diskstats().map_err(unreadable)? {
        // Partitions and stacked devices would count transfers twice.
        if !Path::new("/sys/block").join(&disk.name).join("device").exists() {
            continue;
        }
        counters.disks.insert(
            disk.name,
            Disk {
                read: disk.sectors_read as f64 * SECTOR,
                written: disk.sectors_written as f64 * SECTOR,
                operations: (disk.reads + disk.writes) as f64,
                weighted: disk.weighted_time_in_progress as f64 / 1e3,
                busy: disk.time_in_progress as f64 / 1e3,
            },
        );
    }
    // Kernels may lack pressure stall information.
    counters.cpu_waiting = procfs::CpuPressure::current().ok().map(|pressure| pressure.some.total as f64 / 1e6);
    let network = procfs::net::dev_status().map_err(unreadable)?;
    for (name, device) in &network {
        if let Some(speed) = link_speed(name) {
            let (received, sent) = (device.recv_bytes as f64, device.sent_bytes as f64);
            counters.links.insert(name.clone(), LinkBytes { received, sent, speed });
        }
    }
    let sums = network.values().fold((0, 0), |sums, device| (sums.0 + device.recv_bytes, sums.1 + device.sent_bytes));
    counters.network = Some((sums.0 as f64, sums.1 as f64));
    Ok(counters)
}

/// Returns the counters of an interface with this speed in bytes per second.
pub(super) fn link(name: &str, speed: f64) -> Option<(String, LinkBytes)> {
    let device = procfs::net::dev_status().ok()?.remove(name)?;
    Some((name.to_owned(), LinkBytes { received: device.recv_bytes as f64, sent: device.sent_bytes as f64, speed }))
}

/// Returns the seconds that the threads of these processes were ready to run and waited for a core
/// (Documentation/scheduler/sched-stats.rst of Linux). Processes that have ended do not count.
pub(super) fn cpu_wait(pids: &[u32]) -> Option<f64> {
    let waited = |task: std::fs::DirEntry| -> Option<u64> {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    let tasks = |pid: &u32| std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let times: Vec<u64> = pids.iter().flat_map(tasks).filter_map(waited).collect();
    (!times.is_empty()).then(|| times.into_iter().fold(0u64, u64::saturating_add) as f64 / 1e9)
}

/// Returns the speed of a physical interface in bytes per second. Virtual ones report none or an invented one.
fn link_speed(name: &str) -> Option<f64> {
    let folder = Path::new("/sys/class/net").join(name);
    let megabits: f64 = std::fs::read_to_string(folder.join("speed")).ok()?.trim().parse().ok()?;
    (folder.join("device").exists() && megabits > 0.0).then_some(megabits * 1e6 / 8.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// This process waits at least once while more threads than cores are busy.
    #[test]
    fn waits_for_a_processor_are_counted() {
        let own = [std::process::id()];
        let before = cpu_wait(&own).expect("Linux has schedstat");
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 0..=cores {
                scope.spawn(|| {
                    let begin = Instant::now();
                    while begin.elapsed() < Duration::from_millis(200) {
                        std::hint::black_box(begin);
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(150));
            assert!(cpu_wait(&own).expect("Linux has schedstat") > before + 0.01);
        });
    }

    #[test]
    fn this_machine_has_processors_and_memory_in_use() {
        let counters = super::counters().expect("Linux has /proc");
        assert!(!counters.processors.is_empty());
        assert!(counters.processors.values().all(|(busy, all)| busy <= all));
        assert!(counters.memory > Some(1e6));
    }
}
