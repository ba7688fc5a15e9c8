//! Timestamps that do not follow the order of the packets, and the clock faults that can cause this.
//!
//! Normally a file out of time order is split into ascending runs ([`SortedRun`]) that are merged. Two faults need
//! another treatment, and TCP reveals both. Clock steps ([`settle`]): the clock was set back, so the packets are in
//! order and their times are not; every stream continues at its position. Later times are shifted forward so that a
//! step takes no time. Two clocks ([`ClockCorrection`]): a tap with two ports, or two merged files, stamped the
//! directions by different clocks. An acknowledgment can't precede its data, so the minimum delays of both directions
//! bound the clock offset (Paxson, "On Calibrating Measurements of Packet Transit Times", SIGMETRICS 1998).

use super::format::CaptureParser;
use super::pcapng::Interfaces;
use super::{PacketRecord, ParseStep};
use crate::decode::Decoder;
use crate::segment::{Packet, TcpSegment};
use smbscope_model::{CaptureClockOffset, Nanos, Quality, Stamp, Timestamp};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SortedRun {
    pub(super) position: u64,
    pub(super) number: u64,
    pub(super) time: i64,
    pub(super) format: CaptureParser,
    /// Added to its timestamps, to compensate for clock steps.
    pub(super) shift: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Descent {
    pub(super) run: usize,
    pub(super) time_before: i64,
    pub(super) before: Vec<u64>,
}

#[derive(Default)]
pub(super) struct Looker {
    decoder: Decoder,
    quality: Quality,
}

impl Looker {
    /// Passes on the TCP segment that the packet contains or completes. `window` starts with its record.
    pub(super) fn look(&mut self, record: &PacketRecord, window: &[u8], take: impl FnOnce(&TcpSegment<'_>)) {
        let end = record.data_start.saturating_add(record.data_length);
        let Some(data) = window.get(record.data_start..end) else { return };
        let stamp = Stamp { time: Timestamp(record.time), ..Stamp::default() };
        let packet =
            Packet { stamp, link_type: record.link_type, data, wire_length: record.wire_length, process: None };
        if let Some(segment) = self.decoder.decode(&packet, &mut self.quality) {
            take(&segment);
        }
    }
}

pub(super) const NEIGHBOURS: usize = 64;
/// Smaller steps are reordering of neighbouring packets.
const LEAST_STEP_NS: i64 = 50_000_000;
/// Bytes that a stream may progress during a clock step.
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

pub(super) fn settle(
    bytes: &[u8],
    interfaces: &Interfaces,
    runs: &mut [SortedRun],
    descents: &[Descent],
) -> Vec<StepBack> {
    // Interfaces may have separate clocks, or read the same clock at different moments.
    if interfaces.count() > 1 {
        return Vec::new();
    }
    let mut steps = Vec::new();
    let mut shift = 0;
    for (index, run) in runs.iter_mut().enumerate() {
        let descent = descents.iter().find(|descent| descent.run == index);
        if let Some(descent) = descent.filter(|descent| is_step(bytes, &mut interfaces.clone(), run, descent)) {
            let before = descent.time_before.saturating_add(shift);
            steps.push(StepBack { before: (run.number - 1, before), after: (run.number, run.time) });
            shift = before.saturating_sub(run.time);
        }
        run.shift = shift;
    }
    steps
}

fn is_step(bytes: &[u8], interfaces: &mut Interfaces, run: &SortedRun, descent: &Descent) -> bool {
    if descent.time_before.saturating_sub(run.time) < LEAST_STEP_NS {
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

/// Packets examined at the start of a capture; if the first ones show no problem, only those.
const SAMPLE_PACKETS: usize = 4096;
const FIRST_LOOK: usize = 512;
/// Bytes of a compressed capture that are decompressed for this.
pub(super) const SAMPLE_BYTES: usize = 512 << 10;
/// Disorder below this occurs within one capturing system.
const LEAST_NS: i64 = 100_000;
/// Acknowledgments before their data that prove a second clock. They must also be one in four of a direction.
const IMPOSSIBLE_MIN: usize = 3;
const IMPOSSIBLE_SHARE: usize = 4;
/// Round trip below which the capture point is so near to both ends that it does not matter which is nearer.
const NEAR_NS: i64 = 100_000;

pub(super) struct ClockCorrection {
    late: HashSet<IpAddr>,
    early: HashSet<IpAddr>,
    /// Server ports, which classify addresses that are not in the sample.
    ports: HashSet<u16>,
    offset: CaptureClockOffset,
    looker: Mutex<Looker>,
}

/// Data and acknowledgment times of one flow. The end with the lower port is the server.
#[derive(Debug, Default)]
struct FlowAckTimes {
    /// Time of the data that ends at a sequence number, by direction, client first; `None` if it was sent twice.
    sent: [HashMap<u32, Option<i64>>; 2],
    /// Time of the first acknowledgment of a sequence number, by direction of the acknowledgment.
    acknowledged: [HashMap<u32, i64>; 2],
}

/// Bounds on the offset between the clocks, from the minimum delays between data and acknowledgment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    low: i64,
    high: i64,
}

impl FlowAckTimes {
    fn enter(&mut self, segment: &TcpSegment<'_>, of_server: usize) {
        let time = segment.stamp.time.0;
        let flags = segment.flags;
        let length = segment.payload_length + u32::from(flags.syn()) + u32::from(flags.fin());
        if length > 0 {
            let end = segment.sequence.wrapping_add(length);
            let again = self.sent[of_server].insert(end, Some(time)).is_some();
            if again {
                self.sent[of_server].insert(end, None);
            }
        }
        if flags.ack() {
            let first = self.acknowledged[of_server].entry(segment.acknowledgment).or_insert(time);
            *first = (*first).min(time);
        }
    }

    /// Returns the delays from data of one side to the acknowledgments of the other: 0 is the client, 1 the server.
    fn delays(&self, of_server: usize) -> Vec<i64> {
        let data = &self.sent[1 - of_server];
        let delay = |(end, time): (&u32, &i64)| Some(time - (*data.get(end)?)?);
        self.acknowledged[of_server].iter().filter_map(delay).collect()
    }

    /// Returns true if the late clock is the server's, with the bounds of the offset. `None` without a second clock.
    fn judge(&self) -> Option<(bool, Bounds)> {
        let [of_client, of_server] = [self.delays(0), self.delays(1)];
        let is_impossible = |delays: &[i64]| {
            let found = delays.iter().filter(|delay| **delay < -LEAST_NS).count();
            found >= IMPOSSIBLE_MIN && found * IMPOSSIBLE_SHARE >= delays.len()
        };
        let least = |delays: &[i64]| delays.iter().min().copied();
        // The client acknowledges data that the server has not sent yet, so the server's clock is late.
        let (is_server, impossible, others) = match (is_impossible(&of_client), is_impossible(&of_server)) {
            (true, false) => (true, of_client, of_server),
            (false, true) => (false, of_server, of_client),
            _ => return None,
        };
        let bounds = Bounds { low: -least(&impossible)?, high: least(&others)? };
        (bounds.low <= bounds.high).then_some((is_server, bounds))
    }

    fn is_well(&self) -> bool {
        [0, 1].map(|side| self.delays(side)).iter().all(|delays| delays.iter().all(|delay| *delay >= 0))
    }
}

impl ClockCorrection {
    pub(super) fn find(bytes: &[u8], format: CaptureParser, interfaces: &Interfaces) -> Option<ClockCorrection> {
        let (mut format, mut interfaces, mut position) = (format, interfaces.clone(), 0);
        let mut flows: BTreeMap<(SocketAddr, SocketAddr), FlowAckTimes> = BTreeMap::new();
        let mut looker = Looker::default();
        for count in 0..SAMPLE_PACKETS {
            if count == FIRST_LOOK && flows.values().all(FlowAckTimes::is_well) {
                return None;
            }
            let Some(window) = bytes.get(position..) else { break };
            let length = match format.step(&mut interfaces, window) {
                ParseStep::Packet(record, length) => {
                    looker.look(&record, window, |segment| {
                        let of_server = usize::from(segment.source.port() < segment.destination.port());
                        let ends = match of_server {
                            0 => (segment.source, segment.destination),
                            _ => (segment.destination, segment.source),
                        };
                        flows.entry(ends).or_default().enter(segment, of_server);
                    });
                    length
                }
                ParseStep::Skip { length, .. } => length,
                ParseStep::More(_) | ParseStep::Stop(_) => break,
            };
            position = position.saturating_add(length);
        }
        ClockCorrection::from_flows(&flows)
    }

    fn from_flows(flows: &BTreeMap<(SocketAddr, SocketAddr), FlowAckTimes>) -> Option<ClockCorrection> {
        let found: Vec<_> = flows.iter().filter_map(|(ends, flow)| Some((ends, flow.judge()?))).collect();
        let &(_, (is_server, first)) = found.first()?;
        let mut bounds = first;
        let (mut late, mut early, mut ports) = (HashSet::new(), HashSet::new(), HashSet::new());
        for ((client, server), (of_server, found)) in found {
            if of_server != is_server {
                return None;
            }
            bounds = Bounds { low: bounds.low.max(found.low), high: bounds.high.min(found.high) };
            let (of_late, of_early) = if is_server { (server, client) } else { (client, server) };
            late.insert(of_late.ip());
            early.insert(of_early.ip());
            ports.insert(server.port());
        }
        if bounds.low > bounds.high || !late.is_disjoint(&early) {
            return None;
        }
        let applied = match bounds.high - bounds.low {
            0..=NEAR_NS => i64::midpoint(bounds.low, bounds.high),
            _ => bounds.low,
        };
        let [low, high, applied] = [bounds.low, bounds.high, applied].map(Nanos);
        let offset = CaptureClockOffset { of_servers: is_server, applied, low, high };
        Some(ClockCorrection { late, early, ports, offset, looker: Mutex::new(Looker::default()) })
    }

    pub(super) fn offset(&self) -> CaptureClockOffset {
        self.offset
    }

    pub(super) fn warning(&self) -> String {
        let CaptureClockOffset { of_servers, applied, low, high } = self.offset;
        let whose = self.offset.whose();
        let uncertain = match high - low {
            Nanos(..=NEAR_NS) => String::new(),
            width => format!(
                "; it may be up to {high}, so response times may be up to {width} too {}",
                if of_servers { "long" } else { "short" }
            ),
        };
        format!("two clocks: packets of {whose} were stamped {applied} late, which was corrected{uncertain}")
    }

    /// Corrects the time of a packet stamped by the late clock. `window` starts with its record.
    #[cold]
    pub(super) fn correct(&self, record: &mut PacketRecord, window: &[u8]) {
        let mut is_late = false;
        let mut looker = self.looker.lock().unwrap_or_else(PoisonError::into_inner);
        looker.look(record, window, |segment| is_late = self.is_late(segment.source, segment.destination));
        if is_late {
            record.time = record.time.saturating_sub(self.offset.applied.0);
        }
    }

    fn is_late(&self, source: SocketAddr, destination: SocketAddr) -> bool {
        let is_known = |known: &HashSet<IpAddr>, end: SocketAddr| known.contains(&end.ip());
        match (
            is_known(&self.late, source) || is_known(&self.early, destination),
            is_known(&self.early, source) || is_known(&self.late, destination),
        ) {
            (true, false) => true,
            (false, true) => false,
            _ => {
                let is_of_server = self.ports.contains(&source.port());
                is_of_server == self.offset.of_servers && is_of_server != self.ports.contains(&destination.port())
            }
        }
    }
}
