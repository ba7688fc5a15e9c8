//! How long the episode would take otherwise.

use super::page::Page;
use super::table::{Column, Line, Table};
use crate::Report;
use crate::format::{span, thousands, unbroken};

/// A line a scenario.
pub(super) fn render(page: &mut Page, report: &Report) {
    let Some(first) = report.explanation.what_if.first() else { return };
    let columns = Column::list(&[("Duration", 8), ("×", 6), ("Commands", 8)]);
    let now = Line::new("as captured", vec![span(first.now), String::new(), thousands(first.commands)]);
    let then = report.explanation.what_if.iter().map(|prediction| {
        let factor = prediction.then.0 as f64 / prediction.now.0.max(1) as f64;
        let sent = thousands(prediction.commands - prediction.saved);
        Line::new(prediction.scenario.to_string(), vec![span(prediction.then), format!("{factor:.2}"), sent])
    });
    Table::new(columns).section("What if", std::iter::once(now).chain(then)).render(page);
    let trip = first.round_trip.map_or_else(String::new, |trip| format!(" The round trip is {} now.", unbroken(trip)));
    page.note(
        &format!(
            "Each request follows the last response before it after the same think time; the bandwidth and the \
             server's load stay as they are.{trip}"
        ),
        &[],
    );
}
