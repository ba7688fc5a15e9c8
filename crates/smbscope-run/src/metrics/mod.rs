//! Samples the server's metrics every second while it is under load.

mod counters;
#[cfg(target_os = "linux")]
mod machine;
mod samba;
mod watched;

use crate::BenchError;
pub use counters::Exporter;
use counters::{Counters, Disk, ServerMetricName};
use samba::{Samba, SambaSource};
pub use samba::{SambaReader, read_samba};
use smbscope_lab::{LinkEmulation, SambaStatus, ServerRecord};
use smbscope_model::Timestamp;
use smbscope_report::bench::files::ServerMetric;
use smbscope_report::bench::{ServerLoad, ServerSeries, THIS_MACHINE};
use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
pub use watched::{
    CounterSource, NamedQuery, PrometheusUrl, QueryFigure, ServerFigure, ServerFigures, ServerMinute, WatchedServer,
};

/// Server metrics kept: 24 for a day.
const METRICS_MAX: usize = 24 * 86_400;

/// Ports of a Samba server that is not private.
const SMB_PORTS: [u16; 2] = [445, 139];

const EVERY: Duration = Duration::from_secs(1);

/// Returns the share of this machine's processors in use during this time, in percent. `None` if it can't be measured.
pub fn busy_percent(time: Duration) -> Option<f64> {
    let before = machine::counters().ok()?;
    thread::sleep(time);
    let rates = machine::counters().ok()?.since(&before);
    rates.into_iter().find_map(|(metric, value)| (metric == ServerMetricName::Cpu).then_some(value))
}

/// Time over which the CPU load of a private server is verified: 500 ms.
const CPU_LOAD_CHECK: Duration = Duration::from_millis(500);
/// Tolerance for a CPU load that is too low, in percentage points.
const CPU_LOAD_TOLERANCE: f64 = 10.0;

/// Measures the CPU load that a private server was started with. Fails if it is too low, because the figures would
/// describe a less busy server.
pub(crate) fn verified_cpu_load(wanted: u8) -> Result<Option<(u8, f64)>, BenchError> {
    if wanted == 0 {
        return Ok(None);
    }
    let Some(measured) = busy_percent(CPU_LOAD_CHECK) else { return Ok(None) };
    if measured + CPU_LOAD_TOLERANCE < f64::from(wanted) {
        let text = format!("the processors are {measured:.0}% busy instead of {wanted}%: repeat the run");
        return Err(BenchError::Unavailable(text));
    }
    Ok(Some((wanted, measured)))
}

pub(crate) struct Metrics {
    source: Option<String>,
    seen: Arc<Mutex<CollectedMetrics>>,
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

#[derive(Default)]
struct CollectedMetrics {
    metrics: Vec<ServerMetric>,
    trouble: Option<String>,
    missing: Option<String>,
}

struct MetricSources {
    exporter: Option<Exporter>,
    /// The lab server: its processes are a metric of their own, and so is its disk if it is a slow one.
    lab: Option<ServerRecord>,
}

impl Metrics {
    /// Samples through the exporter, or else this machine's counters if the server runs here.
    pub(crate) fn new(address: SocketAddr, lab: Option<ServerRecord>, exporter: Option<&Exporter>) -> Metrics {
        let is_here = lab.is_some() || address.ip().is_loopback();
        let source = match exporter {
            Some(exporter) => Some(exporter.to_string()),
            None => (is_here && machine::HAS_COUNTERS).then(|| THIS_MACHINE.to_owned()),
        };
        let samba = samba_status(address, lab.as_ref(), exporter);
        let samba = samba.filter(|_| source.is_some()).map(|status| SambaSource::Own(Samba::new(status)));
        Metrics::begin(source, MetricSources { exporter: exporter.cloned(), lab }, samba)
    }

    fn of_exporter(exporter: &Exporter) -> Metrics {
        let sources = MetricSources { exporter: Some(exporter.clone()), lab: None };
        Metrics::begin(Some(exporter.to_string()), sources, None)
    }

    /// Samples the counters of this machine, and of the Samba on it.
    fn of_this_machine(samba: Option<SambaReader>) -> Metrics {
        let sources = MetricSources { exporter: None, lab: None };
        Metrics::begin(Some(THIS_MACHINE.to_owned()), sources, samba.map(SambaSource::Reader))
    }

    fn begin(source: Option<String>, sources: MetricSources, samba: Option<SambaSource>) -> Metrics {
        let seen = Arc::<Mutex<CollectedMetrics>>::default();
        let thread = source.as_ref().and_then(|_| {
            let (stop, stopped) = mpsc::channel();
            let seen = Arc::clone(&seen);
            let look = move || sources.follow(samba, &seen, &stopped);
            let thread = thread::Builder::new().name("server metrics".to_owned()).spawn(look).ok()?;
            Some((stop, thread))
        });
        Metrics { source, seen, thread }
    }

    pub(crate) fn so_far(&self) -> Vec<ServerMetric> {
        self.seen().metrics.clone()
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        self.seen().trouble.clone()
    }

    pub(crate) fn missing(&self) -> Option<String> {
        self.seen().missing.clone()
    }

    pub(crate) fn within(&self, started: Timestamp, duration: Duration) -> Option<ServerLoad> {
        let end = Timestamp(started.0.saturating_add(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)));
        let seen = self.seen();
        // A value covers the second before its timestamp.
        let noted: Vec<&ServerMetric> =
            seen.metrics.iter().filter(|metric| metric.time > started && metric.time <= end).collect();
        let mut times: Vec<Timestamp> = noted.iter().map(|metric| metric.time).collect();
        times.dedup();
        let series = |first: &&ServerMetric| {
            let is_same = |metric: &&&ServerMetric| metric.metric == first.metric;
            let at = |time: &Timestamp| noted.iter().filter(is_same).find(|metric| metric.time == *time);
            let values: Vec<Option<f64>> = times.iter().map(|time| at(time).map(|metric| metric.value)).collect();
            ServerSeries::new(&first.metric, &first.unit, values)
        };
        let mut metrics: Vec<ServerSeries> = Vec::new();
        for metric in &noted {
            if metrics.iter().all(|known| known.metric != metric.metric) {
                metrics.push(series(metric));
            }
        }
        let source = self.source.clone().filter(|_| !metrics.is_empty())?;
        Some(ServerLoad::new(source, times, metrics))
    }

    /// Removes the samples up to a time, for a command that runs forever.
    pub(crate) fn forget(&self, until: Timestamp) {
        self.seen().metrics.retain(|metric| metric.time > until);
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, CollectedMetrics> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn samba_status(address: SocketAddr, lab: Option<&ServerRecord>, exporter: Option<&Exporter>) -> Option<SambaStatus> {
    let is_own = address.ip().is_loopback() && SMB_PORTS.contains(&address.port()) && exporter.is_none();
    match lab {
        Some(lab) => SambaStatus::find(Some(&lab.folder.join("smb.conf"))),
        None if is_own => SambaStatus::find(None),
        None => None,
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

impl MetricSources {
    fn follow(&self, mut samba: Option<SambaSource>, seen: &Mutex<CollectedMetrics>, stopped: &mpsc::Receiver<()>) {
        let mut before: Option<Counters> = None;
        let mut due = Instant::now();
        loop {
            let looked = self.look();
            let of_samba = samba.as_mut().map_or_else(Vec::new, SambaSource::look);
            let time = crate::environment::now();
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            match looked {
                Ok(now) => {
                    let values = before.as_ref().map_or_else(Vec::new, |before| now.since(before));
                    let values = values
                        .into_iter()
                        .map(|(metric, value)| (metric.name().to_owned(), metric.unit().into(), value));
                    let room = METRICS_MAX.saturating_sub(seen.metrics.len());
                    seen.metrics.extend(values.chain(of_samba).take(room).map(|(metric, unit, value)| ServerMetric {
                        time,
                        metric,
                        value,
                        unit: unit.into_owned(),
                    }));
                    (before, seen.trouble) = (Some(now), None);
                }
                Err(why) => (before, seen.trouble) = (None, Some(why)),
            }
            // An ordinary Samba server may have profiling turned off, which is not worth a warning.
            seen.missing = samba.as_ref().filter(|_| self.lab.is_some()).and_then(SambaSource::missing);
            drop(seen);
            due = (due + EVERY).max(Instant::now());
            match stopped.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return,
            }
        }
    }

    fn look(&self) -> Result<Counters, String> {
        let mut counters = match &self.exporter {
            Some(exporter) => exporter.counters()?,
            None => machine::counters()?,
        };
        if let Some(lab) = &self.lab {
            counters.samba_cpu = Some(lab.cpu_time().as_secs_f64());
            counters.samba_cpu_wait = machine::cpu_wait(&lab.pids());
            if let (Some(LinkEmulation::Network { interface, .. }), Some(bits)) = (&lab.link, lab.settings.bandwidth) {
                counters.links = machine::link(interface, bits as f64 / 8.0).into_iter().collect();
            }
            counters.scanner_cpu = lab.scanner_cpu_time().map(|time| time.as_secs_f64());
            // The share is on this emulated disk; the machine's disks would count the same transfers again.
            if lab.settings.storage.is_slow() && self.exporter.is_none() {
                let disk = lab.storage().map(|figures| ("storage".to_owned(), Disk::from(figures)));
                counters.disks = disk.into_iter().collect();
            }
        }
        Ok(counters)
    }
}

/// Counters of this machine are read on Linux only.
#[cfg(not(target_os = "linux"))]
mod machine {
    use super::counters::{Counters, LinkBytes};

    pub(super) const HAS_COUNTERS: bool = false;

    pub(super) fn counters() -> Result<Counters, String> {
        Err("this machine's counters are read on Linux only".to_owned())
    }

    pub(super) fn link(_name: &str, _speed: f64) -> Option<(String, LinkBytes)> {
        None
    }

    pub(super) fn cpu_wait(_pids: &[u32]) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::{Ipv4Addr, TcpListener};

    const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 445);

    /// An exporter that reports 25% CPU usage between two requests.
    fn exporter() -> Exporter {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.expect("a client");
                let mut lines = BufReader::new(stream.try_clone().expect("a handle")).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let (idle, user) = (3 * number, number);
                let body = format!(
                    "node_cpu_seconds_total{{cpu=\"0\",mode=\"idle\"}} {idle}\n\
                     node_cpu_seconds_total{{cpu=\"0\",mode=\"user\"}} {user}\n"
                );
                let length = body.len();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
                let _ = stream.write_all((head + &body).as_bytes());
            }
        });
        format!("http://{address}/metrics").parse().expect("it is a URL")
    }

    fn within(metrics: &Metrics, begun: Timestamp) -> Option<ServerLoad> {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            match metrics.within(begun, Duration::from_secs(60)) {
                None if Instant::now() < end => thread::sleep(Duration::from_millis(20)),
                found => return found,
            }
        }
    }

    #[test]
    fn an_exporter_is_asked_every_second() {
        let (begun, exporter) = (crate::environment::now(), exporter());
        let metrics = Metrics::new(SERVER, None, Some(&exporter));
        let load = within(&metrics, begun).expect("there are samples");
        assert_eq!(load.source, exporter.to_string());
        let cpu = load.metric("cpu").expect("processors");
        assert_eq!((cpu.mean, cpu.max, cpu.unit.as_str()), (25.0, 25.0, "percent"));
        assert_eq!(cpu.values.len(), load.times_ns.len());
        assert!(metrics.within(Timestamp(0), Duration::from_secs(1)).is_none());
    }

    #[test]
    fn an_exporter_that_is_not_there_is_told_and_a_server_elsewhere_without_one_has_no_metrics() {
        let gone: Exporter = "http://127.0.0.1:1/metrics".parse().expect("it is a URL");
        let metrics = Metrics::new(SERVER, None, Some(&gone));
        let end = Instant::now() + Duration::from_secs(30);
        while metrics.trouble().is_none() && Instant::now() < end {
            thread::sleep(Duration::from_millis(20));
        }
        let trouble = metrics.trouble().expect("nobody answers");
        assert!(trouble.starts_with("http://127.0.0.1:1/metrics can't be read: "), "{trouble}");
        let elsewhere = Metrics::new(SERVER, None, None);
        assert!(elsewhere.thread.is_none() && elsewhere.within(Timestamp(0), Duration::MAX).is_none());
    }
}
