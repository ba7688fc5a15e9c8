//! Checks that `docs/limits.md` lists every bound in the sources, with its value and the first sentence of its comment.

#[path = "../examples/limits/page.rs"]
mod page;

use page::{Constant, constants, is_bound, row, value};

const PAGE: &str = include_str!("../../../docs/limits.md");

#[test]
fn every_bound_is_on_the_page_of_limits_with_its_value() {
    let all = constants();
    let bounds: Vec<&Constant> = all.iter().filter(|constant| is_bound(&constant.name)).collect();
    for bound in &bounds {
        let row = row(bound, &all);
        assert!(PAGE.contains(&row), "docs/limits.md lacks a bound of {}: {row}", bound.file.display());
    }
    assert!(bounds.len() > 200, "only {} bounds were found: has the way they are written changed?", bounds.len());
}

#[test]
fn the_page_of_limits_is_up_to_date() {
    assert!(
        PAGE == page::updated(PAGE),
        "docs/limits.md is stale; this rewrites it: make references, or \
         cargo run -p smbscope-testkit --example limits -- docs/limits.md"
    );
}

#[test]
fn values_are_read_and_shown() {
    let known = |name: &str| (name == "BLOCK").then_some("1 << 10");
    let values = [
        ("8_192", 8_192),
        ("4 << 20", 4 << 20),
        ("64 * 1024", 65_536),
        ("BLOCK + (128 << 10)", 132_096),
        ("0x1_ffff", 131_071),
        ("4.0", 4),
        ("Duration::from_secs(10)", 10_000_000_000),
    ];
    for (expression, expected) in values {
        assert_eq!(value(expression, &known), Some(expected), "{expression}");
    }
    assert_eq!(value("UNKNOWN", &known), None);
    let units = [(1 << 20, "MiB"), (1 << 10, "KiB")];
    assert_eq!(
        [65_536, 3 << 20, 65_024_001].map(|size| page::in_units(size, &units)),
        ["64 KiB", "3 MiB", "65,024,001"]
    );
}
