//! Answer and causes: the headline with advice in brief reports, the full evidence in full ones.

use super::page::{Paint, TextPage};
use crate::Report;
use crate::format::{clean, prose_percent, span, unbroken};
use smbscope_diagnose::{Answer, Cause, Confidence, Culprit};

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

pub(super) fn in_brief(page: &mut TextPage, answer: &Answer) {
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

pub(super) fn in_full(page: &mut TextPage, report: &Report) {
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
