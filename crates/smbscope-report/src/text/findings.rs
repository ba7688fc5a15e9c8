//! What was found: the cause that took most of a client's time with what to do about it, and further ones; in full all of
//! them with what supports them.

use super::page::Page;
use super::style::Paint;
use crate::Report;
use crate::format::{clean, prose_percent, span, unbroken};
use smbscope_diagnose::{Confidence, Finding};

/// Findings of a brief report.
const BRIEF_MAX: usize = 3;

/// The findings, if there are any; in brief those that cost time. Tells whether something was written.
pub(super) fn render(page: &mut Page, report: &Report, is_brief: bool) -> bool {
    let findings = &report.explanation.findings;
    let told: Vec<&Finding> = findings.iter().filter(|finding| !is_brief || finding.lost_ns.is_some()).collect();
    if told.is_empty() {
        return false;
    }
    page.heading("Findings");
    if !is_brief {
        told.iter().enumerate().for_each(|(at, finding)| in_full(page, report, at + 1, finding));
        return true;
    }
    for (at, finding) in told.iter().take(BRIEF_MAX).enumerate() {
        let begin = format!("{}  ", at + 1);
        if at == 0 {
            page.beside(Paint::Alarm, &begin, &clean(&finding.sentence));
            page.beside(Paint::Plain, "   ", first_sentence(&finding.advice));
        } else {
            page.beside(Paint::Plain, &begin, &in_short(finding));
        }
    }
    let more = findings.len().saturating_sub(told.len().min(BRIEF_MAX));
    if more > 0 {
        page.line(Paint::Faint, &format!("   {more} more with --full"));
    }
    true
}

/// `Files looked for where they are not: 10.0.0.9, 312 ms (2%)`
fn in_short(finding: &Finding) -> String {
    let client = finding.whose.client.as_ref().map_or_else(String::new, |client| format!(": {client}"));
    let cost = finding.lost_ns.filter(|lost| lost.0 > 0).map_or_else(String::new, |lost| {
        let share = prose_percent(lost.0.unsigned_abs(), finding.active_ns.0.unsigned_abs().max(lost.0.unsigned_abs()));
        format!(", {} ({share} of its active time)", unbroken(span(lost)))
    });
    format!("{}{client}{cost}", finding.title)
}

fn in_full(page: &mut Page, report: &Report, number: usize, finding: &Finding) {
    let begin = format!("{number:>2}  ");
    page.beside(Paint::Heading, &begin, &format!("{} [{}]", finding.title, finding.id));
    let mut more = |label: &str, text: &str| page.fact(Paint::Plain, label, text);
    more("What", &clean(&finding.sentence));
    if !finding.whose.users.is_empty() {
        let users: Vec<String> = finding.whose.users.iter().map(|user| clean(user)).collect();
        more("Users", &users.join(", "));
    }
    more("Advice", &finding.advice);
    more("Source", &finding.source);
    if !finding.ruled_out.is_empty() {
        more("Ruled out", &finding.ruled_out.join(" "));
    }
    let packets: Vec<String> = finding
        .evidence
        .iter()
        .map(|evidence| {
            let capture = report.captures.get(usize::from(evidence.capture)).filter(|_| report.captures.len() > 1);
            let capture = capture.map_or_else(String::new, |capture| format!(" of {}", clean(&capture.name)));
            format!("packet {}{capture}", evidence.packet)
        })
        .collect();
    let from = if packets.is_empty() { String::new() } else { format!("from {} on; ", packets.join(", ")) };
    more("See", &format!("{from}Wireshark filter: {}", clean(&finding.wireshark)));
    if finding.confidence != Confidence::High {
        let sure = match finding.confidence {
            Confidence::Medium => "medium: the usual explanation, there are others",
            _ => "low: one of several explanations",
        };
        more("Confidence", sure);
    }
}

/// What stands before the first full stop that ends a sentence.
fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}
