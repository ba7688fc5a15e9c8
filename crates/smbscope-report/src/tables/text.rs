//! Aligned tables that fit a width: less important columns are left out first, then the name column shrinks.

use crate::format::{clean, shorten};
use crate::page::{Paint, TextPage};
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// A column to the right of the name column.
#[derive(Debug, Clone)]
pub(crate) struct TextColumn {
    head: Cow<'static, str>,
    /// Order in which columns are left out if the table is too wide, highest number first. 0 is never left out.
    expendable: u8,
    least: usize,
    gap: usize,
    left_aligned: bool,
}

impl TextColumn {
    /// Creates a right-aligned column that is never left out.
    pub(crate) fn new(head: impl Into<Cow<'static, str>>) -> TextColumn {
        TextColumn { head: head.into(), expendable: 0, least: 0, gap: 1, left_aligned: false }
    }

    pub(crate) fn at_least(self, least: usize) -> TextColumn {
        TextColumn { least, ..self }
    }

    /// Puts two blanks before the column instead of one.
    pub(crate) fn set_off(self) -> TextColumn {
        TextColumn { gap: 2, ..self }
    }

    /// Aligns the column to the left, for bars and words.
    pub(crate) fn left_aligned(self) -> TextColumn {
        TextColumn { left_aligned: true, ..self }
    }

    fn aligned(&self, cell: &str, width: usize) -> String {
        let gap = self.gap;
        if self.left_aligned { format!("{:gap$}{cell:<width$}", "") } else { format!("{:gap$}{cell:>width$}", "") }
    }
}

impl From<&'static str> for TextColumn {
    fn from(head: &'static str) -> TextColumn {
        TextColumn::new(head)
    }
}

impl From<(&'static str, u8)> for TextColumn {
    fn from((head, expendable): (&'static str, u8)) -> TextColumn {
        TextColumn { expendable, ..TextColumn::new(head) }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct TextTableLine {
    name: String,
    indent: usize,
    cells: Vec<String>,
    /// Style of a text that runs across all columns, if the line is one.
    across: Option<Paint>,
}

impl TextTableLine {
    pub(crate) fn new(name: impl Into<String>) -> TextTableLine {
        TextTableLine { name: name.into(), indent: 0, cells: Vec::new(), across: None }
    }

    pub(crate) fn across(paint: Paint, text: impl Into<String>) -> TextTableLine {
        TextTableLine { across: Some(paint), ..TextTableLine::new(text) }
    }

    pub(crate) fn with_cells(self, cells: Vec<String>) -> TextTableLine {
        TextTableLine { cells, ..self }
    }

    pub(crate) fn indented(self, indent: usize) -> TextTableLine {
        TextTableLine { indent, ..self }
    }
}

#[derive(Debug, Clone)]
struct TextTableSection {
    heading: String,
    lines: Vec<TextTableLine>,
}

/// Layout of a [`Table`](super::Table): sections with common columns, so that they are aligned.
#[derive(Debug, Clone)]
pub(crate) struct TextTable {
    title: Option<String>,
    columns: Vec<TextColumn>,
    sections: Vec<TextTableSection>,
    names: RangeInclusive<usize>,
}

struct TextTableLayout {
    widths: Vec<usize>,
    kept: Vec<usize>,
    name_width: usize,
}

/// Range of the width of the name column. Columns are left out before it gets narrower than the minimum.
const NAMES: RangeInclusive<usize> = 16..=34;

impl Default for TextTable {
    fn default() -> TextTable {
        TextTable { title: None, columns: Vec::new(), sections: Vec::new(), names: NAMES }
    }
}

impl TextTable {
    pub(crate) fn add_column(&mut self, column: TextColumn) {
        self.columns.push(column);
    }

    pub(crate) fn titled(self, title: impl Into<String>) -> TextTable {
        TextTable { title: Some(title.into()), ..self }
    }

    pub(crate) fn names(self, names: RangeInclusive<usize>) -> TextTable {
        TextTable { names, ..self }
    }

    pub(crate) fn add_section(&mut self, heading: String, lines: Vec<TextTableLine>) {
        if !lines.is_empty() {
            self.sections.push(TextTableSection { heading, lines });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// Returns the minimum width of the columns, including the blanks before them.
    pub(crate) fn room(&self) -> usize {
        self.columns.iter().map(|column| column.gap + column.least).sum()
    }

    /// Writes the sections, each after an empty line. Returns the headings of the columns that have content but did not
    /// fit.
    pub(crate) fn render(&self, page: &mut TextPage) -> Vec<Cow<'static, str>> {
        let TextTableLayout { widths, kept, name_width } = self.layout(page.width());
        let columns = |cells: &dyn Fn(usize) -> String| -> String {
            kept.iter().map(|column| self.columns[*column].aligned(&cells(*column), widths[*column])).collect()
        };
        let mut title = self.title.as_deref();
        for section in &self.sections {
            match title.take() {
                Some(title) => page.heading(title),
                None => page.blank(),
            }
            let heads = kept.iter().map(|column| self.columns[*column].head.lines().count());
            for at in 0..heads.chain([section.heading.lines().count()]).max().unwrap_or(0) {
                let of = |head: &str| head.lines().nth(at).unwrap_or_default().to_owned();
                let heading = shorten(&of(&section.heading), name_width);
                let heads = columns(&|column| of(&self.columns[column].head));
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
        let left_out = self.used_columns().filter(|column| !kept.contains(column));
        left_out.map(|column| self.columns[column].head.clone()).collect()
    }

    pub(crate) fn with_shorter(mut self, width: usize, shorter: fn(&str, usize) -> String) -> TextTable {
        let room = self.layout(width).name_width;
        for line in self.sections.iter_mut().flat_map(|section| &mut section.lines) {
            line.name = shorter(&line.name, room);
        }
        self
    }

    fn layout(&self, width: usize) -> TextTableLayout {
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.column_width(column)).collect();
        let named = self.lines().map(|line| line.indent + chars(&line.name));
        let headings = self.sections.iter().flat_map(|section| section.heading.lines()).map(chars);
        let wanted = named.chain(headings).max().unwrap_or(0).clamp(1, *self.names.end());
        let kept = self.fitting_columns(&widths, width.saturating_sub(wanted.min(*self.names.start())));
        let name_width = wanted.min(width.saturating_sub(self.taken(&kept, &widths)).max(*self.names.start()));
        TextTableLayout { widths, kept, name_width }
    }

    fn used_columns(&self) -> impl Iterator<Item = usize> {
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
        let TextColumn { head, least, .. } = &self.columns[column];
        let cells = self.lines().filter_map(|line| line.cells.get(column)).map(|cell| chars(cell));
        cells.chain(head.lines().map(chars)).max().unwrap_or(0).max(*least)
    }

    fn taken(&self, columns: &[usize], widths: &[usize]) -> usize {
        columns.iter().map(|column| self.columns[*column].gap + widths[*column]).sum()
    }

    fn lines(&self) -> impl Iterator<Item = &TextTableLine> {
        self.sections.iter().flat_map(|section| &section.lines).filter(|line| line.across.is_none())
    }
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
