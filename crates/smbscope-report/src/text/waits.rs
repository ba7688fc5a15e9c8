//! Where the time went: the whole, and the clients and connections that waited longest.

use super::style::Paint;
use super::table::{Column, Line, Section, Table};
use super::{TextOptions, percent_sign};
use crate::Report;
use crate::format::{compact, thousands, wrap};
use crate::verdict;
use smbscope_model::Nanos;
use smbscope_stats::{TimePart, TimeSplit};

/// Clients and connections listed.
const LISTED_MAX: usize = 5;

pub(super) fn render(out: &mut String, report: &Report, options: &TextOptions) {
    let splits = &report.aggregate.splits;
    if splits.whole.elapsed().0 == 0 {
        return;
    }
    let name = match splits.whole.connections {
        1 => "The connection".to_owned(),
        n => format!("All {} connections", thousands(n)),
    };
    let whole = Line { name, indent: 0, cells: cells(&splits.whole) };
    let mut sections = vec![Section { heading: "Where time went".to_owned(), lines: vec![whole] }];
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
        // The sort is stable: equal ones stay in their order.
        rows.sort_by_key(|(_, split)| std::cmp::Reverse(split.busy));
        let left = rows.len().saturating_sub(LISTED_MAX);
        rows.truncate(LISTED_MAX);
        let mut lines: Vec<Line> =
            rows.into_iter().map(|(name, split)| Line { name, indent: 0, cells: cells(&split) }).collect();
        if left > 0 {
            lines.push(Line { name: format!("and {left} more"), indent: 0, cells: Vec::new() });
        }
        sections.push(Section { heading: heading.to_owned(), lines });
    }
    let column = |head, expendable| Column { head, expendable };
    let table = Table {
        columns: vec![
            column("Elapsed", 0),
            column("Client", 0),
            column("Requests", 0),
            column("Network", 0),
            column("Server", 0),
            column("Srv/net", 0),
            column("Replies", 0),
            column("Waiting", 2),
            column("Idle", 1),
            column("Unknown", 3),
            column("Filtered", 5),
            column("At once", 4),
        ],
        sections,
    };
    table.render(out, options.width, options.color);
    let filtered = if report.filter.is_some() { " Filtered is time of commands that the filter left out." } else { "" };
    let note = "Client is time to think, Requests and Replies their transfer, Network round trips and retransmissions, \
                Waiting expected waits; what overlaps is divided, so that the parts add up to Elapsed. At once is the \
                mean number of commands outstanding while there was one."
        .to_owned() + filtered;
    wrap(&note, options.width).iter().for_each(|line| Paint::Faint.line(out, line, options.color));
    out.push('\n');
    for sentence in verdict::of(report).sentences {
        for (i, line) in wrap(&sentence, options.width.saturating_sub(2)).iter().enumerate() {
            let bullet = if i == 0 { "- " } else { "  " };
            Paint::Plain.line(out, &format!("{bullet}{line}"), options.color);
        }
    }
}

fn cells(split: &TimeSplit) -> Vec<String> {
    let elapsed = split.elapsed().0.unsigned_abs();
    let part = |part: TimePart| match split.part(part) {
        Nanos(0) => String::new(),
        time => percent_sign(time.0.unsigned_abs(), elapsed).replace('\u{a0}', " "),
    };
    vec![
        compact(Some(split.elapsed())),
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
