//! Time by phase, in total and for the clients and connections that waited longest, and episodes.

use crate::Report;
use crate::format::{counted, span, thousands, time_of_day};
use crate::json::waits::label;
use crate::page::TextPage;
use crate::tables::{BYTES_READ, BYTES_WRITTEN, ColumnHead, Row, TOTAL_WAIT, Table, Unit, Value, percent_of};
use smbscope_diagnose::Episode;
use smbscope_model::Nanos;
use smbscope_stats::{TimePart, TimeSplit};

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
