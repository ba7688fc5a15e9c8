//! Tokens of an expression, and a place among them: of filters, and of other conditions written like these.

use super::error::Problem;
use super::literal::is_bare;
use std::borrow::Cow;
use std::ops::Range;

/// What is wrong, and which bytes of the text.
pub type LocatedProblem = (Problem, Range<usize>);

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub enum TokenKind<'a> {
    /// `(`
    Open,
    /// `)`
    Close,
    /// `,`
    Comma,
    /// Of signs.
    Operator(&'static str),
    /// Anything without blanks and signs.
    Word(&'a str),
    /// Text in quotes.
    Quoted(Cow<'a, str>),
}

/// A piece of an expression.
#[derive(Debug)]
pub struct Token<'a> {
    /// What it is.
    pub kind: TokenKind<'a>,
    /// Its bytes.
    pub place: Range<usize>,
}

/// Signs, the longer ones first.
const OPERATORS: [&str; 11] = ["==", "!=", "<=", ">=", "!~", "&&", "||", "<", ">", "~", "!"];

/// The text in tokens.
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

/// Text in quotes, and how long it is with them.
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

/// A place among the tokens of an expression.
#[derive(Debug)]
pub struct Cursor<'t, 'a> {
    tokens: &'t [Token<'a>],
    /// Length of the expression.
    end: usize,
    at: usize,
}

impl<'t, 'a> Cursor<'t, 'a> {
    /// Before the first token of the text.
    pub fn new(text: &str, tokens: &'t [Token<'a>]) -> Cursor<'t, 'a> {
        Cursor { tokens, end: text.len(), at: 0 }
    }

    /// The tokens from here on.
    pub fn rest(&self) -> &'t [Token<'a>] {
        &self.tokens[self.at..]
    }

    /// Goes on behind the next token.
    pub fn skip(&mut self) {
        self.at += 1;
    }

    /// The next token.
    pub fn peek(&self) -> Option<&'t Token<'a>> {
        self.tokens.get(self.at)
    }

    /// The bytes of the next token, or the end.
    pub fn place(&self) -> Range<usize> {
        self.peek().map_or(self.end..self.end, |token| token.place.clone())
    }

    /// Goes on behind a token of this kind, if it is the next.
    pub fn takes(&mut self, kind: &TokenKind<'_>) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == *kind);
        self.at += usize::from(found);
        found
    }

    /// The same of an operator.
    pub fn sign(&mut self, sign: &'static str) -> bool {
        self.takes(&TokenKind::Operator(sign))
    }

    /// The same of a word, in any case.
    pub fn keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek(), Some(Token { kind: TokenKind::Word(word), .. })
            if word.eq_ignore_ascii_case(keyword));
        self.at += usize::from(found);
        found
    }

    /// Takes the words up to `and`, a sign or the end: a number and its unit, with or without a blank between them. Returns
    /// them with their bytes, or none if there is no word.
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

    /// What was expected instead of the next token.
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
