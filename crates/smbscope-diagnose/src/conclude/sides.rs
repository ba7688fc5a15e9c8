//! Evidence from captures at several points: where the time passes, and where packets are lost.

use smbscope_model::CommandGroup;
use smbscope_model::prose::{capital, counted, unbroken};
use smbscope_stats::sides::{GroupPath, PathSegment, SidesFigures};

/// Groups named in the evidence.
const GROUPS_NAMED: usize = 2;
/// Part of the waits from which a group is named.
const GROUP_SHARE: i128 = 10;
/// Percentage of commands seen at one point only from which the answer says so.
const UNPAIRED_PERCENT: u64 = 2;

/// Sentences on the way between the capture points.
#[derive(Default)]
pub(super) struct BetweenPoints {
    pub(super) evidence: Vec<String>,
    pub(super) caveats: Vec<String>,
}

impl BetweenPoints {
    pub(super) fn new(sides: &SidesFigures) -> BetweenPoints {
        let mut told = BetweenPoints::default();
        for segment in &sides.segments {
            told.evidence.extend(times(segment));
            told.evidence.extend(devices(segment));
            told.evidence.extend(losses(segment));
            told.caveats.extend(clocks(segment));
            told.caveats.extend(unpaired(segment));
        }
        told
    }
}

/// Says where the time of the groups passes: `Open/Close: 41.0 ms of 44.0 ms pass between client and server, 3.00 ms
/// at the server.`
fn times(segment: &PathSegment) -> Vec<String> {
    let waits = |group: &&GroupPath| group.group.in_headline() && group.group != CommandGroup::Waiting;
    let all: i128 = segment.groups.iter().filter(waits).map(|group| group.response_time.sum_ns).sum();
    let named = segment.groups.iter().filter(waits).filter(|group| group.response_time.sum_ns * GROUP_SHARE >= all);
    let sentence = |group: &GroupPath| {
        let mean = |figures: &smbscope_stats::DurationStatistics| figures.mean.unwrap_or_default();
        let [whole, path, beyond] = [&group.response_time, &group.path, &group.beyond].map(mean).map(unbroken);
        let count = counted(group.response_time.count, "command", "commands");
        format!(
            "{}: of {whole} per command, {path} pass between {} and {}, {beyond} beyond ({count}, seen at both).",
            group.group, segment.from, segment.to
        )
    };
    named.take(GROUPS_NAMED).map(sentence).collect()
}

fn devices(segment: &PathSegment) -> Option<String> {
    let PathSegment { from, to, connections, rewritten, terminated, .. } = segment;
    let of = |count: u64| match (count, *connections) {
        (1, 1) => "the connection".to_owned(),
        (count, all) if count == all => format!("all {all} connections"),
        (count, all) => format!("{count} of {all} connections"),
    };
    match (*terminated, *rewritten) {
        (0, 0) => None,
        (0, rewritten) => {
            Some(format!("A device between {from} and {to} changes the addresses or ports of {}.", of(rewritten)))
        }
        (terminated, _) => Some(format!(
            "A device between {from} and {to} ends TCP: it acknowledges for the server on {}, so that the round trip \
             that {from} measures is only the way to this device.",
            of(terminated)
        )),
    }
}

fn losses(segment: &PathSegment) -> Option<String> {
    let PathSegment { from, to, lost_to_server, lost_to_client, packets_to_server, packets_to_client, .. } = segment;
    let (Some(to_server), Some(to_client)) = (lost_to_server, lost_to_client) else { return None };
    let lost = |lost: u64, of: u64, way: &str| {
        (lost > 0).then(|| {
            let share = 100.0 * lost as f64 / (of.max(lost)) as f64;
            format!("{share:.1}% of the data packets {way} ({lost} of {of})")
        })
    };
    let there = lost(*to_server, *packets_to_server, &format!("that passed {from} never reached {to}"));
    let back = lost(*to_client, *packets_to_client, &format!("that passed {to} on the way back never reached {from}"));
    match (there, back) {
        (None, None) if *packets_to_server + *packets_to_client > 0 => {
            Some(format!("Nothing was lost between {from} and {to}."))
        }
        (None, None) => None,
        (one, other) => {
            let parts: Vec<String> = one.into_iter().chain(other).collect();
            Some(capital(&format!("{}.", parts.join("; "))))
        }
    }
}

fn clocks(segment: &PathSegment) -> Option<String> {
    let PathSegment { from, to, clock, .. } = segment;
    (clock.steps > 0).then(|| {
        format!(
            "The clock of {from} or {to} stepped {} during the captures; times are corrected.",
            counted(clock.steps, "time", "times")
        )
    })
}

fn unpaired(segment: &PathSegment) -> Option<String> {
    let PathSegment { from, to, pairs, only_from, .. } = segment;
    (only_from * 100 > (pairs + only_from) * UNPAIRED_PERCENT).then(|| {
        format!(
            "{} on the same connections were seen at {from} but not at {to}: a device in between answered them, or \
             the capture at {to} lacks them.",
            counted(*only_from, "command", "commands")
        )
    })
}
