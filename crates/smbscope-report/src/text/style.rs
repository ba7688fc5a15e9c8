//! Colours of the terminal report.

use crate::format::clean;
use anstyle::{AnsiColor, Style};

/// All escape sequences in a report. A terminal may reject any other.
pub const STYLES: [&str; 6] = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[33m", "\u{1b}[35m"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Heading,
    /// Less important text.
    Faint,
    Warning,
    Alarm,
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

    pub(crate) fn line(self, out: &mut String, text: &str, color: bool) {
        self.text(out, text, color);
        out.push('\n');
    }

    /// Appends the text, which may contain names from captures, after cleaning it.
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
