//! Runs a study: several variants, repeated, in an order that spreads any drift evenly over all of them. The results so
//! far are on disk, so an interrupted study continues where it stopped.
//!
//! Start reading at [`run()`]; [`Study`] is the parsed file, [`PlannedVariant`] one combination of its settings.

mod definition;
mod options;
mod saved;
#[cfg(test)]
mod tests;

pub use definition::{
    Axis, DefinitionError, PlannedVariant, Setting, Study, StudySource, VARIANTS_MAX, VariantRepetition,
};
pub use options::VariantOptions;
pub use saved::{PAGE, STUDY, SavedStudy, beside};

use crate::BenchError;
use crate::directory::clear_unfinished;
use crate::environment::{now, run_commands};
use crate::files::Sources;
use saved::Memory;
use smbscope_report::bench::{self, BenchRunOutcome};
use smbscope_report::study::{self, StudyDocument};
use std::path::Path;
use std::time::{Duration, Instant};

const ATTEMPTS: u32 = 2;

pub trait Conductor {
    /// Runs a variant once and stores the results in `directory`. The error is a single line.
    fn run(&mut self, variant: &PlannedVariant, directory: &Path) -> Result<bench::BenchDocument, String>;

    fn is_interrupted(&self) -> bool;

    fn begins(&mut self, place: &StudyProgress<'_>);

    /// Called after a run with its document, or with the failure and whether the run will be repeated.
    fn ended(&mut self, place: &StudyProgress<'_>, result: Result<&bench::BenchDocument, (&str, bool)>);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StudyProgress<'a> {
    /// Number of the run, from 1. Includes runs of earlier sessions.
    pub number: usize,
    pub of: usize,
    pub variant: &'a PlannedVariant,
    pub repetition: u32,
    pub left: Option<Duration>,
}

/// Performs the runs that are still missing in `directory`. Returns the results so far if the conductor is interrupted.
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

/// Performs a run, and repeats it once if it fails. Returns `None` if the study was interrupted before there was a
/// result.
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

fn one(
    place: &StudyProgress<'_>,
    directory: &Path,
    conductor: &mut dyn Conductor,
) -> Result<bench::BenchDocument, String> {
    let variant = place.variant;
    let tell = [("SMBSCOPE_VARIANT", variant.name.clone()), ("SMBSCOPE_REPETITION", place.repetition.to_string())];
    let prepared = run_commands("before", &variant.before, &tell);
    let result = prepared.and_then(|()| conductor.run(variant, directory));
    // Run even after a failure, to undo what the first commands did.
    let ended = run_commands("after", &variant.after, &tell);
    result.and_then(|document| ended.map(|()| document))
}

fn is_whole(document: &bench::BenchDocument) -> bool {
    failure(document).is_none() && document.runs.iter().all(|run| run.ended != BenchRunOutcome::Interrupted)
}

fn failure(document: &bench::BenchDocument) -> Option<String> {
    document.failure().or_else(|| document.runs.is_empty().then(|| "nothing was measured".to_owned()))
}
