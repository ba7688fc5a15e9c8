//! Keeps docs/formats.md in line with the tables of the reader and the decoder.

#[path = "../examples/formats/page.rs"]
mod page;

#[test]
fn the_page_of_formats_is_up_to_date() {
    let written = include_str!("../../../docs/formats.md");
    assert!(
        written == page::updated(written),
        "docs/formats.md is stale; this rewrites it: make references, or \
         cargo run -p smbscope-capture --example formats -- docs/formats.md"
    );
}
