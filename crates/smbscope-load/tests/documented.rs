//! Keeps docs/workloads.md in line with the steps of the program.

#[path = "../examples/steps/page.rs"]
mod page;

#[test]
fn the_page_lists_the_steps_as_the_program_has_them() {
    let written = include_str!("../../../docs/workloads.md");
    assert!(
        written == page::updated(written),
        "docs/workloads.md is stale; this rewrites it: make references, or \
         cargo run -p smbscope-load --example steps -- docs/workloads.md"
    );
}
