//! Response time distribution by decade: bars for groups, and a small histogram for each command.

use super::bars::{bar, level};
use super::commands::{in_order, row_name};
use super::page::TextPage;
use super::style::Paint;
use super::table::{TextColumn, TextTable, TextTableLine};
use crate::format::{thousands, visible_percent};
use crate::{Report, bands, names};
use smbscope_stats::{CommandStatistics, Distribution};

/// Heading of the bands, as wide as the widest band, so that the tables of all reports look alike.
const BANDS: &str = "    Band         ";

/// Widest bar, and the width of the columns before it.
const BAR_MAX: usize = 50;
const BAR_INDENT: usize = 50;

/// Heading of the distribution by command. The two lines of a column's heading are the bounds of its band.
const HEADING: &str = "Share by band, %\n(from, to)";

const NAME_MIN: usize = 18;

/// Width of a share with blanks and its character of the histogram.
const SHARE: usize = 6;

pub(super) fn render(page: &mut TextPage, report: &Report) {
    groups(page, report);
    commands(page, report);
}

/// Renders a block per group: for each band the count, share, cumulative share and a bar.
fn groups(page: &mut TextPage, report: &Report) {
    let width = page.width().saturating_sub(BAR_INDENT).min(BAR_MAX);
    let mut lines = Vec::new();
    for (name, part_of, row) in names::group_rows(&report.aggregate).filter(|(.., row)| row.timed > 0) {
        let name = part_of.map_or_else(|| name.to_owned(), |whole| format!("{whole}: {name}"));
        lines.push(TextTableLine::across(Paint::Plain, name).indented(2));
        lines.extend(row.distribution.decades().into_iter().map(|decade| {
            let percent = |percent: f64| format!("{percent:.1}%");
            let cells = vec![
                thousands(decade.count),
                percent(decade.percent),
                percent(decade.cumulative_percent),
                bar(decade.percent, 100.0, width),
            ];
            TextTableLine::new(bands::name(decade.index), cells).indented(4)
        }));
    }
    let columns = vec![
        TextColumn::new("Commands").at_least(9),
        TextColumn::new("Share").at_least(7).set_off(),
        TextColumn::new("Cumulative").set_off(),
        TextColumn::new("").set_off().left_aligned(),
    ];
    TextTable::new(columns).titled("Latency distribution by group").section(BANDS, lines).render(page);
}

/// Renders a line per command with the percentage per decade and a histogram.
fn commands(page: &mut TextPage, report: &Report) {
    let rows: Vec<(String, &CommandStatistics)> = in_order(report)
        .into_iter()
        .filter(|row| row.row.timed > 0)
        .map(|row| (row_name(row, report), &row.row))
        .collect();
    let mut whole = Distribution::default();
    rows.iter().for_each(|(_, row)| whole.merge(&row.distribution));
    let mut decades: Vec<usize> = whole.decades().iter().map(|decade| decade.index).collect();
    // Bands that don't fit are merged into the next one, which then starts at 0.
    let fitting = (page.width().saturating_sub(NAME_MIN + 2) / (SHARE + 2)).max(1);
    decades.drain(..decades.len().saturating_sub(fitting));
    let Some(&lowest) = decades.first() else { return };
    let from = |index: usize| if index == lowest { "0".to_owned() } else { bands::from(index) };
    let bands = decades.iter().map(|index| format!("{}\n{}", from(*index), bands::to(*index)));
    let columns =
        bands.map(|band| TextColumn::new(band).at_least(SHARE)).chain([TextColumn::new("").set_off().left_aligned()]);
    let lines = rows.into_iter().map(|(name, row)| {
        let mut counts = row.distribution.counts();
        counts[lowest] = counts[..=lowest].iter().sum();
        let share = |index: &usize| match counts[*index] {
            0 => "·".to_owned(),
            count => visible_percent(count, row.timed),
        };
        let shape = decades.iter().map(|index| level(counts[*index] as f64, row.timed as f64).unwrap_or(' '));
        TextTableLine::new(name, decades.iter().map(share).chain([shape.collect()]).collect())
    });
    TextTable::new(columns.collect()).names(NAME_MIN..=usize::MAX).section(HEADING, lines).render(page);
}
