//! Damage to whole captures: a mutator that knows packets.
//!
//! Bytes changed at random seldom leave a capture that is still about SMB. This one takes a pcap file apart, does to its
//! packets what networks, capture programs and attackers do, and puts it together again. The fuzzer's own mutator has
//! its turn at single payloads and, now and then, at the whole file.

mod damage;

use smbscope_testkit::random::Random;
use smbscope_testkit::{Frame, pcap};

/// Packets of a mutated capture at most.
const MAX_PACKETS: usize = 600;

/// Mutates the first `size` bytes of `data` in place, to `max_size` bytes at most; returns the new size.
///
/// `bytes` is the fuzzer's own mutator: it changes a buffer of which it is told how much is in use, and how much may be.
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

/// Puts part of the second capture behind, or in between, the packets of part of the first.
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

/// Hands one payload to the fuzzer's mutator. The sequence numbers behind it stay: a payload that grows overlaps.
fn mutate_payload(frames: &mut [Frame], random: &mut Random, bytes: &mut impl FnMut(&mut [u8], usize, usize) -> usize) {
    let Some(frame) = damage::any_with_payload(frames, random) else { return };
    let mut payload = frame.payload().to_vec();
    let size = payload.len();
    // As a rule the length stays, and with it everything that follows.
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

/// Writes as many packets as there is room for.
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
