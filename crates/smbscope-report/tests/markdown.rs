//! Reports in Markdown: the same figures as in text, in whole tables, without the characters of a terminal.

use crate::common;
use smbscope_report::bench::{self, RampDetailLevel, RampTextOptions};
use smbscope_report::compare::{self, ComparableDocument, ComparableReport, Comparison, Given};
use smbscope_report::text::{self, ReportTextOptions};

/// Returns the cells of the table rows.
fn rows(markdown: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        let inner = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")).unwrap_or(line);
        inner.replace("\\|", "\u{1}").split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    markdown.lines().filter(|line| line.starts_with('|')).map(cells).collect()
}

/// Checks that the tables are whole, and that nothing is meant for a terminal.
fn checked(markdown: &str) {
    let is_art = |c: char| c.is_control() && c != '\n' || ('\u{2500}'..='\u{259f}').contains(&c);
    assert!(!markdown.contains(is_art), "{markdown}");
    let mut cells = None;
    for line in markdown.lines() {
        let found = line.starts_with('|').then(|| line.replace("\\|", "").matches('|').count());
        assert!(cells.is_none() || found.is_none() || cells == found, "{line}\n{markdown}");
        cells = found;
    }
    assert!(!markdown.contains("\n\n\n"), "{markdown}");
}

/// Returns the words of a text table's row that begins with this name.
fn words<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    let line =
        text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
    line.split_whitespace().collect()
}

#[test]
fn a_report_in_markdown() {
    let markdown = text::markdown(&common::office(), &ReportTextOptions { full: true, ..ReportTextOptions::default() });
    checked(&markdown);
    insta::assert_snapshot!(markdown);
}

#[test]
fn a_report_in_markdown_has_the_figures_of_the_text() {
    let options = ReportTextOptions { full: true, width: 160, ..ReportTextOptions::default() };
    for report in [common::small(), common::office()] {
        let (text, markdown) = (text::render(&report, &options), text::markdown(&report, &options));
        checked(&markdown);
        let total = rows(&markdown).into_iter().find(|row| row[0] == "Total").expect("a row");
        let cells: Vec<&str> = total.iter().flat_map(|cell| cell.split_whitespace()).collect();
        assert_eq!(cells, words(&text, "Total "));
    }
}

#[test]
fn a_ramp_in_markdown() {
    for document in [common::bench::ramp(), common::bench::trouble(), common::bench::nothing()] {
        for detail in [RampDetailLevel::Brief, RampDetailLevel::All] {
            checked(&bench::markdown(&document, detail));
        }
    }
    let document = common::bench::ramp();
    let markdown = bench::markdown(&document, RampDetailLevel::Brief);
    let options = RampTextOptions { width: 160, color: false, detail: RampDetailLevel::Brief };
    let total = rows(&markdown).into_iter().find(|row| row[0] == "Total").expect("a row");
    let cells: Vec<&str> = total.iter().flat_map(|cell| cell.split_whitespace()).collect();
    assert_eq!(cells, words(&bench::render(&document, &options), "Total "));
    insta::assert_snapshot!(markdown);
}

#[test]
fn a_comparison_in_markdown_names_each_ratio() {
    let side = |name: &str| {
        let report = ComparableDocument::Report(Box::new(ComparableReport::from_report(&common::office())));
        Given { name: name.to_owned(), runs: vec![(name.to_owned(), report)] }
    };
    let markdown = compare::markdown(&Comparison::of_all(None, &[side("before"), side("after|b")]));
    checked(&markdown);
    let head = rows(&markdown).into_iter().find(|row| row[0] == "Groups").expect("a table of groups");
    assert!(head.contains(&"p95".to_owned()) && head.contains(&"p95 ×".to_owned()), "{head:?}");
    let distinct: std::collections::BTreeSet<&String> = head.iter().collect();
    assert_eq!(distinct.len(), head.len(), "{head:?}");
}
