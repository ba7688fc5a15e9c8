//! Clock steps: timestamps of a file go back at one place although its packets continue.
//!
//! Normally a file out of time order is sorted. That would be wrong if the clock was set back during the capture: then
//! the packets are in order and their times are not. TCP distinguishes the cases. After a clock step every stream
//! continues where it was; in files that were concatenated, or recorded from several interfaces, streams go back or the
//! surrounding packets belong to unrelated flows. After a step, later times are shifted forward so that it takes no
//! time.

use super::format::CaptureParser;
use super::look::Looker;
use super::pcapng::Interfaces;
use super::record::ParseStep;
use super::runs::{Descent, SortedRun};
use std::net::SocketAddr;

/// Packets examined on either side of a step.
pub(super) const NEIGHBOURS: usize = 64;
/// Smaller steps are reordering of neighbouring packets.
const LEAST_STEP_NS: i64 = 50_000_000;
/// Maximum number of bytes by which a stream may progress during the step.
const MAX_PROGRESS: i32 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StepBack {
    /// Number and time of the last packet before it; the time includes the shifts of earlier steps.
    pub(super) before: (u64, i64),
    /// Number of the first packet after it and its unshifted time.
    pub(super) after: (u64, i64),
}

struct StreamPosition {
    ends: (SocketAddr, SocketAddr),
    sequence: u32,
    end: u32,
}

/// Finds the clock steps among the places where time goes back, and shifts the runs after them.
pub(super) fn settle(
    bytes: &[u8],
    interfaces: &Interfaces,
    runs: &mut [SortedRun],
    descents: &[Descent],
) -> Vec<StepBack> {
    // Several interfaces may have several clocks, or one that is read at different moments.
    if interfaces.count() > 1 {
        return Vec::new();
    }
    let mut steps = Vec::new();
    let mut shift = 0;
    for (index, run) in runs.iter_mut().enumerate() {
        let descent = descents.iter().find(|descent| descent.run == index);
        if let Some(descent) = descent.filter(|descent| is_step(bytes, &mut interfaces.clone(), run, descent)) {
            let before = descent.time_before + shift;
            steps.push(StepBack { before: (run.number - 1, before), after: (run.number, run.time) });
            shift = before - run.time;
        }
        run.shift = shift;
    }
    steps
}

fn is_step(bytes: &[u8], interfaces: &mut Interfaces, run: &SortedRun, descent: &Descent) -> bool {
    if descent.time_before - run.time < LEAST_STEP_NS {
        return false;
    }
    let mut format = run.format;
    let mut before: Vec<StreamPosition> = Vec::new();
    for position in &descent.before {
        if let Some((place, _)) = place_at(bytes, *position, &mut format, interfaces)
            && let Some(place) = place
        {
            enter(&mut before, place);
        }
    }
    let mut behind: Vec<StreamPosition> = Vec::new();
    let (mut position, mut format) = (run.position, run.format);
    for _ in 0..NEIGHBOURS {
        let Some((place, length)) = place_at(bytes, position, &mut format, interfaces) else { break };
        position += length as u64;
        // Only the first packet of each direction counts.
        behind.extend(place.filter(|place| behind.iter().all(|known| known.ends != place.ends)));
    }
    // A stream counts only if its other direction was captured too: one direction alone proves nothing.
    let is_both_ways = |place: &StreamPosition| {
        let reverse = (place.ends.1, place.ends.0);
        before.iter().chain(&behind).any(|other| other.ends == reverse)
    };
    let (mut goes_on, mut contradicts) = (0, 0);
    for place in behind.iter().filter(|place| is_both_ways(place)) {
        let Some(known) = before.iter().find(|known| known.ends == place.ends) else { continue };
        match place.sequence.wrapping_sub(known.end) as i32 {
            0..=MAX_PROGRESS => goes_on += 1,
            _ => contradicts += 1,
        }
    }
    goes_on > 0 && contradicts == 0
}

/// Parses the packet at `position`. Returns its stream position if it is TCP, and the length of its record.
fn place_at(
    bytes: &[u8],
    position: u64,
    format: &mut CaptureParser,
    interfaces: &mut Interfaces,
) -> Option<(Option<StreamPosition>, usize)> {
    let window = bytes.get(usize::try_from(position).ok()?..)?;
    let (record, length) = match format.step(interfaces, window) {
        ParseStep::Packet(record, length) => (record, length),
        ParseStep::Skip { length, .. } => return Some((None, length)),
        ParseStep::More(_) | ParseStep::Stop(_) => return None,
    };
    let mut place = None;
    // A new decoder for each packet, so fragments are never reassembled.
    Looker::default().look(&record, window, |segment| {
        let end = segment.sequence.wrapping_add(segment.payload_length).wrapping_add(u32::from(segment.flags.fin()));
        let ends = (segment.source, segment.destination);
        place = (!segment.flags.syn()).then_some(StreamPosition { ends, sequence: segment.sequence, end });
    });
    Some((place, length))
}

fn enter(places: &mut Vec<StreamPosition>, place: StreamPosition) {
    match places.iter_mut().find(|known| known.ends == place.ends) {
        Some(known) if place.end.wrapping_sub(known.end) as i32 > 0 => known.end = place.end,
        Some(_) => {}
        None => places.push(place),
    }
}
