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
mod literal;
mod parser;
#[cfg(test)]
mod tests;
pub mod tokens;

use self::columns::{ColumnAccessor, FilterColumn, FilterContext, TextDomain};
use self::literal::{Pattern, Prefix, Scalar, ScalarUnit, Word};
use smbscope_model::{Exchange, Timestamp};
use std::fmt;
use std::str::FromStr;
pub use tokens::{FilterError, Problem, did_you_mean};

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

#[derive(Debug, Clone, PartialEq)]
enum Expression {
    Or(Vec<Expression>),
    And(Vec<Expression>),
    Not(Box<Expression>),
    Test(&'static FilterColumn, FilterCondition),
}

#[derive(Debug, Clone, PartialEq)]
enum FilterCondition {
    Known(bool),
    Flag(bool),
    Order(ComparisonOperator, Scalar),
    Scalars(bool, Vec<Scalar>),
    Words(bool, Vec<Word>),
    Prefixes(bool, Vec<Prefix>),
    Like(bool, Pattern),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ComparisonOperator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl ComparisonOperator {
    const ALL: [ComparisonOperator; 4] = [
        ComparisonOperator::Less,
        ComparisonOperator::LessOrEqual,
        ComparisonOperator::Greater,
        ComparisonOperator::GreaterOrEqual,
    ];

    fn sign(self) -> &'static str {
        match self {
            ComparisonOperator::Less => "<",
            ComparisonOperator::LessOrEqual => "<=",
            ComparisonOperator::Greater => ">",
            ComparisonOperator::GreaterOrEqual => ">=",
        }
    }

    fn holds(self, value: i128, limit: i128) -> bool {
        match self {
            ComparisonOperator::Less => value < limit,
            ComparisonOperator::LessOrEqual => value <= limit,
            ComparisonOperator::Greater => value > limit,
            ComparisonOperator::GreaterOrEqual => value >= limit,
        }
    }
}

impl Expression {
    fn holds(&self, exchange: &Exchange, start: Timestamp, context: &mut FilterContext) -> bool {
        match self {
            Expression::Or(parts) => parts.iter().any(|part| part.holds(exchange, start, context)),
            Expression::And(parts) => parts.iter().all(|part| part.holds(exchange, start, context)),
            Expression::Not(inner) => !inner.holds(exchange, start, context),
            Expression::Test(column, condition) => condition.holds(&column.value, exchange, start, context),
        }
    }

    /// Returns true if a name is compared with `==` to text that `~` would treat as a pattern.
    fn compares_wildcards(&self) -> bool {
        match self {
            Expression::Or(parts) | Expression::And(parts) => parts.iter().any(Expression::compares_wildcards),
            Expression::Not(inner) => inner.compares_wildcards(),
            Expression::Test(_, FilterCondition::Words(_, words)) => words.iter().any(Word::has_wildcards),
            Expression::Test(..) => false,
        }
    }
}

impl FilterCondition {
    fn holds(
        &self,
        column: &ColumnAccessor,
        exchange: &Exchange,
        start: Timestamp,
        context: &mut FilterContext,
    ) -> bool {
        match column {
            ColumnAccessor::Flag(get) => match self {
                FilterCondition::Flag(wanted) => get(exchange) == *wanted,
                _ => false,
            },
            ColumnAccessor::Scalar(_, get) => {
                let value = get(exchange);
                let value = match self {
                    FilterCondition::Known(wanted) => return value.is_some() == *wanted,
                    _ => value,
                };
                value.is_some_and(|value| match self {
                    FilterCondition::Order(order, limit) => order.holds(value, limit.value(start.0)),
                    FilterCondition::Scalars(negated, wanted) => {
                        wanted.iter().any(|wanted| wanted.value(start.0) == value) != *negated
                    }
                    _ => false,
                })
            }
            ColumnAccessor::Address(get) => match self {
                FilterCondition::Prefixes(negated, wanted) => {
                    let endpoint = get(exchange);
                    wanted.iter().any(|prefix| prefix.contains(endpoint)) != *negated
                }
                _ => false,
            },
            ColumnAccessor::Text(names, get) => {
                let value = get(exchange, context);
                if let FilterCondition::Known(wanted) = self {
                    return value.is_some() == *wanted;
                }
                value.is_some_and(|value| match self {
                    FilterCondition::Words(negated, wanted) => {
                        wanted.iter().any(|word| names.any_form(value, |form| word.is(form))) != *negated
                    }
                    FilterCondition::Like(negated, pattern) => {
                        names.any_form(value, |form| pattern.matches(form)) != *negated
                    }
                    _ => false,
                })
            }
        }
    }
}

impl TextDomain {
    #[inline]
    fn any_form(&self, name: &str, passes: impl Fn(&str) -> bool) -> bool {
        self.forms(name).any(passes)
    }

    #[inline]
    fn forms<'n>(&self, name: &'n str) -> impl Iterator<Item = &'n str> + use<'n> {
        let prefixes = match self {
            TextDomain::Known { prefixes, .. } => prefixes,
            TextDomain::Any | TextDomain::Path => &[][..],
        };
        std::iter::once(name).chain(prefixes.iter().filter_map(|prefix| name.strip_prefix(prefix)))
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expression::Or(parts) => joined(parts, " or ", f, |part| matches!(part, Expression::Or(_))),
            Expression::And(parts) => {
                joined(parts, " and ", f, |part| matches!(part, Expression::Or(_) | Expression::And(_)))
            }
            Expression::Not(inner) => {
                f.write_str("not ")?;
                in_parentheses_if(matches!(**inner, Expression::Or(_) | Expression::And(_)), inner, f)
            }
            Expression::Test(column, condition) => {
                let unit = match column.value {
                    ColumnAccessor::Scalar(unit, _) => unit,
                    _ => ScalarUnit::Count,
                };
                f.write_str(column.name)?;
                condition.write(unit, f)
            }
        }
    }
}

impl FilterCondition {
    fn write(&self, unit: ScalarUnit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterCondition::Known(true) => f.write_str(" != null"),
            FilterCondition::Known(false) => f.write_str(" == null"),
            FilterCondition::Flag(true) => Ok(()),
            FilterCondition::Flag(false) => f.write_str(" == false"),
            FilterCondition::Order(order, limit) => {
                write!(f, " {} {}", order.sign(), Literal(unit, *limit))
            }
            FilterCondition::Scalars(negated, wanted) => {
                let wanted: Vec<Literal> = wanted.iter().map(|scalar| Literal(unit, *scalar)).collect();
                one_of(*negated, &wanted, true, f)
            }
            FilterCondition::Words(negated, wanted) => one_of(*negated, wanted, true, f),
            FilterCondition::Prefixes(negated, wanted) => {
                one_of(*negated, wanted, wanted.iter().all(Prefix::is_single), f)
            }
            FilterCondition::Like(negated, pattern) => {
                write!(f, " {} {pattern}", if *negated { "!~" } else { "~" })
            }
        }
    }
}

struct Literal(ScalarUnit, Scalar);

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.1.write(self.0, f)
    }
}

fn one_of(negated: bool, wanted: &[impl fmt::Display], equal: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let (true, [only]) = (equal, wanted) {
        return write!(f, " {} {only}", if negated { "!=" } else { "==" });
    }
    f.write_str(if negated { " not in (" } else { " in (" })?;
    for (i, one) in wanted.iter().enumerate() {
        write!(f, "{}{one}", if i > 0 { ", " } else { "" })?;
    }
    f.write_str(")")
}

fn joined(
    parts: &[Expression],
    separator: &str,
    f: &mut fmt::Formatter<'_>,
    needs_parentheses: impl Fn(&Expression) -> bool,
) -> fmt::Result {
    for (i, part) in parts.iter().enumerate() {
        f.write_str(if i > 0 { separator } else { "" })?;
        in_parentheses_if(needs_parentheses(part), part, f)?;
    }
    Ok(())
}

fn in_parentheses_if(needed: bool, part: &Expression, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if needed { write!(f, "({part})") } else { write!(f, "{part}") }
}
