//! The diagnosis result. Every output format renders this value; none draws conclusions of its own.

use crate::next::SuggestedCommand;
use serde::{Deserialize, Serialize};
use smbscope_model::prose::{counted, prose_percent, span, time_of_day, unbroken};
use smbscope_model::{Nanos, Timestamp};
use std::sync::Arc;

/// Party that has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Culprit {
    /// The server, its storage, or software that inspects its files.
    Server,
    /// The network: distance, bandwidth or loss.
    Network,
    /// A client machine: its network stack, its CPU, or a lock that it holds.
    Client,
    /// The way an application uses the share.
    Application,
    /// The capture is inconclusive.
    Capture,
    /// Nothing is slow.
    #[default]
    Nothing,
}

impl Culprit {
    pub fn title(self) -> &'static str {
        match self {
            Culprit::Server => "Server",
            Culprit::Network => "Network",
            Culprit::Client => "Client",
            Culprit::Application => "Application",
            Culprit::Capture => "The capture can't tell",
            Culprit::Nothing => "Nothing is slow",
        }
    }

    /// Returns the identifier used in JSON and by `--fail-if`.
    pub fn key(self) -> &'static str {
        match self {
            Culprit::Server => "server",
            Culprit::Network => "network",
            Culprit::Client => "client",
            Culprit::Application => "application",
            Culprit::Capture => "capture",
            Culprit::Nothing => "nothing",
        }
    }

    pub const ALL: [Culprit; 6] =
        [Culprit::Server, Culprit::Network, Culprit::Client, Culprit::Application, Culprit::Capture, Culprit::Nothing];
}

/// Diagnosis of a capture.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// Party that has to act.
    pub culprit: Culprit,
    /// Diagnosis in one or two sentences.
    pub headline: String,
    /// True if the headline states the first cause, false if it names the party that took most of the time or none.
    pub states_first_cause: bool,
    /// Facts that support the headline, one sentence each.
    pub evidence: Vec<String>,
    /// Causes of noticeable waits, most severe first.
    pub causes: Vec<Cause>,
    /// Findings that cost no noticeable time.
    pub notes: Vec<Cause>,
    /// Causes ruled out by the capture, one sentence each.
    pub ruled_out: Vec<String>,
    /// Limits of the diagnosis, one sentence each.
    pub caveats: Vec<String>,
    /// Suggested commands for a closer look.
    pub next: Vec<SuggestedCommand>,
    /// Limits in force, in the syntax of `--slow`.
    pub slow: String,
}

/// Explanation of a wait.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    /// Identifier of the cause, as listed in docs/causes.md.
    pub id: String,
    /// Party that has to act.
    pub culprit: Culprit,
    /// Short name.
    pub title: String,
    /// Description of the event.
    pub sentence: String,
    /// Cost and who bore it. Empty if the capture does not show it.
    pub cost: String,
    /// Clients, server and file concerned.
    pub subject: Subject,
    /// Time that would be saved without the cause. Null if the capture does not show it.
    pub lost_ns: Option<LostTime>,
    /// Active time of the affected clients: time with a request outstanding on any connection, plus the think time in
    /// between.
    pub active_ns: Nanos,
    /// Lost time as a share of active time, 0 to 1.
    pub share: Option<f64>,
    /// Reliability of the explanation.
    pub confidence: Confidence,
    /// Packets that show the cause.
    pub evidence: Vec<Evidence>,
    /// Wireshark display filter.
    pub wireshark: String,
    /// Recommended action.
    pub advice: String,
    /// Source of the thresholds and the advice.
    pub source: String,
    /// Titles of more general causes that explain the same seconds.
    pub also: Vec<String>,
    /// Longest single part of the lost time. Present only if the cause is an event.
    #[serde(skip)]
    pub(crate) longest: Option<Nanos>,
    /// Operations failed: reported whatever time it cost.
    #[serde(skip)]
    pub(crate) failed: bool,
    /// Total time that the affected clients waited.
    #[serde(skip)]
    pub(crate) waited: Nanos,
}

/// Duration with bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostTime {
    /// Lower bound.
    pub low: Nanos,
    /// Best estimate.
    pub best: Nanos,
    /// Upper bound.
    pub high: Nanos,
}

impl LostTime {
    pub fn exactly(time: Nanos) -> LostTime {
        LostTime { low: time, best: time, high: time }
    }

    /// Raises `best` and `high` where necessary so that 0 ≤ low ≤ best ≤ high.
    pub fn between(low: Nanos, best: Nanos, high: Nanos) -> LostTime {
        let low = low.max(Nanos(0));
        let best = best.max(low);
        LostTime { low, best, high: high.max(best) }
    }

    pub(crate) fn at_most(self, most: Nanos) -> LostTime {
        LostTime { low: self.low.min(most), best: self.best.min(most), high: self.high.min(most) }
    }

    pub(crate) fn plus(self, other: LostTime) -> LostTime {
        let add = |one: Nanos, other: Nanos| Nanos(one.0.saturating_add(other.0));
        LostTime { low: add(self.low, other.low), best: add(self.best, other.best), high: add(self.high, other.high) }
    }
}

/// Clients, server and file that a cause concerns. Null fields do not apply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subject {
    /// Address of the client, or of the most affected one.
    pub client: Option<String>,
    /// Number of affected clients.
    pub clients: u64,
    /// Address and port of the server.
    pub server: Option<String>,
    /// Users on the client's connections.
    pub users: Vec<Arc<str>>,
    /// Share name.
    pub share: Option<Arc<str>>,
    /// Path of the file or directory, relative to the share.
    pub path: Option<Arc<str>>,
}

/// Packet that shows a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Index of the capture in `captures`.
    pub capture: u16,
    /// Number of the packet in that file, from 1.
    pub packet: u64,
    /// Timestamp of the packet.
    pub time_ns: Timestamp,
}

/// Reliability of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Default, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// One of several possible explanations.
    #[default]
    Low,
    /// The usual explanation.
    Medium,
    /// Observed directly in the packets.
    High,
}

impl Confidence {
    pub fn words(self) -> &'static str {
        match self {
            Confidence::Low => "low confidence: one of several explanations",
            Confidence::Medium => "medium confidence: the usual explanation",
            Confidence::High => "high confidence: seen in the packets",
        }
    }
}

impl Cause {
    pub fn best(&self) -> Nanos {
        self.lost_ns.map_or(Nanos(0), |lost| lost.best)
    }

    pub fn in_full(&self) -> String {
        match self.cost.is_empty() {
            true => self.sentence.clone(),
            false => format!("{} {}", self.sentence, self.cost),
        }
    }

    /// Caps the lost time at the active time and derives `share` and `cost` from the two.
    pub(crate) fn settle(mut self) -> Cause {
        if self.active_ns.0 > 0 {
            self.lost_ns = self.lost_ns.map(|lost| lost.at_most(self.active_ns));
        }
        self.share = self.lost_ns.filter(|_| self.active_ns.0 > 0).map(|lost| {
            let share = lost.best.0 as f64 / self.active_ns.0 as f64;
            share.clamp(0.0, 1.0)
        });
        self.cost = cost(&self);
        self
    }
}

/// Formats the cost, e.g. `10.0.0.7 lost 6.27 s of 6.80 s (92%).`
fn cost(cause: &Cause) -> String {
    let Some(lost) = cause.lost_ns.filter(|lost| lost.best.0 > 0) else { return String::new() };
    let who = match (&cause.subject.client, cause.subject.clients) {
        (_, clients @ 2..) => counted(clients, "client", "clients"),
        (Some(client), _) => client.clone(),
        (None, _) => "Clients".to_owned(),
    };
    let wide = lost.high.0 > lost.low.0.saturating_add(lost.best.0 / 3);
    let range = match wide {
        true => format!(" ({} to {})", unbroken(span(lost.low)), unbroken(span(lost.high))),
        false => String::new(),
    };
    let time = unbroken(span(lost.best));
    let first = cause.evidence.first().filter(|_| cause.longest.is_some());
    let since = first.map_or_else(String::new, |first| {
        format!(", from {} on", unbroken(format!("{} UTC", time_of_day(first.time_ns, 0))))
    });
    match cause.active_ns.0 {
        0 => format!("{who} lost {time}{range}{since}."),
        active => {
            let share = prose_percent(lost.best.0.unsigned_abs(), active.unsigned_abs());
            let of = unbroken(span(cause.active_ns));
            format!("{who} lost {time}{range} of {of} ({}){since}.", unbroken(share))
        }
    }
}

impl Answer {
    pub fn stated(&self) -> Option<&Cause> {
        self.causes.first().filter(|_| self.states_first_cause)
    }

    /// Replaces the no-break spaces between numbers and units with ordinary spaces.
    pub fn into_plain(mut self) -> Answer {
        let plain = |text: &mut String| *text = text.replace(smbscope_model::prose::NO_BREAK, " ");
        plain(&mut self.headline);
        for sentences in [&mut self.evidence, &mut self.ruled_out, &mut self.caveats] {
            sentences.iter_mut().for_each(plain);
        }
        for cause in self.causes.iter_mut().chain(&mut self.notes) {
            plain(&mut cause.sentence);
            plain(&mut cause.cost);
        }
        self
    }
}
