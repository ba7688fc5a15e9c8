//! Further tables of a load point: mean time per phase, files by total wait, slowest commands, load hosts, time inside
//! Samba, times in the client compared with a packet capture, and server metrics.

use crate::bench::{
    BenchDocument, BenchRun, ClientWireTimes, InsideSamba, LoadHostEntry, LoadPointBreakdown, RunCapture, ServerLoad,
};
use crate::format::{clean, counted, span};
use crate::json::listings::SlowExchange;
use crate::page::TextPage;
use crate::tables::{
    BYTES_READ, BYTES_WRITTEN, COUNT, ColumnHead, ERRORS, Row, Table, Unit, Value, nonzero, per_second, whole_percent,
};
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
    let rendered = Table::new()
        .column(time("mean_ns", "Average", "mean response time"), |row: &&CommandStatistics| row.response_time.mean)
        .column(time("sending_ns", "Sending", "").explained("handing the request to the system"), |row| {
            row.request_transfer.mean
        })
        .column(
            time("service_ns", "Service", "")
                .explained("waiting for the first byte of the response, for network and server"),
            |row| row.service_time.mean,
        )
        .column(time("receiving_ns", "Receiving", "").explained("rest of the response"), |row| {
            row.response_transfer.mean
        })
        .column(time("service_p50_ns", "Service: p50", "median service time").expendable(2), |row| row.service_time.p50)
        .column(
            time("service_p95_ns", "Service: p95", "95th percentile of the service time")
                .shortened("p95")
                .expendable(2),
            |row| row.service_time.p95,
        )
        .column(
            time("client_ns", "Client", "").explained("the client's own time before the request").expendable(1),
            |row| row.think_time.mean,
        )
        .section("Where time went", lines)
        .render(page);
    rendered.note(page, "Means. Average is the sum of Sending, Service and Receiving.");
}

fn time(key: &'static str, title: &'static str, about: &'static str) -> ColumnHead {
    ColumnHead::new(key, title, Unit::Duration, about)
}

fn files(page: &mut TextPage, counted: &LoadPointBreakdown) {
    let listed = counted.files.iter().filter(|file| !file.is_other).take(SHOWN);
    let bytes = |count: u64| Value::Bytes(count).shown_if(count > 0);
    Table::new()
        .names(NAMES)
        .column(COUNT, |file: &&EntityStatistics| file.count)
        .column(ERRORS.expendable(2), |file| nonzero(file.errors))
        .column(BYTES_READ.expendable(4), move |file| bytes(file.bytes_read))
        .column(BYTES_WRITTEN.expendable(4), move |file| bytes(file.bytes_written))
        .times(&[("Median", 0), ("Average", 1), ("p95", 0), ("Slowest", 0)], |file| Some(&file.response_time))
        .section("Files by total wait", listed.map(|file| Row::new(clean(&file.name.path), &file.figures)))
        .render_paths(page);
}

fn slowest(page: &mut TextPage, counted: &LoadPointBreakdown, started: Timestamp) {
    let path = |slow: &SlowExchange| slow.path.as_deref().map(clean).unwrap_or_default();
    let failed = |slow: &SlowExchange| slow.status.as_deref().filter(|status| *status != "STATUS_SUCCESS").map(clean);
    Table::new()
        .names(NAMES)
        .column(
            ColumnHead::new("command", "Command", Unit::Text, "name of the command").set_off(),
            |slow: &&SlowExchange| clean(&slow.command),
        )
        .column(time("after_ns", "After", "time of the request since the start of the run"), move |slow| {
            slow.request_first_ns.map(|at| span(at - started))
        })
        .column(time("response_time_ns", "Response", "response time"), |slow| slow.response_time_ns)
        .column(time("service_time_ns", "Service", "service time").expendable(1), |slow| slow.service_time_ns)
        .column(
            ColumnHead::new("status", "Status", Unit::Text, "status, if not success").set_off().expendable(2),
            move |slow| failed(slow),
        )
        .section("Slowest commands", counted.slowest.iter().take(SHOWN).map(|slow| Row::new(path(slow), slow)))
        .render_paths(page);
}

pub(super) fn hosts(page: &mut TextPage, run: &BenchRun) {
    if run.hosts.is_empty() {
        return;
    }
    let megabytes = |bytes: u64| Value::Number(bytes as f64, format!("{:.1}", bytes as f64 / 1e6));
    let head = |key, title, unit, about| ColumnHead::new(key, title, unit, about);
    let lines = run.hosts.iter().map(|host| {
        let limited = host.client_cpu.is_some_and(|cpu| cpu.limited);
        let name = match (&host.lost, limited) {
            (Some(_), _) => format!("{} (lost)", clean(&host.host)),
            (None, true) => format!("{} (limited)", clean(&host.host)),
            (None, false) => clean(&host.host),
        };
        Row::new(name, host)
    });
    let rendered = Table::new()
        .column(head("sessions", "Sessions", Unit::Count, "sessions of the host"), |host: &&LoadHostEntry| {
            host.sessions
        })
        .column(head("commands", "Commands", Unit::Count, "commands answered"), |host| host.operations)
        .column(ERRORS, |host| nonzero(host.errors))
        .column(head("bytes_read", "MB read", Unit::Bytes, "file data read").expendable(3), |host| {
            megabytes(host.bytes_read)
        })
        .column(head("bytes_written", "MB written", Unit::Bytes, "file data written").expendable(4), |host| {
            megabytes(host.bytes_written)
        })
        .times(&[("Median", 0), ("p95", 0), ("p99", 2)], |host| Some(&host.times))
        .column(
            head("client_cpu", "Client CPU", Unit::Percent, "").explained("percent of one processor").expendable(1),
            |host| host.client_cpu.map(|cpu| whole_percent(cpu.percent)),
        )
        .column(
            head("busiest_thread", "Busiest", Unit::Percent, "")
                .explained("the client's busiest thread, in percent of one processor")
                .expendable(5),
            |host| host.client_cpu.map(|cpu| whole_percent(cpu.busiest_percent)),
        )
        .column(
            time("clock_ahead_ns", "Clock", "").explained("clock offset from the driver, positive if ahead"),
            |host| {
                let sign = if host.clock_ahead_ns < 0 { "-" } else { "" };
                format!("{sign}{}", Nanos(host.clock_ahead_ns.abs()))
            },
        )
        .column(time("clock_bound_ns", "±", "").explained("maximum error of this offset"), |host| host.clock_bound_ns)
        .section("Load hosts", lines)
        .render(page);
    rendered.note(page, "");
}

pub(super) fn samba(page: &mut TextPage, run: &BenchRun) {
    let operations = run.inside_samba();
    if operations.is_empty() {
        return;
    }
    let rendered = Table::new()
        .column(
            ColumnHead::new("per_second", "Per second", Unit::PerSecond, "operations per second").expendable(1),
            |of: &InsideSamba| per_second(of.per_second),
        )
        .column(time("response_time_ns", "Response time", "mean response time in the client"), |of| of.response_time)
        .column(
            time("inside_ns", "In Samba", "")
                .explained("from request to response inside smbd, by its own profile, with waits for storage"),
            |of| of.inside,
        )
        .column(
            time("outside_ns", "Outside", "")
                .explained("rest of the response time, in the network, in socket queues and in the client"),
            |of| of.response_time.map(|whole| Nanos((whole.0 - of.inside.0).max(0))),
        )
        .section("Inside Samba", operations.into_iter().map(|of| Row::new(of.operation.clone(), of)))
        .render(page);
    rendered.note(page, "Means.");
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
    let rendered = wire_table().section("Client and wire", lines).render(page);
    let matched = seen.iter().any(|run| run.total.difference.is_some());
    let mut text = "Added is what the client's own system adds, client less wire: ".to_owned();
    text += if matched { "percentiles over commands seen from both places." } else { "the difference of percentiles." };
    text += &captures_quality(&seen);
    rendered.note(page, &text);
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
    let count = |key, title, about| ColumnHead::new(key, title, Unit::Count, about);
    let table = Table::new()
        .column(count("counted", "Counted", "commands in the client"), |(counts, _): &([u64; 2], &ClientWireTimes)| {
            counts[0]
        })
        .column(count("on_wire", "On wire", "commands in the capture"), |(counts, _)| counts[1]);
    let statistics: [(&str, u8, Of); 2] = [("Median", 0, |times| times.p50), ("p95", 1, |times| times.p95)];
    statistics.into_iter().fold(table, |table, (title, expendable, of)| {
        let on_wire = |times: &ClientWireTimes, time| Value::Time(time).shown_if(times.wire.is_some());
        let head = |place: &'static str, about| {
            let head =
                time("", title, about).keyed(format!("{}_{place}_ns", title.to_lowercase())).expendable(expendable);
            if place == "client" { head } else { head.titled(format!("{title} {place}")).shortened(place) }
        };
        table
            .column(head("client", "measured inside the client"), move |(_, times)| on_wire(times, of(&times.client)))
            .column(head("wire", "measured in the capture"), move |(_, times)| {
                on_wire(times, times.wire.as_ref().and_then(of))
            })
            .column(head("added", "client less wire"), move |(_, times)| on_wire(times, added(times, of)))
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
    let rendered = server_table().section("Server", lines).render(page);
    rendered.note(page, &format!("Means of a sample a second, from {}.", clean(&source)));
}

/// Returns mean and maximum of a metric.
pub(crate) type MeanAndMaximum<'a> = Box<dyn Fn(&str) -> Option<(f64, f64)> + 'a>;

pub(crate) fn server_table<'a>() -> Table<'a, MeanAndMaximum<'a>> {
    let mean = |name: &'static str, shown: fn(f64) -> Value| {
        move |metric: &MeanAndMaximum<'a>| metric(name).map(|(mean, _)| shown(mean))
    };
    let size = |value: f64| Value::Number(value, crate::format::bytes(value.round() as u64));
    let percent = |key, title| ColumnHead::new(key, title, Unit::Percent, "");
    let number = |key, title, about| ColumnHead::new(key, title, Unit::Number, about);
    let rate = |key, title, about| ColumnHead::new(key, title, Unit::BytesPerSecond, about);
    Table::new()
        .column(percent("cpu", "Server CPU").explained("all processors"), mean("cpu", whole_percent))
        .column(percent("cpu_max", "Max").explained("maximum of Server CPU"), move |metric| {
            metric("cpu").map(|(_, max)| whole_percent(max))
        })
        .column(
            percent("cpu_busiest", "Busiest").explained("the busiest processor").expendable(1),
            mean("cpu_busiest", whole_percent),
        )
        .column(
            percent("samba_cpu", "Samba").explained("its processes, in percent of one processor").expendable(2),
            mean("samba_cpu", whole_percent),
        )
        .column(
            percent("scanner_cpu", "Scanner").explained("its processes, in percent of one processor").expendable(2),
            mean("scanner_cpu", whole_percent),
        )
        .column(ColumnHead::new("memory", "Memory", Unit::Bytes, "memory in use").expendable(3), mean("memory", size))
        .column(rate("disk_read", "Read/s", "read from the disks").expendable(5), mean("disk_read", size))
        .column(rate("disk_written", "Written/s", "written to the disks").expendable(5), mean("disk_written", size))
        .column(
            number("disk_operations", "IOPS", "operations of the disks per second").expendable(4),
            mean("disk_operations", per_second),
        )
        .column(
            number("disk_queue", "Queue", "operations waiting for the busiest disk").expendable(4),
            mean("disk_queue", per_second),
        )
        .column(
            percent("disk_busiest", "Disk busy").explained("the busiest disk").expendable(3),
            mean("disk_busiest", whole_percent),
        )
        .column(
            rate("network_received", "Received/s", "received from the network").expendable(6),
            mean("network_received", size),
        )
        .column(rate("network_sent", "Sent/s", "sent to the network").expendable(6), mean("network_sent", size))
        .column(
            number("samba_sessions", "Sessions", "").explained("counted by Samba").expendable(7),
            mean("samba_sessions", per_second),
        )
        .column(
            number("samba_open_files", "Open files", "").explained("counted by Samba").expendable(7),
            mean("samba_open_files", per_second),
        )
        .column(
            number("samba_locks", "Locks", "").explained("counted by Samba").expendable(8),
            mean("samba_locks", per_second),
        )
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
