//! Simple compressors for round trips. Their output was checked once against independent decoders (see
//! `vectors/README.md`).

use std::collections::{BTreeSet, HashMap};

#[derive(Clone, Copy)]
enum Item {
    Literal(u8),
    Match { distance: usize, length: usize },
}

/// Finds greedy matches with the latest place that began with the same three bytes. Matches do not cross blocks of
/// `block` bytes. `reach` returns the maximum distance and length at a position within a block.
fn items(data: &[u8], block: usize, reach: impl Fn(usize) -> (usize, usize)) -> Vec<Vec<Item>> {
    let mut seen = HashMap::new();
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < data.len() {
        if at % block == 0 {
            blocks.push(Vec::new());
        }
        let candidate = data.get(at..at + 3).and_then(|key| seen.get(key).copied());
        let (max_distance, max_length) = reach(at % block);
        let (distance, length) = candidate.map_or((0, 1), |from| {
            let same = data[at..].iter().zip(&data[from..]).take_while(|(a, b)| a == b).count();
            (at - from, same.min(max_length).min(block - at % block))
        });
        let is_match = length >= 3 && distance <= max_distance;
        let length = if is_match { length } else { 1 };
        for position in at..at + length {
            if let Some(key) = data.get(position..position + 3) {
                seen.insert(key, position);
            }
        }
        let item = if is_match { Item::Match { distance, length } } else { Item::Literal(data[at]) };
        blocks.last_mut().expect("position 0 begins a block").push(item);
        at += length;
    }
    blocks
}

/// Plain LZ77 (MS-XCA 2.3.4).
pub(super) fn lz77(data: &[u8]) -> Vec<u8> {
    let items = items(data, usize::MAX, |_| (8192, usize::MAX)).concat();
    let mut out = Vec::new();
    let mut shared_length = None;
    for group in items.chunks(32) {
        let flags_at = out.len();
        out.extend([0; 4]);
        let mut flags = u32::MAX;
        for (index, item) in group.iter().enumerate() {
            match *item {
                Item::Literal(byte) => {
                    flags &= !(1 << (31 - index));
                    out.push(byte);
                }
                Item::Match { distance, length } => lz77_match(&mut out, distance, length - 3, &mut shared_length),
            }
        }
        out[flags_at..flags_at + 4].copy_from_slice(&flags.to_le_bytes());
    }
    // The end is marked by a flag without an item, so a full group needs another flag word.
    if items.len() % 32 == 0 {
        out.extend([0xff; 4]);
    }
    out
}

fn lz77_match(out: &mut Vec<u8>, distance: usize, length: usize, shared_length: &mut Option<usize>) {
    let word = ((distance - 1) << 3 | length.min(7)) as u16;
    out.extend(word.to_le_bytes());
    if length < 7 {
        return;
    }
    let half = (length - 7).min(15) as u8;
    match shared_length.take() {
        Some(at) => out[at] |= half << 4,
        None => {
            *shared_length = Some(out.len());
            out.push(half);
        }
    }
    if half < 15 {
        return;
    }
    let byte = (length - 7 - 15).min(255) as u8;
    out.push(byte);
    if byte == 255 {
        long_length(out, length);
    }
}

/// Appends two bytes, or two zeros and four bytes.
fn long_length(out: &mut Vec<u8>, length: usize) {
    match u16::try_from(length) {
        Ok(short) => out.extend(short.to_le_bytes()),
        Err(_) => {
            out.extend([0; 2]);
            out.extend((length as u32).to_le_bytes());
        }
    }
}

/// LZNT1 (MS-XCA 2.5).
pub(super) fn lznt1(data: &[u8]) -> Vec<u8> {
    let length_bits = |at: usize| 16 - (4..=12).rev().find(|m| 1 << (m - 1) < at).unwrap_or(4);
    let reach = |at: usize| (at, (1 << length_bits(at)) + 2);
    let mut out = Vec::new();
    for (chunk, plain) in items(data, 4096, reach).iter().zip(data.chunks(4096)) {
        let mut body = Vec::new();
        let mut written = 0;
        for group in chunk.chunks(8) {
            let flags_at = body.len();
            body.push(0);
            for (index, item) in group.iter().enumerate() {
                match *item {
                    Item::Literal(byte) => {
                        body.push(byte);
                        written += 1;
                    }
                    Item::Match { distance, length } => {
                        body[flags_at] |= 1 << index;
                        let word = (distance - 1) << length_bits(written) | (length - 3);
                        body.extend((word as u16).to_le_bytes());
                        written += length;
                    }
                }
            }
        }
        let (kind, body) = if body.len() < plain.len() { (0xb000, &body[..]) } else { (0x3000, plain) };
        out.extend((kind | (body.len() as u16 - 1)).to_le_bytes());
        out.extend(body);
    }
    out
}

/// LZ77+Huffman (MS-XCA 2.1). The first `skew` symbols, up to 6, get codes of 1, 2, 3… bits, which makes others up to
/// 15 bits long.
pub(super) fn lz77_huffman(data: &[u8], skew: usize) -> Vec<u8> {
    let blocks = items(data, 65536, |_| (65535, usize::MAX));
    let mut out = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        huffman_block(&mut out, block, index + 1 == blocks.len(), skew);
    }
    out
}

/// Appends one block. Symbol 256 ends the last one.
fn huffman_block(out: &mut Vec<u8>, block: &[Item], last: bool, skew: usize) {
    let mut used: BTreeSet<usize> = block.iter().map(symbol).collect();
    used.extend([0, 256]);
    let lengths = code_lengths(&used, skew);
    let codes = canonical_codes(&lengths);
    out.extend(lengths.chunks(2).map(|pair| pair[0] | pair[1] << 4));
    let mut bits = BitWriter::new(out);
    for item in block {
        let symbol = symbol(item);
        bits.write(lengths[symbol].into(), codes[symbol]);
        if let Item::Match { distance, length } = *item {
            let length = length - 3;
            if length >= 15 {
                let byte = (length - 15).min(255) as u8;
                bits.out.push(byte);
                if byte == 255 {
                    long_length(bits.out, length);
                }
            }
            bits.write(distance.ilog2(), distance as u32 & !(1 << distance.ilog2()));
        }
    }
    if last {
        bits.write(lengths[256].into(), codes[256]);
    }
    bits.flush();
}

fn symbol(item: &Item) -> usize {
    match *item {
        Item::Literal(byte) => byte.into(),
        Item::Match { distance, length } => 256 + (length - 3).min(15) + 16 * distance.ilog2() as usize,
    }
}

fn code_lengths(used: &BTreeSet<usize>, skew: usize) -> Vec<u8> {
    let mut lengths = vec![0; 512];
    let skew = skew.min(used.len() - 2);
    let flat = used.len() - skew;
    let bits = flat.next_power_of_two().ilog2() as usize;
    let short = (1 << bits) - flat;
    for (index, &symbol) in used.iter().enumerate() {
        let length = match index.checked_sub(skew) {
            None => index + 1,
            Some(index) if index < short => skew + bits - 1,
            Some(_) => skew + bits,
        };
        lengths[symbol] = length as u8;
    }
    lengths
}

/// Assigns codes in order of length, then symbol (MS-XCA 2.1.4.2).
fn canonical_codes(lengths: &[u8]) -> Vec<u32> {
    let mut codes = vec![0; 512];
    let mut code = 0;
    for length in 1..=15 {
        for symbol in 0..512 {
            if lengths[symbol] == length {
                codes[symbol] = code;
                code += 1;
            }
        }
        code <<= 1;
    }
    codes
}

/// Writes 16-bit words late: each place is reserved two words ahead, and bytes may be appended after it.
struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    first: usize,
    second: usize,
    free_bits: u32,
    word: u32,
}

impl<'a> BitWriter<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        let first = out.len();
        out.extend([0; 4]);
        BitWriter { out, first, second: first + 2, free_bits: 16, word: 0 }
    }

    fn write(&mut self, count: u32, bits: u32) {
        if self.free_bits >= count {
            self.free_bits -= count;
            self.word = self.word << count | bits;
            return;
        }
        let beyond = count - self.free_bits;
        self.word = self.word << self.free_bits | bits >> beyond;
        self.put();
        self.first = self.second;
        self.second = self.out.len();
        self.out.extend([0; 2]);
        self.free_bits = 16 - beyond;
        self.word = bits & ((1 << beyond) - 1);
    }

    fn put(&mut self) {
        self.out[self.first..self.first + 2].copy_from_slice(&(self.word as u16).to_le_bytes());
    }

    fn flush(mut self) {
        self.word <<= self.free_bits;
        self.put();
    }
}
