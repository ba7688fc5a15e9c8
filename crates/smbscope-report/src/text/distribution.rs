//! Response times by decades of seconds: bars for groups, one line with a small histogram for each command.

use super::commands::{in_order, row_name};
use super::page::Page;
use super::style::Paint;
use crate::Report;
use crate::bands;
use crate::format::{shorten, thousands, visible_percent};
use smbscope_model::Group;
use smbscope_stats::{Distribution, Row};

/// Heading of the groups' distribution, and of its columns.
const GROUPS: &str = "Latency distribution by group";
const GROUP_COLUMNS: [&str; 4] = ["Band", "Commands", "Share", "Cumulative"];

/// Heading of the commands' distribution: a band reaches from the first line of its heading to the second.
const HEADING: [&str; 2] = ["Share by band, %", "(from, to)"];

/// Narrowest name column.
const NAME_MIN: usize = 18;

pub(super) fn render(page: &mut Page, report: &Report) {
    groups(page, report);
    commands(page, report);
}

/// A block a group: a line a band with count, share, share up to its end, and a bar.
fn groups(page: &mut Page, report: &Report) {
    page.heading(GROUPS);
    let [band, commands, share, cumulative] = GROUP_COLUMNS;
    page.line(Paint::Faint, &format!("    {band:<13}{commands:>10}  {share:>7}  {cumulative:>10}"));
    for (name, row) in named_groups(report) {
        if row.timed == 0 {
            continue;
        }
        page.line(Paint::Plain, &format!("  {name}"));
        for decade in row.distribution.decades() {
            let bar = bar(decade.percent, page.width().saturating_sub(50).min(50));
            let text = format!(
                "    {:<13}{:>10}  {:>5.1} %  {:>8.1} %  {bar}",
                bands::name(decade.index),
                thousands(decade.count),
                decade.percent,
                decade.cumulative_percent
            );
            page.line(Paint::Plain, text.trim_end());
        }
    }
}

/// A line a command: the percentage in each decade, and its shape in small.
fn commands(page: &mut Page, report: &Report) {
    let rows: Vec<(String, Row)> = in_order(report)
        .into_iter()
        .filter(|row| row.row.timed > 0)
        .map(|row| (row_name(row, report), row.row.clone()))
        .collect();
    let mut whole = Distribution::default();
    rows.iter().for_each(|(_, row)| whole.merge(&row.distribution));
    let mut decades: Vec<usize> = whole.decades().iter().map(|decade| decade.index).collect();
    // A decade takes 7 columns, its part of the shape 1. What does not fit is added to the next decade, which begins at 0
    // then.
    let fitting = (page.width().saturating_sub(NAME_MIN + 2) / 8).max(1);
    decades.drain(..decades.len().saturating_sub(fitting));
    let Some(&lowest) = decades.first() else { return };
    let names = rows.iter().map(|(name, _)| name.chars().count());
    let name_width = names.chain(HEADING.map(str::len)).max().unwrap_or(0);
    let name_width = name_width.min(page.width().saturating_sub(8 * decades.len() + 2));

    page.blank();
    let from = |index: usize| if index == lowest { "0".to_owned() } else { bands::from(index) };
    for (heading, edge) in HEADING.into_iter().zip([&from as &dyn Fn(usize) -> String, &bands::to]) {
        let mut head = format!("{:<name_width$}", shorten(heading, name_width));
        decades.iter().for_each(|index| head += &format!("{:>7}", edge(*index)));
        page.line(Paint::Heading, head.trim_end());
    }
    for (name, row) in rows {
        let mut counts = row.distribution.counts();
        counts[lowest] = counts[..=lowest].iter().sum();
        let mut text = format!("{:<name_width$}", shorten(&name, name_width));
        for index in &decades {
            let cell = match counts[*index] {
                0 => "·".to_owned(),
                count => visible_percent(count, row.timed),
            };
            text += &format!("{cell:>7}");
        }
        text += "  ";
        decades.iter().for_each(|index| text.push(level(counts[*index], row.timed)));
        page.line(Paint::Plain, text.trim_end());
    }
}

/// Groups in the order of the report, *Other* before its parts.
fn named_groups(report: &Report) -> Vec<(String, &Row)> {
    let aggregate = &report.aggregate;
    let mut result = Vec::new();
    for group in Group::ALL {
        if let (Group::Attributes, Some(other)) = (group, &aggregate.other) {
            result.push((crate::names::OTHER.to_owned(), &other.row));
        }
        if let Some(found) = aggregate.groups.iter().find(|row| row.group == group) {
            let prefix = if group.is_other() { "Other: " } else { "" };
            result.push((format!("{prefix}{group}"), &found.row));
        }
    }
    result
}

/// A bar in eighths of a character, at most `width` long; something that exists is never without a bar.
pub(crate) fn bar(percent: f64, width: usize) -> String {
    let eighths = (percent / 100.0 * width as f64 * 8.0).round() as usize;
    let eighths = if percent > 0.0 { eighths.max(1) } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)));
    bar
}

/// One character of a small histogram.
fn level(count: u64, whole: u64) -> char {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    match count {
        0 => ' ',
        _ => LEVELS[((count as f64 / whole as f64 * 8.0).ceil() as usize).clamp(1, 8) - 1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        // 50 % of 10 characters are 5; 55 % are 5.5: five and a half; 0.1 % still shows.
        assert_eq!([0.0, 0.1, 50.0, 55.0, 100.0].map(|p| bar(p, 10)), ["", "▏", "█████", "█████▌", "██████████"]);
    }

    #[test]
    fn shapes_show_every_count() {
        assert_eq!([0, 1, 50, 100].map(|n| level(n, 100)), [' ', '▁', '▄', '█']);
    }
}
