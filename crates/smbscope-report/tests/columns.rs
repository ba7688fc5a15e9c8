//! The page on the exchange table lists the columns that the program has.

#[path = "../examples/columns/page.rs"]
mod page;

#[test]
fn the_page_lists_the_columns_of_the_table() {
    let written = include_str!("../../../docs/exchange-table.md");
    assert!(
        written == page::updated(written),
        "docs/exchange-table.md is stale; this rewrites it: make references, or \
         cargo run -p smbscope-report --example columns -- docs/exchange-table.md"
    );
}
