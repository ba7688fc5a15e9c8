//! What to look at next: a command filled in for what was measured, to paste.

use crate::format::clean;
use serde::{Deserialize, Serialize};
use smbscope_model::Nanos;

/// A command that looks closer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Next {
    /// What it shows.
    pub label: String,
    /// The command line, quoted for a shell. `FILE` stands for captures that cannot be named.
    pub command: String,
}

impl Next {
    pub(crate) fn new(label: &str, command: String) -> Next {
        Next { label: label.to_owned(), command }
    }
}

/// A file by its name, where a line holds it and a shell takes it.
pub(crate) fn file(name: &str) -> Option<String> {
    if name.is_empty() || name == "-" || clean(name) != name || name.contains('\u{fffd}') {
        return None;
    }
    Some(if name.starts_with('-') { quoted(&format!("./{name}")) } else { quoted(name) })
}

/// A time as options and filters take it, in one word.
pub(crate) fn time(time: Nanos) -> String {
    time.to_string().replace(' ', "")
}

/// A word of a shell (POSIX.1-2024, Shell Command Language, 2.2.2).
pub fn quoted(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "._/-+,:@%".contains(c);
    match !text.is_empty() && text.chars().all(is_safe) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
