//! Table of the load hosts of a load point.

use crate::bench::{BenchRun, LoadHostEntry};
use crate::format::{clean, or_dash, thousands};
use crate::text::page::TextPage;
use crate::text::table::{TextColumn, TextTable, TextTableLine};
use smbscope_model::Nanos;

pub(super) fn render(page: &mut TextPage, run: &BenchRun) {
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
        TextTableLine::new(name, cells(host))
    });
    let left_out = TextTable::new(columns).section("Load hosts", lines).render(page);
    let text = "Clock: by how much the clock of the host is ahead of that of the driver (behind where negative), and the most \
                that this can be wrong by. Client CPU and its busiest thread in percent of one processor.";
    page.note(text, &left_out);
}

fn cells(host: &LoadHostEntry) -> Vec<String> {
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
