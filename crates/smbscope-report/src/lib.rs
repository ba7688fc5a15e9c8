//! One [`Report`] value as text, in the layout of 1997, as JSON; and the exchange table as CSV or Parquet.
//!
//! | module | output | for |
//! |---|---|---|
//! | [`text`] | the report for a terminal | people |
//! | [`classic`] | the layout of Swartz (1997), appendix A | comparison with reports of that kind |
//! | [`json`] | one object, `smbscope.report/1` | programs |
//! | [`html`] | one self-contained page that shows a JSON document | people |
//! | [`mod@bench`] | a ramp of load points as text and JSON, `smbscope.bench/1` | people and programs |
//! | [`compare`] | several of them side by side, `smbscope.compare/1` | people and programs |
//! | [`study`] | the runs of a study and their results, `smbscope.study/1` | people and programs |
//! | [`csv`] | a row an exchange, streamed | checking every match from outside |
//! | [`parquet`] | the same rows, typed and compressed | data frames, SQL |
//! | [`mod@arrow`] | the lists of a document, typed | data frames in the same process |
//! | [`slice_table`] | a row a slice, as CSV | spreadsheets |

pub mod arrow;
pub mod bench;
pub mod classic;
pub mod compare;
pub mod csv;
pub mod html;
pub mod json;
pub mod parquet;
pub mod slice_table;
pub mod study;
pub mod table;
pub mod text;

mod bands;
mod dialects;
mod document;
mod episodes;
mod fail_if;
mod format;
mod judgement;
mod load;
mod names;
mod offers;
mod packets;
#[cfg(feature = "schema")]
pub mod schema;
mod sentence;
mod slices;
mod smb1;
mod warnings;
mod whole;

pub use document::{Generator, ParseError, schema_of};
pub use fail_if::FailIf;
pub use format::{clean, counted, or_dash, rate, span};
pub use judgement::{Judged, Judgement};
pub use smbscope_diagnose::next::{SuggestedCommand, quoted};
pub use smbscope_diagnose::{Answer, Cause, Culprit, Slow};
pub use text::style::STYLES;
pub use text::table::listed;

use smbscope_diagnose::whatif::Prediction;
use smbscope_diagnose::{Catalogue, Collector, DiagnosisContext, Episode};
use smbscope_model::{
    CaptureInfo, ConnectAttempts, ConnectionSummary, Exchange, Nanos, Quality, SkippedPackets, Timestamp, UntimedShare,
};
use smbscope_stats::{Aggregate, Aggregator, Census};

/// Everything that a report says.
#[derive(Debug, Clone)]
pub struct Report {
    /// A title given by the user.
    pub title: Option<String>,
    /// The captures, in the order of their [`CaptureId`](smbscope_model::CaptureId).
    pub captures: Vec<CaptureInfo>,
    /// What the captures could not show.
    pub quality: Quality,
    /// Packets that are no TCP, by protocol, most packets first.
    pub skipped: Vec<SkippedPackets>,
    /// The connections that carried SMB, in the order of their first packet.
    pub connections: Vec<ConnectionSummary>,
    /// Failed attempts to connect to SMB servers.
    pub connect_attempts: ConnectAttempts,
    /// The statistics.
    pub aggregate: Aggregate,
    /// First packet of the captures.
    pub first: Option<Timestamp>,
    /// Last packet of the captures.
    pub last: Option<Timestamp>,
    /// Version of smbscope.
    pub version: String,
    /// Further warnings, a sentence each.
    pub warnings: Vec<String>,
    /// The filter, where the statistics are about chosen exchanges only.
    pub filter: Option<Filtered>,
    /// The width of bins that was asked for; the time line is shown only then, and its bins may be wider.
    pub interval: Option<Nanos>,
    /// What counts as slow.
    pub slow: Slow,
    /// Why users waited.
    pub explanation: Explanation,
}

/// Why users waited, and in what.
#[derive(Debug, Clone, Default)]
pub struct Explanation {
    /// The answer; the default one if nobody looked for causes.
    pub answer: Answer,
    /// Bursts of work of single clients, in the order of time.
    pub episodes: Vec<Episode>,
    /// The commands of the episode that was chosen, in the order of time; none where none was.
    pub waterfall: Vec<Exchange>,
    /// How long that episode would take otherwise.
    pub what_if: Vec<Prediction>,
}

/// What a filter chose.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Filtered {
    /// The filter's expression.
    pub expression: String,
    /// Exchanges that it lets pass.
    pub matched: u64,
    /// The exchanges of the whole capture.
    pub whole: Census,
}

/// A report on nothing.
impl Default for Report {
    fn default() -> Report {
        Report {
            title: None,
            captures: Vec::new(),
            quality: Quality::default(),
            skipped: Vec::new(),
            connections: Vec::new(),
            connect_attempts: ConnectAttempts::default(),
            aggregate: Aggregator::new().finish(),
            first: None,
            last: None,
            version: String::new(),
            warnings: Vec::new(),
            filter: None,
            interval: None,
            slow: Slow::default(),
            explanation: Explanation::default(),
        }
    }
}

impl Report {
    /// How far the figures cover the capture, in one plain sentence: which share of the commands were not timed
    /// because the capture is damaged, and why.
    pub fn quality_sentence(&self) -> String {
        sentence::quality(self)
    }

    /// The answer to why users wait, from what was collected of the exchanges that the report is about.
    pub fn diagnosed(&self, collector: &Collector, catalogue: &Catalogue) -> Answer {
        let context = DiagnosisContext {
            catalogue,
            slow: &self.slow,
            aggregate: &self.aggregate,
            connections: &self.connections,
            attempts: &self.connect_attempts,
            quality: &self.quality,
            not_timed: self.not_timed(),
            captures: &self.captures,
            last: self.last,
            filter: self.filter.as_ref().map(|filter| filter.expression.as_str()),
        };
        smbscope_diagnose::answer(collector, &context)
    }

    /// Which share of the commands were not timed because the capture is damaged.
    pub fn not_timed(&self) -> UntimedShare {
        sentence::coverage(self).not_timed()
    }
}
