//! Keeps the documentation in line with the code: docs/causes.md lists every cause with its current texts;
//! it and docs/bench.md state the limits of slowness.

#[path = "../examples/causes/page.rs"]
mod page;

use smbscope_diagnose::{Catalogue, LONGEST_UNDER_LOAD, P95_UNDER_LOAD, Slow};

#[test]
fn the_page_lists_the_causes_as_the_program_has_them() {
    let written = include_str!("../../../docs/causes.md");
    assert!(
        written == page::updated(written),
        "docs/causes.md is stale; this rewrites it: make references, or \
         cargo run -p smbscope-diagnose --example causes -- docs/causes.md"
    );
}

#[test]
fn the_condition_of_each_cause_names_its_thresholds() {
    for (id, entry) in Catalogue::default().entries() {
        for (name, _) in entry.thresholds() {
            assert!(entry.condition.contains(&format!("`{name}`")), "the condition of {id} lacks {name}");
        }
    }
}

#[test]
fn the_page_states_what_counts_as_slow() {
    let page = include_str!("../../../docs/causes.md");
    for part in Slow::default().to_string().split(',') {
        let (name, value) = part.split_once('=').expect("a default is NAME=VALUE");
        assert!(page.contains(&format!("| `{name}` | {value} |")), "docs/causes.md lacks {name} {value}");
    }
}

#[test]
fn the_page_on_load_states_what_counts_as_slow_under_load() {
    let page = include_str!("../../../docs/bench.md");
    for (group, limit) in P95_UNDER_LOAD {
        assert!(page.contains(&format!("| {group} | {limit} |")), "docs/bench.md lacks {group} {limit}");
    }
    assert!(
        page.contains(&format!("| any single command | {LONGEST_UNDER_LOAD} |")),
        "docs/bench.md lacks the longest"
    );
}
