//! Sweeps over the exchanges of one connection in time order and attributes every moment.
//!
//! [`Sweeper::follow`] collects exchanges, and `sweep` attributes the time up to a point at which all earlier exchanges
//! are known. Start reading at `sweep`.

use super::{PARTS, Shares, TimePart, TimeSplit};
use smbscope_model::{
    CommandGroup, ConnectionSummary, Exchange, ExchangeOutcome, Nanos, Settled, Standstill, Timestamp,
};

/// Think time; a longer pause is idle.
pub const THINK_MAX: Nanos = Nanos(10_000_000_000);

/// Commands held until all earlier ones are known. A command outstanding while more than this many others end is
/// counted only from then on.
pub(super) const HELD_MAX: usize = 256;
/// Waits and retransmissions in a pause; the oldest are dropped.
pub(super) const PAUSE_NOTES_MAX: usize = 64;

#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandSpan {
    pub(crate) start: Timestamp,
    sent: Timestamp,
    answered: Timestamp,
    pub(crate) end: Timestamp,
    round_trip: Option<Nanos>,
    standstill: Option<Standstill>,
    begins_unknown: bool,
    ends_unknown: bool,
    chosen: bool,
}

impl CommandSpan {
    /// Returns `None` for expected waits and for messages that the server sent unasked.
    pub(crate) fn from_exchange(exchange: &Exchange) -> Option<CommandSpan> {
        let Exchange { request, response, .. } = exchange;
        if exchange.group == CommandGroup::Waiting || exchange.outcome == ExchangeOutcome::ServerInitiated {
            return None;
        }
        let start = exchange.start()?;
        let sent = request.last.map_or(start, |stamp| stamp.time).max(start);
        let answered = match (request.last, response.first) {
            (Some(_), Some(first)) => first.time.max(sent),
            _ => sent,
        };
        let end = match (response.first, response.last) {
            (Some(_), Some(last)) => last.time.max(answered),
            _ => answered,
        };
        let begins_unknown = request.first.is_none();
        Some(CommandSpan {
            start,
            sent,
            answered,
            end,
            round_trip: exchange.server_round_trip,
            standstill: exchange.standstill,
            begins_unknown,
            ends_unknown: !begins_unknown
                && !matches!(
                    exchange.outcome,
                    ExchangeOutcome::Complete
                        | ExchangeOutcome::Unanswered
                        | ExchangeOutcome::NoResponseByDesign
                        | ExchangeOutcome::ClockStep
                ),
            chosen: true,
        })
    }

    fn service(&self) -> Nanos {
        self.answered - self.sent
    }

    fn network(&self) -> Option<Nanos> {
        self.round_trip.map(|round_trip| round_trip.clamp(Nanos(0), self.service()))
    }

    fn phases(&self) -> [(TimePart, i64, i64); 5] {
        let CommandSpan { start, sent, answered, end, .. } = *self;
        let (service, there, back) = match self.network() {
            Some(network) => {
                let there = network.0 / 2;
                (TimePart::Server, sent.0 + there, answered.0 - (network.0 - there))
            }
            None => (TimePart::ServerOrNetwork, sent.0, answered.0),
        };
        [
            (TimePart::RequestTransfer, start.0, sent.0),
            (TimePart::Network, sent.0, there),
            (service, there, back),
            (TimePart::Network, back, answered.0),
            (TimePart::ResponseTransfer, answered.0, end.0),
        ]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionCondition {
    Resent,
    /// An expected wait blocks the client.
    Held,
    Subscribed,
    Unanswered(TimePart),
}

#[derive(Debug, Clone, Copy)]
struct Noted {
    note: ConnectionCondition,
    from: i64,
    to: i64,
}

#[derive(Debug, Clone, Copy, Default)]
struct IdlePeriod {
    begins_unknown: bool,
    outer: bool,
    filtered_out: bool,
}

const RESENT: usize = PARTS;
const STANDING: usize = PARTS + 1;
/// Index of incoming responses to filtered-out commands, which block the chosen ones too.
const OTHER_RESPONSE: usize = PARTS + 2;

#[derive(Debug, Clone, Copy, Default)]
struct ActiveCounts {
    parts: [u32; PARTS],
    resent: u32,
    standing: u32,
    other_response: u32,
}

impl ActiveCounts {
    fn change(&mut self, index: usize, change: i32) {
        let count = match index {
            RESENT => &mut self.resent,
            STANDING => &mut self.standing,
            OTHER_RESPONSE => &mut self.other_response,
            _ => &mut self.parts[index],
        };
        *count = count.wrapping_add_signed(change);
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Sweeper {
    held: Vec<CommandSpan>,
    notes: Vec<Noted>,
    position: i64,
    origin: Option<i64>,
    begun: bool,
    /// The capture does not determine the state from `position` to the next command.
    unknown: bool,
    client_round_trip: Option<Nanos>,
    shares: Shares,
    busy: i64,
    outstanding: i64,
    round_trips: u64,
    /// End of the last command that counts as a round trip.
    returned: Option<Timestamp>,
    pub(super) has_counted: bool,
    pub(super) has_filtered_out: bool,
    edges: Vec<(i64, i32, usize)>,
    cuts: Vec<i64>,
}

impl Sweeper {
    /// Adds an exchange. `chosen` ones pass the filter. Calls `busy` with each interval in which one is outstanding.
    pub(super) fn follow(&mut self, exchange: &Exchange, chosen: bool, busy: &mut impl FnMut(i64, i64)) {
        if let Some(resent) = exchange.resent {
            let first = resent.0 - exchange.retransmission_delay.map_or(0, |delay| delay.0);
            self.note(ConnectionCondition::Resent, first, resent.0);
        }
        if let (CommandGroup::Waiting, Some(start)) = (exchange.group, exchange.request.first) {
            let note =
                if exchange.is_subscription() { ConnectionCondition::Subscribed } else { ConnectionCondition::Held };
            let end = match exchange.outcome {
                ExchangeOutcome::Unanswered => i64::MAX,
                _ => exchange.response.last.map_or(start.time.0, |stamp| stamp.time.0),
            };
            self.note(note, start.time.0, end);
        }
        let Some(stretch) = CommandSpan::from_exchange(exchange).map(|stretch| CommandSpan { chosen, ..stretch })
        else {
            return;
        };
        if chosen {
            self.outstanding = self.outstanding.saturating_add((stretch.end - stretch.start).0);
            // Commands come in the order of their ends, so counting each one that begins after the last gives the maximum.
            if exchange.response.last.is_some() && self.returned.is_none_or(|returned| stretch.start >= returned) {
                self.round_trips += 1;
                self.returned = Some(stretch.end);
            }
        }
        if exchange.outcome == ExchangeOutcome::Unanswered {
            let part = match (exchange.acknowledged, exchange.server_round_trip) {
                _ if !chosen => TimePart::FilteredOut,
                // The request never arrived, or its acknowledgment was lost.
                (Some(false), _) => TimePart::Network,
                (Some(true), _) | (None, Some(_)) => TimePart::Server,
                (None, None) => TimePart::ServerOrNetwork,
            };
            self.note(ConnectionCondition::Unanswered(part), stretch.end.0, i64::MAX);
        }
        self.held.push(stretch);
        if self.held.len() > HELD_MAX {
            let mut ends: Vec<i64> = self.held.iter().map(|held| held.end.0).collect();
            let (_, median, _) = ends.select_nth_unstable(HELD_MAX / 2);
            let until = *median;
            self.sweep(until, busy);
            if self.held.len() > HELD_MAX {
                // Also sweep commands that begin and end at that moment: one TCP record may hold thousands of them.
                self.sweep(until.saturating_add(1), busy);
            }
            debug_assert!(self.held.len() <= HELD_MAX, "{} commands are held", self.held.len());
        }
    }

    pub(super) fn settled(&mut self, settled: &Settled, busy: &mut impl FnMut(i64, i64)) {
        self.begin_at(settled.first.0);
        self.client_round_trip = settled.client_round_trip;
        let known = self.notes.len();
        let pending = [
            (ConnectionCondition::Held, settled.held_since),
            (ConnectionCondition::Subscribed, settled.subscribed_since),
        ];
        for (note, since) in pending {
            self.notes.extend(since.map(|since| Noted { note, from: since.0, to: i64::MAX }));
        }
        self.sweep(settled.until.0, busy);
        // These are still pending and arrive as exchanges when they end.
        self.notes.truncate(known);
        self.notes.retain(|noted| noted.to > self.position);
    }

    pub(super) fn finish(mut self, connection: &ConnectionSummary, busy: &mut impl FnMut(i64, i64)) -> TimeSplit {
        let (first, last) = (connection.first.0, connection.last.0);
        self.begin_at(first);
        self.client_round_trip = connection.client_round_trip;
        for held in &mut self.held {
            for time in [&mut held.start, &mut held.sent, &mut held.answered, &mut held.end] {
                *time = (*time).min(connection.last);
            }
        }
        self.sweep(i64::MAX, busy);
        if self.position < last {
            self.pause(last, IdlePeriod { outer: true, ..IdlePeriod::default() });
        }
        let before = self.origin.map_or(0, |origin| origin - first);
        self.shares.add(TimePart::Idle, before);
        TimeSplit { connections: 1, ..self.take_part() }
    }

    /// Takes the time attributed since the last call.
    pub(super) fn take_part(&mut self) -> TimeSplit {
        use std::mem::take;
        let mut split = TimeSplit {
            busy_ns: Nanos(take(&mut self.busy)),
            outstanding_ns: Nanos(take(&mut self.outstanding)),
            round_trips: take(&mut self.round_trips),
            ..TimeSplit::default()
        };
        take(&mut self.shares).finish(&mut split);
        split
    }

    fn note(&mut self, note: ConnectionCondition, from: i64, to: i64) {
        if to <= self.position {
            return;
        }
        if self.notes.len() == PAUSE_NOTES_MAX {
            self.notes.remove(0);
        }
        self.notes.push(Noted { note, from, to });
    }

    fn begin_at(&mut self, first: i64) {
        if self.origin.is_none() {
            self.origin = Some(first);
            self.position = first;
        }
    }

    fn sweep(&mut self, until: i64, busy: &mut impl FnMut(i64, i64)) {
        let mut held = std::mem::take(&mut self.held);
        held.sort_by_key(|stretch| stretch.start);
        let mut next = 0;
        while let Some(first) = held.get(next).filter(|first| first.start.0 < until).copied() {
            self.begin_at(first.start.0);
            if first.start.0 >= self.position {
                let pause = IdlePeriod {
                    begins_unknown: first.begins_unknown,
                    outer: !self.begun,
                    filtered_out: !first.chosen,
                };
                self.pause(first.start.0, pause);
            }
            self.begun = true;
            let (begin, mut end) = (next, first.end.0);
            next += 1;
            while let Some(other) = held.get(next).filter(|other| other.start.0 < end.min(until)) {
                end = end.max(other.end.0);
                next += 1;
            }
            let overlapping = &held[begin..next];
            self.unknown |= overlapping.iter().any(|stretch| stretch.ends_unknown);
            let limit = end.min(until);
            if limit > self.position {
                self.report_busy(overlapping, limit, busy);
                match overlapping {
                    [only]
                        if only.start.0 == self.position
                            && limit == end
                            && only.standstill.is_none()
                            && !self.resending() =>
                    {
                        self.alone(only);
                    }
                    _ => self.together(overlapping, limit),
                }
                self.position = limit;
            }
            if end > until {
                next = begin;
                break;
            }
        }
        held.drain(..next);
        held.retain(|stretch| stretch.end.0 > self.position || stretch.start.0 >= self.position);
        self.held = held;
    }

    fn resending(&self) -> bool {
        self.notes.iter().any(|noted| noted.note == ConnectionCondition::Resent)
    }

    /// Reports the time up to `limit` with a chosen command outstanding. `overlapping` is in order of start times.
    fn report_busy(&mut self, overlapping: &[CommandSpan], limit: i64, busy: &mut impl FnMut(i64, i64)) {
        let mut tell = |from: i64, to: i64| {
            if from < to {
                busy(from, to);
                self.busy += to - from;
            }
        };
        if overlapping.iter().all(|stretch| stretch.chosen) {
            return tell(self.position, limit);
        }
        let (mut from, mut to) = (self.position, self.position);
        for stretch in overlapping.iter().filter(|stretch| stretch.chosen) {
            if stretch.start.0 > to {
                tell(from, to);
                from = stretch.start.0;
            }
            to = to.max(stretch.end.0.min(limit));
        }
        tell(from, to);
    }

    fn alone(&mut self, stretch: &CommandSpan) {
        let CommandSpan { start, sent, answered, end, chosen, .. } = *stretch;
        if !chosen {
            return self.shares.add(TimePart::FilteredOut, (end - start).0);
        }
        self.shares.add(TimePart::RequestTransfer, (sent - start).0);
        match stretch.network() {
            Some(network) => {
                self.shares.add(TimePart::Network, network.0);
                self.shares.add(TimePart::Server, (stretch.service() - network).0);
            }
            None => self.shares.add(TimePart::ServerOrNetwork, stretch.service().0),
        }
        self.shares.add(TimePart::ResponseTransfer, (end - answered).0);
    }

    fn together(&mut self, stretches: &[CommandSpan], limit: i64) {
        let position = self.position;
        let mut edges = std::mem::take(&mut self.edges);
        let mut edge = |index: usize, from: i64, to: i64| {
            let (from, to) = (from.max(position), to.min(limit));
            if from < to {
                edges.extend([(from, 1, index), (to, -1, index)]);
            }
        };
        for stretch in stretches {
            if stretch.chosen {
                stretch.phases().into_iter().for_each(|(part, from, to)| edge(part as usize, from, to));
            } else {
                edge(TimePart::FilteredOut as usize, stretch.start.0, stretch.end.0);
                edge(OTHER_RESPONSE, stretch.answered.0, stretch.end.0);
            }
        }
        for noted in self.notes.iter().filter(|noted| noted.note == ConnectionCondition::Resent) {
            edge(RESENT, noted.from, noted.to);
        }
        for standstill in stretches.iter().filter_map(|stretch| stretch.standstill) {
            edge(STANDING, standstill.from.0, standstill.end().0);
        }
        edges.sort_unstable();
        let mut active = ActiveCounts::default();
        let mut at = position;
        for (time, change, index) in edges.drain(..) {
            if time > at {
                self.attribute(&active, time - at);
                at = time;
            }
            active.change(index, change);
        }
        self.edges = edges;
    }

    fn attribute(&mut self, active: &ActiveCounts, length: i64) {
        let mut counts = active.parts;
        let filtered_out = std::mem::take(&mut counts[TimePart::FilteredOut as usize]);
        let mut present = (0..PARTS).filter(|part| counts[*part] > 0);
        match (present.next(), present.next()) {
            (None, _) if filtered_out > 0 => self.shares.add(TimePart::FilteredOut, length),
            _ if active.resent > 0 => self.shares.add(TimePart::Network, length),
            _ if active.standing > 0 => self.shares.add(TimePart::Server, length),
            _ if counts[TimePart::ResponseTransfer as usize] + active.other_response > 0 => {
                self.shares.add(TimePart::ResponseTransfer, length);
            }
            (Some(only), None) => self.shares.add(TimePart::ALL[only], length),
            (Some(_), Some(_)) => self.shares.divide(&counts, length),
            (None, _) => self.shares.add(TimePart::Unknown, length),
        }
    }

    fn pause(&mut self, to: i64, pause: IdlePeriod) {
        let IdlePeriod { begins_unknown, outer, filtered_out } = pause;
        let from = std::mem::replace(&mut self.position, to);
        let unknown = std::mem::take(&mut self.unknown) || begins_unknown;
        let brief = !outer && to - from <= THINK_MAX.0;
        if to <= from {
            return;
        }
        if filtered_out && (unknown || brief) {
            return self.shares.add(TimePart::FilteredOut, to - from);
        }
        if unknown {
            return self.shares.add(TimePart::Unknown, to - from);
        }
        let mut thought = 0;
        let mut cuts = std::mem::take(&mut self.cuts);
        self.cut(from, to, &mut cuts);
        for pair in cuts.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let has = |wanted: fn(ConnectionCondition) -> bool| {
                self.notes.iter().find(|noted| wanted(noted.note) && noted.from <= from && to <= noted.to)
            };
            let part = if brief && has(|note| note == ConnectionCondition::Resent).is_some() {
                TimePart::Network
            } else if has(|note| note == ConnectionCondition::Held).is_some() {
                TimePart::Waiting
            } else if let Some(ConnectionCondition::Unanswered(part)) =
                has(|note| matches!(note, ConnectionCondition::Unanswered(_))).map(|noted| noted.note)
            {
                part
            } else if brief {
                thought += to - from;
                continue;
            } else if has(|note| note == ConnectionCondition::Subscribed).is_some() {
                TimePart::Waiting
            } else {
                TimePart::Idle
            };
            self.shares.add(part, to - from);
        }
        self.cuts = cuts;
        let network = self.client_round_trip.map_or(0, |round_trip| round_trip.0.clamp(0, thought));
        self.shares.add(TimePart::Network, network);
        self.shares.add(TimePart::Think, thought - network);
    }

    fn cut(&self, from: i64, to: i64, cuts: &mut Vec<i64>) {
        cuts.clear();
        cuts.extend(self.notes.iter().flat_map(|noted| [noted.from, noted.to]));
        cuts.retain(|cut| (from + 1..to).contains(cut));
        cuts.extend([from, to]);
        cuts.sort_unstable();
        cuts.dedup();
    }
}
