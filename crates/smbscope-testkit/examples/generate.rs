//! Writes a large capture from a seed and prints its true counts.
//!
//! ```sh
//! cargo run --release -p smbscope-testkit --example generate -- --mix office --flows 100 --bytes 1G -o office.pcap
//! ```

use clap::{Parser, ValueEnum};
use smbscope_testkit::traffic::{Damage, Limit, Mix, Segments, Settings, Truth, generate};
use std::fs::File;
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, ValueEnum)]
enum MixName {
    /// SMB1: many small operations
    Netbench,
    /// SMB 2.1 and 3.1.1: documents and directories
    Office,
    /// SMB 3.1.1: copies of large files
    Bulk,
    /// SMB 2.1 to 3.1.1: many hosts with several connections each
    Site,
}

/// Write a large capture from a seed and print its true counts.
#[derive(Debug, Parser)]
struct Arguments {
    /// Workload of the clients
    #[arg(long, value_enum)]
    mix: MixName,
    /// Seed; the same seed gives the same bytes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of concurrent connections
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    flows: u32,
    /// Size of the file in bytes, or like 500M or 1G
    #[arg(long, value_parser = bytes, required_unless_present = "packets", conflicts_with = "packets")]
    bytes: Option<u64>,
    /// Number of packets in the file
    #[arg(long)]
    packets: Option<u64>,
    /// Snap length in bytes
    #[arg(long, default_value_t = 262_144, value_parser = clap::value_parser!(u32).range(54..=262_144))]
    snap: u32,
    /// Write segments of up to 64 KB, as captured on a host with segmentation offload
    #[arg(long)]
    offload: bool,
    /// Share of packets to drop, from 0 to 1
    #[arg(long, default_value_t = 0.0)]
    drop: f64,
    /// Share of packets to duplicate, from 0 to 1
    #[arg(long, default_value_t = 0.0)]
    duplicate: f64,
    /// Share of packets to swap with the next one, from 0 to 1
    #[arg(long, default_value_t = 0.0)]
    reorder: f64,
    /// Mean service time of the server in microseconds
    #[arg(long)]
    service_us: Option<u32>,
    /// Mean think time between a client's operations in microseconds
    #[arg(long)]
    think_us: Option<u32>,
    /// Output file
    #[arg(short, long)]
    output: PathBuf,
}

fn bytes(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'k')) => (&text[..at], 1_000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        Some((at, 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| "a number, or one with k, M or G".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "too large".to_owned())
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mix = match arguments.mix {
        MixName::Netbench => Mix::NetBench,
        MixName::Office => Mix::Office,
        MixName::Bulk => Mix::Bulk,
        MixName::Site => Mix::Site,
    };
    let limit = match (arguments.bytes, arguments.packets) {
        (Some(bytes), _) => Limit::Bytes(bytes),
        (None, packets) => Limit::Packets(packets.unwrap_or_default()),
    };
    let defaults = Settings::new(mix, arguments.flows, limit);
    let nanos = |micros: Option<u32>, default| micros.map_or(default, |micros| i64::from(micros) * 1000);
    let settings = Settings {
        seed: arguments.seed,
        snap: arguments.snap,
        segments: if arguments.offload { Segments::Offload } else { Segments::Mtu },
        damage: Damage { drop: arguments.drop, duplicate: arguments.duplicate, reorder: arguments.reorder },
        service_ns: nanos(arguments.service_us, defaults.service_ns),
        think_ns: nanos(arguments.think_us, defaults.think_ns),
        ..defaults
    };
    print(&generate(&settings, File::create(&arguments.output)?)?);
    Ok(())
}

/// Prints one `name value` line per count, for scripts.
fn print(truth: &Truth) {
    for (name, value) in [
        ("packets", truth.packets),
        ("file_bytes", truth.file_bytes),
        ("wire_bytes", truth.wire_bytes),
        ("captured_bytes", truth.captured_bytes),
        ("snapped_packets", truth.snapped_packets),
        ("pure_acks", truth.pure_acks),
        ("flows", truth.flows),
        ("requests", truth.all_requests()),
        ("responses", truth.all_responses()),
        ("interim_responses", truth.interim_responses),
        ("dropped_packets", truth.dropped_packets),
        ("duplicated_packets", truth.duplicated_packets),
        ("reordered_packets", truth.reordered_packets),
        ("resent_segments", truth.resent_segments),
    ] {
        println!("{name} {value}");
    }
    for (command, count) in &truth.responses {
        println!("responses of {command} {count}");
    }
}
