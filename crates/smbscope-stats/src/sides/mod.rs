//! The same traffic captured at several points: which exchanges are the same, how the clocks of the points differ, and
//! how much of each response time passes between the points.
//!
//! `pairing` keeps what a point saw and finds the same exchange at another point by its content, `clock` fits the
//! difference of the clocks, and `figures` sums up.
//!
//! The difference of an exchange's response times at two points does not depend on the difference of their clocks, so
//! the time on the way there and back together is exact. How it divides between the directions is known only within
//! the smallest round trip: a clock that is ahead looks like a slow way there.

mod clock;
mod figures;
mod pairing;

#[cfg(test)]
mod tests;

pub use clock::ClockDifference;
pub use figures::{CapturePoint, GroupPath, PathSegment, PointConnections, SidesFigures};
pub use pairing::{PairedConnection, PairedPoints, PointSightings, SIGHTINGS_MAX, SeenExchange};
