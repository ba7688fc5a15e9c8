//! Runs a study: several variants, repeated, in an order that spreads any drift evenly over all of them. The results so
//! far are on disk, so an interrupted study continues where it stopped.
//!
//! Start reading at [`run()`]; [`Study`] is the parsed file, [`PlannedVariant`] one combination of its settings.

mod definition;
mod saved;
#[cfg(test)]
mod tests;

pub use definition::{
    Axis, DefinitionError, PlannedVariant, Setting, Study, StudySource, VARIANTS_MAX, VariantRepetition,
};
pub use saved::{PAGE, STUDY, SavedStudy, beside};

use crate::BenchError;
use crate::directory::clear_unfinished;
use crate::environment::{now, run_commands};
use crate::files::Sources;
use crate::options::{GivenOptions, GivenValue, word};
use saved::Memory;
use smbscope_report::bench::{self, BenchRunOutcome};
use smbscope_report::study::{self, StudyDocument};
use std::collections::BTreeMap;
use std::ffi::OsString;
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

const OWN: [&str; 10] =
    ["output", "format", "title", "quiet", "plain", "full", "color", "width", "set", "find-capacity"];

const COMMAND: &str = "command";
const REPETITIONS: &str = "repetitions";
const PRIVATE: &str = "lab";

/// Options of a run by name. Later ones replace earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VariantOptions {
    bench: GivenOptions,
    launch: GivenOptions,
    /// Empty unless a private server with options is needed.
    lab: GivenOptions,
    /// Parameters of the workload.
    set: BTreeMap<String, GivenValue>,
}

impl VariantOptions {
    /// Returns options with a single one, of the table of this name.
    fn single(table: &str, option: &str, value: String) -> VariantOptions {
        let mut single = VariantOptions::default();
        match table {
            "bench" => single.bench.set(option, [value]),
            "launch" => single.launch.set(option, [value]),
            "lab" => single.lab.set(option, [value]),
            _ => drop(single.set.insert(option.to_owned(), GivenValue::One(value))),
        }
        single
    }

    /// Refuses options that a study sets itself, and options that are written as on the command line.
    fn checked(self) -> Result<VariantOptions, String> {
        if let Some((own, _)) = self.bench.iter().chain(self.launch.iter()).find(|(name, _)| OWN.contains(name)) {
            return Err(match own {
                "set" => "parameters of the workload are in the table [set], not in [bench]".to_owned(),
                own => format!("a study sets --{own} itself: omit it"),
            });
        }
        let given = self.bench.iter().chain(self.launch.iter()).chain(self.lab.iter());
        if let Some(bare) = given.map(|(name, _)| name).find_map(|name| name.strip_prefix("--")) {
            return Err(format!("options are written without --: {bare}"));
        }
        match self.set.iter().find(|(_, value)| value.one().is_none()) {
            Some((name, _)) => Err(format!("the parameter {name} has one value")),
            None => Ok(self),
        }
    }

    /// Merges two sets of options. `others` take precedence.
    pub fn with(&self, others: &VariantOptions) -> VariantOptions {
        let mut all = self.clone();
        all.set.extend(others.set.clone());
        VariantOptions {
            bench: all.bench.with(&others.bench),
            launch: all.launch.with(&others.launch),
            lab: all.lab.with(&others.lab),
            set: all.set,
        }
    }

    pub fn at(&self, target: &str) -> VariantOptions {
        let mut all = self.clone();
        for options in [&mut all.bench, &mut all.launch] {
            options.set("target", [target]);
        }
        all
    }

    fn without_lab(&self) -> VariantOptions {
        VariantOptions { lab: GivenOptions::default(), ..self.clone() }
    }

    pub fn is_launch(&self) -> bool {
        self.launch.contains(COMMAND)
    }

    pub fn target(&self) -> Option<&str> {
        let options = if self.is_launch() { &self.launch } else { &self.bench };
        let target = options.values("target").first().and_then(|target| target.to_str());
        target.filter(|target| !self.is_launch() || *target != PRIVATE)
    }

    pub fn lab_option(&self) -> Option<&str> {
        self.lab.iter().next().map(|(name, _)| name)
    }

    /// Returns the options of the load, including the parameters of the workload.
    pub fn bench(&self) -> GivenOptions {
        let mut bench = self.bench.clone();
        bench.set("set", self.parameters());
        bench
    }

    fn parameters(&self) -> impl Iterator<Item = String> {
        self.set.iter().filter_map(|(name, value)| Some(format!("{name}={}", value.one()?)))
    }

    /// Returns the options of the launch, one unless the study says otherwise.
    pub fn launch(&self) -> GivenOptions {
        let mut once = GivenOptions::default();
        once.set(REPETITIONS, ["1"]);
        once.with(&self.launch)
    }

    /// Returns the options of the private server.
    pub fn lab(&self) -> &GivenOptions {
        &self.lab
    }
}

/// The commands that do the same as a run, for people to read and repeat.
impl VariantOptions {
    fn words(&self) -> Vec<String> {
        let (verb, words) = match self.is_launch() {
            true => ("launch", self.launch_words()),
            false => ("bench", self.bench_words()),
        };
        [verb.to_owned()].into_iter().chain(words).collect()
    }

    fn bench_words(&self) -> Vec<String> {
        let target = self.target().map(str::to_owned);
        let options = self.bench.iter().filter(|(name, _)| *name != "target");
        let set = self.parameters().map(|parameter| format!("--set={parameter}"));
        options.flat_map(written).chain(set).chain(target).collect()
    }

    fn launch_words(&self) -> Vec<String> {
        let once = (!self.launch.contains(REPETITIONS)).then(|| format!("--{REPETITIONS}=1"));
        let options = self.launch.iter().filter(|(name, _)| *name != COMMAND).flat_map(written);
        let command = self.launch.values(COMMAND).iter().map(|word| word.to_string_lossy().into_owned());
        once.into_iter().chain(options).chain(["--".to_owned()]).chain(command).collect()
    }

    fn lab_words(&self) -> Vec<String> {
        self.lab.iter().flat_map(written).collect()
    }
}

fn written((name, values): (&str, &[OsString])) -> Vec<String> {
    let words = values.iter().filter_map(|value| word(name, value, true));
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}
