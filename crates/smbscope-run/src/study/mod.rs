//! A study: runs of several variants, repeated, in an order in which drift hits all of them alike; kept so that it can go on
//! after any interruption.

mod beside;
mod bundled;
pub(crate) mod commands;
mod definition;
mod memory;
mod options;
#[cfg(test)]
mod tests;
mod variant;

pub use beside::{SavedStudy, beside};
pub use definition::{Axis, DefinitionError, RUNS_OF_A_VARIANT_MAX, Setting, Study, StudySource, VARIANTS_MAX};
pub use memory::{PAGE, STUDY};
pub use options::VariantOptions;
pub use variant::{PlannedVariant, VariantRepetition};

use crate::BenchError;
use crate::directory::clear_unfinished;
use crate::files::Sources;
use crate::setup::now;
use memory::Memory;
use smbscope_report::bench::{self, BenchRunOutcome};
use smbscope_report::study::{self, StudyDocument};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a run is tried.
const ATTEMPTS: u32 = 2;

/// Performs the runs of a study, and watches how it gets on.
pub trait Conductor {
    /// Runs a variant once and keeps the run in this directory. An error is why there is no result, in one line.
    fn run(&mut self, variant: &PlannedVariant, directory: &Path) -> Result<bench::BenchDocument, String>;

    /// Whether the study is to end after the present run.
    fn is_interrupted(&self) -> bool;

    /// A run begins.
    fn begins(&mut self, place: &StudyProgress<'_>);

    /// A run has ended: with its document, or why it has no result and whether it is tried again.
    fn ended(&mut self, place: &StudyProgress<'_>, result: Result<&bench::BenchDocument, (&str, bool)>);
}

/// Where in the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StudyProgress<'a> {
    /// Of the run, from 1, those before an interruption included.
    pub number: usize,
    /// Runs of the study.
    pub of: usize,
    /// What is run.
    pub variant: &'a PlannedVariant,
    /// From 1.
    pub repetition: u32,
    /// Until the end of the study, as far as the runs of this session tell.
    pub left: Option<Duration>,
}

/// Runs what is still to be run of a study, whose directory remembers the rest; ends early, with what there is, when the
/// conductor is interrupted.
pub fn run(study: &Study, directory: &Path, conductor: &mut dyn Conductor) -> Result<StudyDocument, BenchError> {
    let variants = study.variants();
    let turns = study.turns(variants.len());
    let mut sources = Sources::default();
    sources.add(Path::new(&study.definition.source));
    let mut memory = Memory::open(directory, study, &variants, &sources)?;
    let (begun, mut here) = (Instant::now(), 0);
    for (at, turn) in turns.iter().enumerate() {
        if memory.is_done(*turn) {
            continue;
        }
        let open = turns[at..].iter().filter(|turn| !memory.is_done(**turn)).count();
        let left = (here > 0).then(|| begun.elapsed() / here * open as u32);
        let variant = &variants[turn.variant];
        let place = StudyProgress {
            number: turns.len() - open + 1,
            of: turns.len(),
            variant,
            repetition: turn.repetition,
            left,
        };
        conductor.begins(&place);
        let Some((run, result)) = attempts(*turn, &place, directory, conductor)? else { break };
        memory.note(*turn, run, result.as_ref());
        memory.keep()?;
        here += 1;
        if conductor.is_interrupted() {
            break;
        }
    }
    memory.keep()?;
    memory.keep_page()?;
    Ok(memory.into_document())
}

/// A run, tried again where it failed; nothing where the study was interrupted before it came to anything.
fn attempts(
    turn: VariantRepetition,
    place: &StudyProgress<'_>,
    directory: &Path,
    conductor: &mut dyn Conductor,
) -> Result<Option<(study::StudyRun, Option<bench::BenchDocument>)>, BenchError> {
    let folder = format!("{}/{}", place.variant.folder, turn.repetition);
    let path = directory.join(&folder);
    let (started, begun) = (now(), Instant::now());
    clear_unfinished(&path)?;
    let mut attempt = 1;
    loop {
        let result = one(place, &path, conductor);
        if conductor.is_interrupted() && !result.as_ref().is_ok_and(is_whole) {
            return Ok(None);
        }
        let result = result.and_then(|document| match failure(&document) {
            Some(why) => Err(why),
            None => Ok(document),
        });
        let again = result.is_err() && attempt < ATTEMPTS;
        conductor.ended(place, result.as_ref().map_err(|why| (why.as_str(), again)));
        if again {
            attempt += 1;
            continue;
        }
        let run = study::StudyRun {
            variant: turn.variant,
            repetition: turn.repetition,
            directory: folder,
            started_ns: started,
            duration_ns: begun.elapsed().into(),
            attempts: attempt,
            failed: result.as_ref().err().cloned(),
        };
        return Ok(Some((run, result.ok())));
    }
}

/// A run with the commands around it.
fn one(
    place: &StudyProgress<'_>,
    directory: &Path,
    conductor: &mut dyn Conductor,
) -> Result<bench::BenchDocument, String> {
    let variant = place.variant;
    let tell = [("SMBSCOPE_VARIANT", variant.name.clone()), ("SMBSCOPE_REPETITION", place.repetition.to_string())];
    let prepared = commands::run("before", &variant.before, &tell);
    let result = prepared.and_then(|()| conductor.run(variant, directory));
    // Whatever came of it: what was begun is to be ended.
    let ended = commands::run("after", &variant.after, &tell);
    result.and_then(|document| ended.map(|()| document))
}

/// Every load point was measured to its end.
fn is_whole(document: &bench::BenchDocument) -> bool {
    failure(document).is_none() && document.runs.iter().all(|run| run.ended != BenchRunOutcome::Interrupted)
}

/// Why the figures of a run are not to be used.
fn failure(document: &bench::BenchDocument) -> Option<String> {
    document.failure().or_else(|| document.runs.is_empty().then(|| "nothing was measured".to_owned()))
}
