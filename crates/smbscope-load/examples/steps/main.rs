//! Writes the tables of steps into docs/workloads.md (`make references`).

mod page;

fn main() -> std::io::Result<()> {
    let path = std::env::args_os().nth(1).expect("the page is the only argument");
    let old = std::fs::read_to_string(&path)?;
    std::fs::write(&path, page::updated(&old))
}
