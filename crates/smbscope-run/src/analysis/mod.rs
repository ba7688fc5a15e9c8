//! The analysis of captures: from inputs and [`AnalysisOptions`] to a [`Report`](smbscope_report::Report), or to the exchanges themselves.
//!
//! ```no_run
//! # fn example() -> Result<(), smbscope_run::analysis::Error> {
//! use smbscope_run::analysis::{Analysis, AnalysisOptions, Input};
//!
//! let options = AnalysisOptions::default();
//! let analysis = Analysis::run(&[Input::from_argument("capture.pcapng")], &options, &mut ())?;
//! println!("{}", analysis.into_report(&options)?.explanation.answer.headline);
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here prints or handles a signal: an [`Observer`] learns how far the reading is, and gets the flag that ends it.

mod episode;
mod error;
mod found;
pub mod parts;
mod pass;
mod recorder;
mod report;
mod table;
mod thresholds;

pub use episode::{narrowed, of_episode};
pub use error::AnalysisError;
pub use found::{AnalyzedCaptures, WITHOUT_THREADS};
pub use recorder::AggregatedExchanges;
pub use smbscope_capture::reader::CaptureInput;
pub use table::{ExchangeExport, ExchangeExportResult};
pub use thresholds::catalogue;

use pass::AnalysisPass;
use recorder::AnalysisRecorder;
use smbscope_analyze::AnalyzerOptions;
use smbscope_analyze::pipeline::{self, RerunReason, Sharding, Sink, Threading};
use smbscope_capture::reader::CaptureSet;
use smbscope_diagnose::Catalogue;
use smbscope_diagnose::whatif::Scenario;
use smbscope_model::{MemoryBudget, Nanos, Role};
use smbscope_report::Slow;
use smbscope_stats::filter::Filter;
use smbscope_stats::{Dimension, SliceSortKey, each_beside};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What is asked of captures, by the names of the command line.
#[derive(Debug, Clone)]
pub struct AnalysisOptions {
    /// Look only at connections with one of these TCP ports at either end; at all where there is none.
    pub ports: Vec<u16>,
    /// Bytes for connection state, and again for the windows of decompressors.
    pub memory: usize,
    /// Threads that follow connections; with 1, one thread does everything.
    pub threads: usize,
    /// Look only at exchanges that pass.
    pub filter: Option<Filter>,
    /// Look only at the episode with this number, from 1; [`narrowed`] makes a filter of it.
    pub episode: Option<u32>,
    /// Predict how long the episode takes otherwise.
    pub what_if: Vec<Scenario>,
    /// Keep the first commands that pass the filter, as the picture of an episode needs them.
    pub waterfall: bool,
    /// Group results by these fields.
    pub by: Vec<Dimension>,
    /// Sort groups by this figure.
    pub sort: SliceSortKey,
    /// The width of bins on the time line.
    pub interval: Option<Nanos>,
    /// What counts as slow.
    pub slow: Slow,
    /// Look for findings and episodes.
    pub findings: bool,
    /// The findings with their thresholds.
    pub catalogue: Catalogue,
    /// Where packets were captured on both sides of a router: which copy to use; the first one where it is not said.
    pub beside: Option<Role>,
    /// A title for the report.
    pub title: Option<String>,
}

impl Default for AnalysisOptions {
    fn default() -> AnalysisOptions {
        AnalysisOptions {
            ports: Vec::new(),
            memory: MemoryBudget::DEFAULT_MEMORY,
            threads: thread::available_parallelism().map_or(1, usize::from),
            filter: None,
            episode: None,
            what_if: Vec::new(),
            waterfall: false,
            by: Vec::new(),
            sort: SliceSortKey::default(),
            interval: None,
            slow: Slow::default(),
            findings: true,
            catalogue: Catalogue::default(),
            beside: None,
            title: None,
        }
    }
}

/// Learns of an analysis while it goes on.
pub trait AnalysisObserver {
    /// The inputs are read, from their beginning: whoever sets the flag ends that early. It also ends a read that waits for a
    /// pipe. May come several times.
    fn begins(&mut self, _stop: &Arc<AtomicBool>) {}

    /// So far the reading is; told every few thousand packets.
    fn reads(&mut self, _set: &CaptureSet) {}

    /// The inputs were read.
    fn ended(&mut self) {}
}

/// Nobody looks.
impl AnalysisObserver for () {}

/// Captures that are open, and about to be analysed.
pub struct PendingAnalysis<'o> {
    inputs: &'o [CaptureInput],
    options: &'o AnalysisOptions,
    pass: AnalysisPass,
    set: CaptureSet,
}

/// What an analysis found.
#[derive(Debug)]
pub struct CaptureSetAnalysis {
    /// What was found apart from the exchanges.
    pub found: AnalyzedCaptures,
    /// What was counted of the exchanges.
    pub recorded: AggregatedExchanges,
}

impl CaptureSetAnalysis {
    /// Analyses captures; several inputs are one capture.
    pub fn run(
        inputs: &[CaptureInput],
        options: &AnalysisOptions,
        observer: &mut dyn AnalysisObserver,
    ) -> Result<CaptureSetAnalysis, AnalysisError> {
        let options = narrowed(inputs, options, observer)?;
        PendingAnalysis::open(inputs, &options)?.run(observer)
    }
}

impl<'o> PendingAnalysis<'o> {
    /// Opens the inputs. The options are to be [`narrowed`].
    pub fn open(
        inputs: &'o [CaptureInput],
        options: &'o AnalysisOptions,
    ) -> Result<PendingAnalysis<'o>, AnalysisError> {
        let pass = AnalysisPass::first(inputs, options);
        Ok(PendingAnalysis { set: pass.open(inputs)?, inputs, options, pass })
    }

    /// Reads them, once more where what was taken for granted about them was wrong.
    pub fn run(self, observer: &mut dyn AnalysisObserver) -> Result<CaptureSetAnalysis, AnalysisError> {
        let PendingAnalysis { inputs, options, mut pass, mut set } = self;
        let analysis = loop {
            match recorded(options, pass.sharding(), &mut set, observer) {
                Ok(analysis) => break analysis,
                Err(failure) => {
                    tracing::info!(?failure, "reading the captures again");
                    pass.learn(failure);
                }
            }
            set.refuse_cut_short()?;
            set = pass.open(inputs)?;
        };
        set.refuse_cut_short()?;
        analysis.found.refuse_without_smb(options)?;
        Ok(analysis)
    }
}

/// Counts every exchange.
fn recorded(
    options: &AnalysisOptions,
    sharding: Sharding,
    set: &mut CaptureSet,
    observer: &mut dyn AnalysisObserver,
) -> Result<CaptureSetAnalysis, RerunReason> {
    let workers = if sharding == Sharding::None { 1 } else { options.threads.max(1) };
    let (names, start) = (names(set), set.first_packet());
    let mut recorders: Vec<AnalysisRecorder> =
        (0..workers).map(|_| AnalysisRecorder::new(options, &names, Arc::clone(&start))).collect();
    let threading = if options.threads <= 1 { Threading::Inline } else { Threading::Workers };
    let found = follow(options, set, sharding, threading, &mut recorders, observer)?;
    let recorded = merged(recorders.into_iter().map(AnalysisRecorder::finish).collect());
    Ok(CaptureSetAnalysis { found, recorded })
}

/// Adds up what the threads counted, two and two at the same time.
fn merged(mut parts: Vec<AggregatedExchanges>) -> AggregatedExchanges {
    while parts.len() > 1 {
        let others = parts.split_off(parts.len().div_ceil(2));
        each_beside(parts.iter_mut().zip(others), |(mine, theirs)| mine.merge(theirs));
    }
    parts.swap_remove(0)
}

/// Reads every packet and hands every exchange on.
fn follow<S: Sink>(
    options: &AnalysisOptions,
    set: &mut CaptureSet,
    sharding: Sharding,
    threading: Threading,
    sinks: &mut [S],
    observer: &mut dyn AnalysisObserver,
) -> Result<AnalyzedCaptures, RerunReason> {
    let stop = set.stop_flag();
    observer.begins(&stop);
    let found = pipeline::run(set, &how(options), sharding, threading, sinks, |set| observer.reads(set));
    observer.ended();
    let interrupted = stop.load(Ordering::Relaxed);
    Ok(AnalyzedCaptures { captures: set.captures().to_vec(), unread: Vec::new(), analysis: found?, interrupted })
}

/// What the captures are called.
fn names(set: &CaptureSet) -> Vec<String> {
    set.captures().iter().map(|info| info.name.clone()).collect()
}

/// What of the options matters to those who follow connections.
fn how(options: &AnalysisOptions) -> AnalyzerOptions {
    AnalyzerOptions {
        ports: options.ports.clone(),
        limits: MemoryBudget::for_memory(options.memory),
        beside: options.beside,
        details: false,
    }
}
