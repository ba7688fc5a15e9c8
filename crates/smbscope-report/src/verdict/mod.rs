//! Is anything slow, and whose is it: the server's, the network's or the client's? In plain English, with what supports it.
//!
//! 1. **Is anything slow?** [`Thresholds`] decide: the 95th percentile of a group, the longest command, the share of its
//!    active time that a client waits. Active time is that in which commands were outstanding, and the client's time to
//!    think between them; idle time, expected waits and what the capture does not tell are left out. A **stall** is slow as
//!    well: commands whose service time is at least [`STALL`], a hundred medians and their group's threshold, when such
//!    waits make up at least [`STALL_SHARE`] percent of the active time. Each server and each client is judged by what its
//!    users waited for (`judge`), so that one slow server does not hide behind many users who think.
//! 2. **Who leads?** One slow server of several; one slow client of several, unless at least half of them are slow; the
//!    whole only where it is uniform.
//! 3. **Whose is it?** A stall is the server's, since no round trip takes that long, unless a segment was sent again. Where
//!    only single commands are slow, their phases tell; else whoever has more of the time in which commands were outstanding:
//!    the server, or the network with transfers, round trips and retransmissions. Where the round trip is not known and that
//!    could turn the answer, there is none.
//! 4. **Nothing is slow:** then the client is named when it thought for at least [`CLIENT_SHARE`] percent of an active time
//!    that is long enough to be noticed, and nobody otherwise.

mod judge;
mod next;
mod stall;
mod thresholds;
mod words;
mod work;

pub use thresholds::Thresholds;

use crate::Report;
use crate::format::NO_BREAK;
use crate::next::Next;
use judge::{Judged, Judgement};
use serde::{Deserialize, Serialize};
use smbscope_model::Nanos;
use smbscope_stats::TimePart;
use work::{Most, Work, is_at_least};

/// The shortest service time that is a stall.
const STALL: Nanos = Nanos(250_000_000);
/// Percent of the active time that stalls must have taken.
const STALL_SHARE: i64 = 10;
/// Percent of the active time from which on the client's own time is the answer.
const CLIENT_SHARE: i64 = 60;
/// Servers and clients that are listed as slow.
const LISTED_MAX: usize = 10;

/// Whose the seconds are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Who {
    /// The server's.
    Server,
    /// The network's: transfers, round trips, retransmissions.
    Network,
    /// The client's own: nothing is slow, and the client was idle between requests most of the time.
    Client,
    /// Nobody's: nothing is slow.
    Nothing,
    /// Nobody's: expected waits only.
    Waiting,
    /// Nobody's: no command was outstanding.
    Idle,
    /// The capture does not tell.
    #[default]
    Unknown,
}

/// Is anything slow, and is it the server, the network or the client? In plain English.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Whose the waits are.
    pub who: Who,
    /// The answer in a sentence.
    pub headline: String,
    /// What supports it, a sentence each: what is slow, load, what caused the most wait, where the time went.
    pub sentences: Vec<String>,
    /// The commands that look closer, at most two.
    pub next: Vec<Next>,
    /// The server or client that the headline is about; null where it is about the whole.
    pub subject: Option<Subject>,
    /// Slow servers, then slow clients: of each, the 10 that waited longest.
    pub slow: Vec<SlowSubject>,
    /// What counted as slow, as `--slow` takes it: the longest p95 of each group, the longest command, the share of its
    /// active time that a client waits, and its least total wait.
    pub thresholds: String,
}

/// A server or a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// Its address and port.
    Server(String),
    /// Its address.
    Client(String),
}

/// A slow server or client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlowSubject {
    /// Which one.
    pub subject: Subject,
    /// Whose its waits are.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::who_is_slow"))]
    pub who: Who,
    /// Time with commands outstanding.
    pub waited_ns: Nanos,
    /// That, and the client's time to think between commands.
    pub active_ns: Nanos,
    /// The thresholds that it exceeds.
    pub reasons: Vec<String>,
}

impl Verdict {
    /// Without the marks that keep numbers and their units on one line of text.
    pub(crate) fn into_plain(self) -> Verdict {
        let plain = |text: String| text.replace(NO_BREAK, " ");
        let slow = self
            .slow
            .into_iter()
            .map(|slow| SlowSubject { reasons: slow.reasons.into_iter().map(plain).collect(), ..slow });
        Verdict {
            headline: plain(self.headline),
            sentences: self.sentences.into_iter().map(plain).collect(),
            slow: slow.collect(),
            ..self
        }
    }
}

/// The verdict on a report.
pub(crate) fn of(report: &Report) -> Verdict {
    let judgement = Judgement::of(report);
    let worst = judgement.worst(report);
    let who = match worst {
        Some(worst) => whose(report, worst),
        None => unless_slow(report, &judgement.whole.work),
    };
    let listed = |judged: &[Judged<'_>]| -> Vec<SlowSubject> {
        let slow = judged.iter().filter(|one| one.is_slow()).take(LISTED_MAX);
        slow.filter_map(|one| words::slow_subject(report, one, whose(report, one))).collect()
    };
    Verdict {
        who,
        headline: words::headline(report, who, &judgement, worst),
        sentences: words::sentences(report, who, &judgement, worst),
        next: next::steps(report, who, &judgement, worst),
        subject: worst.and_then(|worst| words::subject(worst.whom)),
        slow: [listed(&judgement.servers), listed(&judgement.clients)].concat(),
        thresholds: report.slow.to_string(),
    }
}

/// Whose the waits of somebody slow are.
fn whose(report: &Report, judged: &Judged<'_>) -> Who {
    match &judged.stall {
        Some(stall) if stall.resent => return Who::Network,
        Some(_) => return Who::Server,
        None => {}
    }
    match waits(report, judged).most() {
        Most::Server => Who::Server,
        Most::Network => Who::Network,
        Most::Unclear => Who::Unknown,
    }
}

/// The waits that make somebody slow: those of single commands, or all.
fn waits(report: &Report, judged: &Judged<'_>) -> Work {
    let single = report.aggregate.slowest.iter().filter(|exchange| judged.whom.includes(exchange));
    let single = Work::phases(single.filter(|exchange| words::is_long(report, exchange)));
    let known = judged.work.waited().0 > 0;
    if (judged.only_single() || !known) && single.waited().0 > 0 { single } else { judged.work }
}

/// Whose the time is where nothing is slow.
fn unless_slow(report: &Report, work: &Work) -> Who {
    let split = &report.aggregate.splits.whole;
    let unknown = split.part(TimePart::Unknown);
    if report.aggregate.count == 0 || (work.active() <= unknown && unknown.0 > 0) {
        return Who::Unknown;
    }
    if work.active().0 == 0 {
        return if split.part(TimePart::Waiting).0 > 0 { Who::Waiting } else { Who::Idle };
    }
    let thinks = work.client >= report.slow.total && is_at_least(work.client, CLIENT_SHARE, work.active());
    if thinks { Who::Client } else { Who::Nothing }
}
