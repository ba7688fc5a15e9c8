//! Declaration of a column: key, title, unit and description, and how a text table treats it.

use arrow_schema::DataType;
use std::borrow::Cow;

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
    pub(super) key: Cow<'static, str>,
    pub(super) title: Cow<'static, str>,
    pub(super) unit: Unit,
    pub(super) about: &'static str,
    pub(super) audience: Audience,
    /// Title in text, where the column to the left completes it.
    short: Option<&'static str>,
    /// The note below a text table contains the description.
    pub(super) is_explained: bool,
    /// Order in which text leaves out columns of a table that is too wide, highest number first. 0 is never left out.
    pub(super) expendable: u8,
    pub(super) least: usize,
    pub(super) gap: usize,
    pub(super) is_left_aligned: bool,
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
    pub(super) fn text_title(&self) -> &str {
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
