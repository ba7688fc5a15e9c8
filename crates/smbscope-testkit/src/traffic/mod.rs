//! Large captures from a seed. [`generate`] streams them to the output and counts what it writes.
//!
//! Clients ([`Mix`]) and servers talk over one TCP connection per client. `flow` turns their messages into packets and
//! interleaves all flows in time order. `record` encodes the packets, truncates them at the snap length and applies the
//! damage. Headers are valid, including the IPv4 checksum; the TCP checksum is zero, as in a capture on a host with
//! checksum offload.
//!
//! The capture stops abruptly when it is large enough, with requests outstanding. Therefore [`Truth`] counts requests
//! and responses separately.

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

/// Maximum time between the handshakes of two consecutive flows.
const STAGGER_NS: i64 = 100_000;
/// Time by which all flows have started, so that even a small capture has many concurrent flows.
const BEGUN_NS: i64 = 5_000_000;

/// Workload of the clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// SMB1 (NT LM 0.12) as used by NetBench: many small operations, reads and writes of a few KiB, quickly reused ids,
    /// no TCP timestamps.
    NetBench,
    /// SMB 2.1 and 3.1.1 office work: compounds, directories, reads and writes of files, notifications.
    Office,
    /// SMB 3.1.1 copies of large files, mostly reads: 1 MiB each, four outstanding.
    Bulk,
    /// A whole site: office workers on hosts with several connections each, SMB 2.1 to 3.1.1 in turn, a quarter of the
    /// connections signed, one segment in a thousand retransmitted.
    Site,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segments {
    /// Segments that fit into an Ethernet frame of 1514 bytes.
    Mtu,
    /// Segments captured before segmentation offload: up to 44 frames in one.
    Offload,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    Bytes(u64),
    Packets(u64),
}

/// Damage between the network and the file; each field is a probability per packet.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Damage {
    pub drop: f64,
    pub duplicate: f64,
    /// The packet is swapped with the next one if that has the same direction.
    pub reorder: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    pub mix: Mix,
    pub seed: u64,
    pub flows: u32,
    /// Number of connections per client host.
    pub flows_per_host: u32,
    /// Share of retransmitted segments.
    pub resent: f64,
    pub limit: Limit,
    pub snap: u32,
    pub segments: Segments,
    pub damage: Damage,
    /// Mean service time of the server.
    pub service_ns: i64,
    /// Mean think time of a client between operations.
    pub think_ns: i64,
}

impl Settings {
    /// Creates parameters for an undamaged capture with full payload.
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

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Truth {
    pub packets: u64,
    pub file_bytes: u64,
    /// Total length of the packets on the wire.
    pub wire_bytes: u64,
    pub captured_bytes: u64,
    pub snapped_packets: u64,
    pub pure_acks: u64,
    pub flows: u64,
    /// Completely sent requests by command; each compound member counts.
    pub requests: BTreeMap<Command, u64>,
    /// Completely sent final responses by command.
    pub responses: BTreeMap<Command, u64>,
    pub interim_responses: u64,
    pub dropped_packets: u64,
    pub duplicated_packets: u64,
    pub reordered_packets: u64,
    pub resent_segments: u64,
}

impl Truth {
    pub fn all_requests(&self) -> u64 {
        self.requests.values().sum()
    }

    pub fn all_responses(&self) -> u64 {
        self.responses.values().sum()
    }
}

/// Writes a capture and returns its true counts.
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
