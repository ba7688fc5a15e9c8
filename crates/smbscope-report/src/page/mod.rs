//! A page of text, for a terminal or in Markdown. Everything written is cleaned. For a terminal, it is coloured and wrapped
//! to the width of the page; in Markdown, it is escaped.
//!
//! [`Paint`] are the colours, and [`bar`] and [`line`] draw bars and charts of Unicode block characters.

use crate::format::{clean, shorten, thousands, wrap};
use anstyle::{AnsiColor, Style};
use smbscope_diagnose::next::SuggestedCommand;
use smbscope_model::prose::NO_BREAK;
use std::ops::RangeInclusive;

const WIDTHS: RangeInclusive<usize> = 60..=160;

const LISTED_MAX: usize = 20;

#[derive(Debug)]
pub(crate) struct TextPage {
    text: String,
    markup: Markup,
}

#[derive(Debug)]
enum Markup {
    Terminal {
        width: usize,
        color: bool,
    },
    Markdown {
        /// The last line is an item of a list.
        in_list: bool,
        /// Titles and descriptions of the columns used so far.
        columns: Vec<(String, &'static str)>,
    },
}

impl TextPage {
    /// Creates an empty page. The width is clamped to 60–160 columns.
    pub(crate) fn new(width: usize, color: bool) -> TextPage {
        let width = width.clamp(*WIDTHS.start(), *WIDTHS.end());
        TextPage { text: String::new(), markup: Markup::Terminal { width, color } }
    }

    /// Creates an empty page in Markdown.
    pub(crate) fn markdown() -> TextPage {
        TextPage { text: String::new(), markup: Markup::Markdown { in_list: false, columns: Vec::new() } }
    }

    pub(crate) fn is_markdown(&self) -> bool {
        matches!(self.markup, Markup::Markdown { .. })
    }

    /// Returns the width in columns. Markdown has any.
    pub(crate) fn width(&self) -> usize {
        match self.markup {
            Markup::Terminal { width, .. } => width,
            Markup::Markdown { .. } => *WIDTHS.end(),
        }
    }

    pub(crate) fn like(&self) -> TextPage {
        match self.markup {
            Markup::Terminal { width, color } => TextPage::new(width, color),
            Markup::Markdown { .. } => TextPage::markdown(),
        }
    }

    /// Returns the lines used of a screen. Markdown has no screen.
    pub(crate) fn lines(&self) -> usize {
        if self.is_markdown() { 0 } else { self.text.lines().count() }
    }

    pub(crate) fn append(&mut self, other: TextPage) {
        if let (Markup::Markdown { in_list, columns }, Markup::Markdown { in_list: ends_in_list, columns: more }) =
            (&mut self.markup, other.markup)
        {
            let continues = *in_list && other.text.starts_with("- ");
            if !continues && !self.text.is_empty() && !other.text.is_empty() {
                self.text.push('\n');
            }
            if !other.text.is_empty() {
                *in_list = ends_in_list;
            }
            let known = columns.len();
            columns.extend(more);
            deduplicate(columns, known);
        }
        self.text.push_str(&other.text);
    }

    /// Returns the text. In Markdown, explanations of the columns of all tables go last.
    pub(crate) fn into_text(mut self) -> String {
        if let Markup::Markdown { columns, .. } = &mut self.markup {
            let columns = std::mem::take(columns);
            if !columns.is_empty() {
                self.heading("Columns");
            }
            columns.iter().for_each(|(title, about)| self.fact(Paint::Plain, title, about));
        }
        self.text
    }

    /// Writes a block of Markdown as it is, after an empty line.
    pub(crate) fn block(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text.trim_end());
        self.text.push('\n');
        if let Markup::Markdown { in_list, .. } = &mut self.markup {
            *in_list = false;
        }
    }

    /// Explains a column at the end of the page.
    pub(crate) fn explain(&mut self, title: &str, about: &'static str) {
        if let Markup::Markdown { columns, .. } = &mut self.markup {
            let known = columns.len();
            columns.push((title.to_owned(), about));
            deduplicate(columns, known);
        }
    }

    /// Writes an item of a list in Markdown.
    fn item(&mut self, text: &str) {
        let item = format!("- {text}");
        match self.markup {
            Markup::Markdown { in_list: true, .. } => self.text.push_str(&(item + "\n")),
            _ => self.block(&item),
        }
        if let Markup::Markdown { in_list, .. } = &mut self.markup {
            *in_list = true;
        }
    }

    /// Writes a name with its text as an item of a list in Markdown.
    fn named_item(&mut self, name: &str, text: &str) {
        let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = escaped(text.trim());
        match name.trim_start_matches('-') {
            "" => self.item(&text),
            count if count.chars().all(|c| c.is_ascii_digit() || c == ',') => self.item(&format!("{count} {text}")),
            name => self.item(&format!("**{}:** {text}", escaped(name))),
        }
    }

    pub(crate) fn blank(&mut self) {
        match &mut self.markup {
            Markup::Terminal { .. } => self.text.push('\n'),
            Markup::Markdown { in_list, .. } => *in_list = false,
        }
    }

    pub(crate) fn title(&mut self, text: &str, is_brief: bool) {
        if self.is_markdown() {
            return self.block(&format!("## {}", escaped(text)));
        }
        let more = if is_brief { " (--full adds all tables)" } else { "" };
        let room = self.width().saturating_sub(more.len());
        self.line(Paint::Heading, &(shorten(text, room) + more));
    }

    pub(crate) fn line(&mut self, paint: Paint, text: &str) {
        match self.markup {
            Markup::Terminal { color, .. } => paint.line(&mut self.text, text, color),
            Markup::Markdown { .. } if paint == Paint::Heading => self.block(&format!("### {}", escaped(text.trim()))),
            Markup::Markdown { .. } => self.named_item("", text.trim().trim_start_matches("- ")),
        }
    }

    pub(crate) fn heading(&mut self, text: &str) {
        self.blank();
        self.line(Paint::Heading, text);
    }

    pub(crate) fn paragraph(&mut self, paint: Paint, text: &str) {
        if self.is_markdown() {
            let text = escaped(text.trim());
            return self.block(&match paint {
                Paint::Plain | Paint::Faint => text,
                Paint::Heading | Paint::Alarm => format!("**{text}**"),
                Paint::Warning | Paint::Smb1 => format!("**Warning:** {text}"),
            });
        }
        wrap(text, self.width()).iter().for_each(|line| self.line(paint, line));
    }

    /// Writes suggested commands, each on one line so that it can be pasted.
    pub(crate) fn what_next(&mut self, steps: &[SuggestedCommand]) {
        if steps.is_empty() {
            return;
        }
        if self.is_markdown() {
            self.block("**What next**");
            return steps
                .iter()
                .for_each(|next| self.item(&format!("{}: {}", escaped(&next.label), code(&next.command))));
        }
        self.line(Paint::Heading, "What next");
        steps.iter().for_each(|next| self.line(Paint::Plain, &format!("  {:<9} {}", next.label, clean(&next.command))));
    }

    /// Writes a text, wrapped with a hanging indent as wide as `begin`.
    pub(crate) fn beside(&mut self, paint: Paint, begin: &str, text: &str) {
        match self.markup {
            Markup::Markdown { .. } if paint == Paint::Heading => {
                return self.block(&format!("**{}. {}**", begin.trim(), escaped(text)));
            }
            Markup::Markdown { .. } => return self.named_item(begin, text),
            Markup::Terminal { .. } => {}
        }
        let indent = begin.chars().count();
        for (at, line) in wrap(text, self.width().saturating_sub(indent)).iter().enumerate() {
            let begin = if at == 0 { begin } else { "" };
            self.line(paint, &format!("{begin:<indent$}{line}"));
        }
    }

    /// Writes counts with their descriptions, largest first. Writes nothing for an empty list.
    pub(crate) fn counts(&mut self, heading: &str, mut counts: Vec<(u64, String)>) {
        if counts.is_empty() {
            return;
        }
        counts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        self.heading(heading);
        if counts.len() > LISTED_MAX {
            let rest = counts.split_off(LISTED_MAX);
            let count = rest.iter().map(|(count, _)| count).sum();
            let kinds = thousands(rest.len() as u64);
            counts.push((count, format!("of {kinds} further kinds: --format json lists them")));
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
        if self.is_markdown() {
            return self.named_item(name, text);
        }
        for (at, line) in wrap(text, self.width().saturating_sub(NAME + 2)).iter().enumerate() {
            let name = if at == 0 { name } else { "" };
            Paint::Plain.text(&mut self.text, &format!("  {name:<NAME$}"), false);
            self.line(paint, line);
        }
    }

    /// Writes a chart of block characters between its name and a text. Markdown has no charts.
    pub(crate) fn chart(&mut self, name: &str, chart: &str, text: &str) {
        match self.is_markdown() {
            true => self.named_item(name, text),
            false => self.line(Paint::Plain, &format!("{name}{chart}  {text}")),
        }
    }
}

/// Removes entries from `known` on that occurred before.
fn deduplicate<T: PartialEq>(list: &mut Vec<T>, known: usize) {
    for at in (known..list.len()).rev() {
        if list[..at].contains(&list[at]) {
            list.remove(at);
        }
    }
}

/// All escape sequences in a report. A terminal may reject any other.
pub const STYLES: [&str; 6] = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[33m", "\u{1b}[35m"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Heading,
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

/// Returns a bar with a resolution of 1/8 character. A share above 0 is at least 1/8 long.
pub(crate) fn bar(part: f64, whole: f64, width: usize) -> String {
    let share = if part > 0.0 && whole > 0.0 { part / whole } else { 0.0 };
    let eighths = (share * width as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(['▏', '▎', '▍', '▌', '▋', '▊', '▉'].get((eighths % 8).wrapping_sub(1)));
    bar
}

/// Returns one character of a chart. None for 0.
pub(crate) fn level(part: f64, whole: f64) -> Option<char> {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    (part > 0.0 && whole > 0.0).then(|| LEVELS[((part / whole * 8.0).ceil() as usize).clamp(1, LEVELS.len()) - 1])
}

/// Returns a chart of one character per value, relative to the largest value. Missing values and 0 are dots. If there
/// are more values than `width`, adjacent values are combined by `choose`.
pub(crate) fn line(values: &[Option<f64>], width: usize, choose: fn(f64, f64) -> f64) -> String {
    let parts = values.len().div_ceil(width.max(1)).max(1);
    let values: Vec<f64> =
        values.chunks(parts).map(|part| part.iter().flatten().copied().reduce(choose).unwrap_or(0.0)).collect();
    let most = values.iter().copied().fold(0.0, f64::max);
    values.into_iter().map(|value| level(value, most).unwrap_or('·')).collect()
}

/// Escapes text for a paragraph, a list or a table. The result is one line without markup, HTML, mentions of users and
/// references to issues.
pub(crate) fn escaped(text: &str) -> String {
    let text = clean(text).replace(NO_BREAK, " ");
    let mut out = String::with_capacity(text.len());
    let mut before: Option<char> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let after = chars.peek().copied();
        let begins_word = !before.is_some_and(char::is_alphanumeric);
        let is_alphanumeric = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let needs_backslash = match c {
            // A backslash before a letter is itself, as in most paths.
            '\\' => after.is_none_or(|after| after.is_ascii_punctuation()),
            '`' | '*' | '[' | '|' | '~' => true,
            // Other characters after it begin no tag (CommonMark 0.31 §6.6).
            '<' => after.is_some_and(|after| after.is_ascii_alphabetic() || matches!(after, '/' | '!' | '?')),
            '_' => begins_word || !is_alphanumeric(after),
            '&' => is_alphanumeric(after) || after == Some('#'),
            '#' | '>' => before.is_none() && !is_alphanumeric(after),
            '+' | '-' => before.is_none() && after == Some(' '),
            _ => false,
        };
        if needs_backslash {
            out.push('\\');
        }
        out.push(c);
        // GitHub and GitLab would notify a user or link an issue. A comment is invisible and separates the two.
        if matches!(c, '@' | '#') && begins_word && is_alphanumeric(after) {
            out.push_str("<!-- -->");
        }
        before = Some(c);
    }
    out
}

/// Formats a command as code, with more backticks around it than it contains in a row.
pub(crate) fn code(text: &str) -> String {
    let text = clean(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let blank = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{blank}{text}{blank}{fence}")
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

    #[test]
    fn bars_are_as_long_as_their_share() {
        // 50% of 10 characters are 5; 55% are 5.5: five and a half; 0.1% still shows.
        let bars = [0.0, 0.1, 50.0, 55.0, 100.0].map(|part| bar(part, 100.0, 10));
        assert_eq!(bars, ["", "▏", "█████", "█████▌", "██████████"]);
        assert_eq!(bar(5.0, 0.0, 4), "");
    }

    #[test]
    fn levels_show_every_count() {
        assert_eq!([0.0, 1.0, 50.0, 100.0].map(|n| level(n, 100.0)), [None, Some('▁'), Some('▄'), Some('█')]);
    }

    #[test]
    fn nothing_is_a_dot_in_a_line() {
        // 1 of 8 is the first level, 8 of 8 the last.
        assert_eq!(line(&[Some(1.0), None, Some(0.0), Some(8.0)], 10, f64::max), "▁··█");
    }

    #[test]
    fn a_stall_shows_in_a_line_that_is_too_short() {
        let values: Vec<Option<f64>> = (0..8).map(|at| Some(if at == 5 { 0.0 } else { 4.0 })).collect();
        assert_eq!(line(&values, 4, f64::min), "██·█");
    }

    #[test]
    fn names_are_neither_markup_nor_html_nor_further_cells() {
        // CommonMark 0.31 §2.4 (backslash escapes) and GFM §4.10 (pipes in cells).
        let shown = [
            ("a|b", r"a\|b"),
            (r"a\|b", r"a\\\|b"),
            ("*.docx", r"\*.docx"),
            ("<img src=x>", r"\<img src=x>"),
            ("<!-- </b>", r"\<!-- \</b>"),
            ("<0.1%", "<0.1%"),
            ("[x](http://y)", r"\[x](http://y)"),
            ("`rm`", r"\`rm\`"),
            ("&lt;", r"\&lt;"),
            ("_x_", r"\_x\_"),
            (r"\\server\share\", r"\\\server\share\\"),
            ("# a", r"\# a"),
            ("- a", r"\- a"),
            ("-", "-"),
            ("a\nb\r\u{1b}[2J\u{202e}", "a\u{fffd}b\u{fffd}\u{fffd}\\[2J\u{fffd}"),
        ];
        assert_eq!(shown.map(|(name, _)| escaped(name)), shown.map(|(_, expected)| expected));
    }

    #[test]
    fn ordinary_names_stay_readable() {
        for name in
            [r"docs\2024.old\report.DOCX", "STATUS_OBJECT_NAME_NOT_FOUND", "ann@files:445", "95%", "C$", "a-b+c"]
        {
            assert_eq!(escaped(name), name);
        }
        assert_eq!(escaped("38.3\u{a0}ms"), "38.3 ms");
    }

    #[test]
    fn nobody_is_notified_by_a_name() {
        assert_eq!(escaped(r"\@GMT-2026.01.01\x"), r"\\@<!-- -->GMT-2026.01.01\x");
        assert_eq!(escaped("#12"), "#<!-- -->12");
    }

    #[test]
    fn a_command_with_backticks_is_code() {
        assert_eq!([code("smbscope x"), code("a `b` c"), code("`a")], ["`smbscope x`", "``a `b` c``", "`` `a ``"]);
    }
}
