//! Help in addition to clap's: the topics of `smbscope help`, and advice for command lines that clap refuses without
//! knowing what the user meant. Topics are pages of docs/ as text for a terminal; tests of the crates that declare
//! columns, causes and steps keep those pages up to date.

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use smbscope_stats::filter::did_you_mean;
use std::ffi::OsString;
use std::path::Path;

/// Pages of docs/ by topic.
pub(crate) const TOPICS: [(&str, &str); 10] = [
    ("capturing", include_str!("../../../docs/capturing.md")),
    ("causes", include_str!("../../../docs/causes.md")),
    ("columns", include_str!("../../../docs/exchange-table.md")),
    ("comparing", include_str!("../../../docs/comparing.md")),
    ("definitions", include_str!("../../../docs/definitions.md")),
    ("figures", include_str!("../../../docs/figures.md")),
    ("filters", include_str!("../../../docs/filter.md")),
    ("limits", include_str!("../../../docs/limits.md")),
    ("studies", include_str!("../../../docs/studies.md")),
    ("workloads", include_str!("../../../docs/workloads.md")),
];

/// Columns of the text, unless the terminal is narrower.
pub(crate) const WIDTH_MAX: usize = 100;

/// Returns the text below the list of commands.
pub(crate) fn list_of_topics() -> String {
    format!("Topics of `smbscope help TOPIC`: {}.", TOPICS.map(|(topic, _)| topic).join(", "))
}

/// Formats a page in Markdown as plain text.
pub(crate) fn rendered(page: &str, width: usize) -> String {
    let mut text = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            for code in lines.by_ref().take_while(|line| !line.starts_with("```")) {
                text += format!("    {code}").trim_end();
                text.push('\n');
            }
        } else if line.is_empty() {
            text += if text.ends_with("\n\n") { "" } else { "\n" };
        } else if line.starts_with("[//]:") {
            continue;
        } else if let Some(heading) = line.strip_prefix('#') {
            let title = heading.trim_start_matches('#');
            let title = plain(title.trim());
            text += &if heading.starts_with("##") { title } else { title.to_uppercase() };
            text.push('\n');
        } else if line.starts_with('|') {
            let mut rows = vec![cells(line)];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(cells(row));
            }
            text += &table(rows, width);
        } else {
            let mut paragraph = line.to_owned();
            while let Some(more) = lines.next_if(|line| continues(line)) {
                paragraph = format!("{paragraph} {}", more.trim_start());
            }
            text += &wrapped_item(&paragraph, width);
        }
    }
    text
}

/// Returns true for a line that belongs to the paragraph or item of the line before.
fn continues(line: &str) -> bool {
    let starts = ["- ", "#", "|", "```", "[//]:", "!["].iter().any(|start| line.starts_with(start));
    !line.is_empty() && !starts && number_of_item(line).is_none()
}

/// Returns the length of `1. ` at the start of a line.
fn number_of_item(line: &str) -> Option<usize> {
    let digits = line.find(|c: char| !c.is_ascii_digit())?;
    (digits > 0 && line[digits..].starts_with(". ")).then_some(digits + 2)
}

/// Wraps a paragraph, or an item of a list, whose later lines are indented. Leaves pictures out.
fn wrapped_item(paragraph: &str, width: usize) -> String {
    if paragraph.starts_with("![") {
        return String::new();
    }
    let mark = if paragraph.starts_with("- ") { 2 } else { number_of_item(paragraph).unwrap_or(0) };
    let (mark, rest) = paragraph.split_at(mark);
    let indent = " ".repeat(mark.len());
    let lines = wrapped(&plain(rest), width - indent.len());
    let lines = lines.iter().enumerate().map(|(at, line)| format!("{}{line}\n", if at == 0 { mark } else { &indent }));
    lines.collect()
}

/// Returns the cells of a row. A `|` in backticks does not end a cell.
fn cells(row: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_code = false;
    for c in row.trim().trim_start_matches('|').trim_end_matches('|').chars() {
        is_code ^= c == '`';
        match cells.last_mut() {
            Some(cell) if c != '|' || is_code => cell.push(c),
            _ => cells.push(String::new()),
        }
    }
    cells.iter().map(|cell| plain(cell.trim())).collect()
}

/// Aligns a table. Columns that do not fit are wrapped to equal widths.
fn table(rows: Vec<Vec<String>>, width: usize) -> String {
    let is_rule = |row: &Vec<String>| row.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| "-:".contains(c)));
    let rows: Vec<_> = rows.into_iter().filter(|row| !is_rule(row)).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let column = |at: usize| rows.iter().filter_map(move |row| row.get(at));
    let chars = |text: &str| text.chars().count();
    let whole = |at| column(at).map(|cell| chars(cell)).max().unwrap_or(0);
    let word = |at| column(at).flat_map(|cell| cell.split_whitespace()).map(chars).max().unwrap_or(0);
    let bounds: Vec<(usize, usize)> = (0..columns).map(|at| (word(at), whole(at))).collect();
    // No column is narrower than its longest word.
    let widths = |cap: usize| bounds.iter().map(move |(word, whole)| *word.max(whole.min(&cap))).collect::<Vec<_>>();
    let space = width.saturating_sub(2 * columns.saturating_sub(1));
    let cap = (1..=width).rev().find(|cap| widths(*cap).iter().sum::<usize>() <= space);
    let widths = widths(cap.unwrap_or(1));
    let mut text = String::new();
    for row in rows {
        let cells: Vec<Vec<String>> = row.iter().zip(&widths).map(|(cell, width)| wrapped(cell, *width)).collect();
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let parts = cells
                .iter()
                .zip(&widths)
                .map(|(cell, &width)| format!("{:<width$}", cell.get(line).map_or("", String::as_str)));
            text += parts.collect::<Vec<_>>().join("  ").trim_end();
            text.push('\n');
        }
    }
    text
}

/// Wraps a text at blanks. A longer word has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Removes the marks of code, bold text and links.
fn plain(text: &str) -> String {
    let text = text.replace("**", "").replace('`', "");
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('[') {
        plain += before;
        match after.split_once("](").and_then(|(name, link)| Some((name, link.split_once(')')?.1))) {
            Some((name, behind)) if !name.contains('[') => {
                plain += name;
                rest = behind;
            }
            _ => {
                plain.push('[');
                rest = after;
            }
        }
    }
    (plain + rest).replace("\\*", "*").replace("\\<", "<")
}

/// Adds a tip to an error of the command line, and hides a password in it. The line starts with the program's name.
pub(crate) fn explained(mut error: Error, line: &[OsString]) -> Error {
    let words: Vec<&str> = line.iter().skip(1).filter_map(|word| word.to_str()).collect();
    if let Some(hidden) = context(&error, ContextKind::InvalidValue).and_then(|value| without_password(&value)) {
        error.insert(ContextKind::InvalidValue, ContextValue::String(hidden));
    }
    if let Some(tip) = tip(&error, &words) {
        // clap's own proposal, and the usage that it is about.
        if error.remove(ContextKind::SuggestedArg).is_some() {
            error.remove(ContextKind::Usage);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

fn context(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn tip(error: &Error, words: &[&str]) -> Option<String> {
    let argument = || context(error, ContextKind::InvalidArg);
    match (error.kind(), words) {
        (ErrorKind::ArgumentConflict | ErrorKind::ValueValidation, ["bench", rest @ ..])
            if rest.windows(2).any(|pair| pair == ["--capture", "both"]) =>
        {
            Some("the value follows =: --capture=both".to_owned())
        }
        (ErrorKind::InvalidSubcommand, [first, ..]) => {
            Path::new(first).exists().then(|| format!("to read a capture: smbscope analyze {first}"))
        }
        (ErrorKind::UnknownArgument, ["bench", ..]) if argument()?.starts_with("--target") => {
            Some("bench takes its target without an option: smbscope bench smb://host/share".to_owned())
        }
        (ErrorKind::UnknownArgument, ["launch", ..] | ["lab", "run", ..]) => {
            let wrong = argument().filter(|wrong| !wrong.starts_with('-') && !words.contains(&"--"))?;
            Some(format!("the command follows --: -- {wrong}"))
        }
        (ErrorKind::ArgumentConflict | ErrorKind::ValueValidation, ["bench", second, ..]) => {
            did_you_mean(second, ["clean", "workloads"])
        }
        _ => None,
    }
}

/// Returns a URL with dots for its password, or `None` if it has none.
fn without_password(value: &str) -> Option<String> {
    let (scheme, rest) = value.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (login, host) = authority.rsplit_once('@')?;
    let (user, _) = login.split_once(':')?;
    Some(format!("{scheme}://{user}:…@{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;

    #[test]
    fn a_page_becomes_text_without_marks() {
        let page = "# A title\n\nOne **bold** [link](x.md#y) and\n`code[1]`.\n\n- an item\n  of two lines\n\n[//]: # (note)\n\n\
                    |a|long heading|\n|---|---|\n|`x|y`|1 2 3|\n\n```sh\nrun  it\n```\n";
        let expected = "A TITLE\n\nOne bold link and code[1].\n\n- an item of two\n  lines\n\na    long heading\nx|y  1 2 3\n\n    \
                        run  it\n";
        assert_eq!(rendered(page, 17), expected.replace("One bold link and code[1].", "One bold link and\ncode[1]."));
    }

    #[test]
    fn wide_columns_are_wrapped_and_narrow_ones_kept() {
        let rows = [["key", "a text of six words here"], ["k", "short"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(rows.to_vec(), 18), "key  a text of six\n     words here\nk    short\n");
    }

    #[test]
    fn every_page_fits_into_a_terminal() {
        for (topic, page) in TOPICS {
            let text = rendered(page, 80);
            let is_wide = |line: &&str| line.chars().count() > 80 && !line.starts_with("    ");
            assert_eq!(text.lines().find(is_wide), None, "{topic}");
        }
    }

    fn refused(line: &[&str]) -> String {
        let line: Vec<OsString> = std::iter::once(&"smbscope").chain(line).map(OsString::from).collect();
        Arguments::parse_line(line).expect_err("a mistake").to_string()
    }

    #[test]
    fn a_mistake_gets_the_command_that_was_meant() {
        for (line, tip) in [
            (&["Cargo.toml"][..], "tip: to read a capture: smbscope analyze Cargo.toml"),
            (&["bench", "--target", "smb://files/x"], "tip: bench takes its target without an option: smbscope bench"),
            (&["bench", "claen", "smb://files/x"], "tip: did you mean clean?"),
            (&["bench", "claen"], "tip: did you mean clean?"),
            (&["launch", "true"], "tip: the command follows --: -- true"),
            (&["bench", "--capture", "both", "smb://files/x"], "tip: the value follows =: --capture=both"),
            (&["lab", "run", "--delay", "1ms", "true"], "tip: the command follows --: -- true"),
            (&["analyse", "x.pcap"], "tip: a similar subcommand exists: 'analyze'"),
            (&["analyze", "--fromat", "json", "x.pcap"], "tip: a similar argument exists: '--format'"),
        ] {
            let text = refused(line);
            assert!(text.contains(tip), "{line:?}: {text}");
        }
        assert!(!refused(&["bench", "--target", "smb://files/x"]).contains("--rate"));
    }

    #[test]
    fn a_password_in_a_url_is_not_repeated() {
        for target in ["smb://ann:secret@files/x", "smb://ann:se@cret@files/x", "smb://ann:secret@files"] {
            let text = refused(&["bench", target]);
            assert!(text.contains("smb://ann:…@files") && !text.contains("cret"), "{text}");
        }
    }
}
