//! Detects server stalls: periods in which commands were outstanding and no connection received a response. In
//! percentiles they show as a few slow commands, if at all.
//!
//! Each worker records the gaps between its responses. A gap common to all workers, with a command outstanding, is a
//! stall of the server. Recording takes two comparisons per command.

use super::clocks::Clock;
use serde::{Deserialize, Serialize};
use smbscope_model::Timestamp;
use std::time::{Duration, Instant};

/// Shortest gap between responses that is recorded.
const GAP_MIN: Duration = Duration::from_millis(50);
/// Gaps kept per worker: the first. Enough for one per second of a day.
const GAPS_MAX: usize = 100_000;
/// Shortest stall. It must also be [`STALL_TIMES_MEDIAN`] times the median response time. This is noticeable to people,
/// and far above a command that is merely slow.
pub const STALL_MIN: Duration = Duration::from_millis(200);
/// See [`STALL_MIN`].
pub const STALL_TIMES_MEDIAN: u32 = 100;
/// Stalls kept per load point: the longest.
pub const STALLS_MAX: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ResponseGap {
    from: Instant,
    to: Instant,
    /// Start time of the first outstanding command; `None` if there was none.
    waited_from: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnansweredPeriod {
    pub(crate) from: Instant,
    pub(crate) length: Duration,
}

/// Gaps of one worker, or gaps common to several.
#[derive(Debug)]
pub(crate) struct Silences {
    /// Time of the last response, or the start of the measured part.
    last: Instant,
    gaps: Vec<ResponseGap>,
    /// Periods of at least [`GAP_MIN`] in which the worker itself did not run, in time order.
    pauses: Vec<(Instant, Instant)>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostResponseGaps {
    last: Timestamp,
    gaps: Vec<(Timestamp, Timestamp, Option<Timestamp>)>,
}

impl Silences {
    pub(crate) fn new(start: Instant) -> Silences {
        Silences { last: start, gaps: Vec::new(), pauses: Vec::new() }
    }

    /// Records a response. Responses arrive almost in time order: an operation of several commands reports them
    /// together at its end.
    pub(crate) fn answered(&mut self, request: Instant, response: Instant, in_headline: bool) {
        if response > self.last {
            if response - self.last >= GAP_MIN {
                let waited_from = in_headline.then(|| request.max(self.last));
                self.note(ResponseGap { from: self.last, to: response, waited_from });
            }
            self.last = response;
            return;
        }
        // The response lies in a recorded gap, which splits it, or its command was outstanding during one.
        let Some(i) = self.gaps.iter().rposition(|gap| gap.from < response) else { return };
        let gap = self.gaps[i];
        if response < gap.to {
            self.gaps.remove(i);
            let first_wait = in_headline.then(|| request.max(gap.from));
            let second_wait = gap.waited_from.map(|from| from.max(response));
            let halves = [
                ResponseGap { from: gap.from, to: response, waited_from: first_wait },
                ResponseGap { from: response, to: gap.to, waited_from: second_wait },
            ];
            let long = halves.into_iter().filter(|half| half.to - half.from >= GAP_MIN);
            self.gaps.splice(i..i, long);
        } else if in_headline && request < gap.to {
            self.outstanding(i, request);
        }
    }

    pub(crate) fn unanswered(&mut self, request: Instant, until: Instant) {
        if until.saturating_duration_since(self.last) >= GAP_MIN {
            self.note(ResponseGap { from: self.last, to: until, waited_from: Some(request.max(self.last)) });
            self.last = until;
        } else if let Some(i) = self.gaps.len().checked_sub(1)
            && request < self.gaps[i].to
        {
            self.outstanding(i, request);
        }
    }

    /// Records a period in which the worker itself did not run.
    pub(crate) fn paused(&mut self, from: Instant, to: Instant) {
        if to.saturating_duration_since(from) >= GAP_MIN && self.pauses.len() < GAPS_MAX {
            self.pauses.push((from, to));
        }
    }

    /// Ends gaps at the start of the worker's pause if they lasted until its end: the response may have arrived any time
    /// during the pause. A gap that goes on after the pause remains.
    fn leave_out_pauses(&mut self) {
        let pauses = std::mem::take(&mut self.pauses);
        for gap in &mut self.gaps {
            let mut before = pauses.partition_point(|(from, _)| *from < gap.to);
            while let Some((from, to)) = before.checked_sub(1).map(|i| pauses[i])
                && to + GAP_MIN >= gap.to
                && gap.to > gap.from
            {
                gap.to = from.max(gap.from);
                before -= 1;
            }
            gap.waited_from = gap.waited_from.filter(|waited| *waited < gap.to);
        }
        self.gaps.retain(|gap| gap.to - gap.from >= GAP_MIN);
    }

    /// Records the gap from the last response to the end of the load point.
    pub(crate) fn end(&mut self, end: Instant) {
        if end.saturating_duration_since(self.last) >= GAP_MIN {
            self.note(ResponseGap { from: self.last, to: end, waited_from: None });
            self.last = end;
        }
        self.leave_out_pauses();
    }

    fn note(&mut self, gap: ResponseGap) {
        if self.gaps.len() < GAPS_MAX {
            self.gaps.push(gap);
        }
    }

    fn outstanding(&mut self, gap: usize, request: Instant) {
        let gap = &mut self.gaps[gap];
        let from = request.max(gap.from);
        gap.waited_from = Some(gap.waited_from.map_or(from, |known| known.min(from)));
    }

    pub(crate) fn merge(&mut self, other: &Silences) {
        let mut common = Vec::new();
        let (mut mine, mut theirs) = (self.gaps.iter().peekable(), other.gaps.iter().peekable());
        while let (Some(a), Some(b)) = (mine.peek(), theirs.peek()) {
            let (from, to) = (a.from.max(b.from), a.to.min(b.to));
            if to.saturating_duration_since(from) >= GAP_MIN {
                let waits = [a.waited_from, b.waited_from].into_iter().flatten().filter(|wait| *wait < to);
                common.push(ResponseGap { from, to, waited_from: waits.min().map(|wait| wait.max(from)) });
            }
            if a.to < b.to {
                mine.next();
            } else {
                theirs.next();
            }
        }
        self.gaps = common;
        self.last = self.last.max(other.last);
    }

    pub(crate) fn told(&self, clock: &Clock) -> HostResponseGaps {
        let gap = |gap: &ResponseGap| {
            (clock.timestamp(gap.from), clock.timestamp(gap.to), gap.waited_from.map(|from| clock.timestamp(from)))
        };
        HostResponseGaps { last: clock.timestamp(self.last), gaps: self.gaps.iter().map(gap).collect() }
    }

    pub(crate) fn heard(told: HostResponseGaps, clock: &Clock) -> Silences {
        let gap = |(from, to, waited_from): (Timestamp, Timestamp, Option<Timestamp>)| ResponseGap {
            from: clock.instant(from),
            to: clock.instant(to),
            waited_from: waited_from.map(|from| clock.instant(from)),
        };
        let gaps = told.gaps.into_iter().map(gap).collect();
        Silences { last: clock.instant(told.last), gaps, pauses: Vec::new() }
    }

    pub(crate) fn stalls(&self, median: Option<Duration>) -> Vec<UnansweredPeriod> {
        let least = median.map_or(STALL_MIN, |median| STALL_MIN.max(median.saturating_mul(STALL_TIMES_MEDIAN)));
        let stall =
            |gap: &ResponseGap| Some(UnansweredPeriod { from: gap.waited_from?, length: gap.to - gap.waited_from? });
        let mut stalls: Vec<UnansweredPeriod> =
            self.gaps.iter().filter_map(stall).filter(|s| s.length >= least).collect();
        stalls.sort_by_key(|stall| std::cmp::Reverse(stall.length));
        stalls.truncate(STALLS_MAX);
        stalls.sort_by_key(|stall| stall.from);
        stalls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Clock(Instant);

    impl Clock {
        fn at(&self, millis: u64) -> Instant {
            self.0 + Duration::from_millis(millis)
        }

        fn found(&self, silences: &Silences, median: u64) -> Vec<(u128, u128)> {
            let stalls = silences.stalls(Some(Duration::from_millis(median)));
            stalls.iter().map(|s| ((s.from - self.0).as_millis(), s.length.as_millis())).collect()
        }

        /// A worker that gets a response every 10 ms, each a millisecond after its request, except during the stall:
        /// the outstanding response arrives at its end.
        fn worker(&self, stall: Option<(u64, u64)>) -> Silences {
            let mut silences = Silences::new(self.at(0));
            let mut now = 0;
            while now < 5_000 {
                match stall {
                    Some((from, to)) if (from..to).contains(&now) => {
                        silences.answered(self.at(from), self.at(to), true);
                        now = to;
                    }
                    _ => silences.answered(self.at(now), self.at(now + 1), true),
                }
                now += 10;
            }
            silences.end(self.at(5_000));
            silences
        }
    }

    #[test]
    fn a_stall_is_found_with_its_time_and_its_length() {
        let clock = Clock(Instant::now());
        let silences = clock.worker(Some((2_000, 3_000)));
        assert_eq!(clock.found(&silences, 1), [(2_000, 1_000)]);
        assert_eq!(clock.found(&silences, 11), []);
        assert_eq!(clock.found(&clock.worker(None), 1), []);
    }

    /// The client is stopped for a second. It reads the responses that arrived during that time when it goes on.
    #[test]
    fn a_pause_of_the_client_is_no_stall() {
        let clock = Clock(Instant::now());
        let paused = |stall, pauses: &[(u64, u64)]| {
            let mut silences = clock.worker(Some(stall));
            // Pauses are recorded before the end, as workers do.
            pauses.iter().for_each(|(from, to)| silences.paused(clock.at(*from), clock.at(*to)));
            silences.end(clock.at(5_000));
            clock.found(&silences, 1)
        };
        assert_eq!(paused((2_000, 3_000), &[(2_005, 2_999)]), []);
        assert_eq!(paused((2_000, 3_000), &[(2_005, 2_500), (2_510, 2_990)]), []);
        // The server had stalled for 600 ms when the client stopped. The rest is unknown.
        assert_eq!(paused((2_000, 3_000), &[(2_600, 2_999)]), [(2_000, 600)]);
        // The client ran again, and there was still no response.
        assert_eq!(paused((2_000, 3_000), &[(2_300, 2_600)]), [(2_000, 1_000)]);
        assert_eq!(paused((2_000, 3_000), &[(3_500, 3_700)]), [(2_000, 1_000)]);
    }

    #[test]
    fn a_gap_in_which_nothing_was_asked_is_no_stall() {
        let clock = Clock(Instant::now());
        let mut silences = Silences::new(clock.at(0));
        silences.answered(clock.at(0), clock.at(1), true);
        // A user who thinks for two seconds, then an expected wait of two seconds.
        silences.answered(clock.at(2_000), clock.at(2_001), true);
        silences.answered(clock.at(2_001), clock.at(4_000), false);
        silences.end(clock.at(9_000));
        assert_eq!(clock.found(&silences, 1), []);
    }

    #[test]
    fn what_one_worker_answers_is_no_stall_of_the_server() {
        let clock = Clock(Instant::now());
        let mut both = clock.worker(Some((2_000, 3_000)));
        both.merge(&clock.worker(None));
        assert_eq!(clock.found(&both, 1), []);
        // From 2.0 to 3.0 s and from 2.4 to 3.5 s: common from 2.4 to 3.0 s. A worker without users has a single gap.
        let mut all = clock.worker(Some((2_000, 3_000)));
        all.merge(&clock.worker(Some((2_400, 3_500))));
        let mut idle = Silences::new(clock.at(0));
        idle.end(clock.at(5_000));
        all.merge(&idle);
        // The last response before the common gap came at 2.391 s, while the other worker was already waiting.
        assert_eq!(clock.found(&all, 1), [(2_391, 609)]);
    }

    #[test]
    fn an_answer_that_is_noted_late_divides_the_gap_that_it_lies_in() {
        let clock = Clock(Instant::now());
        let mut silences = Silences::new(clock.at(0));
        silences.answered(clock.at(0), clock.at(1_000), true);
        silences.answered(clock.at(0), clock.at(400), true);
        assert_eq!(clock.found(&silences, 1), [(0, 400), (400, 600)]);
    }

    #[test]
    fn the_request_that_waited_longest_counts_even_where_it_is_answered_later() {
        let clock = Clock(Instant::now());
        let mut silences = Silences::new(clock.at(0));
        silences.answered(clock.at(0), clock.at(1), true);
        // The first response after the stall is to a late request; the next command was outstanding throughout.
        silences.answered(clock.at(900), clock.at(1_001), true);
        silences.answered(clock.at(2), clock.at(1_001), true);
        assert_eq!(clock.found(&silences, 1), [(2, 999)]);
    }

    #[test]
    fn a_server_that_never_comes_back_stalls_until_the_end() {
        let clock = Clock(Instant::now());
        let mut silences = Silences::new(clock.at(0));
        silences.answered(clock.at(0), clock.at(1), true);
        silences.unanswered(clock.at(100), clock.at(5_000));
        silences.unanswered(clock.at(50), clock.at(5_000));
        silences.end(clock.at(5_000));
        assert_eq!(clock.found(&silences, 1), [(50, 4_950)]);
    }
}
