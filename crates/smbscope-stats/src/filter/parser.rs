//! Parser: tokens to syntax tree.
//!
//! ```text
//! or   = and { ("or" | "||") and }
//! and  = not { ("and" | "&&") not }
//! not  = ("not" | "!") not | "(" or ")" | test
//! test = column                                    flags
//!      | column ("==" | "!=") (literal | "null")
//!      | column ("<" | "<=" | ">" | ">=") literal   ordered types
//!      | column ("~" | "!~") pattern                text
//!      | column ["not"] "in" (literal | "(" literal { "," literal } ")")
//! ```
//!
//! A literal is a word or quoted text. The column's type determines its syntax; errors point to the literal.

use super::columns::{COLUMNS, ColumnAccessor, FilterColumn, TextDomain, find};
use super::literal::{Pattern, Prefix, Scalar, Word, has_wildcards};
use super::tokens::{Cursor, FilterError, LocatedProblem, Problem, Token, TokenKind, did_you_mean, tokens};
use super::{ComparisonOperator, Expression, FilterCondition};
use std::borrow::Cow;

/// Limit for nested parentheses and `not`, to bound the recursion.
const DEEPEST: usize = 100;

pub(super) fn parse(text: &str) -> Result<Expression, FilterError> {
    let wrong = |(problem, place): LocatedProblem| problem.at(text, place);
    let tokens = tokens(text).map_err(wrong)?;
    let mut parser = FilterParser { tokens: Cursor::new(text, &tokens), depth: 0 };
    let expression = parser.or().map_err(wrong)?;
    match parser.tokens.peek() {
        None => Ok(expression),
        Some(_) => Err(wrong(parser.tokens.expected("`and`, `or` or the end"))),
    }
}

struct FilterParser<'t, 'a> {
    tokens: Cursor<'t, 'a>,
    depth: usize,
}

impl FilterParser<'_, '_> {
    fn or(&mut self) -> Result<Expression, LocatedProblem> {
        let mut parts = vec![self.and()?];
        while self.tokens.keyword("or") || self.tokens.sign("||") {
            parts.push(self.and()?);
        }
        Ok(flat(parts, Expression::Or, |part| match part {
            Expression::Or(inner) => Ok(inner),
            other => Err(other),
        }))
    }

    fn and(&mut self) -> Result<Expression, LocatedProblem> {
        let mut parts = vec![self.not()?];
        while self.tokens.keyword("and") || self.tokens.sign("&&") {
            parts.push(self.not()?);
        }
        Ok(flat(parts, Expression::And, |part| match part {
            Expression::And(inner) => Ok(inner),
            other => Err(other),
        }))
    }

    fn not(&mut self) -> Result<Expression, LocatedProblem> {
        if self.depth > DEEPEST {
            return Err((
                Problem::new(format!("more than {DEEPEST} levels of parentheses and `not`")),
                self.tokens.place(),
            ));
        }
        self.depth += 1;
        let result = if self.tokens.keyword("not") || self.tokens.sign("!") {
            Ok(Expression::Not(Box::new(self.not()?)))
        } else if self.tokens.takes(&TokenKind::Open) {
            let inner = self.or()?;
            match self.tokens.takes(&TokenKind::Close) {
                true => Ok(inner),
                false => Err(self.tokens.expected("`and`, `or` or `)`")),
            }
        } else {
            self.test()
        };
        self.depth -= 1;
        result
    }

    fn test(&mut self) -> Result<Expression, LocatedProblem> {
        let Some(Token { kind: TokenKind::Word(name), place }) = self.tokens.peek() else {
            return Err(self.tokens.expected("a column"));
        };
        let column = find(name).ok_or_else(|| (unknown_column(name), place.clone()))?;
        self.tokens.skip();
        let condition = match &column.value {
            ColumnAccessor::Flag(_) => self.flag(column),
            ColumnAccessor::Scalar(unit, _) => {
                let read = |text: &str| Scalar::parse(*unit, text);
                let order = ComparisonOperator::ALL.into_iter().find(|order| self.tokens.sign(order.sign()));
                match order {
                    Some(order) => Ok(FilterCondition::Order(order, self.literal(read)?)),
                    None => self.equal(column, read, FilterCondition::Scalars),
                }
            }
            ColumnAccessor::Address(_) => {
                // `==` takes a single address, `in` takes networks as well.
                let is_equal = matches!(self.tokens.peek(), Some(Token { kind: TokenKind::Operator("==" | "!="), .. }));
                let read = |text: &str| match Prefix::parse(text)? {
                    prefix if is_equal && !prefix.is_single() => {
                        let hint = format!("addresses of a network: {} in {text}", column.name);
                        Err(Problem::new("expected a single address").hint(hint))
                    }
                    prefix => Ok(prefix),
                };
                self.equal(column, read, FilterCondition::Prefixes)
            }
            ColumnAccessor::Text(names, _) => {
                let negated = [("~", false), ("!~", true)].into_iter().find(|(sign, _)| self.tokens.sign(sign));
                match negated {
                    Some((_, negated)) => self
                        .literal(|text| Pattern::new(&spelt(names, text)))
                        .map(|p| FilterCondition::Like(negated, p)),
                    None => {
                        self.refuse_wildcards(column)?;
                        self.equal(column, |text| word(names, text), FilterCondition::Words)
                    }
                }
            }
        };
        Ok(Expression::Test(column, condition?))
    }

    /// Rejects `path == *.ini`, which would match nothing: file names can't contain wildcards, except in searches.
    fn refuse_wildcards(&self, column: &FilterColumn) -> Result<(), LocatedProblem> {
        let is_before_value = |kind: &TokenKind<'_>| match kind {
            TokenKind::Operator(sign) => matches!(*sign, "==" | "!="),
            TokenKind::Word(word) => word.eq_ignore_ascii_case("in") || word.eq_ignore_ascii_case("not"),
            kind => *kind == TokenKind::Open,
        };
        let values = self.tokens.rest().iter().skip_while(|token| is_before_value(&token.kind));
        let values = values
            .take_while(|token| matches!(token.kind, TokenKind::Word(_) | TokenKind::Quoted(_) | TokenKind::Comma));
        for Token { kind, place } in values {
            if let TokenKind::Word(word) = kind
                && has_wildcards(word)
            {
                let problem = Problem::new("`*` and `?` are not wildcards here");
                let hint = format!("use ~ for wildcards: {} ~ {word}; in quotes they are literal", column.name);
                return Err((problem.hint(hint), place.clone()));
            }
        }
        Ok(())
    }

    fn flag(&mut self, column: &FilterColumn) -> Result<FilterCondition, LocatedProblem> {
        let negated = if self.tokens.sign("==") {
            false
        } else if self.tokens.sign("!=") {
            true
        } else {
            return match self.tokens.peek() {
                Some(Token { kind: TokenKind::Operator("&&" | "||"), .. }) => Ok(FilterCondition::Flag(true)),
                Some(Token { kind: TokenKind::Operator(_), .. }) => Err(self.not_for(column)),
                Some(Token { kind: TokenKind::Word("in"), .. }) => Err(self.not_for(column)),
                _ => Ok(FilterCondition::Flag(true)),
            };
        };
        self.literal(|text| match text.to_ascii_lowercase().as_str() {
            "true" => Ok(FilterCondition::Flag(!negated)),
            "false" => Ok(FilterCondition::Flag(negated)),
            _ => Err(Problem::new("expected true or false").hint(format!("`{}` alone is a condition", column.name))),
        })
    }

    fn equal<T>(
        &mut self,
        column: &FilterColumn,
        read: impl Fn(&str) -> Result<T, Problem>,
        make: impl Fn(bool, Vec<T>) -> FilterCondition,
    ) -> Result<FilterCondition, LocatedProblem> {
        for (sign, negated) in [("==", false), ("!=", true)] {
            if self.tokens.sign(sign) {
                // Every exchange has addresses, so null is an error there.
                let may_be_unknown = !matches!(column.value, ColumnAccessor::Address(_));
                if may_be_unknown && self.tokens.keyword("null") {
                    return Ok(FilterCondition::Known(negated));
                }
                return Ok(make(negated, vec![self.literal(read)?]));
            }
        }
        let negated = self.tokens.keyword("not");
        if self.tokens.keyword("in") {
            return Ok(make(negated, self.list(read)?));
        }
        if negated {
            return Err(self.tokens.expected("`in`"));
        }
        Err(match self.tokens.peek() {
            Some(Token { kind: TokenKind::Operator(_), .. }) => self.not_for(column),
            _ => self.tokens.expected(&format!("a comparison after {} ({})", column.name, operators(column))),
        })
    }

    fn list<T>(&mut self, read: impl Fn(&str) -> Result<T, Problem>) -> Result<Vec<T>, LocatedProblem> {
        if !self.tokens.takes(&TokenKind::Open) {
            return Ok(vec![self.literal(read)?]);
        }
        let mut all = vec![self.literal(&read)?];
        while self.tokens.takes(&TokenKind::Comma) {
            all.push(self.literal(&read)?);
        }
        match self.tokens.takes(&TokenKind::Close) {
            true => Ok(all),
            false => Err(self.tokens.expected("`,` or `)`")),
        }
    }

    fn literal<T>(&mut self, read: impl FnOnce(&str) -> Result<T, Problem>) -> Result<T, LocatedProblem> {
        let Some(Token { kind, place }) = self.tokens.peek() else { return Err(self.tokens.expected("a value")) };
        let value = match kind {
            TokenKind::Word(word) if word.eq_ignore_ascii_case("null") => {
                return Err((
                    Problem::new("null is allowed with == and != only, for a value that may be unknown"),
                    place.clone(),
                ));
            }
            TokenKind::Word(word) => read(word),
            TokenKind::Quoted(text) => read(text),
            _ => return Err(self.tokens.expected("a value")),
        };
        self.tokens.skip();
        value.map_err(|problem| (problem, place.clone()))
    }

    fn not_for(&self, column: &FilterColumn) -> LocatedProblem {
        let (problem, place) = self.tokens.expected(&operators(column));
        let article = match column.type_name() {
            "address" => "an ",
            "text" | "yes or no" => "",
            _ => "a ",
        };
        (problem.hint(format!("{} is {article}{}", column.name, column.type_name())), place)
    }
}

fn operators(column: &FilterColumn) -> String {
    let operators = match &column.value {
        ColumnAccessor::Flag(_) => "== or !=",
        ColumnAccessor::Scalar(..) => "==, !=, <, <=, >, >= or in",
        ColumnAccessor::Address(_) => "==, != or in",
        ColumnAccessor::Text(..) => "==, !=, ~, !~ or in",
    };
    operators.to_owned()
}

fn unknown_column(name: &str) -> Problem {
    let problem = Problem::new(format!("there is no column `{name}`"));
    if name == "exchange_id" {
        return problem.hint("exchange_id numbers the rows of the table as they are written");
    }
    let names = COLUMNS.iter().map(|column| column.name);
    problem.hint("`smbscope help filters` lists the columns").maybe(did_you_mean(name, names))
}

fn spelt<'a>(names: &TextDomain, text: &'a str) -> Cow<'a, str> {
    match names {
        TextDomain::Path => Cow::Owned(text.replace('/', "\\").trim_start_matches('\\').to_owned()),
        _ => Cow::Borrowed(text),
    }
}

fn word(names: &TextDomain, text: &str) -> Result<Word, Problem> {
    let word = Word::new(&spelt(names, text));
    let TextDomain::Known { all, codes, .. } = names else { return Ok(word) };
    let all = all();
    // `0x00ff`, `0x01/0xc8`; `ERRDOS/ERRbadfile`; `+ SMB_COM_TREE_CONNECT_ANDX`.
    let is_code = *codes && (text.starts_with("0x") || text.contains('/') || text.starts_with('+'));
    if is_code || all.iter().any(|name| names.any_form(name, |form| word.is(form))) {
        return Ok(word);
    }
    let problem = Problem::new(format!("there is no `{text}`"));
    let hint = did_you_mean(text, all.iter().flat_map(|name| names.forms(name)));
    let few = (all.len() <= 12).then(|| format!("there are {}", all.join(", ")));
    Err(problem.maybe(few).maybe(hint))
}

fn flat(
    parts: Vec<Expression>,
    make: impl Fn(Vec<Expression>) -> Expression,
    open: impl Fn(Expression) -> Result<Vec<Expression>, Expression>,
) -> Expression {
    let mut all = Vec::new();
    for part in parts {
        match open(part) {
            Ok(inner) => all.extend(inner),
            Err(part) => all.push(part),
        }
    }
    if all.len() > 1 { make(all) } else { all.swap_remove(0) }
}
