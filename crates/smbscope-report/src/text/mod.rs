//! Terminal report. In brief, one screen: the answer, groups and commands, time by phase, and coverage. In full, also
//! the other tables of Swartz (1997), appendix A, in readable units.

mod commands;
mod overview;
mod protocol;
pub(crate) mod slices;
mod waits;

pub(crate) use overview::filter_note;

use crate::format::{clean, thousands, visible_percent};
use crate::json::listings::SliceListing;
use crate::page::{Paint, TextPage};
use crate::warnings::{self, Warning};
use crate::{Answer, Report};

pub(crate) const LINES: usize = 40;
/// Lines of a terminal of default size, on which the answer ends with its suggested commands.
const FIRST_SCREEN: usize = 24;
const COMMANDS_MAX: usize = 10;
/// Commands listed in a brief report even if it gets longer than a screen.
pub(crate) const COMMANDS_MIN: usize = 5;
const EVIDENCE_MIN: usize = 3;
/// Minimum lines of evidence for captures at several points, which are made for it.
const EVIDENCE_OF_SIDES: usize = 7;
const WARNINGS_MAX: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportTextOptions {
    /// Width of the terminal in columns, clamped to 60–160. Lines may be longer below 80.
    pub width: usize,
    pub color: bool,
    pub top: usize,
    pub full: bool,
}

impl Default for ReportTextOptions {
    fn default() -> ReportTextOptions {
        ReportTextOptions { width: 100, color: false, top: 20, full: false }
    }
}

/// Formats the report: one screen plus the requested tables, or in full.
pub fn render(report: &Report, options: &ReportTextOptions) -> String {
    render_on(TextPage::new(options.width, options.color), report, options)
}

/// Formats the report in Markdown, for a ticket or a pull request.
pub fn markdown(report: &Report, options: &ReportTextOptions) -> String {
    render_on(TextPage::markdown(), report, options)
}

fn render_on(mut page: TextPage, report: &Report, options: &ReportTextOptions) -> String {
    let above = above_commands(report, options, page.like());
    let below = below_commands(report, options, page.like());
    stated(report).into_iter().for_each(|answer| overview::headline(&mut page, answer));
    overview::first_of_all(&mut page, report);
    if options.full {
        write_answer(&mut page, report, usize::MAX);
        overview::causes_in_full(&mut page, report);
        page.append(above);
        commands::render(&mut page, report, None);
        page.append(below);
        return page.into_text();
    }
    let mut shortest = page.like();
    write_answer(&mut shortest, report, 0);
    let others = page.lines() + shortest.lines() + above.lines() + below.lines();
    let with_commands = |most| {
        let mut commands = page.like();
        commands::render(&mut commands, report, Some(most));
        commands
    };
    let least = if report.sides.is_some() { EVIDENCE_OF_SIDES } else { EVIDENCE_MIN };
    let fits = |commands: &TextPage| others + commands.lines() + least <= LINES;
    let commands = (COMMANDS_MIN + 1..=COMMANDS_MAX).rev().map(with_commands).find(fits);
    let commands = commands.unwrap_or_else(|| with_commands(COMMANDS_MIN));
    let on_first_screen = FIRST_SCREEN.saturating_sub(page.lines() + shortest.lines());
    let evidence = LINES.saturating_sub(others + commands.lines()).min(on_first_screen).max(least);
    write_answer(&mut page, report, evidence);
    for part in [above, commands, below] {
        page.append(part);
    }
    page.into_text()
}

fn above_commands(report: &Report, options: &ReportTextOptions, mut page: TextPage) -> TextPage {
    page.blank();
    overview::title(&mut page, report, !options.full);
    overview::facts(&mut page, report, !options.full);
    if report.aggregate.count > 0 {
        let slices = report.aggregate.slices.as_ref().map(SliceListing::new);
        slices.iter().for_each(|slices| slices::render(&mut page, slices, options.top));
        commands::timeline(&mut page, report);
    }
    page
}

fn below_commands(report: &Report, options: &ReportTextOptions, mut page: TextPage) -> TextPage {
    waits::render_paths(&mut page, report);
    waits::render(&mut page, report, !options.full);
    if options.full {
        waits::episodes(&mut page, report);
        if report.aggregate.count > 0 {
            commands::errors(&mut page, report);
            commands::distribution(&mut page, report);
        }
        protocol::caching(&mut page, report);
        protocol::negotiation(&mut page, report);
        overview::packets(&mut page, report);
    }
    warnings(&mut page, report, !options.full);
    page
}

fn stated(report: &Report) -> Option<&Answer> {
    Some(&report.explanation.answer).filter(|answer| !answer.headline.is_empty())
}

/// Renders the evidence of the answer in at most `room` lines, the quality, and the suggested commands.
fn write_answer(page: &mut TextPage, report: &Report, room: usize) {
    let Some(answer) = stated(report) else { return overview::quality(page, report) };
    let most = page.lines().saturating_add(room);
    let ruled_out = (!answer.ruled_out.is_empty()).then(|| format!("Not the cause. {}", answer.ruled_out.join(" ")));
    let sentences = answer.caveats.iter().chain(&answer.evidence).cloned().chain(ruled_out);
    for sentence in sentences {
        let mut more = page.like();
        more.beside(Paint::Plain, "- ", &clean(&sentence));
        if page.lines() + more.lines() > most {
            break;
        }
        page.append(more);
    }
    if room < usize::MAX {
        overview::causes_in_brief(page, answer);
    }
    overview::quality(page, report);
    page.what_next(&answer.next);
}

/// Renders the warnings. The brief report lists the most serious ones on one or two lines.
fn warnings(page: &mut TextPage, report: &Report, is_brief: bool) {
    let warnings = warnings::of_report(report);
    if warnings.is_empty() {
        return;
    }
    let text = |warning: &Warning| {
        let share =
            warning.share.map_or_else(String::new, |(whole, of)| format!(" ({} of {of})", share_of(warning, whole)));
        format!("{}{share}", clean(&warning.text))
    };
    if is_brief {
        // Warnings with a sentence about this capture are more specific than counters.
        let mut warnings: Vec<Warning> = warnings;
        warnings.sort_by_key(|warning| warning.count.is_some());
        let listed = warnings.iter().take(WARNINGS_MAX).map(|warning| {
            let count = warning.count.map_or_else(String::new, |count| thousands(count) + " ");
            count + &text(warning)
        });
        let more = warnings.len().saturating_sub(WARNINGS_MAX);
        let more = (more > 0).then(|| format!("{more} more with --full"));
        page.blank();
        page.fact(Paint::Warning, "Warnings", &listed.chain(more).collect::<Vec<_>>().join("; "));
        return;
    }
    page.heading("Warnings");
    warnings.iter().for_each(|warning| page.counted(Paint::Warning, warning.count, &text(warning)));
}

fn share_of(warning: &Warning, whole: u64) -> String {
    percent_sign(warning.count.unwrap_or(0), whole)
}

fn percent_sign(part: u64, whole: u64) -> String {
    format!("{}%", visible_percent(part, whole))
}
