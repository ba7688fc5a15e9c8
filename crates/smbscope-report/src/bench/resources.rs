//! Resources that a load point used up or waited for: the client's processors; the server's processors, disk, link and
//! free space.

use super::{BenchRun, ServerLoad};
use crate::Culprit;
use crate::format::unbroken;
use smbscope_diagnose::{ClientLateness, LimitingResource, OutOfSpace};
use smbscope_model::Nanos;

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
