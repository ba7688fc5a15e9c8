//! A page of text while it is written: what goes out is cleaned, painted and no wider than the page.

use super::style::Paint;
use crate::format::{clean, shorten, thousands, wrap};
use smbscope_diagnose::next::SuggestedCommand;
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Narrowest and widest page.
const WIDTHS: RangeInclusive<usize> = 60..=160;

/// Counts listed one by one; the rest is added up.
const LISTED_MAX: usize = 20;

/// The text so far, and how more of it is to look.
#[derive(Debug)]
pub(crate) struct TextPage {
    text: String,
    width: usize,
    color: bool,
}

impl TextPage {
    /// An empty page; one that is too narrow or too wide is made one that reads.
    pub(crate) fn new(width: usize, color: bool) -> TextPage {
        TextPage { text: String::new(), width: width.clamp(*WIDTHS.start(), *WIDTHS.end()), color }
    }

    /// Its columns.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// An empty page of the same kind.
    pub(crate) fn like(&self) -> TextPage {
        TextPage { text: String::new(), ..*self }
    }

    /// Its lines.
    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// Adds what another page holds.
    pub(crate) fn append(&mut self, other: TextPage) {
        self.text.push_str(&other.text);
    }

    /// What was written.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// An empty line.
    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// What the page is about; in brief how to see more of it.
    pub(crate) fn title(&mut self, text: &str, is_brief: bool) {
        let more = if is_brief { " (--full adds all tables)" } else { "" };
        let room = self.width.saturating_sub(more.len());
        self.line(Paint::Heading, &(shorten(text, room) + more));
    }

    /// A line.
    pub(crate) fn line(&mut self, paint: Paint, text: &str) {
        paint.line(&mut self.text, text, self.color);
    }

    /// An empty line, and a heading.
    pub(crate) fn heading(&mut self, text: &str) {
        self.blank();
        self.line(Paint::Heading, text);
    }

    /// A text in as many lines as it needs.
    pub(crate) fn paragraph(&mut self, paint: Paint, text: &str) {
        wrap(text, self.width).iter().for_each(|line| self.line(paint, line));
    }

    /// What belongs to a table above, and which of its columns found no room.
    pub(crate) fn note(&mut self, text: &str, left_out: &[Cow<'_, str>]) {
        let mut text = text.to_owned();
        if !left_out.is_empty() {
            let mut names = left_out.to_vec();
            names.dedup();
            text += &format!(" A wider page (--width) also shows {}.", names.join(", "));
        }
        self.paragraph(Paint::Faint, &text);
    }

    /// Commands that look closer; each is pasted, so it stays on one line.
    pub(crate) fn what_next(&mut self, steps: &[SuggestedCommand]) {
        if !steps.is_empty() {
            self.line(Paint::Heading, "What next");
        }
        steps.iter().for_each(|next| self.line(Paint::Plain, &format!("  {:<9} {}", next.label, clean(&next.command))));
    }

    /// A text beside what its first line begins with; all of it is painted.
    pub(crate) fn beside(&mut self, paint: Paint, begin: &str, text: &str) {
        let indent = begin.chars().count();
        for (at, line) in wrap(text, self.width.saturating_sub(indent)).iter().enumerate() {
            let begin = if at == 0 { begin } else { "" };
            self.line(paint, &format!("{begin:<indent$}{line}"));
        }
    }

    /// Counts with what they are of, the largest first; none, and there is no heading.
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

    /// A text behind its count, where it has one.
    pub(crate) fn counted(&mut self, paint: Paint, count: Option<u64>, text: &str) {
        self.beside(paint, &format!("{:>12}  ", count.map_or_else(String::new, thousands)), text);
    }

    /// A text beside its name, of which only the text is painted.
    pub(crate) fn fact(&mut self, paint: Paint, name: &str, text: &str) {
        /// Columns of the name.
        const NAME: usize = 11;
        for (at, line) in wrap(text, self.width.saturating_sub(NAME + 2)).iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            Paint::Plain.text(&mut self.text, &format!("  {name:<NAME$}"), false);
            self.line(paint, line);
        }
    }
}
