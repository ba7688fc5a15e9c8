//! Why users wait: the one engine that names the cause.
//!
//! A [`Collector`] takes the exchanges as they end, each worker one of its own, and counts what detectors need (`facts`).
//! [`answer()`] joins that with connections and statistics, runs the detectors (`causes`, one file each), and decides which
//! causes a person notices, which explain the same seconds, and what the headline says (`conclude`). Start reading there.
//!
//! [`Episode`]s are the bursts of what a client does; [`mod@whatif`] predicts how long one would take otherwise.
//!
//! The result does not depend on how connections were divided among workers.

pub mod answer;
pub mod catalogue;
mod causes;
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
pub use load_point::{LONGEST_UNDER_LOAD, LoadPointFacts, P95_UNDER_LOAD, whose_launch};
pub use next::SuggestedCommand;
pub use slow::Slow;
