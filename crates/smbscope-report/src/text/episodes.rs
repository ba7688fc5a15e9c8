//! Table of episodes in the full report.

use super::page::TextPage;
use super::table::{TextColumn, TextTable, TextTableLine};
use crate::Report;
use crate::episodes::label;
use crate::format::{bytes, counted, span, thousands, time_of_day};
use smbscope_diagnose::Episode;

const LISTED_MAX: usize = 30;

pub(super) fn render(page: &mut TextPage, report: &Report) {
    if report.explanation.episodes.is_empty() {
        return;
    }
    let mut chosen: Vec<(usize, &Episode)> = report.explanation.episodes.iter().enumerate().collect();
    chosen.sort_by_key(|(_, episode)| std::cmp::Reverse(episode.waited));
    let left = chosen.len().saturating_sub(LISTED_MAX);
    chosen.truncate(LISTED_MAX);
    chosen.sort_by_key(|(at, _)| *at);
    let columns = TextColumn::list(&[
        ("Begin", 8),
        ("Duration", 8),
        ("Total wait", 8),
        ("Commands", 8),
        ("Opens", 6),
        ("Files", 6),
        ("Read", 7),
        ("Written", 7),
    ]);
    let lines = chosen.iter().map(|(at, episode)| {
        let cells = vec![
            time_of_day(episode.start, 0),
            span(episode.duration()),
            span(episode.waited),
            thousands(episode.commands),
            thousands(episode.opens),
            thousands(episode.files),
            bytes(episode.bytes_read),
            bytes(episode.bytes_written),
        ];
        TextTableLine::new(format!("{:>3}  {}, {}", at + 1, episode.client, label(episode)), cells)
    });
    TextTable::new(columns).names(30..=60).section("Episodes", lines).render(page);
    let more = match left {
        0 => String::new(),
        n => format!(" {} with a shorter wait are in JSON.", counted(n as u64, "episode", "episodes")),
    };
    page.note(
        &format!(
            "An episode is work of one client without a pause of 2 s. --episode N shows one alone; Files are different \
             paths, an estimate from 64 on.{more}"
        ),
        &[],
    );
}
