//! Bars and small lines made of characters.

use crate::text::bar;

/// Levels of a small line, from low to high.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What stands where nothing was done.
const NOTHING: char = '·';

/// A bar as long as the value's share of the largest; padded, so that it stands at the left of a column aligned to the
/// right.
pub(super) fn share_bar(value: Option<f64>, most: f64, width: usize) -> String {
    let percent = value.filter(|_| most > 0.0).map_or(0.0, |value| 100.0 * value / most);
    format!("{:<width$}", bar(percent, width))
}

/// The values in a line, a character each, of which the largest is full; nothing is a dot. Too many values for `width`
/// are put together, of each part the value that `choose` prefers.
pub(super) fn line(values: &[Option<f64>], width: usize, choose: fn(f64, f64) -> f64) -> String {
    let parts = values.len().div_ceil(width.max(1)).max(1);
    let values: Vec<Option<f64>> =
        values.chunks(parts).map(|part| part.iter().flatten().copied().reduce(choose)).collect();
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let level = |value: Option<f64>| match value {
        Some(value) if value > 0.0 && most > 0.0 => {
            LEVELS[((value / most * 8.0).ceil() as usize).clamp(1, LEVELS.len()) - 1]
        }
        _ => NOTHING,
    };
    values.into_iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_shares_of_the_largest_and_padded() {
        assert_eq!(share_bar(Some(5.0), 10.0, 4), "██  ");
        assert_eq!(share_bar(None, 10.0, 4), "    ");
        assert_eq!(share_bar(Some(5.0), 0.0, 4), "    ");
    }

    #[test]
    fn nothing_is_a_dot_in_a_line() {
        // 1 of 8 is the first level, 8 of 8 the last.
        assert_eq!(line(&[Some(1.0), None, Some(0.0), Some(8.0)], 10, f64::max), "▁··█");
    }

    #[test]
    fn a_stall_shows_in_a_line_that_is_too_short() {
        let values: Vec<Option<f64>> = (0..8).map(|at| Some(if at == 5 { 0.0 } else { 4.0 })).collect();
        assert_eq!(line(&values, 4, f64::min), "██·█");
    }
}
