//! Writes the list of causes into docs/causes.md (`make references`).

mod page;

fn main() -> std::io::Result<()> {
    smbscope_testkit::generated::update(page::updated)
}
