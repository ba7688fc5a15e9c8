//! Text that Markdown (CommonMark and GitHub's extensions) shows unchanged, whatever names it contains.

use crate::format::clean;
use smbscope_model::prose::NO_BREAK;

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
