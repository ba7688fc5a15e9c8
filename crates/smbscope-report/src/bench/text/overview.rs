//! The top of the report: what was measured, what came out, and what weakens it.

use super::TextOptions;
use crate::bench::warnings::far_below_its_rate;
use crate::bench::{Document, Run, Schedule, Target};
use crate::format::{bytes, clean, counted, date, shorten, span, thousands, unbroken, wrap};
use crate::text::style::Paint;
use smbscope_model::Nanos;

/// Columns in front of a fact.
const FACT_INDENT: usize = 13;

pub(super) fn render(out: &mut String, document: &Document, options: &TextOptions) {
    let title = match &document.title {
        Some(title) => format!("SMB load: {}", clean(title)),
        None => format!("SMB load on {}", clean(&document.target.host)),
    };
    Paint::Heading.line(out, &shorten(&title, options.width), options.color);
    if let Some(behind) = far_below_its_rate(&document.runs) {
        paragraph(out, &behind.replace(" %", &unbroken(" %")), Paint::Alarm, options);
    }
    paragraph(out, &summary(document), Paint::Plain, options);
    if let Some(capacity) = capacity(document) {
        paragraph(out, &capacity, Paint::Heading, options);
    }
    if !document.warnings.is_empty() {
        out.push('\n');
        Paint::Heading.line(out, "Warnings", options.color);
        for warning in &document.warnings {
            let text = clean(warning).replace(" %", &unbroken(" %"));
            for (at, line) in wrap(&text, options.width - 2).iter().enumerate() {
                let mark = if at == 0 { "- " } else { "  " };
                Paint::Warning.line(out, &format!("{mark}{line}"), options.color);
            }
        }
    }
    out.push('\n');
    facts(out, document, options);
}

fn paragraph(out: &mut String, text: &str, paint: Paint, options: &TextOptions) {
    wrap(text, options.width).iter().for_each(|line| paint.line(out, line, options.color));
}

/// What came out, in a few sentences.
fn summary(document: &Document) -> String {
    let runs = &document.runs;
    let fastest = runs.iter().reduce(|a, b| if b.operations_per_second > a.operations_per_second { b } else { a });
    let Some(fastest) = fastest else { return "Nothing was measured.".to_owned() };
    let rate = unbroken(format!("{}/s", thousands(fastest.operations_per_second.round() as u64)));
    let users = counted(fastest.users.into(), "user", "users");
    let mut text = match runs.len() {
        1 => format!("{} commands at {users}: {rate}.", thousands(fastest.operations)),
        many => {
            let most = runs.iter().map(|run| run.users).max().unwrap_or_default();
            let most = counted(most.into(), "user", "users");
            format!("{} load points up to {most}: at most {rate}, at {users}.", thousands(many as u64))
        }
    };
    if let Some(p50) = fastest.total.client.p50 {
        text += &format!(" Half of the commands were answered within {} there", unbroken(p50));
        let p95 = fastest.total.client.p95.map(|p95| format!(", {} within {}", unbroken("95 %"), unbroken(p95)));
        text += &format!("{}.", p95.unwrap_or_default());
    }
    if let (Some(overall), true) = (document.overall_response_time_ns, runs.len() > 1) {
        text += &format!(" Overall response time {}.", unbroken(overall));
    }
    text
}

/// The answer to the criterion.
fn capacity(document: &Document) -> Option<String> {
    let capacity = document.capacity.as_ref()?;
    let criterion = clean(&capacity.criterion);
    let most = capacity.tried.iter().map(|tried| tried.users).chain(document.runs.iter().map(|run| run.users)).max();
    Some(match capacity.users {
        None => {
            let fewest = capacity.tried.iter().map(|tried| tried.users).min();
            let at = fewest
                .map_or_else(String::new, |users| format!(", not even at {}", counted(users.into(), "user", "users")));
            format!("Capacity: {criterion} holds at no load that was tried{at}.")
        }
        Some(users) if most <= Some(users) => {
            format!("Capacity: at least {}; {criterion} holds at every load.", counted(users.into(), "user", "users"))
        }
        Some(users) => format!("Capacity: {}, the most for which {criterion}.", counted(users.into(), "user", "users")),
    })
}

fn facts(out: &mut String, document: &Document, options: &TextOptions) {
    let mut fact = |label: &str, text: &str| {
        for (i, line) in wrap(&clean(text), options.width.saturating_sub(FACT_INDENT)).iter().enumerate() {
            let label = if i == 0 { label } else { "" };
            Paint::Plain.line(out, &format!("  {label:<width$}{line}", width = FACT_INDENT - 2), options.color);
        }
    };
    let Document { target, workload, settings, runs, .. } = document;
    fact("Target", &where_to(target));
    fact("Protocol", &protocol(target));
    let source = workload.source.as_ref().map_or("built in", |source| source);
    let mut parts = vec![format!("{} ({source})", workload.name)];
    parts.extend(workload.file_set.map(|set| format!("{}, {}", counted(set.files, "file", "files"), bytes(set.bytes))));
    parts.extend(workload.seed.map(|seed| format!("seed {seed}")));
    fact("Workload", &parts.join("; "));
    let schedule = match settings.schedule {
        Schedule::Closed { think_ns: Nanos(0) } => "closed loop".to_owned(),
        Schedule::Closed { think_ns } => format!("closed loop, {} between operations", unbroken(think_ns)),
        Schedule::Open { rate, random } => {
            let random = if random { ", at random" } else { "" };
            format!("open loop, {} operations/s of all users together{random}", number(rate))
        }
    };
    let warmup = match settings.warmup_ns {
        Nanos(0) => "without warm-up".to_owned(),
        length => format!("after {} of warm-up", unbroken(span(length))),
    };
    let mut load = format!("{schedule}; {} at each load point {warmup}", unbroken(span(settings.duration_ns)));
    if settings.sessions_per_user > 1 {
        load += &format!("; {} sessions a user", settings.sessions_per_user);
    }
    if settings.connections_per_session > 1 {
        load += &format!("; {} connections a session", settings.connections_per_session);
    }
    if settings.busy_poll {
        load += "; busy polling";
    }
    if let Some(rate) = settings.connects_per_second {
        load += &format!("; {} connects/s", number(rate));
    }
    fact("Load", &format!("{load}; {}", counted(settings.threads.into(), "thread", "threads")));
    if runs.iter().any(Run::has_wire) {
        fact("Times", "inside the client, and on the wire beside them");
    }
    for (name, value) in &document.environment {
        fact(&capital(name), value);
    }
    if let Some(date) = date(document.started_ns) {
        fact("Started", &format!("{date} UTC with smbscope {}", document.generator.version));
    }
}

fn where_to(target: &Target) -> String {
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    let mut text = format!("{host}:{}, share {}", target.port, target.share);
    if let Some(directory) = &target.directory {
        text += &format!(", directory {directory}");
    }
    if let Some(user) = &target.user {
        text += &format!(", as {user}");
    }
    text
}

fn protocol(target: &Target) -> String {
    let dialect = match &target.dialect {
        Some(dialect) if dialect.starts_with(|c: char| c.is_ascii_digit()) => format!("SMB {dialect}"),
        Some(dialect) => format!("SMB1 ({dialect})"),
        None => "not negotiated".to_owned(),
    };
    let with = |asked: &str, found: &Option<String>| match found {
        Some(found) => format!("{asked} ({found})"),
        // Where the server wants it, and this one does not.
        None if asked == "on" && target.dialect.is_some() => "on (not used)".to_owned(),
        None => asked.to_owned(),
    };
    let signing = with(&target.signing, &target.signing_algorithm);
    format!("{dialect}, signing {signing}, encryption {}", with(&target.encryption, &target.cipher))
}

/// A rate without decimals that say nothing.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { thousands(value as u64) } else { format!("{value:.1}") }
}

/// `file_server` as `File server`.
fn capital(text: &str) -> String {
    let text = text.replace('_', " ");
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
}
