//! What all documents have in common: who wrote them, what they say that they are, and why a file is none.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The program that made a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Generator {
    /// `smbscope`
    #[cfg_attr(feature = "schema", schemars(extend("const" = "smbscope")))]
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Generator {
    /// This program, of that version.
    pub fn new(version: &str) -> Generator {
        Generator { name: "smbscope".to_owned(), version: version.to_owned() }
    }
}

/// A kind of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentKind {
    /// The value of its key `schema`.
    pub schema: &'static str,
    /// What to give where one is expected.
    pub(crate) advice: &'static str,
}

/// Why a file is no document of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseError {
    /// It is no JSON.
    NotJson(String),
    /// It is JSON of another kind than this one, and says this of itself.
    AnotherKind(DocumentKind, Option<String>),
    /// It says that it is one, and is not as one is.
    NotAsDescribed(DocumentKind, String),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::NotJson(why) => write!(f, "not JSON, or not all of it: {why}"),
            ParseError::AnotherKind(DocumentKind { schema, advice }, Some(found)) => {
                write!(f, "its `schema` is {found:?}, and not {schema:?}: {advice}")
            }
            ParseError::AnotherKind(DocumentKind { advice, .. }, None) => write!(f, "JSON without `schema`: {advice}"),
            ParseError::NotAsDescribed(DocumentKind { schema, .. }, why) => {
                write!(f, "not as {schema:?} describes it: {why}")
            }
        }
    }
}

impl std::error::Error for ParseError {}

/// What the text says that it is: the value of its key `schema`, if it is JSON and has one.
pub fn schema_of(text: &[u8]) -> Result<Option<String>, ParseError> {
    /// What every document of smbscope begins with.
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

/// Reads a document of this kind.
pub(crate) fn parse<T: DeserializeOwned>(kind: DocumentKind, text: &[u8]) -> Result<T, ParseError> {
    match schema_of(text)? {
        Some(schema) if schema == kind.schema => {}
        other => return Err(ParseError::AnotherKind(kind, other)),
    }
    serde_json::from_slice(text).map_err(|error| ParseError::NotAsDescribed(kind, error.to_string()))
}
