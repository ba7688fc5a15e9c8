//! Tables by load point: throughput and response time over users or rates, by group; jobs; and capacity searches.

use super::timed;
use crate::bench::{BenchDocument, BenchRun, JobStatistics, MeasuredGroup, load_name};
use crate::format::{clean, counted};
use crate::page::{Paint, TextPage, bar};
use crate::tables::{COUNT, ColumnHead, ERRORS, Row, Table, Unit, Value, nonzero, per_second, percent_of};
use smbscope_stats::DurationStatistics;

const BAR: (usize, usize) = (24, 10);

pub(super) fn render(page: &mut TextPage, document: &BenchDocument) {
    if document.runs.is_empty() {
        return;
    }
    let mut runs: Vec<&BenchRun> = document.runs.iter().collect();
    if document.capacity.is_some() {
        runs.sort_by(|a, b| a.load(document.is_ramp_of_rates()).total_cmp(&b.load(document.is_ramp_of_rates())));
    }
    let runs = &runs[..];
    let rendered = throughput(document, runs).render(page).and(response_time(document, runs).render(page));
    let mut text =
        "Times are response times inside the client, of all groups without expected waits. Bars: commands/s, \
                    and the average."
            .to_owned();
    if is_open(runs) {
        text += " Operations count from when they were due: the wait of a user on schedule.";
    }
    rendered.note(page, &text);
    let rendered = groups(document, runs).render(page);
    if runs.iter().any(|run| !run.groups.is_empty()) {
        rendered.note(page, "Bars: the average. Other is Attributes, Directory and Locking.");
    }
}

pub(super) fn brief(page: &mut TextPage, document: &BenchDocument) {
    let mut runs: Vec<&BenchRun> = document.runs.iter().collect();
    runs.sort_by(|a, b| a.load(document.is_ramp_of_rates()).total_cmp(&b.load(document.is_ramp_of_rates())));
    let most = most(runs.iter().map(|run| run.operations_per_second));
    let table = Table::new()
        .column(RATE, |run: &&BenchRun| per_second(run.operations_per_second))
        .column(bars(BAR.1), |run| bar(run.operations_per_second, most, BAR.1))
        .times(&STATISTICS, |run| timed(run.headline()))
        .column(MB_READ.expendable(4), |run| megabytes(run.read_per_second()))
        .column(MB_WRITTEN.expendable(4), |run| megabytes(run.written_per_second()))
        .column(
            ColumnHead::new("unexpected", "Errors", Unit::Count, "operations that ended otherwise than expected"),
            |run| nonzero(run.unexpected_count()),
        );
    with_overload(table, &runs).section("Load curve", by_load(document, &runs)).render(page);
}

fn by_load<'a>(document: &'a BenchDocument, runs: &'a [&'a BenchRun]) -> impl Iterator<Item = Row<&'a BenchRun>> {
    runs.iter().map(|run| Row::new(document.load_name(run), *run))
}

fn is_open(runs: &[&BenchRun]) -> bool {
    runs.iter().any(|run| run.due.is_some())
}

fn with_overload<'a>(table: Table<'a, &'a BenchRun>, runs: &[&BenchRun]) -> Table<'a, &'a BenchRun> {
    if runs.iter().all(|run| run.overload.is_none()) {
        return table;
    }
    let about = "scenarios that began late, took too long or did not begin";
    table.column(ColumnHead::new("overload", "Overload", Unit::Percent, about), |run| {
        run.overload.map(|overload| percent_of(overload.count(), overload.scenarios))
    })
}

/// Tabulates throughput by load (Swartz 1997, figure 2).
fn throughput<'a>(document: &'a BenchDocument, runs: &'a [&'a BenchRun]) -> Table<'a, &'a BenchRun> {
    let most = most(runs.iter().map(|run| run.operations_per_second));
    let table = Table::new()
        .column(
            ColumnHead::new("commands", "Commands", Unit::Count, "").explained("answered by the server").expendable(2),
            |run: &&BenchRun| run.operations,
        )
        .column(RATE, |run| per_second(run.operations_per_second))
        .column(MB_READ, |run| megabytes(run.read_per_second()))
        .column(MB_WRITTEN, |run| megabytes(run.written_per_second()))
        .column(ERRORS, |run| nonzero(run.error_count()))
        .column(
            ColumnHead::new("client_cpu", "Client CPU", Unit::Percent, "")
                .explained("percent of one processor; ! marks a client that was the limit")
                .expendable(1),
            |run| {
                let limited = |limited| if limited { "!" } else { "" };
                run.client_cpu
                    .map(|cpu| Value::Number(cpu.percent, format!("{}{:.0}%", limited(cpu.limited), cpu.percent)))
            },
        );
    let table = with_overload(table, runs);
    let table = table.column(bars(BAR.0), move |run| bar(run.operations_per_second, most, BAR.0));
    table.section("Throughput", by_load(document, runs))
}

/// Tabulates response time by load (Swartz 1997, figure 3).
fn response_time<'a>(document: &BenchDocument, runs: &[&'a BenchRun]) -> Table<'a, (&'a DurationStatistics, f64)> {
    let table = Table::new()
        .times(&STATISTICS, |(times, _): &(&DurationStatistics, f64)| timed(times))
        .column(bars(BAR.0), |(times, most)| bar(seconds(times), *most, BAR.0));
    let section = |table: Table<'a, _>, heading: &str, of: fn(&BenchRun) -> &DurationStatistics| {
        let most = most(runs.iter().map(|run| seconds(of(run))));
        table.section(heading, runs.iter().map(|run| Row::new(document.load_name(run), (of(run), most))))
    };
    match is_open(runs) {
        true => {
            section(section(table, "Operations, since due", BenchRun::headline), "Commands", |run| &run.total.client)
        }
        false => section(table, "Response time", |run| &run.total.client),
    }
}

/// A group at a load point: figures, commands per second, and the longest mean at any load point.
type GroupAtLoad<'a> = (&'a MeasuredGroup, Option<f64>, f64);

fn groups<'a>(document: &BenchDocument, runs: &'a [&'a BenchRun]) -> Table<'a, GroupAtLoad<'a>> {
    let found = |name: &str| runs.iter().find_map(|run| run.group(name));
    let names: Vec<(&str, Option<&str>)> = crate::names::groups()
        .filter_map(|(name, ..)| found(name))
        .map(|group| (group.group.as_str(), group.part_of.as_deref()))
        .collect();
    // The only part of a group has the same figures as the group, so it gets no section.
    let alone = |whole: &str| names.iter().filter(|(_, part_of)| *part_of == Some(whole)).count() == 1;
    let shown = names.iter().filter(|(_, part_of)| part_of.is_none_or(|whole| !alone(whole)));
    let table = Table::new()
        .column(
            ColumnHead::new("commands", "Commands", Unit::Count, "commands of the group").expendable(4),
            |(group, ..): &GroupAtLoad<'a>| group.operations,
        )
        .column(RATE, |(_, rate, _)| rate.map(per_second))
        .times(&STATISTICS, |(group, ..)| timed(&group.times.client))
        .column(bars(BAR.1), |(group, _, most)| bar(seconds(&group.times.client), *most, BAR.1));
    shown.fold(table, |table, (name, part_of)| {
        let all = || runs.iter().filter_map(|run| Some((run, run.group(name)?)));
        let most = most(all().map(|(_, group)| seconds(&group.times.client)));
        let lines = all().map(|(run, group)| {
            let per_second = run.seconds().map(|seconds| group.operations as f64 / seconds);
            Row::new(document.load_name(run), (group, per_second, most))
        });
        let heading = part_of.map_or_else(|| (*name).to_owned(), |whole| format!("{whole}: {name}"));
        table.section(heading, lines)
    })
}

const RATE: ColumnHead = ColumnHead::new("commands_per_second", "/s", Unit::PerSecond, "commands per second");
const MB_READ: ColumnHead = ColumnHead::new("read_per_second", "MB/s read", Unit::BytesPerSecond, "file data read");
const MB_WRITTEN: ColumnHead =
    ColumnHead::new("written_per_second", "MB/s written", Unit::BytesPerSecond, "file data written");

fn bars(width: usize) -> ColumnHead {
    ColumnHead::chart("bar").at_least(width)
}

const STATISTICS: [(&str, u8); 7] =
    [("Median", 0), ("Average", 0), ("p90", 3), ("p95", 0), ("p99", 0), ("p99.9", 2), ("Slowest", 1)];

fn seconds(times: &DurationStatistics) -> f64 {
    times.mean.map_or(0.0, |mean| mean.as_secs_f64())
}

fn most(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

fn megabytes(per_second: Option<f64>) -> Option<Value> {
    per_second.map(|rate| Value::Number(rate, format!("{:.2}", rate / 1e6)))
}

pub(super) fn jobs(page: &mut TextPage, document: &BenchDocument) {
    let found = |run: &BenchRun| run.jobs.clone().filter(|jobs| jobs.elapsed.count > 0);
    let mut runs: Vec<(&BenchRun, JobStatistics)> =
        document.runs.iter().filter_map(|run| Some((run, found(run)?))).collect();
    if runs.is_empty() {
        return;
    }
    runs.sort_by(|(a, _), (b, _)| a.load(document.is_ramp_of_rates()).total_cmp(&b.load(document.is_ramp_of_rates())));
    let unfinished: u64 = runs.iter().map(|(_, jobs)| jobs.unfinished).sum();
    let lines = runs.iter().map(|(run, jobs)| Row::new(document.load_name(run), jobs));
    let rate = |key, title| ColumnHead::new(key, title, Unit::PerSecond, "").explained("rate of one job");
    let rendered = Table::new()
        .column(COUNT.explained("jobs that finished"), |jobs: &&JobStatistics| jobs.elapsed.count)
        .times(&[("Average", 0), ("StdDev", 0), ("Fastest", 1), ("Slowest", 0)], |jobs| Some(&jobs.elapsed))
        .column(rate("files_per_second", "Files/s").expendable(3), |jobs| {
            jobs.files_per_second().filter(|_| jobs.files > 0).map(per_second)
        })
        .column(rate("bytes_per_second", "MB/s").expendable(2), |jobs| megabytes(jobs.bytes_per_second()))
        .column(
            ColumnHead::new("waited_share", "Wait share", Unit::Percent, "")
                .explained("part of its time in which a command was outstanding"),
            |jobs| jobs.waited_share().map(|share| Value::Number(100.0 * share, format!("{:.1}%", 100.0 * share))),
        )
        .section("Jobs", lines)
        .render(page);
    let mut text = "A job is a whole pass of the workload, from its first request to its last response.".to_owned();
    if unfinished > 0 {
        text += &format!(" {} not finished, and not counted.", counted(unfinished, "job was", "jobs were"));
    }
    rendered.note(page, &text);
}

pub(super) fn tried_loads(page: &mut TextPage, document: &BenchDocument) {
    let Some(capacity) = document.capacity.as_ref().filter(|capacity| !capacity.tried.is_empty()) else { return };
    page.heading("Loads that were tried");
    let names: Vec<String> =
        capacity.tried.iter().map(|tried| load_name(tried.users, tried.rate.map(f64::from))).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    for (tried, name) in capacity.tried.iter().zip(&names) {
        let holds = if tried.holds { "holds" } else { "fails" };
        let found = tried.found.as_ref().map_or_else(String::new, |found| clean(found));
        let begin = format!("{name:<width$}  {holds}  ");
        page.beside(Paint::Plain, &begin, &found);
    }
}
