//! Terminal report of a comparison: the captures side by side, then groups and commands with a line per column.

use super::{
    Compared, ComparedCommand, ComparedGroup, Comparison, ComparisonCell, ComparisonColumn, ComparisonNote,
    DialectCount, NoteKind, OverviewRatios, PointCell, Ratio, Ratios, ResponseTime,
};
use crate::bench::{MeanAndMaximum, server_table};
use crate::format::{bytes, clean, counted, rate, shorten, span, thousands, unbroken};
use crate::names;
use crate::page::{Paint, TextPage};
use crate::tables::{COUNT, ColumnHead, ERRORS, Row, Table, Unit, Value, nonzero, per_second};
use smbscope_model::units::short_bytes;
use smbscope_model::{Nanos, Protocol};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

const LABEL: usize = 22;
const FACT_MAX: usize = 26;
const NAME_MAX: usize = 18;
/// Characters of a column name left in the narrowest table.
const NAME_SHOWN: usize = 14;
/// Slices shown, and the width of their name column, which holds paths.
const SLICES_SHOWN: usize = 20;
const SLICE_NAMES: RangeInclusive<usize> = 20..=48;
const TIMES: &str = "×";
const INTERVAL: &str = "95%";

pub fn render(comparison: &Comparison, width: usize, color: bool) -> String {
    render_on(TextPage::new(width, color), comparison)
}

/// Formats the comparison in Markdown, for a ticket or a pull request.
pub fn markdown(comparison: &Comparison) -> String {
    render_on(TextPage::markdown(), comparison)
}

fn render_on(mut page: TextPage, comparison: &Comparison) -> String {
    let title = match &comparison.title {
        Some(title) => format!("SMB response times compared: {}", clean(title)),
        None => "SMB response times compared".to_owned(),
    };
    page.title(&title, false);
    setup(&mut page, comparison);
    answers(&mut page, comparison);
    notes(&mut page, comparison);
    overview(&mut page, comparison);
    ramps(&mut page, comparison);
    servers(&mut page, comparison);
    slices(&mut page, comparison);
    tables(&mut page, comparison);
    page.into_text()
}

fn setup(page: &mut TextPage, comparison: &Comparison) {
    for note in comparison.notes.iter().filter(|note| note.kind == NoteKind::Setup) {
        let mut text = note.text.clone();
        text.push('.');
        page.paragraph(Paint::Warning, &text);
    }
}

fn answers(page: &mut TextPage, comparison: &Comparison) {
    for (at, Compared { answer, .. }) in comparison.answers.iter().enumerate() {
        page.paragraph(Paint::Heading, &answer.headline);
        let sentences = answer.evidence.iter().chain(&answer.caveats);
        sentences.for_each(|sentence| page.beside(Paint::Plain, "- ", sentence));
        if at == 0 {
            quality(page, comparison);
        }
        page.what_next(&answer.next);
    }
}

/// Returns the names of the columns. They are numbered if they would look the same when shortened.
fn labels(columns: &[ComparisonColumn]) -> Vec<String> {
    let names: Vec<String> = columns.iter().map(|column| clean(&column.name)).collect();
    let distinct: BTreeSet<String> = names.iter().map(|name| shorten(name, NAME_SHOWN)).collect();
    if distinct.len() == names.len() {
        return names;
    }
    names.iter().enumerate().map(|(at, name)| format!("{} {name}", at + 1)).collect()
}

fn overview(page: &mut TextPage, comparison: &Comparison) {
    let repeated = is_repeated(comparison);
    let mut facts: Vec<Vec<(&str, String)>> = comparison.columns.iter().map(|column| facts(column, repeated)).collect();
    // Lines without a figure in any column, and the interval below them.
    let is_known = |at: usize| facts.iter().any(|facts| !matches!(facts[at].1.as_str(), "-" | ""));
    let known: Vec<bool> = (0..facts.first().map_or(0, Vec::len)).map(is_known).collect();
    for facts in &mut facts {
        let mut known = known.iter();
        facts.retain(|_| known.next().is_some_and(|known| *known));
    }

    let names = labels(&comparison.columns);
    let cells = facts.iter().flatten().map(|(_, value)| value.chars().count());
    let widest = cells.chain(names.iter().map(|name| name.chars().count())).max().unwrap_or(0).min(FACT_MAX);
    let fitting = ((page.width() - LABEL) / (widest + 2)).max(1);
    for (names, facts) in names.chunks(fitting).zip(facts.chunks(fitting)) {
        let lines = facts[0].iter().enumerate().map(|(at, (label, _))| Row::new(*label, at));
        let sides = names.iter().zip(facts).enumerate();
        let table = sides.fold(Table::new(), |table, (side, (name, facts))| {
            let head = ColumnHead::new("", "", Unit::Text, "").keyed(format!("side_{side}")).right_aligned();
            let head = head.titled(shorten(name, widest)).at_least(widest).set_off();
            table.column(head, move |at: &usize| shorten(&facts[*at].1, widest))
        });
        table.section(" ".repeat(LABEL), lines).render(page);
    }
}

fn is_repeated(comparison: &Comparison) -> bool {
    comparison.columns.iter().any(|column| column.runs > 1)
}

const RUNS: &str = " Times and rates of several runs are geometric means, counts are means. 95% = interval of the ratio to \
                    its left, of 3 or 4 runs its range; in parentheses where no difference is shown.";

fn facts(column: &ComparisonColumn, repeated: bool) -> Vec<(&'static str, String)> {
    let overview = &column.overview;
    let mut facts = match repeated {
        true => vec![("Runs", thousands(column.runs.into()))],
        false => Vec::new(),
    };
    facts.extend([
        ("Elapsed", overview.elapsed_ns.map_or_else(|| "-".to_owned(), span)),
        ("Connections", thousands(overview.connections)),
        ("Dialects", dialects(&overview.dialects)),
        ("Commands", thousands(overview.commands)),
        ("  timed", thousands(overview.timed)),
        ("  not timed", thousands(overview.untimed)),
        ("Errors", thousands(overview.errors)),
        ("Read", short_bytes(overview.bytes_read as f64)),
        ("Written", short_bytes(overview.bytes_written as f64)),
    ]);
    let ratio = |of: fn(&OverviewRatios) -> Option<Ratio>| overview.ratios.as_ref().and_then(of);
    let mut compared = |label, value: Option<f64>, ratio: Option<Ratio>, shown: fn(f64) -> String| {
        let value = value.map_or_else(|| "-".to_owned(), shown);
        facts.push((label, ratio.map_or(value.clone(), |ratio| format!("{value}  {TIMES} {ratio}"))));
        if repeated {
            facts.push(("  interval", interval(ratio)));
        }
    };
    compared("Commands/s", overview.commands_per_second, ratio(|ratios| ratios.commands_per_second), rate);
    compared("Bytes/s", overview.bytes_per_second, ratio(|ratios| ratios.bytes_per_second), short_bytes);
    overview.per_unit().into_iter().for_each(|(label, value, ratio)| compared(label, value, ratio, rate));
    let elapsed = |elapsed| Nanos(elapsed as i64).to_string();
    compared("Job", overview.job_elapsed(), ratio(|ratios| ratios.job_elapsed), elapsed);
    facts
}

/// Formats `3.1.1, 2.1 and 1 more`.
fn dialects(dialects: &[DialectCount]) -> String {
    let names: Vec<&str> = dialects.iter().map(|found| found.dialect.as_deref().unwrap_or("not seen")).collect();
    let names: Vec<String> = names.into_iter().map(clean).collect();
    match names.as_slice() {
        [] => "-".to_owned(),
        [first, second, rest @ ..] if !rest.is_empty() => format!("{first}, {second} and {} more", rest.len()),
        names => names.join(", "),
    }
}

/// Renders the quality of all columns, on one line if it is the same.
fn quality(page: &mut TextPage, comparison: &Comparison) {
    let columns = &comparison.columns;
    if columns.windows(2).all(|pair| pair[0].quality == pair[1].quality) {
        let first = columns.first().map_or("", |column| &column.quality);
        return page.beside(Paint::Plain, "- ", &format!("Every column: {}", clean(first)));
    }
    for (column, name) in columns.iter().zip(labels(columns)) {
        page.beside(Paint::Plain, "- ", &format!("{}: {}", shorten(&name, NAME_MAX), clean(&column.quality)));
    }
}

fn hanging(page: &mut TextPage, name: &str, text: &str, paint: Paint) {
    page.beside(paint, &format!("  {name:<NAME_MAX$}  "), &clean(text));
}

fn ramps(page: &mut TextPage, comparison: &Comparison) {
    let Some(ramps) = &comparison.ramps else { return };
    let names: Vec<String> = labels(&comparison.columns).iter().map(|name| shorten(name, NAME_MAX)).collect();
    page.heading("Ramps");
    for (at, _, ramp) in ramps.named(&comparison.columns) {
        let mut text = format!("{}, {}", ramp.workload, ramp.schedule);
        if let Some(overall) = ramp.overall_response_time_ns {
            text += &format!("; overall response time {}", unbroken(overall));
        }
        if let Some(users) = ramp.capacity {
            text += &format!("; capacity {}", unbroken(counted(users.into(), "user", "users")));
        }
        hanging(page, &names[at], &text, Paint::Plain);
    }
    let repeated = is_repeated(comparison);
    let all = ramps.points.iter().flat_map(|point| point_lines(point.users, &names, &point.total));
    let mut table = point_table(repeated).section("All groups", all);
    for found in comparison.groups.iter().filter(|group| group.headline) {
        let lines = ramps.points.iter().flat_map(|point| {
            let group = point.groups.iter().find(|group| group.group == found.group);
            group.map_or_else(Vec::new, |group| point_lines(point.users, &names, &group.cells))
        });
        table = table.section(whole_name(found), lines);
    }
    table.render(page);
    let loads: Vec<String> = ramps
        .named(&comparison.columns)
        .map(|(at, _, ramp)| format!("{} {}", names[at], unbroken(counted(ramp.users.into(), "user", "users"))))
        .collect();
    let text = format!("All other figures cover one load point of each ramp: {}.", loads.join(", "));
    page.paragraph(Paint::Faint, &text);
}

fn servers(page: &mut TextPage, comparison: &Comparison) {
    let Some(ramps) = &comparison.ramps else { return };
    let names: Vec<String> = labels(&comparison.columns).iter().map(|name| shorten(name, NAME_MAX)).collect();
    let lines = ramps.points.iter().filter(|point| !point.server.is_empty()).flat_map(|point| {
        let metrics = |column: usize| -> MeanAndMaximum<'_> {
            Box::new(move |name: &str| {
                let found = point.server.iter().find(|metric| metric.metric == name)?.cells[column]?;
                Some((found.mean, found.max))
            })
        };
        let known = |column: &usize| point.server.iter().any(|metric| metric.cells[*column].is_some());
        let part = |column: usize| Row::part(names[column].clone(), metrics(column));
        let heading = Row::heading(counted(point.users.into(), "user", "users"));
        std::iter::once(heading).chain((0..names.len()).filter(known).map(part)).collect::<Vec<_>>()
    });
    let table = server_table().section("Servers", lines);
    if !table.is_empty() {
        table.render(page).note(page, "Means of a sample a second.");
    }
}

fn slices(page: &mut TextPage, comparison: &Comparison) {
    let Some(slices) = &comparison.slices else { return };
    let names: Vec<String> = labels(&comparison.columns).iter().map(|name| shorten(name, NAME_MAX)).collect();
    let repeated = is_repeated(comparison);
    let listed = slices.entries.iter().take(SLICES_SHOWN);
    let lines = listed.flat_map(|slice| lines(&crate::text::slices::name(&slice.key), &names, &slice.cells));
    let table = table(repeated).names(SLICE_NAMES).section(crate::text::slices::heading(&slices.by), lines);
    let rendered = table.render_paths(page);
    let more = slices.entries.len().saturating_sub(SLICES_SHOWN) as u64 + slices.left_out;
    let more = match more {
        0 => String::new(),
        more => format!(" {} waited less: --format json lists them.", counted(more, "slice", "slices")),
    };
    rendered.note(page, &format!("Sorted by the longest total wait in any column.{more}"));
}

fn whole_name(group: &ComparedGroup) -> String {
    group.part_of.as_ref().map_or_else(|| group.group.clone(), |whole| format!("{whole}: {}", group.group))
}

fn point_lines<'a>(users: u32, names: &[String], cells: &'a [Option<PointCell>]) -> Vec<Row<&'a PointCell>> {
    let mut lines = vec![Row::heading(counted(users.into(), "user", "users"))];
    let known = names.iter().zip(cells).filter_map(|(name, point)| Some((name, point.as_ref()?)));
    lines.extend(known.map(|(name, point)| Row::part(name.clone(), point)));
    if lines.len() > 1 { lines } else { Vec::new() }
}

fn point_table<'a>(repeated: bool) -> Table<'a, &'a PointCell> {
    let cell: for<'p> fn(&'p &'a PointCell) -> &'p ComparisonCell = |point| &point.cell;
    let rate_head = ColumnHead::new("per_second", "/s", Unit::PerSecond, "commands per second");
    let mut table = Table::new()
        .column(rate_head, |point: &&PointCell| point.per_second.map(per_second))
        .column(times_head("per_second", "/s"), |point| point.per_second_ratio.map(shown));
    if repeated {
        table = table.column(interval_head("per_second", "/s").expendable(1), |point| interval(point.per_second_ratio));
    }
    let data = ColumnHead::new("bytes_per_second", "Data", Unit::BytesPerSecond, "file data read and written");
    table = table
        .column(data, |point| {
            let shown = |data: f64| Value::Number(data, format!("{}/s", bytes(data.round() as u64)));
            point.bytes_per_second.map(shown)
        })
        .column(times_head("bytes_per_second", "Data").expendable(4), |point| point.bytes_per_second_ratio.map(shown));
    table = compared(table, ("Median", 0), cell, |times| times.p50, |ratios| ratios.p50, false);
    table = compared(table, ("p95", 0), cell, |times| times.p95, |ratios| ratios.p95, repeated);
    table = compared(table, ("p99", 2), cell, |times| times.p99, |ratios| ratios.p99, false);
    table = compared(table, ("Average", 1), cell, |times| times.mean, |ratios| ratios.mean, false);
    table.column(ERRORS.expendable(3), |point| nonzero(point.cell.errors).shown_if(point.cell.timed > 0))
}

/// Returns the column with the ratio of the column to its left.
fn times_head(key: &str, title: &str) -> ColumnHead {
    let head = ColumnHead::new("", "", Unit::Ratio, "ratio to the baseline").keyed(format!("{key}_ratio"));
    head.titled(format!("{title} {TIMES}")).shortened(TIMES)
}

/// Returns the column with the interval of the ratio to its left.
fn interval_head(key: &str, title: &str) -> ColumnHead {
    let about = "95% interval of the ratio";
    let head = ColumnHead::new("", "", Unit::Text, about).keyed(format!("{key}_interval")).right_aligned();
    head.titled(format!("{title} {INTERVAL}")).shortened(INTERVAL)
}

fn shown(ratio: Ratio) -> Value {
    Value::Number(ratio.value, ratio.to_string())
}

/// Adds a response time and its ratio to the baseline, and with `repeated` the interval of the ratio.
fn compared<'a, T: 'a>(
    table: Table<'a, T>,
    (title, expendable): (&'static str, u8),
    cell: fn(&T) -> &ComparisonCell,
    time: fn(&ResponseTime) -> Option<Nanos>,
    ratio: fn(&Ratios) -> Option<Ratio>,
    repeated: bool,
) -> Table<'a, T> {
    let ratio = move |row: &T| Some(cell(row)).filter(|cell| cell.timed > 0)?.ratios.as_ref().and_then(ratio);
    let key = title.to_lowercase().replace(' ', "_");
    let head = ColumnHead::new("", title, Unit::Duration, "response time").keyed(format!("{key}_ns"));
    let table = table
        .column(head.expendable(expendable), move |row| {
            Value::from(time(&cell(row).response_time)).shown_if(cell(row).timed > 0)
        })
        .column(times_head(&key, title).expendable(expendable), move |row| ratio(row).map(shown));
    if !repeated {
        return table;
    }
    table.column(interval_head(&key, title).expendable(expendable), move |row| interval(ratio(row)))
}

fn tables(page: &mut TextPage, comparison: &Comparison) {
    let names: Vec<String> = labels(&comparison.columns).iter().map(|name| shorten(name, NAME_MAX)).collect();
    let repeated = is_repeated(comparison);
    let mut groups = Vec::new();
    let mut all_above = Some(&comparison.headline.cells);
    for group in &comparison.groups {
        if !group.headline
            && let Some(cells) = all_above.take()
        {
            groups.extend(lines("Total", &names, cells));
        }
        groups.extend(lines(&whole_name(group), &names, &group.cells));
    }
    if let Some(cells) = all_above {
        groups.extend(lines("Total", &names, cells));
    }
    let both = comparison.commands.iter().filter(|command| command.members.is_some());
    let both = both.flat_map(|command| lines(&paired_name(command), &names, &command.cells));
    let mut table = table(repeated).section("Groups", groups).section("SMB2 and SMB1 commands", both);
    for protocol in [Protocol::Smb1, Protocol::Smb2] {
        let commands = comparison.commands.iter().filter(|command| command.members.is_none());
        let commands = commands.filter(|command| section_of(command, comparison) == protocol);
        let lines = commands.flat_map(|command| lines(&name_of(command, protocol), &names, &command.cells));
        table = table.section(format!("{} commands", names::protocol(protocol)), lines);
    }
    table.render(page);
    let base = comparison.columns.first().map_or("", |column| column.name.as_str());
    let text = format!(
        "Times are response times; Total wait is their sum. {TIMES} = ratio to the baseline ({}, the first column). \
         A capture without a line has no such command.{}",
        clean(base),
        if repeated { RUNS } else { "" },
    );
    page.paragraph(Paint::Faint, &text);
}

/// Returns the section of a command. If the only SMB1 command in all captures is the NEGOTIATE that opens SMB2
/// connections (MS-SMB2 3.3.5.3), it is listed under SMB2, so that SMB1 does not seem to be in use.
fn section_of(command: &ComparedCommand, comparison: &Comparison) -> Protocol {
    let mut smb1 = comparison.commands.iter().filter(|command| command.protocol == Protocol::Smb1);
    let only_opens = smb1.all(|command| command.command == "SMB_COM_NEGOTIATE")
        && comparison.commands.iter().any(|command| command.protocol == Protocol::Smb2)
        && comparison.commands.iter().all(|command| command.members.is_none());
    if only_opens { Protocol::Smb2 } else { command.protocol }
}

/// Formats an SMB2 command and its SMB1 equivalents: `READ = READ_ANDX, READ_RAW`.
fn paired_name(command: &ComparedCommand) -> String {
    let mut smb1: Vec<&str> = Vec::new();
    for name in command.members.iter().flatten().flatten().filter(|name| **name != command.command) {
        let short = ["SMB_COM_", "TRANS2_", "NT_TRANSACT_"].iter().find_map(|prefix| name.strip_prefix(prefix));
        let short = short.unwrap_or(name);
        if !smb1.contains(&short) {
            smb1.push(short);
        }
    }
    let waiting = if command.waiting { " (waiting)" } else { "" };
    // Some have the same name in both protocols, such as ECHO.
    smb1.retain(|name| *name != command.command);
    match smb1.is_empty() {
        true => format!("{}{waiting}", command.command),
        false => format!("{} = {}{waiting}", command.command, smb1.join(", ")),
    }
}

fn name_of(command: &ComparedCommand, section: Protocol) -> String {
    let name = command.command.strip_prefix("SMB_COM_").unwrap_or(&command.command);
    match command.waiting {
        true => format!("{name} (waiting)"),
        false if section != command.protocol => format!("{name} (SMB1)"),
        false => name.to_owned(),
    }
}

/// Formats the confidence interval of a ratio, or the range of few runs. Parentheses mark insignificant ones.
fn interval(ratio: Option<Ratio>) -> String {
    let Some((ratio, certainty)) = ratio.and_then(|ratio| Some((ratio, ratio.certainty?))) else {
        return String::new();
    };
    let ends = ratio.interval.map(|interval| (interval.low, interval.high)).or(certainty.range);
    let Some((low, high)) = ends else { return String::new() };
    let [low, high] = [low, high].map(|value| Ratio { value, ..ratio }.to_string());
    if certainty.shown { format!("{low}–{high}") } else { format!("({low}–{high})") }
}

fn table<'a>(repeated: bool) -> Table<'a, &'a ComparisonCell> {
    let cell: for<'c> fn(&'c &'a ComparisonCell) -> &'c ComparisonCell = |cell| cell;
    let mut table = Table::new()
        .column(COUNT, |cell: &&ComparisonCell| cell.count)
        .column(ERRORS.expendable(5), |cell| nonzero(cell.errors));
    table = compared(table, ("Median", 0), cell, |times| times.p50, |ratios| ratios.p50, false);
    table = compared(table, ("p95", 0), cell, |times| times.p95, |ratios| ratios.p95, repeated);
    table = compared(table, ("p99", 2), cell, |times| times.p99, |ratios| ratios.p99, false);
    table = compared(table, ("Average", 3), cell, |times| times.mean, |ratios| ratios.mean, repeated);
    let slowest = ColumnHead::new("max_ns", "Slowest", Unit::Duration, "longest response time").expendable(4);
    table = table.column(slowest, |cell| Value::from(cell.response_time.max).shown_if(cell.timed > 0));
    compared(table, ("Total wait", 1), cell, |times| times.sum, |ratios| ratios.sum, false)
}

fn lines<'a>(name: &str, names: &[String], cells: &'a [Option<ComparisonCell>]) -> Vec<Row<&'a ComparisonCell>> {
    let known = names.iter().zip(cells).filter_map(|(name, cell)| Some(Row::part(name.clone(), cell.as_ref()?)));
    std::iter::once(Row::heading(clean(name))).chain(known).collect()
}

fn notes(page: &mut TextPage, comparison: &Comparison) {
    let caveats: Vec<&ComparisonNote> = comparison.notes.iter().filter(|note| note.kind != NoteKind::Setup).collect();
    if caveats.is_empty() {
        return;
    }
    page.heading("Caveats");
    let names = labels(&comparison.columns);
    for ComparisonNote { column, text, .. } in caveats {
        let name = names.get(*column).map_or("", String::as_str);
        hanging(page, &shorten(name, NAME_MAX), text, Paint::Warning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits_and_a_unit() {
        let shown = [0.0, 999.0, 999.6, 1_234.0, 12_345_678.0, 999_600_000.0].map(short_bytes);
        assert_eq!(shown, ["0 B", "999 B", "1.00 kB", "1.23 kB", "12.3 MB", "1.00 GB"]);
    }

    #[test]
    fn more_than_two_dialects_are_counted() {
        let of = |names: &[Option<&str>]| {
            let all: Vec<DialectCount> =
                names.iter().map(|name| DialectCount { dialect: name.map(str::to_owned), connections: 1 }).collect();
            dialects(&all)
        };
        assert_eq!(of(&[Some("3.1.1"), None]), "3.1.1, not seen");
        assert_eq!(of(&[Some("3.1.1"), Some("2.1"), None]), "3.1.1, 2.1 and 1 more");
    }
}
