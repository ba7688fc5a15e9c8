//! Results of reading captures other than the exchanges, the errors of an analysis, and its report.

use super::{AggregatedExchanges, AnalysisOptions, CaptureSetAnalysis};
use crate::keys::KeysError;
use smbscope_analyze::pipeline::{self, RerunReason};
use smbscope_capture::reader::CaptureError;
use smbscope_diagnose::CatalogueError;
use smbscope_model::travel::TravelError;
use smbscope_model::{CaptureInfo, ClockStep, Endpoints, Nanos, Quality, Role, SeenTwice};
use smbscope_report::{Explanation, Report, counted};
use smbscope_stats::filter::{Filter, FilterError};
use smbscope_stats::{Aggregate, BINS_MAX, beside};
use std::io;
use std::path::PathBuf;

pub const WITHOUT_THREADS: &str =
    "the system refused to start a thread (ulimit -u?): one thread did all the work, which takes longer";

#[derive(Debug)]
pub struct AnalyzedCaptures {
    pub captures: Vec<CaptureInfo>,
    /// Inputs that could not be read, with the reason, one per line. No statistics include them.
    pub unread: Vec<String>,
    pub analysis: pipeline::CaptureFindings,
    pub interrupted: bool,
}

impl AnalyzedCaptures {
    pub fn truncations(&self) -> impl Iterator<Item = String> {
        self.captures.iter().filter_map(|info| info.truncated.clone())
    }

    /// Returns the warnings to show above the results, one per line.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(self.analysis.without_threads.then(|| WITHOUT_THREADS.to_owned()));
        if self.interrupted {
            notes.push("interrupted: these are the results so far".to_owned());
        }
        let encrypted = self.analysis.quality.encrypted_frames;
        if encrypted > 0 {
            let frames = counted(encrypted, "frame is", "frames are");
            notes.push(format!(
                "{frames} encrypted: only the frames can be timed, not the commands in them; --keys or --password-file \
                 decrypts them"
            ));
        }
        notes
    }

    /// Fails with a description of the traffic if there was neither SMB nor an attempt to connect to its ports.
    pub fn refuse_without_smb(&self, options: &AnalysisOptions) -> Result<(), AnalysisError> {
        if !self.analysis.connections.is_empty() || !self.analysis.connect_attempts.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.captures.iter().map(|info| info.name.as_str()).collect();
        let names = names.join(", ");
        if self.interrupted {
            return Err(AnalysisError::Interrupted(format!("{names}: interrupted before any SMB was read")));
        }
        let seen = match self.analysis.quality {
            Quality { packets: 0, .. } => "no packets in the capture; check its interface and its filter".to_owned(),
            Quality { tcp_packets: 0, .. } => self.without_tcp(),
            _ => self.without_smb(&options.reading.ports),
        };
        Err(AnalysisError::NoSmb(format!("{names}: {seen}")))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    #[error(transparent)]
    Capture(#[from] CaptureError),

    /// The inputs contain no SMB. The text describes the traffic they have instead.
    #[error("{0}")]
    NoSmb(String),

    #[error(transparent)]
    Keys(#[from] KeysError),

    #[error("{0}")]
    Interrupted(String),

    #[error("cannot read {}: {error}", path.display())]
    ThresholdsFile {
        path: PathBuf,
        #[source]
        error: io::Error,
    },

    #[error("{}: {error}", path.display())]
    Thresholds {
        path: PathBuf,
        #[source]
        error: CatalogueError,
    },

    #[error("{0}")]
    Episode(String),

    #[error("{0}")]
    Sides(String),

    #[error("{0}")]
    Stretch(String),

    #[error("--filter with --from or --to: {0}")]
    StretchFilter(#[source] FilterError),

    #[error("--episode {number}: {error}")]
    EpisodeFilter {
        number: u32,
        #[source]
        error: FilterError,
    },

    #[error("{}: {error}", path.display())]
    Piece {
        path: PathBuf,
        #[source]
        error: io::Error,
    },

    #[error("cannot write the exchanges: {0}")]
    Table(#[source] io::Error),

    #[error("{what}: {error}")]
    Received {
        what: String,
        #[source]
        error: TravelError,
    },

    #[error("the system refused to start a thread (ulimit -u?): {0}")]
    Thread(#[source] io::Error),

    /// The options don't work in parts. The text says what to do instead.
    #[error("{0}")]
    InParts(&'static str),

    /// A bug: the most conservative pass failed as well.
    #[error("the analysis failed: {0:?}")]
    Failed(RerunReason),
}

impl CaptureSetAnalysis {
    /// `options` must be the ones that the analysis used.
    pub fn into_report(self, options: &AnalysisOptions) -> Result<Report, AnalysisError> {
        let CaptureSetAnalysis { found, recorded, catalogue, sides } = self;
        let mut aggregate = recorded.aggregator.finish();
        if let Some(least) = CaptureInfo::least_time(&found.captures) {
            aggregate.forget_below(least);
        }
        let warnings = warnings(options, &found, &recorded, &aggregate);
        let AnalyzedCaptures { captures, analysis, .. } = found;
        let (waterfall, sample) = recorded.waterfall();
        let AggregatedExchanges { filtered, aggregator, collector, .. } = recorded;
        let mut report = Report {
            title: options.title.clone(),
            captures,
            quality: analysis.quality,
            skipped: analysis.skipped,
            encapsulations: analysis.encapsulations,
            connections: analysis.connections,
            connect_attempts: analysis.connect_attempts,
            aggregate,
            first: analysis.first,
            last: analysis.last,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            warnings,
            filter: filtered,
            interval: options.interval,
            slow: options.slow.clone(),
            sides,
            explanation: Explanation { waterfall, sample, ..Explanation::default() },
        };
        // Freeing large tables takes as long as the diagnosis, so both run in parallel.
        let explain =
            || collector.as_ref().map(|collector| (report.diagnosed(collector, &catalogue), collector.episodes()));
        let ((), explained) = beside(|| drop(aggregator), explain);
        if let Some((answer, episodes)) = explained {
            report.explanation.answer = answer;
            report.explanation.episodes = episodes;
        }
        Ok(report)
    }
}

fn warnings(
    options: &AnalysisOptions,
    found: &AnalyzedCaptures,
    recorded: &AggregatedExchanges,
    aggregate: &Aggregate,
) -> Vec<String> {
    let analysis = &found.analysis;
    let mut warnings = Vec::new();
    if found.interrupted {
        warnings.push("interrupted: the report covers the packets read so far".to_owned());
    }
    warnings.extend(found.unread.iter().cloned());
    warnings.extend(analysis.decryption.problems());
    if analysis.connections_left_out > 0 {
        let count = analysis.connections_left_out;
        warnings.push(format!("{count} connections are not listed because the list was full; their commands count"));
    }
    warnings.extend(analysis.clock_steps.iter().map(|step| clock_step(step, &found.captures)));
    warnings.extend(analysis.seen_twice.iter().filter_map(|seen| twice(seen, options.beside)));
    let foreign = analysis.foreign_replies.iter();
    warnings
        .extend(foreign.map(|reply| format!("{} is not an SMB server: it answered {}", reply.server, reply.protocol)));
    let takes_wildcards = options.filter.as_ref().is_some_and(Filter::compares_wildcards);
    if takes_wildcards && recorded.filtered.as_ref().is_some_and(|filtered| filtered.matched == 0) {
        warnings.push("nothing matched: == takes * and ? literally; use ~ for wildcards".to_owned());
    }
    if let Some(asked) = options.interval.filter(|asked| *asked < aggregate.timeline.width) {
        let (width, most) = (aggregate.timeline.width, BINS_MAX);
        warnings
            .push(format!("the bins of the time line are {width} wide: of {asked} there would be more than {most}"));
    }
    warnings
}

fn twice(seen: &SeenTwice, beside: Option<Role>) -> Option<String> {
    Some(match seen {
        SeenTwice::Routed(_) if beside.is_some() => return None,
        SeenTwice::Routed(Endpoints { client, server }) => format!(
            "{client} to {server} was captured on both sides of a router: each packet counts where it passed first; \
             --beside client or --beside server times all at one place"
        ),
        SeenTwice::Translated(one, other) => {
            let (field, address) = match one.client.ip() == other.client.ip() {
                false => ("client", other.client.ip()),
                true => ("server", other.server.ip()),
            };
            format!(
                "{} to {} and {} to {} are the same connection, captured on both sides of an address translation: its \
                 commands count twice; --filter '{field} != {address}' takes one side",
                one.client, one.server, other.client, other.server
            )
        }
    })
}

fn clock_step(step: &ClockStep, captures: &[CaptureInfo]) -> String {
    let name = captures.get(usize::from(step.after.packet.capture().0)).map_or("", |info| info.name.as_str());
    let (number, by) = (step.after.packet.number(), step.by());
    match by.0 < 0 {
        true => format!(
            "{name}: the clock stepped back by {} at packet {number}; later times are moved forward",
            Nanos(-by.0)
        ),
        false => {
            format!("{name}: the clock stepped forward by {by} at packet {number}, or the capture was stopped there")
        }
    }
}
