//! `docs/limits.md` names every bound that the source has.

use std::fs;
use std::path::{Path, PathBuf};

/// Crates that read captures and count, and those that talk to servers and keep what came out.
const CRATES: [&str; 7] = [
    "smbscope-wire",
    "smbscope-model",
    "smbscope-capture",
    "smbscope-analyze",
    "smbscope-stats",
    "smbscope-load",
    "smbscope-bench",
];
/// How the names of bounds begin and end.
const BEGINNINGS: [&str; 7] = ["MAX_", "RECENT_", "WINDOW_", "BATCH", "CHUNK_", "CHUNKS_", "FEW_"];
const ENDINGS: [&str; 4] = ["_MAX", "_MIN", "_HAND", "_TIMEOUTS"];

/// Fields of the specification whose names look like it: MaxParameterCount (MS-CIFS 2.2.4.46.1), and the oplock level
/// SMB2_OPLOCK_LEVEL_BATCH (MS-SMB2 2.2.13); what the client asks for in such fields; how it divides its own writes.
const NO_BOUNDS: [&str; 6] =
    ["MAX_PARAMETER_COUNT", "BATCH", "MAX_BUFFER_SIZE", "MAX_TRANSACT", "WRITE_MAX", "SHIFT_MAX"];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("can be listed").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names of constants that are bounds.
fn bounds(source: &str) -> impl Iterator<Item = &str> {
    let names = source.lines().filter_map(|line| {
        let (_, rest) = line.split_once("const ")?;
        rest.split_once(':').map(|(name, _)| name.trim())
    });
    names.filter(|name| !NO_BOUNDS.contains(name)).filter(|name| {
        BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
            || ENDINGS.iter().any(|ending| name.ends_with(ending))
    })
}

#[test]
fn every_bound_is_on_the_page_of_limits() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/limits.md")).expect("the page");
    let mut files = Vec::new();
    CRATES.iter().for_each(|name| sources(&root.join("crates").join(name).join("src"), &mut files));
    let mut count = 0;
    for file in files {
        let source = fs::read_to_string(&file).expect("text");
        for name in bounds(&source) {
            count += 1;
            assert!(page.contains(&format!("`{name}`")), "{name} of {} is not on docs/limits.md", file.display());
        }
    }
    assert!(count > 40, "only {count} bounds were found: has the way they are written changed?");
}
