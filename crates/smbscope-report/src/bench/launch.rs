//! Answer, warnings and next steps for launches of a program, which take the place of a ramp.

use super::{BenchDocument, BenchRun, BenchRunOutcome, JobEntry, JobStatistics, RunCapture};
use crate::format::{counted, prose_percent, span, unbroken};
use crate::{Answer, Culprit};
use serde::{Deserialize, Serialize};
use smbscope_diagnose::next::{self, SuggestedCommand};
use smbscope_model::{Nanos, Timestamp};

/// Launches needed to judge the spread.
const ENOUGH: u64 = 3;

/// A program launched several times. Its launches are the jobs of the only load point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Launch {
    /// Program name without its path.
    pub program: String,
    /// Command and arguments. `{folder}` stands for the folder with the program's files, `{local}` for an empty one.
    pub command: Vec<String>,
    /// Condition that ended a launch: `a window with "Inbox"`.
    pub until: String,
    /// State of the caches at launch.
    pub caches: Caches,
    /// Program that mounted the share. Null if none was mounted.
    pub mounted_by: Option<String>,
}

/// State of the caches when a program is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Caches {
    /// Filled by earlier launches, on client and server.
    Warm,
    /// Empty: file caches of this machine dropped, share mounted again.
    Cold,
}

impl Caches {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Caches::Warm => "warm",
            Caches::Cold => "cold",
        }
    }
}

/// Formats `chromium took 4.88 s on average of 5 launches (4.71 s to 5.10 s), caches warm; 3.6 s of it (74%) were waits
/// for the server.`
fn headline(document: &BenchDocument, launch: &Launch) -> String {
    let Some((jobs, mean)) = done(document) else {
        return format!("No launch of {} was done.", launch.program);
    };
    let spread = match (jobs.elapsed.min, jobs.elapsed.max) {
        (Some(min), Some(max)) if jobs.elapsed.count > 1 => {
            format!(" ({} to {})", unbroken(span(min)), unbroken(span(max)))
        }
        _ => String::new(),
    };
    let of = match jobs.elapsed.count {
        1 => "in one launch".to_owned(),
        n => format!("on average of {n} launches"),
    };
    let waited = match jobs.waited_sum_ns {
        Some(waited) if !document.target.is_local() => {
            let each = mean_wait(jobs, waited);
            let share = prose_percent(waited.0.unsigned_abs(), jobs.elapsed_sum_ns.0.unsigned_abs());
            format!("; {} of it ({share}) were waits for the server", unbroken(span(each)))
        }
        _ => String::new(),
    };
    format!("{} took {} {of}{spread}, caches {}{waited}.", launch.program, unbroken(span(mean)), launch.caches.name())
}

/// Returns the launches that were done, and their mean. None if no launch was.
fn done(document: &BenchDocument) -> Option<(&JobStatistics, Nanos)> {
    let jobs = document.runs.first()?.jobs.as_ref().filter(|jobs| jobs.elapsed.count > 0)?;
    Some((jobs, jobs.elapsed.mean?))
}

fn mean_wait(jobs: &JobStatistics, waited: Nanos) -> Nanos {
    Nanos(waited.0 / jobs.elapsed.count.max(1) as i64)
}

/// Returns the answer: headline, culprit, and a command for the capture of the slowest launch.
pub(super) fn answer(document: &BenchDocument, launch: &Launch) -> Answer {
    let culprit = done(document).map_or(Culprit::Capture, |(jobs, mean)| {
        smbscope_diagnose::whose_launch(mean, jobs.waited_sum_ns.map(|waited| mean_wait(jobs, waited)))
    });
    Answer { culprit, headline: headline(document, launch), next: steps(document), ..Answer::default() }
}

pub(super) fn warnings(document: &BenchDocument) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some(run) = document.runs.first() else { return warnings };
    match &run.ended {
        BenchRunOutcome::Failed { why } => warnings.push(format!("The series ended early: {why}.")),
        BenchRunOutcome::Interrupted => warnings.push("The series was interrupted.".to_owned()),
        BenchRunOutcome::Done | BenchRunOutcome::Stopped { .. } => {}
    }
    let done = run.jobs.as_ref().map_or(0, |jobs| jobs.elapsed.count);
    if (1..ENOUGH).contains(&done) {
        let say = if done == 1 { "says" } else { "say" };
        let launches = counted(done, "launch", "launches");
        warnings.push(format!("{launches} {say} little about the spread: use --repetitions 5."));
    }
    match &run.capture {
        Some(RunCapture::Skipped { why }) => {
            warnings.push(format!("What it waited for the server is not known: {why}."))
        }
        Some(RunCapture::Made(made)) if made.dropped_packets > 0 => warnings.push(format!(
            "The capture lacks {}: waits may be missing.",
            counted(made.dropped_packets, "packet", "packets")
        )),
        _ => {}
    }
    warnings
}

fn steps(document: &BenchDocument) -> Vec<SuggestedCommand> {
    let step = || {
        let run = document.runs.first()?;
        let directory = document.invocation.as_ref()?.directory.as_deref()?;
        let file = next::file(&super::capture_of(directory, run)?)?;
        let slowest = slowest(run)?;
        let (from, length) = (slowest.started_ns, slowest.elapsed_ns.0);
        let at = |time: Timestamp| {
            let time = jiff::Timestamp::from_nanosecond(i128::from(time.0)).ok()?;
            Some(time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
        };
        // Round up to the next millisecond.
        let to = Timestamp(from.0.saturating_add(length).saturating_add(999_999));
        let filter = format!("time >= {} and time < {}", at(from)?, at(to)?);
        Some(SuggestedCommand::new("slowest", format!("smbscope analyze --filter '{filter}' {file}")))
    };
    step().into_iter().collect()
}

fn slowest(run: &BenchRun) -> Option<&JobEntry> {
    run.jobs.as_ref()?.list.iter().max_by_key(|job| job.elapsed_ns)
}
