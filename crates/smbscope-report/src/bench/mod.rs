//! Results of `smbscope bench`: a ramp of load points as one [`BenchDocument`].
//!
//! | module | output |
//! |---|---|
//! | [`write()`], [`BenchDocument::parse`] | `smbscope.bench/1`, the `run.json` of a run directory |
//! | [`render`] | the report for a terminal |
//! | [`files`] | the other files of a run directory |
//! | [`html::write_bench`](crate::html::write_bench) | a page with charts |

mod answer;
mod document;
pub mod files;
mod load_point;
mod measure;
mod next;
mod resources;
mod server;
mod text;
mod warnings;

pub use crate::names::OTHER;

pub use crate::document::{Generator, ParseError, schema_of};
pub use document::{
    BenchDocument, Caches, CapacityEntry, CapacityTrialEntry, FileSetTotals, Invocation, Launch, LoopModel,
    RampSettings, SCHEMA, TargetEntry, WorkloadEntry, write,
};
pub(crate) use document::{BenchEnvelope, load_name};
pub use load_point::{
    BenchRun, BenchRunOutcome, Captured, ClientCpuEntry, ClientWireTimes, IntervalEntry, JobEntry, JobStatistics,
    LoadHostEntry, LoadPointBreakdown, LostHost, MeasuredCommand, MeasuredGroup, OperationEntry, OverloadEntry,
    QueueDepthEntry, RunCapture, ScheduleAdherence, ServerCapture, StallEntry,
};
pub use measure::{InsideSamba, overall_response_time};
pub(crate) use next::{again, capture as capture_of};
pub use server::{ServerLoad, ServerSeries};
pub(crate) use text::breakdown::{MeanAndMaximum, server_table};
pub use text::{RampDetailLevel, RampTextOptions, markdown, render};
pub(crate) use warnings::far_below_its_rate;

impl BenchDocument {
    pub(crate) fn heading(&self) -> String {
        match &self.title {
            Some(title) if self.launch.is_some() => format!("Launch: {title}"),
            Some(title) => format!("SMB load: {title}"),
            None if let Some(launch) = &self.launch => format!("Launch of {}", launch.program),
            None if self.target.is_local() => "Load on a local folder".to_owned(),
            None => format!("SMB load on {}", self.target.host),
        }
    }

    /// Adds everything derived from the runs: answers, overall response time, and warnings, which go first.
    pub fn completed(mut self) -> BenchDocument {
        if let Some(launch) = &self.launch {
            self.answer = answer::of_launch(&self, launch);
            self.warnings = [warnings::of_launch(&self), self.warnings].concat();
            return self;
        }
        self.runs.iter_mut().for_each(|run| run.answer = answer::of_load_point(run));
        self.answer = answer::of_ramp(&self);
        self.overall_response_time_ns = overall_response_time(&self.runs, self.is_ramp_of_rates());
        let mut warnings = warnings::of_ramp(&self);
        warnings.append(&mut self.warnings);
        self.warnings = warnings;
        self
    }
}
