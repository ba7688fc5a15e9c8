//! Pattern_V1: one repeated byte (MS-SMB2 2.2.42.2.2).

use super::window::{DecompressionEnd, DecompressionWindow};
use crate::bytes;

pub(super) fn decompress(data: &[u8], mut window: DecompressionWindow<'_>) -> Result<(), DecompressionEnd> {
    let pattern = bytes::u8_at(data, 0).ok_or(DecompressionEnd::Truncated)?;
    window.fill(pattern, repetitions(data).ok_or(DecompressionEnd::Truncated)?)
}

pub(super) fn repetitions(data: &[u8]) -> Option<usize> {
    bytes::u32_at(data, 4).map(|count| count as usize)
}
