//! Negotiation: offers of both sides by feature, with the outcome and its reason.

use super::page::TextPage;
use super::style::Paint;
use crate::Report;
use crate::format::{counted, thousands, unbroken};
use crate::offers::{Feature, Negotiation, negotiations};

const LISTED: usize = 4;
const NAMED: usize = 3;

pub(super) fn render(page: &mut TextPage, report: &Report) {
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
