//! Reads server metrics from a Prometheus exporter: node_exporter (Linux) or windows_exporter.

use super::counters::{Counters, Disk};
use prometheus_parse::{Sample, Scrape, Value};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use ureq::Agent;
use url::Url;

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
    use super::super::counters::LinkBytes;
    use super::*;

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
