//! Tables whose columns are declared once: key, title, unit, description and value ([`ColumnHead`]).
//!
//! Every table has four renderings: text and Markdown ([`Table::render`]) for people, CSV ([`Table::keys`],
//! [`Table::plain_cells`]) and Arrow ([`Table::batch`]) for programs. The exchange table is separate: it is written row by
//! row as a stream, with types of its own (`crate::table`).

mod text;

pub use text::listed;
pub(crate) use text::{RenderedTable, TableLine};

use crate::format::{bytes, or_dash, rate, shorten_path, thousands, visible_percent};
use crate::page::{Paint, TextPage};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType};
use smbscope_model::prose::share;
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::DurationStatistics;
use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;
use text::TableLayout;

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Absent,
    Count(u64),
    Bytes(u64),
    /// Duration. None is a dash for people: too few values.
    Time(Option<Nanos>),
    Instant(Timestamp),
    /// Number in the unit of its column, and its text for people.
    Number(f64, String),
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
            Value::Instant(time) => time.0.to_string(),
            Value::Number(_, text) | Value::Text(text) => text,
        }
    }

    /// Formats for programs: plain numbers, times in nanoseconds. Unknown is empty.
    fn plain(self) -> String {
        match self {
            Value::Absent | Value::Time(None) => String::new(),
            Value::Count(count) | Value::Bytes(count) => count.to_string(),
            Value::Time(Some(Nanos(ns))) | Value::Instant(Timestamp(ns)) => ns.to_string(),
            Value::Number(number, _) => number.to_string(),
            Value::Text(text) => text,
            Value::Hidden(value) => value.plain(),
        }
    }

    fn integer(&self) -> Option<i64> {
        match self {
            Value::Count(count) | Value::Bytes(count) => Some(i64::try_from(*count).unwrap_or(i64::MAX)),
            Value::Time(time) => time.map(|time| time.0),
            Value::Instant(time) => Some(time.0),
            Value::Hidden(value) => value.integer(),
            Value::Absent | Value::Number(..) | Value::Text(_) => None,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number, _) => Some(*number),
            Value::Hidden(value) => value.number(),
            other => other.integer().map(|integer| integer as f64),
        }
    }
}

/// Returns a count that people see only if it is not 0.
pub(crate) fn nonzero(count: u64) -> Value {
    Value::Count(count).shown_if(count > 0)
}

/// Returns a share in percent: `12.3%`.
pub(crate) fn percent_of(part: u64, whole: u64) -> Value {
    Value::Number(share(part, whole), format!("{}%", visible_percent(part, whole)))
}

/// Returns percent without decimals.
pub(crate) fn whole_percent(value: f64) -> Value {
    Value::Number(value, format!("{value:.0}%"))
}

/// Returns a rate, such as commands per second.
pub(crate) fn per_second(value: f64) -> Value {
    Value::Number(value, rate(value))
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
    Timestamp, time => Value::Instant(time);
    String, text => Value::Text(text);
    &str, text => Value::Text(text.to_owned());
    Option<String>, text => text.map_or(Value::Absent, Value::Text);
    Option<Value>, value => value.unwrap_or(Value::Absent);
}

/// A statistic of a time: the end of its key, title, description, value.
type Statistic = (&'static str, &'static str, &'static str, fn(&DurationStatistics) -> Option<Nanos>);

const STATISTICS: [Statistic; 9] = [
    ("min", "Fastest", "shortest time", |times| times.min),
    ("max", "Slowest", "longest time", |times| times.max),
    ("mean", "Average", "mean time", |times| times.mean),
    ("stddev", "StdDev", "standard deviation of the times", |times| times.stddev),
    ("p50", "Median", "median time", |times| times.p50),
    ("p90", "p90", "90th percentile; absent below 10 values", |times| times.p90),
    ("p95", "p95", "95th percentile; absent below 20 values", |times| times.p95),
    ("p99", "p99", "99th percentile; absent below 100 values", |times| times.p99),
    ("p999", "p99.9", "99.9th percentile; absent below 1,000 values", |times| times.p999),
];

/// A row of a table: its name and the value that the columns are taken from.
pub(crate) struct Row<T> {
    line: TableLine,
    value: Option<T>,
}

impl<T> Row<T> {
    pub(crate) fn new(name: impl Into<String>, value: T) -> Row<T> {
        Row { line: TableLine::new(name), value: Some(value) }
    }

    pub(crate) fn part(name: impl Into<String>, value: T) -> Row<T> {
        Row::new(name, value).indented(2)
    }

    /// Creates a row with empty cells.
    pub(crate) fn heading(name: impl Into<String>) -> Row<T> {
        Row { line: TableLine::new(name), value: None }
    }

    /// Creates a line of text across all columns.
    pub(crate) fn across(paint: Paint, text: impl Into<String>) -> Row<T> {
        Row { line: TableLine::across(paint, text), value: None }
    }

    pub(crate) fn indented(self, indent: usize) -> Row<T> {
        Row { line: self.line.indented(indent), ..self }
    }
}

struct Column<'a, T> {
    head: ColumnHead,
    value: Box<dyn Fn(&T) -> Value + 'a>,
}

impl<T> Column<'_, T> {
    fn is_for_people(&self) -> bool {
        self.head.audience != Audience::Programs
    }

    fn is_for_programs(&self) -> bool {
        matches!(self.head.audience, Audience::Everyone | Audience::Programs)
    }
}

/// A table whose rows show a `T` each, in sections with common columns.
pub(crate) struct Table<'a, T> {
    columns: Vec<Column<'a, T>>,
    layout: TableLayout,
}

impl<'a, T: 'a> Table<'a, T> {
    pub(crate) fn new() -> Table<'a, T> {
        Table { columns: Vec::new(), layout: TableLayout::default() }
    }

    pub(crate) fn column<V: Into<Value>>(mut self, head: ColumnHead, value: impl Fn(&T) -> V + 'a) -> Table<'a, T> {
        debug_assert!(self.columns.iter().all(|column| column.head.key != head.key), "{} occurs twice", head.key);
        if head.audience != Audience::Programs {
            self.layout.add_column(head.clone());
        }
        self.columns.push(Column { head, value: Box::new(move |row| value(row).into()) });
        self
    }

    /// Adds statistics of a time for people by title, each with the order in which it is left out. Without a time they
    /// are empty.
    pub(crate) fn times(
        self,
        titles: &[(&'static str, u8)],
        times: fn(&T) -> Option<&DurationStatistics>,
    ) -> Table<'a, T> {
        self.times_of(None, titles, times)
    }

    /// Adds statistics of another time, with a key and a title of its own.
    pub(crate) fn times_of(
        self,
        name: Option<(&'static str, &'static str)>,
        titles: &[(&'static str, u8)],
        times: fn(&T) -> Option<&DurationStatistics>,
    ) -> Table<'a, T> {
        titles.iter().fold(self, |table, (title, expendable)| {
            let statistic = STATISTICS.iter().find(|(_, known, ..)| known == title);
            let (key, title, about, value) = *statistic.expect("the statistic is in the list");
            let head = ColumnHead::new(key, title, Unit::Duration, about).expendable(*expendable).for_people();
            let head = match name {
                None => head.keyed(format!("{key}_ns")),
                Some((of, name)) => {
                    head.keyed(format!("{of}_{key}_ns")).titled(format!("{name}: {title}")).shortened(title)
                }
            };
            table.column(head, move |row| times(row).map(|times| Value::Time(value(times))))
        })
    }

    /// Adds all statistics of a time for programs: `response_time_p95_ns`.
    pub(crate) fn all_times(self, name: &str, times: fn(&T) -> &DurationStatistics) -> Table<'a, T> {
        STATISTICS.iter().fold(self, |table, (key, title, about, value)| {
            let head = ColumnHead::new(key, title, Unit::Duration, about).for_programs();
            table.column(head.keyed(format!("{name}_{key}_ns")), move |row| value(times(row)))
        })
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
        let shown: Vec<&Column<'a, T>> = self.columns.iter().filter(|column| column.is_for_people()).collect();
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

    /// Writes the table as text or Markdown, as the page is.
    pub(crate) fn render(self, page: &mut TextPage) -> RenderedTable {
        if page.is_markdown() {
            text::render(&self.layout, page);
            return RenderedTable::default();
        }
        self.layout.render(page)
    }

    /// Like [`render`](Table::render), for names that are paths: text shortens them from the left.
    pub(crate) fn render_paths(self, page: &mut TextPage) -> RenderedTable {
        if page.is_markdown() {
            return self.render(page);
        }
        self.layout.with_shorter(page.width(), shorten_path).render(page)
    }

    /// Returns key, unit and description of the columns for programs.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&str, &'static str, &'static str)> {
        let columns = self.columns.iter().filter(|column| column.is_for_programs());
        columns.map(|Column { head, .. }| (&*head.key, head.unit.name(), head.about))
    }

    /// Returns the cells below [`keys`](Table::keys), for CSV.
    pub(crate) fn plain_cells(&self, row: &T) -> impl Iterator<Item = String> {
        self.columns.iter().filter(|column| column.is_for_programs()).map(move |column| (column.value)(row).plain())
    }

    /// Returns the rows with the columns for programs. Unknown values are null.
    pub(crate) fn batch(&self, rows: &[T]) -> Result<RecordBatch, ArrowError> {
        let columns = self.columns.iter().filter(|column| column.is_for_programs()).map(|column| {
            let values = rows.iter().map(|row| (column.value)(row));
            let array: ArrayRef = match column.head.unit.data_type() {
                DataType::Int64 => Arc::new(values.map(|value| value.integer()).collect::<Int64Array>()),
                DataType::Float64 => Arc::new(values.map(|value| value.number()).collect::<Float64Array>()),
                _ => {
                    let texts = values.map(|value| Some(value.plain()).filter(|text| !text.is_empty()));
                    Arc::new(texts.collect::<StringArray>())
                }
            };
            (&*column.head.key, array, true)
        });
        RecordBatch::try_from_iter_with_nullable(columns)
    }
}

/// Unit of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Count,
    Bytes,
    /// Duration; for programs in nanoseconds.
    Duration,
    /// Nanoseconds since the Unix epoch.
    Instant,
    Percent,
    PerSecond,
    BytesPerSecond,
    /// Ratio to another value.
    Ratio,
    /// Number whose unit another column names.
    Number,
    Text,
}

impl Unit {
    /// Returns the name of the unit in CSV and Arrow. Empty for text.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Count => "count",
            Unit::Bytes => "bytes",
            Unit::Duration => "ns",
            Unit::Instant => "ns since 1970-01-01 00:00 UTC",
            Unit::Percent => "percent",
            Unit::PerSecond => "1/s",
            Unit::BytesPerSecond => "bytes/s",
            Unit::Ratio => "ratio",
            Unit::Number => "number",
            Unit::Text => "",
        }
    }

    /// Returns the type in Arrow and Parquet. Times are integers, as in the exchange table, because every reader
    /// supports those.
    pub(crate) fn data_type(self) -> DataType {
        match self {
            Unit::Count | Unit::Bytes | Unit::Duration | Unit::Instant => DataType::Int64,
            Unit::Percent | Unit::PerSecond | Unit::BytesPerSecond | Unit::Ratio | Unit::Number => DataType::Float64,
            Unit::Text => DataType::Utf8,
        }
    }
}

/// Readers of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Everyone,
    /// Text and Markdown.
    People,
    /// CSV and Arrow.
    Programs,
    /// A chart of block characters, which only text has.
    Terminal,
}

/// A column without its values.
#[derive(Debug, Clone)]
pub(crate) struct ColumnHead {
    key: Cow<'static, str>,
    title: Cow<'static, str>,
    unit: Unit,
    about: &'static str,
    audience: Audience,
    /// Title in text, where the column to the left completes it.
    short: Option<&'static str>,
    /// The note below a text table contains the description.
    is_explained: bool,
    /// Order in which text leaves out columns of a table that is too wide, highest number first. 0 is never left out.
    expendable: u8,
    least: usize,
    gap: usize,
    is_left_aligned: bool,
}

impl ColumnHead {
    /// Creates a column for everyone. The description is a noun phrase without a full stop.
    pub(crate) const fn new(key: &'static str, title: &'static str, unit: Unit, about: &'static str) -> ColumnHead {
        ColumnHead {
            key: Cow::Borrowed(key),
            title: Cow::Borrowed(title),
            unit,
            about,
            audience: Audience::Everyone,
            short: None,
            is_explained: false,
            expendable: 0,
            least: 0,
            gap: 1,
            is_left_aligned: matches!(unit, Unit::Text),
        }
    }

    /// Creates a chart of block characters without a title.
    pub(crate) fn chart(key: &'static str) -> ColumnHead {
        ColumnHead::new(key, "", Unit::Text, "").with_audience(Audience::Terminal)
    }

    fn with_audience(self, audience: Audience) -> ColumnHead {
        ColumnHead { audience, ..self }
    }

    pub(crate) fn for_people(self) -> ColumnHead {
        self.with_audience(Audience::People)
    }

    pub(crate) fn for_programs(self) -> ColumnHead {
        self.with_audience(Audience::Programs)
    }

    pub(crate) fn keyed(self, key: String) -> ColumnHead {
        ColumnHead { key: key.into(), ..self }
    }

    pub(crate) fn titled(self, title: impl Into<Cow<'static, str>>) -> ColumnHead {
        ColumnHead { title: title.into(), ..self }
    }

    /// Shortens the title in text, where the column to the left completes it.
    pub(crate) fn shortened(self, short: &'static str) -> ColumnHead {
        ColumnHead { short: Some(short), ..self }
    }

    /// Replaces the description and adds it to the note below a text table.
    pub(crate) fn explained(self, about: &'static str) -> ColumnHead {
        ColumnHead { about, is_explained: true, ..self }
    }

    /// Leaves the column out of text tables that are too wide, those with the highest number first.
    pub(crate) fn expendable(self, expendable: u8) -> ColumnHead {
        ColumnHead { expendable, ..self }
    }

    pub(crate) fn at_least(self, least: usize) -> ColumnHead {
        ColumnHead { least, ..self }
    }

    /// Puts two blanks before the column instead of one.
    pub(crate) fn set_off(self) -> ColumnHead {
        ColumnHead { gap: 2, ..self }
    }

    pub(crate) fn right_aligned(self) -> ColumnHead {
        ColumnHead { is_left_aligned: false, ..self }
    }

    /// Returns the title in text.
    fn text_title(&self) -> &str {
        self.short.unwrap_or(&self.title)
    }
}

/// Columns of several tables.
pub(crate) const COUNT: ColumnHead = ColumnHead::new("count", "Count", Unit::Count, "commands, with or without a time");
pub(crate) const ERRORS: ColumnHead =
    ColumnHead::new("errors", "Errors", Unit::Count, "responses with an error status");
pub(crate) const BYTES_READ: ColumnHead = ColumnHead::new("bytes_read", "Read", Unit::Bytes, "file data read");
pub(crate) const BYTES_WRITTEN: ColumnHead =
    ColumnHead::new("bytes_written", "Written", Unit::Bytes, "file data written");
pub(crate) const TOTAL_WAIT: ColumnHead =
    ColumnHead::new("total_wait_ns", "Total wait", Unit::Duration, "sum of the response times");

#[cfg(test)]
mod tests {
    use super::*;

    type NameAndSize = (u64, u64);

    const NAME: ColumnHead = ColumnHead::new("name", "Name", Unit::Text, "name");

    /// Returns text, Markdown, CSV and Arrow of one row.
    fn renderings(table: impl Fn() -> Table<'static, NameAndSize>) -> [String; 4] {
        let (row, on) = ((7, 4_096), |mut page: TextPage| {
            table().section("", [Row::new("one", (7, 4_096))]).render(&mut page);
            page.into_text()
        });
        let keys = table().keys().map(|(key, ..)| key.to_owned()).collect::<Vec<_>>().join(",");
        let csv = format!("{keys}\n{}", table().plain_cells(&row).collect::<Vec<_>>().join(","));
        let batch = table().batch(&[row]).unwrap();
        let field = |(at, field): (usize, &Arc<arrow_schema::Field>)| {
            let array = batch.column(at);
            let value = match field.data_type() {
                DataType::Int64 => array.as_any().downcast_ref::<Int64Array>().unwrap().value(0).to_string(),
                _ => array.as_any().downcast_ref::<StringArray>().unwrap().value(0).to_owned(),
            };
            format!("{}: {} = {value}", field.name(), field.data_type())
        };
        let arrow = batch.schema().fields().iter().enumerate().map(field).collect::<Vec<_>>().join(", ");
        [on(TextPage::new(80, false)), on(TextPage::markdown()), csv, arrow]
    }

    #[test]
    fn a_column_added_in_one_place_is_in_every_rendering() {
        let base = || Table::new().column(NAME, |row: &NameAndSize| format!("#{}", row.0));
        let [text, markdown, csv, arrow] = renderings(base);
        assert_eq!(text, "\n    Name\none #7\n");
        assert!(markdown.starts_with("|  | Name |\n|---|---|\n| one | #<!-- -->7 |\n"), "{markdown}");
        assert_eq!([csv.as_str(), &arrow], ["name\n#7", "name: Utf8 = #7"]);

        let size = ColumnHead::new("size", "Size", Unit::Bytes, "length in bytes");
        let [text, markdown, csv, arrow] =
            renderings(|| base().column(size.clone(), |row: &NameAndSize| Value::Bytes(row.1)));
        assert_eq!(text, "\n    Name    Size\none #7   4.10 kB\n");
        assert!(
            markdown.starts_with("|  | Name | Size |\n|---|---|---:|\n| one | #<!-- -->7 | 4.10 kB |\n"),
            "{markdown}"
        );
        assert!(markdown.contains("- **Size:** length in bytes\n"), "{markdown}");
        assert_eq!([csv.as_str(), &arrow], ["name,size\n#7,4096", "name: Utf8 = #7, size: Int64 = 4096"]);
    }

    #[test]
    fn people_and_programs_see_what_is_for_them() {
        let values = || [nonzero(0), Value::Time(None), Value::Absent, Value::from(Nanos(1_500)), percent_of(1, 8)];
        assert_eq!(values().map(Value::shown), ["", "-", "", "1.50 µs", "12.5%"]);
        assert_eq!(values().map(Value::plain), ["0", "", "", "1500", "12.5"]);
        assert_eq!(values().map(|value| value.number()), [Some(0.0), None, None, Some(1_500.0), Some(12.5)]);
    }
}
