//! Slices: exchanges grouped by fields (`--by client,share`).
//!
//! Up to [`SLICES_MAX`] distinct keys, every slice is exact. Beyond that, the keys with the most response time are
//! kept, and the rest combined (see `table`). The order of exchanges decides which slices are evicted, so each part of
//! a capture has its own slicer, and parts are merged in order of their numbers ([`PartSlicers`]).

mod table;

#[cfg(test)]
mod tests;

pub use table::{SLICES_KEPT, SLICES_MAX};

use crate::derived;
use crate::entity::EntityStatistics;
use crate::summary::DurationStatistics;
use smbscope_model::{Command, CommandGroup, Dialect, Exchange, FlowId, ResponseStatus, named};
use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;
use table::SlicerTable;

#[derive(Debug, Clone)]
pub struct Slicer {
    by: Vec<Dimension>,
    fields: Vec<Field>,
    table: SlicerTable,
    key: Vec<SliceFieldValue>,
}

impl Slicer {
    pub fn new(by: &[Dimension]) -> Slicer {
        Slicer::with_table(by, SlicerTable::new(SLICES_MAX, SLICES_KEPT))
    }

    fn with_table(by: &[Dimension], table: SlicerTable) -> Slicer {
        let mut fields: Vec<Field> = Vec::new();
        for field in by.iter().flat_map(|dimension| dimension.fields()) {
            if !fields.contains(field) {
                fields.push(*field);
            }
        }
        Slicer { by: by.to_vec(), fields, table, key: Vec::new() }
    }

    pub fn record(&mut self, exchange: &Exchange) {
        if derived::is_apart(exchange) {
            return;
        }
        self.key.clear();
        self.key.extend(self.fields.iter().map(|field| field.part(exchange)));
        self.table.record(&self.key, exchange);
    }

    pub fn merge(&mut self, other: &Slicer) {
        self.table.merge(&other.table);
    }

    pub fn finish(&self, sort: SliceSortKey) -> DimensionBreakdown {
        let mut entries = self.table.finish();
        match sort {
            SliceSortKey::Key => entries.sort_by(|a, b| a.key.cmp(&b.key)),
            _ => entries
                .sort_by(|a, b| Reverse(sort.weight(a)).cmp(&Reverse(sort.weight(b))).then_with(|| a.key.cmp(&b.key))),
        }
        DimensionBreakdown {
            by: self.by.clone(),
            fields: self.fields.clone(),
            sort,
            entries,
            other: self.table.other(),
            missed_at_most_ns: self.table.floor(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct DimensionBreakdown {
    pub by: Vec<Dimension>,
    pub fields: Vec<Field>,
    pub sort: SliceSortKey,
    pub entries: Vec<SliceStatistics>,
    pub other: Option<SliceStatistics>,
    /// Upper limit for the response time of any key without a slice: at most a [`SLICES_KEPT`]th of the total.
    pub missed_at_most_ns: i128,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SliceStatistics {
    pub key: Vec<SliceFieldValue>,
    pub figures: EntityStatistics,
    pub service_time: DurationStatistics,
    /// Limit for the time evicted to [`DimensionBreakdown::other`] before the key returned. 0 if the slice is complete.
    pub missed_at_most_ns: i128,
}

named! {
    /// Order of slices: largest value first, except for `Key`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum SliceSortKey {
        #[default]
        ResponseTime = "response_time",
        ServiceTime = "service_time",
        Count = "count",
        Errors = "errors",
        Bytes = "bytes",
        Mean = "mean",
        P50 = "p50",
        P95 = "p95",
        P99 = "p99",
        Max = "max",
        Key = "key",
    }
}

impl SliceSortKey {
    fn weight(self, slice: &SliceStatistics) -> Option<i128> {
        let SliceStatistics { figures, service_time, .. } = slice;
        let EntityStatistics { response_time, .. } = figures;
        let time = match self {
            SliceSortKey::ResponseTime => return Some(response_time.sum_ns),
            SliceSortKey::ServiceTime => return Some(service_time.sum_ns),
            SliceSortKey::Count => return Some(figures.count.into()),
            SliceSortKey::Errors => return Some(figures.errors.into()),
            SliceSortKey::Bytes => return Some(i128::from(figures.bytes_read) + i128::from(figures.bytes_written)),
            SliceSortKey::Key => None,
            SliceSortKey::Mean => response_time.mean,
            SliceSortKey::P50 => response_time.p50,
            SliceSortKey::P95 => response_time.p95,
            SliceSortKey::P99 => response_time.p99,
            SliceSortKey::Max => response_time.max,
        };
        time.map(|time| time.0.into())
    }
}

#[derive(Debug, Clone)]
pub(crate) struct PartSlicers {
    by: Vec<Dimension>,
    slicers: BTreeMap<usize, Slicer>,
    at: usize,
}

impl PartSlicers {
    pub(crate) fn new(by: &[Dimension]) -> PartSlicers {
        PartSlicers { by: by.to_vec(), slicers: BTreeMap::new(), at: 0 }
    }

    pub(crate) fn turn_to(&mut self, part: usize) {
        self.at = part;
    }

    pub(crate) fn record(&mut self, exchange: &Exchange) {
        self.slicers.entry(self.at).or_insert_with(|| Slicer::new(&self.by)).record(exchange);
    }

    pub(crate) fn merge(&mut self, other: PartSlicers) {
        for (part, theirs) in other.slicers {
            match self.slicers.entry(part) {
                Entry::Occupied(mut mine) => mine.get_mut().merge(&theirs),
                Entry::Vacant(place) => _ = place.insert(theirs),
            }
        }
    }

    pub(crate) fn finish(&self, sort: SliceSortKey) -> DimensionBreakdown {
        let mut slicers = self.slicers.values();
        // Don't copy if there is only one part, as in a load client.
        let mut whole = slicers.next().map_or_else(|| Cow::Owned(Slicer::new(&self.by)), Cow::Borrowed);
        slicers.for_each(|slicer| whole.to_mut().merge(slicer));
        whole.finish(sort)
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Dimension {
        Client = "client",
        Server = "server",
        User = "user",
        Share = "share",
        File = "file",
        Directory = "directory",
        Extension = "extension",
        Command = "command",
        Group = "group",
        Dialect = "dialect",
        Connection = "connection",
        Status = "status",
        Size = "size",
        Process = "process",
    }
}

impl Dimension {
    fn fields(self) -> &'static [Field] {
        match self {
            Dimension::Client => &[Field::Client],
            Dimension::Server => &[Field::Server],
            Dimension::User => &[Field::User],
            Dimension::Share => &[Field::Share],
            Dimension::File => &[Field::Share, Field::File],
            Dimension::Directory => &[Field::Share, Field::Directory],
            Dimension::Extension => &[Field::Extension],
            Dimension::Command => &[Field::Command],
            Dimension::Group => &[Field::Group],
            Dimension::Dialect => &[Field::Dialect],
            Dimension::Connection => &[Field::FlowId, Field::Connection],
            Dimension::Status => &[Field::Status],
            Dimension::Size => &[Field::Size],
            Dimension::Process => &[Field::Process],
        }
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Field {
        Client = "client",
        Server = "server",
        User = "user",
        Share = "share",
        File = "file",
        /// Path below the share; empty for the root.
        Directory = "directory",
        /// In lower case; empty if the name has none.
        Extension = "extension",
        Command = "command",
        Group = "group",
        Dialect = "dialect",
        FlowId = "flow_id",
        Connection = "connection",
        Status = "status",
        Size = "size",
        Process = "process",
    }
}

impl Field {
    pub fn named(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.name() == name)
    }

    fn part(self, exchange: &Exchange) -> SliceFieldValue {
        let name =
            |name: &Option<Arc<str>>| name.as_ref().map(|name| SliceFieldValue::Text(SharedSubstring::whole(name)));
        let path = |piece: fn(&str) -> &str| {
            exchange.path.as_ref().map(|path| SliceFieldValue::Text(SharedSubstring::cut(path, piece)))
        };
        let part = match self {
            Field::Client => Some(SliceFieldValue::Address(exchange.endpoints.client.ip())),
            Field::Server => Some(SliceFieldValue::Socket(exchange.endpoints.server)),
            Field::User => name(&exchange.user),
            Field::Process => name(&exchange.process),
            Field::Share => name(&exchange.share),
            Field::File => path(derived::below_share),
            Field::Directory => path(derived::directory),
            Field::Extension => exchange.path.as_ref().filter(|path| !derived::is_cut(path)).map(|path| {
                let extension = derived::extension(path);
                SliceFieldValue::Text(match extension.chars().any(char::is_uppercase) {
                    true => SharedSubstring::whole(&extension.to_lowercase().into()),
                    false => SharedSubstring::cut(path, derived::extension),
                })
            }),
            Field::Command => Some(SliceFieldValue::Command(exchange.command)),
            Field::Group => Some(SliceFieldValue::Group(exchange.group)),
            Field::Dialect => exchange.dialect.map(SliceFieldValue::Dialect),
            Field::FlowId => Some(SliceFieldValue::Flow(exchange.flow)),
            Field::Connection => Some(SliceFieldValue::Ends(exchange.endpoints.client, exchange.endpoints.server)),
            Field::Status => exchange.status.map(SliceFieldValue::Status),
            Field::Size => Some(SliceFieldValue::Size(bucket(derived::size(exchange)))),
        };
        part.unwrap_or(SliceFieldValue::Unknown)
    }
}

fn bucket(size: u64) -> u64 {
    size.checked_ilog2().map_or(0, |exponent| 1 << exponent)
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SliceFieldValue {
    Address(IpAddr),
    Socket(SocketAddr),
    Text(SharedSubstring),
    Command(Command),
    Group(CommandGroup),
    Dialect(Dialect),
    Flow(FlowId),
    Ends(SocketAddr, SocketAddr),
    Status(ResponseStatus),
    /// At least this many bytes, and less than twice as many.
    Size(u64),
    Unknown,
}

impl SliceFieldValue {
    fn name_bytes(&self) -> usize {
        if let SliceFieldValue::Text(piece) = self { piece.whole.len() } else { 0 }
    }
}

#[derive(Debug, Clone)]
pub struct SharedSubstring {
    whole: Arc<str>,
    start: usize,
    end: usize,
}

impl SharedSubstring {
    pub fn whole(text: &Arc<str>) -> SharedSubstring {
        SharedSubstring { whole: Arc::clone(text), start: 0, end: text.len() }
    }

    fn cut(text: &Arc<str>, piece: fn(&str) -> &str) -> SharedSubstring {
        let part = piece(text);
        // An empty part may point outside of the string.
        let start = if part.is_empty() { 0 } else { part.as_ptr() as usize - text.as_ptr() as usize };
        SharedSubstring { whole: Arc::clone(text), start, end: start + part.len() }
    }
}

impl Deref for SharedSubstring {
    type Target = str;

    fn deref(&self) -> &str {
        self.whole.get(self.start..self.end).unwrap_or_default()
    }
}

impl PartialEq for SharedSubstring {
    fn eq(&self, other: &SharedSubstring) -> bool {
        **self == **other
    }
}

impl Eq for SharedSubstring {}

impl PartialOrd for SharedSubstring {
    fn partial_cmp(&self, other: &SharedSubstring) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SharedSubstring {
    fn cmp(&self, other: &SharedSubstring) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for SharedSubstring {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
