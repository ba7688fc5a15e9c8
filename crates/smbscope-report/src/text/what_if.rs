//! What-if predictions for the selected episode.

use super::page::TextPage;
use super::table::{TextColumn, TextTable, TextTableLine};
use crate::Report;
use crate::format::{span, thousands, unbroken};
use smbscope_diagnose::whatif::Prediction;

pub(super) fn render(page: &mut TextPage, report: &Report) {
    let Some(first) = report.explanation.what_if.first() else { return };
    let columns = TextColumn::list(&[("Duration", 8), ("×", 6), ("Commands", 8)]);
    let now = TextTableLine::new("as captured", vec![span(first.now), String::new(), thousands(first.commands)]);
    let then = report.explanation.what_if.iter().map(|prediction| {
        let factor = prediction.then.0 as f64 / prediction.now.0.max(1) as f64;
        let sent = thousands(prediction.commands - prediction.saved);
        TextTableLine::new(prediction.scenario.to_string(), vec![duration(prediction), format!("{factor:.2}"), sent])
    });
    TextTable::new(columns).section("What if", std::iter::once(now).chain(then)).render(page);
    let trip = first.round_trip.map_or_else(String::new, |trip| format!(" The round trip is {} now.", unbroken(trip)));
    page.note(
        &format!(
            "Prediction with its range. Each command waits for its predecessors on its connection or in its thread; \
             TCP slow start and the window limit transfers. The bandwidth and the server's load stay as they are.{trip}"
        ),
        &[],
    );
}

/// Returns the duration with its range: `2.41 s (2.12 to 2.73 s)`.
fn duration(prediction: &Prediction) -> String {
    let [low, then, high] = [prediction.low, prediction.then, prediction.high].map(span);
    let low = match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => number,
        _ => &low,
    };
    format!("{then} ({low} to {high})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_diagnose::whatif::Scenario;
    use smbscope_model::Nanos;

    fn shown(low: i64, then: i64, high: i64) -> String {
        let [low, then, high] = [low, then, high].map(|ms| Nanos(ms * 1_000_000));
        let scenario = Scenario::default();
        duration(&Prediction { scenario, now: then, low, then, high, round_trip: None, commands: 1, saved: 0 })
    }

    #[test]
    fn a_range_repeats_no_unit() {
        assert_eq!(shown(2_120, 2_410, 2_730), "2.41 s (2.12 to 2.73 s)");
        assert_eq!(shown(912, 1_010, 1_200), "1.01 s (912 ms to 1.20 s)");
        assert_eq!(shown(118_000, 125_000, 131_000), "2 min 05 s (118 s to 2 min 11 s)");
    }
}
