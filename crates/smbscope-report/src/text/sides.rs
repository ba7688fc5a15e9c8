//! The way between capture points.

use crate::Report;
use crate::format::{counted, unbroken};
use crate::page::TextPage;
use crate::tables::{ColumnHead, Row, Table, Unit, percent_of};
use smbscope_model::{CommandGroup, Nanos};
use smbscope_stats::DurationStatistics;
use smbscope_stats::sides::{GroupPath, PathSegment};

/// Clocks that agree within this are said to agree.
const AGREES: Nanos = Nanos(1_000);

pub(super) fn render(page: &mut TextPage, report: &Report) {
    for segment in report.sides.iter().flat_map(|sides| &sides.segments) {
        let waits = |group: &&GroupPath| group.group != CommandGroup::Waiting;
        let rows = segment.groups.iter().filter(waits).map(|group| Row::new(group.group.to_string(), group.clone()));
        let title = format!("From {} to {}", segment.from, segment.to);
        let rendered = table().section(title, rows).render(page);
        rendered.note(page, &clocks(segment));
    }
}

fn table<'a>() -> Table<'a, GroupPath> {
    let mean = |table: Table<'a, GroupPath>, key, title, about, times: fn(&GroupPath) -> &DurationStatistics| {
        let head = ColumnHead::new(key, title, Unit::Duration, "").explained(about);
        table.column(head, move |group: &GroupPath| times(group).mean)
    };
    let count = ColumnHead::new("pairs", "Commands", Unit::Count, "commands that both points saw");
    let mut table = Table::new().column(count, |group: &GroupPath| group.response_time.count);
    table = mean(table, "response_time_mean_ns", "Mean", "mean response time at the first point", |group| {
        &group.response_time
    });
    table = mean(table, "path_mean_ns", "Between", "mean time between the points, there and back", |group| &group.path);
    table = mean(table, "beyond_mean_ns", "Beyond", "mean time beyond the second point", |group| &group.beyond);
    table = mean(
        table,
        "transfer_mean_ns",
        "Transfer",
        "mean time from first to last packet of request and response",
        |group| &group.transfer,
    );
    let share = ColumnHead::new("path_share", "Between", Unit::Percent, "share of the time between the points");
    table = table.column(share, |group: &GroupPath| {
        let sum = |times: &DurationStatistics| u64::try_from(times.sum_ns).unwrap_or_default();
        percent_of(sum(&group.path), sum(&group.response_time))
    });
    table.times_of(Some(("path", "Between")), &[("p95", 1), ("Slowest", 2)], |group| Some(&group.path))
}

/// Describes pairs and clocks in a sentence or two.
fn clocks(segment: &PathSegment) -> String {
    let PathSegment { from, to, clock, round_trip_ns, connections, pairs, .. } = segment;
    let ahead = match clock.offset_ns.0 {
        offset if offset.abs() <= AGREES.0 => "agree".to_owned(),
        offset if offset.abs() <= clock.uncertainty_ns.0 => {
            format!("agree within {}", unbroken(clock.uncertainty_ns))
        }
        offset => {
            let (which, by) = if offset > 0 { (to, offset) } else { (from, -offset) };
            let by = unbroken(Nanos(by));
            format!("differ: that of {which} is {by} ahead (± {})", unbroken(clock.uncertainty_ns))
        }
    };
    format!(
        "{} on {} were seen at both points. The shortest way there and back takes {}. The clocks {ahead}; times there \
         and back together don't depend on that.",
        counted(*pairs, "command", "commands"),
        counted(*connections, "connection", "connections"),
        unbroken(*round_trip_ns),
    )
}
