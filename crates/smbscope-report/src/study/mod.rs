//! What `smbscope study` shows and keeps: the runs of a study and their results as one [`Document`].

mod answer;
mod document;
mod results;
mod text;

pub(crate) use document::Whole;
pub use document::{Definition, Document, Row, Run, SCHEMA, ServerRow, Variant, Verdict, write};
pub use results::Results;
pub use text::render;
