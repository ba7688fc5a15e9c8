//! Server metrics by load point: processors, memory, disks and network.

use crate::bench::{BenchDocument, BenchRun, ServerLoad};
use crate::format::{clean, rate};
use crate::text::columns::{Row, Table, Value, whole_percent};
use crate::text::page::TextPage;

pub(super) fn render(page: &mut TextPage, document: &BenchDocument) {
    let mut runs: Vec<(&BenchRun, &ServerLoad)> =
        document.runs.iter().filter_map(|run| Some((run, run.server.as_ref()?))).collect();
    let Some((_, first)) = runs.first() else { return };
    let source = first.source.clone();
    runs.sort_by(|(a, _), (b, _)| a.load(document.is_ramp_of_rates()).total_cmp(&b.load(document.is_ramp_of_rates())));
    let lines = runs.iter().map(|(run, server)| {
        let metric = |name: &str| server.metric(name).map(|series| (series.mean, series.max));
        Row::new(document.load_name(run), Box::new(metric) as MeanAndMaximum<'_>)
    });
    let left_out = table().section("Server", lines).render(page);
    page.note(&format!("Means of a sample a second, from {}. {MEANINGS}", clean(&source)), &left_out);
}

pub(crate) const MEANINGS: &str = "Server CPU: all processors, and its maximum; Busiest: the busiest processor; \
                                   Samba and Scanner: their processes, in percent of one processor; Sessions, Open \
                                   files and Locks: counted by Samba.";

/// Returns mean and maximum of a metric.
pub(crate) type MeanAndMaximum<'a> = Box<dyn Fn(&str) -> Option<(f64, f64)> + 'a>;

pub(crate) fn table<'a>() -> Table<'a, MeanAndMaximum<'a>> {
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
