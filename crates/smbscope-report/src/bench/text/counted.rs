//! Breakdown of a load point: mean time per phase, files by total wait, and slowest commands.

use crate::bench::{BenchRun, LoadPointBreakdown};
use crate::format::{bytes, clean, or_dash, shorten_path, span, thousands};
use crate::json::FileName;
use crate::json::entries::{EntityEntry, GroupEntry};
use crate::json::waits::SlowExchange;
use crate::text::page::TextPage;
use crate::text::table::{TextColumn, TextTable, TextTableLine};
use smbscope_model::Timestamp;
use smbscope_stats::DurationStatistics;
use std::ops::RangeInclusive;

const SHOWN: usize = 5;

/// Width of the name column, which holds paths.
const NAMES: RangeInclusive<usize> = 24..=48;

pub(super) fn render(page: &mut TextPage, run: &BenchRun) {
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
    let line = |file: &EntityEntry<FileName>| {
        let if_any = |n: u64, show: fn(u64) -> String| if n > 0 { show(n) } else { String::new() };
        let mut cells = vec![
            thousands(file.count),
            if_any(file.errors, thousands),
            if_any(file.bytes_read, bytes),
            if_any(file.bytes_written, bytes),
        ];
        let times = &file.response_time;
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
