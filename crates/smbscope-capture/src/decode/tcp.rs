//! TCP headers (RFC 9293 §3.1).

use super::fields::{Fields, Stays};
use crate::segment::{TcpFlags, WindowScale};

/// Bytes up to the window field, the minimum to process a segment.
pub(super) const NEEDED: usize = 16;
const MIN_HEADER: u32 = 20;
const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const SEGMENT_SIZE: u8 = 2;
const SHIFT_COUNT: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
/// Maximum window shift; larger values count as this (RFC 7323 §2.3).
const LARGEST_SHIFT: u8 = 14;

#[derive(Debug, Clone, Copy)]
pub(super) struct TcpHeader<'a> {
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) sequence: u32,
    pub(super) acknowledgment: u32,
    pub(super) flags: TcpFlags,
    pub(super) window: u16,
    pub(super) window_scale: WindowScale,
    pub(super) timestamp_value: Option<u32>,
    pub(super) names_later_bytes: bool,
    pub(super) duplicate_sack: Option<(u32, u32)>,
    pub(super) payload: &'a [u8],
    pub(super) payload_length: u32,
}

impl<'a> TcpHeader<'a> {
    #[inline]
    pub(super) fn parse<F: Fields>(data: &'a [u8], length: u32, fields: &mut F) -> Option<TcpHeader<'a>> {
        let fixed: &[u8; NEEDED] = data.get(..NEEDED)?.try_into().ok()?;
        fields.enter(data.get(12..13), Stays::Bits(0xf0));
        let header_length = u32::from(fixed[12] >> 4) * 4;
        if header_length < MIN_HEADER {
            return None;
        }
        let payload_length = length.checked_sub(header_length)?;
        if F::RECORDS {
            fields.enter(data.get(..12), Stays::Whole);
            fields.enter(data.get(13..NEEDED), Stays::Whole);
        }
        let header = &data[..data.len().min(header_length as usize)];
        let payload = &data[header.len()..];
        let acknowledgment = u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]);
        let options = header.get(MIN_HEADER as usize..).unwrap_or_default();
        if F::RECORDS {
            enter_options(options, fields);
        }
        let flags = TcpFlags(fixed[13]);
        let window_scale = match flags.syn() {
            true if header.len() == header_length as usize => read_window_scale(options),
            _ => WindowScale::Unknown,
        };
        let options = read_options(options, acknowledgment);
        Some(TcpHeader {
            source_port: u16::from_be_bytes([fixed[0], fixed[1]]),
            destination_port: u16::from_be_bytes([fixed[2], fixed[3]]),
            sequence: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
            acknowledgment,
            flags,
            window: u16::from_be_bytes([fixed[14], fixed[15]]),
            window_scale,
            timestamp_value: options.timestamp_value,
            names_later_bytes: options.names_later_bytes,
            duplicate_sack: options.duplicate_sack,
            payload: &payload[..payload.len().min(payload_length as usize)],
            payload_length,
        })
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct TcpOptions {
    timestamp_value: Option<u32>,
    /// A SACK block starts beyond the acknowledgment (D-SACK blocks, RFC 2883, need not).
    names_later_bytes: bool,
    /// First SACK block, if it reports bytes received twice (RFC 2883 §4).
    duplicate_sack: Option<(u32, u32)>,
}

#[inline(always)]
fn read_options(options: &[u8], acknowledgment: u32) -> TcpOptions {
    match options {
        [] => TcpOptions::default(),
        // The usual options of Linux and Windows: two no-operations, then timestamps.
        [NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10, a, b, c, d, _, _, _, _] => {
            TcpOptions { timestamp_value: Some(u32::from_be_bytes([*a, *b, *c, *d])), ..TcpOptions::default() }
        }
        _ => read_other_options(options, acknowledgment),
    }
}

#[inline(never)]
fn read_other_options(mut options: &[u8], acknowledgment: u32) -> TcpOptions {
    let mut read = TcpOptions::default();
    loop {
        match options {
            [] | [END_OF_OPTIONS, ..] | [_] => return read,
            [NO_OPERATION, rest @ ..] => options = rest,
            [kind, length, rest @ ..] => {
                let length = usize::from(*length).max(2);
                match (*kind, rest) {
                    (TIMESTAMPS, [a, b, c, d, ..]) if length == 10 && read.timestamp_value.is_none() => {
                        read.timestamp_value = Some(u32::from_be_bytes([*a, *b, *c, *d]));
                    }
                    (SACK, _) => {
                        let mut blocks = rest.get(..length - 2).unwrap_or_default().chunks_exact(8).map(read_block);
                        read.names_later_bytes |= blocks.clone().any(|(left, _)| is_after(left, acknowledgment));
                        read.duplicate_sack = read_duplicate(blocks.next(), blocks.next(), acknowledgment);
                    }
                    _ => {}
                }
                let Some(behind) = rest.get(length - 2..) else { return read };
                options = behind;
            }
        }
    }
}

/// Enters the options that reveal nothing about the sender (RFC 9293 §3.2, RFC 7323, RFC 2018). Others become
/// no-operations; a multipath TCP option, for example, can contain an address (RFC 8684 §3.4.1).
#[cold]
fn enter_options<F: Fields>(mut options: &[u8], fields: &mut F) {
    loop {
        match options {
            [] | [END_OF_OPTIONS, ..] | [_] => return,
            [NO_OPERATION, rest @ ..] => {
                fields.enter(options.get(..1), Stays::Whole);
                options = rest;
            }
            [kind, length, ..] => {
                let length = usize::from(*length).max(2);
                let (option, behind) = options.split_at(length.min(options.len()));
                let stays = match (*kind, length) {
                    (SEGMENT_SIZE, 4) | (SHIFT_COUNT, 3) | (SACK_PERMITTED, 2) | (TIMESTAMPS, 10) => option.len(),
                    // Only whole blocks.
                    (SACK, _) => 2 + (option.len() - 2) / 8 * 8,
                    _ => 0,
                };
                if stays == 0 {
                    fields.enter(Some(option), Stays::As(NO_OPERATION));
                } else {
                    fields.enter(option.get(..stays), Stays::Whole);
                }
                options = behind;
            }
        }
    }
}

fn read_block(block: &[u8]) -> (u32, u32) {
    let edge = |at: usize| u32::from_be_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    (edge(0), edge(4))
}

fn is_after(sequence: u32, other: u32) -> bool {
    sequence.wrapping_sub(other) as i32 > 0
}

/// Returns the first SACK block if it is a D-SACK: below the cumulative acknowledgment, or inside the second block.
fn read_duplicate(first: Option<(u32, u32)>, second: Option<(u32, u32)>, acknowledgment: u32) -> Option<(u32, u32)> {
    let (left, right) = first.filter(|(left, right)| is_after(*right, *left))?;
    let is_inside = |(outer_left, outer_right)| !is_after(outer_left, left) && !is_after(right, outer_right);
    (is_after(acknowledgment, left) || second.is_some_and(is_inside)).then_some((left, right))
}

#[inline(never)]
fn read_window_scale(mut options: &[u8]) -> WindowScale {
    loop {
        match options {
            [NO_OPERATION, rest @ ..] => options = rest,
            [SHIFT_COUNT, 3, shift, ..] => return WindowScale::Shift((*shift).min(LARGEST_SHIFT)),
            [kind, length, ..] if *kind != END_OF_OPTIONS => {
                let Some(rest) = options.get(usize::from(*length).max(2)..) else { return WindowScale::Absent };
                options = rest;
            }
            _ => return WindowScale::Absent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(flags: u8, options: &[u8], captured: usize) -> WindowScale {
        let length = 20 + options.len();
        let mut header = vec![0; 20];
        header[12] = (length as u8 / 4) << 4;
        header[13] = flags;
        header.extend(options);
        TcpHeader::parse(&header[..captured.min(length)], length as u32, &mut ())
            .expect("it is long enough")
            .window_scale
    }

    #[test]
    fn the_window_scale_is_read_from_a_syn_whose_options_are_whole() {
        // As sent by Linux: MSS, SACK permitted, timestamps, no-operation, window scale 7.
        let linux = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(scale(TcpFlags::SYN, &linux, 100), WindowScale::Shift(7));
        assert_eq!(scale(TcpFlags::SYN, &linux, 39), WindowScale::Unknown, "the snap length cut it");
        assert_eq!(scale(TcpFlags::ACK, &linux, 100), WindowScale::Unknown, "it counts in a SYN only");
        assert_eq!(scale(TcpFlags::SYN, &[2, 4, 5, 180], 100), WindowScale::Absent);
        assert_eq!(scale(TcpFlags::SYN, &[3, 3, 200, 0], 100), WindowScale::Shift(14));
        assert_eq!(scale(TcpFlags::SYN, &[0, 3, 3, 7], 100), WindowScale::Absent, "behind the end of the options");
        assert_eq!(scale(TcpFlags::SYN, &[2, 200, 3, 3], 100), WindowScale::Absent, "damaged");
    }
}
