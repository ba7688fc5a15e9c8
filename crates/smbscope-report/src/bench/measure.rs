//! Values derived from load points: measures by name, the overall response time of a ramp, and the time of operations
//! inside Samba (the rest of a client's response time was spent in the network, in socket queues and in the client);
//! and resources that a load point used up or waited for: the client's processors; the server's processors, disk, link
//! and free space.

use super::{BenchRun, MeasuredCommand, ServerLoad, THIS_MACHINE};
use crate::Culprit;
use crate::format::unbroken;
use crate::names::OTHER;
use smbscope_diagnose::{ClientLateness, LimitingResource, OutOfSpace};
use smbscope_model::{CommandGroup, Nanos};
use smbscope_stats::{DurationStatistics, Measure, ServerFigure};

impl BenchRun {
    /// Returns a measure: seconds, rate, percentage or count. None if the run lacks it, or has too few commands.
    pub fn value(&self, measure: &Measure) -> Option<f64> {
        let rate = |count: u64| {
            let seconds = self.duration_ns.as_secs_f64();
            (seconds > 0.0).then(|| count as f64 / seconds)
        };
        match measure {
            Measure::Time(figure, of) => figure.value_in(self.figures_of(of)?).map(Nanos::as_secs_f64),
            Measure::Errors => {
                let unexpected = self.workload_operations.iter().flat_map(|operation| operation.unexpected.values());
                Some((unexpected.sum::<u64>() + self.failures.values().sum::<u64>()) as f64)
            }
            Measure::Overload => Some(self.overload.as_ref()?.percent),
            Measure::Operations => rate(self.workload_operations.iter().map(|done| done.service_time.count).sum()),
            Measure::Commands => Some(self.operations_per_second),
            Measure::Throughput => rate(self.bytes_read.saturating_add(self.bytes_written)),
            Measure::Server(figure) => Some(self.server.as_ref()?.metric(metric(*figure))?.mean),
            Measure::Count(of) => Some(self.count_of(of) as f64),
            Measure::ErrorsOf(of) => Some(self.errors_of(of) as f64),
            Measure::Waited => {
                let jobs = self.jobs.as_ref().filter(|jobs| jobs.elapsed.count > 0)?;
                Some(jobs.waited_sum_ns?.as_secs_f64() / jobs.elapsed.count as f64)
            }
            Measure::Elapsed => Some(self.jobs.as_ref()?.elapsed.mean?.as_secs_f64()),
        }
    }

    /// Counts commands of a group, a name or a subcommand, including connects. `NEGOTIATE` also matches
    /// `SMB_COM_NEGOTIATE`, and `VALIDATE_NEGOTIATE_INFO` the control code.
    pub(crate) fn count_of(&self, of: &str) -> u64 {
        if let Some(group) = self.groups.iter().find(|group| group.group.eq_ignore_ascii_case(of)) {
            return group.times.client.count;
        }
        let bare =
            |name: &str, prefix: &str| name.strip_prefix(prefix).is_some_and(|name| name.eq_ignore_ascii_case(of));
        let is = |name: &str| name.eq_ignore_ascii_case(of) || bare(name, "SMB_COM_") || bare(name, "FSCTL_");
        // A connect has no other control code.
        let in_connect = |name: &str| is(name) || (name == "IOCTL" && is("FSCTL_VALIDATE_NEGOTIATE_INFO"));
        let connects = self.connect_commands.iter().filter(|(name, _)| in_connect(name)).map(|(_, count)| *count);
        let of_command =
            |command: &MeasuredCommand| is(&command.command) || command.subcommand.as_deref().is_some_and(is);
        let commands = self.commands.iter().filter(|command| of_command(command));
        connects.chain(commands.map(|command| command.times.client.count)).sum()
    }

    fn errors_of(&self, of: &str) -> u64 {
        let is = |name: &str| name.eq_ignore_ascii_case(of);
        let is_other = |group: &str| is(OTHER) && CommandGroup::OTHER.iter().any(|other| other.name() == group);
        let commands = self
            .commands
            .iter()
            .filter(|command| is("total") || is(&command.group) || is_other(&command.group) || is(&command.command));
        commands.flat_map(|command| command.errors.values()).sum()
    }

    /// Looks up response times by name, in the order total, groups, operations, commands. Returns None for a command
    /// with several subcommands (`QUERY_INFO`), since their percentiles can't be combined.
    fn figures_of(&self, of: &str) -> Option<&DurationStatistics> {
        let is = |name: &str| name.eq_ignore_ascii_case(of);
        if is("total") {
            return Some(self.due.as_ref().unwrap_or(&self.total.client));
        }
        let group = self.groups.iter().find(|group| is(&group.group));
        let operation = self.workload_operations.iter().find(|operation| is(&operation.operation));
        let mut commands = self.commands.iter().filter(|command| is(&command.command));
        match (group, operation, commands.next(), commands.next()) {
            (Some(group), ..) => Some(&group.times.client),
            (None, Some(operation), ..) => Some(operation.response_time.as_ref().unwrap_or(&operation.service_time)),
            (None, None, Some(only), None) => Some(&only.times.client),
            _ => None,
        }
    }
}

fn metric(figure: ServerFigure) -> &'static str {
    match figure {
        ServerFigure::Cpu => "cpu",
        ServerFigure::Samba => "samba_cpu",
        ServerFigure::DiskBusy => "disk_busiest",
        ServerFigure::DiskQueue => "disk_queue",
        ServerFigure::DiskOperations => "disk_operations",
    }
}

/// Returns the area under the curve of mean response time over users, divided by the range of users. A curve scores
/// better the later it rises, and an extra load point between two others hardly changes it.
///
/// The area is the sum of trapezoids between load points in order of users. Repeated load points are averaged, and load
/// points without a timed command are ignored. With a single load, the result is its mean response time. Only compare
/// ramps with the same load points: others cover another range. In an open loop, response times count from the intended
/// start; if load points differ in their rate (`by_rate`), the curve is over rates.
pub fn overall_response_time(runs: &[BenchRun], by_rate: bool) -> Option<Nanos> {
    let mut points: Vec<(f64, f64, u32)> = Vec::new();
    let mut sorted: Vec<(f64, Nanos)> =
        runs.iter().filter_map(|run| Some((run.load(by_rate), run.headline().mean?))).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    for (users, mean) in sorted {
        match points.last_mut() {
            Some((known, sum, count)) if *known == users => {
                *sum += mean.0 as f64;
                *count += 1;
            }
            _ => points.push((users, mean.0 as f64, 1)),
        }
    }
    let points: Vec<(f64, f64)> =
        points.into_iter().map(|(users, sum, count)| (users, sum / f64::from(count))).collect();
    let ((first, only), (last, _)) = (*points.first()?, *points.last()?);
    let area = points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0);
    let mean = if last > first { area.sum::<f64>() / (last - first) } else { only };
    Some(Nanos(mean.round() as i64))
}

#[derive(Debug, Clone, PartialEq)]
pub struct InsideSamba {
    /// Name of Samba's counter, in words: `create`, `query info`.
    pub operation: String,
    pub per_second: f64,
    pub inside: Nanos,
    /// Mean response time in the client. None if it had no such command.
    pub response_time: Option<Nanos>,
}

/// Samba's operations, and prefixes of the names of their commands (MS-SMB2 2.2.1.2, MS-CIFS 2.2.2.1).
const COMMANDS: [(&str, &[&str]); 10] = [
    ("create", &["CREATE", "SMB_COM_NT_CREATE", "SMB_COM_OPEN", "SMB_COM_CREATE", "NT_TRANSACT_CREATE"]),
    ("close", &["CLOSE", "SMB_COM_CLOSE"]),
    ("read", &["READ", "SMB_COM_READ"]),
    ("write", &["WRITE", "SMB_COM_WRITE"]),
    ("flush", &["FLUSH", "SMB_COM_FLUSH"]),
    ("query_info", &["QUERY_INFO", "TRANS2_QUERY_"]),
    ("set_info", &["SET_INFO", "TRANS2_SET_", "SMB_COM_RENAME", "SMB_COM_DELETE"]),
    ("query_directory", &["QUERY_DIRECTORY", "TRANS2_FIND_"]),
    ("lock", &["LOCK", "SMB_COM_LOCKING_ANDX"]),
    ("ioctl", &["IOCTL", "NT_TRANSACT_IOCTL"]),
];

impl BenchRun {
    pub fn inside_samba(&self) -> Vec<InsideSamba> {
        let Some(server) = &self.server else { return Vec::new() };
        let of = |(operation, commands): &(&str, &[&str])| {
            let mean = |suffix: &str| Some(server.metric(&format!("samba_{operation}{suffix}"))?.mean);
            let (per_second, inside) = (mean("")?, mean("_time")?);
            let response_time = self.mean_of(commands);
            let inside = Nanos(inside.round() as i64);
            Some(InsideSamba { operation: operation.replace('_', " "), per_second, inside, response_time })
        };
        COMMANDS.iter().filter_map(of).collect()
    }

    fn mean_of(&self, beginnings: &[&str]) -> Option<Nanos> {
        let is_one = |name: &str| beginnings.iter().any(|beginning| name.starts_with(beginning));
        let times =
            self.commands.iter().filter(|command| is_one(&command.command)).map(|command| &command.times.client);
        let (sum, count) = times.fold((0i128, 0i128), |(sum, count), figures| {
            let mean = figures.mean.map_or(0, |mean| i128::from(mean.0));
            (sum + mean * i128::from(figures.count), count + i128::from(figures.count))
        });
        (count > 0).then(|| Nanos::saturating(sum / count))
    }
}

/// Percentage from which a processor, disk or link has no reserve.
const USED_UP: f64 = 90.0;
/// Share of the time with commands outstanding from which a wait for a resource explains slow commands.
const MOST: f64 = 0.5;
/// Commands outstanding on average below which such a share means nothing.
const OUTSTANDING_MIN: f64 = 0.1;

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
