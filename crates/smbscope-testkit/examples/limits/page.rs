//! Generates the tables of docs/limits.md from the sources. A bound is a constant with a name like those below; the
//! first sentence of its comment is the reason.

use std::fs;
use std::path::{Path, PathBuf};

/// Heading of the first table. Everything from here on is generated.
const FROM: &str = "\n## Reading\n";

/// Headings, and the sources below `crates/` whose bounds they list. Of two paths that fit, the longer one decides.
const SECTIONS: [(&str, &[&str]); 6] = [
    ("Reading", &["smbscope-capture/src"]),
    ("Connections", &["smbscope-analyze/src", "smbscope-crypto/src", "smbscope-wire/src", "smbscope-model/src"]),
    (
        "Slim copies",
        &[
            "smbscope-analyze/src/slim",
            "smbscope-analyze/src/pseudonym",
            "smbscope-capture/src/writer.rs",
            "smbscope-capture/src/decode/outline.rs",
        ],
    ),
    ("Statistics", &["smbscope-stats/src"]),
    ("Causes", &["smbscope-diagnose/src"]),
    (
        "Load, recordings, studies",
        &["smbscope-client/src", "smbscope-load/src", "smbscope-explain/src", "smbscope-run/src"],
    ),
];

/// Prefixes and suffixes of the names of bounds.
const BEGINNINGS: [&str; 7] = ["MAX_", "RECENT_", "WINDOW_", "BATCH", "CHUNK_", "CHUNKS_", "FEW_"];
const ENDINGS: [&str; 4] = ["_MAX", "_MIN", "_HAND", "_TIMEOUTS"];

/// Constants with such names that are not bounds: fields of the specification, like MaxParameterCount (MS-CIFS
/// 2.2.4.46.1) and SMB2_OPLOCK_LEVEL_BATCH (MS-SMB2 2.2.13), the client's values for such fields, its write size, and
/// thresholds of the diagnosis.
const NO_BOUNDS: [&str; 10] = [
    "MAX_PARAMETER_COUNT",
    "BATCH",
    "MAX_BUFFER_SIZE",
    "MAX_TRANSACT",
    "WRITE_MAX",
    "SHIFT_MAX",
    "WINDOW_REACTION",
    "WINDOW_LIMITED",
    "WINDOW_MAX",
    "UNTIMED_MAX",
];

/// A constant of a source.
pub(crate) struct Constant {
    /// File below `crates/`.
    pub(crate) file: PathBuf,
    pub(crate) name: String,
    /// Text of its comment, in one line.
    comment: String,
    is_time: bool,
    expression: String,
}

/// Returns the page with up-to-date tables.
pub(crate) fn updated(page: &str) -> String {
    let (before, _) = page.split_once(FROM).expect("docs/limits.md has the heading of the first table");
    let constants = constants();
    let mut tables: Vec<String> = SECTIONS.iter().map(|(title, _)| format!("\n## {title}\n\n{HEAD}")).collect();
    for bound in constants.iter().filter(|constant| is_bound(&constant.name)) {
        tables[section(&bound.file)] += &row(bound, &constants);
    }
    format!("{before}{}", tables.concat())
}

fn section(file: &Path) -> usize {
    let paths = SECTIONS.iter().enumerate().flat_map(|(place, (_, paths))| paths.iter().map(move |path| (path, place)));
    let fitting = paths.filter(|(path, _)| file.starts_with(path));
    fitting.max_by_key(|(path, _)| path.len()).expect("a crate of the list").1
}

const HEAD: &str = "|constant|value||\n|---|---:|---|\n";

/// Returns the row of a bound.
pub(crate) fn row(bound: &Constant, constants: &[Constant]) -> String {
    let (file, name) = (bound.file.display(), &bound.name);
    let reason = first_sentence(&bound.comment);
    assert!(!reason.is_empty(), "{file}: {name} needs a comment: the bound, and what happens beyond it");
    let known = |name: &str| {
        let same = constants.iter().filter(|one| one.name == name && one.file.starts_with(crate_of(&bound.file)));
        same.map(|one| one.expression.as_str()).next()
    };
    let value = value(&bound.expression, &known);
    let value = value.unwrap_or_else(|| panic!("{file}: the value of {name} can't be read: {}", bound.expression));
    let is_size = reason.split(|c: char| !c.is_alphabetic()).any(|word| word.eq_ignore_ascii_case("bytes"));
    let shown = if bound.is_time {
        in_units(value, &TIMES)
    } else if is_size {
        in_units(value, &SIZES)
    } else {
        grouped(value)
    };
    format!("|`{name}`|{shown}|{reason}|\n")
}

fn crate_of(file: &Path) -> &Path {
    file.iter().next().map_or(file, Path::new)
}

/// Returns the text up to the first full stop, without it.
fn first_sentence(comment: &str) -> &str {
    comment.split_once(". ").map_or(comment, |(first, _)| first).trim_end_matches('.')
}

/// Returns all constants of the crates in [`SECTIONS`], by file and line.
pub(crate) fn constants() -> Vec<Constant> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut files = Vec::new();
    for path in SECTIONS.iter().flat_map(|(_, paths)| *paths) {
        assert!(root.join(path).exists(), "{path} is no source any more");
        if path.ends_with("/src") {
            sources(&root.join(path), &mut files);
        }
    }
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let source = fs::read_to_string(&file).expect("text");
        read(file.strip_prefix(&root).expect("below the root"), &source, &mut found);
    }
    found
}

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

/// Adds the constants of a source, with the comments above them.
fn read(file: &Path, source: &str, found: &mut Vec<Constant>) {
    let mut comment: Vec<&str> = Vec::new();
    for (start, line) in offsets(source) {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("///") {
            comment.push(text.trim());
        } else if !line.starts_with("#[") {
            found.extend(constant(&source[start..], line).map(|(name, kind, expression)| Constant {
                file: file.to_owned(),
                name: name.to_owned(),
                comment: comment.join(" "),
                is_time: matches!(kind, "Nanos" | "Duration"),
                expression: expression.to_owned(),
            }));
            comment.clear();
        }
    }
}

fn offsets(source: &str) -> impl Iterator<Item = (usize, &str)> {
    source.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    })
}

/// Returns name, type and value of the constant that the line declares; the value may go on below.
fn constant<'a>(rest: &'a str, line: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (visibility, _) = line.split_once("const ")?;
    if !(visibility.is_empty() || visibility.starts_with("pub")) {
        return None;
    }
    let (_, rest) = rest.split_once("const ")?;
    let (name, rest) = rest.split_once(':')?;
    let (kind, rest) = rest.split_once('=')?;
    let (value, _) = rest.split_once(';')?;
    Some((name.trim(), kind.trim(), value.trim()))
}

/// Returns true if a constant of this name is a bound.
pub(crate) fn is_bound(name: &str) -> bool {
    !NO_BOUNDS.contains(&name)
        && (BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
            || ENDINGS.iter().any(|ending| name.ends_with(ending)))
}

/// Evaluates an expression of numbers and known constants, joined by `<<`, `+` and `*`; durations in nanoseconds.
pub(crate) fn value<'a>(expression: &str, known: &impl Fn(&str) -> Option<&'a str>) -> Option<u64> {
    let expression = expression.trim();
    for operator in ["<<", "+", "*"] {
        if let Some((left, right)) = split(expression, operator) {
            let (left, right) = (value(left, known)?, value(right, known)?);
            return match operator {
                "<<" => left.checked_shl(u32::try_from(right).ok()?),
                "+" => left.checked_add(right),
                _ => left.checked_mul(right),
            };
        }
    }
    let wrapped =
        [("Duration::from_secs(", 1_000_000_000), ("Duration::from_millis(", 1_000_000), ("Nanos(", 1), ("(", 1)];
    for (beginning, scale) in wrapped {
        if let Some(inner) = expression.strip_prefix(beginning) {
            return value(inner.strip_suffix(')')?, known)?.checked_mul(scale);
        }
    }
    let digits = expression.replace('_', "");
    match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.strip_suffix(".0").unwrap_or(&digits).parse().ok(),
    }
    .or_else(|| value(known(expression)?, known))
}

/// Splits an expression at the last occurrence of the operator outside of parentheses.
fn split<'a>(expression: &'a str, operator: &str) -> Option<(&'a str, &'a str)> {
    let outside = |at: usize| {
        let depth = |sign| expression[..at].matches(sign).count();
        depth('(') == depth(')')
    };
    let (at, _) = expression.rmatch_indices(operator).find(|(at, _)| outside(*at))?;
    Some((&expression[..at], &expression[at + operator.len()..]))
}

const SIZES: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
const TIMES: [(u64, &str); 2] = [(1_000_000_000, "s"), (1_000_000, "ms")];

/// Formats a value in the largest unit that divides it.
pub(crate) fn in_units(value: u64, units: &[(u64, &str)]) -> String {
    match units.iter().find(|(unit, _)| value.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", grouped(value / unit)),
        None => grouped(value),
    }
}

/// Formats a number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    groups.map(|group| str::from_utf8(group).expect("digits")).collect::<Vec<_>>().join(",")
}
