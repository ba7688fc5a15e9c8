//! A page of text. Everything written is cleaned, coloured, and wrapped to the width of the page.

use super::style::Paint;
use crate::format::{clean, shorten, thousands, wrap};
use smbscope_diagnose::next::SuggestedCommand;
use std::borrow::Cow;
use std::ops::RangeInclusive;

const WIDTHS: RangeInclusive<usize> = 60..=160;

/// Counts listed; the rest is summed up.
const LISTED_MAX: usize = 20;

#[derive(Debug)]
pub(crate) struct TextPage {
    text: String,
    width: usize,
    color: bool,
}

impl TextPage {
    /// Creates an empty page. The width is clamped to 60–160 columns.
    pub(crate) fn new(width: usize, color: bool) -> TextPage {
        TextPage { text: String::new(), width: width.clamp(*WIDTHS.start(), *WIDTHS.end()), color }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn like(&self) -> TextPage {
        TextPage { text: String::new(), ..*self }
    }

    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    pub(crate) fn append(&mut self, other: TextPage) {
        self.text.push_str(&other.text);
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Writes the title. The brief report mentions --full.
    pub(crate) fn title(&mut self, text: &str, is_brief: bool) {
        let more = if is_brief { " (--full adds all tables)" } else { "" };
        let room = self.width.saturating_sub(more.len());
        self.line(Paint::Heading, &(shorten(text, room) + more));
    }

    pub(crate) fn line(&mut self, paint: Paint, text: &str) {
        paint.line(&mut self.text, text, self.color);
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.blank();
        self.line(Paint::Heading, text);
    }

    pub(crate) fn paragraph(&mut self, paint: Paint, text: &str) {
        wrap(text, self.width).iter().for_each(|line| self.line(paint, line));
    }

    /// Writes a note about a table, and names the columns that were left out for lack of room.
    pub(crate) fn note(&mut self, text: &str, left_out: &[Cow<'_, str>]) {
        let mut text = text.to_owned();
        if !left_out.is_empty() {
            let mut names = left_out.to_vec();
            names.dedup();
            text += &format!(" A wider page (--width) also shows {}.", names.join(", "));
        }
        self.paragraph(Paint::Faint, &text);
    }

    /// Writes suggested commands, each on one line so that it can be pasted.
    pub(crate) fn what_next(&mut self, steps: &[SuggestedCommand]) {
        if !steps.is_empty() {
            self.line(Paint::Heading, "What next");
        }
        steps.iter().for_each(|next| self.line(Paint::Plain, &format!("  {:<9} {}", next.label, clean(&next.command))));
    }

    /// Writes a text, wrapped with a hanging indent as wide as `begin`.
    pub(crate) fn beside(&mut self, paint: Paint, begin: &str, text: &str) {
        let indent = begin.chars().count();
        for (at, line) in wrap(text, self.width.saturating_sub(indent)).iter().enumerate() {
            let begin = if at == 0 { begin } else { "" };
            self.line(paint, &format!("{begin:<indent$}{line}"));
        }
    }

    /// Writes counts with their descriptions, largest first. Nothing is written if there are none.
    pub(crate) fn counts(&mut self, heading: &str, mut counts: Vec<(u64, String)>) {
        if counts.is_empty() {
            return;
        }
        counts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        self.heading(heading);
        if counts.len() > LISTED_MAX {
            let rest = counts.split_off(LISTED_MAX);
            let count = rest.iter().map(|(count, _)| count).sum();
            counts.push((count, format!("of {} further kinds", thousands(rest.len() as u64))));
        }
        for (count, text) in counts {
            self.counted(Paint::Plain, Some(count), &text);
        }
    }

    pub(crate) fn counted(&mut self, paint: Paint, count: Option<u64>, text: &str) {
        self.beside(paint, &format!("{:>12}  ", count.map_or_else(String::new, thousands)), text);
    }

    /// Writes a name and its text. Only the text is coloured.
    pub(crate) fn fact(&mut self, paint: Paint, name: &str, text: &str) {
        const NAME: usize = 11;
        for (at, line) in wrap(text, self.width.saturating_sub(NAME + 2)).iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            Paint::Plain.text(&mut self.text, &format!("  {name:<NAME$}"), false);
            self.line(paint, line);
        }
    }
}
