//! Capture analysis: from inputs and [`AnalysisOptions`] to a [`Report`](smbscope_report::Report) or a table of
//! exchanges.
//!
//! ```no_run
//! # fn example() -> Result<(), smbscope_explain::analysis::AnalysisError> {
//! use smbscope_explain::analysis::{AnalysisOptions, CaptureInput, CaptureSetAnalysis};
//!
//! let options = AnalysisOptions::default();
//! let analysis = CaptureSetAnalysis::run(&[CaptureInput::from_argument("capture.pcapng")], &options, &mut ())?;
//! println!("{}", analysis.into_report(&options)?.explanation.answer.headline);
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here prints or handles signals. An [`AnalysisObserver`] follows the progress and can stop it.

mod found;
pub mod live;
pub mod parts;
mod recorder;
mod sides;
mod stretch;
mod table;

pub use crate::options::AnalysisOptions;
pub use found::{AnalysisError, AnalyzedCaptures, WITHOUT_THREADS};
pub use recorder::AggregatedExchanges;
pub use sides::nearer_to_the_client;
pub use smbscope_capture::reader::CaptureInput;
pub use table::{ExchangeExport, ExchangeExportResult};

use crate::keys;
use recorder::AnalysisRecorder;
use sides::{MeasuredPaths, MeasuredSink};
use smbscope_analyze::AnalyzerOptions;
use smbscope_analyze::pipeline::{self, RerunReason, Sharding, Sink, Threading};
use smbscope_capture::reader::CaptureSet;
use smbscope_diagnose::Catalogue;
use smbscope_model::units;
use smbscope_stats::each_beside;
use smbscope_stats::filter::{Filter, FilterError};
use smbscope_stats::sides::{PointSightings, SidesFigures};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub trait AnalysisObserver {
    /// Called when reading starts, possibly again. Setting the flag stops it, even while it waits for a pipe.
    fn begins(&mut self, _stop: &Arc<AtomicBool>) {}

    fn reads(&mut self, _set: &CaptureSet) {}

    fn ended(&mut self) {}
}

impl AnalysisObserver for () {}

/// Captures and options of the pass that makes the report: of several capture points the captures nearest to the
/// client, with the measured ways to the server, and a filter in place of an episode.
#[derive(Debug, Clone)]
pub struct PreparedAnalysis {
    pub inputs: Vec<CaptureInput>,
    pub options: AnalysisOptions,
    paths: Option<Arc<MeasuredPaths>>,
}

impl PreparedAnalysis {
    pub fn new(
        inputs: &[CaptureInput],
        options: &AnalysisOptions,
        observer: &mut dyn AnalysisObserver,
    ) -> Result<PreparedAnalysis, AnalysisError> {
        let (inputs, options) = stretch::narrowed(inputs, options)?;
        let (inputs, paths) = match sides::measured(&inputs, &options, observer)? {
            Some((near, paths)) => (near, Some(Arc::new(paths))),
            None => (inputs, None),
        };
        let options = narrowed(&inputs, &options, observer)?;
        Ok(PreparedAnalysis { inputs, options, paths })
    }

    /// Takes inputs of one point and options without an episode as they are.
    pub fn as_given(inputs: Vec<CaptureInput>, options: AnalysisOptions) -> PreparedAnalysis {
        PreparedAnalysis { inputs, options, paths: None }
    }

    pub fn open(&self) -> Result<PendingAnalysis<'_>, AnalysisError> {
        let (catalogue, pass) = (catalogue(&self.options)?, AnalysisPass::first(&self.inputs, &self.options));
        let how = how(&self.options)?;
        Ok(PendingAnalysis { set: pass.open(&self.inputs)?, prepared: self, catalogue, how, pass })
    }

    fn following<'a>(&'a self, analyzer: &'a AnalyzerOptions) -> FollowOptions<'a> {
        FollowOptions { analyzer, paths: self.paths.as_deref() }
    }
}

pub struct PendingAnalysis<'p> {
    prepared: &'p PreparedAnalysis,
    catalogue: Catalogue,
    how: AnalyzerOptions,
    pass: AnalysisPass,
    set: CaptureSet,
}

#[derive(Debug)]
pub struct CaptureSetAnalysis {
    pub found: AnalyzedCaptures,
    pub recorded: AggregatedExchanges,
    catalogue: Catalogue,
    /// The way between the capture points. None for captures of one point.
    sides: Option<SidesFigures>,
}

impl CaptureSetAnalysis {
    pub fn run(
        inputs: &[CaptureInput],
        options: &AnalysisOptions,
        observer: &mut dyn AnalysisObserver,
    ) -> Result<CaptureSetAnalysis, AnalysisError> {
        PreparedAnalysis::new(inputs, options, observer)?.open()?.run(observer)
    }

    /// Returns the exchanges for [`nearer_to_the_client`], if the options asked to keep them.
    pub fn take_sightings(&mut self) -> Option<PointSightings> {
        self.recorded.sightings.take()
    }
}

impl PendingAnalysis<'_> {
    /// Analyses the captures. Starts over if an assumption about them proves wrong.
    pub fn run(self, observer: &mut dyn AnalysisObserver) -> Result<CaptureSetAnalysis, AnalysisError> {
        let PendingAnalysis { prepared, catalogue, how, mut pass, mut set } = self;
        let (options, following) = (&prepared.options, prepared.following(&how));
        let (found, mut recorded) = loop {
            match recorded(options, &following, pass.sharding(), &mut set, observer) {
                Ok(analysis) => break analysis,
                Err(failure) => {
                    tracing::info!(?failure, "reading the captures again");
                    pass.learn(failure);
                }
            }
            set.refuse_cut_short()?;
            set = pass.open(&prepared.inputs)?;
        };
        set.refuse_cut_short()?;
        found.refuse_without_smb(options)?;
        if let Some(sightings) = &mut recorded.sightings {
            sightings.finish(&set.clock_steps());
        }
        let sides = prepared.paths.as_ref().map(|paths| paths.figures.clone());
        Ok(CaptureSetAnalysis { found, recorded, catalogue, sides })
    }
}

fn recorded(
    options: &AnalysisOptions,
    following: &FollowOptions<'_>,
    sharding: Sharding,
    set: &mut CaptureSet,
    observer: &mut dyn AnalysisObserver,
) -> Result<(AnalyzedCaptures, AggregatedExchanges), RerunReason> {
    let workers = if sharding == Sharding::None { 1 } else { options.reading.threads().max(1) };
    let (names, start) = (names(set), set.first_packet());
    let mut recorders: Vec<AnalysisRecorder> =
        (0..workers).map(|_| AnalysisRecorder::new(options, &names, Arc::clone(&start))).collect();
    let threading = if options.reading.threads() <= 1 { Threading::Inline } else { Threading::Workers };
    let found = following.follow(set, sharding, threading, &mut recorders, observer)?;
    Ok((found, merged(recorders.into_iter().map(AnalysisRecorder::finish).collect())))
}

fn merged(mut parts: Vec<AggregatedExchanges>) -> AggregatedExchanges {
    while parts.len() > 1 {
        let others = parts.split_off(parts.len().div_ceil(2));
        each_beside(parts.iter_mut().zip(others), |(mine, theirs)| mine.merge(theirs));
    }
    parts.swap_remove(0)
}

/// Settings of a pass over captures.
struct FollowOptions<'a> {
    analyzer: &'a AnalyzerOptions,
    paths: Option<&'a MeasuredPaths>,
}

impl FollowOptions<'_> {
    fn follow<S: Sink>(
        &self,
        set: &mut CaptureSet,
        sharding: Sharding,
        threading: Threading,
        sinks: &mut [S],
        observer: &mut dyn AnalysisObserver,
    ) -> Result<AnalyzedCaptures, RerunReason> {
        let stop = set.stop_flag();
        observer.begins(&stop);
        let found = match self.paths {
            None => pipeline::run(set, self.analyzer, sharding, threading, sinks, |set| observer.reads(set)),
            Some(paths) => {
                let mut sinks: Vec<MeasuredSink<'_, S>> =
                    sinks.iter_mut().map(|sink| MeasuredSink { sink, paths }).collect();
                let found =
                    pipeline::run(set, self.analyzer, sharding, threading, &mut sinks, |set| observer.reads(set));
                found.map(|mut found| {
                    paths.correct(&mut found.connections);
                    found
                })
            }
        };
        observer.ended();
        let interrupted = stop.load(Ordering::Relaxed);
        Ok(AnalyzedCaptures { captures: set.captures().to_vec(), unread: Vec::new(), analysis: found?, interrupted })
    }
}

fn names(set: &CaptureSet) -> Vec<String> {
    set.captures().iter().map(|info| info.name.clone()).collect()
}

fn how(options: &AnalysisOptions) -> Result<AnalyzerOptions, AnalysisError> {
    Ok(AnalyzerOptions {
        ports: options.reading.ports.clone(),
        limits: options.reading.memory.budget(),
        tunnels: options.reading.tunnels.ports(),
        beside: options.beside,
        details: false,
        keys: keys::ring(&options.reading.decryption)?,
    })
}

/// Returns the options with a filter that selects their episode, or unchanged if they name none.
fn narrowed(
    inputs: &[CaptureInput],
    options: &AnalysisOptions,
    observer: &mut dyn AnalysisObserver,
) -> Result<AnalysisOptions, AnalysisError> {
    let Some(number) = options.episode else { return Ok(options.clone()) };
    let filter = of_episode(inputs, options, number, observer)?;
    Ok(AnalysisOptions { filter: Some(filter), episode: None, waterfall: true, ..options.clone() })
}

/// Returns a filter that selects an episode.
pub fn of_episode(
    inputs: &[CaptureInput],
    options: &AnalysisOptions,
    number: u32,
    observer: &mut dyn AnalysisObserver,
) -> Result<Filter, AnalysisError> {
    if !inputs.iter().all(CaptureInput::can_be_read_again) {
        let pipe = "--episode reads its captures twice, which a pipe does not allow: give files";
        return Err(AnalysisError::Episode(pipe.to_owned()));
    }
    let options = AnalysisOptions { by: Vec::new(), episode: None, thresholds: None, ..options.clone() };
    let prepared = PreparedAnalysis::as_given(inputs.to_vec(), options);
    let options = &prepared.options;
    let report = prepared.open()?.run(observer)?.into_report(options)?;
    let episodes = &report.explanation.episodes;
    let Some(episode) = (number as usize).checked_sub(1).and_then(|index| episodes.get(index)) else {
        return Err(AnalysisError::Episode(match episodes.len() {
            0 => format!("--episode {number}: there is no episode; an episode has at least 10 commands"),
            1 => format!("--episode {number}: there is only episode 1"),
            n => format!("--episode {number}: there are {n} episodes; --full lists them"),
        }));
    };
    let begin = report.first.unwrap_or_default();
    let at = |time: smbscope_model::Timestamp| units::exact_duration(time - begin);
    let (start, end) = (at(episode.start), at(episode.end));
    let condition = format!("client == {} and time >= {start} and time <= {end}", episode.client);
    beside_given(options, condition).map_err(|error| AnalysisError::EpisodeFilter { number, error })
}

/// Returns a filter with a further condition.
fn beside_given(options: &AnalysisOptions, condition: String) -> Result<Filter, FilterError> {
    match &options.filter {
        Some(given) => format!("({given}) and {condition}").parse(),
        None => condition.parse(),
    }
}

/// Assumptions under which the inputs are read. If one proves wrong, the next pass does without it.
pub(super) struct AnalysisPass {
    in_order: bool,
    sharding: Sharding,
    memory: usize,
}

impl AnalysisPass {
    pub(super) fn first(inputs: &[CaptureInput], options: &AnalysisOptions) -> AnalysisPass {
        let memory = options.reading.memory.bytes();
        match inputs.iter().all(CaptureInput::can_be_read_again) {
            true => AnalysisPass { in_order: true, sharding: Sharding::Connections, memory },
            false => AnalysisPass { in_order: false, sharding: Sharding::None, memory },
        }
    }

    pub(super) fn sharding(&self) -> Sharding {
        self.sharding
    }

    pub(super) fn open(&self, inputs: &[CaptureInput]) -> Result<CaptureSet, AnalysisError> {
        Ok(CaptureSet::open_with_memory(inputs, self.in_order, self.memory)?)
    }

    pub(super) fn learn(&mut self, failure: RerunReason) {
        match failure {
            RerunReason::OutOfOrder => self.in_order = false,
            RerunReason::Coupled => {
                self.sharding = match self.sharding {
                    Sharding::Connections => Sharding::Hosts,
                    Sharding::Hosts | Sharding::None => Sharding::None,
                }
            }
        }
    }
}

/// Bytes of a thresholds file; more are refused.
const THRESHOLDS_MAX: u64 = 1 << 20;

/// Returns the causes with the thresholds of the options' file.
fn catalogue(options: &AnalysisOptions) -> Result<Catalogue, AnalysisError> {
    let Some(path) = &options.thresholds else { return Ok(Catalogue::default()) };
    let unreadable = |error| AnalysisError::ThresholdsFile { path: path.clone(), error };
    let text = keys::bounded(path, THRESHOLDS_MAX).map_err(unreadable)?;
    let text = String::from_utf8(text.to_vec()).map_err(|error| unreadable(io::Error::other(error)))?;
    Catalogue::with_thresholds(&text).map_err(|error| AnalysisError::Thresholds { path: path.clone(), error })
}
