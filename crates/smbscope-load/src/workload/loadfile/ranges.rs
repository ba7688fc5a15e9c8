//! Text form of queue ranges: `0+65536*16 4194304+512` is 16 contiguous ranges of 64 KiB and one of 512 bytes.

use smbscope_client::FileRange;
use std::fmt::Write;

/// Maximum number of ranges in all queues of a file.
pub(super) const QUEUED_MAX: usize = 1_000_000;

/// Parses up to `most` ranges. Returns the first malformed or excess part as the error.
pub(super) fn parse(text: &str, most: usize) -> Result<Vec<FileRange>, &str> {
    let mut ranges = Vec::new();
    for part in text.split_whitespace() {
        let (offset, length, count) = run(part).ok_or(part)?;
        if count > most.saturating_sub(ranges.len()) as u64 {
            return Err(part);
        }
        ranges.extend((0..count).map(|n| FileRange { offset: offset + n * u64::from(length), length }));
    }
    Ok(ranges)
}

/// Parses offset, length and count. The end must fit a signed 64-bit file offset.
fn run(text: &str) -> Option<(u64, u32, u64)> {
    let (offset, rest) = text.split_once('+')?;
    let (length, count) = rest.split_once('*').unwrap_or((rest, "1"));
    let (offset, length, count): (u64, u32, u32) = (offset.parse().ok()?, length.parse().ok()?, count.parse().ok()?);
    let count = u64::from(count);
    let end = count.checked_mul(length.into())?.checked_add(offset)?;
    (i64::try_from(end).is_ok()).then_some((offset, length, count))
}

pub fn ranges_text(ranges: &[FileRange]) -> String {
    let mut text = String::new();
    let follows =
        |a: &FileRange, b: &FileRange| a.length == b.length && a.offset.checked_add(a.length.into()) == Some(b.offset);
    for run in ranges.chunk_by(follows) {
        let FileRange { offset, length } = run[0];
        let blank = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{blank}{offset}+{length}");
        if run.len() > 1 {
            let _ = write!(text, "*{}", run.len());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_ranges_are_the_same() {
        let text = "0+65536*16 4194304+512 0+1";
        let ranges = parse(text, 18).unwrap();
        assert_eq!((ranges.len(), ranges[15]), (18, FileRange { offset: 15 << 16, length: 1 << 16 }));
        assert_eq!(ranges_text(&ranges), text);
        assert_eq!(parse(text, 17).unwrap_err(), "0+1");
    }

    #[test]
    fn what_no_file_can_have_is_refused() {
        for text in ["", "5", "-1+5", "0+4294967296", "9223372036854775807+1", "0+4294967295*4294967295 x", "1+1*-1"] {
            let parsed = parse(text, 10);
            assert!(parsed.is_err() || text.is_empty(), "{text}");
        }
    }
}
