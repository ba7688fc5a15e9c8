//! Results of `smbscope study`: the runs of a study and its verdicts as one [`StudyDocument`].

mod answer;
mod document;
mod results;
mod text;

pub(crate) use document::StudyEnvelope;
pub use document::{
    SCHEMA, ServerRow, StudyDefinitionEntry, StudyDocument, StudyRow, StudyRun, StudyVerdict, VariantEntry, write,
};
pub use results::Results;
pub use text::render;
