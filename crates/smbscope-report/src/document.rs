//! Common parts of all documents: generator, schema identifier, parse errors, and JSON that can't control a terminal:
//! control characters and bidirectional marks are written as `\u` escapes, which parse to the same value.

use crate::format::is_invisible;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};
use std::fmt;
use std::io::{self, Write};

/// Program that wrote a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Generator {
    /// Always `smbscope`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = "smbscope")))]
    pub name: String,
    /// Version of the program.
    pub version: String,
}

impl Generator {
    pub fn new(version: &str) -> Generator {
        Generator { name: "smbscope".to_owned(), version: version.to_owned() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentKind {
    pub schema: &'static str,
    pub(crate) advice: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseError {
    NotJson(String),
    /// The document is of another kind. Contains its `schema`, if any.
    AnotherKind(DocumentKind, Option<String>),
    NotAsDescribed(DocumentKind, String),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::NotJson(why) => write!(f, "not JSON, or cut off: {why}"),
            ParseError::AnotherKind(DocumentKind { schema, advice }, Some(found)) => {
                write!(f, "its `schema` is {found:?}, and not {schema:?}: {advice}")
            }
            ParseError::AnotherKind(DocumentKind { advice, .. }, None) => write!(f, "JSON without `schema`: {advice}"),
            ParseError::NotAsDescribed(DocumentKind { schema, .. }, why) => {
                write!(f, "does not match {schema:?}: {why}")
            }
        }
    }
}

impl std::error::Error for ParseError {}

/// Returns the value of the key `schema`. None if there is none or it isn't a string.
pub fn schema_of(text: &[u8]) -> Result<Option<String>, ParseError> {
    #[derive(Deserialize)]
    struct Head {
        schema: Option<serde_json::Value>,
    }
    let head: Head = serde_json::from_slice(text).map_err(|error| ParseError::NotJson(error.to_string()))?;
    Ok(match head.schema {
        Some(serde_json::Value::String(schema)) => Some(schema),
        _ => None,
    })
}

pub(crate) fn parse<T: DeserializeOwned>(kind: DocumentKind, text: &[u8]) -> Result<T, ParseError> {
    match schema_of(text)? {
        Some(schema) if schema == kind.schema => {}
        other => return Err(ParseError::AnotherKind(kind, other)),
    }
    serde_json::from_slice(text).map_err(|error| ParseError::NotAsDescribed(kind, error.to_string()))
}

pub(crate) fn write_indented(document: &impl Serialize, out: impl Write) -> io::Result<()> {
    write_indented_above(usize::MAX, document, out)
}

/// Writes values below `levels` on one line, since a number per line would be mostly blanks.
pub(crate) fn write_indented_above(levels: usize, document: &impl Serialize, mut out: impl Write) -> io::Result<()> {
    document.serialize(&mut Serializer::with_formatter(&mut out, Escaped::new(levels, steers_a_terminal)))?;
    out.write_all(b"\n")
}

/// Writes a document without blanks, and without characters that are special in HTML or end a line in old JavaScript.
/// Outside of strings, JSON contains neither.
pub(crate) fn write_for_html(document: &impl Serialize, out: impl Write) -> io::Result<()> {
    let escaped = Escaped::new(0, |c| matches!(c, '<' | '>' | '&') || steers_a_terminal(c));
    Ok(document.serialize(&mut Serializer::with_formatter(out, escaped))?)
}

pub fn line(document: &impl Serialize) -> String {
    let mut out = Vec::new();
    let escaped = Escaped::new(0, steers_a_terminal);
    document.serialize(&mut Serializer::with_formatter(&mut out, escaped)).expect("writing to memory does not fail");
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// Returns true for C0 (which JSON escapes anyway), DEL, C1 and bidirectional marks.
fn steers_a_terminal(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

/// JSON layout that escapes additional characters in strings.
struct Escaped {
    indented: PrettyFormatter<'static>,
    /// Depth below which everything is on one line.
    levels: usize,
    depth: usize,
    escapes: fn(char) -> bool,
}

impl Escaped {
    fn new(levels: usize, escapes: fn(char) -> bool) -> Escaped {
        Escaped { indented: PrettyFormatter::new(), levels, depth: 0, escapes }
    }
}

/// Delegates to the indented or the compact layout, depending on the depth. Lists and objects are one level deeper.
macro_rules! as_laid_out {
    ($($name:ident($($argument:ident: $kind:ty),*) $(begins $begins:literal)? $(ends $ends:literal)?;)*) => {
        $(fn $name<W: ?Sized + Write>(&mut self, out: &mut W $(, $argument: $kind)*) -> io::Result<()> {
            $(self.depth += $begins;)?
            let is_deep = self.depth > self.levels;
            $(self.depth -= $ends;)?
            if is_deep { CompactFormatter.$name(out $(, $argument)*) } else { self.indented.$name(out $(, $argument)*) }
        })*
    };
}

impl Formatter for Escaped {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, found)) = rest.char_indices().find(|(_, c)| (self.escapes)(*c)) {
            out.write_all(&rest.as_bytes()[..at])?;
            for unit in found.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + found.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }

    as_laid_out! {
        begin_array() begins 1;
        end_array() ends 1;
        begin_array_value(first: bool);
        end_array_value();
        begin_object() begins 1;
        end_object() ends 1;
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const HOSTILE: &str = "a\u{1b}\u{7f}\u{9b}\u{202e}\u{2066}\u{61c}\u{2028}\u{e0041}<ä\u{1f600}";

    #[test]
    fn what_steers_a_terminal_is_escaped_and_the_value_stays() {
        let document = json!({ (HOSTILE): [HOSTILE, 1, {}, []] });
        let mut indented = Vec::new();
        write_indented(&document, &mut indented).unwrap();
        let mut html = Vec::new();
        write_for_html(&document, &mut html).unwrap();
        for text in [String::from_utf8(indented).unwrap(), line(&document), String::from_utf8(html).unwrap()] {
            assert!(!text.chars().any(|c| c != '\n' && steers_a_terminal(c)), "{text}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), document);
        }
    }

    #[test]
    fn the_layout_is_that_of_serde() {
        let document = json!({ "a": [1, 2, {"b": null}], "c": {}, "d": [] });
        let mut out = Vec::new();
        write_indented(&document, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string_pretty(&document).unwrap() + "\n");
        assert_eq!(line(&document), document.to_string());
    }

    #[test]
    fn what_lies_deep_is_in_one_line() {
        let document = json!({ "a": [1, {"b": [2, 3], "c": {}}], "d": {"e": 4} });
        let mut out = Vec::new();
        write_indented_above(2, &document, &mut out).unwrap();
        let expected = "{\n  \"a\": [\n    1,\n    {\"b\":[2,3],\"c\":{}}\n  ],\n  \"d\": {\n    \"e\": 4\n  }\n}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
