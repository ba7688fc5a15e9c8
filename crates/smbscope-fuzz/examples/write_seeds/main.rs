//! Writes the seeds of the fuzz targets: `cargo run -p smbscope-fuzz --example write_seeds -- fuzz/corpus`.
//!
//! The test kit generates the seeds, so they cover all protocol features and contain no real traffic.

mod seeds;

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = env::args().nth(1).unwrap_or_else(|| "fuzz/corpus".to_owned());
    for (target, name, bytes) in seeds::all() {
        let directory = Path::new(&root).join(target);
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(name), bytes)?;
    }
    Ok(())
}
