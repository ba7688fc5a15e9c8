//! Reports: a [`Report`] and the documents of other commands as text, JSON, HTML and tables.
//!
//! | module | output | for |
//! |---|---|---|
//! | [`text`] | report for a terminal, or in Markdown | people |
//! | [`classic`] | layout of Swartz (1997), appendix A | comparison with such reports |
//! | [`json`] | `smbscope.report/1` | programs |
//! | [`html`] | self-contained page that shows a JSON document | people |
//! | [`mod@bench`] | a ramp of load points, as text and `smbscope.bench/1` | people and programs |
//! | [`compare`] | documents side by side, as text and `smbscope.compare/1` | people and programs |
//! | [`study`] | runs and results of a study, as text and `smbscope.study/1` | people and programs |
//! | [`csv`] | exchanges, one per row, streamed; slices | checking results independently, spreadsheets |
//! | [`parquet`] | exchanges, typed and compressed | data frames, SQL |
//! | [`mod@arrow`] | lists of a document, typed | data frames in the same process |

pub mod arrow;
pub mod bench;
pub mod classic;
pub mod compare;
pub mod csv;
pub mod html;
pub mod json;
pub mod parquet;
pub mod prediction;
pub mod proof;
pub mod study;
pub mod table;
pub mod text;

mod document;
mod fail_if;
mod format;
mod names;
mod offers;
mod page;
#[cfg(feature = "schema")]
pub mod schema;
mod tables;
mod totals;
mod warnings;

pub use compare::{Judged, Judgement};
pub use document::{Generator, ParseError, schema_of};
pub use fail_if::FailIf;
pub use format::{clean, counted, or_dash, rate, span};
pub use page::STYLES;
pub use smbscope_diagnose::next::{SuggestedCommand, quoted};
pub use smbscope_diagnose::{Answer, Cause, Culprit, Slow};
pub use tables::listed;

use smbscope_diagnose::whatif::TimeSample;
use smbscope_diagnose::{Catalogue, Collector, DiagnosisContext, Episode};
use smbscope_model::{
    CaptureInfo, ConnectAttempts, ConnectionSummary, EncapsulatedTraffic, Exchange, Nanos, Quality, SkippedPackets,
    Timestamp, UntimedShare,
};
use smbscope_stats::sides::SidesFigures;
use smbscope_stats::{Aggregate, Aggregator, Census};

#[derive(Debug, Clone)]
pub struct Report {
    pub title: Option<String>,
    /// Captures in the order of their [`CaptureId`](smbscope_model::CaptureId).
    pub captures: Vec<CaptureInfo>,
    pub quality: Quality,
    /// Packets other than TCP by protocol, most packets first.
    pub skipped: Vec<SkippedPackets>,
    /// SMB connections in other headers than Ethernet and IP, most packets first.
    pub encapsulations: Vec<EncapsulatedTraffic>,
    /// Connections that carried SMB, in the order of their first packet.
    pub connections: Vec<ConnectionSummary>,
    pub connect_attempts: ConnectAttempts,
    pub aggregate: Aggregate,
    pub first: Option<Timestamp>,
    pub last: Option<Timestamp>,
    pub version: String,
    pub warnings: Vec<String>,
    /// Filter of the statistics. None if they cover all exchanges.
    pub filter: Option<Filtered>,
    /// Requested bin width. The timeline is only shown if there is one, and its bins may be wider.
    pub interval: Option<Nanos>,
    pub slow: Slow,
    /// The way between the capture points. None for captures of one point.
    pub sides: Option<SidesFigures>,
    pub explanation: Explanation,
}

#[derive(Debug, Clone, Default)]
pub struct Explanation {
    /// Answer; the default if no diagnosis was made.
    pub answer: Answer,
    pub episodes: Vec<Episode>,
    /// Commands of the selected episode, in time order. Empty if none was selected.
    pub waterfall: Vec<Exchange>,
    /// Part of the capture that these commands are.
    pub sample: TimeSample,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Filtered {
    pub expression: String,
    pub matched: u64,
    pub whole: Census,
}

impl Default for Report {
    fn default() -> Report {
        Report {
            title: None,
            captures: Vec::new(),
            quality: Quality::default(),
            skipped: Vec::new(),
            encapsulations: Vec::new(),
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
            sides: None,
            explanation: Explanation::default(),
        }
    }
}

impl Report {
    /// Returns the coverage of the capture in one sentence: the share of commands not timed because of gaps in the
    /// capture, with the reason.
    pub fn quality_sentence(&self) -> String {
        warnings::quality_sentence(self)
    }

    /// Diagnoses the exchanges of the report from the facts collected about them.
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
            sides: self.sides.as_ref(),
        };
        smbscope_diagnose::answer(collector, &context)
    }

    pub fn not_timed(&self) -> UntimedShare {
        warnings::coverage(self).not_timed()
    }
}
