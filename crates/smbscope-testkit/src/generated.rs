//! Files with parts that are generated from the code: pages of `docs/`, and the Python package.

use std::{env, fs, io};

/// Returns the text with the part between `from` and `to` replaced. Panics if one of them is missing.
pub fn replaced(text: &str, from: &str, to: &str, part: &str) -> String {
    let missing = |what: &str| -> ! { panic!("{what:?} is missing") };
    let (before, rest) = text.split_once(from).unwrap_or_else(|| missing(from));
    let (_, after) = rest.split_once(to).unwrap_or_else(|| missing(to));
    format!("{before}{from}{part}{to}{after}")
}

/// Updates the file that is named by the only argument of the program.
pub fn update(updated: impl Fn(&str) -> String) -> io::Result<()> {
    let path = env::args_os().nth(1).expect("the page is the only argument");
    let old = fs::read_to_string(&path)?;
    fs::write(&path, updated(&old))
}
