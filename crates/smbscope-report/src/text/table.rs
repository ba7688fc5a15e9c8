//! Aligned tables that fit a width: less important columns go first, then the name column gets shorter.

use crate::format::{clean, shorten};
use crate::text::page::Page;
use crate::text::style::Paint;
use std::ops::RangeInclusive;

/// A column right of the name column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) head: &'static str,
    /// Columns with the largest number go first when the table is too wide; 0 never goes.
    pub(crate) expendable: u8,
}

impl Column {
    /// Columns by their heads, each with how expendable it is.
    pub(crate) fn list(columns: &[(&'static str, u8)]) -> Vec<Column> {
        columns.iter().map(|(head, expendable)| Column { head, expendable: *expendable }).collect()
    }
}

/// A line of a table.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) indent: usize,
    /// One for each column; an empty line has none.
    pub(crate) cells: Vec<String>,
}

impl Line {
    /// A line that is no part of another.
    pub(crate) fn new(name: impl Into<String>, cells: Vec<String>) -> Line {
        Line { name: name.into(), indent: 0, cells }
    }

    /// A line below the one that it is a part of.
    pub(crate) fn part(name: impl Into<String>, cells: Vec<String>) -> Line {
        Line { name: name.into(), indent: 2, cells }
    }
}

/// Lines below a heading of their own.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) heading: String,
    pub(crate) lines: Vec<Line>,
}

/// Sections that share their columns, so that they stand aligned below each other.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) sections: Vec<Section>,
}

/// How the table fits its page.
struct Layout {
    /// Of all columns.
    widths: Vec<usize>,
    /// The columns that there is room for.
    kept: Vec<usize>,
    name_width: usize,
}

/// The name column: narrowest before a column is given up for it, and widest.
const NAMES: RangeInclusive<usize> = 16..=34;

impl Table {
    /// Prints the sections, with an empty line before each. Returns the heads of the columns that had something to say
    /// and no room.
    pub(crate) fn render(&self, page: &mut Page) -> Vec<&'static str> {
        self.render_named(page, &NAMES)
    }

    /// The same with another room for names.
    pub(crate) fn render_named(&self, page: &mut Page, names: &RangeInclusive<usize>) -> Vec<&'static str> {
        let Layout { widths, kept, name_width } = self.layout(page.width(), names);
        for section in &self.sections {
            let mut head = format!("{:<name_width$}", shorten(&section.heading, name_width));
            for column in &kept {
                head += &format!(" {:>width$}", self.columns[*column].head, width = widths[*column]);
            }
            page.heading(head.trim_end());
            for line in &section.lines {
                let name_width = name_width.saturating_sub(line.indent);
                let mut text = " ".repeat(line.indent);
                text += &format!("{:<name_width$}", shorten(&line.name, name_width));
                for column in &kept {
                    let cell = line.cells.get(*column).map_or("", String::as_str);
                    text += &format!(" {cell:>width$}", width = widths[*column]);
                }
                page.line(Paint::Plain, text.trim_end());
            }
        }
        self.used_columns().filter(|column| !kept.contains(column)).map(|column| self.columns[column].head).collect()
    }

    /// The room for names.
    pub(crate) fn name_width(&self, width: usize, names: &RangeInclusive<usize>) -> usize {
        self.layout(width, names).name_width
    }

    fn layout(&self, width: usize, names: &RangeInclusive<usize>) -> Layout {
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.column_width(column)).collect();
        let named = self.lines().map(|line| line.indent + chars(&line.name));
        let headings = self.sections.iter().map(|section| chars(&section.heading));
        let wanted = named.chain(headings).max().unwrap_or(0).clamp(1, *names.end());
        let kept = self.fitting_columns(&widths, width.saturating_sub(wanted.min(*names.start())));
        let taken: usize = kept.iter().map(|column| 1 + widths[*column]).sum();
        let name_width = wanted.min(width.saturating_sub(taken).max(*names.start()));
        Layout { widths, kept, name_width }
    }

    /// Columns that have a cell at all.
    fn used_columns(&self) -> impl Iterator<Item = usize> {
        let is_used = |column: &usize| self.lines().any(|line| line.cells.get(*column).is_some_and(|c| !c.is_empty()));
        (0..self.columns.len()).filter(is_used)
    }

    /// Columns that have a cell at all, without the most expendable ones until the rest fits.
    fn fitting_columns(&self, widths: &[usize], room: usize) -> Vec<usize> {
        let mut kept: Vec<usize> = self.used_columns().collect();
        while kept.iter().map(|column| 1 + widths[*column]).sum::<usize>() > room {
            let expendable = kept.iter().filter(|column| self.columns[**column].expendable > 0);
            let Some(victim) = expendable.max_by_key(|column| self.columns[**column].expendable).copied() else {
                break;
            };
            kept.retain(|column| *column != victim);
        }
        kept
    }

    fn column_width(&self, column: usize) -> usize {
        let cells = self.lines().filter_map(|line| line.cells.get(column)).map(|cell| chars(cell));
        cells.chain([chars(self.columns[column].head)]).max().unwrap_or(0)
    }

    fn lines(&self) -> impl Iterator<Item = &Line> {
        self.sections.iter().flat_map(|section| &section.lines)
    }
}

/// Rows in columns aligned to the left, each as wide as what is in it: a list that is no page.
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
