//! What a terminal shows: the sessions of `tests/cmd/*.md`, run as they stand there.

#[test]
fn sessions() {
    trycmd::TestCases::new().case("tests/cmd/*.md");
}
