//! Facts for the detectors, counted by [`Collector`] while exchanges pass, then joined with the rest in
//! [`DiagnosisFacts`].

mod activity;
mod collector;
mod counts;
mod pair;
mod path;
mod served;
mod waits;
mod writes;

pub(crate) use activity::Traffic;
pub use collector::Collector;
pub(crate) use collector::PathKey;
pub(crate) use counts::Count;
pub use pair::DiagnosisContext;
pub(crate) use pair::{
    CollectedFacts, DiagnosisFacts, Pair, address_filter, bit_rate, bytes, file_name, named, percent, server_name,
};
pub(crate) use path::PathFacts;
pub(crate) use served::{CommandClass, ServerTimeHistogram};
pub(crate) use waits::{RefusalReason, Wait};
