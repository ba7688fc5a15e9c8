//! Checks that `docs/limits.md` lists every bound in the sources with its value.

use std::fs;
use std::path::{Path, PathBuf};

/// Crates that read captures and compute statistics, and crates that talk to servers and keep results.
const CRATES: [&str; 8] = [
    "smbscope-wire",
    "smbscope-model",
    "smbscope-capture",
    "smbscope-analyze",
    "smbscope-stats",
    "smbscope-client",
    "smbscope-load",
    "smbscope-run",
];
/// Prefixes and suffixes of the names of bounds.
const BEGINNINGS: [&str; 7] = ["MAX_", "RECENT_", "WINDOW_", "BATCH", "CHUNK_", "CHUNKS_", "FEW_"];
const ENDINGS: [&str; 4] = ["_MAX", "_MIN", "_HAND", "_TIMEOUTS"];

/// Constants with such names that are not bounds: fields of the specification, like MaxParameterCount (MS-CIFS
/// 2.2.4.46.1) and SMB2_OPLOCK_LEVEL_BATCH (MS-SMB2 2.2.13), the client's values for such fields, and its write size.
const NO_BOUNDS: [&str; 7] =
    ["MAX_PARAMETER_COUNT", "BATCH", "MAX_BUFFER_SIZE", "MAX_TRANSACT", "WRITE_MAX", "SHIFT_MAX", "WINDOW_REACTION"];

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

/// Returns name and value expression of each constant in a source.
fn constants(source: &str) -> impl Iterator<Item = (&str, &str)> {
    source.split("const ").skip(1).filter_map(|rest| {
        let (name, rest) = rest.split_once(':')?;
        let (_, value) = rest.split_once('=')?;
        let (value, _) = value.split_once(';')?;
        Some((name.trim(), value.trim()))
    })
}

fn is_bound(name: &str) -> bool {
    !NO_BOUNDS.contains(&name)
        && (BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
            || ENDINGS.iter().any(|ending| name.ends_with(ending)))
}

/// Evaluates an expression of numbers joined by `*` or `<<`; durations in nanoseconds.
fn value(expression: &str) -> Option<u64> {
    let durations = [("Duration::from_secs(", 1_000_000_000), ("Duration::from_millis(", 1_000_000), ("Nanos(", 1)];
    for (beginning, scale) in durations {
        if let Some(inner) = expression.strip_prefix(beginning) {
            return value(inner.strip_suffix(')')?)?.checked_mul(scale);
        }
    }
    if let Some((left, right)) = expression.split_once("<<") {
        return value(left.trim())?.checked_shl(u32::try_from(value(right.trim())?).ok()?);
    }
    if let Some((left, right)) = expression.split_once('*') {
        return value(left.trim())?.checked_mul(value(right.trim())?);
    }
    expression.replace('_', "").parse().ok()
}

/// Returns the notations that the page may use for a value.
fn forms(value: u64) -> Vec<String> {
    let grouped = |number: u64| {
        let digits = number.to_string();
        let groups: Vec<&str> =
            digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
        groups.join(",")
    };
    let sizes = [(1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB")];
    let times = [(1_000_000, "ms"), (1_000_000_000, "s")];
    let with_unit = sizes.into_iter().chain(times).filter(|(unit, _)| value.is_multiple_of(*unit));
    with_unit.map(|(unit, name)| format!("{} {name}", grouped(value / unit))).chain([grouped(value)]).collect()
}

/// Returns true if the text contains this number, but not as a part of another.
fn says(text: &str, number: &str) -> bool {
    text.match_indices(number).any(|(at, _)| {
        let digit = |c: char| c.is_ascii_digit();
        let before = text[..at].chars().next_back().is_some_and(|c| digit(c) || c == ',' || c == '.');
        let mut behind = text[at + number.len()..].chars();
        let joined = match behind.next() {
            Some(',') => behind.next().is_some_and(digit),
            other => other.is_some_and(digit),
        };
        !before && !joined
    })
}

/// Returns all constants that are bounds.
fn bounds() -> Vec<(PathBuf, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut files = Vec::new();
    CRATES.iter().for_each(|name| sources(&root.join(name).join("src"), &mut files));
    let mut bounds = Vec::new();
    for file in files {
        let source = fs::read_to_string(&file).expect("text");
        let found = constants(&source).filter(|(name, _)| is_bound(name));
        bounds.extend(found.map(|(name, value)| (file.clone(), name.to_owned(), value.to_owned())));
    }
    bounds
}

fn page() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limits.md")).expect("the page")
}

#[test]
fn every_bound_is_on_the_page_of_limits() {
    let (page, bounds) = (page(), bounds());
    for (file, name, _) in &bounds {
        assert!(page.contains(&format!("`{name}`")), "{name} of {} is not on docs/limits.md", file.display());
    }
    assert!(bounds.len() > 40, "only {} bounds were found: has the way they are written changed?", bounds.len());
}

#[test]
fn the_page_of_limits_has_the_values_of_the_source() {
    let (page, bounds) = (page(), bounds());
    let mut compared = 0;
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').collect();
        for (_, name, expression) in bounds.iter().filter(|(_, name, _)| cells[1].contains(&format!("`{name}`"))) {
            // Several constants may share a name; each must match one of the rows with that name.
            let Some(value) = value(expression) else { continue };
            let rows = page.lines().filter(|line| line.starts_with("| `") && line.contains(&format!("`{name}`")));
            let forms = forms(value);
            let said =
                rows.into_iter().any(|row| forms.iter().any(|form| says(row.split('|').nth(2).unwrap_or(""), form)));
            assert!(said, "{name} is {expression}, and docs/limits.md says: {}", cells[2].trim());
            compared += 1;
        }
    }
    assert!(compared > 60, "only {compared} values were compared");
}

#[test]
fn values_are_read_and_found_as_the_page_writes_them() {
    assert_eq!(
        ["8_192", "4 << 20", "64 * 1024", "Duration::from_secs(10)"].map(value),
        [Some(8_192), Some(4 << 20), Some(65_536), Some(10_000_000_000)]
    );
    assert_eq!(forms(65_536), ["64 KiB", "65,536"]);
    assert!(says("up to 1,024 of them", "1,024") && says("2, 64 and 32", "64"));
    assert!(!says("11,024", "1,024") && !says("1,024,000", "1,024") && !says("640", "64"));
}
