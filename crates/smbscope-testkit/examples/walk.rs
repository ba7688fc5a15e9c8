//! Lower bound for the time of an analysis: walks through a memory-mapped capture and touches each record header and
//! the first 80 bytes of each packet. Prints the number of packets and a checksum, so that nothing is optimised away.
//!
//! ```sh
//! cargo run --release -p smbscope-testkit --example walk -- office.pcap
//! ```

use anyhow::{Context, bail};
use std::fs::File;

/// Ethernet, IP and TCP headers and a little payload.
const TOUCHED: usize = 80;
const GLOBAL_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

fn main() -> anyhow::Result<()> {
    let path = std::env::args_os().nth(1).context("walk FILE")?;
    let file = File::open(&path)?;
    // SAFETY: the map is only read, and the file must not change during the measurement.
    #[allow(unsafe_code)]
    let map = unsafe { memmap2::Mmap::map(&file)? };
    if map.get(..4) != Some(&0xa1b2_c3d4u32.to_le_bytes()) {
        bail!("not a little-endian pcap file with microseconds");
    }
    let (packets, sum) = walk(&map[GLOBAL_HEADER.min(map.len())..]);
    println!("packets {packets}\nchecksum {sum:016x}");
    Ok(())
}

/// Returns the number of packets and a sum over the bytes touched.
fn walk(mut records: &[u8]) -> (u64, u64) {
    let (mut packets, mut sum) = (0, 0u64);
    while let Some((header, rest)) = records.split_at_checked(RECORD_HEADER) {
        let length = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let Some((packet, next)) = rest.split_at_checked(length) else { break };
        sum = words(header).chain(words(&packet[..length.min(TOUCHED)])).fold(sum, u64::wrapping_add);
        packets += 1;
        records = next;
    }
    (packets, sum)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word))
}
