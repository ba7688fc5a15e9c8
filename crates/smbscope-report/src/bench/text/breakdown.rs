//! Further tables of a load point: mean time per phase, files by total wait, slowest commands, load hosts, time inside
//! Samba, times in the client compared with a packet capture, and server metrics.

use crate::bench::{
    BenchDocument, BenchRun, ClientWireTimes, InsideSamba, LoadHostEntry, LoadPointBreakdown, RunCapture, ServerLoad,
};
use crate::format::{clean, counted, rate, span, unbroken};
use crate::json::waits::SlowExchange;
use crate::page::{Paint, TextPage};
use crate::tables::{Row, Table, Value, nonzero, whole_percent};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::{CommandStatistics, DurationStatistics, EntityStatistics};
use std::ops::RangeInclusive;

const SHOWN: usize = 5;

const NAMES: RangeInclusive<usize> = 24..=48;

pub(super) fn breakdown(page: &mut TextPage, run: &BenchRun) {
    let Some(counted) = &run.counted else { return };
    parts(page, counted);
    files(page, counted);
    slowest(page, counted, run.started_ns);
}

fn parts(page: &mut TextPage, counted: &LoadPointBreakdown) {
    let mut lines: Vec<Row<&CommandStatistics>> = Vec::new();
    for group in counted.groups.iter().filter(|group| group.headline && group.row.timed > 0) {
        lines.push(Row::new(group.group.clone(), &group.row));
        let parts = group.parts.iter().filter(|part| part.row.timed > 0);
        lines.extend(parts.map(|part| Row::part(part.group.clone(), &part.row)));
    }
    if lines.is_empty() {
        return;
    }
    let left_out = Table::new()
        .column("Average", |row: &&CommandStatistics| row.response_time.mean)
        .column("Sending", |row| row.request_transfer.mean)
        .column("Service", |row| row.service_time.mean)
        .column("Receiving", |row| row.response_transfer.mean)
        .column(("Service: p50", 2), |row| row.service_time.p50)
        .column(("p95", 2), |row| row.service_time.p95)
        .column(("Client", 1), |row| row.think_time.mean)
        .section("Where time went", lines)
        .render(page);
    let text = "Average response time is Sending (handing the request to the system), Service (waiting for the first byte \
                of the response: network and server) and Receiving (the rest of the response). Client is the client's own \
                time before the request.";
    page.note(text, &left_out);
}

fn files(page: &mut TextPage, counted: &LoadPointBreakdown) {
    let listed = counted.files.iter().filter(|file| !file.is_other).take(SHOWN);
    let bytes = |count: u64| Value::Bytes(count).shown_if(count > 0);
    Table::new()
        .names(NAMES)
        .column("Count", |file: &&EntityStatistics| file.count)
        .column(("Errors", 2), |file| nonzero(file.errors))
        .column(("Read", 4), move |file| bytes(file.bytes_read))
        .column(("Written", 4), move |file| bytes(file.bytes_written))
        .times(&[("Median", 0), ("Average", 1), ("p95", 0), ("Slowest", 0)], |file| Some(&file.response_time))
        .section("Files by total wait", listed.map(|file| Row::new(clean(&file.name.path), &file.figures)))
        .render_paths(page);
}

fn slowest(page: &mut TextPage, counted: &LoadPointBreakdown, started: Timestamp) {
    let path = |slow: &SlowExchange| slow.path.as_deref().map(clean).unwrap_or_default();
    let failed = |slow: &SlowExchange| slow.status.as_deref().filter(|status| *status != "STATUS_SUCCESS").map(clean);
    Table::new()
        .names(NAMES)
        .column("Command", |slow: &&SlowExchange| clean(&slow.command))
        .column("After", move |slow| slow.request_first_ns.map(|at| span(at - started)))
        .column("Response", |slow| slow.response_time_ns)
        .column(("Service", 1), |slow| slow.service_time_ns)
        .column(("Status", 2), move |slow| failed(slow))
        .section("Slowest commands", counted.slowest.iter().take(SHOWN).map(|slow| Row::new(path(slow), slow)))
        .render_paths(page);
}

pub(super) fn hosts(page: &mut TextPage, run: &BenchRun) {
    if run.hosts.is_empty() {
        return;
    }
    let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    let lines = run.hosts.iter().map(|host| {
        let limited = host.client_cpu.is_some_and(|cpu| cpu.limited);
        let name = match (&host.lost, limited) {
            (Some(_), _) => format!("{} (lost)", clean(&host.host)),
            (None, true) => format!("{} (limited)", clean(&host.host)),
            (None, false) => clean(&host.host),
        };
        Row::new(name, host)
    });
    let left_out = Table::new()
        .column("Sessions", |host: &&LoadHostEntry| host.sessions)
        .column("Commands", |host| host.operations)
        .column("Errors", |host| nonzero(host.errors))
        .column(("MB read", 3), move |host| megabytes(host.bytes_read))
        .column(("MB written", 4), move |host| megabytes(host.bytes_written))
        .times(&[("Median", 0), ("p95", 0), ("p99", 2)], |host| Some(&host.times))
        .column(("Client CPU", 1), |host| host.client_cpu.map(|cpu| whole_percent(cpu.percent)))
        .column(("Busiest", 5), |host| host.client_cpu.map(|cpu| whole_percent(cpu.busiest_percent)))
        .column("Clock", |host| {
            let sign = if host.clock_ahead_ns < 0 { "-" } else { "" };
            format!("{sign}{}", Nanos(host.clock_ahead_ns.abs()))
        })
        .column("±", |host| host.clock_bound_ns)
        .section("Load hosts", lines)
        .render(page);
    let text = "Clock is the host's clock offset from the driver (positive: ahead) with its maximum error. Client CPU and its \
                busiest thread are in percent of one processor.";
    page.note(text, &left_out);
}

pub(super) fn samba(page: &mut TextPage, run: &BenchRun) {
    let operations = run.inside_samba();
    if operations.is_empty() {
        return;
    }
    let left_out = Table::new()
        .column(("Per second", 1), |of: &InsideSamba| rate(of.per_second))
        .column("Response time", |of| of.response_time)
        .column("In Samba", |of| unbroken(of.inside))
        .column("Outside", |of| of.response_time.map(|whole| Nanos((whole.0 - of.inside.0).max(0))))
        .section("Inside Samba", operations.into_iter().map(|of| Row::new(of.operation.clone(), of)))
        .render(page);
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
        Row::new(counted(run.users.into(), "user", "users"), (counts, &run.total))
    });
    wire_table().section("Client and wire", lines).render(page);
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
        Row::new(command.label(), ([command.count, wire], &command.times))
    });
    wire_table().section("Client and wire", lines).render(page);
}

/// Returns the table for counts in the client and on the wire, and their times.
fn wire_table<'a>() -> Table<'a, ([u64; 2], &'a ClientWireTimes)> {
    type Of = fn(&DurationStatistics) -> Option<Nanos>;
    let added = |times: &ClientWireTimes, of: Of| {
        let of_percentiles =
            of(&times.client).zip(times.wire.as_ref().and_then(of)).map(|(client, wire)| client - wire);
        times.difference.as_ref().map_or(of_percentiles, of)
    };
    let table = Table::new()
        .column("Counted", |(counts, _): &([u64; 2], &ClientWireTimes)| counts[0])
        .column("On wire", |(counts, _)| counts[1]);
    let statistics: [(&str, u8, Of); 2] = [("Median", 0, |times| times.p50), ("p95", 1, |times| times.p95)];
    statistics.into_iter().fold(table, |table, (title, expendable, of)| {
        let on_wire = |times: &ClientWireTimes, time| Value::Time(time).shown_if(times.wire.is_some());
        table
            .column((title, expendable), move |(_, times)| on_wire(times, of(&times.client)))
            .column(("wire", expendable), move |(_, times)| on_wire(times, times.wire.as_ref().and_then(of)))
            .column(("added", expendable), move |(_, times)| on_wire(times, added(times, of)))
    })
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

/// Tabulates server metrics by load point: processors, memory, disks and network.
pub(super) fn server(page: &mut TextPage, document: &BenchDocument) {
    let mut runs: Vec<(&BenchRun, &ServerLoad)> =
        document.runs.iter().filter_map(|run| Some((run, run.server.as_ref()?))).collect();
    let Some((_, first)) = runs.first() else { return };
    let source = first.source.clone();
    runs.sort_by(|(a, _), (b, _)| a.load(document.is_ramp_of_rates()).total_cmp(&b.load(document.is_ramp_of_rates())));
    let lines = runs.iter().map(|(run, server)| {
        let metric = |name: &str| server.metric(name).map(|series| (series.mean, series.max));
        Row::new(document.load_name(run), Box::new(metric) as MeanAndMaximum<'_>)
    });
    let left_out = server_table().section("Server", lines).render(page);
    page.note(&format!("Means of a sample a second, from {}. {SERVER_MEANINGS}", clean(&source)), &left_out);
}

pub(crate) const SERVER_MEANINGS: &str = "Server CPU: all processors, and its maximum; Busiest: the busiest processor; \
                                   Samba and Scanner: their processes, in percent of one processor; Sessions, Open \
                                   files and Locks: counted by Samba.";

/// Returns mean and maximum of a metric.
pub(crate) type MeanAndMaximum<'a> = Box<dyn Fn(&str) -> Option<(f64, f64)> + 'a>;

pub(crate) fn server_table<'a>() -> Table<'a, MeanAndMaximum<'a>> {
    let mean = |name: &'static str, shown: fn(f64) -> Value| {
        move |metric: &MeanAndMaximum<'a>| metric(name).map(|(mean, _)| shown(mean))
    };
    let percent = |value: f64| Value::Text(whole_percent(value));
    let size = |value: f64| Value::Bytes(value.round() as u64);
    let number = |value: f64| Value::Text(rate(value));
    Table::new()
        .column("Server CPU", mean("cpu", percent))
        .column("Max", move |metric| metric("cpu").map(|(_, max)| percent(max)))
        .column(("Busiest", 1), mean("cpu_busiest", percent))
        .column(("Samba", 2), mean("samba_cpu", percent))
        .column(("Scanner", 2), mean("scanner_cpu", percent))
        .column(("Memory", 3), mean("memory", size))
        .column(("Read/s", 5), mean("disk_read", size))
        .column(("Written/s", 5), mean("disk_written", size))
        .column(("IOPS", 4), mean("disk_operations", number))
        .column(("Queue", 4), mean("disk_queue", number))
        .column(("Disk busy", 3), mean("disk_busiest", percent))
        .column(("Received/s", 6), mean("network_received", size))
        .column(("Sent/s", 6), mean("network_sent", size))
        .column(("Sessions", 7), mean("samba_sessions", number))
        .column(("Open files", 7), mean("samba_open_files", number))
        .column(("Locks", 8), mean("samba_locks", number))
}

pub(super) fn server_sentence(server: &ServerLoad) -> Option<String> {
    let mean = |name: &str| server.metric(name).map(|series| series.mean);
    let mut text = format!("Server ({}): CPU {:.0}%", clean(&server.source), mean("cpu")?);
    if let Some(max) = server.metric("cpu").map(|series| series.max) {
        text += &format!(", at most {max:.0}%");
    }
    if let Some(samba) = mean("samba_cpu") {
        text += &format!("; Samba {samba:.0}% of one processor");
    }
    if let Some(busy) = mean("disk_busiest") {
        text += &format!("; busiest disk {busy:.0}%");
    }
    Some(text + ".")
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
