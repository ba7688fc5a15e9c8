//! Time by phase, in total and for the clients and connections that waited longest; episodes; and the
//! way between capture points.

use crate::Report;
use crate::format::{counted, span, thousands, time_of_day, unbroken};
use crate::json::listings::label;
use crate::page::TextPage;
use crate::tables::{BYTES_READ, BYTES_WRITTEN, ColumnHead, Row, TOTAL_WAIT, Table, Unit, Value, percent_of};
use smbscope_diagnose::Episode;
use smbscope_model::{CommandGroup, Nanos};
use smbscope_stats::sides::{GroupPath, PathSegment};
use smbscope_stats::{DurationStatistics, TimePart, TimeSplit};

const LISTED_MAX: usize = 5;

pub(super) fn render(page: &mut TextPage, report: &Report, is_brief: bool) {
    let splits = &report.aggregate.splits;
    if splits.whole.elapsed_ns.0 == 0 {
        return;
    }
    let name = match splits.whole.connections {
        1 => "The connection".to_owned(),
        n => format!("{} connections", thousands(n)),
    };
    let mut table = table().section("Where time went", [Row::new(name, splits.whole)]);
    if is_brief {
        table.render(page);
        return;
    }
    let clients: Vec<(String, TimeSplit)> =
        splits.clients.iter().map(|(client, split)| (client.to_string(), *split)).collect();
    let connections: Vec<(String, TimeSplit)> = report
        .connections
        .iter()
        .filter_map(|connection| {
            let split = splits.connection(connection.flow)?;
            Some((connection.endpoints.client.to_string(), *split))
        })
        .collect();
    for (heading, mut rows) in [("Clients", clients), ("Connections", connections)] {
        if rows.len() < 2 {
            continue;
        }
        // The sort is stable, so connections with equal times keep their order.
        rows.sort_by_key(|(_, split)| std::cmp::Reverse(split.busy_ns));
        let left = rows.len().saturating_sub(LISTED_MAX);
        rows.truncate(LISTED_MAX);
        let more = (left > 0).then(|| Row::heading(format!("and {left} more: --format json")));
        table = table.section(heading, rows.into_iter().map(|(name, split)| Row::new(name, split)).chain(more));
    }
    let rendered = table.render(page);
    rendered.note(page, "Time that overlaps is divided, so the columns add up to Elapsed.");
}

fn table<'a>() -> Table<'a, TimeSplit> {
    let part = |table: Table<'a, TimeSplit>, head: ColumnHead, about: &'static str, part: TimePart| {
        table.column(head.explained(about), move |split: &TimeSplit| match split.part(part) {
            Nanos(0) => Value::Absent,
            time => percent_of(time.0.unsigned_abs(), split.elapsed_ns.0.unsigned_abs()),
        })
    };
    let share = |key, title| ColumnHead::new(key, title, Unit::Percent, "");
    let elapsed =
        ColumnHead::new("elapsed_ns", "Elapsed", Unit::Duration, "first to last packet, summed over connections");
    let mut table = Table::new().column(elapsed, |split: &TimeSplit| split.elapsed_ns);
    table = part(table, share("think", "Client"), "think time", TimePart::Think);
    table = part(table, share("request", "Request"), "transfer of requests", TimePart::RequestTransfer);
    table = part(table, share("network", "Network"), "round trips and retransmissions", TimePart::Network);
    table = part(table, share("server", "Server"), "service time without round trips", TimePart::Server);
    let unknown = "service time where the round trip is not known";
    table = part(table, share("server_or_network", "Srv/net"), unknown, TimePart::ServerOrNetwork);
    table = part(table, share("response", "Response"), "transfer of responses", TimePart::ResponseTransfer);
    let waits = "only expected waits outstanding";
    table = part(table, share("waiting", "Waiting").expendable(2), waits, TimePart::Waiting);
    table = part(table, share("idle", "Idle").expendable(1), "longer pauses", TimePart::Idle);
    let cut = "a command outstanding whose end was not captured";
    table = part(table, share("unknown", "Unknown").expendable(3), cut, TimePart::Unknown);
    let others = "commands that the filter left out";
    table = part(table, share("filtered_out", "Filtered").expendable(5), others, TimePart::FilteredOut);
    let outstanding = ColumnHead::new("outstanding", "Outstanding", Unit::Number, "").expendable(4);
    table.column(outstanding.explained("mean number of outstanding commands while there was at least one"), |split| {
        split.concurrency().map(|mean| Value::Number(mean, format!("{mean:.1}")))
    })
}

const EPISODES_MAX: usize = 30;

pub(super) fn episodes(page: &mut TextPage, report: &Report) {
    if report.explanation.episodes.is_empty() {
        return;
    }
    let mut chosen: Vec<(usize, &Episode)> = report.explanation.episodes.iter().enumerate().collect();
    chosen.sort_by_key(|(_, episode)| std::cmp::Reverse(episode.waited));
    let left = chosen.len().saturating_sub(EPISODES_MAX);
    chosen.truncate(EPISODES_MAX);
    chosen.sort_by_key(|(at, _)| *at);
    let lines = chosen
        .iter()
        .map(|(at, episode)| Row::new(format!("{:>3}  {}, {}", at + 1, episode.client, label(episode)), *episode));
    let count = |key, title| ColumnHead::new(key, title, Unit::Count, "");
    let rendered = Table::new()
        .names(30..=60)
        .column(
            ColumnHead::new("start_ns", "Begin", Unit::Instant, "time of day, UTC").expendable(8),
            |episode: &&Episode| time_of_day(episode.start, 0),
        )
        .column(
            ColumnHead::new("duration_ns", "Duration", Unit::Duration, "first request to last response").expendable(8),
            |episode| span(episode.duration()),
        )
        .column(TOTAL_WAIT.explained("time with a command outstanding").expendable(8), |episode| span(episode.waited))
        .column(count("commands", "Commands").expendable(8), |episode| episode.commands)
        .column(count("opens", "Opens").expendable(6), |episode| episode.opens)
        .column(count("files", "Files").explained("different paths, an estimate from 64 on").expendable(6), |episode| {
            episode.files
        })
        .column(BYTES_READ.expendable(7), |episode| Value::Bytes(episode.bytes_read))
        .column(BYTES_WRITTEN.expendable(7), |episode| Value::Bytes(episode.bytes_written))
        .section("Episodes", lines)
        .render(page);
    let more = match left {
        0 => String::new(),
        n => format!(" --format json also lists {} with a shorter wait.", counted(n as u64, "episode", "episodes")),
    };
    let text = "An episode is work of one client without a pause of 2 s. --episode N shows one alone.";
    rendered.note(page, &format!("{text}{more}"));
}

/// Clocks that agree within this are said to agree.
const AGREES: Nanos = Nanos(1_000);

pub(super) fn render_paths(page: &mut TextPage, report: &Report) {
    for segment in report.sides.iter().flat_map(|sides| &sides.segments) {
        let waits = |group: &&GroupPath| group.group != CommandGroup::Waiting;
        let rows = segment.groups.iter().filter(waits).map(|group| Row::new(group.group.to_string(), group.clone()));
        let title = format!("From {} to {}", segment.from, segment.to);
        let rendered = path_table().section(title, rows).render(page);
        rendered.note(page, &clocks(segment));
    }
}

fn path_table<'a>() -> Table<'a, GroupPath> {
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
