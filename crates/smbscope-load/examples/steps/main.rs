//! Writes the tables of steps into docs/workloads.md (`make references`).

mod page;

fn main() -> std::io::Result<()> {
    smbscope_testkit::generated::update(page::updated)
}
