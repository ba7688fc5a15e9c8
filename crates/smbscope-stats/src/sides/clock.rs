//! Difference of two clocks, from the delays of the same packets in both directions.
//!
//! A packet from the client passes the near point at `t` and the far point at `t + difference + way`, so each exchange
//! bounds the difference from above by its request and from below by its response. The line that keeps the largest
//! distance from all bounds is the estimate (the symmetric minimum that NTP assumes, RFC 5905, with a drift fitted over
//! the lower envelope of the delays as in Paxson 1998); half that corridor is how far it can be off.

use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};

/// Bounds that one exchange puts on the difference, at a time of the near clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClockBounds {
    pub(super) at: Timestamp,
    /// The response passed the far point this much later than the near one, by their clocks: a lower bound.
    pub(super) least: i64,
    /// The request passed the far point this much later than the near one, by their clocks: an upper bound.
    pub(super) most: i64,
}

impl ClockBounds {
    fn middle(&self) -> i64 {
        ((i128::from(self.least) + i128::from(self.most)) / 2) as i64
    }
}

/// Largest drift considered, in parts per billion; quartz clocks are below 100 ppm.
const DRIFT_MAX: f64 = 500_000.0;

/// A drift is stated only if it widens the corridor by this factor.
const DRIFT_PAYS: f64 = 1.02;

/// A step is larger than this and than three round trips.
const STEP_LEAST: i64 = 2_000_000;

/// Exchanges in a window. Only its tightest bounds count.
const WINDOW: usize = 32;
/// Windows; of longer captures, each holds more exchanges.
const WINDOWS_MAX: usize = 4_096;

/// Difference between the clocks of two capture points.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockDifference {
    /// Clock of the point nearer to the server minus the other, at the first common command.
    #[cfg_attr(feature = "schema", schemars(with = "i64"))]
    pub offset_ns: Nanos,
    /// Gain of the clock of the point nearer to the server, in parts per million.
    pub drift_ppm: f64,
    /// The offset is right within this: half of the shortest round trip, because the ways there and back may differ.
    pub uncertainty_ns: Nanos,
    /// Steps of either clock during the captures.
    pub steps: u64,
    #[serde(skip)]
    pieces: Vec<ClockPiece>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct ClockPiece {
    from: Timestamp,
    offset: i64,
    /// Nanoseconds per nanosecond.
    drift: f64,
    half_width: i64,
}

impl ClockPiece {
    fn offset_at(&self, time: Timestamp) -> i64 {
        self.offset.saturating_add(((time - self.from).0 as f64 * self.drift) as i64)
    }
}

impl ClockDifference {
    /// Fits the difference to the bounds, sorted by time. `None` without bounds.
    pub(super) fn fit(bounds: &[ClockBounds]) -> Option<ClockDifference> {
        let first = bounds.first()?.at;
        let tightest = tightest(bounds);
        let pieces: Vec<ClockPiece> = between_steps(&tightest).into_iter().map(fit_piece).collect();
        let begin = pieces.first()?;
        Some(ClockDifference {
            offset_ns: Nanos(begin.offset_at(first)),
            drift_ppm: begin.drift * 1e6,
            uncertainty_ns: Nanos(pieces.iter().map(|piece| piece.half_width).max()?),
            steps: pieces.len() as u64 - 1,
            pieces,
        })
    }

    fn piece_at(&self, time: Timestamp) -> ClockPiece {
        let after = self.pieces.partition_point(|piece| piece.from <= time);
        self.pieces.get(after.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// Returns the difference at a time of the near clock.
    pub(super) fn at(&self, time: Timestamp) -> Nanos {
        Nanos(self.piece_at(time).offset_at(time))
    }

    pub(super) fn half_width_at(&self, time: Timestamp) -> Nanos {
        Nanos(self.piece_at(time).half_width)
    }

    /// Converts a duration of the far clock to the near clock.
    pub(super) fn far_duration(&self, at: Timestamp, duration: Nanos) -> Nanos {
        Nanos((duration.0 as f64 / (1.0 + self.piece_at(at).drift)).round() as i64)
    }
}

/// Returns the tightest bounds of each window: the largest lower and the smallest upper one. A window ends early where
/// a clock stepped.
fn tightest(bounds: &[ClockBounds]) -> Vec<[ClockBounds; 2]> {
    let size = WINDOW.min(bounds.len().div_ceil(8)).max(bounds.len().div_ceil(WINDOWS_MAX)).max(1);
    let mut windows: Vec<[ClockBounds; 2]> = Vec::new();
    let mut taken = 0;
    for bound in bounds {
        let joined = windows.last().filter(|_| taken < size).map(|[least, most]| {
            let least = if bound.least > least.least { *bound } else { *least };
            let most = if bound.most < most.most { *bound } else { *most };
            [least, most]
        });
        match joined.filter(|[least, most]| least.least.saturating_sub(most.most) < STEP_LEAST) {
            Some(joined) => {
                taken += 1;
                windows.pop();
                windows.push(joined);
            }
            None => {
                taken = 1;
                windows.push([*bound, *bound]);
            }
        }
    }
    windows
}

/// Divides the windows where a clock stepped: the bounds move together by more than the round trip explains.
fn between_steps(windows: &[[ClockBounds; 2]]) -> Vec<&[[ClockBounds; 2]]> {
    let mut parts = Vec::new();
    let mut begin = 0;
    for at in 1..windows.len() {
        let [before, after] = [windows[at - 1], windows[at]];
        let width = |[least, most]: [ClockBounds; 2]| (most.most.saturating_sub(least.least)).max(0);
        let middle = |[least, most]: [ClockBounds; 2]| {
            ClockBounds { at: least.at, least: least.least, most: most.most }.middle()
        };
        let moved = middle(after).saturating_sub(middle(before)).saturating_abs();
        let gap = (after[0].at - before[0].at).0.saturating_abs();
        let drifted = (gap as f64 * DRIFT_MAX / 1e9) as i64;
        let wide = width(before).max(width(after)).saturating_mul(3) / 2;
        if moved > STEP_LEAST.max(wide).saturating_add(drifted) {
            parts.push(&windows[begin..at]);
            begin = at;
        }
    }
    parts.push(&windows[begin..]);
    parts
}

/// Finds the line with the largest distance from all bounds of windows without a step.
fn fit_piece(windows: &[[ClockBounds; 2]]) -> ClockPiece {
    let from = windows.iter().flatten().map(|bound| bound.at).min().unwrap_or_default();
    let origin = windows.first().map_or(0, |[_, most]| most.most);
    let corridor = |drift: f64| {
        let at = |bound: &ClockBounds| (bound.at - from).0 as f64 * drift;
        let upper = windows.iter().map(|[_, bound]| (bound.most - origin) as f64 - at(bound));
        let lower = windows.iter().map(|[bound, _]| (bound.least - origin) as f64 - at(bound));
        let (upper, lower) = (upper.fold(f64::INFINITY, f64::min), lower.fold(f64::NEG_INFINITY, f64::max));
        ((upper - lower) / 2.0, (upper + lower) / 2.0)
    };
    let drift = widest(|drift| corridor(drift).0);
    let (plain, best) = (corridor(0.0).0, corridor(drift).0);
    let drift = if best > plain * DRIFT_PAYS + 1_000.0 || plain < 0.0 { drift } else { 0.0 };
    let (half_width, middle) = corridor(drift);
    ClockPiece {
        from,
        offset: origin.saturating_add(middle.round() as i64),
        drift,
        half_width: half_width.abs().round() as i64,
    }
}

/// Finds the maximum of a concave function of the drift by ternary search.
fn widest(width: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-DRIFT_MAX / 1e9, DRIFT_MAX / 1e9);
    for _ in 0..80 {
        let third = (high - low) / 3.0;
        let (left, right) = (low + third, high - third);
        if width(left) < width(right) { low = left } else { high = right }
    }
    (low + high) / 2.0
}
