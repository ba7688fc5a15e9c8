//! Time by phase, in total and for the clients and connections that waited longest.

use super::page::TextPage;
use super::percent_sign;
use super::style::Paint;
use super::table::{TextColumn, TextTable, TextTableLine};
use crate::Report;
use crate::format::{or_dash, thousands};
use smbscope_model::Nanos;
use smbscope_stats::{TimePart, TimeSplit};

const LISTED_MAX: usize = 5;

/// Tabulates the total, and in the full report also clients and connections.
pub(super) fn render(page: &mut TextPage, report: &Report, is_brief: bool) {
    let splits = &report.aggregate.splits;
    if splits.whole.elapsed().0 == 0 {
        return;
    }
    let name = match splits.whole.connections {
        1 => "The connection".to_owned(),
        n => format!("{} connections", thousands(n)),
    };
    let whole = TextTableLine::new(name, cells(&splits.whole));
    let mut table = TextTable::new(columns()).section("Where time went", [whole]);
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
        rows.sort_by_key(|(_, split)| std::cmp::Reverse(split.busy));
        let left = rows.len().saturating_sub(LISTED_MAX);
        rows.truncate(LISTED_MAX);
        let mut lines: Vec<TextTableLine> =
            rows.into_iter().map(|(name, split)| TextTableLine::new(name, cells(&split))).collect();
        if left > 0 {
            lines.push(TextTableLine::new(format!("and {left} more"), Vec::new()));
        }
        table = table.section(heading, lines);
    }
    table.render(page);
    let filtered = if report.filter.is_some() { " Filtered is time of commands that the filter left out." } else { "" };
    let note = "Client is think time, Request and Response are their transfer, Network is round trips and retransmissions, \
                Waiting is expected waits. Time that overlaps is divided, so the columns add up to Elapsed. Outstanding is \
                the mean number of outstanding commands while there was at least one."
        .to_owned() + filtered;
    page.paragraph(Paint::Faint, &note);
}

fn columns() -> Vec<TextColumn> {
    TextColumn::list(&[
        ("Elapsed", 0),
        ("Client", 0),
        ("Request", 0),
        ("Network", 0),
        ("Server", 0),
        ("Srv/net", 0),
        ("Response", 0),
        ("Waiting", 2),
        ("Idle", 1),
        ("Unknown", 3),
        ("Filtered", 5),
        ("Outstanding", 4),
    ])
}

fn cells(split: &TimeSplit) -> Vec<String> {
    let elapsed = split.elapsed().0.unsigned_abs();
    let part = |part: TimePart| match split.part(part) {
        Nanos(0) => String::new(),
        time => percent_sign(time.0.unsigned_abs(), elapsed),
    };
    vec![
        or_dash(Some(split.elapsed())),
        part(TimePart::Think),
        part(TimePart::RequestTransfer),
        part(TimePart::Network),
        part(TimePart::Server),
        part(TimePart::ServerOrNetwork),
        part(TimePart::ResponseTransfer),
        part(TimePart::Waiting),
        part(TimePart::Idle),
        part(TimePart::Unknown),
        part(TimePart::FilteredOut),
        split.concurrency().map_or_else(String::new, |mean| format!("{mean:.1}")),
    ]
}
