//! Runs a study: several variants, repeated, in an order that spreads any drift evenly over all of them. The results so
//! far are on disk, so an interrupted study continues where it stopped.
//!
//! Start reading at [`run()`]; [`Study`] is the parsed file, [`PlannedVariant`] one combination of its settings.

mod definition;
mod runs;
#[cfg(test)]
mod tests;

pub use crate::environment::Need;
pub use definition::{Axis, DefinitionError, Setting, Study, StudySource, VARIANTS_MAX};
pub use runs::{PAGE, PlannedVariant, STUDY, SavedStudy, VariantRepetition, beside};

use crate::BenchError;
use crate::directory::clear_unfinished;
use crate::environment::{missing_needs, now, run_commands};
use crate::files::Sources;
use crate::options::{GivenOptions, GivenValue, word};
use runs::Memory;
use smbscope_report::bench::{self, BenchRunOutcome};
use smbscope_report::study::{self, StudyDocument};
use smbscope_stats::Measure;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

const ATTEMPTS: u32 = 2;

pub trait Conductor {
    /// Runs a variant once and stores the results in `directory`. The error is a single line.
    fn run(&mut self, variant: &PlannedVariant, directory: &Path) -> Result<bench::BenchDocument, String>;

    fn is_interrupted(&self) -> bool;

    /// Returns the share of this machine's processors in use between runs, in percent. `None` if it is unknown.
    fn other_load(&mut self) -> Option<f64>;

    fn begins(&mut self, place: &StudyProgress<'_>);

    /// Called after a run with its document, or with the failure and whether the run will be repeated.
    fn ended(&mut self, place: &StudyProgress<'_>, result: Result<&bench::BenchDocument, (&str, bool)>);

    /// Called after an unfit run that will be repeated.
    fn unfit(&mut self, place: &StudyProgress<'_>, why: &str);
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
/// Fails before the first run if something that the study needs is missing.
pub fn run(study: &Study, directory: &Path, conductor: &mut dyn Conductor) -> Result<StudyDocument, BenchError> {
    let variants = study.variants();
    let turns = study.turns(variants.len());
    let mut sources = Sources::default();
    sources.add(Path::new(&study.definition.source));
    let mut memory = Memory::open(directory, study, &variants, &sources)?;
    if turns.iter().any(|turn| !memory.is_done(*turn)) {
        check_needs(study, &variants).map_err(BenchError::Unavailable)?;
    }
    let mut session = Session { measures: &study.measures, directory, other_load: None, repeats: turns.len() / 4 + 1 };
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
        let Some((run, result)) = session.attempts(*turn, &place, conductor)? else { break };
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

/// Fails if something is missing that a variant needs.
fn check_needs(study: &Study, variants: &[PlannedVariant]) -> Result<(), String> {
    let settings = variants.iter().flat_map(|variant| &variant.settings).map(|(_, name)| name.as_str()).collect();
    let has_private_servers = variants.iter().any(PlannedVariant::has_private_server);
    match missing_needs(&study.needs, &settings, has_private_servers) {
        None => Ok(()),
        Some(what) => Err(format!("{} can't run here: {what}", study.name)),
    }
}

/// Runs of one call of [`run()`].
struct Session<'a> {
    measures: &'a [Measure],
    directory: &'a Path,
    /// Load of other programs after the last run.
    other_load: Option<f64>,
    /// Unfit runs that may still be repeated: a quarter of all runs, and one more, so that a busy machine does not double the time.
    repeats: usize,
}

impl Session<'_> {
    /// Performs a run, and repeats it once if it fails or is unfit. Returns `None` if the study was interrupted before
    /// there was a result.
    fn attempts(
        &mut self,
        turn: VariantRepetition,
        place: &StudyProgress<'_>,
        conductor: &mut dyn Conductor,
    ) -> Result<Option<(study::StudyRun, Option<bench::BenchDocument>)>, BenchError> {
        let folder = format!("{}/{}", place.variant.folder, turn.repetition);
        let path = self.directory.join(&folder);
        let (started, begun) = (now(), Instant::now());
        clear_unfinished(&path)?;
        let (mut attempt, mut repeated) = (1, None);
        loop {
            let before = self.other_load.or_else(|| conductor.other_load());
            let result = one(place, &path, conductor);
            if conductor.is_interrupted() && !result.as_ref().is_ok_and(is_whole) {
                return Ok(None);
            }
            self.other_load = conductor.other_load();
            let other_load = before.into_iter().chain(self.other_load).reduce(f64::max);
            let result = result.and_then(|document| match failure(&document) {
                Some(why) => Err(why),
                None => Ok(document),
            });
            if let Some(why) = result.as_ref().ok().and_then(|document| self.unfit(document, other_load))
                && attempt < ATTEMPTS
                && self.repeats > 0
            {
                self.repeats -= 1;
                // A short disturbance may be over: the next attempt measures again.
                self.other_load = None;
                conductor.unfit(place, &why);
                (attempt, repeated) = (attempt + 1, Some(why));
                continue;
            }
            let again = result.is_err() && attempt < ATTEMPTS;
            conductor.ended(place, result.as_ref().map_err(|why| (why.as_str(), again)));
            if again {
                (attempt, repeated) = (attempt + 1, result.err());
                continue;
            }
            let run = study::StudyRun {
                variant: turn.variant,
                repetition: turn.repetition,
                directory: folder,
                started_ns: started,
                duration_ns: begun.elapsed().into(),
                attempts: attempt,
                repeated,
                other_load_percent: other_load,
                failed: result.as_ref().err().cloned(),
            };
            return Ok(Some((run, result.ok())));
        }
    }

    /// Returns why a run of one load point is unfit. Of a ramp, single load points are left out instead.
    fn unfit(&self, document: &bench::BenchDocument, other_load: Option<f64>) -> Option<String> {
        let [run] = document.runs.as_slice() else { return None };
        let reasons = study::unfit_reasons(run, other_load, self.measures);
        let words: Vec<&str> = reasons.into_iter().map(study::UnfitReason::words).collect();
        (!words.is_empty()).then(|| words.join("; "))
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
    /// Server that replaces the private one.
    server: Option<String>,
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
            server: others.server.clone().or(all.server),
        }
    }

    pub fn at(&self, target: &str) -> VariantOptions {
        let mut all = VariantOptions { server: Some(target.to_owned()), ..self.clone() };
        all.bench.set("target", [target]);
        all
    }

    /// Returns true if a launch has its files on the server: a private one, or the one given with `--target`.
    fn is_at_server(&self) -> bool {
        self.launch.values("target").first().is_some_and(|target| target == PRIVATE)
    }

    fn launched_at_server(&self) -> VariantOptions {
        let mut all = self.clone();
        all.launch.set("target", [PRIVATE]);
        all
    }

    fn without_lab(&self) -> VariantOptions {
        VariantOptions { lab: GivenOptions::default(), ..self.clone() }
    }

    pub fn is_launch(&self) -> bool {
        self.launch.contains(COMMAND)
    }

    pub fn target(&self) -> Option<&str> {
        if self.is_launch() && self.is_at_server() {
            return self.server.as_deref();
        }
        let options = if self.is_launch() { &self.launch } else { &self.bench };
        options.values("target").first().and_then(|target| target.to_str())
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
        let mut launch = once.with(&self.launch);
        if let Some(server) = self.server.as_ref().filter(|_| self.is_at_server()) {
            launch.set("target", [server]);
        }
        launch
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
        let times = self.launch.values(REPETITIONS).first().map_or_else(|| "1".into(), |times| times.to_string_lossy());
        let times = [format!("--{REPETITIONS}={times}")];
        let launch = self.launch();
        let options = launch.iter().filter(|(name, _)| ![COMMAND, REPETITIONS].contains(name)).flat_map(written);
        let command = self.launch.values(COMMAND).iter().map(|word| word.to_string_lossy().into_owned());
        times.into_iter().chain(options).chain(["--".to_owned()]).chain(command).collect()
    }

    fn lab_words(&self) -> Vec<String> {
        self.lab.iter().flat_map(written).collect()
    }
}

fn written((name, values): (&str, &[OsString])) -> Vec<String> {
    let words = values.iter().filter_map(|value| word(name, value, true));
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Returns the settings and options of a study that its short form leaves out or changes.
fn changes(full: &Study, short: &Study) -> Vec<String> {
    let mut left_out = Vec::new();
    for (axis, kept) in full.axes.iter().zip(&short.axes) {
        let is_kept = |name: &str| kept.settings.iter().any(|setting| setting.name == name);
        let dropped: Vec<&str> =
            axis.settings.iter().map(|setting| setting.name.as_str()).filter(|name| !is_kept(name)).collect();
        if !dropped.is_empty() {
            left_out.push(format!("{} {}", axis.name, dropped.join(" and ")));
        }
    }
    let (all, few) = (full.common.texts(), short.common.texts());
    let names: BTreeSet<&String> = all.keys().chain(few.keys()).collect();
    for name in names {
        let value = |of: &BTreeMap<String, String>| of.get(name).cloned().unwrap_or_else(|| "the default".to_owned());
        let (from, to) = (value(&all), value(&few));
        if from != to {
            left_out.push(format!("{name} {to} instead of {from}"));
        }
    }
    if full.repetitions != short.repetitions {
        left_out.push(format!("{} instead of {} repetitions", short.repetitions, full.repetitions));
    }
    left_out
}

impl VariantOptions {
    /// Returns every option with its value as text.
    fn texts(&self) -> BTreeMap<String, String> {
        let given = self.bench.iter().chain(self.launch.iter()).chain(self.lab.iter());
        let text = |values: &[OsString]| {
            values.iter().map(|value| value.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        let given = given.map(|(name, values)| (name.to_owned(), text(values)));
        let set = self.set.iter().filter_map(|(name, value)| Some((name.clone(), value.one()?.to_owned())));
        given.chain(set).collect()
    }
}
