//! What is found in the captures of the repository: as docs/findings.md lists it.

use crate::common::bundled;
use crate::scene::{hits, report};

/// The findings that a row of the second table of the page lists: in backquotes, in any order.
fn listed(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_page_lists_what_is_found_in_each_bundled_capture() {
    let page = include_str!("../../../../docs/findings.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `tests/data/")).collect();
    assert!(rows.len() > 10, "the table has {} rows", rows.len());
    let mut wrong = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let name = cells[0].trim_start_matches("| `tests/data/").trim_end_matches('`');
        let report = report(&bundled(name));
        let (mut found, mut said) = (hits(&report), listed(cells[2]));
        found.sort_unstable();
        said.sort_unstable();
        if found != said {
            wrong.push(format!("{name}: found {found:?}, and the page lists {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
