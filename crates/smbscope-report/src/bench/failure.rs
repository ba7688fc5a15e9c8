//! Detects failed runs: a load point failed, too many operations failed, or no command was answered.

use super::{BenchDocument, BenchRun, BenchRunOutcome};
use crate::format::thousands;

impl BenchRun {
    /// Returns the failed operations and sessions, and the total of operations and failed sessions.
    fn failed_of_all(&self) -> (u64, u64) {
        let sessions = self.failures.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let done = self.workload_operations.iter().map(|operation| operation.service_time.count).sum::<u64>();
        (self.unexpected_count().saturating_add(sessions), done.saturating_add(sessions))
    }

    fn most_frequent_failure(&self) -> Option<&str> {
        let unexpected = self.workload_operations.iter().flat_map(|operation| &operation.unexpected);
        let most = unexpected.chain(&self.failures).max_by_key(|(why, count)| (**count, std::cmp::Reverse(*why)));
        most.map(|(why, _)| why.trim_end_matches('.'))
    }
}

impl BenchDocument {
    /// Returns the reason if the run counts as failed, without a final full stop: a load point failed, more operations
    /// failed than `max_errors_percent` allows, or no command was answered at all.
    pub fn failure(&self) -> Option<String> {
        let failed = self.runs.iter().find_map(|run| match &run.ended {
            BenchRunOutcome::Failed { why } => Some(why.trim_end_matches('.').to_owned()),
            _ => None,
        });
        failed.or_else(|| self.too_many_errors()).or_else(|| self.no_answer())
    }

    /// Does not apply to a capacity search, which judges its load points by its own criterion.
    fn too_many_errors(&self) -> Option<String> {
        let most = self.settings.max_errors_percent.filter(|_| self.capacity.is_none())?;
        self.runs.iter().find_map(|run| {
            let (failed, all) = run.failed_of_all();
            let percent = failed as f64 / all.max(1) as f64 * 100.0;
            (percent > most).then(|| {
                let at = if self.runs.len() > 1 { format!(" with {}", self.load_name(run)) } else { String::new() };
                let why = run.most_frequent_failure().map_or_else(String::new, |why| format!(", mostly with {why}"));
                let (failed, all) = (thousands(failed), thousands(all));
                format!("{failed} of {all} operations failed ({percent:.1}%){at}{why}; --max-errors allows {most}%")
            })
        })
    }

    fn no_answer(&self) -> Option<String> {
        let is_measured = self.launch.is_none() && !self.runs.is_empty() && self.capacity.is_none();
        let none = self.runs.iter().all(|run| run.operations == 0 && run.ended == BenchRunOutcome::Done);
        (is_measured && none).then(|| "no command was answered".to_owned())
    }
}
