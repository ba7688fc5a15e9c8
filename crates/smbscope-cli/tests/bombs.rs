//! Small files that decompress to very large ones. They must be streamed, whatever the compression format.
#![cfg(target_os = "linux")]

use crate::common::{command, directory, said, write};
use smbscope_testkit::{Conversation, pcap, smb2};
use std::io::Write;

/// Decompressed size of each bomb in bytes, far above the memory limit.
const UNPACKED: usize = 512 << 20;
/// Upper limit for peak resident memory, including the binary, its tables and the decoder windows.
const MAX_RESIDENT_KB: u64 = 160 << 10;

/// Returns a capture with one exchange.
fn capture() -> Vec<u8> {
    let told = Conversation::new().client_says(100, smb2::echo(1)).server_says(200, smb2::echo_response(1)).closes(300);
    pcap::micros(&told.packets())
}

/// Returns empty 64 KB packet records with equal timestamps, later than the conversation.
fn padding() -> Vec<u8> {
    const LENGTH: u32 = 65_520;
    let mut record: Vec<u8> = [1_800_000_000u32, 0, LENGTH, LENGTH].into_iter().flat_map(u32::to_le_bytes).collect();
    record.resize(record.len() + LENGTH as usize, 0);
    record.repeat(64)
}

/// Compresses a capture followed by padding to a total of `UNPACKED` bytes. Compressed files may consist of several
/// members, so the padding is compressed only once.
fn bomb(pack: impl Fn(&[u8]) -> Vec<u8>) -> (Vec<u8>, u64) {
    let (begin, piece) = (pack(&capture()), padding());
    let pieces = UNPACKED.div_ceil(piece.len());
    ([begin, pack(&piece).repeat(pieces)].concat(), 64 * pieces as u64)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("writing to memory does not fail");
    encoder.finish().expect("writing to memory does not fail")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("writing to memory does not fail")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
    encoder.write_all(bytes).expect("writing to memory does not fail");
    encoder.finish().expect("writing to memory does not fail")
}

/// Analyses a file; returns the JSON report and the peak resident memory in KB.
fn analyze_watched(name: &str, bytes: &[u8]) -> (serde_json::Value, u64) {
    let directory = directory(&format!("bomb_{name}"));
    write(&directory, "bomb", bytes);
    let mut child = command(&directory, &["bomb", "--format", "json", "-o", "report.json"]).spawn().expect("it runs");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().expect("it is our child").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
        most = most.max(kilobytes.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let said = said(child.wait_with_output().expect("it ended"));
    assert_eq!(said.status, Some(0), "{}", said.err);
    let report = std::fs::read_to_string(directory.join("report.json")).expect("the report was written");
    (serde_json::from_str(&report).expect("the report is JSON"), most)
}

#[test]
fn a_bomb_is_read_to_its_end_in_bounded_memory() {
    for (name, (bytes, padding)) in [("gzip", bomb(gzip)), ("zstd", bomb(zstd)), ("xz", bomb(xz))] {
        assert!(bytes.len() < UNPACKED / 100, "{name}: {} bytes", bytes.len());
        let (report, most) = analyze_watched(name, &bytes);
        println!("{name}: {} bytes, at most {most} KB", bytes.len());
        // Handshake 3, two messages, close 3.
        assert_eq!(report["quality"]["packets"], 8 + padding, "{name}");
        assert_eq!(report["totals"]["outcomes"], serde_json::json!({"complete": 1}), "{name}");
        let sentence = report["quality"]["sentence"].as_str().expect("a sentence");
        assert!(sentence.starts_with("All commands in the capture were timed."), "{name}: {sentence}");
        assert!(most > 0 && most < MAX_RESIDENT_KB, "{name}: {most} KB");
    }
}
