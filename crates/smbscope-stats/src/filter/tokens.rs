//! Tokenizer for filters and other conditions with the same syntax, a cursor over the tokens, and errors with a place.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

pub type LocatedProblem = (Problem, Range<usize>);

#[derive(Debug, Clone, PartialEq)]
pub enum TokenKind<'a> {
    Open,
    Close,
    Comma,
    Operator(&'static str),
    Word(&'a str),
    Quoted(Cow<'a, str>),
}

#[derive(Debug)]
pub struct Token<'a> {
    pub kind: TokenKind<'a>,
    pub place: Range<usize>,
}

/// Longer operators first, so that they win.
const OPERATORS: [&str; 11] = ["==", "!=", "<=", ">=", "!~", "&&", "||", "<", ">", "~", "!"];

pub(super) fn is_bare(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, '(' | ')' | ',' | '"' | '\'' | '=' | '!' | '<' | '>' | '~' | '&' | '|')
}

pub fn tokens(text: &str) -> Result<Vec<Token<'_>>, LocatedProblem> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let (kind, length) = match c {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '(' => (TokenKind::Open, 1),
            ')' => (TokenKind::Close, 1),
            ',' => (TokenKind::Comma, 1),
            '"' | '\'' => quoted(rest, c).ok_or_else(|| {
                let hint = format!("a {c} inside is written twice");
                (Problem::new(format!("the text has no closing {c}")).hint(hint), at..text.len())
            })?,
            c if is_bare(c) => {
                let length = rest.find(|c| !is_bare(c)).unwrap_or(rest.len());
                (TokenKind::Word(&rest[..length]), length)
            }
            c => match OPERATORS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (TokenKind::Operator(sign), sign.len()),
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

fn quoted(text: &str, quote: char) -> Option<(TokenKind<'_>, usize)> {
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
        return Some((TokenKind::Quoted(inner), end + 1));
    }
}

#[derive(Debug)]
pub struct Cursor<'t, 'a> {
    tokens: &'t [Token<'a>],
    end: usize,
    at: usize,
}

impl<'t, 'a> Cursor<'t, 'a> {
    pub fn new(text: &str, tokens: &'t [Token<'a>]) -> Cursor<'t, 'a> {
        Cursor { tokens, end: text.len(), at: 0 }
    }

    pub fn rest(&self) -> &'t [Token<'a>] {
        &self.tokens[self.at..]
    }

    pub fn skip(&mut self) {
        self.at += 1;
    }

    pub fn peek(&self) -> Option<&'t Token<'a>> {
        self.tokens.get(self.at)
    }

    pub fn place(&self) -> Range<usize> {
        self.peek().map_or(self.end..self.end, |token| token.place.clone())
    }

    pub fn takes(&mut self, kind: &TokenKind<'_>) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == *kind);
        self.at += usize::from(found);
        found
    }

    pub fn sign(&mut self, sign: &'static str) -> bool {
        self.takes(&TokenKind::Operator(sign))
    }

    pub fn keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek(), Some(Token { kind: TokenKind::Word(word), .. })
            if word.eq_ignore_ascii_case(keyword));
        self.at += usize::from(found);
        found
    }

    /// Takes a number and its unit: the words up to `and`, an operator or the end, with their byte range.
    pub fn value<'s>(&mut self, text: &'s str) -> Option<(&'s str, Range<usize>)> {
        let start = self.place().start;
        let mut end = start;
        while let Some(Token { kind: TokenKind::Word(word), place }) = self.peek()
            && !word.eq_ignore_ascii_case("and")
        {
            self.skip();
            end = place.end;
        }
        (end > start).then(|| (&text[start..end], start..end))
    }

    pub fn expected(&self, what: &str) -> LocatedProblem {
        let found = match self.peek().map(|token| &token.kind) {
            None => "the end".to_owned(),
            Some(TokenKind::Open) => "`(`".to_owned(),
            Some(TokenKind::Close) => "`)`".to_owned(),
            Some(TokenKind::Comma) => "`,`".to_owned(),
            Some(TokenKind::Operator(sign)) => format!("`{sign}`"),
            Some(TokenKind::Word(word)) => format!("`{word}`"),
            Some(TokenKind::Quoted(_)) => "text".to_owned(),
        };
        (Problem::new(format!("expected {what}, found {found}")), self.place())
    }
}

/// Prints one sentence, a hint if any, and the expression with a marker below the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    place: Range<usize>,
    expression: String,
    problem: Problem,
}

impl std::error::Error for FilterError {}

impl FilterError {
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
