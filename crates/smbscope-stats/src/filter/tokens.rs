//! Tokenizer for filters and other conditions with the same syntax, and a cursor over the tokens.

use super::error::Problem;
use super::literal::is_bare;
use std::borrow::Cow;
use std::ops::Range;

/// A problem and the byte range of the text that has it.
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

    /// Takes the words up to `and`, an operator or the end: a number and its unit, with or without a blank between
    /// them. Returns them with their byte range, or `None` if there is no word.
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
