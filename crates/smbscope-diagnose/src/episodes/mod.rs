//! Episodes: bursts of work of one client, such as the start of a program, a logon, a save or an upload.
//!
//! Commands of a client that are less than [`GAP`] apart belong to one episode, on whichever connections they are. So an
//! episode is a set of intervals that were joined, and joining does not depend on their order. Where the connections of a
//! client pause more than [`EPISODES_MAX`] times, its gap is doubled until they do not (`pauses` says why it goes by those).

mod distinct;
mod name;
mod pauses;

use crate::facts::{Fact, FactSet};
use distinct::Distinct;
pub(crate) use distinct::hash;
pub use name::EpisodeKind;
use name::Touched;
use pauses::Pauses;
use serde::{Deserialize, Deserializer, Serialize};
use smbscope_model::{CommandGroup, Exchange, Nanos, TimeKind, Timestamp};
use smbscope_stats::{BottomKTable, derived};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Commands that are further apart belong to two episodes.
pub const GAP: Nanos = Nanos(2_000_000_000);
/// Episodes of a client.
pub const EPISODES_MAX: usize = 64;
/// Clients whose episodes are kept.
pub const EPISODE_CLIENTS_MAX: usize = 512;
/// An episode with fewer commands is not told of.
const COMMANDS_LEAST: u64 = 10;

/// A burst of work of one client.
#[derive(Debug, Clone, PartialEq)]
pub struct Episode {
    /// Its client.
    pub client: IpAddr,
    /// First packet of its first request.
    pub start: Timestamp,
    /// Last packet of its last response.
    pub end: Timestamp,
    /// What it looks like, from what it touches.
    pub kind: EpisodeKind,
    /// What it touches most: a program, a document, a directory.
    pub about: Option<Arc<str>>,
    /// Commands, which are round trips where they come one after the other.
    pub commands: u64,
    /// Opens of files and directories.
    pub opens: u64,
    /// Different paths that were opened, an estimate above 64.
    pub files: u64,
    /// Bytes of file data that came from the server.
    pub bytes_read: u64,
    /// Bytes of file data that went to it.
    pub bytes_written: u64,
    /// Time with a command outstanding, by connection.
    pub waited: Nanos,
    /// Sum of the response times.
    pub response_time: Nanos,
}

impl Episode {
    /// First to last packet.
    pub fn duration(&self) -> Nanos {
        self.end - self.start
    }

    /// The client's own time in it.
    pub fn think(&self) -> Nanos {
        Nanos((self.duration().0 - self.waited.0).max(0))
    }
}

/// How the waits of a client are spread over its episodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct EpisodeWaits {
    pub(crate) episodes: u64,
    /// Time with a command outstanding, summed over connections.
    pub(crate) waited: Nanos,
    /// Most of it in one episode.
    pub(crate) longest: Nanos,
}

impl EpisodeWaits {
    /// The share of all waits that the worst episode holds.
    pub(crate) fn worst_share(&self) -> f64 {
        if self.waited.0 > 0 { self.longest.0 as f64 / self.waited.0 as f64 } else { 1.0 }
    }
}

/// The episodes of all clients while they are found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Episodes(#[serde(deserialize_with = "clients")] BottomKTable<IpAddr, ClientEpisodes>);

fn clients<'de, D: Deserializer<'de>>(entries: D) -> Result<BottomKTable<IpAddr, ClientEpisodes>, D::Error> {
    BottomKTable::new(EPISODE_CLIENTS_MAX).filled(entries)
}

impl Default for Episodes {
    fn default() -> Episodes {
        Episodes(BottomKTable::new(EPISODE_CLIENTS_MAX))
    }
}

impl Episodes {
    /// Takes an exchange, the time of its connection that it covers anew, and when the connection was last at work.
    pub(crate) fn record(
        &mut self,
        exchange: &Exchange,
        facts: FactSet,
        waited: Nanos,
        worked: &mut Option<Timestamp>,
    ) {
        if exchange.group == CommandGroup::Waiting {
            return;
        }
        let (Some(first), Some(last)) = (exchange.request.first, exchange.response.last) else { return };
        let pause = worked.map_or(Nanos(i64::MAX), |worked| first.time - worked);
        *worked = (*worked).max(Some(last.time));
        let client = exchange.endpoints.client.ip();
        if let Some(episodes) = self.0.recent_entry(|known| *known == client, || client, |_, _| {}) {
            episodes.add(first.time, last.time).record(exchange, facts, waited.0);
            if pause >= episodes.gap {
                episodes.pauses.add(first.time, pause, episodes.gap);
                episodes.fit();
            }
        }
    }

    /// Adds those of other connections.
    pub(crate) fn merge(&mut self, other: Episodes) {
        self.0.merge(other.0, ClientEpisodes::merge, |_, _| {});
    }

    /// How the waits of each client are spread over its episodes.
    pub(crate) fn paces(&self) -> Vec<(IpAddr, EpisodeWaits)> {
        let pace = |episodes: &ClientEpisodes| {
            let waits = episodes.spans.values().map(|span| span.work.waited);
            let (waited, longest) = waits.fold((0i64, 0), |(sum, most), one| (sum.saturating_add(one), most.max(one)));
            EpisodeWaits { episodes: episodes.spans.len() as u64, waited: Nanos(waited), longest: Nanos(longest) }
        };
        self.0.iter().map(|(client, episodes)| (*client, pace(episodes))).collect()
    }

    /// The episodes that are worth telling, in the order of time.
    pub(crate) fn finish(&self) -> Vec<Episode> {
        let mut all: Vec<Episode> = Vec::new();
        for (client, episodes) in self.0.iter() {
            let told = episodes.spans.iter().filter(|(_, span)| span.work.commands >= COMMANDS_LEAST);
            all.extend(told.map(|(start, span)| span.finish(*client, *start)));
        }
        all.sort_by_key(|episode| (episode.start, episode.client));
        all
    }
}

/// The episodes of a client, by when they begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ClientEpisodes {
    gap: Nanos,
    /// Decide how long the gap is.
    pauses: Pauses,
    spans: BTreeMap<Timestamp, UnfinishedEpisode>,
}

impl Default for ClientEpisodes {
    fn default() -> ClientEpisodes {
        ClientEpisodes { gap: GAP, pauses: Pauses::default(), spans: BTreeMap::new() }
    }
}

impl ClientEpisodes {
    /// What is done in an interval: joined with all that is no further away than the gap.
    fn add(&mut self, start: Timestamp, end: Timestamp) -> &mut EpisodeTotals {
        let last = self.spans.last_key_value().map(|(start, span)| (*start, span.end));
        let inside = last.filter(|(known, until)| *known <= start && start - *until < self.gap);
        let start = match inside {
            Some((known, _)) => known,
            None => self.join(start, end, EpisodeTotals::default()),
        };
        let span = self.spans.entry(start).or_insert_with(|| UnfinishedEpisode { end, work: EpisodeTotals::default() });
        span.end = span.end.max(end);
        &mut span.work
    }

    /// Puts an interval in, joined with its neighbours; tells where the whole begins.
    fn join(&mut self, start: Timestamp, end: Timestamp, work: EpisodeTotals) -> Timestamp {
        let (mut start, mut whole) = (start, UnfinishedEpisode { end, work });
        // Those that begin before its end, and a gap behind it, and end behind its start, and a gap before it.
        loop {
            let until = Timestamp(whole.end.0.saturating_add(self.gap.0));
            let near = self.spans.range(..until).next_back().map(|(known, span)| (*known, span.end));
            let Some((known, _)) = near.filter(|(_, end)| start - *end < self.gap) else { break };
            if let Some(other) = self.spans.remove(&known) {
                whole.end = whole.end.max(other.end);
                whole.work.merge(&other.work);
                start = start.min(known);
            }
        }
        self.spans.insert(start, whole);
        start
    }

    fn merge(&mut self, other: &ClientEpisodes) {
        if other.gap > self.gap {
            self.widen(other.gap);
        }
        for (start, span) in &other.spans {
            self.join(*start, span.end, span.work.clone());
        }
        self.pauses.merge(&other.pauses, other.gap, self.gap);
        self.fit();
    }

    /// Doubles the gap until no more pauses are left than episodes are kept. There are no more episodes than pauses then,
    /// unless an exchange came that ended long before others of its connection that had come already.
    fn fit(&mut self) {
        while self.pauses.len() > EPISODES_MAX || self.spans.len() > EPISODES_MAX {
            self.widen(Nanos(self.gap.0.saturating_mul(2)));
        }
    }

    fn widen(&mut self, gap: Nanos) {
        self.pauses.widen(self.gap, gap);
        self.gap = gap;
        for (start, span) in std::mem::take(&mut self.spans) {
            self.join(start, span.end, span.work);
        }
    }
}

/// An episode by its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct UnfinishedEpisode {
    end: Timestamp,
    work: EpisodeTotals,
}

impl UnfinishedEpisode {
    fn finish(&self, client: IpAddr, start: Timestamp) -> Episode {
        let EpisodeTotals { commands, opens, files, bytes_read, bytes_written, waited, response_time, touched } =
            &self.work;
        let files = files.count().min(*opens);
        let (kind, about) = touched.name(*commands, *opens, files, *bytes_read, *bytes_written);
        Episode {
            client,
            start,
            end: self.end,
            kind,
            about,
            commands: *commands,
            opens: *opens,
            files,
            bytes_read: *bytes_read,
            bytes_written: *bytes_written,
            waited: Nanos(*waited),
            response_time: Nanos(*response_time),
        }
    }
}

/// What is done in an episode.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct EpisodeTotals {
    commands: u64,
    opens: u64,
    files: Distinct,
    bytes_read: u64,
    bytes_written: u64,
    waited: i64,
    response_time: i64,
    touched: Touched,
}

impl EpisodeTotals {
    fn record(&mut self, exchange: &Exchange, facts: FactSet, waited: i64) {
        self.commands += 1;
        self.waited = self.waited.saturating_add(waited);
        let time = exchange.time(TimeKind::ResponseTime).unwrap_or_default();
        self.response_time = self.response_time.saturating_add(time.0);
        if let Some(moved) = derived::moved(exchange) {
            let sum =
                if exchange.group == CommandGroup::Write { &mut self.bytes_written } else { &mut self.bytes_read };
            *sum = sum.saturating_add(moved);
        }
        self.touched.lists += u64::from(facts.has(Fact::List));
        self.touched.outcome(exchange);
        if facts.has(Fact::Open) {
            self.opens += 1;
            if let Some(path) = exchange.path.as_ref().filter(|_| !facts.has(Fact::Missing)) {
                self.files.add(path);
                self.touched.open(path);
            }
        }
    }

    fn merge(&mut self, other: &EpisodeTotals) {
        self.commands += other.commands;
        self.opens += other.opens;
        self.files.merge(&other.files);
        self.bytes_read = self.bytes_read.saturating_add(other.bytes_read);
        self.bytes_written = self.bytes_written.saturating_add(other.bytes_written);
        self.waited = self.waited.saturating_add(other.waited);
        self.response_time = self.response_time.saturating_add(other.response_time);
        self.touched.merge(&other.touched);
    }
}

#[cfg(test)]
mod tests;
