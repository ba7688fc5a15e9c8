//! docs/findings.md lists what there is: every finding with its title and all of its thresholds.

use smbscope_diagnose::Catalogue;

#[test]
fn every_finding_is_documented_with_its_title_and_thresholds() {
    let page = include_str!("../../../docs/findings.md");
    let (page, _) = page.split_once("\n## Thresholds of your own").expect("the section behind the table");
    for (id, entry) in Catalogue::default().entries() {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{id}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/findings.md has no row for {id}"));
        assert!(row.contains(&entry.title), "{id}: another title");
        for (name, value) in entry.thresholds() {
            assert!(row.contains(&format!("`{name} = {value}`")), "{id}: {name} = {value} is not in {row}");
        }
    }
    let rows = page.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, Catalogue::default().entries().count());
}
