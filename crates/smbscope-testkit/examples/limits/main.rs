//! Writes the tables of bounds into docs/limits.md (`make references`).

mod page;

fn main() -> std::io::Result<()> {
    smbscope_testkit::generated::update(page::updated)
}
