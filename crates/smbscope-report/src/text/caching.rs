//! Caching: opens by oplock or lease, and data that clients read again.

use super::page::TextPage;
use super::percent_sign;
use super::style::Paint;
use super::table::{TextColumn, TextTable, TextTableLine};
use crate::Report;
use crate::format::{bytes, counted, shorten_path, thousands};
use smbscope_stats::{CachingFigures, RereadCounts};

const LISTED: usize = 10;

pub(super) fn render(page: &mut TextPage, report: &Report) {
    let figures = &report.aggregate.caching;
    opens(page, figures);
    rereads(page, figures);
}

fn opens(page: &mut TextPage, figures: &CachingFigures) {
    let mut counts: Vec<(u64, String)> =
        figures.opens.iter().map(|(caching, count)| (*count, caching.name().to_owned())).collect();
    if counts.is_empty() {
        return;
    }
    if figures.unknown_opens > 0 {
        counts.push((figures.unknown_opens, "not captured".to_owned()));
    }
    page.counts("Opens by the oplock or lease that was granted", counts);
}

/// Tabulates repeated reads by client and file.
fn rereads(page: &mut TextPage, figures: &CachingFigures) {
    let repeated = &figures.repeated;
    if repeated.all.reads == 0 {
        return;
    }
    page.heading("Repeated reads");
    let text = format!(
        "{} of {} ({} of {}) brought bytes that the client had read before and that, as far as the capture shows, did not \
         change; {} of them had an oplock or lease that allowed the client to keep the bytes.",
        thousands(repeated.all.reads),
        counted(figures.reads.reads, "read", "reads"),
        percent_sign(repeated.all.bytes, figures.reads.bytes),
        bytes(figures.reads.bytes),
        thousands(repeated.cacheable.reads),
    );
    page.paragraph(Paint::Plain, &text);
    let cells = |row: &RereadCounts| {
        vec![thousands(row.all.reads), bytes(row.all.bytes), thousands(row.cacheable.reads), bytes(row.cacheable.bytes)]
    };
    let clients =
        figures.clients.iter().take(LISTED).map(|(client, row)| TextTableLine::new(client.to_string(), cells(row)));
    let files = figures.files.iter().take(LISTED).map(|((client, file), row)| {
        let share = file.share.as_ref().map_or_else(String::new, |share| format!("{share}\\"));
        TextTableLine::new(format!("{share}{} ({client})", file.path.trim_start_matches('\\')), cells(row))
    });
    let columns = TextColumn::list(&[("Reads", 0), ("Bytes", 0), ("with oplock or lease", 1), ("Bytes", 2)]);
    let table = TextTable::new(columns).names(24..=80).section("by client", clients).section("by file", files);
    let left_out = table.with_shorter(page.width(), shorten_path).render(page);
    let more = figures.files.len().saturating_sub(LISTED);
    if more > 0 || !left_out.is_empty() {
        let text = match more {
            0 => String::new(),
            more => counted(more as u64, "more file: --format json lists it.", "more files: --format json lists them."),
        };
        page.note(&text, &left_out);
    }
}
