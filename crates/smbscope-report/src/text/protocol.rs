//! Protocol features: offers of both sides in negotiation with the outcome and its reason, oplocks and leases, and data
//! that clients read again.

use super::percent_sign;
use crate::Report;
use crate::format::{bytes, counted, thousands, unbroken};
use crate::offers::{Feature, Negotiation, negotiations};
use crate::page::{Paint, TextPage};
use crate::tables::{ColumnHead, Row, Table, Unit, Value};
use smbscope_stats::{CachingFigures, FileRereads, RereadCounts};

const LISTED: usize = 4;
const NAMED: usize = 3;

pub(super) fn negotiation(page: &mut TextPage, report: &Report) {
    let (known, unknown): (Vec<Negotiation>, Vec<Negotiation>) =
        negotiations(report).into_iter().partition(Negotiation::is_known);
    if report.connections.is_empty() {
        return;
    }
    page.heading("Negotiation");
    for negotiation in known.iter().take(LISTED) {
        page.paragraph(Paint::Plain, &who(negotiation));
        negotiation.features().iter().for_each(|feature| line(page, feature));
    }
    let more = known.len().saturating_sub(LISTED);
    if more > 0 {
        let connections: u64 = known.iter().skip(LISTED).map(|negotiation| negotiation.connections).sum();
        let connections = counted(connections, "connection", "connections");
        let text = format!("{} more kinds on {connections}: --format json lists all.", thousands(more as u64));
        page.paragraph(Paint::Faint, &text);
    }
    let connections: u64 = unknown.iter().map(|negotiation| negotiation.connections).sum();
    if connections > 0 {
        let text = format!(
            "{} began before the capture, or their negotiation was not captured: what both sides offered is not known.",
            counted(connections, "connection", "connections")
        );
        page.paragraph(Paint::Plain, &text);
    }
}

/// Formats `3 connections, 10.0.0.7, 10.0.0.8, 10.0.0.10 and 2 more to 10.0.0.9:445`.
fn who(negotiation: &Negotiation<'_>) -> String {
    let named = |names: Vec<String>| match names.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {} more", names[..NAMED].join(", "), thousands(more as u64)),
    };
    let clients = named(negotiation.clients.iter().map(ToString::to_string).collect());
    let servers = named(negotiation.servers.iter().map(ToString::to_string).collect());
    let connections = counted(negotiation.connections, "connection", "connections");
    format!("  {}, {clients} to {servers}", unbroken(connections))
}

fn line(page: &mut TextPage, Feature { feature, client, server, outcome }: &Feature) {
    page.beside(
        Paint::Plain,
        &format!("    {feature:<20}"),
        &format!("{outcome} (client: {client}; server: {server})"),
    );
}

const REREADS_LISTED: usize = 10;

pub(super) fn caching(page: &mut TextPage, report: &Report) {
    let figures = &report.aggregate.caching;
    opens(page, figures);
    rereads(page, figures);
}

fn opens(page: &mut TextPage, figures: &CachingFigures) {
    let mut counts: Vec<(u64, String)> =
        figures.opens.iter().map(|opens| (opens.count, opens.granted.to_owned())).collect();
    if counts.is_empty() {
        return;
    }
    if figures.unknown_opens > 0 {
        counts.push((figures.unknown_opens, "not captured".to_owned()));
    }
    page.counts("Opens by the oplock or lease that was granted", counts);
}

fn rereads(page: &mut TextPage, figures: &CachingFigures) {
    let repeated = &figures.repeated;
    if repeated.reads == 0 {
        return;
    }
    page.heading("Repeated reads");
    let text = format!(
        "{} of {} ({} of {}) returned bytes that the client had read before and that, as far as the capture shows, \
         did not change; {} of them had an oplock or lease that allowed the client to cache the bytes.",
        thousands(repeated.reads),
        counted(figures.reads, "read", "reads"),
        percent_sign(repeated.bytes, figures.bytes_read),
        bytes(figures.bytes_read),
        thousands(repeated.cacheable_reads),
    );
    page.paragraph(Paint::Plain, &text);
    let clients = figures.clients.iter().map(|of| Row::new(of.client.to_string(), of.repeated));
    let files = figures.files.iter().map(|FileRereads { client, file, repeated }| {
        let share = file.share.as_ref().map_or_else(String::new, |share| format!("{share}\\"));
        Row::new(format!("{share}{} ({client})", file.path.trim_start_matches('\\')), *repeated)
    });
    let rendered = Table::new()
        .names(24..=80)
        .column(ColumnHead::new("reads", "Reads", Unit::Count, "repeated reads"), |row: &RereadCounts| row.reads)
        .column(ColumnHead::new("bytes", "Bytes", Unit::Bytes, "bytes read again"), |row| Value::Bytes(row.bytes))
        .column(
            ColumnHead::new("cacheable_reads", "Cacheable", Unit::Count, "")
                .explained("repeated reads with an oplock or lease that allowed the client to cache the bytes")
                .expendable(1),
            |row| row.cacheable_reads,
        )
        .column(
            ColumnHead::new("cacheable_bytes", "Cacheable bytes", Unit::Bytes, "bytes of these reads").expendable(2),
            |row| Value::Bytes(row.cacheable_bytes),
        )
        .section("by client", clients.take(REREADS_LISTED))
        .section("by file", files.take(REREADS_LISTED))
        .render_paths(page);
    let more = figures.files.len().saturating_sub(REREADS_LISTED);
    let text = match more {
        0 => String::new(),
        more => counted(more as u64, "more file: --format json lists it.", "more files: --format json lists them."),
    };
    rendered.note(page, &text);
}
