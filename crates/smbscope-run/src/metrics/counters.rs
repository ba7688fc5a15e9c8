//! Cumulative counters of a server, and the rates between two readings.

use smbscope_lab::StorageFigures;
use smbscope_model::named;
use std::collections::BTreeMap;
use std::time::Instant;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ServerMetricName {
        /// CPU usage, averaged over all cores.
        Cpu = "cpu",
        /// CPU usage of the busiest core.
        CpuBusiest = "cpu_busiest",
        /// Share of time in which a process waited for a core (pressure stall information of Linux).
        CpuWaiting = "cpu_waiting",
        /// CPU usage of Samba's processes, in percent of one core.
        SambaCpu = "samba_cpu",
        /// Time that Samba's processes were ready to run and waited for a core, added up: 200 percent are two waiting
        /// processes.
        SambaCpuWait = "samba_cpu_wait",
        /// CPU usage of the virus scanner, in percent of one core.
        ScannerCpu = "scanner_cpu",
        /// Memory in use: total minus available.
        Memory = "memory",
        DiskRead = "disk_read",
        DiskWritten = "disk_written",
        DiskOperations = "disk_operations",
        /// Average number of transfers queued or in service, of all disks.
        DiskQueue = "disk_queue",
        /// Utilization of the busiest disk.
        DiskBusiest = "disk_busiest",
        /// Received from the network, including the loopback interface.
        Received = "network_received",
        /// Sent to the network, including the loopback interface.
        Sent = "network_sent",
        /// Utilization of the busiest network interface, in its busier direction.
        NetworkBusiest = "network_busiest",
    }
}

impl ServerMetricName {
    pub(crate) fn unit(self) -> &'static str {
        match self {
            ServerMetricName::Cpu
            | ServerMetricName::CpuBusiest
            | ServerMetricName::CpuWaiting
            | ServerMetricName::SambaCpu
            | ServerMetricName::SambaCpuWait
            | ServerMetricName::NetworkBusiest
            | ServerMetricName::ScannerCpu
            | ServerMetricName::DiskBusiest => "percent",
            ServerMetricName::Memory => "bytes",
            ServerMetricName::DiskRead
            | ServerMetricName::DiskWritten
            | ServerMetricName::Received
            | ServerMetricName::Sent => "bytes/s",
            ServerMetricName::DiskOperations => "1/s",
            ServerMetricName::DiskQueue => "count",
        }
    }
}

/// One reading. Times are in seconds.
#[derive(Debug, Clone)]
pub(crate) struct Counters {
    pub(crate) at: Instant,
    pub(crate) processors: BTreeMap<String, (f64, f64)>,
    pub(crate) cpu_waiting: Option<f64>,
    pub(crate) samba_cpu: Option<f64>,
    pub(crate) samba_cpu_wait: Option<f64>,
    pub(crate) scanner_cpu: Option<f64>,
    pub(crate) memory: Option<f64>,
    pub(crate) disks: BTreeMap<String, Disk>,
    pub(crate) network: Option<(f64, f64)>,
    /// Interfaces of known speed.
    pub(crate) links: BTreeMap<String, LinkBytes>,
}

/// Bytes of a network interface, and its speed in bytes per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct LinkBytes {
    pub(crate) received: f64,
    pub(crate) sent: f64,
    pub(crate) speed: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Disk {
    pub(crate) read: f64,
    pub(crate) written: f64,
    pub(crate) operations: f64,
    pub(crate) weighted: f64,
    pub(crate) busy: f64,
}

/// Flushes count as operations, because the disk's operation limit includes them.
impl From<StorageFigures> for Disk {
    fn from(figures: StorageFigures) -> Disk {
        Disk {
            read: figures.bytes_read as f64,
            written: figures.bytes_written as f64,
            operations: (figures.reads + figures.writes + figures.flushes) as f64,
            weighted: figures.weighted.as_secs_f64(),
            busy: figures.busy.as_secs_f64(),
        }
    }
}

impl Counters {
    pub(crate) fn now() -> Counters {
        Counters {
            at: Instant::now(),
            processors: BTreeMap::new(),
            cpu_waiting: None,
            samba_cpu: None,
            samba_cpu_wait: None,
            scanner_cpu: None,
            memory: None,
            disks: BTreeMap::new(),
            network: None,
            links: BTreeMap::new(),
        }
    }

    /// Computes rates per second since an earlier reading. Leaves out counters that were reset in between.
    pub(crate) fn since(&self, before: &Counters) -> Vec<(ServerMetricName, f64)> {
        let seconds = (self.at - before.at).as_secs_f64();
        if seconds <= 0.0 {
            return Vec::new();
        }
        let mut values = Vec::new();
        let mut add = |metric, value: Option<f64>| {
            values.extend(value.filter(|value| value.is_finite() && *value >= 0.0).map(|value| (metric, value)));
        };
        let shares: Vec<(f64, f64)> = self
            .processors
            .iter()
            .filter_map(|(name, (busy, all))| {
                let (busy_before, all_before) = before.processors.get(name)?;
                Some((busy - busy_before, all - all_before)).filter(|(busy, all)| *busy >= 0.0 && *all > 0.0)
            })
            .collect();
        let (busy, all) = shares.iter().fold((0.0, 0.0), |sums, share| (sums.0 + share.0, sums.1 + share.1));
        let share = |busy: f64, all: f64| (100.0 * busy / all).min(100.0);
        add(ServerMetricName::Cpu, (all > 0.0).then(|| share(busy, all)));
        add(ServerMetricName::CpuBusiest, shares.iter().map(|(busy, all)| share(*busy, *all)).reduce(f64::max));
        let percent = |now: Option<f64>, before: Option<f64>| Some(100.0 * (now? - before?).max(0.0) / seconds);
        add(ServerMetricName::CpuWaiting, percent(self.cpu_waiting, before.cpu_waiting).map(|share| share.min(100.0)));
        add(ServerMetricName::SambaCpu, percent(self.samba_cpu, before.samba_cpu));
        add(ServerMetricName::SambaCpuWait, percent(self.samba_cpu_wait, before.samba_cpu_wait));
        add(ServerMetricName::ScannerCpu, percent(self.scanner_cpu, before.scanner_cpu));
        add(ServerMetricName::Memory, self.memory);
        let disks: Vec<Disk> = self
            .disks
            .iter()
            .filter_map(|(name, now)| {
                let before = before.disks.get(name)?;
                let disk = Disk {
                    read: now.read - before.read,
                    written: now.written - before.written,
                    operations: now.operations - before.operations,
                    weighted: now.weighted - before.weighted,
                    busy: now.busy - before.busy,
                };
                Some(disk).filter(|disk| disk.read >= 0.0 && disk.written >= 0.0)
            })
            .collect();
        let sum = |of: fn(&Disk) -> f64| (!disks.is_empty()).then(|| disks.iter().map(of).sum::<f64>() / seconds);
        add(ServerMetricName::DiskRead, sum(|disk| disk.read));
        add(ServerMetricName::DiskWritten, sum(|disk| disk.written));
        add(ServerMetricName::DiskOperations, sum(|disk| disk.operations));
        add(ServerMetricName::DiskQueue, sum(|disk| disk.weighted));
        let busiest = disks.iter().map(|disk| 100.0 * disk.busy / seconds).reduce(f64::max);
        add(ServerMetricName::DiskBusiest, busiest.map(|percent| percent.min(100.0)));
        if let (Some((received, sent)), Some((received_before, sent_before))) = (self.network, before.network) {
            add(ServerMetricName::Received, Some((received - received_before) / seconds));
            add(ServerMetricName::Sent, Some((sent - sent_before) / seconds));
        }
        let links = self.links.iter().filter_map(|(name, now)| {
            let before = before.links.get(name).filter(|_| now.speed > 0.0)?;
            let (received, sent) = (now.received - before.received, now.sent - before.sent);
            // A counter that was reset says nothing.
            (received >= 0.0 && sent >= 0.0).then(|| 100.0 * received.max(sent) / seconds / now.speed)
        });
        add(ServerMetricName::NetworkBusiest, links.reduce(f64::max).map(|percent| percent.min(100.0)));
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn two_looks_make_rates_and_shares() {
        let before = Counters {
            processors: [("0".to_owned(), (10.0, 100.0)), ("1".to_owned(), (50.0, 100.0))].into(),
            cpu_waiting: Some(3.0),
            samba_cpu: Some(1.0),
            samba_cpu_wait: Some(4.0),
            memory: Some(1e9),
            disks: [("sda".to_owned(), Disk { read: 100.0, written: 0.0, operations: 5.0, weighted: 1.0, busy: 1.0 })]
                .into(),
            network: Some((1_000.0, 500.0)),
            links: [("eth0".to_owned(), LinkBytes { received: 1_000.0, sent: 500.0, speed: 4_000.0 })].into(),
            ..Counters::now()
        };
        // Two seconds later: one core was busy for 1.5 of 2 s, the other for 0.5.
        let mut now = before.clone();
        now.at += Duration::from_secs(2);
        now.processors = [("0".to_owned(), (11.5, 102.0)), ("1".to_owned(), (50.5, 102.0))].into();
        now.cpu_waiting = Some(4.0);
        now.samba_cpu = Some(2.0);
        // Two processes waited all the time.
        now.samba_cpu_wait = Some(8.0);
        now.disks
            .insert("sda".to_owned(), Disk { read: 300.0, written: 50.0, operations: 25.0, weighted: 5.0, busy: 1.5 });
        now.disks.insert("sdb".to_owned(), Disk::default());
        now.network = Some((3_000.0, 500.0));
        now.links.insert("eth0".to_owned(), LinkBytes { received: 3_000.0, sent: 500.0, speed: 4_000.0 });
        let expected = [
            (ServerMetricName::Cpu, 50.0),
            (ServerMetricName::CpuBusiest, 75.0),
            (ServerMetricName::CpuWaiting, 50.0),
            (ServerMetricName::SambaCpu, 50.0),
            (ServerMetricName::SambaCpuWait, 200.0),
            (ServerMetricName::Memory, 1e9),
            (ServerMetricName::DiskRead, 100.0),
            (ServerMetricName::DiskWritten, 25.0),
            (ServerMetricName::DiskOperations, 10.0),
            (ServerMetricName::DiskQueue, 2.0),
            (ServerMetricName::DiskBusiest, 25.0),
            (ServerMetricName::Received, 1_000.0),
            (ServerMetricName::Sent, 0.0),
            (ServerMetricName::NetworkBusiest, 25.0),
        ];
        assert_eq!(now.since(&before), expected);
        let anew = before.since(&Counters { at: before.at - Duration::from_secs(1), ..now });
        assert_eq!(
            anew,
            [
                (ServerMetricName::CpuWaiting, 0.0),
                (ServerMetricName::SambaCpu, 0.0),
                (ServerMetricName::SambaCpuWait, 0.0),
                (ServerMetricName::Memory, 1e9),
                (ServerMetricName::Sent, 0.0)
            ]
        );
    }
}
