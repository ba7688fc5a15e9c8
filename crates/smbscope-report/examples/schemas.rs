//! Writes the published schemas into a directory: `make schemas`.

use smbscope_report::schema::published;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let directory = PathBuf::from(std::env::args_os().nth(1).expect("the directory is the only argument"));
    published().iter().try_for_each(|schema| std::fs::write(directory.join(&schema.file), &schema.text))
}
