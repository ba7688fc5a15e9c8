//! What is counted of one client.

use crate::facts::Fact;
use smbscope_model::{Exchange, Nanos, Stamp, TimeKind, Timestamp};
use std::sync::Arc;

/// How often something happened, and how long a client waited in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Count {
    pub(crate) count: u64,
    /// Bytes that were asked for.
    pub(crate) bytes: u64,
    /// Sum of the response times.
    pub(crate) response_time: i64,
    /// Time in which at least one of them was outstanding, by connection.
    pub(crate) outstanding: i64,
    /// The longest response time.
    pub(crate) longest: i64,
    /// The first one: its request's first packet, and what it worked on.
    pub(crate) first: Option<(Stamp, Option<Arc<str>>)>,
    pub(crate) last: Option<Timestamp>,
}

impl Count {
    /// Counts something that ends with an exchange and that took bytes and time of its own.
    pub(crate) fn add(&mut self, exchange: &Exchange, bytes: u64, waited: i64) {
        let mut nothing_more = Timestamp(i64::MAX);
        self.record(&Exchange { length: Some(bytes), ..exchange.clone() }, &mut nothing_more);
        self.outstanding = self.outstanding.saturating_add(waited);
    }

    /// Counts an exchange; `until` is the end of what was counted before on its connection, and is moved.
    pub(crate) fn record(&mut self, exchange: &Exchange, until: &mut Timestamp) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(exchange.length.unwrap_or(0));
        let Some(start) = exchange.request.first.or(exchange.response.first) else { return };
        if self.first.as_ref().is_none_or(|(first, _)| earlier(&start, first)) {
            self.first = Some((start, exchange.path.clone()));
        }
        let end = exchange.response.last.map_or(start.time, |stamp| stamp.time);
        self.last = self.last.max(Some(end));
        if let Some(Nanos(time)) = exchange.time(TimeKind::ResponseTime) {
            self.response_time = self.response_time.saturating_add(time);
            self.longest = self.longest.max(time);
            self.outstanding = self.outstanding.saturating_add(newly_covered(start.time, end, until));
        }
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

    /// From the first to the end of the last.
    pub(crate) fn span(&self) -> Nanos {
        match (&self.first, self.last) {
            (Some((first, _)), Some(last)) => (last - first.time).max(Nanos(0)),
            _ => Nanos(0),
        }
    }

    /// Outstanding on average while there was one.
    pub(crate) fn depth(&self) -> f64 {
        if self.outstanding > 0 { self.response_time as f64 / self.outstanding as f64 } else { 0.0 }
    }

    /// Mean response time.
    pub(crate) fn mean(&self) -> Nanos {
        Nanos(if self.count > 0 { self.response_time / self.count as i64 } else { 0 })
    }
}

/// What an interval adds to time that is covered until a moment, when intervals come in the order of their ends.
pub(crate) fn newly_covered(start: Timestamp, end: Timestamp, until: &mut Timestamp) -> i64 {
    let more = end - start.max(*until);
    *until = end.max(*until);
    more.0.max(0)
}

fn earlier(a: &Stamp, b: &Stamp) -> bool {
    (a.time, a.packet) < (b.time, b.packet)
}

/// How often something happened in one stretch of time of a fixed length, at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Window {
    start: Timestamp,
    count: u32,
    /// The most of any window.
    pub(crate) most: u32,
}

impl Window {
    /// Counts an event; a window begins with the first event behind the last one.
    pub(crate) fn record(&mut self, time: Timestamp, length: Nanos) {
        if self.count == 0 || time - self.start >= length {
            self.start = time;
            self.count = 0;
        }
        self.count += 1;
        self.most = self.most.max(self.count);
    }

    pub(crate) fn merge(&mut self, other: &Window) {
        self.most = self.most.max(other.most);
    }
}

/// The counts of a client, or of all.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClientFacts {
    counts: Box<[Count]>,
    /// Small files in a minute.
    pub(crate) small_files: Window,
    /// Notifications in a second.
    pub(crate) notified: Window,
    /// Pauses before a request that are shorter than a person needs to act.
    pub(crate) quick_think: i64,
}

impl Default for ClientFacts {
    fn default() -> ClientFacts {
        let counts = vec![Count::default(); Fact::ALL.len()].into_boxed_slice();
        ClientFacts { counts, small_files: Window::default(), notified: Window::default(), quick_think: 0 }
    }
}

impl ClientFacts {
    pub(crate) fn of(&self, fact: Fact) -> &Count {
        &self.counts[fact as usize]
    }

    pub(crate) fn count(&self, fact: Fact) -> u64 {
        self.of(fact).count
    }

    pub(crate) fn of_mut(&mut self, fact: Fact) -> &mut Count {
        &mut self.counts[fact as usize]
    }

    /// Part of a whole, in parts of one; nothing of nothing is nothing.
    pub(crate) fn share(&self, part: Fact, whole: Fact) -> f64 {
        match self.count(whole) {
            0 => 0.0,
            whole => self.count(part) as f64 / whole as f64,
        }
    }

    pub(crate) fn merge(&mut self, other: &ClientFacts) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            mine.merge(theirs);
        }
        self.small_files.merge(&other.small_files);
        self.notified.merge(&other.notified);
        self.quick_think = self.quick_think.saturating_add(other.quick_think);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_several_wait_in_counts_once() {
        // 0–10 and 5–12 cover 12 ns, 20–30 another 10.
        let mut until = Timestamp(i64::MIN);
        let covered: i64 = [(0, 10), (5, 12), (20, 30)]
            .map(|(start, end)| newly_covered(Timestamp(start), Timestamp(end), &mut until))
            .iter()
            .sum();
        assert_eq!(covered, 22);
    }

    #[test]
    fn a_window_begins_with_an_event() {
        // Four events within 10 of the first, then three from 25 on.
        let mut window = Window::default();
        [0, 1, 5, 9, 25, 26, 27].iter().for_each(|time| window.record(Timestamp(*time), Nanos(10)));
        assert_eq!(window.most, 4);
    }
}
