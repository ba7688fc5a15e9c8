//! Terminal report of program launches: duration of each, and its wait for the server.

use super::{RampDetailLevel, point};
use crate::bench::{BenchDocument, JobEntry, Launch};
use crate::format::{bytes, clean, or_dash, percent, span, thousands};
use crate::text::page::TextPage;
use crate::text::style::Paint;
use crate::text::table::{TextColumn, TextTable, TextTableLine};
use smbscope_diagnose::next::quoted;

const LISTED: usize = 10;

pub(super) fn render(page: &mut TextPage, document: &BenchDocument, launch: &Launch, detail: RampDetailLevel) {
    let is_brief = detail == RampDetailLevel::Brief;
    page.title(&clean(&document.heading()), is_brief);
    page.paragraph(Paint::Heading, &clean(&document.answer.headline));
    document.warnings.iter().for_each(|warning| page.beside(Paint::Warning, "- ", &clean(warning)));
    page.what_next(&document.answer.next);
    page.blank();
    facts(page, document, launch);
    launches(page, document, if is_brief { LISTED } else { usize::MAX });
    let Some(run) = document.runs.first().filter(|run| run.operations > 0) else { return };
    match is_brief {
        true => point::brief(page, document, run),
        false => point::render(page, document, run),
    }
}

fn facts(page: &mut TextPage, document: &BenchDocument, launch: &Launch) {
    let mut fact = |label: &str, text: &str| page.fact(Paint::Plain, label, &clean(text));
    fact("Command", &launch.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
    fact("Until", &launch.until);
    let mounted = launch.mounted_by.as_ref().map_or_else(String::new, |program| format!(", mounted by {program}"));
    fact("Files on", &format!("{}{mounted}", super::overview::where_to(&document.target)));
    if !document.target.is_local() {
        fact("Protocol", &super::overview::protocol(&document.target));
    }
    fact(
        "Caches",
        match launch.caches {
            crate::bench::Caches::Warm => "warm: as the launches before left them",
            crate::bench::Caches::Cold => {
                "cold: file caches of this machine emptied before each launch, and the share mounted anew"
            }
        },
    );
}

fn launches(page: &mut TextPage, document: &BenchDocument, listed: usize) {
    let Some(jobs) = document.runs.first().and_then(|run| run.jobs.as_ref()) else { return };
    if jobs.list.is_empty() {
        return;
    }
    let line = |(at, job): (usize, &JobEntry)| {
        let share = |waited: smbscope_model::Nanos| {
            format!("{}%", percent(waited.0.unsigned_abs(), job.elapsed_ns.0.unsigned_abs()))
        };
        let seen = job.waited_ns.filter(|_| !document.target.is_local());
        let known = |text: String| if seen.is_some() { text } else { String::new() };
        let cells = vec![
            span(job.elapsed_ns),
            known(or_dash(seen)),
            known(seen.map_or_else(String::new, share)),
            known(thousands(job.files)),
            known(bytes(job.bytes_read)),
            known(bytes(job.bytes_written)),
        ];
        TextTableLine::new((at + 1).to_string(), cells)
    };
    let lines = jobs.list.iter().take(listed).enumerate().map(line);
    let columns =
        TextColumn::list(&[("Took", 0), ("Wait", 0), ("Wait share", 0), ("Opens", 1), ("Read", 1), ("Written", 2)]);
    let left_out = TextTable::new(columns).section("Launches", lines).render(page);
    let mut text =
        "Took: from the start of the program until it was ready. Wait: the part of it with a command outstanding \
                    at the server."
            .to_owned();
    if jobs.list.len() > listed {
        text += &format!(" {} more with --full.", thousands((jobs.list.len() - listed) as u64));
    }
    page.note(&text, &left_out);
}
