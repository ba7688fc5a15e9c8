//! Document and text of `smbscope predict`, `smbscope.prediction/1`.

use crate::document::{Generator, write_indented_above};
use crate::format::{clean, counted, from_to, rate, ratio, span, thousands, unbroken};
use crate::page::{Paint, TextPage};
use crate::proof::{Proof, with_range};
use crate::tables::{ColumnHead, Row, Table, Unit};
use crate::{Explanation, Report};
use serde::Serialize;
use smbscope_diagnose::whatif::{
    self, Bounded, CapturedLoad, DoublingPoint, PredictedDuration, Prediction, PredictionError, Predictions, Scenario,
    UserIdentity, UsersPoint, UsersPrediction,
};
use std::io::{self, Write};

pub const SCHEMA: &str = "smbscope.prediction/1";

/// Predictions as `smbscope predict --format json` prints them. Durations are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PredictionDocument {
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// Program and version that wrote the document.
    generator: Generator,
    /// Names of the captures.
    captures: Vec<String>,
    /// Number of the episode. Null for the whole capture.
    episode: Option<u32>,
    /// Result in one sentence.
    headline: String,
    /// Predicted durations, of --if.
    #[serde(flatten)]
    predictions: Option<Predictions>,
    /// Predicted response times, of --users.
    #[serde(flatten)]
    users: Option<UsersPrediction>,
    /// Measurement of the predictions. Null without --prove.
    proof: Option<Proof>,
}

/// Numbers of users to predict, and what counts as one. None is the default of [`whatif::predict_users`].
#[derive(Debug, Clone, Copy)]
pub struct PredictedUsers<'a> {
    pub numbers: &'a [u32],
    pub identity: Option<UserIdentity>,
}

impl PredictionDocument {
    /// Predicts the duration of the commands that a report kept. `episode` is its number if the report covers only one.
    pub fn new(
        report: &Report,
        episode: Option<u32>,
        changes: &[Scenario],
        users: Option<PredictedUsers<'_>>,
    ) -> Result<PredictionDocument, PredictionError> {
        let Explanation { waterfall, sample, .. } = &report.explanation;
        let predict = || match sample.is_whole() {
            true => whatif::predict(waterfall, &whatif::paths(&report.connections), changes),
            false => Err(PredictionError::TooManyCommands),
        };
        let predict_users =
            |users: PredictedUsers<'_>| whatif::predict_users(waterfall, *sample, users.identity, users.numbers);
        let predictions = (!changes.is_empty()).then(predict).transpose()?;
        let users = users.map(predict_users).transpose()?;
        let headlines = [predictions.as_ref().map(headline), users.as_ref().map(users_headline)];
        Ok(PredictionDocument {
            schema: SCHEMA,
            generator: Generator::new(&report.version),
            captures: report.captures.iter().map(|capture| capture.name.clone()).collect(),
            episode,
            headline: headlines.into_iter().flatten().next().unwrap_or_default(),
            predictions,
            users,
            proof: None,
        })
    }

    /// Returns the predictions of --if.
    pub fn predictions(&self) -> Option<&Predictions> {
        self.predictions.as_ref()
    }

    #[must_use]
    pub fn proved(self, proof: Proof) -> PredictionDocument {
        PredictionDocument { headline: proof.headline(), proof: Some(proof), ..self }
    }

    pub fn write(&self, out: impl Write) -> io::Result<()> {
        /// Indentation depth with one entry per line.
        const LEVELS: usize = 4;
        write_indented_above(LEVELS, self, out)
    }

    /// Returns the title of its page.
    pub(crate) fn title(&self) -> String {
        match self.captures.as_slice() {
            [only] => format!("SMB prediction: {only}"),
            captures => format!("SMB prediction: {} captures", captures.len()),
        }
    }

    pub fn render(&self, width: usize, color: bool) -> String {
        self.render_on(TextPage::new(width, color))
    }

    /// Formats the predictions in Markdown, for a ticket or a pull request.
    pub fn markdown(&self) -> String {
        self.render_on(TextPage::markdown())
    }

    fn render_on(&self, mut page: TextPage) -> String {
        if let Some(predictions) = &self.predictions {
            self.add_changes(predictions, &mut page);
        }
        if let Some(users) = &self.users {
            if self.predictions.is_some() {
                page.blank();
            }
            add_users(users, &mut page);
        }
        page.into_text()
    }

    fn add_changes(&self, all: &Predictions, page: &mut TextPage) {
        let Predictions { captured_ns, round_trip_ns, commands, predictions } = all;
        page.paragraph(Paint::Heading, &clean(&self.headline));
        let what = match self.episode {
            Some(number) => format!("episode {number}"),
            None => "the whole capture".to_owned(),
        };
        let now = Row::new("as captured", (span(*captured_ns), None, *commands));
        let then = predictions.iter().map(|prediction| {
            let sent = commands - prediction.saved_commands;
            let times = factor(prediction.duration_ns.best.0, captured_ns.0);
            Row::new(prediction.change.to_string(), (with_range(prediction.duration_ns), Some(times), sent))
        });
        let rendered = Table::new()
            .column(
                ColumnHead::new("duration", "Duration", Unit::Duration, "predicted duration, with its range")
                    .at_least(8),
                |(duration, ..): &(String, Option<String>, u64)| duration.clone(),
            )
            .column(
                ColumnHead::new("ratio", "×", Unit::Ratio, "ratio to the duration as captured").expendable(6),
                |row| row.1.clone(),
            )
            .column(
                ColumnHead::new("commands", "Commands", Unit::Count, "commands that are sent").expendable(8),
                |row| row.2,
            )
            .section(format!("Predicted for {what}"), std::iter::once(now).chain(then))
            .render(page);
        let trip = round_trip_ns.map_or_else(String::new, |trip| format!("The round trip is {} now.", unbroken(trip)));
        rendered.note(page, &trip);
        if let Some(proof) = &self.proof {
            page.blank();
            proof.render(page);
        }
        add_assumptions(assumptions(predictions), page);
    }
}

fn add_assumptions<'a>(sentences: impl IntoIterator<Item = &'a str>, page: &mut TextPage) {
    page.blank();
    page.paragraph(Paint::Plain, "Taken for granted:");
    sentences.into_iter().for_each(|sentence| page.beside(Paint::Plain, "- ", sentence));
}

/// Returns the assumptions of all predictions, each once.
fn assumptions(predictions: &[Prediction]) -> Vec<&str> {
    let mut all = Vec::new();
    for sentence in predictions.iter().flat_map(|prediction| &prediction.assumptions).map(String::as_str) {
        if !all.contains(&sentence) {
            all.push(sentence);
        }
    }
    all
}

/// Formats the change with the greatest effect: `With rtt=20ms, the 245 commands take 4.93 s (4.40 to 5.60 s)
/// instead of 251 ms.`
fn headline(all: &Predictions) -> String {
    let Predictions { captured_ns, commands, predictions, .. } = all;
    let effect = |prediction: &&Prediction| {
        let (then, now) = (prediction.duration_ns.best.0.max(1) as f64, captured_ns.0.max(1) as f64);
        (then / now).ln().abs()
    };
    let Some(most) = predictions.iter().max_by(|a, b| effect(a).total_cmp(&effect(b))) else {
        return format!("{} took {}.", counted(*commands, "command", "commands"), span(*captured_ns));
    };
    let commands = match commands {
        1 => "the command takes".to_owned(),
        _ => format!("the {} take", counted(*commands, "command", "commands")),
    };
    format!("With {}, {commands} {} instead of {}.", most.change, with_range(most.duration_ns), span(*captured_ns))
}

/// A line of the table by users.
struct UsersLine {
    commands_per_s: String,
    response_time: String,
    bounds: Option<String>,
    busy: Option<String>,
}

fn add_users(all: &UsersPrediction, page: &mut TextPage) {
    page.paragraph(Paint::Heading, &clean(&users_headline(all)));
    let load = &all.load;
    let captured = UsersLine {
        commands_per_s: rate(load.commands_per_s),
        response_time: load.response_time_ns.to_string(),
        bounds: None,
        busy: None,
    };
    let line = |point: &UsersPoint| {
        let Bounded { low, best, high } = point.response_time_ns;
        let line = UsersLine {
            commands_per_s: rates(point.commands_per_s),
            response_time: best.map_or_else(|| "-".to_owned(), |best| best.to_string()),
            bounds: Some(from_to(&low.to_string(), &high.to_string())),
            busy: Some(percentages(point.server_busy)),
        };
        Row::new(format!("{} users", thousands(point.users.into())), line)
    };
    let now = Row::new(format!("{} users, as captured", captured_users(load)), captured);
    let rendered = Table::new()
        .column(
            ColumnHead::new("response_time", "Response", Unit::Duration, "mean response time of a command").at_least(8),
            |line: &UsersLine| line.response_time.clone(),
        )
        .column(ColumnHead::new("bounds", "Bounds", Unit::Duration, "bounds of it").at_least(8), |line| {
            line.bounds.clone()
        })
        .column(
            ColumnHead::new("rate", "Commands/s", Unit::PerSecond, "commands per second of all users").expendable(8),
            |line| line.commands_per_s.clone(),
        )
        .column(
            ColumnHead::new("busy", "Server busy", Unit::Percent, "use of the server's queueing part").expendable(6),
            |line| line.busy.clone(),
        )
        .section("Predicted by number of users", std::iter::once(now).chain(all.users.iter().map(line)))
        .render(page);
    rendered.note(page, "");
    add_assumptions(all.users_assumptions.iter().map(String::as_str), page);
}

/// Formats the prediction for most users: `With 200 users, a command takes 4.10 ms (2.20 to 9.00 ms) instead of 1.90 ms
/// with the 8 captured; response time doubles at about 310 users (190 to 800).`
fn users_headline(all: &UsersPrediction) -> String {
    let UsersPrediction { users, load, doubled_at, .. } = all;
    let Some(most) = users.last() else { return String::new() };
    let Bounded { low, best, high } = most.response_time_ns;
    let takes = match best {
        Some(best) => with_range(PredictedDuration { low, best, high }),
        None => from_to(&span(low), &span(high)),
    };
    format!(
        "With {}, a command takes {takes} instead of {} with the {} captured; {}.",
        counted(most.users.into(), "user", "users"),
        load.response_time_ns,
        captured_users(load),
        doubling(*doubled_at)
    )
}

fn captured_users(load: &CapturedLoad) -> String {
    let users = rate(load.users);
    users.strip_suffix(".0").map(str::to_owned).unwrap_or(users)
}

/// Formats the likely rate, or else its bounds.
fn rates(Bounded { low, best, high }: Bounded<f64>) -> String {
    best.map_or_else(|| from_to(&rate(low), &rate(high)), rate)
}

fn doubling(DoublingPoint { low, best, high }: DoublingPoint) -> String {
    let number = |users: u32| thousands(users.into());
    match (low, best, high) {
        (None, ..) => "response time does not double with ten times as many".to_owned(),
        (Some(low), Some(best), Some(high)) => {
            format!("response time doubles at about {} users ({} to {})", number(best), number(low), number(high))
        }
        (Some(low), Some(best), None) => {
            format!("response time doubles at about {} users ({} or more)", number(best), number(low))
        }
        (Some(low), None, Some(high)) => format!("response time doubles at {} to {} users", number(low), number(high)),
        (Some(low), None, None) => format!("response time doubles at {} users or later", number(low)),
    }
}

/// Formats the use of the server: `45% (30 to 60%)`.
fn percentages(Bounded { low, best, high }: Bounded<f64>) -> String {
    let [low, high] = [low, high].map(|share| format!("{:.0}%", 100.0 * share));
    let bounds = if low == high { low.clone() } else { format!("{} to {high}", low.trim_end_matches('%')) };
    match best.map(|best| format!("{:.0}%", 100.0 * best)) {
        Some(best) if bounds != best => format!("{best} ({bounds})"),
        _ => bounds,
    }
}

fn factor(then: i64, now: i64) -> String {
    ratio(then as f64 / now.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_model::Nanos;

    fn shown(low: i64, best: i64, high: i64) -> String {
        let [low, best, high] = [low, best, high].map(|ms| Nanos(ms * 1_000_000));
        with_range(PredictedDuration { low, best, high })
    }

    #[test]
    fn a_range_repeats_no_unit() {
        assert_eq!(shown(2_120, 2_410, 2_730), "2.41 s (2.12 to 2.73 s)");
        assert_eq!(shown(912, 1_010, 1_200), "1.01 s (912 ms to 1.20 s)");
        assert_eq!(shown(118_000, 125_000, 131_000), "2 min 05 s (118 s to 2 min 11 s)");
    }
}
