//! Text → tree.
//!
//! ```text
//! or   = and { ("or" | "||") and }
//! and  = not { ("and" | "&&") not }
//! not  = ("not" | "!") not | "(" or ")" | test
//! test = column                                    yes or no
//!      | column ("==" | "!=") (literal | "null")
//!      | column ("<" | "<=" | ">" | ">=") literal   what has an order
//!      | column ("~" | "!~") pattern                text
//!      | column ["not"] "in" (literal | "(" literal { "," literal } ")")
//! ```
//!
//! A literal is a word without blanks, or text in quotes; how it is read is up to the column's type. So there is one
//! kind of word only, and a literal that its column can't read is an error at its place.

use super::columns::{COLUMNS, Column, Names, Value, find};
use super::error::{FilterError, Problem, did_you_mean};
use super::expression::{Condition, Expression, Order};
use super::literal::{Pattern, Prefix, Scalar, Word, has_wildcards, is_bare};
use std::borrow::Cow;
use std::ops::Range;

/// Parentheses and `not` in one another: more is no expression that anyone wrote.
const DEEPEST: usize = 100;

pub(super) fn parse(text: &str) -> Result<Expression, FilterError> {
    let wrong = |(problem, place): Wrong| problem.at(text, place);
    let tokens = tokens(text).map_err(wrong)?;
    let mut parser = Parser { tokens: &tokens, end: text.len(), at: 0, depth: 0 };
    let expression = parser.or().map_err(wrong)?;
    match parser.peek() {
        None => Ok(expression),
        Some(_) => Err(wrong(parser.expected("`and`, `or` or the end"))),
    }
}

type Wrong = (Problem, Range<usize>);

#[derive(Debug, Clone, PartialEq)]
enum Kind<'a> {
    Open,
    Close,
    Comma,
    /// Of signs.
    Operator(&'static str),
    Word(&'a str),
    Quoted(Cow<'a, str>),
}

#[derive(Debug)]
struct Token<'a> {
    kind: Kind<'a>,
    place: Range<usize>,
}

/// Signs, the longer ones first.
const OPERATORS: [&str; 11] = ["==", "!=", "<=", ">=", "!~", "&&", "||", "<", ">", "~", "!"];

fn tokens(text: &str) -> Result<Vec<Token<'_>>, Wrong> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let (kind, length) = match c {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '(' => (Kind::Open, 1),
            ')' => (Kind::Close, 1),
            ',' => (Kind::Comma, 1),
            '"' | '\'' => quoted(rest, c).ok_or_else(|| {
                let hint = format!("a {c} inside is written twice");
                (Problem::new(format!("the text has no closing {c}")).hint(hint), at..text.len())
            })?,
            c if is_bare(c) => {
                let length = rest.find(|c| !is_bare(c)).unwrap_or(rest.len());
                (Kind::Word(&rest[..length]), length)
            }
            c => match OPERATORS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (Kind::Operator(sign), sign.len()),
                None => {
                    let better = match c {
                        '=' => "==",
                        '&' => "&&",
                        _ => "||",
                    };
                    let problem = Problem::new(format!("`{c}` alone means nothing"));
                    return Err((problem.hint(format!("did you mean {better}?")), at..at + 1));
                }
            },
        };
        tokens.push(Token { kind, place: at..at + length });
        at += length;
    }
    Ok(tokens)
}

/// Text in quotes, and how long it is with them.
fn quoted(text: &str, quote: char) -> Option<(Kind<'_>, usize)> {
    let mut from = 1;
    loop {
        let end = from + text.get(from..)?.find(quote)?;
        if text[end + 1..].starts_with(quote) {
            from = end + 2;
            continue;
        }
        let inner = &text[1..end];
        let inner = match inner.contains(quote) {
            true => Cow::Owned(inner.replace(&String::from_iter([quote, quote]), &quote.to_string())),
            false => Cow::Borrowed(inner),
        };
        return Some((Kind::Quoted(inner), end + 1));
    }
}

struct Parser<'t, 'a> {
    tokens: &'t [Token<'a>],
    /// Length of the expression.
    end: usize,
    at: usize,
    depth: usize,
}

impl<'t, 'a> Parser<'t, 'a> {
    fn or(&mut self) -> Result<Expression, Wrong> {
        let mut parts = vec![self.and()?];
        while self.keyword("or") || self.sign("||") {
            parts.push(self.and()?);
        }
        Ok(flat(parts, Expression::Or, |part| match part {
            Expression::Or(inner) => Ok(inner),
            other => Err(other),
        }))
    }

    fn and(&mut self) -> Result<Expression, Wrong> {
        let mut parts = vec![self.not()?];
        while self.keyword("and") || self.sign("&&") {
            parts.push(self.not()?);
        }
        Ok(flat(parts, Expression::And, |part| match part {
            Expression::And(inner) => Ok(inner),
            other => Err(other),
        }))
    }

    fn not(&mut self) -> Result<Expression, Wrong> {
        if self.depth > DEEPEST {
            return Err((Problem::new(format!("more than {DEEPEST} levels of parentheses and `not`")), self.place()));
        }
        self.depth += 1;
        let result = if self.keyword("not") || self.sign("!") {
            Ok(Expression::Not(Box::new(self.not()?)))
        } else if self.takes(&Kind::Open) {
            let inner = self.or()?;
            match self.takes(&Kind::Close) {
                true => Ok(inner),
                false => Err(self.expected("`and`, `or` or `)`")),
            }
        } else {
            self.test()
        };
        self.depth -= 1;
        result
    }

    fn test(&mut self) -> Result<Expression, Wrong> {
        let Some(Token { kind: Kind::Word(name), place }) = self.peek() else {
            return Err(self.expected("a column"));
        };
        let column = find(name).ok_or_else(|| (unknown_column(name), place.clone()))?;
        self.at += 1;
        let condition = match &column.value {
            Value::Flag(_) => self.flag(column),
            Value::Scalar(unit, _) => {
                let read = |text: &str| Scalar::parse(*unit, text);
                let order = Order::ALL.into_iter().find(|order| self.sign(order.sign()));
                match order {
                    Some(order) => Ok(Condition::Order(order, self.literal(read)?)),
                    None => self.equal(column, read, Condition::Scalars),
                }
            }
            Value::Address(_) => {
                // `==` asks for one host, `in` for those of a network.
                let is_equal = matches!(self.peek(), Some(Token { kind: Kind::Operator("==" | "!="), .. }));
                let read = |text: &str| match Prefix::parse(text)? {
                    prefix if is_equal && !prefix.is_single() => {
                        let hint = format!("addresses of a network: {} in {text}", column.name);
                        Err(Problem::new("expected a single address").hint(hint))
                    }
                    prefix => Ok(prefix),
                };
                self.equal(column, read, Condition::Prefixes)
            }
            Value::Text(names, _) => {
                let negated = [("~", false), ("!~", true)].into_iter().find(|(sign, _)| self.sign(sign));
                match negated {
                    Some((_, negated)) => {
                        self.literal(|text| Pattern::new(&spelt(names, text))).map(|p| Condition::Like(negated, p))
                    }
                    None => {
                        self.refuse_wildcards(column)?;
                        self.equal(column, |text| word(names, text), Condition::Words)
                    }
                }
            }
        };
        Ok(Expression::Test(column, condition?))
    }

    /// `path == *.ini` would hold for no file: no name has such characters, other than patterns of a search.
    fn refuse_wildcards(&self, column: &Column) -> Result<(), Wrong> {
        let is_before_value = |kind: &Kind<'_>| match kind {
            Kind::Operator(sign) => matches!(*sign, "==" | "!="),
            Kind::Word(word) => word.eq_ignore_ascii_case("in") || word.eq_ignore_ascii_case("not"),
            kind => *kind == Kind::Open,
        };
        let values = self.tokens[self.at..].iter().skip_while(|token| is_before_value(&token.kind));
        let values = values.take_while(|token| matches!(token.kind, Kind::Word(_) | Kind::Quoted(_) | Kind::Comma));
        for Token { kind, place } in values {
            if let Kind::Word(word) = kind
                && has_wildcards(word)
            {
                let problem = Problem::new("`*` and `?` are no wildcards here");
                let hint =
                    format!("wildcards go with ~: {} ~ {word}; in quotes they stand for themselves", column.name);
                return Err((problem.hint(hint), place.clone()));
            }
        }
        Ok(())
    }

    /// What may stand behind a column that is yes or no.
    fn flag(&mut self, column: &Column) -> Result<Condition, Wrong> {
        let negated = if self.sign("==") {
            false
        } else if self.sign("!=") {
            true
        } else {
            return match self.peek() {
                Some(Token { kind: Kind::Operator("&&" | "||"), .. }) => Ok(Condition::Flag(true)),
                Some(Token { kind: Kind::Operator(_), .. }) => Err(self.not_for(column)),
                Some(Token { kind: Kind::Word("in"), .. }) => Err(self.not_for(column)),
                _ => Ok(Condition::Flag(true)),
            };
        };
        self.literal(|text| match text.to_ascii_lowercase().as_str() {
            "true" => Ok(Condition::Flag(!negated)),
            "false" => Ok(Condition::Flag(negated)),
            _ => Err(Problem::new("expected true or false").hint(format!("`{}` alone is a condition", column.name))),
        })
    }

    /// `==`, `!=`, `in` and `not in`, which every other type has.
    fn equal<T>(
        &mut self,
        column: &Column,
        read: impl Fn(&str) -> Result<T, Problem>,
        make: impl Fn(bool, Vec<T>) -> Condition,
    ) -> Result<Condition, Wrong> {
        for (sign, negated) in [("==", false), ("!=", true)] {
            if self.sign(sign) {
                // Every exchange has addresses, so there null is as wrong as any other word.
                let may_be_unknown = !matches!(column.value, Value::Address(_));
                if may_be_unknown && self.keyword("null") {
                    return Ok(Condition::Known(negated));
                }
                return Ok(make(negated, vec![self.literal(read)?]));
            }
        }
        let negated = self.keyword("not");
        if self.keyword("in") {
            return Ok(make(negated, self.list(read)?));
        }
        if negated {
            return Err(self.expected("`in`"));
        }
        Err(match self.peek() {
            Some(Token { kind: Kind::Operator(_), .. }) => self.not_for(column),
            _ => self.expected(&format!("a comparison after {} ({})", column.name, operators(column))),
        })
    }

    /// A literal, or several in parentheses.
    fn list<T>(&mut self, read: impl Fn(&str) -> Result<T, Problem>) -> Result<Vec<T>, Wrong> {
        if !self.takes(&Kind::Open) {
            return Ok(vec![self.literal(read)?]);
        }
        let mut all = vec![self.literal(&read)?];
        while self.takes(&Kind::Comma) {
            all.push(self.literal(&read)?);
        }
        match self.takes(&Kind::Close) {
            true => Ok(all),
            false => Err(self.expected("`,` or `)`")),
        }
    }

    fn literal<T>(&mut self, read: impl FnOnce(&str) -> Result<T, Problem>) -> Result<T, Wrong> {
        let Some(Token { kind, place }) = self.peek() else { return Err(self.expected("a value")) };
        let value = match kind {
            Kind::Word(word) if word.eq_ignore_ascii_case("null") => {
                return Err((
                    Problem::new("null goes with == and != only, and with what may be unknown"),
                    place.clone(),
                ));
            }
            Kind::Word(word) => read(word),
            Kind::Quoted(text) => read(text),
            _ => return Err(self.expected("a value")),
        };
        self.at += 1;
        value.map_err(|problem| (problem, place.clone()))
    }

    fn peek(&self) -> Option<&'t Token<'a>> {
        self.tokens.get(self.at)
    }

    fn place(&self) -> Range<usize> {
        self.peek().map_or(self.end..self.end, |token| token.place.clone())
    }

    fn takes(&mut self, kind: &Kind<'_>) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == *kind);
        self.at += usize::from(found);
        found
    }

    fn sign(&mut self, sign: &'static str) -> bool {
        self.takes(&Kind::Operator(sign))
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek(), Some(Token { kind: Kind::Word(word), .. })
            if word.eq_ignore_ascii_case(keyword));
        self.at += usize::from(found);
        found
    }

    fn expected(&self, what: &str) -> Wrong {
        let found = match self.peek().map(|token| &token.kind) {
            None => "the end".to_owned(),
            Some(Kind::Open) => "`(`".to_owned(),
            Some(Kind::Close) => "`)`".to_owned(),
            Some(Kind::Comma) => "`,`".to_owned(),
            Some(Kind::Operator(sign)) => format!("`{sign}`"),
            Some(Kind::Word(word)) => format!("`{word}`"),
            Some(Kind::Quoted(_)) => "text".to_owned(),
        };
        (Problem::new(format!("expected {what}, found {found}")), self.place())
    }

    /// An operator that the column's type has no use for.
    fn not_for(&self, column: &Column) -> Wrong {
        let (problem, place) = self.expected(&operators(column));
        let article = match column.type_name() {
            "address" => "an ",
            "text" | "yes or no" => "",
            _ => "a ",
        };
        (problem.hint(format!("{} is {article}{}", column.name, column.type_name())), place)
    }
}

/// What may stand behind a column.
fn operators(column: &Column) -> String {
    let operators = match &column.value {
        Value::Flag(_) => "== or !=",
        Value::Scalar(..) => "==, !=, <, <=, >, >= or in",
        Value::Address(_) => "==, != or in",
        Value::Text(..) => "==, !=, ~, !~ or in",
    };
    operators.to_owned()
}

fn unknown_column(name: &str) -> Problem {
    let problem = Problem::new(format!("there is no column `{name}`"));
    if name == "exchange_id" {
        return problem.hint("exchange_id numbers the rows of the table as they are written");
    }
    let names = COLUMNS.iter().map(|column| column.name);
    problem.hint("docs/filter.md lists the columns").maybe(did_you_mean(name, names))
}

/// A path as it is compared.
fn spelt<'a>(names: &Names, text: &'a str) -> Cow<'a, str> {
    match names {
        Names::Path => Cow::Owned(text.replace('/', "\\").trim_start_matches('\\').to_owned()),
        _ => Cow::Borrowed(text),
    }
}

/// A name or any other text; names that do not exist are refused.
fn word(names: &Names, text: &str) -> Result<Word, Problem> {
    let word = Word::new(&spelt(names, text));
    let Names::Known { all, codes, .. } = names else { return Ok(word) };
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

/// A list of parts in which no part is a list of the same kind.
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
