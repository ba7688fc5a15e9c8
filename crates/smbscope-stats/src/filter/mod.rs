//! Which exchanges to look at: the expressions of `--filter`, over the columns of the exchange table.
//!
//! ```text
//! group == Read and response_time > 50ms and path ~ "*.docx"
//! ```
//!
//! An expression is parsed once into a [`Filter`], with every literal read as the type of its column; so a comparison
//! that makes no sense is an error before any packet is read. A [`Matcher`] then looks at one exchange after the other,
//! without allocating. The language is described in `docs/filter.md`.
//!
//! | module | holds |
//! |---|---|
//! | `columns` | the table of columns: name, type, and how to get the value from an exchange |
//! | `expression` | the tree of a parsed expression, its evaluation, and how it is written |
//! | `literal` | durations, sizes, points in time, addresses, patterns: read and written |
//! | [`tokens`] | text → tokens, for conditions of another kind too |
//! | `parser` | tokens → tree |
//! | `error` | what is wrong with an expression, where, and what to write instead |

mod columns;
mod error;
mod expression;
mod literal;
mod parser;
pub mod tokens;

#[cfg(test)]
mod tests;

pub use error::{FilterError, Problem, did_you_mean};

use columns::FilterContext;
use expression::Expression;
use smbscope_model::{Exchange, Timestamp};
use std::fmt;
use std::str::FromStr;

/// A condition on exchanges.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    expression: Expression,
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Filter, FilterError> {
        Ok(Filter { expression: parser::parse(text)? })
    }
}

/// The expression in its plainest form, which parses to the same filter.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expression.fmt(f)
    }
}

impl Filter {
    /// The names of the columns that an expression may use, with the names of their types.
    pub fn columns() -> impl Iterator<Item = (&'static str, &'static str)> {
        columns::COLUMNS.iter().map(|column| (column.name, column.type_name()))
    }

    /// Whether it compares names with text in quotes that would be a pattern behind `~`, which few names are equal to.
    pub fn compares_wildcards(&self) -> bool {
        self.expression.compares_wildcards()
    }

    /// Something that looks at exchanges of these captures, by [`CaptureId`](smbscope_model::CaptureId).
    pub fn matcher(&self, captures: &[String]) -> Matcher<'_> {
        Matcher {
            expression: &self.expression,
            context: FilterContext { captures: captures.into(), scratch: String::new() },
        }
    }
}

/// A filter at work.
#[derive(Debug, Clone)]
pub struct Matcher<'f> {
    expression: &'f Expression,
    context: FilterContext,
}

impl Matcher<'_> {
    /// Whether the filter lets an exchange pass. Times relative to the beginning are relative to `start`, that of the
    /// captures.
    pub fn matches(&mut self, exchange: &Exchange, start: Timestamp) -> bool {
        self.expression.holds(exchange, start, &mut self.context)
    }
}
