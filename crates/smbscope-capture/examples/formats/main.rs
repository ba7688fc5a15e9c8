//! Writes the lists of formats, link types and tunnels into docs/formats.md (`make references`).

mod page;

fn main() -> std::io::Result<()> {
    smbscope_testkit::generated::update(page::updated)
}
