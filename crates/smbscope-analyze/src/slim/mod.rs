//! Slim captures: a copy with everything that the analysis reads, and nothing else.
//!
//! Every packet is kept with its time, its length on the wire and its headers. Of the payload, only the bytes that the
//! framers inspect remain: frame headers, and the message fields listed by [`smbscope_wire::kept`]. Everything else is
//! zeroed, and the bytes after the last one needed are cut off, as with a snap length.
//!
//! [`slim`] is the entry point. `flows` decides which bytes remain, `packets` maps them to packets, `window` writes
//! these in order.

mod flows;
mod packets;
mod reduce;

use crate::pseudonym::{Disguise, PseudonymKey};
use flows::Noting;
use packets::{Numbering, PendingPacket, PendingPacketQueue};
use reduce::NameAnonymizer;
use smbscope_capture::decode::{Decoder, Outline, PacketContent};
use smbscope_capture::reader::CaptureSet;
use smbscope_capture::tcp::FlowTable;
use smbscope_capture::writer::{CaptureInterface, PacketBlock, PcapngWriter};
use smbscope_capture::{Packet, TcpSegment};
use smbscope_model::{CaptureInfo, ClockStep, MemoryBudget, Quality, Timestamp};
use std::io::{self, Write};
use std::sync::atomic::Ordering;

const COMMENT: &str = "Slim copy made by smbscope: packet headers and SMB headers are original, file content, passwords \
                       and all other payload were removed";
const INTERVAL: u64 = 1 << 12;

const HIDDEN: &str = "; names and addresses were replaced by a keyed hash";

#[derive(Debug, Clone, Default)]
pub struct SlimOptions {
    pub limits: MemoryBudget,
    pub anonymize: Option<Anonymize>,
}

#[derive(Debug, Clone)]
pub struct Anonymize {
    /// Captures made with the same key have the same pseudonyms.
    pub key: PseudonymKey,
    pub depth: bool,
    pub extensions: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlimSummary {
    pub packets: u64,
    pub captured_bytes: u64,
    pub removed_bytes: u64,
    /// Packets written without payload because too many were waiting for bytes that the capture does not hold.
    pub undecided: u64,
    /// Packets whose number differs from that in their file, which is too far from time order.
    pub moved: u64,
}

/// Reads `set` to its end, or until its stop flag is set, and writes a slim copy to `out`.
pub fn slim(
    set: &mut CaptureSet,
    options: &SlimOptions,
    out: &mut dyn Write,
    observe: &mut dyn FnMut(&CaptureSet),
) -> io::Result<SlimSummary> {
    let stop = set.stop_flag();
    let clocks = Clocks { steps: set.clock_steps() };
    let (comment, names) = match &options.anonymize {
        None => (COMMENT.to_owned(), NameAnonymizer::Kept),
        Some(Anonymize { key, depth, extensions }) => {
            let disguise = Disguise::new(key.clone(), *depth, *extensions).within(options.limits.names / 4);
            (format!("{COMMENT}{HIDDEN}"), NameAnonymizer::Replaced(Box::new(disguise)))
        }
    };
    let numbering = match (set.captures().len(), set.quality().packets_reordered_by_time) {
        (1, 0) => Numbering::AsTheyCome,
        (1, _) => Numbering::Restored,
        _ => Numbering::Anew,
    };
    // Slimming keeps no session names, so their budget serves waiting packets and pseudonyms.
    let noting = Noting::new(PendingPacketQueue::new(numbering, options.limits.names / 4 * 3), names);
    let mut slimmer = Slimmer {
        writer: PcapngWriter::new(out, &comment, concat!("smbscope ", env!("CARGO_PKG_VERSION")))?,
        decoder: Decoder::new(),
        quality: Quality::default(),
        table: FlowTable::within(noting, options.limits.flows),
        clocks,
        summary: SlimSummary::default(),
    };
    while !stop.load(Ordering::Relaxed) && set.advance() {
        let Some(packet) = set.current_packet() else { break };
        let info = &set.captures()[usize::from(packet.stamp.packet.capture().0)];
        slimmer.take(&packet, info)?;
        if slimmer.summary.packets.is_multiple_of(INTERVAL) {
            observe(set);
        }
    }
    slimmer.finish()
}

/// Backward steps of a capture's clock. The reader shifts the times after a step; the copy restores the clock's times.
struct Clocks {
    steps: Vec<ClockStep>,
}

impl Clocks {
    fn original(&self, packet: &Packet<'_>) -> Timestamp {
        let place = packet.stamp.packet;
        let is_past = |step: &&ClockStep| {
            step.after.packet.capture() == place.capture() && step.after.packet.number() <= place.number()
        };
        match self.steps.iter().filter(is_past).max_by_key(|step| step.after.packet.number()) {
            Some(step) => Timestamp(packet.stamp.time.0 + (step.after.time - step.before.time).0),
            None => packet.stamp.time,
        }
    }
}

struct Slimmer<'o> {
    writer: PcapngWriter<&'o mut dyn Write>,
    decoder: Decoder,
    quality: Quality,
    table: FlowTable<Noting>,
    clocks: Clocks,
    summary: SlimSummary,
}

impl Slimmer<'_> {
    fn take(&mut self, packet: &Packet<'_>, info: &CaptureInfo) -> io::Result<()> {
        self.summary.packets += 1;
        self.summary.captured_bytes += packet.data.len() as u64;
        let ordinal = self.summary.packets;
        let outline = Outline::parse(packet);
        let (headers, length) = outline.needed(packet);
        let mut pending = PendingPacket {
            record: PacketBlock {
                time: self.clocks.original(packet),
                interface: CaptureInterface {
                    link_type: packet.link_type,
                    snap_length: info.snap_length.unwrap_or(0),
                    resolution_ns: info.resolution_ns,
                },
                parts: [&[], &[]],
                wire_length: packet.wire_length,
            },
            number: packet.stamp.packet.number(),
            headers: reduce::headers(packet, headers, &mut self.table.sink_mut().names),
            payload: Vec::new(),
            captured: packet.data.len() - length,
            holders: 0,
        };
        pending.headers.resize(length, 0);
        let segment = self.decoder.decode(packet, &mut self.quality);
        let Noting { packets, names, .. } = self.table.sink_mut();
        packets.window.push(ordinal, pending);
        packets.window.hold(ordinal);
        let is_fragment = matches!(outline.kind, PacketContent::Fragment(_));
        if let PacketContent::Fragment(fragment) = outline.kind {
            let bytes = packet.data.get(fragment.place.clone()).unwrap_or_default();
            packets.fragment(ordinal, fragment, bytes);
            packets.put_together(ordinal, segment.as_ref().map(|segment| segment.payload_length), names);
        }
        if let Some(segment) = &segment {
            follow(&mut self.table, ordinal, segment);
        }
        let packets = &mut self.table.sink_mut().packets;
        if segment.is_some() && is_fragment {
            packets.let_go(ordinal);
        }
        packets.window.let_go(ordinal);
        packets.window.write(&mut self.writer)
    }

    fn finish(self) -> io::Result<SlimSummary> {
        let Slimmer { mut writer, table, mut summary, .. } = self;
        let mut packets = table.finish().packets;
        packets.window.finish(&mut writer)?;
        writer.finish()?;
        summary.undecided = packets.window.undecided;
        summary.moved = packets.window.moved;
        summary.removed_bytes = packets.window.removed;
        Ok(summary)
    }
}

fn follow(table: &mut FlowTable<Noting>, ordinal: u64, segment: &TcpSegment<'_>) {
    let ends = (segment.source, segment.destination);
    let is_held_back = table.follow(segment);
    let packets = &mut table.sink_mut().packets;
    if is_held_back && segment.payload_length > 0 {
        packets.hold_back(ends, ordinal);
    } else if !is_held_back {
        packets.caught_up(ends);
    }
}
