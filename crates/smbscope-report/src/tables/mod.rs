//! Tables whose columns are declared once: with a title for people, a key for programs, or both.

pub(crate) mod text;

use crate::format::{bytes, or_dash, shorten_path, thousands};
use crate::page::{Paint, TextPage};
use smbscope_model::Nanos;
use smbscope_stats::DurationStatistics;
use std::borrow::Cow;
use std::ops::RangeInclusive;
use text::{TextColumn, TextTable, TextTableLine};

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Absent,
    Count(u64),
    Bytes(u64),
    /// Duration. None is a dash for people: too few values.
    Time(Option<Nanos>),
    Text(String),
    /// Value that only programs see.
    Hidden(Box<Value>),
}

impl Value {
    /// Hides the value from people if `known` is false.
    pub(crate) fn shown_if(self, known: bool) -> Value {
        if known { self } else { Value::Hidden(Box::new(self)) }
    }

    fn shown(self) -> String {
        match self {
            Value::Absent | Value::Hidden(_) => String::new(),
            Value::Count(count) => thousands(count),
            Value::Bytes(count) => bytes(count),
            Value::Time(time) => or_dash(time),
            Value::Text(text) => text,
        }
    }

    /// Formats for programs: plain integers, durations in nanoseconds. Unknown is empty.
    fn plain(self) -> String {
        match self {
            Value::Absent | Value::Time(None) => String::new(),
            Value::Count(count) | Value::Bytes(count) => count.to_string(),
            Value::Time(Some(Nanos(ns))) => ns.to_string(),
            Value::Text(text) => text,
            Value::Hidden(value) => value.plain(),
        }
    }
}

/// Returns a count that people see only if it is not 0.
pub(crate) fn nonzero(count: u64) -> Value {
    Value::Count(count).shown_if(count > 0)
}

/// Formats percent without decimals.
pub(crate) fn whole_percent(value: f64) -> String {
    format!("{value:.0}%")
}

macro_rules! values {
    ($($kind:ty, $value:ident => $into:expr;)*) => {
        $(impl From<$kind> for Value {
            fn from($value: $kind) -> Value {
                $into
            }
        })*
    };
}

values! {
    u64, count => Value::Count(count);
    u32, count => Value::Count(count.into());
    Nanos, time => Value::Time(Some(time));
    Option<Nanos>, time => Value::Time(time);
    String, text => Value::Text(text);
    &str, text => Value::Text(text.to_owned());
    Option<String>, text => text.map_or(Value::Absent, Value::Text);
    Option<Value>, value => value.unwrap_or(Value::Absent);
}

/// A statistic of a time: key for programs, title for people, value.
type Statistic = (&'static str, &'static str, fn(&DurationStatistics) -> Option<Nanos>);

const STATISTICS: [Statistic; 9] = [
    ("min", "Fastest", |times| times.min),
    ("max", "Slowest", |times| times.max),
    ("mean", "Average", |times| times.mean),
    ("stddev", "StdDev", |times| times.stddev),
    ("p50", "Median", |times| times.p50),
    ("p90", "p90", |times| times.p90),
    ("p95", "p95", |times| times.p95),
    ("p99", "p99", |times| times.p99),
    ("p999", "p99.9", |times| times.p999),
];

/// A row of a table: its name and the value that the columns are taken from.
pub(crate) struct Row<T> {
    line: TextTableLine,
    value: Option<T>,
}

impl<T> Row<T> {
    pub(crate) fn new(name: impl Into<String>, value: T) -> Row<T> {
        Row { line: TextTableLine::new(name), value: Some(value) }
    }

    pub(crate) fn part(name: impl Into<String>, value: T) -> Row<T> {
        Row::new(name, value).indented(2)
    }

    /// Creates a row with empty cells.
    pub(crate) fn heading(name: impl Into<String>) -> Row<T> {
        Row { line: TextTableLine::new(name), value: None }
    }

    /// Creates a line of text across all columns.
    pub(crate) fn across(paint: Paint, text: impl Into<String>) -> Row<T> {
        Row { line: TextTableLine::across(paint, text), value: None }
    }

    pub(crate) fn indented(self, indent: usize) -> Row<T> {
        Row { line: self.line.indented(indent), ..self }
    }
}

struct Column<'a, T> {
    key: Option<Cow<'static, str>>,
    is_shown: bool,
    value: Box<dyn Fn(&T) -> Value + 'a>,
}

/// A table whose rows show a `T` each, in sections with common columns.
pub(crate) struct Table<'a, T> {
    columns: Vec<Column<'a, T>>,
    layout: TextTable,
}

impl<'a, T: 'a> Table<'a, T> {
    pub(crate) fn new() -> Table<'a, T> {
        Table { columns: Vec::new(), layout: TextTable::default() }
    }

    /// Adds a column for people.
    pub(crate) fn column<V: Into<Value>>(
        mut self,
        head: impl Into<TextColumn>,
        value: impl Fn(&T) -> V + 'a,
    ) -> Table<'a, T> {
        self.layout.add_column(head.into());
        self.columns.push(Column { key: None, is_shown: true, value: Box::new(move |row| value(row).into()) });
        self
    }

    /// Shows the column that was added last to programs too, under this key.
    pub(crate) fn key(mut self, key: &'static str) -> Table<'a, T> {
        if let Some(column) = self.columns.last_mut() {
            column.key = Some(key.into());
        }
        self
    }

    /// Adds a column for programs only.
    pub(crate) fn plain<V: Into<Value>>(
        mut self,
        key: impl Into<Cow<'static, str>>,
        value: impl Fn(&T) -> V + 'a,
    ) -> Table<'a, T> {
        let value = Box::new(move |row: &T| value(row).into());
        self.columns.push(Column { key: Some(key.into()), is_shown: false, value });
        self
    }

    /// Adds statistics of a time by title, each with the order in which it is left out. Without a time they are empty.
    pub(crate) fn times(
        self,
        titles: &[(&'static str, u8)],
        times: fn(&T) -> Option<&DurationStatistics>,
    ) -> Table<'a, T> {
        titles.iter().fold(self, |table, head| {
            let statistic = STATISTICS.iter().find(|(_, title, _)| *title == head.0);
            let (_, _, of) = *statistic.expect("the statistic is in the list");
            table.column(*head, move |row| times(row).map(|times| Value::Time(of(times))))
        })
    }

    /// Adds all statistics of a time for programs: `response_time_p95_ns`.
    pub(crate) fn plain_times(self, name: &str, times: fn(&T) -> &DurationStatistics) -> Table<'a, T> {
        STATISTICS
            .iter()
            .fold(self, |table, (key, _, of)| table.plain(format!("{name}_{key}_ns"), move |row| of(times(row))))
    }

    pub(crate) fn titled(self, title: impl Into<String>) -> Table<'a, T> {
        Table { layout: self.layout.titled(title), ..self }
    }

    /// Sets the range of the width of the name column.
    pub(crate) fn names(self, names: RangeInclusive<usize>) -> Table<'a, T> {
        Table { layout: self.layout.names(names), ..self }
    }

    /// Adds rows with a heading. Nothing is added if there are no rows.
    pub(crate) fn section(
        mut self,
        heading: impl Into<String>,
        rows: impl IntoIterator<Item = Row<T>>,
    ) -> Table<'a, T> {
        let shown: Vec<&Column<'a, T>> = self.columns.iter().filter(|column| column.is_shown).collect();
        let cells = |value: &T| shown.iter().map(|column| (column.value)(value).shown()).collect();
        let line = |row: Row<T>| row.line.with_cells(row.value.as_ref().map_or_else(Vec::new, cells));
        self.layout.add_section(heading.into(), rows.into_iter().map(line).collect());
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// Returns the minimum width of the columns added so far, including the blanks before them.
    pub(crate) fn room(&self) -> usize {
        self.layout.room()
    }

    /// Writes the table. Returns the headings of the columns that have content but did not fit.
    pub(crate) fn render(self, page: &mut TextPage) -> Vec<Cow<'static, str>> {
        self.layout.render(page)
    }

    /// Like [`render`](Table::render), for names that are paths: they are shortened from the left.
    pub(crate) fn render_paths(self, page: &mut TextPage) -> Vec<Cow<'static, str>> {
        self.layout.with_shorter(page.width(), shorten_path).render(page)
    }

    /// Returns the keys of the columns for programs.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter_map(|column| column.key.as_deref())
    }

    /// Returns the cells below [`keys`](Table::keys).
    pub(crate) fn plain_cells(&self, row: &T) -> impl Iterator<Item = String> {
        self.columns.iter().filter(|column| column.key.is_some()).map(move |column| (column.value)(row).plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_added_in_one_place_is_in_every_rendering() {
        let base = || Table::new().column("Name", |row: &(u64, u64)| format!("#{}", row.0)).key("name");
        let renderings = |table: Table<'_, (u64, u64)>| {
            let keys = table.keys().collect::<Vec<_>>().join(",");
            let cells = table.plain_cells(&(7, 4_096)).collect::<Vec<_>>().join(",");
            let mut page = TextPage::new(80, false);
            table.section("", [Row::new("one", (7, 4_096))]).render(&mut page);
            (page.into_text(), keys, cells)
        };
        assert_eq!(renderings(base()), ("\n    Name\none   #7\n".into(), "name".into(), "#7".into()));
        let wider = base().column("Size", |row| Value::Bytes(row.1)).key("size");
        let text = "\n    Name    Size\none   #7 4.10 kB\n";
        assert_eq!(renderings(wider), (text.into(), "name,size".into(), "#7,4096".into()));
    }

    #[test]
    fn people_and_programs_see_what_is_for_them() {
        let shown = [nonzero(0), Value::Time(None), Value::Absent, Value::from(Nanos(1_500))].map(Value::shown);
        assert_eq!(shown, ["", "-", "", "1.50 µs"]);
        let plain = [nonzero(0), Value::Time(None), Value::Absent, Value::from(Nanos(1_500))].map(Value::plain);
        assert_eq!(plain, ["0", "", "", "1500"]);
    }
}
