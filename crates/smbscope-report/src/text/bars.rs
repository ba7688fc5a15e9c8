//! Bars and charts made of Unicode block characters.

/// Returns a bar with a resolution of 1/8 character. A share above 0 is at least 1/8 long.
pub(crate) fn bar(part: f64, whole: f64, width: usize) -> String {
    let share = if part > 0.0 && whole > 0.0 { part / whole } else { 0.0 };
    let eighths = (share * width as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)));
    bar
}

/// Returns one character of a chart. None for 0.
pub(crate) fn level(part: f64, whole: f64) -> Option<char> {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    (part > 0.0 && whole > 0.0).then(|| LEVELS[((part / whole * 8.0).ceil() as usize).clamp(1, LEVELS.len()) - 1])
}

/// Returns a chart of one character per value, relative to the largest value. Missing values and 0 are dots. If there
/// are more values than `width`, adjacent values are combined by `choose`.
pub(crate) fn line(values: &[Option<f64>], width: usize, choose: fn(f64, f64) -> f64) -> String {
    let parts = values.len().div_ceil(width.max(1)).max(1);
    let values: Vec<f64> =
        values.chunks(parts).map(|part| part.iter().flatten().copied().reduce(choose).unwrap_or(0.0)).collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    values.into_iter().map(|value| level(value, most).unwrap_or('·')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        // 50% of 10 characters are 5; 55% are 5.5: five and a half; 0.1% still shows.
        let bars = [0.0, 0.1, 50.0, 55.0, 100.0].map(|part| bar(part, 100.0, 10));
        assert_eq!(bars, ["", "▏", "█████", "█████▌", "██████████"]);
        assert_eq!(bar(5.0, 0.0, 4), "");
    }

    #[test]
    fn levels_show_every_count() {
        assert_eq!([0.0, 1.0, 50.0, 100.0].map(|n| level(n, 100.0)), [None, Some('▁'), Some('▄'), Some('█')]);
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
