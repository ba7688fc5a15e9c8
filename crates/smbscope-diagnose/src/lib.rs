//! Diagnosis engine: names the cause of slow SMB access.
//!
//! Each worker feeds its exchanges to its own [`Collector`], which counts what the detectors need (`facts`).
//! [`answer()`] joins the merged counts with connections and statistics, runs the detectors (`causes`), and decides
//! which causes a user notices, which overlap, and what the headline says (`conclude`). Start reading there. The result
//! does not depend on how connections were distributed over workers.
//!
//! [`Episode`]s are bursts of client activity; [`mod@whatif`] predicts how long one would take under other conditions.

pub mod answer;
pub mod catalogue;
mod causes;
mod classify;
mod conclude;
pub mod episodes;
mod facts;
mod load_point;
pub mod next;
pub mod slow;
pub mod whatif;

pub use answer::{Answer, Cause, Confidence, Culprit, Evidence, LostTime, Subject};
pub use catalogue::{Catalogue, CatalogueError, CauseDefinition};
pub use conclude::{answer, describe};
pub use episodes::{Episode, EpisodeKind};
pub use facts::{Collector, DiagnosisContext};
pub use load_point::{
    ClientLateness, LONGEST_UNDER_LOAD, LimitingResource, LoadPointFacts, LongestStall, OutOfSpace, P95_UNDER_LOAD,
    SPLIT, whose_launch,
};
pub use next::SuggestedCommand;
pub use slow::Slow;
