//! The answer: why users wait, whose it is, and what to do next. Every surface shows this value; none decides anything.

use crate::next::SuggestedCommand;
use serde::{Deserialize, Serialize};
use smbscope_model::prose::{counted, prose_percent, span, time_of_day, unbroken};
use smbscope_model::{Nanos, Timestamp};
use std::sync::Arc;

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Culprit {
    /// The server, its storage or what inspects its files.
    Server,
    /// The network: distance, bandwidth, loss.
    Network,
    /// A client machine: its network stack, its processor, or a lock that it holds.
    Client,
    /// The way a program uses the share.
    Application,
    /// The capture can't tell.
    Capture,
    /// Nobody: nothing is slow.
    #[default]
    Nothing,
}

impl Culprit {
    /// How a headline begins.
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

    /// As JSON and `--fail-if` write it.
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

    /// All of them.
    pub const ALL: [Culprit; 6] =
        [Culprit::Server, Culprit::Network, Culprit::Client, Culprit::Application, Culprit::Capture, Culprit::Nothing];
}

/// Why users wait.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// Whose it is.
    pub culprit: Culprit,
    /// The answer in a sentence or two.
    pub headline: String,
    /// The headline states the first cause; otherwise whose time it was, or that nothing is slow.
    pub states_first_cause: bool,
    /// What supports the headline, a sentence each.
    pub evidence: Vec<String>,
    /// Causes of waits that a person notices, the worst first.
    pub causes: Vec<Cause>,
    /// Things to know that cost nobody a noticeable time.
    pub notes: Vec<Cause>,
    /// What is not the cause, a sentence each.
    pub ruled_out: Vec<String>,
    /// What limits the answer, a sentence each.
    pub caveats: Vec<String>,
    /// Commands that look closer.
    pub next: Vec<SuggestedCommand>,
    /// What counted as slow, as `--slow` takes it.
    pub slow: String,
}

/// One explanation of a wait.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    /// Key of the cause; docs/causes.md describes each.
    pub id: String,
    /// Who has to act.
    pub culprit: Culprit,
    /// Short name.
    pub title: String,
    /// What happened.
    pub sentence: String,
    /// What it cost whom; empty where a capture can't tell.
    pub cost: String,
    /// Whom and what it is about.
    pub subject: Subject,
    /// The time that would go away without the cause; null where a capture can't tell.
    pub lost_ns: Option<LostTime>,
    /// Active time of the sufferers: with a request outstanding on any connection, and think time in between.
    pub active_ns: Nanos,
    /// Lost time as a share of active time, 0 to 1.
    pub share: Option<f64>,
    /// How sure it is.
    pub confidence: Confidence,
    /// Packets to look at.
    pub evidence: Vec<Evidence>,
    /// Display filter for Wireshark.
    pub wireshark: String,
    /// What to do.
    pub advice: String,
    /// Where thresholds and advice come from.
    pub source: String,
    /// Titles of more general causes that explain the same seconds.
    pub also: Vec<String>,
    /// The longest part of the lost time in one piece, where it is an event.
    #[serde(skip)]
    pub(crate) longest: Option<Nanos>,
    /// Operations failed, whatever time that cost.
    #[serde(skip)]
    pub(crate) failed: bool,
    /// What the sufferers waited in all.
    #[serde(skip)]
    pub(crate) waited: Nanos,
}

/// A time as an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostTime {
    /// At least this.
    pub low: Nanos,
    /// Most likely this.
    pub best: Nanos,
    /// At most this.
    pub high: Nanos,
}

impl LostTime {
    /// A time that was measured.
    pub fn exactly(time: Nanos) -> LostTime {
        LostTime { low: time, best: time, high: time }
    }

    /// A time with its bounds, put in order.
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

/// Whom and what a cause is about; what is null it is not about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subject {
    /// Address of the client that suffers, or suffers most.
    pub client: Option<String>,
    /// Clients that suffer.
    pub clients: u64,
    /// Address and port of the server.
    pub server: Option<String>,
    /// Users on the client's connections.
    pub users: Vec<Arc<str>>,
    /// The share.
    pub share: Option<Arc<str>>,
    /// The file or directory below the share.
    pub path: Option<Arc<str>>,
}

/// A packet to look at.
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

/// How sure a cause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Default, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// One of several explanations.
    #[default]
    Low,
    /// The usual explanation.
    Medium,
    /// Seen in the packets themselves.
    High,
}

impl Confidence {
    /// For a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Confidence::Low => "low confidence: one of several explanations",
            Confidence::Medium => "medium confidence: the usual explanation",
            Confidence::High => "high confidence: seen in the packets",
        }
    }
}

impl Cause {
    /// The most likely lost time; zero where a capture can't tell.
    pub fn best(&self) -> Nanos {
        self.lost_ns.map_or(Nanos(0), |lost| lost.best)
    }

    /// What happened and what it cost.
    pub fn in_full(&self) -> String {
        match self.cost.is_empty() {
            true => self.sentence.clone(),
            false => format!("{} {}", self.sentence, self.cost),
        }
    }

    /// Brings share and cost in line with the lost and the active time.
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

/// `10.0.0.7 lost 6.27 s of 6.80 s (92%).`
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
    /// The cause that the headline states.
    pub fn stated(&self) -> Option<&Cause> {
        self.causes.first().filter(|_| self.states_first_cause)
    }

    /// Without the marks that keep numbers and their units on one line of text.
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
