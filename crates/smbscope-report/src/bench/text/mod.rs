//! Terminal report of a ramp: warnings and headline, throughput and response time over users (figures 2 and 3 of
//! Swartz, 1997), then details of a load point.

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RampDetailLevel {
    /// One screen: the load curve, and groups and at most ten commands of one load point.
    Brief,
    /// The full report with details of one load point: at the capacity if there is one, otherwise the last.
    #[default]
    One,
    /// The full report with details of every load point.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RampTextOptions {
    /// Width of the terminal in columns, clamped to 60–160. Lines may be longer below 80.
    pub width: usize,
    pub color: bool,
    pub detail: RampDetailLevel,
}

impl Default for RampTextOptions {
    fn default() -> RampTextOptions {
        RampTextOptions { width: 100, color: false, detail: RampDetailLevel::One }
    }
}

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
