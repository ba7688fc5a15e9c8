//! Further tables of a load point: mean time per phase, files by total wait, slowest commands, load hosts, time inside
//! Samba, and times in the client compared with a packet capture.

use crate::bench::{
    BenchDocument, BenchRun, ClientWireTimes, InsideSamba, LoadHostEntry, LoadPointBreakdown, RunCapture,
};
use crate::format::{bytes, clean, counted, or_dash, rate, shorten_path, span, thousands, unbroken};
use crate::json::entries::{EntityEntry, GroupEntry};
use crate::json::waits::SlowExchange;
use crate::text::page::{Paint, TextPage};
use crate::text::table::{TextColumn, TextTable, TextTableLine};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::{DurationStatistics, FileKey};
use std::ops::RangeInclusive;

const SHOWN: usize = 5;

const NAMES: RangeInclusive<usize> = 24..=48;

pub(super) fn breakdown(page: &mut TextPage, run: &BenchRun) {
    let Some(counted) = &run.counted else { return };
    parts(page, counted);
    files(page, counted);
    slowest(page, counted, run.started_ns);
}

/// Tabulates the mean time of each phase. The phases add up to the response time.
fn parts(page: &mut TextPage, counted: &LoadPointBreakdown) {
    let line = |group: &GroupEntry| {
        let row = &group.row;
        let mean = |times: &DurationStatistics| or_dash(times.mean);
        let phases = [&row.response_time, &row.request_transfer, &row.service_time, &row.response_transfer];
        let mut cells: Vec<String> = phases.map(mean).into();
        cells.extend([or_dash(row.service_time.p50), or_dash(row.service_time.p95), mean(&row.think_time)]);
        cells
    };
    let mut lines: Vec<TextTableLine> = Vec::new();
    for group in counted.groups.iter().filter(|group| group.headline && group.row.timed > 0) {
        lines.push(TextTableLine::new(group.group.clone(), line(group)));
        let parts = group.parts.iter().filter(|part| part.row.timed > 0);
        lines.extend(parts.map(|part| TextTableLine::part(part.group.clone(), line(part))));
    }
    if lines.is_empty() {
        return;
    }
    let columns = TextColumn::list(&[
        ("Average", 0),
        ("Sending", 0),
        ("Service", 0),
        ("Receiving", 0),
        ("Service: p50", 2),
        ("p95", 2),
        ("Client", 1),
    ]);
    let left_out = TextTable::new(columns).section("Where time went", lines).render(page);
    let text = "Average response time is Sending (handing the request to the system), Service (waiting for the first byte \
                of the response: network and server) and Receiving (the rest of the response). Client is the client's own \
                time before the request.";
    page.note(text, &left_out);
}

fn files(page: &mut TextPage, counted: &LoadPointBreakdown) {
    let line = |file: &EntityEntry<FileKey>| {
        let if_any = |n: u64, show: fn(u64) -> String| if n > 0 { show(n) } else { String::new() };
        let mut cells = vec![
            thousands(file.figures.count),
            if_any(file.figures.errors, thousands),
            if_any(file.figures.bytes_read, bytes),
            if_any(file.figures.bytes_written, bytes),
        ];
        let times = &file.figures.response_time;
        cells.extend([times.p50, times.mean, times.p95, times.max].map(or_dash));
        TextTableLine::new(clean(&file.name.path), cells)
    };
    let lines = counted.files.iter().filter(|file| !file.is_other).take(SHOWN).map(line).collect();
    let columns = [
        ("Count", 0),
        ("Errors", 2),
        ("Read", 4),
        ("Written", 4),
        ("Median", 0),
        ("Average", 1),
        ("p95", 0),
        ("Slowest", 0),
    ];
    of_paths(page, "Files by total wait", &columns, lines);
}

fn slowest(page: &mut TextPage, counted: &LoadPointBreakdown, started: Timestamp) {
    let line = |slow: &SlowExchange| {
        let after = slow.request_first_ns.map_or_else(String::new, |at| span(at - started));
        let failed = slow.status.as_deref().filter(|status| *status != "STATUS_SUCCESS");
        let mut cells = vec![clean(&slow.command), after];
        cells.extend([slow.response_time_ns, slow.service_time_ns].map(or_dash));
        cells.push(failed.map(clean).unwrap_or_default());
        TextTableLine::new(slow.path.as_deref().map(clean).unwrap_or_default(), cells)
    };
    let lines = counted.slowest.iter().take(SHOWN).map(line).collect();
    let columns = [("Command", 0), ("After", 0), ("Response", 0), ("Service", 1), ("Status", 2)];
    of_paths(page, "Slowest commands", &columns, lines);
}

/// Renders a table with a path per row. Paths are shortened from the left if they don't fit.
fn of_paths(page: &mut TextPage, heading: &str, columns: &[(&'static str, u8)], lines: Vec<TextTableLine>) {
    let table = TextTable::new(TextColumn::list(columns)).names(NAMES).section(heading, lines);
    table.with_shorter(page.width(), shorten_path).render(page);
}

pub(super) fn hosts(page: &mut TextPage, run: &BenchRun) {
    if run.hosts.is_empty() {
        return;
    }
    let columns = TextColumn::list(&[
        ("Sessions", 0),
        ("Commands", 0),
        ("Errors", 0),
        ("MB read", 3),
        ("MB written", 4),
        ("Median", 0),
        ("p95", 0),
        ("p99", 2),
        ("Client CPU", 1),
        ("Busiest", 5),
        ("Clock", 0),
        ("±", 0),
    ]);
    let lines = run.hosts.iter().map(|host| {
        let limited = host.client_cpu.is_some_and(|cpu| cpu.limited);
        let name = match (&host.lost, limited) {
            (Some(_), _) => format!("{} (lost)", clean(&host.host)),
            (None, true) => format!("{} (limited)", clean(&host.host)),
            (None, false) => clean(&host.host),
        };
        TextTableLine::new(name, host_cells(host))
    });
    let left_out = TextTable::new(columns).section("Load hosts", lines).render(page);
    let text = "Clock is the host's clock offset from the driver (positive: ahead) with its maximum error. Client CPU and its \
                busiest thread are in percent of one processor.";
    page.note(text, &left_out);
}

fn host_cells(host: &LoadHostEntry) -> Vec<String> {
    let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    let percent = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.0}%"));
    let times = &host.times;
    let sign = if host.clock_ahead_ns < 0 { "-" } else { "" };
    let clock = format!("{sign}{}", Nanos(host.clock_ahead_ns.abs()));
    vec![
        thousands(host.sessions.into()),
        thousands(host.operations),
        if host.errors > 0 { thousands(host.errors) } else { String::new() },
        megabytes(host.bytes_read),
        megabytes(host.bytes_written),
        or_dash(times.p50),
        or_dash(times.p95),
        or_dash(times.p99),
        percent(host.client_cpu.map(|cpu| cpu.percent)),
        percent(host.client_cpu.map(|cpu| cpu.busiest_percent)),
        clock,
        host.clock_bound_ns.to_string(),
    ]
}

pub(super) fn samba(page: &mut TextPage, run: &BenchRun) {
    let line = |of: InsideSamba| {
        let outside = of.response_time.map(|whole| Nanos((whole.0 - of.inside.0).max(0)));
        let cells = vec![rate(of.per_second), or_dash(of.response_time), unbroken(of.inside), or_dash(outside)];
        TextTableLine::new(of.operation, cells)
    };
    let lines: Vec<TextTableLine> = run.inside_samba().into_iter().map(line).collect();
    if lines.is_empty() {
        return;
    }
    let columns = TextColumn::list(&[("Per second", 1), ("Response time", 0), ("In Samba", 0), ("Outside", 0)]);
    let left_out = TextTable::new(columns).section("Inside Samba", lines).render(page);
    let text = "Means. In Samba: from the request to the response inside smbd, by its own profile, including waits for \
                storage. Outside: the rest of the client's response time, in the network, in socket queues and in the client.";
    page.note(text, &left_out);
}

pub(super) fn wire_by_load_point(page: &mut TextPage, document: &BenchDocument) {
    let seen: Vec<&BenchRun> = document.runs.iter().filter(|run| run.has_wire()).collect();
    if seen.is_empty() {
        return;
    }
    let lines = seen.iter().map(|run| {
        let counts = match &run.capture {
            Some(RunCapture::Made(made)) => [made.client_commands, made.wire_commands],
            _ => [run.total.client.count, run.total.wire.map_or(0, |wire| wire.count)],
        };
        let mut cells = counts.map(thousands).to_vec();
        cells.extend(wire_figures(&run.total));
        TextTableLine::new(counted(run.users.into(), "user", "users"), cells)
    });
    TextTable::new(wire_columns()).section("Client and wire", lines).render(page);
    let matched = seen.iter().any(|run| run.total.difference.is_some());
    let mut text = "Added is what the client's own system adds, client less wire: ".to_owned();
    text += if matched { "percentiles over commands seen from both places." } else { "the difference of percentiles." };
    text += &captures_quality(&seen);
    page.paragraph(Paint::Faint, &text);
}

pub(super) fn wire_by_command(page: &mut TextPage, run: &BenchRun) {
    if !run.has_wire() {
        return;
    }
    let lines = run.commands.iter().map(|command| {
        let wire = command.times.wire.map_or(0, |wire| wire.count);
        let mut cells = [command.count, wire].map(thousands).to_vec();
        cells.extend(wire_figures(&command.times));
        TextTableLine::new(command.label(), cells)
    });
    TextTable::new(wire_columns()).section("Client and wire", lines).render(page);
}

fn wire_columns() -> Vec<TextColumn> {
    TextColumn::list(&[
        ("Counted", 0),
        ("On wire", 0),
        ("Median", 0),
        ("wire", 0),
        ("added", 0),
        ("p95", 1),
        ("wire", 1),
        ("added", 1),
    ])
}

fn wire_figures(times: &ClientWireTimes) -> Vec<String> {
    let Some(wire) = &times.wire else { return Vec::new() };
    let client = &times.client;
    let added = |client: Option<Nanos>, wire: Option<Nanos>, matched: Option<Nanos>| {
        let of_percentiles = client.zip(wire).map(|(client, wire)| client - wire);
        or_dash(if times.difference.is_some() { matched } else { of_percentiles })
    };
    let of = |at: fn(&DurationStatistics) -> Option<Nanos>| {
        let (client, wire, matched) = (at(client), at(wire), times.difference.as_ref().and_then(at));
        [or_dash(client), or_dash(wire), added(client, wire, matched)]
    };
    [of(|times| times.p50), of(|times| times.p95)].concat()
}

fn captures_quality(runs: &[&BenchRun]) -> String {
    let mut said: Vec<String> = Vec::new();
    for run in runs {
        if let Some(RunCapture::Made(made)) = &run.capture {
            let text = clean(&made.quality);
            if !said.contains(&text) {
                said.push(text);
            }
        }
    }
    match said.as_slice() {
        [] => String::new(),
        [one] => format!(" {one}"),
        several => format!(" Of {} captures: {}", several.len(), several.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_model::Exchange;
    use smbscope_stats::Aggregator;
    use smbscope_testkit::exchange::read;

    const MS: i64 = 1_000_000;

    #[test]
    fn files_and_slow_commands_come_by_the_time_that_they_took() {
        let mut aggregator = Aggregator::new();
        for (path, start, length) in [("a\\short.txt", 0, 2 * MS), ("b\\long.txt", 1_000 * MS, 30 * MS)] {
            aggregator.record(&Exchange { path: Some(path.into()), ..read(start, length) });
        }
        let counted = LoadPointBreakdown::new(&aggregator.finish());
        let mut page = TextPage::new(100, false);
        parts(&mut page, &counted);
        files(&mut page, &counted);
        slowest(&mut page, &counted, Timestamp(0));
        let out = page.into_text();
        let found: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
        let line = |first: &str| found.iter().filter(|words| words.first() == Some(&first)).collect::<Vec<_>>();
        // The mean of 2 and 30 ms, all of it service.
        assert_eq!(line("Read")[0][..9], ["Read", "16.0", "ms", "0", "ns", "16.0", "ms", "0", "ns"], "{out}");
        let at = |text: &str| out.find(text).unwrap_or_else(|| panic!("{text} in {out}"));
        assert!(at("b\\long.txt") < at("a\\short.txt"), "{out}");
        assert_eq!(line("b\\long.txt").len(), 2, "{out}");
        assert!(line("b\\long.txt")[1].windows(2).any(|time| time == ["30.0", "ms"]), "{out}");
    }
}
