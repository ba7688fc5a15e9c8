//! Results of `smbscope bench`: a ramp of load points as one [`BenchDocument`].
//!
//! | module | output |
//! |---|---|
//! | [`write()`], [`BenchDocument::parse`] | `smbscope.bench/1`, the `run.json` of a run directory |
//! | [`render`] | the report for a terminal |
//! | [`histograms`], [`tables`] | the other files of a run directory |
//! | [`html::write_bench`](crate::html::write_bench) | a page with charts |

mod answer;
mod counted;
mod document;
mod failure;
mod headline;
pub mod histograms;
mod hosts;
mod jobs;
mod launch;
mod measure;
mod next;
mod overall;
mod samba;
mod server;
pub mod tables;
mod text;

pub use crate::names::OTHER;

pub use crate::document::{Generator, ParseError, schema_of};
pub use counted::LoadPointBreakdown;
pub use document::{
    BenchDocument, BenchRun, BenchRunOutcome, CapacityEntry, CapacityTrialEntry, Captured, ClientCpuEntry,
    ClientWireTimes, FileSetTotals, IntervalEntry, Invocation, LoopModel, MeasuredCommand, MeasuredGroup,
    OperationEntry, OverloadEntry, QueueDepthEntry, RampSettings, RunCapture, SCHEMA, ScheduleAdherence, StallEntry,
    TargetEntry, WorkloadEntry, write,
};
pub(crate) use document::{BenchEnvelope, load_name};
pub use hosts::{LoadHostEntry, LostHost};
pub use jobs::{JobEntry, JobStatistics};
pub use launch::{Caches, Launch};
pub(crate) use next::{again, capture as capture_of};
pub use overall::overall_response_time;
pub use samba::InsideSamba;
pub use server::{ServerLoad, ServerSeries};
pub(crate) use text::server as server_text;
pub use text::{RampDetailLevel, RampTextOptions, render};

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

    /// Adds everything derived from the runs: the answers of the load points and of the ramp, the overall response
    /// time, and warnings, which go before those already present.
    pub fn completed(mut self) -> BenchDocument {
        if let Some(launch) = &self.launch {
            self.answer = launch::answer(&self, launch);
            self.warnings = [launch::warnings(&self), self.warnings].concat();
            return self;
        }
        self.runs.iter_mut().for_each(|run| run.answer = answer::of_load_point(run));
        self.answer = answer::of_ramp(&self);
        self.overall_response_time_ns = overall_response_time(&self.runs, self.is_ramp_of_rates());
        let mut warnings = crate::warnings::of_ramp(&self);
        warnings.append(&mut self.warnings);
        self.warnings = warnings;
        self
    }
}
