//! Mutator for whole captures that works on packets.
//!
//! Random byte changes rarely leave a capture that still contains SMB. This mutator parses a pcap file, applies effects
//! of networks, capture programs and attackers to its packets, and writes it again. The fuzzer's own mutator is applied
//! to single payloads and occasionally to the whole file.

use smbscope_model::Timestamp;
use smbscope_testkit::damage::{self, Captured};
use smbscope_testkit::frame::{ACKNOWLEDGMENT, SEQUENCE};
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
            apply(&mut frames, &mut random);
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

/// Later sequence numbers stay, so a payload that grows overlaps the next one.
fn mutate_payload(frames: &mut [Frame], random: &mut Random, bytes: &mut impl FnMut(&mut [u8], usize, usize) -> usize) {
    let Some(frame) = any_with_payload(frames, random) else { return };
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

/// FIN and ACK, RST, RST and ACK, SYN, SYN and ACK.
const FORGED: [u8; 5] = [0x11, 0x04, 0x14, 0x02, 0x12];

/// Important bytes of an SMB1 message: command, status, flags, ids, word count, AndX.
const SMB1_FIELDS: [usize; 16] = [4, 5, 9, 10, 11, 24, 26, 28, 30, 32, 33, 35, 36, 37, 43, 51];
/// Important bytes of an SMB2 message: status, command, flags, NextCommand, ids, start of the body.
const SMB2_FIELDS: [usize; 18] = [4, 8, 11, 12, 16, 17, 20, 21, 24, 25, 32, 36, 40, 64, 66, 68, 72, 80];
const EDGES: [u8; 8] = [0, 1, 2, 0x7f, 0x80, 0xfc, 0xfe, 0xff];

/// Damage that changes the number or order of packets.
const TO_THE_LIST: [fn(&mut Vec<Frame>, &mut Random); 9] =
    [lose, duplicate, reorder, resend_in_part, overlap, forge, begin_late, snap_all, split];

/// Damage to packets in place.
const IN_PLACE: [fn(&mut [Frame], &mut Random); 8] =
    [jump, acknowledge, snap_one, step_clock, flip_in_header, reframe, relink, flip_anywhere];

fn apply(frames: &mut Vec<Frame>, random: &mut Random) {
    let kinds = TO_THE_LIST.len() + IN_PLACE.len();
    let kind = random.below(kinds as u64) as usize;
    match (frames.is_empty(), TO_THE_LIST.get(kind)) {
        (true, _) => {}
        (false, Some(damage)) => damage(frames, random),
        (false, None) => IN_PLACE[kind - TO_THE_LIST.len()](frames, random),
    }
}

/// Returns a packet with payload, starting the search at a random place.
fn any_with_payload<'a>(frames: &'a mut [Frame], random: &mut Random) -> Option<&'a mut Frame> {
    let at = place_with_payload(frames, random)?;
    frames.get_mut(at)
}

fn place(frames: &[Frame], random: &mut Random) -> usize {
    random.below(frames.len() as u64) as usize
}

fn place_with_payload(frames: &[Frame], random: &mut Random) -> Option<usize> {
    let start = place(frames, random);
    (start..frames.len()).chain(0..start).find(|at| !frames[*at].payload().is_empty())
}

/// Returns a probability that selects a few of these packets.
fn few(frames: &[Frame], random: &mut Random) -> f64 {
    (1 + random.below(3)) as f64 / frames.len() as f64
}

fn lose(frames: &mut Vec<Frame>, random: &mut Random) {
    let (probability, length) = (few(frames, random), [1, 1, 2, 11][random.below(4) as usize]);
    *frames = damage::drop_bursts(frames, random.bits(), probability, length);
}

fn duplicate(frames: &mut Vec<Frame>, random: &mut Random) {
    let probability = few(frames, random);
    *frames = damage::duplicate(frames, random.bits(), probability);
}

fn reorder(frames: &mut Vec<Frame>, random: &mut Random) {
    let (probability, places) = (few(frames, random), [1, 8, frames.len() as u64][random.below(3) as usize]);
    *frames = damage::reorder(frames, random.bits(), probability, places);
}

fn snap_all(frames: &mut Vec<Frame>, random: &mut Random) {
    *frames = damage::snap(frames, [54, 68, 86, 96, 128, 160, 256][random.below(7) as usize]);
}

/// Retransmits with other segment boundaries.
fn resend_in_part(frames: &mut Vec<Frame>, random: &mut Random) {
    let Some(at) = place_with_payload(frames, random) else { return };
    let mut copy = frames[at].clone();
    let payload = copy.payload().to_vec();
    let from = random.below(payload.len() as u64) as usize;
    let to = from + 1 + random.below((payload.len() - from) as u64) as usize;
    copy.set_payload(&payload[from..to]);
    copy.shift(SEQUENCE, from as u32);
    let later = (at + 1 + random.below(6) as usize).min(frames.len());
    copy.time = frames[later - 1].time;
    frames.insert(later, copy);
}

/// Repeats a range of the stream with other bytes, as an attacker or a defective card might.
fn overlap(frames: &mut Vec<Frame>, random: &mut Random) {
    let Some(at) = place_with_payload(frames, random) else { return };
    let mut copy = frames[at].clone();
    copy.payload_mut().iter_mut().for_each(|byte| *byte ^= 0x55);
    copy.shift(SEQUENCE, random.below(9) as u32);
    frames.insert(if random.chance(0.5) { at } else { at + 1 }, copy);
}

fn jump(frames: &mut [Frame], random: &mut Random) {
    let at = place(frames, random);
    let far = [1, 1460, 65_536, 1 << 24, 1 << 31, u32::MAX][random.below(6) as usize];
    let direction = frames[at].direction();
    for frame in frames[at..].iter_mut().filter(|frame| frame.direction() == direction) {
        frame.shift(SEQUENCE, far);
    }
}

fn forge(frames: &mut Vec<Frame>, random: &mut Random) {
    let at = place(frames, random);
    let mut forged = frames[at].clone();
    if random.chance(0.7) {
        forged.set_payload(&[]);
    }
    forged.set_flags(FORGED[random.below(FORGED.len() as u64) as usize]);
    if random.chance(0.3) {
        forged.shift(SEQUENCE, random.bits() as u32);
    }
    frames.insert(at + usize::from(random.chance(0.5)), forged);
}

fn acknowledge(frames: &mut [Frame], random: &mut Random) {
    let at = place(frames, random);
    let by = (random.below(4000) as u32).wrapping_sub(2000);
    frames[at].shift(ACKNOWLEDGMENT, by);
}

fn snap_one(frames: &mut [Frame], random: &mut Random) {
    let at = place(frames, random);
    let length = random.below(frames[at].data.len() as u64 + 1) as usize;
    frames[at] = frames[at].snapped(length);
}

/// Steps the clock in either direction, for some packets or until the end.
fn step_clock(frames: &mut [Frame], random: &mut Random) {
    let from = place(frames, random);
    let to = if random.chance(0.5) { frames.len() } else { (from + 4).min(frames.len()) };
    let step = [1_000, 2_000_000, 3_000_000_000, 90_000_000_000_000][random.below(4) as usize];
    let step = if random.chance(0.5) { step } else { -step };
    frames[from..to].iter_mut().for_each(|frame| frame.time = Timestamp(frame.time.0.saturating_add(step).max(0)));
}

fn begin_late(frames: &mut Vec<Frame>, random: &mut Random) {
    let first = random.below((frames.len() as u64).min(40)) as usize;
    frames.drain(..first);
}

/// Returns the positions of messages in a payload: each protocol id.
fn messages(payload: &[u8]) -> Vec<usize> {
    let is_id = |four: &[u8]| four[0] >= 0xfc && four[1..] == *b"SMB";
    payload.windows(4).enumerate().filter(|(_, four)| is_id(four)).map(|(at, _)| at).collect()
}

fn flip_in_header(frames: &mut [Frame], random: &mut Random) {
    let Some(frame) = any_with_payload(frames, random) else { return };
    let payload = frame.payload_mut();
    let starts = messages(payload);
    let Some(start) = starts.get(random.below(starts.len() as u64) as usize).copied() else { return };
    let at = match payload[start] {
        0xff => SMB1_FIELDS[random.below(SMB1_FIELDS.len() as u64) as usize],
        _ => SMB2_FIELDS[random.below(SMB2_FIELDS.len() as u64) as usize],
    };
    let value = EDGES[random.below(EDGES.len() as u64) as usize];
    if let Some(byte) = payload.get_mut(start + at) {
        *byte = if random.chance(0.5) { value } else { *byte ^ (1 << random.below(8)) };
    }
}

fn reframe(frames: &mut [Frame], random: &mut Random) {
    let Some(frame) = any_with_payload(frames, random) else { return };
    let payload = frame.payload_mut();
    let starts = messages(payload);
    let start = starts.get(random.below(starts.len() as u64) as usize).copied().unwrap_or(4);
    let Some(header) = start.checked_sub(4).and_then(|at| payload.get_mut(at..start)) else { return };
    match random.below(4) {
        0 => header[0] = [0x81, 0x82, 0x83, 0x84, 0x85, 0x86][random.below(6) as usize],
        1 => header[1] ^= 1 << random.below(8),
        2 => header[2] ^= 1 << random.below(8),
        _ => header[3] = header[3].wrapping_add(random.below(64) as u8),
    }
}

fn relink(frames: &mut [Frame], random: &mut Random) {
    let Some(frame) = any_with_payload(frames, random) else { return };
    let payload = frame.payload_mut();
    let starts: Vec<usize> = messages(payload).into_iter().filter(|at| payload[*at] == 0xfe).collect();
    let Some(start) = starts.get(random.below(starts.len() as u64) as usize).copied() else { return };
    let next = [0, 8, 64, 72, 100, 128, 0x7fff_fff8, 0xffff_fff8][random.below(8) as usize];
    if let Some(field) = payload.get_mut(start + 20..start + 24) {
        field.copy_from_slice(&u32::to_le_bytes(next));
    }
}

fn split(frames: &mut Vec<Frame>, random: &mut Random) {
    let Some(at) = place_with_payload(frames, random) else { return };
    let payload = frames[at].payload().to_vec();
    let cut = random.below(payload.len() as u64) as usize;
    let mut second = frames[at].clone();
    frames[at].set_payload(&payload[..cut]);
    second.set_payload(&payload[cut..]);
    second.shift(SEQUENCE, cut as u32);
    frames.insert(at + 1, second);
}

fn flip_anywhere(frames: &mut [Frame], random: &mut Random) {
    let at = place(frames, random);
    let within = random.below(frames[at].data.len() as u64) as usize;
    if let Some(byte) = frames[at].data.get_mut(within) {
        *byte ^= 1 << random.below(8);
    }
}
