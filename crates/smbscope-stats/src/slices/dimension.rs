//! What exchanges can be divided by, and what an exchange has there.

use crate::derived;
use smbscope_model::{Command, CommandGroup, Dialect, Exchange, FlowId, ResponseStatus, named};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;

named! {
    /// What exchanges can be divided by.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Dimension {
        /// The client's address.
        Client = "client",
        /// The server's address and port.
        Server = "server",
        /// The user.
        User = "user",
        /// The share.
        Share = "share",
        /// The file: share and path.
        File = "file",
        /// The directory that holds the file: share and path.
        Directory = "directory",
        /// The file name's extension.
        Extension = "extension",
        /// The command.
        Command = "command",
        /// The group.
        Group = "group",
        /// The dialect.
        Dialect = "dialect",
        /// The TCP connection.
        Connection = "connection",
        /// The final response's status.
        Status = "status",
        /// The bytes moved, by powers of two.
        Size = "size",
    }
}

impl Dimension {
    /// What it adds to a key.
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
    /// A part of a key.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Field {
        /// The client's address.
        Client = "client",
        /// The server's address and port.
        Server = "server",
        /// The user.
        User = "user",
        /// The share.
        Share = "share",
        /// The file's path below the share.
        File = "file",
        /// The directory's path below the share; empty for the share's root.
        Directory = "directory",
        /// The extension in lower case; empty where the name has none.
        Extension = "extension",
        /// The command.
        Command = "command",
        /// The group.
        Group = "group",
        /// The dialect.
        Dialect = "dialect",
        /// The connection's number.
        FlowId = "flow_id",
        /// The connection's two ends.
        Connection = "connection",
        /// The status.
        Status = "status",
        /// The least size of a power of two.
        Size = "size",
    }
}

impl Field {
    /// The one of that name.
    pub fn named(name: &str) -> Option<Field> {
        Field::ALL.into_iter().find(|field| field.name() == name)
    }

    /// What an exchange has there.
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

/// The largest power of two that is not above a size; 0 for nothing.
fn bucket(size: u64) -> u64 {
    size.checked_ilog2().map_or(0, |exponent| 1 << exponent)
}

/// The value of a [`Field`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SliceFieldValue {
    /// A host.
    Address(IpAddr),
    /// A host's port.
    Socket(SocketAddr),
    /// A name or path.
    Text(SharedSubstring),
    /// A command.
    Command(Command),
    /// A group.
    Group(CommandGroup),
    /// A dialect.
    Dialect(Dialect),
    /// A connection.
    Flow(FlowId),
    /// Its client and server.
    Ends(SocketAddr, SocketAddr),
    /// A status.
    Status(ResponseStatus),
    /// From this many bytes on, to less than twice as many.
    Size(u64),
    /// The capture does not tell.
    Unknown,
}

impl SliceFieldValue {
    /// Bytes of the name that it keeps in memory.
    pub(super) fn name_bytes(&self) -> usize {
        if let SliceFieldValue::Text(piece) = self { piece.whole.len() } else { 0 }
    }
}

/// A piece of a shared text, compared by what it says.
#[derive(Debug, Clone)]
pub struct SharedSubstring {
    whole: Arc<str>,
    start: usize,
    end: usize,
}

impl SharedSubstring {
    /// All of it.
    pub fn whole(text: &Arc<str>) -> SharedSubstring {
        SharedSubstring { whole: Arc::clone(text), start: 0, end: text.len() }
    }

    /// What `piece` cuts out of it.
    fn cut(text: &Arc<str>, piece: fn(&str) -> &str) -> SharedSubstring {
        let part = piece(text);
        // An empty piece may come from elsewhere.
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
