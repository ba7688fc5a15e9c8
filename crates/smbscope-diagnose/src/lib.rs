//! Why users waited: patterns in exchanges that have a name, a cost and a remedy.
//!
//! A [`Collector`] takes the exchanges as they end, each worker one of its own, and keeps what detectors need: counts of
//! each client by fact (`facts`), and the files that were opened or listed again soon after. [`findings`] runs the
//! detectors over that and the finished statistics. What each finding is called, from which threshold on it is one, what
//! to do about it and where that is known from, is data: [`catalogue`].
//!
//! [`Episode`]s are the bursts of what a client does, from the same exchanges.
//!
//! Nothing depends on how connections were divided among workers: a pattern is looked for on one connection, and clients
//! add up what was found on theirs.

pub mod catalogue;
mod client;
mod collector;
mod detect;
pub mod episodes;
mod facts;
mod finding;
mod path;
mod subject;
pub mod whatif;
mod writes;

pub use catalogue::{Catalogue, CatalogueError, Entry};
pub use collector::Collector;
pub use detect::{Context, findings};
pub use episodes::{Episode, Kind};
pub use finding::{Confidence, Evidence, Finding, Whose};
