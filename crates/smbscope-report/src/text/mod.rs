//! The report for a terminal: the verdict first, then the tables of Swartz (1997), appendix A, in units that read well.

pub(crate) mod bars;
mod commands;
mod distribution;
mod overview;
pub(crate) mod page;
mod slices;
pub(crate) mod style;
pub(crate) mod table;
mod timeline;
mod waits;

pub(crate) use overview::filter_note;

use crate::Report;
use crate::format::{clean, unbroken, visible_percent};
use crate::warnings::{self, Warning};
use page::Page;
use style::Paint;

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns of the terminal; from 80 on nothing is wider.
    pub width: usize,
    /// Whether to use colour.
    pub color: bool,
    /// Slices that are listed one by one.
    pub top: usize,
}

impl Default for TextOptions {
    fn default() -> TextOptions {
        TextOptions { width: 100, color: false, top: 20 }
    }
}

/// The whole report.
pub fn render(report: &Report, options: &TextOptions) -> String {
    let mut page = Page::new(options.width, options.color);
    overview::render(&mut page, report);
    waits::render(&mut page, report);
    if report.aggregate.count > 0 {
        slices::render(&mut page, report, options.top);
        timeline::render(&mut page, report);
        commands::render(&mut page, report);
        distribution::render(&mut page, report);
    }
    render_warnings(&mut page, report);
    page.into_text()
}

fn render_warnings(page: &mut Page, report: &Report) {
    let warnings = warnings::of_report(report);
    if warnings.is_empty() {
        return;
    }
    page.heading("Warnings");
    for warning in warnings {
        let share =
            warning.share.map_or_else(String::new, |(whole, of)| format!(" ({} of {of})", share_of(&warning, whole)));
        let text = format!("{}{share}", clean(&warning.text));
        page.counted(Paint::Warning, warning.count, &text);
    }
}

fn share_of(warning: &Warning, whole: u64) -> String {
    unbroken(percent_sign(warning.count.unwrap_or(0), whole))
}

/// `36.9 %`.
fn percent_sign(part: u64, whole: u64) -> String {
    format!("{} %", visible_percent(part, whole))
}
