//! Commands one after the other although several at once are allowed.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Fact, Pair};
use smbscope_model::Nanos;
use smbscope_model::prose::counted;
use smbscope_stats::TimePart;

pub(super) const SERIAL_CLIENT: Detector = Detector {
    id: "serial-client",
    culprit: Culprit::Application,
    title: "One command after the other",
    condition: "At least `commands` commands with at most `outstanding` outstanding on average, and round trips of `trip` or longer took `share` of the active time.",
    advice: "With one command outstanding each costs a full round trip, and the server idles in between. Use tools that keep several outstanding (robocopy /MT, larger queue depth, read-ahead), or bring the client nearer to the server.",
    source: "Little's law; Azure Files performance guide: parallel requests",
    thresholds: &[("share", "50%"), ("commands", "100"), ("outstanding", "1.2"), ("trip", "1ms")],
    covers: &["metadata-heavy"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "serial-client";
    let commands = pair.facts.counted(Fact::Command);
    let network = pair.part(TimePart::Network);
    let share = network.0 as f64 / pair.whole.active.0.max(1) as f64;
    if (commands.count as f64) < pair.threshold(ID, "commands")
        || share < pair.threshold(ID, "share")
        || pair.depth() > pair.threshold(ID, "outstanding")
        || pair.round_trip().is_none_or(|trip| trip < pair.time(ID, "trip"))
    {
        return None;
    }
    let what = format!(
        "{} sent {} one after the other ({:.2} outstanding on average)",
        pair.client,
        counted(commands.count, "command", "commands"),
        pair.depth(),
    );
    Some(
        Finding::new(Confidence::Medium, what)
            .lost(LostTime::between(Nanos(network.0 / 2), network, network))
            .first_of(commands),
    )
}
