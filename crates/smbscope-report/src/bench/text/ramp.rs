//! Tables by load point: throughput and response time over users or rates, by group; jobs; and capacity searches.

use super::timed;
use crate::bench::{BenchDocument, BenchRun, JobStatistics, MeasuredGroup, load_name};
use crate::format::{clean, counted, percent, rate};
use crate::page::{Paint, TextPage, bar};
use crate::tables::text::TextColumn;
use crate::tables::{Row, Table, nonzero, whole_percent};
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
    let mut left_out = throughput(document, runs).render(page);
    left_out.extend(response_time(document, runs).render(page));
    let mut text = "Commands are those that the server answered; times are response times inside the client, of all \
                    groups without expected waits. Bars: commands/s, and the average."
        .to_owned();
    if is_open(runs) {
        text += " Operations count from when they were due: the wait of a user on schedule.";
    }
    if runs.iter().any(|run| run.client_cpu.is_some_and(|cpu| cpu.limited)) {
        text += " CPU with ! is a client that was the limit.";
    }
    page.note(&text, &left_out);
    let left_out = groups(document, runs).render(page);
    if runs.iter().any(|run| !run.groups.is_empty()) {
        page.note("Bars: the average. Other is Attributes, Directory and Locking.", &left_out);
    }
}

pub(super) fn brief(page: &mut TextPage, document: &BenchDocument) {
    let mut runs: Vec<&BenchRun> = document.runs.iter().collect();
    runs.sort_by(|a, b| a.load(document.is_ramp_of_rates()).total_cmp(&b.load(document.is_ramp_of_rates())));
    let most = most(runs.iter().map(|run| run.operations_per_second));
    let table = Table::new()
        .column("/s", |run: &&BenchRun| rate(run.operations_per_second))
        .column(bars(BAR.1), |run| bar(run.operations_per_second, most, BAR.1))
        .times(&STATISTICS, |run| timed(run.headline()))
        .column(("MB/s read", 4), |run| megabytes(run.read_per_second()))
        .column(("written", 4), |run| megabytes(run.written_per_second()))
        .column("Errors", |run| nonzero(run.unexpected_count()));
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
    table.column("Overload", |run| {
        run.overload.map(|overload| format!("{}%", percent(overload.count(), overload.scenarios)))
    })
}

/// Tabulates throughput by load (Swartz 1997, figure 2).
fn throughput<'a>(document: &'a BenchDocument, runs: &'a [&'a BenchRun]) -> Table<'a, &'a BenchRun> {
    let most = most(runs.iter().map(|run| run.operations_per_second));
    let table = Table::new()
        .column(("Commands", 2), |run: &&BenchRun| run.operations)
        .column("/s", |run| rate(run.operations_per_second))
        .column("MB/s read", |run| megabytes(run.read_per_second()))
        .column("written", |run| megabytes(run.written_per_second()))
        .column("Errors", |run| nonzero(run.error_count()))
        .column(("Client CPU", 1), |run| {
            run.client_cpu.map(|cpu| (if cpu.limited { "!" } else { "" }).to_owned() + &whole_percent(cpu.percent))
        });
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
        .column(("Commands", 4), |(group, ..): &GroupAtLoad<'a>| group.operations)
        .column("/s", |(_, per_second, _)| per_second.map(rate))
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

fn bars(width: usize) -> TextColumn {
    TextColumn::new("").at_least(width).left_aligned()
}

const STATISTICS: [(&str, u8); 7] =
    [("Median", 0), ("Average", 0), ("p90", 3), ("p95", 0), ("p99", 0), ("p99.9", 2), ("Slowest", 1)];

fn seconds(times: &DurationStatistics) -> f64 {
    times.mean.map_or(0.0, |mean| mean.as_secs_f64())
}

fn most(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

fn megabytes(per_second: Option<f64>) -> Option<String> {
    per_second.map(|rate| format!("{:.2}", rate / 1e6))
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
    let left_out = Table::new()
        .column("Count", |jobs: &&JobStatistics| jobs.elapsed.count)
        .times(&[("Average", 0), ("StdDev", 0), ("Fastest", 1), ("Slowest", 0)], |jobs| Some(&jobs.elapsed))
        .column(("Files/s", 3), |jobs| jobs.files_per_second().filter(|_| jobs.files > 0).map(rate))
        .column(("MB/s", 2), |jobs| megabytes(jobs.bytes_per_second()))
        .column("Wait share", |jobs| jobs.waited_share().map(|share| format!("{:.1}%", 100.0 * share)))
        .section("Jobs", lines)
        .render(page);
    let mut text =
        "A job is a whole pass of the workload, from its first request to its last response; rates are of one \
                    job. Wait share: the part of its time in which a command was outstanding."
            .to_owned();
    if unfinished > 0 {
        text += &format!(" {} not finished, and not counted.", counted(unfinished, "job was", "jobs were"));
    }
    page.note(&text, &left_out);
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
