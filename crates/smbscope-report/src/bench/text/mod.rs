//! Terminal report of a ramp: warnings and headline, throughput and response time over users (figures 2 and 3 of Swartz
//! 1997), then details of a load point. The report of launches has a table of launches instead.

pub(super) mod breakdown;
mod overview;
mod point;
mod ramp;

use crate::bench::{BenchDocument, Caches, JobEntry, Launch};
use crate::format::{clean, span, thousands};
use crate::page::{Paint, TextPage};
use crate::tables::{BYTES_READ, BYTES_WRITTEN, ColumnHead, Row, Table, Unit, Value, percent_of};
use smbscope_diagnose::next::quoted;
use smbscope_stats::DurationStatistics;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RampDetailLevel {
    /// One screen: the load curve, and groups and at most ten commands of one load point.
    Brief,
    /// The full report with details of one load point: at the capacity if known, otherwise the last.
    #[default]
    One,
    /// The full report with details of every load point.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RampTextOptions {
    /// Width of the terminal in columns, clamped to 60–160. Lines may be longer below 80.
    pub width: usize,
    pub color: bool,
    pub detail: RampDetailLevel,
}

impl Default for RampTextOptions {
    fn default() -> RampTextOptions {
        RampTextOptions { width: 100, color: false, detail: RampDetailLevel::One }
    }
}

pub fn render(document: &BenchDocument, options: &RampTextOptions) -> String {
    render_on(TextPage::new(options.width, options.color), document, options.detail)
}

/// Formats the report in Markdown, for a ticket or a pull request.
pub fn markdown(document: &BenchDocument, detail: RampDetailLevel) -> String {
    render_on(TextPage::markdown(), document, detail)
}

fn render_on(mut page: TextPage, document: &BenchDocument, detail: RampDetailLevel) -> String {
    if let Some(launch) = &document.launch {
        render_launch(&mut page, document, launch, detail);
        return page.into_text();
    }
    overview::render(&mut page, document, detail == RampDetailLevel::Brief);
    let points = match detail {
        RampDetailLevel::Brief => {
            ramp::brief(&mut page, document);
            ramp::jobs(&mut page, document);
            document.shown().into_iter().for_each(|run| point::brief(&mut page, document, run));
            return page.into_text();
        }
        RampDetailLevel::One => document.shown().into_iter().collect(),
        RampDetailLevel::All => document.runs.iter().collect::<Vec<_>>(),
    };
    ramp::render(&mut page, document);
    ramp::jobs(&mut page, document);
    breakdown::server(&mut page, document);
    ramp::tried_loads(&mut page, document);
    breakdown::wire_by_load_point(&mut page, document);
    points.into_iter().for_each(|run| point::render(&mut page, document, run));
    page.into_text()
}

const LISTED: usize = 10;

/// Returns the statistics, or None if there are no values.
fn timed(times: &DurationStatistics) -> Option<&DurationStatistics> {
    (times.count > 0).then_some(times)
}

fn render_launch(page: &mut TextPage, document: &BenchDocument, launch: &Launch, detail: RampDetailLevel) {
    let is_brief = detail == RampDetailLevel::Brief;
    page.title(&clean(&document.heading()), is_brief);
    page.paragraph(Paint::Heading, &clean(&document.answer.headline));
    document.warnings.iter().for_each(|warning| page.beside(Paint::Warning, "- ", &clean(warning)));
    page.what_next(&document.answer.next);
    page.blank();
    facts(page, document, launch);
    launches(page, document, if is_brief { LISTED } else { usize::MAX });
    let Some(run) = document.runs.first().filter(|run| run.operations > 0) else { return };
    match is_brief {
        true => point::brief(page, document, run),
        false => point::render(page, document, run),
    }
}

fn facts(page: &mut TextPage, document: &BenchDocument, launch: &Launch) {
    let mut fact = |label: &str, text: &str| page.fact(Paint::Plain, label, &clean(text));
    fact("Command", &launch.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
    fact("Until", &launch.until);
    let mounted = launch.mounted_by.as_ref().map_or_else(String::new, |program| format!(", mounted by {program}"));
    fact("Files on", &format!("{}{mounted}", overview::where_to(&document.target)));
    if !document.target.is_local() {
        fact("Protocol", &overview::protocol(&document.target));
    }
    fact(
        "Caches",
        match launch.caches {
            Caches::Warm => "warm: as the previous launches left them",
            Caches::Cold => "cold: file caches of this machine emptied before each launch, and the share remounted",
        },
    );
}

fn launches(page: &mut TextPage, document: &BenchDocument, listed: usize) {
    let Some(jobs) = document.runs.first().and_then(|run| run.jobs.as_ref()) else { return };
    if jobs.list.is_empty() {
        return;
    }
    let is_local = document.target.is_local();
    let seen = move |job: &JobEntry| job.waited_ns.filter(|_| !is_local);
    let known = move |job: &JobEntry, value: Value| value.shown_if(seen(job).is_some());
    let lines = jobs.list.iter().take(listed).enumerate().map(|(at, job)| Row::new((at + 1).to_string(), job));
    let rendered = Table::new()
        .column(
            ColumnHead::new("elapsed_ns", "Took", Unit::Duration, "")
                .explained("from the start of the program until it was ready"),
            |job: &&JobEntry| span(job.elapsed_ns),
        )
        .column(
            ColumnHead::new("waited_ns", "Wait", Unit::Duration, "")
                .explained("the part of it with a command outstanding at the server"),
            move |job| seen(job).map(Value::from),
        )
        .column(ColumnHead::new("waited_share", "Wait share", Unit::Percent, "Wait in percent of Took"), move |job| {
            let elapsed = job.elapsed_ns.0.unsigned_abs();
            seen(job).map(|waited| percent_of(waited.0.unsigned_abs(), elapsed))
        })
        .column(ColumnHead::new("opens", "Opens", Unit::Count, "files opened").expendable(1), move |job| {
            known(job, Value::Count(job.files))
        })
        .column(BYTES_READ.expendable(1), move |job| known(job, Value::Bytes(job.bytes_read)))
        .column(BYTES_WRITTEN.expendable(2), move |job| known(job, Value::Bytes(job.bytes_written)))
        .section("Launches", lines)
        .render(page);
    let text = match jobs.list.len().saturating_sub(listed) {
        0 => String::new(),
        more => format!("{} more with --full.", thousands(more as u64)),
    };
    rendered.note(page, &text);
}
