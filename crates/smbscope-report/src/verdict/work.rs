//! The active time of connections, by whom it belongs to.

use smbscope_model::{Exchange, Nanos, TimeKind};
use smbscope_stats::{TimePart, TimeSplit};

/// Time with commands outstanding, and the client's time to think between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Work {
    pub(super) server: Nanos,
    /// Transfers included.
    pub(super) network: Nanos,
    pub(super) transfers: Nanos,
    /// Service time whose round trip is not known.
    pub(super) unclear: Nanos,
    pub(super) client: Nanos,
}

/// Who accounts for most of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Most {
    Server,
    Network,
    /// The round trip is not known, and could turn the answer.
    Unclear,
}

impl Work {
    pub(super) fn of(split: &TimeSplit) -> Work {
        let transfers = Nanos(split.part(TimePart::RequestTransfer).0 + split.part(TimePart::ResponseTransfer).0);
        Work {
            server: split.part(TimePart::Server),
            network: Nanos(split.part(TimePart::Network).0 + transfers.0),
            transfers,
            unclear: split.part(TimePart::ServerOrNetwork),
            client: split.part(TimePart::Think),
        }
    }

    /// The phases of some exchanges, each counted whole.
    pub(super) fn phases<'a>(exchanges: impl Iterator<Item = &'a Exchange>) -> Work {
        let mut work = Work::default();
        for exchange in exchanges {
            let time = |kind| exchange.time(kind).map_or(0, |time| time.0.max(0));
            let transfers = time(TimeKind::RequestTransfer) + time(TimeKind::ResponseTransfer);
            // What was lost and sent again held the command up, wherever in it that was.
            let resent = time(TimeKind::RetransmissionDelay).min(time(TimeKind::ResponseTime));
            let service = time(TimeKind::ServiceTime);
            let rest = (time(TimeKind::ResponseTime) - resent).max(0);
            let scaled = |part: i64| match service + transfers {
                0 => 0,
                whole => (i128::from(part) * i128::from(rest) / i128::from(whole)) as i64,
            };
            work.transfers.0 += scaled(transfers);
            work.network.0 += resent + scaled(transfers);
            match exchange.time(TimeKind::ServerTime) {
                Some(server) => {
                    let server = server.0.clamp(0, service);
                    work.server.0 += scaled(server);
                    work.network.0 += scaled(service - server);
                }
                None => work.unclear.0 += scaled(service),
            }
        }
        work
    }

    /// With commands outstanding.
    pub(super) fn waited(&self) -> Nanos {
        Nanos(self.server.0 + self.network.0 + self.unclear.0)
    }

    pub(super) fn active(&self) -> Nanos {
        Nanos(self.waited().0 + self.client.0)
    }

    pub(super) fn most(&self) -> Most {
        if self.server >= Nanos(self.network.0 + self.unclear.0) {
            Most::Server
        } else if self.network >= Nanos(self.server.0 + self.unclear.0) {
            Most::Network
        } else {
            Most::Unclear
        }
    }
}

/// Whether a part is at least so many percent of a whole.
pub(super) fn is_at_least(part: Nanos, percent: i64, whole: Nanos) -> bool {
    i128::from(part.0) * 100 >= i128::from(whole.0) * i128::from(percent)
}
