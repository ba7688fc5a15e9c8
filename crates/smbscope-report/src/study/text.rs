//! Terminal report of a study.

use super::{StudyDocument, StudyRow};
use crate::bench::load_name;
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
    page.title(&format!("Study {}", document.name), false);
    if !document.question.is_empty() {
        page.paragraph(Paint::Plain, &document.question);
    }
    let answer = &document.answer;
    if !answer.headline.is_empty() {
        page.paragraph(Paint::Heading, &clean(&answer.headline));
    }
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
    page.into_text()
}

fn facts(page: &mut TextPage, document: &StudyDocument) {
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
    page.fact(Paint::Plain, "Runs", &text);
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
        lines.push(Row::part(document.name_of(row.variant), row));
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

fn value(value: f64, unit: &str) -> String {
    match unit {
        "s" => Nanos((value * 1e9).round() as i64).to_string(),
        "B/s" => format!("{}/s", bytes(value.round() as u64)),
        "percent" => format!("{value:.0}%"),
        "1/s" => format!("{}/s", rate(value)),
        _ => rate(value),
    }
}
