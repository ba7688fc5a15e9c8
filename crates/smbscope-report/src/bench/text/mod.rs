//! The report of a ramp for a terminal: what weakens it first, then throughput and response time against users as in
//! figures 2 and 3 of Swartz (1997), and then what happened at a load point.

mod capacity;
mod counted;
mod hosts;
mod jobs;
mod launch;
mod overview;
mod point;
mod ramp;
mod samba;
pub(crate) mod server;
mod wire;

use super::BenchDocument;
use crate::text::page::TextPage;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RampDetailLevel {
    /// What fits a screen: the load curve, and groups and ten commands at one load point.
    Brief,
    /// Everything; command by command the load point of the capacity where there is one, otherwise the last.
    #[default]
    One,
    /// All of them.
    All,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RampTextOptions {
    /// Columns of the terminal; from 80 on nothing is wider.
    pub width: usize,
    /// Whether to use colour.
    pub color: bool,
    /// How much is shown.
    pub detail: RampDetailLevel,
}

impl Default for RampTextOptions {
    fn default() -> RampTextOptions {
        RampTextOptions { width: 100, color: false, detail: RampDetailLevel::One }
    }
}

/// The whole report.
pub fn render(document: &BenchDocument, options: &RampTextOptions) -> String {
    let mut page = TextPage::new(options.width, options.color);
    if let Some(launch) = &document.launch {
        launch::render(&mut page, document, launch, options.detail);
        return page.into_text();
    }
    overview::render(&mut page, document, options.detail == RampDetailLevel::Brief);
    let points = match options.detail {
        RampDetailLevel::Brief => {
            ramp::brief(&mut page, document);
            jobs::render(&mut page, document);
            document.shown().into_iter().for_each(|run| point::brief(&mut page, document, run));
            return page.into_text();
        }
        RampDetailLevel::One => document.shown().into_iter().collect(),
        RampDetailLevel::All => document.runs.iter().collect::<Vec<_>>(),
    };
    ramp::render(&mut page, document);
    jobs::render(&mut page, document);
    server::render(&mut page, document);
    capacity::render(&mut page, document);
    wire::ramp(&mut page, document);
    points.into_iter().for_each(|run| point::render(&mut page, document, run));
    page.into_text()
}
