//! Colours, used only when asked for.

use anstyle::{AnsiColor, Style};

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
}

impl Paint {
    fn style(self) -> Style {
        match self {
            Paint::Plain => Style::new(),
            Paint::Heading => Style::new().bold(),
            Paint::Faint => Style::new().dimmed(),
            Paint::Warning => AnsiColor::Yellow.on_default(),
            Paint::Alarm => AnsiColor::Red.on_default().bold(),
        }
    }

    /// Appends the text and a line end.
    pub(crate) fn line(self, out: &mut String, text: &str, color: bool) {
        self.text(out, text, color);
        out.push('\n');
    }

    /// Appends the text.
    pub(crate) fn text(self, out: &mut String, text: &str, color: bool) {
        if color && self != Paint::Plain && !text.is_empty() {
            let style = self.style();
            out.push_str(&format!("{style}{text}{style:#}"));
        } else {
            out.push_str(text);
        }
    }
}
