//! Where the time went: the time of connections, divided without counting any of it twice.
//!
//! The time of a connection is that from its first packet to its last, and every moment of it belongs to one
//! [`TimePart`]:
//!
//! - **Commands are outstanding.** The moment is divided equally among them, and each share goes to the phase in which
//!   its command is: request transfer, service, response transfer. Of the service time, the round trip between capture
//!   point and server is the network's, half at its beginning and half at its end; the rest is the server's. Where the
//!   round trip is not known, the two are not divided. Two things hold up everything on a connection, and take the
//!   whole moment: a response that is coming in (nothing can arrive before it has), and a lost segment that is being
//!   sent again. A server that stands still during a transfer ([`Exchange::standstill`]) takes it too.
//! - **Nothing is outstanding**, between a response and the next request. Up to [`THINK_MAX`] it is the client's time
//!   to think, less the round trip between capture point and client, which is the network's. Longer, it is idle.
//! - **Expected waits** take moments in which nothing else is outstanding. A subscription to changes
//!   ([`Exchange::is_subscription`]) holds nobody up: beside it, a client still thinks.
//! - An unanswered request puts what is left of the connection down to the server, or to the network if TCP did not
//!   acknowledge the request.
//! - Where the end of a command was not captured, or the beginning, what lies between it and its neighbours is unknown.
//!
//! Where a filter chose some of the commands, a moment is theirs as long as one of them is outstanding: it is divided among
//! them alone, and the time to think before one of them is the client's. All other time with work is filtered out.
//!
//! Before the first request and after the last response a connection is idle. The figures of a client and of the whole
//! are sums over their connections.

mod shares;
mod sweep;
mod table;

#[cfg(test)]
mod tests;

pub use sweep::THINK_MAX;
pub use table::Splits;

pub(crate) use sweep::CommandSpan;
pub(crate) use table::SplitTable;

use serde::{Deserialize, Serialize};
#[allow(unused_imports, reason = "named in the documentation above")]
use smbscope_model::Exchange;
use smbscope_model::Nanos;

/// To whom or what a moment is put down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimePart {
    /// The client's own time.
    Think,
    /// First to last packet of requests.
    RequestTransfer,
    /// Round trips, and waits for segments to be sent again.
    Network,
    /// Service time less the round trip.
    Server,
    /// Service time where the round trip is not known.
    ServerOrNetwork,
    /// First to last packet of responses.
    ResponseTransfer,
    /// Expected waits, and nothing else outstanding.
    Waiting,
    /// Nothing outstanding for long, before the first request, after the last response.
    Idle,
    /// The capture does not tell.
    Unknown,
    /// Only commands that a filter left out were outstanding, or the client thought before one of them.
    FilteredOut,
}

impl TimePart {
    /// Every part, in the order of the report.
    pub const ALL: [TimePart; 10] = [
        TimePart::Think,
        TimePart::RequestTransfer,
        TimePart::Network,
        TimePart::Server,
        TimePart::ServerOrNetwork,
        TimePart::ResponseTransfer,
        TimePart::Waiting,
        TimePart::Idle,
        TimePart::Unknown,
        TimePart::FilteredOut,
    ];
}

/// Where the time of a connection, or of several, went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimeSplit {
    /// Connections that were added up.
    pub connections: u64,
    /// Time with at least one command outstanding, expected waits not counted.
    pub busy: Nanos,
    /// Sum over the commands of the time for which each was outstanding.
    pub outstanding: Nanos,
    parts: [i64; TimePart::ALL.len()],
}

impl TimeSplit {
    /// What went to a part.
    pub fn part(&self, part: TimePart) -> Nanos {
        Nanos(self.parts[part as usize])
    }

    /// First to last packet: the sum of the parts.
    pub fn elapsed(&self) -> Nanos {
        Nanos(self.parts.iter().fold(0, |sum, part| sum.saturating_add(*part)))
    }

    /// Time with a command outstanding, by what the parts say: servers, network and transfers.
    pub fn waited(&self) -> Nanos {
        let parts = [
            TimePart::RequestTransfer,
            TimePart::Network,
            TimePart::Server,
            TimePart::ServerOrNetwork,
            TimePart::ResponseTransfer,
        ];
        Nanos(parts.into_iter().fold(0, |sum: i64, part| sum.saturating_add(self.part(part).0)))
    }

    /// Time in which data of a request or response was on its way.
    pub fn transfers(&self) -> Nanos {
        let [request, response] = [TimePart::RequestTransfer, TimePart::ResponseTransfer].map(|part| self.part(part).0);
        Nanos(request.saturating_add(response))
    }

    /// Waits, and the client's time to think between commands.
    pub fn active(&self) -> Nanos {
        Nanos(self.waited().0.saturating_add(self.part(TimePart::Think).0))
    }

    /// Commands outstanding on average while there was one.
    pub fn concurrency(&self) -> Option<f64> {
        (self.busy.0 > 0).then(|| self.outstanding.0 as f64 / self.busy.0 as f64)
    }

    /// Adds the time of another connection.
    pub fn add(&mut self, other: &TimeSplit) {
        self.connections += other.connections;
        self.busy = Nanos(self.busy.0.saturating_add(other.busy.0));
        self.outstanding = Nanos(self.outstanding.0.saturating_add(other.outstanding.0));
        for (mine, theirs) in self.parts.iter_mut().zip(other.parts) {
            *mine = mine.saturating_add(theirs);
        }
    }
}
