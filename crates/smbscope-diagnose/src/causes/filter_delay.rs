//! Opens that take much longer than everything else.

use super::{Detect, Detector, Found};
use crate::answer::{Confidence, Culprit, Lost};
use crate::facts::{Fact, Kind, Pair};
use smbscope_model::Nanos;
use smbscope_model::prose::unbroken;

pub(super) const FILTER_DELAY: Detector = Detector {
    id: "filter-delay",
    culprit: Culprit::Server,
    title: "Something inspects each file when it is opened",
    advice: "A virus scanner, an archiving or encryption filter, or tiered storage on the server looks into each file as it is opened. Measure with the scanner's exclusion for this share (studies/antivirus.toml). An exclusion costs protection: scan in another place instead.",
    source: "Microsoft, \"Slow SMB file transfer speed\"; docs/studies.md: antivirus on the server",
    thresholds: &[("opens", "10"), ("ratio", "4"), ("least", "4ms")],
    covers: &["slow-storage", "rtt-bound", "serial-client", "metadata-heavy", "small-file-copy", "office-slow-open", "server-saturation", "slow-client-link", "missing-file-probes"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Found> {
    const ID: &str = "filter-delay";
    let opens = pair.served(Kind::Open);
    let others = pair.facts.served_together(&[Kind::Close, Kind::Query]);
    if (opens.count as f64) < pair.threshold(ID, "opens") || others.count < 5 {
        return None;
    }
    let reads = pair.facts.served_together(&[Kind::Read, Kind::Write]);
    let (typical, usual) = (opens.median(), others.median());
    let ratio = typical.0 as f64 / usual.0.max(50_000) as f64;
    // Storage that is slow for reads and writes is slow for opens, too.
    let all_slow = reads.count >= 5 && reads.median().0 * 2 > typical.0;
    if typical < pair.time(ID, "least") || ratio < pair.threshold(ID, "ratio") || all_slow {
        return None;
    }
    let what = format!(
        "{} took {} to open a file for {}, {ratio:.0}× as long as to close or query one ({})",
        pair.server_name(),
        unbroken(typical),
        pair.client,
        unbroken(usual),
    );
    // The share of opens that are slow, at what a slow one takes.
    let depth = pair.depth().max(1.0);
    let sum = |each: i64| pair.once(Nanos((each as f64 * opens.count as f64 / depth) as i64));
    let mean = sum((opens.mean() - usual).0);
    let trimmed = sum((typical - usual).0).min(mean.max(Nanos(1)));
    Some(
        Found::new(Confidence::Medium, what)
            .lost(Lost::between(trimmed, Nanos((trimmed.0 + mean.0) / 2), mean))
            .from_first(pair.facts.of(Fact::Open))
            .filter(" && (smb2.cmd == 5 || smb.cmd == 0xa2)"),
    )
}
