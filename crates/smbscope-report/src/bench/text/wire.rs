//! Times in the client compared with a packet capture of the same run, by load point and by command.

use crate::bench::{BenchDocument, BenchRun, ClientWireTimes, RunCapture};
use crate::format::{clean, counted, or_dash, thousands};
use crate::text::page::TextPage;
use crate::text::style::Paint;
use crate::text::table::{TextColumn, TextTable, TextTableLine};
use smbscope_model::Nanos;
use smbscope_stats::DurationStatistics;

pub(super) fn ramp(page: &mut TextPage, document: &BenchDocument) {
    let seen: Vec<&BenchRun> = document.runs.iter().filter(|run| run.has_wire()).collect();
    if seen.is_empty() {
        return;
    }
    let lines = seen.iter().map(|run| {
        let counts = match &run.capture {
            Some(RunCapture::Made(made)) => [made.client_commands, made.wire_commands],
            _ => [run.total.client.count, run.total.wire.map_or(0, |wire| wire.count)],
        };
        let mut cells = counts.map(thousands).to_vec();
        cells.extend(figures(&run.total));
        TextTableLine::new(counted(run.users.into(), "user", "users"), cells)
    });
    TextTable::new(columns()).section("Client and wire", lines).render(page);
    let matched = seen.iter().any(|run| run.total.difference.is_some());
    let mut text = "Added is what the client's own system adds, client less wire: ".to_owned();
    text += if matched { "percentiles over commands seen from both places." } else { "the difference of percentiles." };
    text += &quality(&seen);
    page.paragraph(Paint::Faint, &text);
}

pub(super) fn commands(page: &mut TextPage, run: &BenchRun) {
    if !run.has_wire() {
        return;
    }
    let lines = run.commands.iter().map(|command| {
        let wire = command.times.wire.map_or(0, |wire| wire.count);
        let mut cells = [command.count, wire].map(thousands).to_vec();
        cells.extend(figures(&command.times));
        TextTableLine::new(super::point::name_of(command), cells)
    });
    TextTable::new(columns()).section("Client and wire", lines).render(page);
}

fn columns() -> Vec<TextColumn> {
    TextColumn::list(&[
        ("Counted", 0),
        ("On wire", 0),
        ("Median", 0),
        ("wire", 0),
        ("added", 0),
        ("p95", 1),
        ("wire", 1),
        ("added", 1),
    ])
}

fn figures(times: &ClientWireTimes) -> Vec<String> {
    let Some(wire) = &times.wire else { return Vec::new() };
    let client = &times.client;
    let added = |client: Option<Nanos>, wire: Option<Nanos>, matched: Option<Nanos>| {
        let of_percentiles = client.zip(wire).map(|(client, wire)| client - wire);
        or_dash(if times.difference.is_some() { matched } else { of_percentiles })
    };
    let of = |at: fn(&DurationStatistics) -> Option<Nanos>| {
        let (client, wire, matched) = (at(client), at(wire), times.difference.as_ref().and_then(at));
        [or_dash(client), or_dash(wire), added(client, wire, matched)]
    };
    [of(|times| times.p50), of(|times| times.p95)].concat()
}

/// Summarises the quality of the captures, each sentence once.
fn quality(runs: &[&BenchRun]) -> String {
    let mut said: Vec<String> = Vec::new();
    for run in runs {
        if let Some(RunCapture::Made(made)) = &run.capture {
            let text = clean(&made.quality);
            if !said.contains(&text) {
                said.push(text);
            }
        }
    }
    match said.as_slice() {
        [] => String::new(),
        [one] => format!(" {one}"),
        several => format!(" Of {} captures: {}", several.len(), several.join(" ")),
    }
}
