//! The same file opened again and again, as an application does that reads a setting at a time.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Pair, PathFacts, PathKey, bytes, named};
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, span, thousands, unbroken};

pub(super) const INI_PATTERN: Detector = Detector {
    id: "ini-pattern",
    culprit: Culprit::Application,
    title: "The same file opened again and again",
    condition: "One file was opened `opens` times within `window` on a connection, and read or written.",
    advice: "Have the application read the file once and keep it, or keep the file on the local disk: an INI file that is read setting by setting costs an open, a read and a close each. A lease does not help where the client closes the file at once; a shorter round trip does.",
    source: "docs/studies.md: an article on an INI file of 3,000 settings, opened 3,000 times",
    thresholds: &[("opens", "20"), ("window", "10s")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "small-file-copy", "small-io", "slow-client-link"],
    detect: Detect::Path(detect),
};

/// Commands on a path come one at a time up to this mean number of outstanding ones.
const ONE_AT_A_TIME: f64 = 1.2;

fn detect(pair: &Pair<'_>, key: &PathKey, facts: &PathFacts) -> Option<Finding> {
    let most = f64::from(facts.opens_window.most);
    // A directory is opened for every listing and every look at what is in it.
    let moves = facts.bytes_read + facts.bytes_written > 0;
    if most < pair.threshold("ini-pattern", "opens") || facts.list_commands > 0 || !moves {
        return None;
    }
    let depth = facts.response_time as f64 / facts.outstanding.max(1) as f64;
    let serial = if depth <= ONE_AT_A_TIME { ", one at a time" } else { "" };
    let each = (facts.commands as f64 / facts.opens as f64).round() as u64;
    let moved = match (facts.bytes_read, facts.bytes_written) {
        (read, 0) => format!(", and read {} of a {} file", bytes(read), bytes(facts.extent)),
        (0, written) => format!(", and wrote {} of a {} file", bytes(written), bytes(facts.extent)),
        (read, written) => {
            format!(", read {} and wrote {} of a {} file", bytes(read), bytes(written), bytes(facts.extent))
        }
    };
    let what = format!(
        "{} opened {} {} times in {}{serial}, {} each{moved}",
        pair.client,
        named(&key.path),
        thousands(facts.opens),
        unbroken(span(facts.span())),
        counted(each, "command", "commands"),
    );
    // One open would have done.
    let waited = pair.once(Nanos(facts.outstanding));
    let lost = Nanos((waited.0 as f64 * (1.0 - 1.0 / facts.opens.max(1) as f64)) as i64);
    Some(Finding::new(Confidence::High, what).lost(LostTime::between(Nanos(lost.0 * 9 / 10), lost, waited)))
}
