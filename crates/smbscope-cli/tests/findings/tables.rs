//! The table of docs/findings.md that has two captures for each finding.

use smbscope_diagnose::Catalogue;

#[test]
fn every_finding_has_a_positive_and_a_negative_capture_on_the_page() {
    let page = include_str!("../../../../docs/findings.md");
    let (_, section) = page.split_once("\n## How each was provoked\n").expect("the section");
    let section = section.split("\n## ").next().expect("its text");
    let rows: Vec<Vec<&str>> =
        section.lines().filter(|line| line.starts_with("| `")).map(|line| line.split(" | ").collect()).collect();
    assert_eq!(rows.len(), Catalogue::default().entries().count());
    for (id, _) in Catalogue::default().entries() {
        let row = rows.iter().find(|cells| cells[0] == format!("| `{id}`"));
        let row = row.unwrap_or_else(|| panic!("no row for {id}"));
        let [_, _, positive, _, negative] = row[..] else { panic!("{id}: a row has five cells: {row:?}") };
        assert!(positive.contains(&format!("`{id}`")), "{id} is no hit of its positive capture: {positive}");
        assert!(!negative.contains(&format!("`{id}`")), "{id} is a hit of its negative capture: {negative}");
    }
}
