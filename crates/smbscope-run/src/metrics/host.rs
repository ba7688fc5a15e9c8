//! Reads the counters of this machine (proc(5)).

use super::counters::{Counters, Disk};
use procfs::{Current, CurrentSI, KernelStats, Meminfo};
use std::path::Path;

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
    let network = procfs::net::dev_status().map_err(unreadable)?;
    let sums = network.values().fold((0, 0), |sums, device| (sums.0 + device.recv_bytes, sums.1 + device.sent_bytes));
    counters.network = Some((sums.0 as f64, sums.1 as f64));
    Ok(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_processors_and_memory_in_use() {
        let counters = counters().expect("Linux has /proc");
        assert!(!counters.processors.is_empty());
        assert!(counters.processors.values().all(|(busy, all)| busy <= all));
        assert!(counters.memory > Some(1e6));
    }
}
