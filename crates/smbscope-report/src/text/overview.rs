//! Top of the report: answer and causes, summary, hosts, dialects and protection, and the quality of the capture.

use super::percent_sign;
use crate::format::{
    capital, clean, clock, counted, date, median_and_p95, prose_percent, seconds, shorten, shorten_path, span,
    thousands, unbroken,
};
use crate::page::{Paint, TextPage};
use crate::tables::{ColumnHead, Row, Table, Unit, percent_of};
use crate::totals::{LoadTotals, PacketCounts, Smb1InUse, control};
use crate::warnings::is_alarming;
use crate::{Filtered, Report, names, totals};
use smbscope_diagnose::{Answer, Cause, Confidence, Culprit};
use smbscope_model::{CaptureInfo, CommandGroup, ConnectionSummary, DirectionCounts};
use smbscope_stats::{CommandStatistics, Entities};
use std::collections::HashMap;
use std::fmt::Display;
use std::hash::Hash;
use std::sync::Arc;

const LISTED_MAX: usize = 4;

const NAME_MAX: usize = 60;

pub(super) fn title(page: &mut TextPage, report: &Report, is_brief: bool) {
    if let Some(smb1) = Smb1InUse::from_report(report) {
        page.paragraph(Paint::Smb1, &smb1.sentence());
        page.blank();
    }
    let title = report.title.as_ref().map_or_else(String::new, |title| format!(": {}", clean(title)));
    page.title(&format!("SMB response times{title}"), is_brief);
    page.paragraph(Paint::Plain, &summary(report, is_brief));
}

/// Renders everything that changes the meaning of the answer: a filter, and serious damage of the capture.
pub(super) fn first_of_all(page: &mut TextPage, report: &Report) {
    if let Some(note) = filter_note(report) {
        page.paragraph(Paint::Warning, &clean(&note));
    }
    if is_alarming(report) {
        page.paragraph(Paint::Warning, &report.quality_sentence());
    }
}

pub(crate) fn filter_note(report: &Report) -> Option<String> {
    let Filtered { expression, matched, whole } = report.filter.as_ref()?;
    let exchanges = counted(whole.exchanges, "exchange matches", "exchanges match");
    Some(format!("Filtered: {} of {exchanges} {expression}", thousands(*matched)))
}

/// Summarises the figures in a sentence or two. The brief report omits the slowest command, which is in the tables.
fn summary(report: &Report, is_brief: bool) -> String {
    let aggregate = &report.aggregate;
    let encrypted = aggregate.groups.iter().find(|row| row.group == CommandGroup::Encrypted).map(|found| &found.row);
    let in_clear = aggregate.count - encrypted.map_or(0, |row| row.count);
    let mut text = String::new();
    if report.quality.encrypted_frames > 0 {
        let frames = counted(report.quality.encrypted_frames, "frame is", "frames are");
        text = format!("{frames} encrypted: what they do is hidden, only the frames can be timed");
        match encrypted.filter(|row| row.timed > 0) {
            Some(row) => text += &format!(" ({}). ", figures(row)),
            None => text += ". ",
        }
        if in_clear == 0 {
            return text.trim_end().to_owned();
        }
    }
    if in_clear == 0 && report.filter.is_some() {
        return "No command matches the filter.".to_owned();
    }
    if in_clear == 0 {
        return "No SMB command could be read.".to_owned();
    }
    let whom = if text.is_empty() { "command" } else { "other command" };
    let mut commands = counted(in_clear, whom, &format!("{whom}s"));
    if let (true, Some(elapsed)) = (text.is_empty(), aggregate.elapsed().filter(|elapsed| elapsed.0 > 0)) {
        commands += &format!(" in {}", unbroken(span(elapsed)));
    }
    let total = &aggregate.total;
    let Some(slowest) = total.response_time.max else {
        return text + &format!("{commands}, none with a response time.");
    };
    let slowest_of = aggregate
        .commands
        .iter()
        .filter(|row| row.groups.iter().all(|group| group.in_headline()))
        .find(|row| row.row.response_time.max == Some(slowest))
        .map_or_else(String::new, |row| format!(" ({})", names::command(row.command)));
    text + &match total.timed {
        1 if in_clear == 1 => format!("{}; it took {}{slowest_of}.", counted(1, whom, ""), unbroken(slowest)),
        1 => format!("{commands}. Only one was timed: it took {}{slowest_of}.", unbroken(slowest)),
        // Below the resolution of a coarse clock.
        _ if figures(total).is_empty() => format!("{commands}; the slowest took {}{slowest_of}.", unbroken(slowest)),
        _ if is_brief => format!("{commands}. {}.", capital(&figures(total))),
        _ => {
            let figures = figures(total);
            format!("{commands}. {}; the slowest took {}{slowest_of}.", capital(&figures), unbroken(slowest))
        }
    }
}

/// Formats `median 224 µs, p95 732 µs`.
fn figures(row: &CommandStatistics) -> String {
    median_and_p95(&row.response_time).unwrap_or_default()
}

/// Renders one fact per line. The brief report only has dialects and hosts.
pub(super) fn facts(page: &mut TextPage, report: &Report, is_brief: bool) {
    page.blank();
    let mut fact = |label: &str, paint: Paint, text: &str| page.fact(paint, label, text);
    for (i, line) in totals::dialect_lines(report).iter().enumerate() {
        let paint = if line.is_smb1 { Paint::Smb1 } else { Paint::Plain };
        fact(if i == 0 { "Dialect" } else { "" }, paint, &line.text);
    }
    let servers = report.connections.iter().map(|connection| (connection.endpoints.server, connection.exchanges));
    let clients = report.connections.iter().map(|connection| (connection.endpoints.client.ip(), connection.exchanges));
    for (i, line) in encapsulations(report).iter().enumerate() {
        fact(if i == 0 { "Inside" } else { "" }, Paint::Plain, line);
    }
    for (i, line) in proxies(report).iter().enumerate() {
        fact(if i == 0 { "Proxy" } else { "" }, Paint::Plain, line);
    }
    if is_brief {
        if !report.connections.is_empty() {
            let clients = hosts(&ranked(clients), "client", "clients");
            fact("Hosts", Paint::Plain, &format!("{clients}, {}", hosts(&ranked(servers), "server", "servers")));
        }
        return;
    }
    fact("Load", Paint::Plain, &LoadTotals::from_report(report).sentence(report));
    fact("Servers", Paint::Plain, &busiest(&ranked(servers), LISTED_MAX));
    fact("Clients", Paint::Plain, &busiest(&ranked(clients), LISTED_MAX));
    for (label, names) in [("Users", &report.aggregate.users), ("Shares", &report.aggregate.shares)] {
        if let Some(names) = busiest_names(names) {
            fact(label, Paint::Plain, &names);
        }
    }
    if !report.connections.is_empty() {
        fact("Signing", Paint::Plain, &signing(report));
        let is_encrypted = report.connections.iter().any(|connection| connection.encrypted_frames > 0);
        fact("Encryption", if is_encrypted { Paint::Warning } else { Paint::Plain }, &encryption(report));
    }
    for (i, capture) in report.captures.iter().take(LISTED_MAX).enumerate() {
        let label = match (i, report.captures.len()) {
            (0, 1) => "Capture",
            (0, _) => "Captures",
            _ => "",
        };
        fact(label, Paint::Plain, &describe(capture));
    }
    if report.captures.len() > LISTED_MAX {
        let more = report.captures.len() - LISTED_MAX;
        fact("", Paint::Plain, &format!("and {}", counted(more as u64, "more file", "more files")));
    }
}

/// Formats `required by the server, 98.2% of messages signed`.
fn signing(report: &Report) -> String {
    let connections = report.connections.len() as u64;
    let required = report.connections.iter().filter(|connection| connection.signing_required).count() as u64;
    let (signed, messages) = report.connections.iter().fold((0, 0), |(signed, messages), connection| {
        (signed + connection.signed_messages, messages + connection.messages)
    });
    let negotiated = report.connections.iter().filter(|connection| connection.dialect.is_some()).count() as u64;
    let signing = match required {
        0 if negotiated == 0 => "negotiation not captured".to_owned(),
        0 => "not required by the server".to_owned(),
        n if n == connections => "required by the server".to_owned(),
        n => format!("required on {} of {connections} connections", thousands(n)),
    };
    let share = match signed {
        0 => "no message signed".to_owned(),
        n if n == messages => "every message signed".to_owned(),
        n => format!("{} of messages signed", percent_sign(n, messages)),
    };
    format!("{signing}, {share}")
}

/// Formats `VXLAN on UDP port 4790 (3 of 7 connections)`, one line per sequence of headers.
fn encapsulations(report: &Report) -> Vec<String> {
    let counts = report.encapsulations.iter().map(|traffic| (traffic.headers.to_string(), traffic.connections));
    with_connections(report, &counts.collect::<Vec<_>>())
}

/// Formats `HTTP CONNECT to files:445 (2 of 3 connections)`, one line per proxy protocol and target.
fn proxies(report: &Report) -> Vec<String> {
    let named = report.connections.iter().filter_map(|connection| connection.proxy.as_ref());
    with_connections(report, &weighed(named.map(|proxy| (proxy.to_string(), 1))))
}

/// Formats each text with its number of connections, which is omitted if it is all.
fn with_connections(report: &Report, counts: &[(String, u64)]) -> Vec<String> {
    let all = report.connections.len() as u64;
    let line = |(text, count): &(String, u64)| match *count {
        n if n == all => clean(text),
        n => format!("{} ({} of {})", clean(text), thousands(n), counted(all, "connection", "connections")),
    };
    let more = counts.len().saturating_sub(LISTED_MAX);
    let more = (more > 0).then(|| format!("and {} more", thousands(more as u64)));
    counts.iter().take(LISTED_MAX).map(line).chain(more).collect()
}

/// Formats `12 encrypted frames on 1 of 3 connections`, `12 frames decrypted on 1 of 3 connections`, or `none`.
fn encryption(report: &Report) -> String {
    let encrypted: u64 = report.connections.iter().map(|connection| connection.encrypted_frames).sum();
    let decrypted: u64 = report.connections.iter().map(|connection| connection.decrypted_frames).sum();
    let is_encrypting =
        |connection: &&ConnectionSummary| connection.encrypted_frames > 0 || connection.decrypted_frames > 0;
    let encrypting = report.connections.iter().filter(is_encrypting).count() as u64;
    let frames = match (encrypted, decrypted) {
        (0, 0) => return "none".to_owned(),
        (_, 0) => counted(encrypted, "encrypted frame", "encrypted frames"),
        (0, _) => format!("{} decrypted", counted(decrypted, "frame", "frames")),
        (_, _) => format!("{} decrypted, {} not", counted(decrypted, "frame", "frames"), thousands(encrypted)),
    };
    let connections = counted(report.connections.len() as u64, "connection", "connections");
    format!("{frames} on {} of {connections}", thousands(encrypting))
}

/// Renders the quality of the capture, unless it was alarming enough to be said first.
pub(super) fn quality(page: &mut TextPage, report: &Report) {
    if !is_alarming(report) {
        page.beside(Paint::Plain, "- ", &report.quality_sentence());
    }
}

/// Formats `run.pcap (pcap, gzip), 91,748 packets, from 1997-08-11 09:30:00 UTC`.
fn describe(capture: &CaptureInfo) -> String {
    let compression = capture.compression.as_ref().map_or_else(String::new, |name| format!(", {name}"));
    let start =
        capture.first.and_then(date).map_or_else(String::new, |date| format!(", from {}", unbroken(date + " UTC")));
    let packets = unbroken(counted(capture.packets, "packet", "packets"));
    let name = shorten_path(&clean(&capture.name), NAME_MAX);
    format!("{} ({}{compression}), {packets}{start}", unbroken(name), unbroken(&*capture.format))
}

/// Formats `2 servers (10.0.0.2:445 and 1 more)`.
fn hosts(names: &[impl Display], one: &str, many: &str) -> String {
    format!("{} ({})", counted(names.len() as u64, one, many), unbroken(busiest(names, 1)))
}

fn ranked<T: Hash + Eq + Ord>(names: impl IntoIterator<Item = (T, u64)>) -> Vec<T> {
    weighed(names).into_iter().map(|(name, _)| name).collect()
}

/// Returns the names with the sums of their weights, heaviest first.
fn weighed<T: Hash + Eq + Ord>(names: impl IntoIterator<Item = (T, u64)>) -> Vec<(T, u64)> {
    let mut weights: HashMap<T, u64> = HashMap::new();
    names.into_iter().for_each(|(name, weight)| *weights.entry(name).or_default() += weight);
    let mut order: Vec<(T, u64)> = weights.into_iter().collect();
    order.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    order
}

fn busiest(names: &[impl Display], most: usize) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let listed: Vec<String> = names.iter().take(most).map(ToString::to_string).collect();
    match names.len() - listed.len() {
        0 => listed.join(", "),
        more => format!("{} and {} more", listed.join(", "), thousands(more as u64)),
    }
}

fn busiest_names(names: &Entities<Arc<str>>) -> Option<String> {
    let mut order: Vec<(&str, u64)> = names.entries.iter().map(|(name, entity)| (&**name, entity.count)).collect();
    order.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let mut listed: Vec<String> = Vec::new();
    for (i, (name, count)) in order.iter().take(LISTED_MAX).enumerate() {
        let count = if i == 0 { counted(*count, "command", "commands") } else { thousands(*count) };
        listed.push(unbroken(format!("{} ({count})", shorten(&clean(name), NAME_MAX / 2))));
    }
    let more = order.len().saturating_sub(LISTED_MAX) + usize::from(names.other.is_some());
    if more > 0 {
        listed.push(unbroken(format!("{} more", thousands(more as u64))));
    }
    (!listed.is_empty()).then(|| listed.join(", "))
}

/// Renders the packet counts of Swartz (1997), with commands and replies side by side.
pub(super) fn packets(page: &mut TextPage, report: &Report) {
    let counts = PacketCounts::from_report(report);
    let mut lines = Vec::new();
    let mut add = |indent: usize, name: &str, count: u64, note: &str| {
        lines.push(Row::new(name, (count, true, note.to_owned())).indented(2 + indent));
    };
    add(0, "TCP packets of SMB connections", counts.smb_flows, "");
    add(2, "acknowledgements only", counts.acks, "");
    add(2, "unacknowledged segments", counts.unacknowledged, "");
    add(2, "continuing a message", counts.continuations, "");
    add(2, "retransmitted", counts.retransmitted, "");
    if counts.retransmitted > 0 {
        add(4, "lost by the network", counts.retransmitted - counts.spurious, "");
        add(4, "in vain, it was received", counts.spurious, "");
    }
    if counts.seen_once > 0 {
        add(2, "sent again, first not seen", counts.seen_once, "lost by the network before the capture");
    }
    let dropped = if counts.dropped > 0 { "or more" } else { "" };
    let plain = |name: &str, count: u64, note: &str| Row::new(name, (count, false, note.to_owned())).indented(2);
    let first = plain("in the capture", counts.all, "");
    let last = plain("dropped by the capture", counts.dropped, dropped);
    Table::new()
        .column(ColumnHead::new("packets", "", Unit::Count, "").at_least(12), |(count, ..): &(u64, bool, String)| {
            *count
        })
        .column(ColumnHead::new("share", "", Unit::Percent, "").at_least(7).set_off(), |(count, has_share, _)| {
            has_share.then(|| percent_of(*count, counts.all))
        })
        .column(ColumnHead::new("note", "", Unit::Text, "").set_off(), |(.., note)| note.clone())
        .section("Packets", std::iter::once(first).chain(lines).chain([last]))
        .render(page);
    packets_by_direction(page, &counts);
    if let (Some(first), Some(last)) = (report.first, report.last) {
        let elapsed = last - first;
        page.blank();
        page.line(Paint::Plain, &format!("  Elapsed time {} ({} seconds)", clock(elapsed), seconds(elapsed, 5)));
    }
}

fn packets_by_direction(page: &mut TextPage, counts: &PacketCounts) {
    let (to, from) = (&counts.commands, &counts.replies);
    type Of = fn(&DirectionCounts) -> u64;
    let line = |name: &str, of: Of| Row::new(name, of).indented(2);
    let lines = [
        line("packets", |counts| counts.packets),
        line("SMB", |counts| counts.message_packets),
        line("continue", |counts| counts.continuation_packets),
        line("TCP ack", |counts| counts.pure_acks),
        line("TCP retry", |counts| counts.retransmitted),
        line("TCP open, close", control),
    ];
    let share = |counts: &DirectionCounts, of: Of| percent_of(of(counts), counts.packets);
    let head = |key, title, unit| ColumnHead::new(key, title, unit, "");
    let shares = |key| head(key, "", Unit::Percent).at_least(7).set_off();
    Table::new()
        .column(head("commands", "commands", Unit::Count).at_least(15), |of: &Of| of(to))
        .column(shares("of_commands"), |of| share(to, *of))
        .column(head("replies", "replies", Unit::Count).at_least(13).set_off(), |of| of(from))
        .column(shares("of_replies"), |of| share(from, *of))
        .section("", lines)
        .render(page);
    if counts.asynchronous > 0 {
        let count = thousands(counts.asynchronous);
        let share = percent_sign(counts.asynchronous, to.continuation_packets);
        let text = format!("  {count} ({share}) of the commands' continue are the async portion of Write_Raw");
        page.line(Paint::Plain, &text);
    }
}

const BRIEF_MAX: usize = 2;

pub(super) fn headline(page: &mut TextPage, answer: &Answer) {
    let paint = match answer.culprit {
        Culprit::Nothing => Paint::Heading,
        _ => Paint::Alarm,
    };
    page.paragraph(paint, &clean(&answer.headline));
    if let Some(cause) = answer.stated() {
        page.paragraph(Paint::Plain, first_sentence(&cause.advice));
    }
}

pub(super) fn causes_in_brief(page: &mut TextPage, answer: &Answer) {
    let causes = answer.causes.iter().skip(usize::from(answer.stated().is_some()));
    let notes = answer.notes.iter().filter(|note| !is_told_elsewhere(note));
    let mut others: Vec<String> = causes.map(|cause| format!("Also: {}", in_short(cause))).collect();
    others.extend(notes.map(|note| format!("Note: {}", clean(&note.sentence))));
    others.iter().take(BRIEF_MAX).for_each(|text| page.beside(Paint::Plain, "- ", text));
    let more = others.len().saturating_sub(BRIEF_MAX);
    if more > 0 {
        page.line(Paint::Faint, &format!("  {more} more with --full"));
    }
}

/// SMB1 and encryption have lines of their own.
fn is_told_elsewhere(note: &Cause) -> bool {
    matches!(note.id.as_str(), "smb1-in-use" | "encrypted")
}

/// Formats `Lookups of files that don't exist: 10.0.0.9 lost 312 ms (2% of active time).`
fn in_short(cause: &Cause) -> String {
    let lost = cause.best();
    let who = match (cause.subject.clients, &cause.subject.client) {
        (clients @ 2.., _) => format!("{clients} clients"),
        (_, Some(client)) => client.clone(),
        _ => return format!("{}.", cause.title),
    };
    if lost.0 == 0 {
        return format!("{}: {who}.", cause.title);
    }
    let share = prose_percent(lost.0.unsigned_abs(), cause.active_ns.0.unsigned_abs().max(lost.0.unsigned_abs()));
    format!("{}: {who} lost {} ({share} of active time).", cause.title, unbroken(span(lost)))
}

pub(super) fn causes_in_full(page: &mut TextPage, report: &Report) {
    let answer = &report.explanation.answer;
    for (heading, causes) in [("Causes", &answer.causes), ("Notes", &answer.notes)] {
        if !causes.is_empty() {
            page.heading(heading);
            causes.iter().enumerate().for_each(|(at, cause)| one_in_full(page, report, at + 1, cause));
        }
    }
}

fn one_in_full(page: &mut TextPage, report: &Report, number: usize, cause: &Cause) {
    let begin = format!("{number:>2}  ");
    page.beside(Paint::Heading, &begin, &format!("{} [{}]", cause.title, cause.id));
    let mut more = |label: &str, text: &str| page.fact(Paint::Plain, label, text);
    more("What", &clean(&cause.in_full()));
    if !cause.also.is_empty() {
        more("Explains", &cause.also.join("; "));
    }
    if !cause.subject.users.is_empty() {
        let users: Vec<String> = cause.subject.users.iter().map(|user| clean(user)).collect();
        more("Users", &users.join(", "));
    }
    more("Advice", &cause.advice);
    more("Source", &cause.source);
    let packets: Vec<String> = cause
        .evidence
        .iter()
        .map(|evidence| {
            let capture = report.captures.get(usize::from(evidence.capture)).filter(|_| report.captures.len() > 1);
            let capture = capture.map_or_else(String::new, |capture| format!(" of {}", clean(&capture.name)));
            format!("packet {}{capture}", evidence.packet)
        })
        .collect();
    let from = if packets.is_empty() { String::new() } else { format!("from {} on; ", packets.join(", ")) };
    more("See", &format!("{from}Wireshark filter: {}", clean(&cause.wireshark)));
    if cause.confidence != Confidence::High {
        more("Confidence", cause.confidence.words());
    }
}

fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}
