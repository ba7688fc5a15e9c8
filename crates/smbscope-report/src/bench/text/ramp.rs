//! Tables by load point: throughput and response time over users or rates, by group; jobs; and capacity searches.

use crate::bench::{BenchDocument, BenchRun, JobStatistics, load_name};
use crate::format::{clean, counted, or_dash, percent, rate, thousands};
use crate::text::page::{Paint, TextPage, bar};
use crate::text::table::{TextColumn, TextTable, TextTableLine};
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
    let has_overload = has_overload(&runs);
    let most = most(runs.iter().map(|run| run.operations_per_second));
    let lines = runs.iter().map(|run| {
        let unexpected = run.unexpected_count();
        let mut cells = vec![rate(run.operations_per_second), bar(run.operations_per_second, most, BAR.1)];
        cells.extend(times(run.headline()));
        cells.extend([
            megabytes(run.read_per_second()),
            megabytes(run.written_per_second()),
            if unexpected > 0 { thousands(unexpected) } else { String::new() },
        ]);
        cells.extend(has_overload.then(|| overload(run)));
        TextTableLine::new(document.load_name(run), cells)
    });
    let mut columns = vec![TextColumn::new("/s"), bars(BAR.1)];
    columns.extend(times_columns());
    columns.extend(TextColumn::list(&[("MB/s read", 4), ("written", 4), ("Errors", 0)]));
    columns.extend(has_overload.then(|| TextColumn::new("Overload")));
    TextTable::new(columns).section("Load curve", lines).render(page);
}

fn is_open(runs: &[&BenchRun]) -> bool {
    runs.iter().any(|run| run.due.is_some())
}

fn has_overload(runs: &[&BenchRun]) -> bool {
    runs.iter().any(|run| run.overload.is_some())
}

fn overload(run: &BenchRun) -> String {
    run.overload.map_or_else(String::new, |overload| format!("{}%", percent(overload.count(), overload.scenarios)))
}

/// Tabulates throughput by load (Swartz 1997, figure 2).
fn throughput(document: &BenchDocument, runs: &[&BenchRun]) -> TextTable {
    let has_overload = has_overload(runs);
    let most = most(runs.iter().map(|run| run.operations_per_second));
    let lines = runs.iter().map(|run| {
        let errors = run.error_count();
        let mut cells = vec![
            thousands(run.operations),
            rate(run.operations_per_second),
            megabytes(run.read_per_second()),
            megabytes(run.written_per_second()),
            if errors > 0 { thousands(errors) } else { String::new() },
            run.client_cpu.map_or_else(String::new, |cpu| {
                let limited = if cpu.limited { "!" } else { "" };
                format!("{limited}{:.0}%", cpu.percent)
            }),
        ];
        cells.extend(has_overload.then(|| overload(run)));
        cells.push(bar(run.operations_per_second, most, BAR.0));
        TextTableLine::new(document.load_name(run), cells)
    });
    let mut columns = TextColumn::list(&[
        ("Commands", 2),
        ("/s", 0),
        ("MB/s read", 0),
        ("written", 0),
        ("Errors", 0),
        ("Client CPU", 1),
    ]);
    columns.extend(has_overload.then(|| TextColumn::new("Overload")));
    columns.push(bars(BAR.0));
    TextTable::new(columns).section("Throughput", lines)
}

/// Tabulates response time by load (Swartz 1997, figure 3).
fn response_time(document: &BenchDocument, runs: &[&BenchRun]) -> TextTable {
    let section = |table: TextTable, heading: &str, of: fn(&BenchRun) -> &DurationStatistics| {
        let most = most(runs.iter().map(|run| seconds(of(run))));
        let lines = runs.iter().map(|run| {
            let mut cells = times(of(run));
            cells.push(bar(seconds(of(run)), most, BAR.0));
            TextTableLine::new(document.load_name(run), cells)
        });
        table.section(heading, lines)
    };
    let mut columns = times_columns();
    columns.push(bars(BAR.0));
    let table = TextTable::new(columns);
    match is_open(runs) {
        true => {
            section(section(table, "Operations, since due", BenchRun::headline), "Commands", |run| &run.total.client)
        }
        false => section(table, "Response time", |run| &run.total.client),
    }
}

fn groups(document: &BenchDocument, runs: &[&BenchRun]) -> TextTable {
    let found = |name: &str| runs.iter().find_map(|run| run.group(name));
    let names: Vec<(&str, Option<&str>)> = crate::names::groups()
        .filter_map(|(name, ..)| found(name))
        .map(|group| (group.group.as_str(), group.part_of.as_deref()))
        .collect();
    // The only part of a group has the same figures as the group, so it gets no section.
    let alone = |whole: &str| names.iter().filter(|(_, part_of)| *part_of == Some(whole)).count() == 1;
    let shown = names.iter().filter(|(_, part_of)| part_of.is_none_or(|whole| !alone(whole)));
    let mut columns = TextColumn::list(&[("Commands", 4), ("/s", 0)]);
    columns.extend(times_columns());
    columns.push(bars(BAR.1));
    shown.fold(TextTable::new(columns), |table, (name, part_of)| {
        let all: Vec<_> = runs.iter().map(|run| run.group(name).cloned()).collect();
        let most = most(all.iter().flatten().map(|group| seconds(&group.times.client)));
        let lines = runs.iter().zip(&all).filter_map(|(run, group)| {
            let group = group.as_ref()?;
            let per_second = run.seconds().map(|seconds| group.operations as f64 / seconds);
            let mut cells = vec![thousands(group.operations), per_second.map_or_else(String::new, rate)];
            cells.extend(times(&group.times.client));
            cells.push(bar(seconds(&group.times.client), most, BAR.1));
            Some(TextTableLine::new(document.load_name(run), cells))
        });
        let heading = part_of.map_or_else(|| (*name).to_owned(), |whole| format!("{whole}: {name}"));
        table.section(heading, lines)
    })
}

fn bars(width: usize) -> TextColumn {
    TextColumn::new("").at_least(width).left_aligned()
}

fn times_columns() -> Vec<TextColumn> {
    TextColumn::list(&[("Median", 0), ("Average", 0), ("p90", 3), ("p95", 0), ("p99", 0), ("p99.9", 2), ("Slowest", 1)])
}

fn times(times: &DurationStatistics) -> Vec<String> {
    if times.count == 0 {
        return vec![String::new(); 7];
    }
    [times.p50, times.mean, times.p90, times.p95, times.p99, times.p999, times.max].map(or_dash).into()
}

fn seconds(times: &DurationStatistics) -> f64 {
    times.mean.map_or(0.0, |mean| mean.as_secs_f64())
}

fn most(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, f64::max)
}

fn megabytes(per_second: Option<f64>) -> String {
    per_second.map_or_else(String::new, |rate| format!("{:.2}", rate / 1e6))
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
    let lines = runs.iter().map(|(run, jobs)| TextTableLine::new(document.load_name(run), job_cells(jobs)));
    let columns = TextColumn::list(&[
        ("Count", 0),
        ("Average", 0),
        ("StdDev", 0),
        ("Fastest", 1),
        ("Slowest", 0),
        ("Files/s", 3),
        ("MB/s", 2),
        ("Wait share", 0),
    ]);
    let left_out = TextTable::new(columns).section("Jobs", lines).render(page);
    let mut text =
        "A job is a whole pass of the workload, from its first request to its last response; rates are of one \
                    job. Wait share: the part of its time in which a command was outstanding."
            .to_owned();
    if unfinished > 0 {
        text += &format!(" {} not finished, and not counted.", counted(unfinished, "job was", "jobs were"));
    }
    page.note(&text, &left_out);
}

fn job_cells(jobs: &JobStatistics) -> Vec<String> {
    let elapsed = &jobs.elapsed;
    let figure = |value: Option<f64>, shown: fn(f64) -> String| value.map_or_else(String::new, shown);
    let nanos = |time: smbscope_model::Nanos| u64::try_from(time.0).unwrap_or(0);
    vec![
        thousands(elapsed.count),
        or_dash(elapsed.mean),
        or_dash(elapsed.stddev),
        or_dash(elapsed.min),
        or_dash(elapsed.max),
        figure(jobs.files_per_second().filter(|_| jobs.files > 0), rate),
        figure(jobs.bytes_per_second(), |bytes| format!("{:.2}", bytes / 1e6)),
        jobs.waited_sum_ns
            .map_or_else(String::new, |waited| format!("{}%", percent(nanos(waited), nanos(jobs.elapsed_sum_ns)))),
    ]
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
