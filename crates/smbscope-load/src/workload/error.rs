//! Why a workload cannot be used: which file and line, what, and what to do.

use std::fmt;
use std::io;

/// Why a workload cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        #[source]
        error: io::Error,
    },

    /// The file says something that is no workload.
    #[error("{place}: {what}; {hint}")]
    Invalid {
        /// Where.
        place: Location,
        /// What is wrong.
        what: String,
        /// What to do.
        hint: String,
    },

    /// A parameter that the workload has not, or a value that it can't have.
    #[error("{what}; {hint}")]
    Parameter {
        /// What is wrong.
        what: String,
        /// What to do.
        hint: String,
    },

    /// There is no built-in workload of that name.
    #[error("no workload is called \"{name}\"; {hint}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        hint: String,
    },
}

impl WorkloadError {
    pub(super) fn invalid(place: Location, what: impl Into<String>, hint: impl Into<String>) -> WorkloadError {
        WorkloadError::Invalid { place, what: what.into(), hint: hint.into() }
    }
}

/// A place in a file, printed as compilers do: `file:line:column`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Column in characters, from 1.
    pub column: Option<u32>,
}

impl Location {
    /// Of a byte in the text of a file.
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

/// `did you mean "x"?` for the nearest name, otherwise the whole list.
pub(super) fn suggest(given: &str, names: &[&str]) -> String {
    let near = names
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&given.to_lowercase(), &name.to_lowercase()), name))
        .min()
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 3));
    match near {
        Some((_, name)) => format!("did you mean \"{name}\"? There are: {}", names.join(", ")),
        None => format!("there are: {}", names.join(", ")),
    }
}
