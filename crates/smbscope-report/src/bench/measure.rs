use super::BenchRun;
use crate::names::OTHER;
use smbscope_model::{CommandGroup, Nanos};
use smbscope_stats::{DurationStatistics, Measure, ServerFigure};

impl BenchRun {
    /// Returns the value of a measure: seconds, a rate per second, a percentage or a count. None if the run does not
    /// have it, or has too few commands to support it.
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

    /// Counts commands of a group or name, including those of connects. `NEGOTIATE` also matches `SMB_COM_NEGOTIATE`.
    fn count_of(&self, of: &str) -> u64 {
        if let Some(group) = self.groups.iter().find(|group| group.group.eq_ignore_ascii_case(of)) {
            return group.times.client.count;
        }
        let is = |name: &str| {
            name.eq_ignore_ascii_case(of)
                || name.strip_prefix("SMB_COM_").is_some_and(|name| name.eq_ignore_ascii_case(of))
        };
        let connects = self.connect_commands.iter().filter(|(name, _)| is(name)).map(|(_, count)| *count);
        let commands = self.commands.iter().filter(|command| is(&command.command));
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
