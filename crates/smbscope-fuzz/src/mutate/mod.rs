//! Mutator for whole captures that works on packets.
//!
//! Random byte changes rarely leave a capture that still contains SMB. This mutator parses a pcap file, applies effects
//! of networks, capture programs and attackers to its packets, and writes it again. The fuzzer's own mutator is applied
//! to single payloads and occasionally to the whole file.

mod damage;

use smbscope_testkit::random::Random;
use smbscope_testkit::{Frame, pcap};

const MAX_PACKETS: usize = 600;

/// Mutates the first `size` bytes of `data` in place, growing to at most `max_size` bytes. Returns the new size.
///
/// `bytes` is the fuzzer's own mutator; its arguments are a buffer, the used size and the maximum size.
pub fn mutate(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    mut bytes: impl FnMut(&mut [u8], usize, usize) -> usize,
) -> usize {
    let mut random = Random::new(seed.into());
    let max_size = max_size.min(data.len());
    let mut frames = pcap::read(&data[..size]);
    if frames.is_empty() || random.chance(0.02) {
        return bytes(data, size, max_size);
    }
    for _ in 0..1 + random.below(4) {
        if random.chance(0.3) {
            mutate_payload(&mut frames, &mut random, &mut bytes);
        } else {
            damage::apply(&mut frames, &mut random);
        }
    }
    store(&frames, data, max_size)
}

/// Combines parts of two captures, concatenated or interleaved.
pub fn cross(first: &[u8], second: &[u8], out: &mut [u8], seed: u32) -> usize {
    let mut random = Random::new(seed.into());
    let (mut ours, mut theirs) = (pcap::read(first), pcap::read(second));
    if random.chance(0.5) {
        ours.truncate(1 + random.below(ours.len() as u64) as usize);
        theirs.drain(..random.below(theirs.len() as u64) as usize);
        ours.extend(theirs);
    } else {
        ours.extend(theirs);
        ours.sort_by_key(|frame| frame.time);
    }
    let room = out.len();
    store(&ours, out, room)
}

/// Applies the fuzzer's mutator to one payload. Later sequence numbers stay, so a payload that grows overlaps the next
/// one.
fn mutate_payload(frames: &mut [Frame], random: &mut Random, bytes: &mut impl FnMut(&mut [u8], usize, usize) -> usize) {
    let Some(frame) = damage::any_with_payload(frames, random) else { return };
    let mut payload = frame.payload().to_vec();
    let size = payload.len();
    // Usually the length stays, and with it everything that follows.
    let room = if random.chance(0.7) { size } else { size + 64 };
    payload.resize(room, 0);
    let new_size = bytes(&mut payload, size, room).min(room);
    if room == size {
        payload.resize(size, 0);
    } else {
        payload.truncate(new_size);
    }
    frame.set_payload(&payload);
}

fn store(frames: &[Frame], data: &mut [u8], max_size: usize) -> usize {
    let mut length = pcap::FILE_HEADER;
    let fits = |frame: &&Frame| {
        length += pcap::RECORD_HEADER + frame.data.len();
        length <= max_size
    };
    let mut file = pcap::write(pcap::ETHERNET, frames.iter().take(MAX_PACKETS).take_while(fits));
    file.truncate(max_size);
    data[..file.len()].copy_from_slice(&file);
    file.len()
}
