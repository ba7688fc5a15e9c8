//! Colours, used only when asked for.

use crate::format::clean;
use anstyle::{AnsiColor, Style};

/// Every sequence that a style is made of: a terminal needs to take no other one of a report.
pub const STYLES: [&str; 6] = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[33m", "\u{1b}[35m"];

/// What a line is, and so how it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Ordinary text.
    Plain,
    /// Headings.
    Heading,
    /// Of lesser weight: rows below others.
    Faint,
    /// Worth attention.
    Warning,
    /// Worth attention at once.
    Alarm,
    /// SMB1 in use, and nothing else.
    Smb1,
}

impl Paint {
    fn style(self) -> Style {
        match self {
            Paint::Plain => Style::new(),
            Paint::Heading => Style::new().bold(),
            Paint::Faint => Style::new().dimmed(),
            Paint::Warning => AnsiColor::Yellow.on_default(),
            Paint::Alarm => AnsiColor::Red.on_default().bold(),
            Paint::Smb1 => AnsiColor::Magenta.on_default().bold(),
        }
    }

    /// Appends the text and a line end.
    pub(crate) fn line(self, out: &mut String, text: &str, color: bool) {
        self.text(out, text, color);
        out.push('\n');
    }

    /// Appends the text, which may hold names from anywhere.
    pub(crate) fn text(self, out: &mut String, text: &str, color: bool) {
        let text = &clean(text);
        if color && self != Paint::Plain && !text.is_empty() {
            let style = self.style();
            out.push_str(&format!("{style}{text}{style:#}"));
        } else {
            out.push_str(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_made_of_the_sequences_that_terminals_are_let_see() {
        for paint in [Paint::Plain, Paint::Heading, Paint::Faint, Paint::Warning, Paint::Alarm, Paint::Smb1] {
            let mut out = String::new();
            paint.line(&mut out, "x\u{1b}[2Jy", true);
            let left = STYLES.iter().fold(out, |out, style| out.replace(style, ""));
            assert_eq!(left, "x\u{fffd}[2Jy\n");
        }
    }
}
