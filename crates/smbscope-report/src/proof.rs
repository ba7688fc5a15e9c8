//! The proof of predictions: replays in the lab or on a given server, and how they compare.

use crate::format::{clean, counted, from_to, span};
use crate::json::listings::SlowExchange;
use crate::page::{Paint, TextPage};
use crate::tables::{ColumnHead, Row, Table, Unit};
use serde::Serialize;
use smbscope_diagnose::whatif::{PredictedDuration, Scenario};
use smbscope_model::{Exchange, Nanos};

/// Most commands of a replay that are listed.
pub const REPLAYED_LISTED_MAX: usize = 1_000;

/// Measurement of predictions: the recorded commands, replayed as captured and with each change.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// Share of the replays: `smb://ann@server/share`. Null for private servers in the lab.
    pub server: Option<String>,
    /// Replayed commands.
    pub commands: u64,
    /// Clients that were replayed, each as a user of its own.
    pub clients: u64,
    /// Threads of these clients. Each has a connection of its own.
    pub threads: u64,
    /// Commands that were not replayed as captured, with count and reason.
    pub not_replayed: Vec<String>,
    /// Says that replays repeat the commands. Null if none does.
    pub repeated: Option<String>,
    /// Durations as captured. Null if nothing was measured.
    pub as_captured_ns: Option<MeasuredDuration>,
    /// Commands of the replay as captured with the median duration: the first 1,000, in time order.
    pub as_captured_commands: ReplayedCommands,
    /// The changes, in the order of the predictions.
    pub changes: Vec<ProvedChange>,
}

/// Commands of a replay in time order.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ReplayedCommands(Vec<SlowExchange>);

impl ReplayedCommands {
    /// Keeps the first of this number of passes.
    pub fn new(exchanges: &[Exchange], passes: u32) -> ReplayedCommands {
        let mut all: Vec<&Exchange> = exchanges.iter().collect();
        all.sort_by_key(|exchange| exchange.request.first.map(|stamp| stamp.time));
        let kept = all.len().div_ceil(passes.max(1) as usize).min(REPLAYED_LISTED_MAX);
        ReplayedCommands(all.into_iter().take(kept).map(|one| SlowExchange::new(one, &[])).collect())
    }
}

/// Durations of repeated replays. A replay of several passes counts with a pass's share of its duration.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredDuration {
    /// Shortest duration.
    pub low: Nanos,
    /// Median. Of an even number of replays, the longer one of the two in the middle.
    pub best: Nanos,
    /// Longest duration.
    pub high: Nanos,
    /// Number of replays.
    pub replays: u64,
    /// Passes through the commands in each replay: several for commands that take less than two seconds.
    pub passes: u32,
}

impl MeasuredDuration {
    pub fn new(mut durations: Vec<Nanos>, passes: u32) -> Option<MeasuredDuration> {
        durations.sort_unstable();
        Some(MeasuredDuration {
            low: *durations.first()?,
            best: *durations.get(durations.len() / 2)?,
            high: *durations.last()?,
            replays: durations.len() as u64,
            passes,
        })
    }

    /// Returns true if the median is within the predicted range.
    pub fn is_within(&self, predicted: PredictedDuration) -> bool {
        (predicted.low..=predicted.high).contains(&self.best)
    }
}

/// A change with its prediction and its measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProvedChange {
    /// Change, in the syntax of --if.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub change: Scenario,
    /// Duration predicted from the replays as captured. Null if there is no prediction.
    pub predicted_ns: Option<PredictedDuration>,
    /// Measured duration. Null if the change was not made.
    pub measured_ns: Option<MeasuredDuration>,
    /// Commands of the replay with the median duration: the first 1,000, in time order.
    pub commands: ReplayedCommands,
    /// Result of the comparison.
    pub verdict: ProofVerdict,
}

/// Result of comparing a prediction with its measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProofVerdict {
    /// The median is within the predicted range.
    Holds,
    /// The median is outside.
    Misses {
        /// The assumption that failed, as far as the replays show.
        why: String,
    },
    /// The change can't be made there.
    NotMade {
        /// The reason.
        why: String,
    },
}

impl Proof {
    /// Formats the place of the replays: `in the lab`.
    fn place(&self) -> String {
        self.server.as_ref().map_or_else(|| "in the lab".to_owned(), |server| format!("on {}", clean(server)))
    }

    /// Formats the result: `In the lab, 2 of 3 predictions hold.`, with the first that does not.
    pub(crate) fn headline(&self) -> String {
        let made = || self.changes.iter().filter(|change| !matches!(change.verdict, ProofVerdict::NotMade { .. }));
        let (of, holds) = (made().count(), made().filter(|change| change.verdict == ProofVerdict::Holds).count());
        let measured = |change: &ProvedChange| {
            let (measured, predicted) = (change.measured_ns.as_ref()?, change.predicted_ns?);
            let took = span(measured.best);
            Some(format!("with {}, the replay took {took}, predicted were {}", change.change, with_range(predicted)))
        };
        let missed = made().find(|change| change.verdict != ProofVerdict::Holds);
        let shown =
            missed.or_else(|| made().next()).and_then(measured).map_or_else(String::new, |text| format!(" {text}"));
        let place = self.place();
        match (of, holds) {
            (0, _) => format!("Nothing was proved: these changes can't be made {place}."),
            (1, 1) => format!("Proved {place}:{shown}."),
            (_, holds) if holds == of => format!("Proved {place}, all {of}:{shown}."),
            (1, _) => format!("The prediction failed {place}:{shown}."),
            _ => format!("{holds} of {of} predictions hold {place}. Not so:{shown}."),
        }
    }

    pub(crate) fn render(&self, page: &mut TextPage) {
        let range = |low, best, high| with_range(PredictedDuration { low, best, high });
        let measured = |measured: &Option<MeasuredDuration>| {
            measured.as_ref().map(|measured| range(measured.low, measured.best, measured.high))
        };
        let now = Row::new("as captured", (None, measured(&self.as_captured_ns), None));
        let then = self.changes.iter().map(|change| {
            let predicted = change.predicted_ns.map(with_range);
            let result = match change.verdict {
                ProofVerdict::Holds => "holds",
                ProofVerdict::Misses { .. } => "fails",
                ProofVerdict::NotMade { .. } => "not made",
            };
            Row::new(change.change.to_string(), (predicted, measured(&change.measured_ns), Some(result.to_owned())))
        });
        let replays = self.as_captured_ns.as_ref().map_or(0, |measured| measured.replays);
        let (users, connections) =
            (counted(self.clients, "user", "users"), counted(self.threads, "connection", "connections"));
        let title = format!("{} {}", counted(replays, "replay", "replays"), self.place());
        let rendered = Table::new()
            .column(
                ColumnHead::new(
                    "predicted",
                    "Predicted",
                    Unit::Duration,
                    "duration predicted from the replay as captured",
                )
                .at_least(8),
                |(predicted, ..): &(Option<String>, Option<String>, Option<String>)| predicted.clone(),
            )
            .column(
                ColumnHead::new("measured", "Measured", Unit::Duration, "median of the replays, with their range")
                    .at_least(8),
                |row| row.1.clone(),
            )
            .column(
                ColumnHead::new("result", "Result", Unit::Text, "whether the median is in the predicted range"),
                |row| row.2.clone(),
            )
            .section(title, std::iter::once(now).chain(then))
            .render(page);
        let replayed = counted(self.commands, "command was replayed", "commands were replayed");
        let repeated = self.repeated.as_ref().map_or_else(String::new, |sentence| format!(" {sentence}"));
        rendered.note(page, &format!("{replayed}, by {users} over {connections}.{repeated}"));
        for change in &self.changes {
            if let ProofVerdict::Misses { why } | ProofVerdict::NotMade { why } = &change.verdict {
                page.beside(Paint::Plain, "- ", &clean(&format!("{}: {why}.", change.change)));
            }
        }
        for reason in &self.not_replayed {
            page.beside(Paint::Plain, "- ", &clean(&format!("Not as captured: {reason}.")));
        }
    }
}

/// Formats a duration with its range: `2.41 s (2.12 to 2.73 s)`.
pub(crate) fn with_range(PredictedDuration { low, best, high }: PredictedDuration) -> String {
    let [low, best, high] = [low, best, high].map(span);
    format!("{best} ({})", from_to(&low, &high))
}
