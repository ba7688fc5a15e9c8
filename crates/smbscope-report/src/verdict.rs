//! Is it the server, the network or the client? The answer in plain English, and what supports it.
//!
//! It goes by the time with work in hand: that in which commands were outstanding, and the client's time to think
//! between them. Idle time, waits by design and what the capture does not tell are left out.
//!
//! 1. **A stall** decides, where somebody was left waiting for long: commands whose service time is at least
//!    [`STALL`] and longer than a hundred medians, when such waits make up at least [`STALL_SHARE`] percent of the time
//!    with work in hand. A round trip does not take that long, so it is the server's, unless a segment was sent again.
//! 2. **The client**, when it thought for at least [`CLIENT_SHARE`] percent of the time.
//! 3. Else whoever has more of the time in which commands were outstanding: **the server**, or **the network** with
//!    transfers, round trips and retransmissions. Where the round trip is not known and that could turn the answer, there
//!    is none.

mod stall;
mod words;

use crate::Report;
use crate::format::NO_BREAK;
use serde::Serialize;
use smbscope_model::Nanos;
use smbscope_stats::{TimePart, TimeSplit};

/// The shortest service time that is a stall.
const STALL: Nanos = Nanos(250_000_000);
/// Percent of the time with work in hand that stalls must have taken.
const STALL_SHARE: i64 = 10;
/// Percent of the time with work in hand from which on the client's own time is the answer.
const CLIENT_SHARE: i64 = 60;

/// Whose the seconds are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Who {
    /// The server's.
    Server,
    /// The network's: transfers, round trips, retransmissions.
    Network,
    /// The client's own.
    Client,
    /// Nobody's: all of it was waits by design.
    Waiting,
    /// Nobody's: nothing happened.
    Idle,
    /// The capture does not tell.
    Unknown,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whose the seconds are.
    pub who: Who,
    /// The answer in a sentence.
    pub headline: String,
    /// What supports it, a sentence each.
    pub sentences: Vec<String>,
}

impl Verdict {
    /// Without the marks that keep numbers and their units on one line of text.
    pub(crate) fn into_plain(self) -> Verdict {
        let plain = |text: String| text.replace(NO_BREAK, " ");
        Verdict {
            who: self.who,
            headline: plain(self.headline),
            sentences: self.sentences.into_iter().map(plain).collect(),
        }
    }
}

/// The time with work in hand, by whom it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Work {
    server: Nanos,
    /// Transfers included.
    network: Nanos,
    transfers: Nanos,
    /// Service time of which the round trip is not known.
    unclear: Nanos,
    client: Nanos,
}

impl Work {
    fn of(split: &TimeSplit) -> Work {
        let transfers = Nanos(split.part(TimePart::RequestTransfer).0 + split.part(TimePart::ResponseTransfer).0);
        Work {
            server: split.part(TimePart::Server),
            network: Nanos(split.part(TimePart::Network).0 + transfers.0),
            transfers,
            unclear: split.part(TimePart::ServerOrNetwork),
            client: split.part(TimePart::Think),
        }
    }

    /// With commands outstanding.
    fn waited(&self) -> Nanos {
        Nanos(self.server.0 + self.network.0 + self.unclear.0)
    }

    fn total(&self) -> Nanos {
        Nanos(self.waited().0 + self.client.0)
    }

    fn is_at_least(part: Nanos, percent: i64, whole: Nanos) -> bool {
        i128::from(part.0) * 100 >= i128::from(whole.0) * i128::from(percent)
    }
}

/// The verdict on a report.
pub(crate) fn of(report: &Report) -> Verdict {
    let split = &report.aggregate.splits.whole;
    let work = Work::of(split);
    let stall = stall::longest(report).filter(|stall| Work::is_at_least(stall.total, STALL_SHARE, work.total()));
    let who = match &stall {
        _ if report.aggregate.count == 0 => Who::Unknown,
        Some(stall) if stall.resent => Who::Network,
        Some(_) => Who::Server,
        None => by_seconds(split, &work),
    };
    Verdict {
        who,
        headline: words::headline(who, &work, stall.as_ref(), split),
        sentences: words::sentences(report, who, &work, stall.as_ref()),
    }
}

fn by_seconds(split: &TimeSplit, work: &Work) -> Who {
    let unknown = split.part(TimePart::Unknown);
    if work.total() <= unknown && unknown.0 > 0 {
        return Who::Unknown;
    }
    if work.total().0 == 0 {
        return if split.part(TimePart::Waiting).0 > 0 { Who::Waiting } else { Who::Idle };
    }
    if Work::is_at_least(work.client, CLIENT_SHARE, work.total()) {
        return Who::Client;
    }
    if work.server >= Nanos(work.network.0 + work.unclear.0) {
        Who::Server
    } else if work.network >= Nanos(work.server.0 + work.unclear.0) {
        Who::Network
    } else {
        Who::Unknown
    }
}
