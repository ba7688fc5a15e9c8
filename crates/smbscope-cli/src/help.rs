//! Topics of `smbscope help`: pages of docs/ as text for a terminal. Tests of the crates that declare
//! columns, causes and steps keep those pages up to date.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
