//! Cumulative counters of a server, the rates between two readings, and their source on another machine: a Prometheus
//! exporter, node_exporter (Linux) or windows_exporter.

use prometheus_parse::{Sample, Scrape, Value};
use smbscope_lab::StorageFigures;
use smbscope_model::named;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};
use ureq::Agent;
use url::Url;

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

/// Timeout of a request. A usable exporter answers within the sampling interval of one second.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
/// Bytes of the response of an exporter or a Prometheus; more are refused.
pub(super) const ANSWER_MAX: u64 = 16 << 20;

#[derive(Debug, Clone)]
pub struct Exporter {
    url: Url,
    agent: Agent,
}

impl FromStr for Exporter {
    type Err = String;

    fn from_str(text: &str) -> Result<Exporter, String> {
        let mut url = http_url(text, "expected http://host:port/metrics")?;
        if url.path() == "/" {
            url.set_path("/metrics");
        }
        let agent = Agent::new_with_config(Agent::config_builder().timeout_global(Some(PATIENCE)).build());
        Ok(Exporter { url, agent })
    }
}

/// Parses the address of an HTTP server; the scheme may be omitted. `shape` says in an error how it should look.
pub(super) fn http_url(text: &str, shape: &str) -> Result<Url, String> {
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&whole).map_err(|error| format!("{error}; {shape}"))?;
    if url.scheme() != "http" || url.host_str().is_none() {
        return Err(shape.to_owned());
    }
    match url.password() {
        Some(_) => Err("a password in a URL would be visible to all users of this machine".to_owned()),
        None => Ok(url),
    }
}

impl fmt::Display for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

impl Exporter {
    pub(super) fn counters(&self) -> Result<Counters, String> {
        let failed = |error: &dyn fmt::Display| format!("{self} can't be read: {error}");
        let mut answer = self.agent.get(self.url.as_str()).call().map_err(|error| failed(&error))?;
        let text = answer.body_mut().with_config().limit(ANSWER_MAX).read_to_string();
        let text = text.map_err(|error| failed(&error))?;
        let counters = counters(&text)?;
        let is_empty = counters.processors.is_empty() && counters.memory.is_none();
        if is_empty { Err(failed(&"it is neither a node_exporter nor a windows_exporter")) } else { Ok(counters) }
    }
}

fn counters(text: &str) -> Result<Counters, String> {
    let lines = text.lines().map(|line| Ok(without_quoted_commas(line)));
    let scrape = Scrape::parse(lines).map_err(|error| format!("the exporter's response can't be read: {error}"))?;
    let mut counters = Counters::now();
    let (mut total, mut available) = (None, None);
    let (mut received, mut sent) = (None, None);
    for sample in &scrape.samples {
        let (Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value)) = sample.value else { continue };
        let label = |name: &str| sample.labels.get(name).unwrap_or_default().to_owned();
        match sample.metric.as_str() {
            "node_cpu_seconds_total" => processor(&mut counters, label("cpu"), &label("mode"), value),
            "windows_cpu_time_total" => processor(&mut counters, label("core"), &label("mode"), value),
            "node_memory_MemTotal_bytes"
            | "windows_memory_physical_total_bytes"
            | "windows_cs_physical_memory_bytes" => total = Some(value),
            "node_memory_MemAvailable_bytes" | "windows_memory_available_bytes" => available = Some(value),
            "node_pressure_cpu_waiting_seconds_total" => counters.cpu_waiting = Some(value),
            "node_network_receive_bytes_total" | "windows_net_bytes_received_total" => {
                *received.get_or_insert(0.0) += value;
                counters.links.entry(interface(sample)).or_default().received += value;
            }
            "node_network_transmit_bytes_total" | "windows_net_bytes_sent_total" => {
                *sent.get_or_insert(0.0) += value;
                counters.links.entry(interface(sample)).or_default().sent += value;
            }
            // -1 is unknown.
            "node_network_speed_bytes" if value > 0.0 => {
                counters.links.entry(interface(sample)).or_default().speed = value;
            }
            "windows_net_current_bandwidth_bytes" => {
                counters.links.entry(interface(sample)).or_default().speed = value;
            }
            name => {
                if let Some(field) = disk(name)
                    && let Some(device) = device(sample)
                {
                    *field(counters.disks.entry(device).or_default()) += value;
                }
            }
        }
    }
    counters.memory = total.zip(available).map(|(total, available): (f64, f64)| total - available);
    counters.network = received.zip(sent);
    Ok(counters)
}

fn interface(sample: &Sample) -> String {
    sample.labels.get("device").or(sample.labels.get("nic")).unwrap_or_default().to_owned()
}

/// The parser would end a label at a comma, and windows_exporter names cores `0,0`, `0,1`.
fn without_quoted_commas(line: &str) -> String {
    let mut quoted = false;
    let replaced = line.chars().map(|c| {
        quoted ^= c == '"';
        if quoted && c == ',' { '.' } else { c }
    });
    replaced.collect()
}

fn processor(counters: &mut Counters, name: String, mode: &str, seconds: f64) {
    let (busy, all) = counters.processors.entry(name).or_default();
    *all += seconds;
    // Guest time is part of `user`, and its own metric is not read.
    if !matches!(mode, "idle" | "iowait") {
        *busy += seconds;
    }
}

fn disk(metric: &str) -> Option<fn(&mut Disk) -> &mut f64> {
    Some(match metric {
        "node_disk_read_bytes_total" | "windows_logical_disk_read_bytes_total" => |disk| &mut disk.read,
        "node_disk_written_bytes_total" | "windows_logical_disk_write_bytes_total" => |disk| &mut disk.written,
        "node_disk_reads_completed_total"
        | "node_disk_writes_completed_total"
        | "windows_logical_disk_reads_total"
        | "windows_logical_disk_writes_total" => |disk| &mut disk.operations,
        "node_disk_io_time_weighted_seconds_total"
        | "windows_logical_disk_read_latency_seconds_total"
        | "windows_logical_disk_write_latency_seconds_total" => |disk| &mut disk.weighted,
        "node_disk_io_time_seconds_total" => |disk| &mut disk.busy,
        _ => return None,
    })
}

fn device(sample: &Sample) -> Option<String> {
    let name = sample.labels.get("device").or(sample.labels.get("volume"))?;
    let stands_for_others = ["dm-", "md", "loop", "ram", "zram", "sr"].iter().any(|begin| name.starts_with(begin));
    (!stands_for_others && name != "_Total").then(|| name.to_owned())
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

    #[test]
    fn a_node_exporter_is_read() {
        let text = "\
# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 90.5
node_cpu_seconds_total{cpu=\"0\",mode=\"iowait\"} 0.5
node_cpu_seconds_total{cpu=\"0\",mode=\"system\"} 4
node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 5
# TYPE node_disk_reads_completed_total counter
node_disk_reads_completed_total{device=\"dm-0\"} 9
node_disk_reads_completed_total{device=\"sda\"} 7
node_disk_writes_completed_total{device=\"sda\"} 3
node_disk_io_time_weighted_seconds_total{device=\"sda\"} 1.5
# TYPE node_memory_MemTotal_bytes gauge
node_memory_MemTotal_bytes 8e+09
node_memory_MemAvailable_bytes 6e+09
node_network_receive_bytes_total{device=\"eth0\"} 100
node_network_receive_bytes_total{device=\"lo\"} 10
node_network_transmit_bytes_total{device=\"eth0\"} 50
node_network_speed_bytes{device=\"eth0\"} 1.25e+08
node_network_speed_bytes{device=\"wlan0\"} -1
node_pressure_cpu_waiting_seconds_total 12.5
";
        let counters = counters(text).expect("it is one");
        assert_eq!(counters.processors, [("0".to_owned(), (9.0, 100.0))].into());
        let disk = Disk { operations: 10.0, weighted: 1.5, ..Disk::default() };
        assert_eq!(counters.disks, [("sda".to_owned(), disk)].into());
        assert_eq!((counters.memory, counters.network), (Some(2e9), Some((110.0, 50.0))));
        assert_eq!(counters.links["eth0"], LinkBytes { received: 100.0, sent: 50.0, speed: 1.25e8 });
        assert_eq!(counters.cpu_waiting, Some(12.5));
    }

    #[test]
    fn a_windows_exporter_is_read() {
        let text = "\
windows_cpu_time_total{core=\"0,0\",mode=\"idle\"} 70
windows_cpu_time_total{core=\"0,0\",mode=\"privileged\"} 20
windows_cpu_time_total{core=\"0,0\",mode=\"user\"} 10
windows_cpu_time_total{core=\"0,1\",mode=\"user\"} 1
windows_logical_disk_read_bytes_total{volume=\"D:\"} 4096
windows_logical_disk_read_latency_seconds_total{volume=\"D:\"} 0.25
windows_logical_disk_read_bytes_total{volume=\"_Total\"} 4096
windows_memory_available_bytes 1e+09
windows_memory_physical_total_bytes 4e+09
windows_net_bytes_received_total{nic=\"Ethernet\"} 7
windows_net_bytes_sent_total{nic=\"Ethernet\"} 8
windows_net_current_bandwidth_bytes{nic=\"Ethernet\"} 1.25e+08
";
        let counters = counters(text).expect("it is one");
        assert_eq!(counters.processors, [("0.0".to_owned(), (30.0, 100.0)), ("0.1".to_owned(), (1.0, 1.0))].into());
        let disk = Disk { read: 4_096.0, weighted: 0.25, ..Disk::default() };
        assert_eq!(counters.disks, [("D:".to_owned(), disk)].into());
        assert_eq!((counters.memory, counters.network), (Some(3e9), Some((7.0, 8.0))));
        assert_eq!(counters.links["Ethernet"], LinkBytes { received: 7.0, sent: 8.0, speed: 1.25e8 });
    }

    #[test]
    fn an_address_is_completed_and_another_scheme_refused() {
        let url = |text: &str| text.parse::<Exporter>().map(|exporter| exporter.to_string());
        assert_eq!(url("files:9100").as_deref(), Ok("http://files:9100/metrics"));
        assert_eq!(url("http://files:9182/probe").as_deref(), Ok("http://files:9182/probe"));
        for wrong in ["https://files:9100/metrics", "ftp://files/", "http://", "http://ann:secret@files:9100"] {
            assert!(url(wrong).is_err(), "{wrong}");
        }
    }
}
