//! Document and text of `smbscope predict`, `smbscope.prediction/1`.

use crate::Report;
use crate::document::{Generator, write_indented_above};
use crate::format::{clean, counted, ratio, span, unbroken};
use crate::page::{Paint, TextPage};
use crate::tables::{ColumnHead, Row, Table, Unit};
use serde::Serialize;
use smbscope_diagnose::whatif::{self, PredictedDuration, Prediction, PredictionError, Predictions, Scenario};
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
    #[serde(flatten)]
    predictions: Predictions,
}

impl PredictionDocument {
    /// Predicts the duration of the commands that a report kept. `episode` is its number if the report covers only one.
    pub fn new(
        report: &Report,
        episode: Option<u32>,
        changes: &[Scenario],
    ) -> Result<PredictionDocument, PredictionError> {
        let paths = whatif::paths(&report.connections);
        Ok(PredictionDocument {
            schema: SCHEMA,
            generator: Generator::new(&report.version),
            captures: report.captures.iter().map(|capture| capture.name.clone()).collect(),
            episode,
            predictions: whatif::predict(&report.explanation.waterfall, &paths, changes)?,
        })
    }

    pub fn write(&self, out: impl Write) -> io::Result<()> {
        /// Indentation depth with one entry per line.
        const LEVELS: usize = 4;
        write_indented_above(LEVELS, self, out)
    }

    pub fn render(&self, width: usize, color: bool) -> String {
        self.render_on(TextPage::new(width, color))
    }

    /// Formats the predictions in Markdown, for a ticket or a pull request.
    pub fn markdown(&self) -> String {
        self.render_on(TextPage::markdown())
    }

    fn render_on(&self, mut page: TextPage) -> String {
        let Predictions { captured_ns, round_trip_ns, commands, predictions } = &self.predictions;
        page.paragraph(Paint::Heading, &clean(&self.headline()));
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
            .render(&mut page);
        let trip = round_trip_ns.map_or_else(String::new, |trip| format!("The round trip is {} now.", unbroken(trip)));
        rendered.note(&mut page, &trip);
        page.blank();
        page.paragraph(Paint::Plain, "Taken for granted:");
        self.assumptions().into_iter().for_each(|sentence| page.beside(Paint::Plain, "- ", sentence));
        page.into_text()
    }

    /// Returns the assumptions of all predictions, each once.
    fn assumptions(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        for sentence in self.predictions.predictions.iter().flat_map(|prediction| &prediction.assumptions) {
            if !all.contains(sentence) {
                all.push(*sentence);
            }
        }
        all
    }

    /// Formats the change with the greatest effect: `With rtt=20ms, the 245 commands take 4.93 s (4.40 to 5.60 s)
    /// instead of 251 ms.`
    fn headline(&self) -> String {
        let Predictions { captured_ns, commands, predictions, .. } = &self.predictions;
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
}

fn factor(then: i64, now: i64) -> String {
    ratio(then as f64 / now.max(1) as f64)
}

/// Formats a duration with its range: `2.41 s (2.12 to 2.73 s)`.
fn with_range(PredictedDuration { low, best, high }: PredictedDuration) -> String {
    let [low, best, high] = [low, best, high].map(span);
    let low = match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => number,
        _ => &low,
    };
    format!("{best} ({low} to {high})")
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
