//! Common parts of all documents: generator, schema identifier, and parse errors.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;

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
