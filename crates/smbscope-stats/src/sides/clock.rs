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
    /// Number of steps of either clock that the captures themselves show before this exchange.
    pub(super) epoch: usize,
}

/// Largest drift considered, in parts per billion. Quartz clocks are below 100 ppm, so two of them below 200.
const DRIFT_MAX: f64 = 200_000.0;

/// A drift is stated only if it widens the corridor by this factor.
const DRIFT_PAYS: f64 = 1.02;

/// Jitter of capturing. Bounds that contradict each other by more than this are from before and after a step.
///
/// A step smaller than the round trip contradicts nothing: a queue that moves to the other direction looks the same.
pub(super) const JITTER: i64 = 200_000;

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

/// Line between two steps of the clocks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct ClockPiece {
    from: Timestamp,
    until: Timestamp,
    offset: i64,
    /// Nanoseconds per nanosecond.
    drift: f64,
    half_width: i64,
    uncertainty: i64,
}

impl ClockPiece {
    pub(super) fn offset_at(&self, time: Timestamp) -> i64 {
        self.offset.saturating_add(((time - self.from).0 as f64 * self.drift) as i64)
    }

    /// Returns the shortest time in either direction, by the symmetric estimate.
    pub(super) fn shortest_way(&self) -> i64 {
        self.half_width
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
            uncertainty_ns: Nanos(pieces.iter().map(|piece| piece.uncertainty).max()?),
            steps: pieces.len() as u64 - 1,
            pieces,
        })
    }

    /// Returns the line at a time of the near clock.
    pub(super) fn piece_at(&self, time: Timestamp) -> ClockPiece {
        self.pieces_at(time).next().unwrap_or_default()
    }

    /// Returns the lines that may hold at a time of the near clock: two if a step was before or after it.
    pub(super) fn pieces_at(&self, time: Timestamp) -> impl Iterator<Item = ClockPiece> {
        let at = self.pieces.partition_point(|piece| piece.from <= time).saturating_sub(1);
        let last = at + usize::from(self.pieces.get(at).is_some_and(|piece| piece.until < time));
        self.pieces.iter().skip(at).take(last + 1 - at).copied()
    }

    /// Converts a time of the far clock to the near clock.
    pub(super) fn near_time(&self, far: Timestamp) -> Timestamp {
        let has_begun = |piece: &&ClockPiece| piece.from.0.saturating_add(piece.offset) <= far.0;
        let piece = self.pieces.iter().rev().find(has_begun).or(self.pieces.first()).copied().unwrap_or_default();
        let roughly = Timestamp(far.0.saturating_sub(piece.offset));
        Timestamp(far.0.saturating_sub(piece.offset_at(roughly)))
    }

    /// Converts a duration of the far clock to the near clock.
    pub(super) fn far_duration(&self, at: Timestamp, duration: Nanos) -> Nanos {
        Nanos((duration.0 as f64 / (1.0 + self.piece_at(at).drift)).round() as i64)
    }
}

/// Tightest bounds of a window: the largest lower and the smallest upper one.
#[derive(Debug, Clone, Copy)]
struct TightestBounds {
    least: ClockBounds,
    most: ClockBounds,
    from: Timestamp,
    until: Timestamp,
}

impl TightestBounds {
    fn new(bound: ClockBounds) -> TightestBounds {
        TightestBounds { least: bound, most: bound, from: bound.at, until: bound.at }
    }

    fn joined(&self, bound: ClockBounds) -> TightestBounds {
        TightestBounds {
            least: if bound.least > self.least.least { bound } else { self.least },
            most: if bound.most < self.most.most { bound } else { self.most },
            from: self.from,
            until: bound.at,
        }
    }

    fn width(&self) -> i64 {
        self.most.most.saturating_sub(self.least.least)
    }
}

/// Returns the tightest bounds of each window. A window ends early where a clock stepped.
fn tightest(bounds: &[ClockBounds]) -> Vec<TightestBounds> {
    let size = WINDOW.min(bounds.len().div_ceil(8)).max(bounds.len().div_ceil(WINDOWS_MAX)).max(1);
    let mut windows: Vec<TightestBounds> = Vec::new();
    let mut taken = 0;
    for bound in bounds {
        let last = windows.last().filter(|last| taken < size && last.least.epoch == bound.epoch);
        match last.map(|last| last.joined(*bound)).filter(|joined| joined.width() >= -JITTER) {
            Some(joined) => {
                taken += 1;
                windows.pop();
                windows.push(joined);
            }
            None => {
                taken = 1;
                windows.push(TightestBounds::new(*bound));
            }
        }
    }
    windows
}

/// Divides the windows where a clock stepped.
fn between_steps(windows: &[TightestBounds]) -> Vec<&[TightestBounds]> {
    let mut parts = Vec::new();
    for epoch in windows.chunk_by(|one, other| one.least.epoch == other.least.epoch) {
        let mut rest = epoch;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(windows_of_a_line(rest));
            parts.push(part);
            rest = after;
        }
    }
    parts
}

/// Returns how many windows, from the first one, agree with one line.
fn windows_of_a_line(windows: &[TightestBounds]) -> usize {
    let agree = |count: usize| Corridor::widest(&windows[..count]).half_width * 2.0 >= -(JITTER as f64);
    if agree(windows.len()) {
        return windows.len();
    }
    let (mut agreeing, mut contradicting) = (1, windows.len());
    while contradicting - agreeing > 1 {
        let middle = usize::midpoint(agreeing, contradicting);
        if agree(middle) { agreeing = middle } else { contradicting = middle }
    }
    agreeing
}

/// Room between the upper and the lower bounds around a line.
#[derive(Debug, Clone, Copy)]
struct Corridor {
    drift: f64,
    half_width: f64,
    middle: f64,
}

impl Corridor {
    fn new(windows: &[TightestBounds], drift: f64) -> Corridor {
        let (from, origin) = (windows[0].from, windows[0].most.most);
        let at = |bound: &ClockBounds| (bound.at - from).0 as f64 * drift;
        let upper = windows.iter().map(|window| (window.most.most - origin) as f64 - at(&window.most));
        let lower = windows.iter().map(|window| (window.least.least - origin) as f64 - at(&window.least));
        let (upper, lower) = (upper.fold(f64::INFINITY, f64::min), lower.fold(f64::NEG_INFINITY, f64::max));
        Corridor { drift, half_width: (upper - lower) / 2.0, middle: (upper + lower) / 2.0 }
    }

    /// Finds the drift with the most room. The room is a concave function of it.
    fn widest(windows: &[TightestBounds]) -> Corridor {
        Corridor::new(windows, widest(|drift| Corridor::new(windows, drift).half_width))
    }
}

/// Finds the line with the largest distance from all bounds of windows without a step.
fn fit_piece(windows: &[TightestBounds]) -> ClockPiece {
    let (plain, best) = (Corridor::new(windows, 0.0), Corridor::widest(windows));
    let drifts = best.half_width > plain.half_width * DRIFT_PAYS + 1_000.0 || plain.half_width < 0.0;
    let line = if drifts { best } else { plain };
    let half_width = line.half_width.abs().round() as i64;
    // Room that the line lacks within the narrowest window may be due to a step that contradicts nothing.
    let narrowest = windows.iter().map(TightestBounds::width).min().unwrap_or_default();
    ClockPiece {
        from: windows[0].from,
        until: windows[windows.len() - 1].until,
        offset: windows[0].most.most.saturating_add(line.middle.round() as i64),
        drift: line.drift,
        half_width,
        uncertainty: half_width.max(narrowest.saturating_sub(half_width)),
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
