//! Episodes: bursts of work of one client, such as a program start, a logon, a save or an upload.
//!
//! Commands of a client less than [`GAP`] apart belong to one episode, regardless of the connection and of their order.
//! If a client pauses more than [`EPISODES_MAX`] times, its gap is doubled until it does not (see `Pauses`).

mod name;

pub use name::EpisodeKind;
pub(crate) use name::hash;

use crate::classify::{Fact, FactSet};
use name::{Distinct, Touched};
use serde::{Deserialize, Deserializer, Serialize};
use smbscope_model::{CUT_NAME_MARK, CommandGroup, Exchange, Nanos, TimeKind, Timestamp};
use smbscope_stats::{BottomKTable, Slowest, derived};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

pub const GAP: Nanos = Nanos(2_000_000_000);
/// Episodes per client; then pauses must be longer.
pub const EPISODES_MAX: usize = 64;
/// Clients with episodes.
pub const EPISODE_CLIENTS_MAX: usize = 512;
const COMMANDS_LEAST: u64 = 10;

#[derive(Debug, Clone, PartialEq)]
pub struct Episode {
    pub client: IpAddr,
    pub start: Timestamp,
    pub end: Timestamp,
    pub kind: EpisodeKind,
    pub about: Option<Arc<str>>,
    /// Number of commands; sequential ones cost a round trip each.
    pub commands: u64,
    pub opens: u64,
    /// Number of distinct paths opened. An estimate above 64.
    pub files: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub waited: Nanos,
    pub response_time: Nanos,
    /// Number of commands with a response time, without expected waits.
    pub timed: u64,
    /// The longest of these, longest first: at most [`EPISODE_COMMANDS_MAX`], fewer with many clients or episodes.
    pub longest: Vec<Exchange>,
}

impl Episode {
    pub fn duration(&self) -> Nanos {
        self.end - self.start
    }

    pub fn think(&self) -> Nanos {
        Nanos((self.duration().0 - self.waited.0).max(0))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct EpisodeWaits {
    pub(crate) episodes: u64,
    pub(crate) waited: Nanos,
    pub(crate) longest: Nanos,
}

impl EpisodeWaits {
    pub(crate) fn worst_share(&self) -> f64 {
        if self.waited.0 > 0 { self.longest.0 as f64 / self.waited.0 as f64 } else { 1.0 }
    }
}

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
    /// Adds an exchange that alone covers `waited` on its connection. Updates `worked`, the end of the last activity.
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
        let clients = self.0.len();
        if let Some(episodes) = self.0.recent_entry(|known| *known == client, || client, |_, _| {}) {
            let kept = episodes.commands_kept(clients);
            episodes.add(first.time, last.time).record(exchange, facts, waited.0, kept);
            if pause >= episodes.gap {
                episodes.pauses.add(first.time, pause, episodes.gap);
                episodes.fit();
                episodes.trim(clients);
            }
        }
        if room(self.0.len()) < room(clients) {
            self.trim();
        }
    }

    pub(crate) fn merge(&mut self, other: Episodes) {
        self.0.merge(other.0, ClientEpisodes::merge, |_, _| {});
        self.trim();
    }

    fn trim(&mut self) {
        let clients = self.0.len();
        self.0.values_mut().for_each(|episodes| episodes.trim(clients));
    }

    pub(crate) fn paces(&self) -> Vec<(IpAddr, EpisodeWaits)> {
        let pace = |episodes: &ClientEpisodes| {
            let waits = episodes.spans.values().map(|span| span.work.waited);
            let (waited, longest) = waits.fold((0i64, 0), |(sum, most), one| (sum.saturating_add(one), most.max(one)));
            EpisodeWaits { episodes: episodes.spans.len() as u64, waited: Nanos(waited), longest: Nanos(longest) }
        };
        self.0.iter().map(|(client, episodes)| (*client, pace(episodes))).collect()
    }

    pub(crate) fn finish(&self) -> Vec<Episode> {
        let mut all: Vec<Episode> = Vec::new();
        for (client, episodes) in self.0.iter() {
            let told = episodes.spans.iter().filter(|(_, span)| span.work.commands >= COMMANDS_LEAST);
            let kept = episodes.commands_kept(self.0.len());
            all.extend(told.map(|(start, span)| span.finish(*client, *start, kept)));
        }
        all.sort_by_key(|episode| (episode.start, episode.client));
        all
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ClientEpisodes {
    gap: Nanos,
    pauses: Pauses,
    spans: BTreeMap<Timestamp, UnfinishedEpisode>,
}

impl Default for ClientEpisodes {
    fn default() -> ClientEpisodes {
        ClientEpisodes { gap: GAP, pauses: Pauses::default(), spans: BTreeMap::new() }
    }
}

impl ClientEpisodes {
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

    /// Returns the number of commands that each episode keeps if all clients share the room equally, and so do the
    /// episodes of this one. Never rises: clients and pauses only become more, and a longer gap means the most episodes.
    fn commands_kept(&self, clients: usize) -> usize {
        let episodes = if self.gap == GAP { self.pauses.len().max(1) } else { EPISODES_MAX };
        (room(clients) / episodes).min(EPISODE_COMMANDS_MAX)
    }

    fn trim(&mut self, clients: usize) {
        let kept = self.commands_kept(clients);
        self.spans.values_mut().for_each(|span| span.work.longest.trim(kept));
    }

    /// Inserts an interval, merged with its neighbours. Returns the start of the result.
    fn join(&mut self, start: Timestamp, end: Timestamp, work: EpisodeTotals) -> Timestamp {
        let (mut start, mut whole) = (start, UnfinishedEpisode { end, work });
        // Neighbours start less than a gap after its end and end less than a gap before its start.
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

    /// Doubles the gap until at most [`EPISODES_MAX`] pauses are left. This also bounds the episodes, unless an
    /// exchange arrives that ended long before others of its connection.
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct UnfinishedEpisode {
    end: Timestamp,
    work: EpisodeTotals,
}

impl UnfinishedEpisode {
    fn finish(&self, client: IpAddr, start: Timestamp, kept: usize) -> Episode {
        let EpisodeTotals { commands, opens, files, bytes_read, bytes_written, waited, response_time, .. } = &self.work;
        let EpisodeTotals { timed, touched, longest, .. } = &self.work;
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
            timed: *timed,
            longest: longest.finish(kept),
        }
    }
}

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
    timed: u64,
    longest: LongestCommands,
}

impl EpisodeTotals {
    fn record(&mut self, exchange: &Exchange, facts: FactSet, waited: i64, kept: usize) {
        self.commands += 1;
        self.timed += u64::from(exchange.is_complete());
        self.longest.record(exchange, kept);
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
        self.timed += other.timed;
        self.longest.merge(&other.longest);
    }
}

/// Longest pause that ends in each stretch as long as the gap. Shorter pauses are omitted.
///
/// The number of episodes can fall as exchanges arrive, because a long command joins separate ones, so a gap derived
/// from it would depend on their order. The number of pauses only grows and bounds the number of episodes: each starts
/// with a pause of one of its connections at least as long as the gap, and two episodes a gap apart do not start in the
/// same stretch. So the shortest gap that leaves few enough pauses is the same for every order and every distribution
/// over workers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Pauses(BTreeMap<i64, Nanos>);

impl Pauses {
    fn add(&mut self, end: Timestamp, pause: Nanos, gap: Nanos) {
        self.keep(end.0.div_euclid(gap.0), pause);
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn merge(&mut self, other: &Pauses, their_gap: Nanos, gap: Nanos) {
        let stretches = gap.0 / their_gap.0;
        for (stretch, pause) in other.0.iter().filter(|(_, pause)| **pause >= gap) {
            self.keep(stretch.div_euclid(stretches), *pause);
        }
    }

    fn widen(&mut self, from: Nanos, gap: Nanos) {
        let all = std::mem::take(self);
        self.merge(&all, from, gap);
    }

    fn keep(&mut self, stretch: i64, pause: Nanos) {
        let longest = self.0.entry(stretch).or_insert(pause);
        *longest = pause.max(*longest);
    }
}

#[cfg(test)]
mod tests;

/// Commands kept per episode, the longest; others are counted only.
pub const EPISODE_COMMANDS_MAX: usize = 250;
/// Commands kept of all episodes; clients share them equally, and so do the episodes of a client.
pub const ALL_EPISODE_COMMANDS_MAX: usize = 16_384;
/// Bytes of a path, a share or a user of such a command.
pub(crate) const EPISODE_NAME_MAX: usize = 1_024;

/// Returns the number of commands that the episodes of each client may keep. Falls only when clients double, so that
/// there is little to trim.
fn room(clients: usize) -> usize {
    ALL_EPISODE_COMMANDS_MAX / clients.max(1).next_power_of_two()
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct LongestCommands(Slowest);

impl LongestCommands {
    #[inline]
    fn record(&mut self, exchange: &Exchange, max: usize) {
        if max > 0 && self.0.takes(exchange) {
            self.0.add(with_short_names(exchange), max);
        }
    }

    /// Adds the commands of another episode. The caller trims.
    fn merge(&mut self, other: &LongestCommands) {
        self.0.merge(&other.0, EPISODE_COMMANDS_MAX);
    }

    fn trim(&mut self, max: usize) {
        self.0.trim(max);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.len()
    }

    fn finish(&self, max: usize) -> Vec<Exchange> {
        self.0.finish(max)
    }
}

fn with_short_names(exchange: &Exchange) -> Exchange {
    let mut kept = exchange.clone();
    [&mut kept.path, &mut kept.share, &mut kept.user].into_iter().flatten().for_each(shorten);
    kept
}

/// Keeps the end of a long name, which tells files apart.
fn shorten(name: &mut Arc<str>) {
    if name.len() > EPISODE_NAME_MAX {
        let room = EPISODE_NAME_MAX - CUT_NAME_MARK.len_utf8();
        let end = (name.len() - room..name.len()).find_map(|start| name.get(start..)).unwrap_or_default();
        *name = format!("{CUT_NAME_MARK}{end}").into();
    }
}
