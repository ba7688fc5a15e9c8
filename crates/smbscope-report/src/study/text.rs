//! Text of a study for a terminal, and in Markdown.

use super::{ServerRow, StudyDocument, StudyRow};
use crate::bench::{MeanAndMaximum, load_name, server_table};
use crate::format::{bytes, clean, counted, rate, ratio};
use crate::page::{Paint, TextPage};
use crate::tables::{ColumnHead, Row, Table, Unit, Value};
use smbscope_model::Nanos;
use smbscope_stats::replication::BaselineRatio;

pub fn render(document: &StudyDocument, width: usize, color: bool) -> String {
    render_on(TextPage::new(width, color), document)
}

/// Formats the study in Markdown, for a ticket or a pull request.
pub fn markdown(document: &StudyDocument) -> String {
    render_on(TextPage::markdown(), document)
}

fn render_on(mut page: TextPage, document: &StudyDocument) -> String {
    let answer = &document.answer;
    let headline = if answer.headline.is_empty() { "No result yet." } else { &answer.headline };
    page.paragraph(Paint::Heading, &clean(headline));
    answer.ruled_out.iter().for_each(|sentence| page.paragraph(Paint::Heading, &clean(sentence)));
    answer.evidence.iter().for_each(|sentence| page.beside(Paint::Plain, "- ", &clean(sentence)));
    answer.caveats.iter().for_each(|caveat| page.paragraph(Paint::Warning, &clean(caveat)));
    page.what_next(&answer.next);
    page.blank();
    facts(&mut page, document);
    let rendered = results(document).render(&mut page);
    if !document.results.is_empty() {
        let mut baselines: Vec<&str> =
            document.variants.iter().map(|variant| document.name_of(variant.baseline)).collect();
        baselines.sort_unstable();
        baselines.dedup();
        let baseline = match baselines.as_slice() {
            [one] => format!("the baseline ({one})"),
            _ => "the baseline above it".to_owned(),
        };
        let within = match document.studies.is_empty() {
            true => " within the same repetitions",
            false => ", of all repetitions of the two studies",
        };
        let text = format!(
            "× = ratio to {baseline}{within}, with its 95% interval; in brackets the least and the greatest ratio of too \
             few repetitions for an interval. Answers are adjusted for the number of rows."
        );
        rendered.note(&mut page, &text);
    }
    server(&mut page, document);
    settings(&mut page, document);
    page.into_text()
}

/// Axis of the servers.
const SERVER_AXIS: &str = "server";

/// Names the conditions that differ between servers, as the settings in table 2 of Swartz. Elsewhere the variants name what
/// differs.
fn settings(page: &mut TextPage, document: &StudyDocument) {
    if document.studies.is_empty()
        && document.variants.iter().all(|variant| !variant.settings.contains_key(SERVER_AXIS))
    {
        return;
    }
    let differing = document.variants.iter().filter(|variant| !variant.environment.is_empty());
    let lines: Vec<(&str, String)> = differing
        .map(|variant| {
            let facts = variant.environment.iter().map(|(name, value)| format!("{name} {value}"));
            (variant.name.as_str(), facts.collect::<Vec<_>>().join(", "))
        })
        .collect();
    if lines.is_empty() {
        return;
    }
    page.heading("Conditions that differ");
    lines.iter().for_each(|(name, facts)| page.beside(Paint::Plain, "  ", &clean(&format!("{name}: {facts}"))));
}

/// Tabulates the server's metrics by load and variant, as means and maxima over the repetitions.
fn server(page: &mut TextPage, document: &StudyDocument) {
    let mut lines = Vec::new();
    let mut loads: Vec<(u32, Option<f64>)> = document.server.iter().map(|row| (row.users, row.rate)).collect();
    loads.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.unwrap_or(0.0).total_cmp(&b.1.unwrap_or(0.0))));
    loads.dedup();
    for (users, rate) in loads {
        lines.push(Row::across(Paint::Heading, load_name(users, rate)));
        for variant in 0..document.variants.len() {
            let metric = move |name: &str| {
                let is_it = |row: &&ServerRow| {
                    (row.metric.as_str(), row.variant, row.users, row.rate) == (name, variant, users, rate)
                };
                document.server.iter().find(is_it)?.mean_and_maximum()
            };
            if metric("cpu").is_some() {
                let name = document.name_with_place(variant);
                lines.push(Row::part(&name, Box::new(metric) as MeanAndMaximum<'_>));
            }
        }
    }
    if !lines.is_empty() {
        page.blank();
        let rendered = server_table().section("Server", lines).render(page);
        rendered.note(page, "Means of the repetitions; Max: the highest sample of all of them.");
    }
}

impl ServerRow {
    /// Returns the mean of the repetitions and the highest sample of all of them.
    pub(crate) fn mean_and_maximum(&self) -> Option<(f64, f64)> {
        let means: Vec<f64> = self.means.iter().flatten().copied().collect();
        let highest = self.maxima.iter().flatten().copied().reduce(f64::max)?;
        (!means.is_empty()).then(|| (means.iter().sum::<f64>() / means.len() as f64, highest))
    }
}

fn facts(page: &mut TextPage, document: &StudyDocument) {
    page.fact(Paint::Plain, "Study", &document.name);
    if !document.question.is_empty() {
        page.fact(Paint::Plain, "Question", &document.question);
    }
    let (variants, repetitions) = (document.variants.len() as u64, document.repetitions);
    let done = document.runs.iter().filter(|run| run.failed.is_none()).count() as u64;
    let planned = variants * u64::from(repetitions);
    let short = if document.definition.quick { ", short form (--quick)" } else { "" };
    let runs = match done == planned {
        true => counted(done, "run", "runs"),
        false => format!("{done} of {planned} runs"),
    };
    let variants = counted(variants, "variant", "variants");
    let text = match document.studies.is_empty() {
        true => format!(
            "{variants} × {}, {runs} in random order (seed {}){short}",
            counted(repetitions.into(), "repetition", "repetitions"),
            document.seed
        ),
        false => format!("{variants}, {}{short}", counted(done, "run", "runs")),
    };
    let repeated = document.runs.iter().filter(|run| run.attempts > 1).count() as u64;
    let repeated = if repeated > 0 { format!(", {repeated} of them repeated") } else { String::new() };
    page.fact(Paint::Plain, "Runs", &(text + &repeated));
    if !document.definition.left_out.is_empty() {
        page.fact(Paint::Plain, "Left out", &document.definition.left_out.join("; "));
    }
    page.fact(Paint::Plain, "File", &format!("{}, SHA-256 {}", document.definition.source, sha(document)));
    let client = |name: &str| document.environment.get(name).cloned();
    let cores = client("cores").map(|cores| format!("{cores} cores"));
    let governor = client("governor").map(|governor| format!("governor {governor}"));
    let facts =
        [client("processor"), cores, governor, client("memory"), client("system"), client("kernel"), client("server")];
    let environment: Vec<String> = facts.into_iter().flatten().collect();
    if !environment.is_empty() {
        page.fact(Paint::Plain, "Made on", &environment.join(", "));
    }
}

/// Returns the shortest prefix that distinguishes two files.
fn sha(document: &StudyDocument) -> &str {
    document.definition.sha256.get(..12).unwrap_or(&document.definition.sha256)
}

fn results(document: &StudyDocument) -> Table<'_, &StudyRow> {
    let mut lines = Vec::new();
    let mut block = None;
    for row in &document.results {
        let load = Some((&row.measure, row.users, row.rate));
        if block != load {
            lines.push(Row::across(Paint::Heading, format!("{}, {}", row.measure, load_name(row.users, row.rate))));
            block = load;
        }
        lines.push(Row::part(document.name_with_place(row.variant), row));
    }
    Table::new()
        .column(
            ColumnHead::new("mean", "Mean", Unit::Number, "").explained("mean of the repetitions"),
            |row: &&StudyRow| Value::Number(row.mean, value(row.mean, &row.unit)),
        )
        .column(
            ColumnHead::new("spread", "Spread", Unit::Percent, "")
                .explained("standard deviation of the repetitions in percent of Mean"),
            |row| {
                let spread = row.stddev.filter(|_| row.mean > 0.0);
                spread.map(|stddev| {
                    let percent = 100.0 * stddev / row.mean;
                    Value::Number(percent, format!("{percent:.1}%"))
                })
            },
        )
        .column(ColumnHead::new("ratio", "×", Unit::Ratio, "ratio to the baseline"), |row| {
            let factor = row.factor.as_ref().and_then(|factor| factor.ratio);
            factor.map(|factor| Value::Number(factor, ratio(factor)))
        })
        .column(
            ColumnHead::new("interval", "95% interval", Unit::Text, "interval of the ratio").right_aligned().set_off(),
            |row| row.factor.as_ref().and_then(interval),
        )
        .column(ColumnHead::new("answer", "Answer", Unit::Text, "verdict on the difference").set_off(), |row| {
            row.answer()
        })
        .section("", lines)
}

/// Formats the confidence interval of a ratio, or in brackets the range of three or four repetitions.
fn interval(factor: &BaselineRatio) -> Option<String> {
    let range = factor.range.map(|(low, high)| format!("[{} to {}]", ratio(low), ratio(high)));
    factor.interval.map(|(low, high)| format!("{} to {}", ratio(low), ratio(high))).or(range)
}

pub(super) fn value(value: f64, unit: &str) -> String {
    match unit {
        "s" => Nanos((value * 1e9).round() as i64).to_string(),
        "B/s" => format!("{}/s", bytes(value.round() as u64)),
        "percent" => format!("{value:.0}%"),
        "1/s" => format!("{}/s", rate(value)),
        _ => rate(value),
    }
}
