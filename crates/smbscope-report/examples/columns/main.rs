//! Writes the list of columns into docs/exchange-table.md (`make references`).

mod page;

fn main() -> std::io::Result<()> {
    smbscope_testkit::generated::update(page::updated)
}
