//! Resources that a load point used up or waited for: the client's processors; the server's processors, disk, link and
//! free space.

use super::BenchRun;
use crate::Culprit;
use crate::format::unbroken;
use serde::{Deserialize, Serialize};
use smbscope_diagnose::{ClientLateness, LimitingResource, OutOfSpace};
use smbscope_model::{Nanos, Timestamp};

/// Percentage from which a processor, disk or link has no reserve.
const USED_UP: f64 = 90.0;
/// Share of the time with commands outstanding from which a wait for a resource explains slow commands.
const MOST: f64 = 0.5;
/// Commands outstanding on average below which such a share means nothing.
const OUTSTANDING_MIN: f64 = 0.1;
/// Source of metrics if the server runs on the client's machine.
const THIS_MACHINE: &str = "this machine";

/// Statuses of a full disk or a used-up quota (MS-ERREF 2.3.1).
const OUT_OF_SPACE: [&str; 3] = ["STATUS_DISK_FULL", "STATUS_QUOTA_EXCEEDED", "STATUS_DISK_QUOTA_EXCEEDED"];

pub(super) fn out_of_space(run: &BenchRun) -> Option<OutOfSpace> {
    let statuses = OUT_OF_SPACE.iter().filter_map(|status| run.errors.get_key_value(*status));
    let (status, failed) = statuses.max_by_key(|(_, failed)| **failed)?;
    Some(OutOfSpace { status: status.clone(), failed: *failed, commands: run.operations })
}

pub(super) fn client_lateness(run: &BenchRun) -> Option<ClientLateness> {
    let cpu = run.client_cpu?;
    let p99 = cpu.late_p99_ns?;
    Some(ClientLateness { p99, longest: cpu.late_max_ns.unwrap_or(p99) })
}

/// Server metrics of a load point, with the number of commands outstanding on average.
pub(super) struct ServerResources<'a> {
    load: &'a ServerLoad,
    outstanding: f64,
}

impl ServerResources<'_> {
    pub(super) fn new(load: &ServerLoad, duration: Nanos, service: Nanos) -> ServerResources<'_> {
        ServerResources { load, outstanding: service.0 as f64 / duration.0.max(1) as f64 }
    }

    /// Returns the resource without reserve.
    pub(super) fn used_up(&self) -> Option<LimitingResource> {
        self.full_beside_processors().or_else(|| self.full_processors())
    }

    /// Returns the resource that explains slow commands. Busy processors do not if Samba's processes hardly waited for
    /// them.
    pub(super) fn waited_for(&self) -> Option<LimitingResource> {
        let busy = || self.full_processors().filter(|_| self.processor_wait_share().is_none());
        self.full_beside_processors().or_else(|| self.disk_waits()).or_else(busy)
    }

    fn full_beside_processors(&self) -> Option<LimitingResource> {
        self.processor_waits().or_else(|| self.full_disk_queue()).or_else(|| self.full_link())
    }

    fn mean(&self, metric: &str) -> Option<f64> {
        self.load.metric(metric).map(|series| series.mean)
    }

    fn full(&self, metric: &str) -> Option<f64> {
        self.mean(metric).filter(|percent| *percent >= USED_UP)
    }

    /// Returns the share of the time with commands outstanding.
    fn share(&self, waiting: f64) -> Option<f64> {
        (self.outstanding > OUTSTANDING_MIN).then(|| waiting / self.outstanding)
    }

    fn processor_wait_share(&self) -> Option<f64> {
        self.share(self.mean("samba_cpu_wait")? / 100.0)
    }

    /// Finds starved processes, which may have little processor time of their own.
    fn processor_waits(&self) -> Option<LimitingResource> {
        let share = self.processor_wait_share().filter(|share| *share >= MOST)?;
        let share = percent(100.0 * share.min(1.0));
        let used =
            self.mean("samba_cpu").map_or_else(String::new, |used| format!(", and got {} of one", percent(used)));
        let text =
            format!("its processes waited for a processor {share} of the time that commands were outstanding{used}");
        Some(LimitingResource { culprit: Culprit::Server, text })
    }

    /// A busy disk has a reserve as long as nothing is queued.
    fn full_disk_queue(&self) -> Option<LimitingResource> {
        let busy = self.full("disk_busiest")?;
        let queue = self.mean("disk_queue").filter(|queue| *queue >= 1.0)?;
        let text =
            format!("its disk was busy {} of the time, with {queue:.1} transfers queued on average", percent(busy));
        Some(LimitingResource { culprit: Culprit::Server, text })
    }

    /// Finds a slow disk, which may have a reserve. The mean time of a transfer follows from Little's law.
    fn disk_waits(&self) -> Option<LimitingResource> {
        let queue = self.mean("disk_queue")?;
        let share = self.share(queue).filter(|share| *share >= MOST)?;
        let rate = self.mean("disk_operations").filter(|rate| *rate > 0.0)?;
        let each = unbroken(Nanos((queue / rate * 1e9) as i64));
        let share = percent(100.0 * share.min(1.0));
        let text = format!("its disk took {each} a transfer, {share} of the time that commands were outstanding");
        Some(LimitingResource { culprit: Culprit::Server, text })
    }

    fn full_link(&self) -> Option<LimitingResource> {
        let used = self.full("network_busiest")?;
        Some(LimitingResource { culprit: Culprit::Network, text: format!("the link was {} full", percent(used)) })
    }

    fn full_processors(&self) -> Option<LimitingResource> {
        let busy = percent(self.full("cpu")?);
        let waited = self.mean("cpu_waiting");
        let waited = waited
            .map_or_else(String::new, |waited| format!("; processes waited for one {} of the time", percent(waited)));
        Some(match self.load.source == THIS_MACHINE {
            true => {
                let text =
                    format!("they share the processors of this machine, which were busy {busy} of the time{waited}");
                LimitingResource { culprit: Culprit::Capture, text }
            }
            false => {
                let text = format!("its processors were busy {busy} of the time{waited}");
                LimitingResource { culprit: Culprit::Server, text }
            }
        })
    }
}

fn percent(value: f64) -> String {
    unbroken(format!("{value:.0}%"))
}

/// Server metrics, sampled every second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerLoad {
    /// Source: `this machine`, or the URL of an exporter.
    pub source: String,
    /// Sample times. A sample covers the second before it.
    pub times_ns: Vec<Timestamp>,
    /// Metrics, each with one value per sample time.
    pub metrics: Vec<ServerSeries>,
}

/// A metric of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerSeries {
    /// Name: `cpu`, `cpu_busiest`, `disk_queue`, `samba_read`, `samba_read_time` …
    pub metric: String,
    /// Unit: `percent`, `bytes/s`, `bytes`, `1/s`, `ns` or `count`.
    pub unit: String,
    /// Mean of the samples. For times (`ns`), the mean of all operations.
    pub mean: f64,
    /// Largest sample.
    pub max: f64,
    /// Value at each sample time. Null if missing.
    pub values: Vec<Option<f64>>,
}

impl ServerSeries {
    pub fn new(metric: &str, unit: &str, values: Vec<Option<f64>>) -> ServerSeries {
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        ServerSeries {
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            mean: known.iter().sum::<f64>() / known.len().max(1) as f64,
            max: known.iter().copied().fold(0.0, f64::max),
            values,
        }
    }
}

impl ServerLoad {
    /// Creates the metrics of a load point. The mean of a time is weighted by the operations of each second.
    pub fn new(source: String, times_ns: Vec<Timestamp>, mut metrics: Vec<ServerSeries>) -> ServerLoad {
        let weighted: Vec<Option<f64>> = metrics
            .iter()
            .map(|series| {
                let rate = series.metric.strip_suffix("_time")?;
                let rates = &metrics.iter().find(|other| other.metric == rate)?.values;
                let known = || series.values.iter().zip(rates).filter_map(|(time, rate)| Some(((*time)?, (*rate)?)));
                let count: f64 = known().map(|(_, rate)| rate).sum();
                (count > 0.0).then(|| known().map(|(time, rate)| time * rate).sum::<f64>() / count)
            })
            .collect();
        for (series, mean) in metrics.iter_mut().zip(weighted) {
            series.mean = mean.unwrap_or(series.mean);
        }
        ServerLoad { source, times_ns, metrics }
    }

    pub fn metric(&self, name: &str) -> Option<&ServerSeries> {
        self.metrics.iter().find(|series| series.metric == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 read of 10 ms in the first second and 9 of 20 ms in the third: (10 + 180) / 10 = 19 ms, not 15 ms.
    #[test]
    fn a_mean_time_is_that_of_all_operations() {
        let rates = ServerSeries::new("samba_read", "1/s", vec![Some(1.0), None, Some(9.0)]);
        let times = ServerSeries::new("samba_read_time", "ns", vec![Some(10e6), None, Some(20e6)]);
        let load = ServerLoad::new(
            "this machine".to_owned(),
            vec![Timestamp(1), Timestamp(2), Timestamp(3)],
            vec![rates, times],
        );
        let mean = |name: &str| load.metric(name).map(|series| series.mean);
        assert_eq!((mean("samba_read"), mean("samba_read_time")), (Some(5.0), Some(19e6)));
    }
}
