//! Coverage: the share of commands that could not be timed because the capture is damaged.
//!
//! Damage is packet loss in the capture, a start in the middle of connections, a short snap length, a clock that
//! stepped back, or an end in the middle of a response. Encryption and a server that never responds are not damage.

use crate::exchange::ExchangeOutcome;
use crate::quality::Quality;
use serde::{Deserialize, Serialize};

/// Half-width of the confidence interval in standard errors: covers 99.7% of a normal distribution.
const STANDARD_ERRORS: f64 = 3.0;
/// Relative half-width up to which an estimate is reported as a single figure.
const SURE: f64 = 0.1;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coverage {
    pub timed: u64,
    /// Commands that are partly captured but have no time because of damage.
    pub in_part: u64,
    /// Commands of which nothing was captured: counted if they are numbered, else estimated.
    pub unseen: u64,
    /// Squared standard error of `unseen`.
    unseen_variance: u64,
    /// Encrypted frames that could not be paired in a capture with losses, because of these or because several were
    /// outstanding.
    unpaired: u64,
    /// Commands without a time for reasons other than damage.
    pub others: u64,
}

/// Percentage of commands that could not be timed: those partly captured, and those not captured at all
/// (commands_unseen). It is an estimate if the bounds differ.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UntimedShare {
    /// Best estimate.
    pub percent: f64,
    /// Lower bound: three standard errors below.
    pub at_least: f64,
    /// Upper bound: three standard errors above.
    pub at_most: f64,
}

impl Coverage {
    /// Counts commands by outcome. `untimed` is the number of commands without a time.
    pub fn new(ended: impl Fn(ExchangeOutcome) -> u64, untimed: u64, quality: &Quality) -> Coverage {
        let both_halves = ended(ExchangeOutcome::ResponseEndMissing) + ended(ExchangeOutcome::ClockStep);
        let one_half = ended(ExchangeOutcome::ResponseNotCaptured)
            + ended(ExchangeOutcome::RequestNotCaptured)
            + ended(ExchangeOutcome::AmbiguousMatch);
        // A truncated header hides one half of a command. The other half may be counted already in `one_half`;
        // whatever exceeds that is a command with both halves truncated.
        let cut = quality.headers_truncated.saturating_sub(one_half).div_ceil(2);
        let lossy = quality.dropped_packets + quality.capture_gaps > 0;
        let unpaired = if lossy { ended(ExchangeOutcome::NotPairable) } else { 0 };
        Coverage {
            timed: ended(ExchangeOutcome::Complete),
            in_part: one_half + both_halves + cut,
            // Commands with truncated headers have no known message id either, so they are part of the unseen ones.
            unseen: quality.commands_unseen.saturating_sub(cut),
            unseen_variance: quality.commands_unseen_variance,
            unpaired,
            others: untimed.saturating_sub(one_half + both_halves + unpaired),
        }
    }

    /// Returns the number of commands without a time because of damage, seen or not. An upper bound if some are
    /// encrypted.
    pub fn missed(&self) -> u64 {
        self.in_part + self.unseen + self.unpaired
    }

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
    /// Returns true if the bounds are close enough to report a single figure.
    pub fn is_sure(&self) -> bool {
        let within = SURE * self.percent;
        self.percent - self.at_least <= within && self.at_most - self.percent <= within
    }
}
