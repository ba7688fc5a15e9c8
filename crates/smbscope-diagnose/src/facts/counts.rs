//! Per-client counts of facts and events.

use super::activity::Slowdown;
use super::waits::{CommandClass, RefusalReason, Refused, ServerTimeHistogram, Waits};
use crate::classify::Fact;
use serde::{Deserialize, Serialize};
use smbscope_model::{Exchange, Nanos, Stamp, TimeKind, Timestamp};
use std::sync::Arc;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) response_time: i64,
    /// Time in ns with at least one of them outstanding, summed over connections.
    pub(crate) outstanding: i64,
    pub(crate) longest: i64,
    /// First packet and path of the earliest one.
    pub(crate) first: Option<(Stamp, Option<Arc<str>>)>,
    pub(crate) last: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ExchangeSample<'e> {
    pub(crate) start: Option<Stamp>,
    /// Last packet of the response, or first packet if there is no response.
    pub(crate) end: Timestamp,
    pub(crate) took: Option<i64>,
    pub(crate) bytes: u64,
    pub(crate) path: &'e Option<Arc<str>>,
}

impl ExchangeSample<'_> {
    pub(crate) fn new(exchange: &Exchange) -> ExchangeSample<'_> {
        let start = exchange.request.first.or(exchange.response.first);
        let end = exchange.response.last.or(start).map_or(Timestamp(i64::MIN), |stamp| stamp.time);
        ExchangeSample {
            start,
            end,
            took: exchange.time(TimeKind::ResponseTime).map(|time| time.0),
            bytes: exchange.length.unwrap_or(0),
            path: &exchange.path,
        }
    }
}

impl Count {
    /// Counts an exchange. Returns the result of `covers`: its duration not covered by earlier ones of the connection.
    #[inline]
    pub(crate) fn record(
        &mut self,
        seen: &ExchangeSample<'_>,
        covers: impl FnOnce(Timestamp, Timestamp) -> Nanos,
    ) -> Nanos {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(seen.bytes);
        let Some(start) = seen.start else { return Nanos(0) };
        if self.first.as_ref().is_none_or(|(first, _)| earlier(&start, first)) {
            self.first = Some((start, seen.path.clone()));
        }
        self.last = self.last.max(Some(seen.end));
        let Some(time) = seen.took else { return Nanos(0) };
        self.response_time = self.response_time.saturating_add(time);
        self.longest = self.longest.max(time);
        let more = covers(start.time, seen.end);
        self.outstanding = self.outstanding.saturating_add(more.0);
        more
    }

    pub(crate) fn merge(&mut self, other: &Count) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.response_time = self.response_time.saturating_add(other.response_time);
        self.outstanding = self.outstanding.saturating_add(other.outstanding);
        self.longest = self.longest.max(other.longest);
        if let Some((stamp, _)) = &other.first
            && self.first.as_ref().is_none_or(|(first, _)| earlier(stamp, first))
        {
            self.first = other.first.clone();
        }
        self.last = self.last.max(other.last);
    }

    pub(crate) fn span(&self) -> Nanos {
        match (&self.first, self.last) {
            (Some((first, _)), Some(last)) => (last - first.time).max(Nanos(0)),
            _ => Nanos(0),
        }
    }

    pub(crate) fn path(&self) -> Option<Arc<str>> {
        self.first.as_ref().and_then(|(_, path)| path.clone())
    }

    pub(crate) fn mean(&self) -> Nanos {
        Nanos(if self.count > 0 { self.response_time / self.count as i64 } else { 0 })
    }
}

fn earlier(a: &Stamp, b: &Stamp) -> bool {
    (a.time, a.packet) < (b.time, b.packet)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PeakWindowCount {
    start: Timestamp,
    count: u32,
    pub(crate) most: u32,
}

impl PeakWindowCount {
    pub(crate) fn record(&mut self, time: Timestamp, length: Nanos) {
        if self.count == 0 || time - self.start >= length {
            self.start = time;
            self.count = 0;
        }
        self.count += 1;
        self.most = self.most.max(self.count);
    }

    pub(crate) fn merge(&mut self, other: &PeakWindowCount) {
        self.most = self.most.max(other.most);
    }
}

/// Lock releases and oplock breaks per client.
const EVENTS_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Events(Vec<(Timestamp, Option<Arc<str>>)>);

impl Events {
    pub(crate) fn add(&mut self, time: Timestamp, path: &Option<Arc<str>>) {
        if self.0.len() == EVENTS_MAX && self.0.last().is_some_and(|(last, _)| *last <= time) {
            return;
        }
        let at = self.0.partition_point(|(known, _)| *known <= time);
        self.0.insert(at, (time, path.clone()));
        self.0.truncate(EVENTS_MAX);
    }

    fn merge(&mut self, other: &Events) {
        other.0.iter().for_each(|(time, path)| self.add(*time, path));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Timestamp, Option<Arc<str>>)> {
        self.0.iter()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PairFacts {
    counts: Box<[Count]>,
    served: Box<[ServerTimeHistogram]>,
    pub(crate) waits: Waits,
    pub(crate) refused: [Refused; RefusalReason::COUNT],
    pub(crate) breaks: Events,
    /// LOCK and CLOSE requests that may have released a range that another client waited for.
    pub(crate) releases: Events,
    pub(crate) small_files: PeakWindowCount,
    pub(crate) notified: PeakWindowCount,
    /// Sum in ns of pauses too short for a human reaction.
    pub(crate) quick_think: i64,
    pub(crate) user_pauses: u64,
    pub(crate) slowdown: Option<Slowdown>,
}

impl Default for PairFacts {
    fn default() -> PairFacts {
        PairFacts {
            counts: vec![Count::default(); Fact::ALL.len()].into_boxed_slice(),
            served: vec![ServerTimeHistogram::default(); CommandClass::COUNT].into_boxed_slice(),
            waits: Waits::default(),
            refused: Default::default(),
            breaks: Events::default(),
            releases: Events::default(),
            small_files: PeakWindowCount::default(),
            notified: PeakWindowCount::default(),
            quick_think: 0,
            user_pauses: 0,
            slowdown: None,
        }
    }
}

impl PairFacts {
    pub(crate) fn counted(&self, fact: Fact) -> &Count {
        &self.counts[fact as usize]
    }

    pub(crate) fn count(&self, fact: Fact) -> u64 {
        self.counted(fact).count
    }

    pub(crate) fn counted_mut(&mut self, fact: Fact) -> &mut Count {
        &mut self.counts[fact as usize]
    }

    pub(crate) fn served(&self, kind: CommandClass) -> &ServerTimeHistogram {
        &self.served[kind as usize]
    }

    pub(crate) fn served_mut(&mut self, kind: CommandClass) -> &mut ServerTimeHistogram {
        &mut self.served[kind as usize]
    }

    pub(crate) fn served_together(&self, kinds: &[CommandClass]) -> ServerTimeHistogram {
        let mut all = ServerTimeHistogram::default();
        kinds.iter().for_each(|kind| all.merge(self.served(*kind)));
        all
    }

    pub(crate) fn share(&self, part: Fact, whole: Fact) -> f64 {
        match self.count(whole) {
            0 => 0.0,
            whole => self.count(part) as f64 / whole as f64,
        }
    }

    pub(crate) fn refused(&self, refusal: RefusalReason) -> &Refused {
        &self.refused[refusal as usize]
    }

    pub(crate) fn note_slowdown(&mut self, slowdown: Option<Slowdown>) {
        self.slowdown = Slowdown::worse(self.slowdown.take(), slowdown);
    }

    pub(crate) fn merge(&mut self, other: &PairFacts) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.served.iter_mut().zip(&other.served) {
            mine.merge(theirs);
        }
        self.waits.merge(&other.waits);
        for (mine, theirs) in self.refused.iter_mut().zip(&other.refused) {
            mine.merge(theirs);
        }
        self.breaks.merge(&other.breaks);
        self.releases.merge(&other.releases);
        self.small_files.merge(&other.small_files);
        self.notified.merge(&other.notified);
        self.quick_think = self.quick_think.saturating_add(other.quick_think);
        self.user_pauses += other.user_pauses;
        self.note_slowdown(other.slowdown.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_begins_with_an_event() {
        let mut window = PeakWindowCount::default();
        [0, 1, 5, 9, 25, 26, 27].iter().for_each(|time| window.record(Timestamp(*time), Nanos(10)));
        assert_eq!(window.most, 4);
    }
}
