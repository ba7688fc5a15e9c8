//! The report for a terminal: the verdict first, then the tables of Swartz (1997), appendix A, in units that read well.

mod commands;
mod distribution;
mod overview;
mod slices;
pub(crate) mod style;
pub(crate) mod table;
mod timeline;
mod waits;

pub(crate) use distribution::bar;
pub(crate) use overview::filter_note;

use crate::Report;
use crate::format::{clean, thousands, unbroken, visible_percent, wrap};
use crate::warnings::{self, Warning};
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

/// Narrowest and widest page.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=160;

/// The whole report.
pub fn render(report: &Report, options: &TextOptions) -> String {
    let options = TextOptions { width: options.width.clamp(*WIDTHS.start(), *WIDTHS.end()), ..*options };
    let mut out = String::new();
    overview::render(&mut out, report, &options);
    waits::render(&mut out, report, &options);
    if report.aggregate.count > 0 {
        slices::render(&mut out, report, &options);
        timeline::render(&mut out, report, &options);
        commands::render(&mut out, report, &options);
        distribution::render(&mut out, report, &options);
    }
    render_warnings(&mut out, report, &options);
    out
}

fn render_warnings(out: &mut String, report: &Report, options: &TextOptions) {
    let warnings = warnings::all(report);
    if warnings.is_empty() {
        return;
    }
    out.push('\n');
    Paint::Heading.line(out, "Warnings", options.color);
    for warning in warnings {
        let count = warning.count.map_or_else(String::new, thousands);
        let share =
            warning.share.map_or_else(String::new, |(whole, of)| format!(" ({} of {of})", share_of(&warning, whole)));
        for (i, line) in wrap(&format!("{}{share}", clean(&warning.text)), options.width - 14).iter().enumerate() {
            let count = if i == 0 { count.as_str() } else { "" };
            Paint::Warning.line(out, &format!("{count:>12}  {line}"), options.color);
        }
    }
}

fn share_of(warning: &Warning, whole: u64) -> String {
    unbroken(percent_sign(warning.count.unwrap_or(0), whole))
}

/// `36.9 %`.
fn percent_sign(part: u64, whole: u64) -> String {
    format!("{} %", visible_percent(part, whole))
}
