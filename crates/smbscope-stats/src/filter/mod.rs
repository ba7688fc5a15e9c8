//! Filters: the expressions of `--filter` over the columns of the exchange table.
//!
//! ```text
//! group == Read and response_time > 50ms and path ~ "*.docx"
//! ```
//!
//! An expression is parsed once into a [`Filter`], which checks every literal against the type of its column before
//! packets are read. A [`Matcher`] tests exchanges without allocating. Text passes through `tokens` and `parser` to the
//! tree in `expression`; `columns` and `literal` define names, types and values. `docs/filter.md` describes the
//! language.

mod columns;
mod expression;
mod literal;
mod parser;
pub mod tokens;

#[cfg(test)]
mod tests;

pub use tokens::{FilterError, Problem, did_you_mean};

use columns::FilterContext;
use expression::Expression;
use smbscope_model::{Exchange, Timestamp};
use std::fmt;
use std::str::FromStr;

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

/// Writes the expression in canonical form, which parses to the same filter.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expression.fmt(f)
    }
}

impl Filter {
    pub fn columns() -> impl Iterator<Item = (&'static str, &'static str)> {
        columns::COLUMNS.iter().map(|column| (column.name, column.type_name()))
    }

    /// Returns true if `==` compares a name with a pattern, which `~` would match: probably a mistake.
    pub fn compares_wildcards(&self) -> bool {
        self.expression.compares_wildcards()
    }

    pub fn matcher(&self, captures: &[String]) -> Matcher<'_> {
        Matcher {
            expression: &self.expression,
            context: FilterContext { captures: captures.into(), scratch: String::new() },
        }
    }
}

#[derive(Debug, Clone)]
pub struct Matcher<'f> {
    expression: &'f Expression,
    context: FilterContext,
}

impl Matcher<'_> {
    /// Returns true if the exchange passes. `start` is the time of the first packet, to which relative times refer.
    pub fn matches(&mut self, exchange: &Exchange, start: Timestamp) -> bool {
        self.expression.holds(exchange, start, &mut self.context)
    }
}
