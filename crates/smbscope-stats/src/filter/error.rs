//! Errors in expressions: one sentence with the place and the expectation, a hint where possible, and the expression
//! with a marker below the place.

use std::fmt;
use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    place: Range<usize>,
    expression: String,
    problem: Problem,
}

impl std::error::Error for FilterError {}

impl FilterError {
    /// Position of the error in characters, starting at 1.
    pub fn position(&self) -> usize {
        self.expression.get(..self.place.start).map_or(0, |before| before.chars().count()) + 1
    }

    pub fn sentence(&self) -> String {
        self.problem.to_string()
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "character {}: {}", self.position(), self.problem)?;
        // Keeps the expression on one line, so that the marker lines up.
        let line: String = self.expression.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let width = self.expression.get(self.place.clone()).map_or(1, |wrong| wrong.chars().count().max(1));
        write!(f, "\n  {line}\n  {:indent$}{}", "", "^".repeat(width), indent = self.position() - 1)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    what: String,
    hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

impl Problem {
    pub fn new(what: impl Into<String>) -> Problem {
        Problem { what: what.into(), hint: None }
    }

    pub fn hint(self, hint: impl Into<String>) -> Problem {
        Problem { hint: Some(hint.into()), ..self }
    }

    pub fn maybe(self, hint: Option<String>) -> Problem {
        Problem { hint: hint.or(self.hint), ..self }
    }

    pub fn at(self, expression: &str, place: Range<usize>) -> FilterError {
        FilterError { place, expression: expression.to_owned(), problem: self }
    }
}

pub fn did_you_mean<'n>(wrong: &str, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    // Accepts a typing error or a missing word, and names about as similar as the best match; more would mislead.
    const NEAR: f64 = 0.8;
    const AS_NEAR: f64 = 0.05;
    let wrong = wrong.to_lowercase();
    let mut near: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&wrong, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= NEAR)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    near.dedup_by_key(|(_, name)| *name);
    let nearest = near.first().map_or(1.0, |(likeness, _)| *likeness);
    near.retain(|(likeness, _)| nearest - likeness <= AS_NEAR);
    let named: Vec<&str> = near.iter().take(3).map(|(_, name)| *name).collect();
    (!named.is_empty()).then(|| format!("did you mean {}?", named.join(" or ")))
}
