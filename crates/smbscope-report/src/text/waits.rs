//! Time by phase, in total and for the clients and connections that waited longest, episodes, and what-if predictions.

use super::page::{Paint, TextPage};
use super::percent_sign;
use super::table::{TextColumn, TextTable, TextTableLine};
use crate::Report;
use crate::format::{bytes, counted, or_dash, span, thousands, time_of_day, unbroken};
use crate::json::waits::label;
use smbscope_diagnose::Episode;
use smbscope_diagnose::whatif::Prediction;
use smbscope_model::Nanos;
use smbscope_stats::{TimePart, TimeSplit};

const LISTED_MAX: usize = 5;

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
    let columns = TextColumn::list(&[
        ("Begin", 8),
        ("Duration", 8),
        ("Total wait", 8),
        ("Commands", 8),
        ("Opens", 6),
        ("Files", 6),
        ("Read", 7),
        ("Written", 7),
    ]);
    let lines = chosen.iter().map(|(at, episode)| {
        let cells = vec![
            time_of_day(episode.start, 0),
            span(episode.duration()),
            span(episode.waited),
            thousands(episode.commands),
            thousands(episode.opens),
            thousands(episode.files),
            bytes(episode.bytes_read),
            bytes(episode.bytes_written),
        ];
        TextTableLine::new(format!("{:>3}  {}, {}", at + 1, episode.client, label(episode)), cells)
    });
    TextTable::new(columns).names(30..=60).section("Episodes", lines).render(page);
    let more = match left {
        0 => String::new(),
        n => format!(" {} with a shorter wait are in JSON.", counted(n as u64, "episode", "episodes")),
    };
    page.note(
        &format!(
            "An episode is work of one client without a pause of 2 s. --episode N shows one alone; Files are different \
             paths, an estimate from 64 on.{more}"
        ),
        &[],
    );
}

pub(super) fn what_if(page: &mut TextPage, report: &Report) {
    let Some(first) = report.explanation.what_if.first() else { return };
    let columns = TextColumn::list(&[("Duration", 8), ("×", 6), ("Commands", 8)]);
    let now = TextTableLine::new("as captured", vec![span(first.now), String::new(), thousands(first.commands)]);
    let then = report.explanation.what_if.iter().map(|prediction| {
        let factor = prediction.then.0 as f64 / prediction.now.0.max(1) as f64;
        let sent = thousands(prediction.commands - prediction.saved);
        TextTableLine::new(prediction.scenario.to_string(), vec![duration(prediction), format!("{factor:.2}"), sent])
    });
    TextTable::new(columns).section("What if", std::iter::once(now).chain(then)).render(page);
    let trip = first.round_trip.map_or_else(String::new, |trip| format!(" The round trip is {} now.", unbroken(trip)));
    page.note(
        &format!(
            "Prediction with its range. Each command waits for its predecessors on its connection or in its thread; \
             TCP slow start and the window limit transfers. The bandwidth and the server's load stay as they are.{trip}"
        ),
        &[],
    );
}

/// Returns the duration with its range: `2.41 s (2.12 to 2.73 s)`.
fn duration(prediction: &Prediction) -> String {
    let [low, then, high] = [prediction.low, prediction.then, prediction.high].map(span);
    let low = match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => number,
        _ => &low,
    };
    format!("{then} ({low} to {high})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_diagnose::whatif::Scenario;
    use smbscope_model::Nanos;

    fn shown(low: i64, then: i64, high: i64) -> String {
        let [low, then, high] = [low, then, high].map(|ms| Nanos(ms * 1_000_000));
        let scenario = Scenario::default();
        duration(&Prediction { scenario, now: then, low, then, high, round_trip: None, commands: 1, saved: 0 })
    }

    #[test]
    fn a_range_repeats_no_unit() {
        assert_eq!(shown(2_120, 2_410, 2_730), "2.41 s (2.12 to 2.73 s)");
        assert_eq!(shown(912, 1_010, 1_200), "1.01 s (912 ms to 1.20 s)");
        assert_eq!(shown(118_000, 125_000, 131_000), "2 min 05 s (118 s to 2 min 11 s)");
    }
}
