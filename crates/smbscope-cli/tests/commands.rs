//! Runs the terminal sessions in `tests/cmd/*.md`.

#[test]
fn sessions() {
    trycmd::TestCases::new().case("tests/cmd/*.md");
}
