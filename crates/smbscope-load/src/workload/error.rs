//! Errors in workload definitions: file and line, problem, and remedy.

use std::fmt;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("{path}: {error}")]
    Unreadable {
        path: String,
        #[source]
        error: io::Error,
    },

    #[error("{place}: {what}; {hint}")]
    Invalid { place: Location, what: String, hint: String },

    #[error("{what}; {hint}")]
    Parameter { what: String, hint: String },

    #[error("no workload is called \"{name}\"; {hint}")]
    Unknown { name: String, hint: String },
}

impl WorkloadError {
    pub(super) fn invalid(place: Location, what: impl Into<String>, hint: impl Into<String>) -> WorkloadError {
        WorkloadError::Invalid { place, what: what.into(), hint: hint.into() }
    }
}

/// A position in a file, printed as compilers do: `file:line:column`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub file: String,
    /// Counted from 1.
    pub line: Option<u32>,
    /// In characters, counted from 1.
    pub column: Option<u32>,
}

impl Location {
    pub fn at(file: &str, text: &str, byte: usize) -> Location {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Location { file: file.to_owned(), line: u32::try_from(line).ok(), column: u32::try_from(column).ok() }
    }

    pub(super) fn line(file: &str, line: u32) -> Location {
        Location { file: file.to_owned(), line: Some(line), column: None }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        Ok(())
    }
}

/// Returns `did you mean "x"?` for the nearest name, or the whole list if none is near.
pub(super) fn suggest(given: &str, names: &[&str]) -> String {
    let near = names
        .iter()
        .map(|name| {
            // The first word is often all that is remembered of a name.
            let first = name.split('-').next().unwrap_or_default();
            let distance = |name: &str| strsim::damerau_levenshtein(&given.to_lowercase(), &name.to_lowercase());
            (distance(name).min(1 + distance(first)), name)
        })
        .min()
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 3));
    match near {
        Some((_, name)) => format!("did you mean \"{name}\"? There are: {}", names.join(", ")),
        None => format!("there are: {}", names.join(", ")),
    }
}
