//! Dimensions by which exchanges can be sliced, and the values of an exchange in each.

use crate::derived;
use smbscope_model::{Command, CommandGroup, Dialect, Exchange, FlowId, ResponseStatus, named};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;

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
    }
}

impl Dimension {
    pub(super) fn fields(self) -> &'static [Field] {
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
    }
}

impl Field {
    pub fn named(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.name() == name)
    }

    pub(super) fn part(self, exchange: &Exchange) -> SliceFieldValue {
        let name =
            |name: &Option<Arc<str>>| name.as_ref().map(|name| SliceFieldValue::Text(SharedSubstring::whole(name)));
        let path = |piece: fn(&str) -> &str| {
            exchange.path.as_ref().map(|path| SliceFieldValue::Text(SharedSubstring::cut(path, piece)))
        };
        let part = match self {
            Field::Client => Some(SliceFieldValue::Address(exchange.endpoints.client.ip())),
            Field::Server => Some(SliceFieldValue::Socket(exchange.endpoints.server)),
            Field::User => name(&exchange.user),
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
    pub(super) fn name_bytes(&self) -> usize {
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
