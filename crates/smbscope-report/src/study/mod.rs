//! What `smbscope study` shows and keeps: the runs of a study and their results as one [`Document`].

mod answer;
mod document;
mod results;
mod text;

pub(crate) use document::StudyEnvelope;
pub use document::{StudyDefinitionEntry, StudyDocument, StudyRow, StudyRun, SCHEMA, ServerRow, VariantEntry, StudyVerdict, write};
pub use results::Results;
pub use text::render;
