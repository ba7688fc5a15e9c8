//! Server metrics by load point: processors, memory, disks and network.

use crate::bench::{BenchDocument, BenchRun, ServerLoad};
use crate::format::{bytes, clean, rate};
use crate::text::page::TextPage;
use crate::text::table::{TextColumn, TextTable, TextTableLine};

pub(super) fn render(page: &mut TextPage, document: &BenchDocument) {
    let mut runs: Vec<(&BenchRun, &ServerLoad)> =
        document.runs.iter().filter_map(|run| Some((run, run.server.as_ref()?))).collect();
    let Some((_, first)) = runs.first() else { return };
    let source = first.source.clone();
    runs.sort_by(|(a, _), (b, _)| a.load(document.is_ramp_of_rates()).total_cmp(&b.load(document.is_ramp_of_rates())));
    let metric = |server: &ServerLoad, name: &str| server.metric(name).map(|series| (series.mean, series.max));
    let cells = |server| cells(&|name| metric(server, name));
    let lines = runs.iter().map(|(run, server)| TextTableLine::new(document.load_name(run), cells(server)));
    let left_out = TextTable::new(columns()).section("Server", lines).render(page);
    page.note(&format!("Means of a sample a second, from {}. {MEANINGS}", clean(&source)), &left_out);
}

pub(crate) const MEANINGS: &str = "Server CPU: all processors, and its maximum; Busiest: the busiest processor; \
                                   Samba and Scanner: their processes, in percent of one processor; Sessions, Open \
                                   files and Locks: counted by Samba.";

pub(crate) fn columns() -> Vec<TextColumn> {
    TextColumn::list(&[
        ("Server CPU", 0),
        ("Max", 0),
        ("Busiest", 1),
        ("Samba", 2),
        ("Scanner", 2),
        ("Memory", 3),
        ("Read/s", 5),
        ("Written/s", 5),
        ("IOPS", 4),
        ("Queue", 4),
        ("Disk busy", 3),
        ("Received/s", 6),
        ("Sent/s", 6),
        ("Sessions", 7),
        ("Open files", 7),
        ("Locks", 8),
    ])
}

pub(super) fn sentence(server: &ServerLoad) -> Option<String> {
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

/// Formats a table row. `metric` returns mean and maximum of a metric.
pub(crate) fn cells(metric: &dyn Fn(&str) -> Option<(f64, f64)>) -> Vec<String> {
    let mean = |name: &str| metric(name).map(|(mean, _)| mean);
    let percent = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.0}%"));
    let size = |value: Option<f64>| value.map_or_else(String::new, |value| bytes(value.round() as u64));
    let number = |value: Option<f64>| value.map_or_else(String::new, rate);
    vec![
        percent(mean("cpu")),
        percent(metric("cpu").map(|(_, max)| max)),
        percent(mean("cpu_busiest")),
        percent(mean("samba_cpu")),
        percent(mean("scanner_cpu")),
        size(mean("memory")),
        size(mean("disk_read")),
        size(mean("disk_written")),
        number(mean("disk_operations")),
        number(mean("disk_queue")),
        percent(mean("disk_busiest")),
        size(mean("network_received")),
        size(mean("network_sent")),
        number(mean("samba_sessions")),
        number(mean("samba_open_files")),
        number(mean("samba_locks")),
    ]
}
