//! Large captures from a seed: what [`generate`] writes is never held in memory, and it counts what it writes.
//!
//! Clients ([`Mix`]) ask and a server answers, each on a TCP connection of its own; `flow` turns what they say into
//! packets, and all flows are interleaved in time order. `record` frames the packets, cuts them at the snap length and
//! does the damage. Ethernet, IPv4 and TCP headers are valid; the IPv4 checksum is right, the TCP checksum is zero, as
//! a host that leaves it to its network card captures it.
//!
//! The capture stops when it is large enough, as one that a person stops does: some requests are outstanding then. So
//! [`Truth`] counts requests and responses apart.

mod flow;
mod netbench;
mod office;
mod packets;
mod record;
mod turn;

use crate::packet::EPOCH;
use crate::random::Random;
use flow::Flow;
use record::Recorder;
use smbscope_model::Command;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io::{self, Write};
use turn::Client;

pub use packets::packets;

/// Between the handshakes of one flow and the next at most.
const STAGGER_NS: i64 = 100_000;
/// All flows have begun after this time, so that many are open at once in a small capture as well.
const BEGUN_NS: i64 = 5_000_000;

/// What the clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// SMB1 (NT LM 0.12) as NetBench's clients speak it: many small operations, reads and writes of a few KiB, ids
    /// that are soon used again, no TCP timestamps.
    NetBench,
    /// SMB 2.1 and 3.1.1 as people at work speak it: compounds, directories, files read and written, notifications.
    Office,
    /// SMB 3.1.1 copying large files, mostly from the server: 1 MiB reads, four outstanding.
    Bulk,
    /// What a site has: people at work on hosts with several connections each, SMB 2.1 to 3.1.1 in turn, a quarter of the
    /// connections signed, one segment in a thousand sent again.
    Site,
}

/// Payload of a TCP segment at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segments {
    /// What fits into an Ethernet frame of 1514 bytes.
    Mtu,
    /// As a sender captures it whose network card cuts the segments: up to 45 frames in one.
    Offload,
}

/// When the capture is large enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The file has this many bytes.
    Bytes(u64),
    /// It has this many packets.
    Packets(u64),
}

/// What happens to packets between the network and the file; each a probability for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Damage {
    /// The capture lacks it.
    pub drop: f64,
    /// The capture holds it twice.
    pub duplicate: f64,
    /// It changes places with the next one, where that goes the same way.
    pub reorder: f64,
}

/// Which capture to write.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// What the clients do.
    pub mix: Mix,
    /// The same seed gives the same bytes.
    pub seed: u64,
    /// Connections at once.
    pub flows: u32,
    /// So many of them have the same hosts.
    pub flows_per_host: u32,
    /// The share of the segments that their sender sends again.
    pub resent: f64,
    /// When to stop.
    pub limit: Limit,
    /// Bytes of a packet that are captured at most.
    pub snap: u32,
    /// Payload of a segment at most.
    pub segments: Segments,
    /// Damage.
    pub damage: Damage,
    /// Mean time that the server needs for an answer.
    pub service_ns: i64,
    /// Mean time between the operations of a client.
    pub think_ns: i64,
}

impl Settings {
    /// An undamaged capture with full payload.
    pub fn new(mix: Mix, flows: u32, limit: Limit) -> Settings {
        let think_ns = if mix == Mix::Bulk { 500_000 } else { 5_000_000 };
        Settings {
            mix,
            seed: 1,
            flows,
            flows_per_host: if mix == Mix::Site { 12 } else { 1 },
            resent: if mix == Mix::Site { 0.001 } else { 0.0 },
            limit,
            snap: 262_144,
            segments: Segments::Mtu,
            damage: Damage::default(),
            service_ns: 200_000,
            think_ns,
        }
    }
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Truth {
    /// Packets in the file.
    pub packets: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the packets on the wire.
    pub wire_bytes: u64,
    /// Bytes of the packets in the file.
    pub captured_bytes: u64,
    /// Packets that the snap length cut short.
    pub snapped_packets: u64,
    /// Packets that only acknowledge.
    pub pure_acks: u64,
    /// Connections that were begun.
    pub flows: u64,
    /// Requests whose last byte was sent, by command; each member of a compound counts.
    pub requests: BTreeMap<Command, u64>,
    /// Final responses whose last byte was sent, by command.
    pub responses: BTreeMap<Command, u64>,
    /// Interim responses.
    pub interim_responses: u64,
    /// Packets that were left out.
    pub dropped_packets: u64,
    /// Packets that were written twice.
    pub duplicated_packets: u64,
    /// Packets that changed places with the next one.
    pub reordered_packets: u64,
    /// Segments that their sender sent again.
    pub resent_segments: u64,
}

impl Truth {
    /// Requests of every command.
    pub fn all_requests(&self) -> u64 {
        self.requests.values().sum()
    }

    /// Final responses of every command.
    pub fn all_responses(&self) -> u64 {
        self.responses.values().sum()
    }
}

/// Writes a capture; returns what is in it.
pub fn generate(settings: &Settings, out: impl Write) -> io::Result<Truth> {
    let mut random = Random::new(settings.seed);
    let mut recorder = Recorder::new(settings, Random::new(random.bits()), out)?;
    let mut flows = Vec::new();
    let mut schedule = BinaryHeap::new();
    let stagger_ns = STAGGER_NS.min(BEGUN_NS / i64::from(settings.flows.max(1)));
    for index in 0..settings.flows {
        flows.push(Flow::new(index, settings, client(settings.mix, index), Random::new(random.bits())));
        schedule.push(Reverse((EPOCH.0 + i64::from(index) * stagger_ns, index)));
    }
    while let Some(mut next) = schedule.peek_mut() {
        if recorder.is_full(settings.limit) {
            break;
        }
        let Reverse((now, index)) = *next;
        let flow = &mut flows[index as usize];
        *next = Reverse((flow.step(now, &mut recorder)?, index));
    }
    recorder.finish()
}

fn client(mix: Mix, index: u32) -> Box<dyn Client> {
    match mix {
        Mix::NetBench => Box::new(netbench::NetBench::new(index)),
        Mix::Office => Box::new(office::Smb2Client::office(index)),
        Mix::Bulk => Box::new(office::Smb2Client::bulk(index)),
        Mix::Site => Box::new(office::Smb2Client::site(index)),
    }
}
