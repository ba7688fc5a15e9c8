//! Aligned tables that fit a width: less important columns are left out first, then the name column shrinks.

use super::{Audience, ColumnHead, Unit};
use crate::format::{clean, shorten};
use crate::page::{Paint, TextPage, escaped};
use std::ops::RangeInclusive;

#[derive(Debug, Clone)]
pub(crate) struct TableLine {
    pub(super) name: String,
    pub(super) indent: usize,
    pub(super) cells: Vec<String>,
    /// Style of a text that runs across all columns, if the line is one.
    pub(super) across: Option<Paint>,
}

impl TableLine {
    pub(crate) fn new(name: impl Into<String>) -> TableLine {
        TableLine { name: name.into(), indent: 0, cells: Vec::new(), across: None }
    }

    pub(crate) fn across(paint: Paint, text: impl Into<String>) -> TableLine {
        TableLine { across: Some(paint), ..TableLine::new(text) }
    }

    pub(crate) fn with_cells(self, cells: Vec<String>) -> TableLine {
        TableLine { cells, ..self }
    }

    pub(crate) fn indented(self, indent: usize) -> TableLine {
        TableLine { indent, ..self }
    }

    /// Returns true if the name lost its beginning, or does not fit this width.
    fn is_cut(&self, width: usize) -> bool {
        self.indent + chars(&self.name) > width || self.name.starts_with('…')
    }
}

#[derive(Debug, Clone)]
pub(super) struct TableSection {
    pub(super) heading: String,
    pub(super) lines: Vec<TableLine>,
}

/// Cells of a [`Table`](super::Table) for people: sections with common columns, so that they are aligned.
#[derive(Debug, Clone)]
pub(crate) struct TableLayout {
    pub(super) title: Option<String>,
    pub(super) columns: Vec<ColumnHead>,
    pub(super) sections: Vec<TableSection>,
    names: RangeInclusive<usize>,
}

struct ColumnWidths {
    widths: Vec<usize>,
    kept: Vec<usize>,
    name_width: usize,
}

/// Range of the width of the name column. Columns are left out before it gets narrower than the minimum.
const NAMES: RangeInclusive<usize> = 16..=34;

impl Default for TableLayout {
    fn default() -> TableLayout {
        TableLayout { title: None, columns: Vec::new(), sections: Vec::new(), names: NAMES }
    }
}

impl TableLayout {
    pub(crate) fn add_column(&mut self, column: ColumnHead) {
        self.columns.push(column);
    }

    pub(crate) fn titled(self, title: impl Into<String>) -> TableLayout {
        TableLayout { title: Some(title.into()), ..self }
    }

    pub(crate) fn names(self, names: RangeInclusive<usize>) -> TableLayout {
        TableLayout { names, ..self }
    }

    pub(crate) fn add_section(&mut self, heading: String, lines: Vec<TableLine>) {
        if !lines.is_empty() {
            self.sections.push(TableSection { heading, lines });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// Returns the minimum width of the columns, including the blanks before them.
    pub(crate) fn room(&self) -> usize {
        self.columns.iter().map(|column| column.gap + column.least).sum()
    }

    /// Writes the sections as text, each after an empty line.
    pub(super) fn render(mut self, page: &mut TextPage) -> RenderedTable {
        self.align_units();
        let ColumnWidths { widths, kept, name_width } = self.layout(page.width());
        let columns = |cells: &dyn Fn(usize) -> String| -> String {
            kept.iter().map(|column| aligned(&self.columns[*column], &cells(*column), widths[*column])).collect()
        };
        let mut title = self.title.as_deref();
        for section in &self.sections {
            match title.take() {
                Some(title) => page.heading(title),
                None => page.blank(),
            }
            let heads = kept.iter().map(|column| self.columns[*column].text_title().lines().count());
            for at in 0..heads.chain([section.heading.lines().count()]).max().unwrap_or(0) {
                let of = |head: &str| head.lines().nth(at).unwrap_or_default().to_owned();
                let heading = shorten(&of(&section.heading), name_width);
                let heads = columns(&|column| of(self.columns[column].text_title()));
                page.line(Paint::Heading, format!("{heading:<name_width$}{heads}").trim_end());
            }
            for line in &section.lines {
                let indent = line.indent;
                if let Some(paint) = line.across {
                    page.line(paint, &format!("{:indent$}{}", "", line.name));
                    continue;
                }
                let name_width = name_width.saturating_sub(indent);
                let name = shorten(&line.name, name_width);
                let cells = columns(&|column| line.cells.get(column).cloned().unwrap_or_default());
                page.line(Paint::Plain, format!("{:indent$}{name:<name_width$}{cells}", "").trim_end());
            }
        }
        let head = |column: usize| &self.columns[column];
        let explained = kept.iter().map(|column| head(*column)).filter(|head| head.is_explained);
        let left_out = self.used_columns().filter(|column| !kept.contains(column)).map(head);
        RenderedTable {
            explained: explained.map(|head| format!("{}: {}.", head.title, head.about)).collect(),
            left_out: left_out.map(|head| head.title.to_string()).collect(),
            has_cut_names: self.lines().any(|line| line.is_cut(name_width)),
        }
    }

    /// Pads short units of a column (`s` below `ms`), so that the numbers are aligned.
    fn align_units(&mut self) {
        for column in 0..self.columns.len() {
            if !matches!(self.columns[column].unit, Unit::Duration | Unit::Bytes) {
                continue;
            }
            let cells = self.lines().filter_map(|line| line.cells.get(column));
            let width = cells.filter_map(|cell| unit(cell)).map(chars).max().unwrap_or(0);
            let lines = self.sections.iter_mut().flat_map(|section| &mut section.lines);
            for cell in lines.filter_map(|line| line.cells.get_mut(column)) {
                let missing = unit(cell).map_or(0, |unit| width - chars(unit));
                cell.push_str(&" ".repeat(missing));
            }
        }
    }

    pub(super) fn with_shorter(mut self, width: usize, shorter: fn(&str, usize) -> String) -> TableLayout {
        let room = self.layout(width).name_width;
        for line in self.sections.iter_mut().flat_map(|section| &mut section.lines) {
            line.name = shorter(&line.name, room);
        }
        self
    }

    fn layout(&self, width: usize) -> ColumnWidths {
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.column_width(column)).collect();
        let named = self.lines().map(|line| line.indent + chars(&line.name));
        let headings = self.sections.iter().flat_map(|section| section.heading.lines()).map(chars);
        let wanted = named.chain(headings).max().unwrap_or(0).clamp(1, *self.names.end());
        let kept = self.fitting_columns(&widths, width.saturating_sub(wanted.min(*self.names.start())));
        let name_width = wanted.min(width.saturating_sub(self.taken(&kept, &widths)).max(*self.names.start()));
        ColumnWidths { widths, kept, name_width }
    }

    pub(super) fn used_columns(&self) -> impl Iterator<Item = usize> {
        let is_used = |column: &usize| self.lines().any(|line| line.cells.get(*column).is_some_and(|c| !c.is_empty()));
        (0..self.columns.len()).filter(is_used)
    }

    /// Returns the columns with at least one cell, leaving out the most expendable ones until the rest fits.
    fn fitting_columns(&self, widths: &[usize], room: usize) -> Vec<usize> {
        let mut kept: Vec<usize> = self.used_columns().collect();
        while self.taken(&kept, widths) > room {
            let expendable = kept.iter().filter(|column| self.columns[**column].expendable > 0);
            let Some(victim) = expendable.max_by_key(|column| self.columns[**column].expendable).copied() else {
                break;
            };
            kept.retain(|column| *column != victim);
        }
        kept
    }

    fn column_width(&self, column: usize) -> usize {
        let head = &self.columns[column];
        let cells = self.lines().filter_map(|line| line.cells.get(column)).map(|cell| chars(cell));
        cells.chain(head.text_title().lines().map(chars)).max().unwrap_or(0).max(head.least)
    }

    fn taken(&self, columns: &[usize], widths: &[usize]) -> usize {
        columns.iter().map(|column| self.columns[*column].gap + widths[*column]).sum()
    }

    fn lines(&self) -> impl Iterator<Item = &TableLine> {
        self.sections.iter().flat_map(|section| &section.lines).filter(|line| line.across.is_none())
    }
}

/// Notes for the reader of a text table.
#[derive(Debug, Clone, Default)]
pub(crate) struct RenderedTable {
    /// Descriptions of the columns shown, for those whose titles don't explain themselves.
    explained: Vec<String>,
    /// Titles of the columns that have content but did not fit.
    left_out: Vec<String>,
    /// A name did not fit.
    has_cut_names: bool,
}

impl RenderedTable {
    pub(crate) fn and(mut self, other: RenderedTable) -> RenderedTable {
        self.explained.extend(other.explained);
        self.left_out.extend(other.left_out);
        self.has_cut_names |= other.has_cut_names;
        self
    }

    /// Writes a note if names were cut, and nothing else.
    pub(crate) fn note_cuts(self, page: &mut TextPage) {
        RenderedTable { has_cut_names: self.has_cut_names, ..RenderedTable::default() }.note(page, "");
    }

    /// Writes a note: the text, explanations of columns, and the columns that were left out for lack of room.
    pub(crate) fn note(mut self, page: &mut TextPage, text: &str) {
        self.left_out.dedup();
        let left_out = match self.left_out.as_slice() {
            [] => String::new(),
            left_out => format!("A wider page (--width) also shows {}.", left_out.join(", ")),
        };
        let cut = if self.has_cut_names { "Names with … are cut; --format json has all of them." } else { "" };
        let explained = self.explained.iter().map(String::as_str);
        let parts = std::iter::once(text.trim()).chain(explained).chain([&*left_out, cut]);
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        if !parts.is_empty() {
            page.paragraph(Paint::Faint, &parts.join(" "));
        }
    }
}

fn aligned(ColumnHead { gap, is_left_aligned, .. }: &ColumnHead, cell: &str, width: usize) -> String {
    if *is_left_aligned { format!("{:gap$}{cell:<width$}", "") } else { format!("{:gap$}{cell:>width$}", "") }
}

/// Returns the unit of a formatted number, such as `ms` of `38.3 ms`.
fn unit(cell: &str) -> Option<&str> {
    let (number, unit) = cell.rsplit_once(' ')?;
    let is_number = number.ends_with(|c: char| c.is_ascii_digit());
    (is_number && !unit.is_empty() && unit.chars().all(char::is_alphabetic)).then_some(unit)
}

/// Formats rows in left-aligned columns, as a list outside of a page.
pub fn listed<const N: usize>(rows: &[[String; N]]) -> String {
    let rows: Vec<[String; N]> = rows.iter().map(|row| std::array::from_fn(|column| clean(&row[column]))).collect();
    let widths: [usize; N] = std::array::from_fn(|at| rows.iter().map(|row| chars(&row[at])).max().unwrap_or(0));
    let line = |row: &[String; N]| {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

pub(super) fn render(table: &TableLayout, page: &mut TextPage) {
    if table.is_empty() {
        return;
    }
    if let Some(title) = &table.title {
        page.heading(title);
    }
    let is_shown = |column: &usize| table.columns[*column].audience != Audience::Terminal;
    let columns: Vec<usize> = table.used_columns().filter(is_shown).collect();
    let heads: Vec<&ColumnHead> = columns.iter().map(|column| &table.columns[*column]).collect();
    for section in &table.sections {
        let titles = heads.iter().map(|head| one_line(&head.title));
        let titles = std::iter::once(one_line(&section.heading)).chain(titles);
        let rule = heads.iter().map(|head| if head.is_left_aligned { "---" } else { "---:" });
        let mut text = row(titles.map(|title| escaped(&title)));
        text += &format!("|---|{}|\n", rule.collect::<Vec<_>>().join("|"));
        section.lines.iter().for_each(|line| text += &row(cells(line, &columns)));
        page.block(&text);
    }
    for head in heads.iter().filter(|head| !head.about.is_empty()) {
        page.explain(&one_line(&head.title), head.about);
    }
}

fn cells<'a>(line: &'a TableLine, columns: &'a [usize]) -> impl Iterator<Item = String> + 'a {
    let indent = "\u{a0}".repeat(line.indent);
    let name = match line.across {
        Some(Paint::Heading) => format!("**{}**", escaped(&line.name)),
        _ => escaped(line.name.trim()),
    };
    let cell = |column: &usize| escaped(line.cells.get(*column).map_or("", String::as_str));
    std::iter::once(indent + &name).chain(columns.iter().map(cell))
}

fn row(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn one_line(title: &str) -> String {
    title.split_whitespace().collect::<Vec<_>>().join(" ")
}
