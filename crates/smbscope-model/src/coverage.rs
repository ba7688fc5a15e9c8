//! Which share of the commands the figures cover: how many were not timed because the capture is damaged.
//!
//! Only damage counts here: packets that the capture lost, a beginning in the middle of connections, a snap length that
//! is too short, a clock that stepped back, an end in the middle of a response. A server that never answers and
//! encryption are no damage.

use crate::exchange::ExchangeOutcome;
use crate::quality::Quality;
use serde::{Deserialize, Serialize};

/// Standard errors between an estimate and its bounds: 99.7% of a normal distribution lie within.
const STANDARD_ERRORS: f64 = 3.0;
/// An estimate whose bounds are within this share of it is given as one figure.
const SURE: f64 = 0.1;

/// Commands as the capture shows them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coverage {
    /// Commands that could be timed.
    pub timed: u64,
    /// Commands that the capture shows in part and that damage left without a time.
    pub in_part: u64,
    /// Commands of which it shows nothing: counted where they are numbered, else estimated.
    pub unseen: u64,
    /// The square of the standard error of that.
    unseen_variance: u64,
    /// Encrypted frames that could not be paired, where packets are missing: because of it, or because several were
    /// outstanding.
    unpaired: u64,
    /// Commands without a time for another reason than damage.
    pub others: u64,
}

/// The share of the commands that could not be timed, in percent: commands seen in part, and those of which the capture
/// shows nothing (commands_unseen), which are an estimate where the bounds differ.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UntimedShare {
    /// The best guess.
    pub percent: f64,
    /// It is hardly less than this: three standard errors below.
    pub at_least: f64,
    /// It is hardly more than this: three standard errors above.
    pub at_most: f64,
}

impl Coverage {
    /// By how the commands of a capture ended, how many of them have no time, and what was counted besides.
    pub fn new(ended: impl Fn(ExchangeOutcome) -> u64, untimed: u64, quality: &Quality) -> Coverage {
        let both_halves = ended(ExchangeOutcome::ResponseEndMissing) + ended(ExchangeOutcome::ClockStep);
        let one_half = ended(ExchangeOutcome::ResponseNotCaptured)
            + ended(ExchangeOutcome::RequestNotCaptured)
            + ended(ExchangeOutcome::AmbiguousMatch);
        // A message whose header was cut off is half of a command: one of which the other half is counted already, as
        // long as there are such, then one of which both halves are cut.
        let cut = quality.headers_truncated.saturating_sub(one_half).div_ceil(2);
        let lossy = quality.dropped_packets + quality.capture_gaps > 0;
        let unpaired = if lossy { ended(ExchangeOutcome::NotPairable) } else { 0 };
        Coverage {
            timed: ended(ExchangeOutcome::Complete),
            in_part: one_half + both_halves + cut,
            // Those with cut headers show no message id either.
            unseen: quality.commands_unseen.saturating_sub(cut),
            unseen_variance: quality.commands_unseen_variance,
            unpaired,
            others: untimed.saturating_sub(one_half + both_halves + unpaired),
        }
    }

    /// Commands that damage left without a time, seen or not; of encrypted ones it may be fewer.
    pub fn missed(&self) -> u64 {
        self.in_part + self.unseen + self.unpaired
    }

    /// The share of the commands that damage left without a time.
    pub fn not_timed(&self) -> UntimedShare {
        let error = STANDARD_ERRORS * (self.unseen_variance as f64).sqrt();
        let unseen = self.unseen as f64;
        let unpaired = self.unpaired as f64;
        let percent = |unseen: f64, paired: f64| {
            let missed = self.in_part as f64 + unseen + unpaired - paired;
            let all = missed + paired + (self.timed + self.others) as f64;
            if all > 0.0 { 100.0 * missed / all } else { 0.0 }
        };
        UntimedShare {
            percent: percent(unseen, 0.0),
            at_least: percent((unseen - error).max(0.0), unpaired),
            at_most: percent(unseen + error, 0.0),
        }
    }
}

impl UntimedShare {
    /// Whether the bounds are near enough to give one figure.
    pub fn is_sure(&self) -> bool {
        let within = SURE * self.percent;
        self.percent - self.at_least <= within && self.at_most - self.percent <= within
    }
}
