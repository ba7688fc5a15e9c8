//! The runs of a study: its variants, which combine the settings of all axes, the order of the runs, and `study.json`
//! in a directory, written after each run, so that the study can continue after an interruption; and the comparison of
//! finished studies, each variant with the one of the same name in the first study.

use super::{Axis, Setting, Study, VariantOptions};
use crate::BenchError;
use crate::directory::RUN;
use crate::files::{Replacement, Sources, create_private_directory, is_left_over};
use sha2::{Digest, Sha256};
use smbscope_load::bounded;
use smbscope_report::study::{self, Results, StudyDocument, VariantEntry};
use smbscope_report::{bench, html, quoted};
use smbscope_stats::Measure;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedVariant {
    pub name: String,
    pub folder: String,
    /// Index of the variant to compare with. Its own index if it is a baseline.
    pub baseline: usize,
    pub settings: Vec<(String, String)>,
    pub options: VariantOptions,
    pub before: Vec<String>,
    /// Shell commands after each run, in reverse order of the axes.
    pub after: Vec<String>,
}

impl PlannedVariant {
    pub(super) fn has_private_server(&self) -> bool {
        self.options.target().is_none() && (!self.options.is_launch() || self.options.is_at_server())
    }

    /// Returns where the files are: the target, a private server, or this machine.
    pub(super) fn place(&self) -> String {
        match self.options.target() {
            Some(target) => target.to_owned(),
            None if self.has_private_server() => "private server".to_owned(),
            None => bench::THIS_MACHINE.to_owned(),
        }
    }

    pub fn command(&self) -> String {
        let run = format!("smbscope{}", words(&self.options.words()));
        match (self.options.target(), words(&self.options.lab_words())) {
            (None, lab) if !lab.is_empty() => format!("{run} (lab{lab})"),
            _ => run,
        }
    }
}

fn words(arguments: &[String]) -> String {
    let parts = arguments.iter().flat_map(|argument| match argument.split_once('=') {
        Some((name, value)) if name.starts_with("--") => vec![name, value],
        _ => vec![argument.as_str()],
    });
    parts.map(|word| format!(" {}", quoted(word))).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariantRepetition {
    /// From 1.
    pub repetition: u32,
    pub variant: usize,
}

impl Study {
    /// Combines the settings of all axes. The first variant is the baseline.
    pub fn variants(&self) -> Vec<PlannedVariant> {
        let mut combinations: Vec<Vec<(&Axis, &Setting)>> = vec![Vec::new()];
        for axis in &self.axes {
            let longer = |chosen: Vec<_>| {
                axis.settings.iter().map(move |setting| {
                    let mut longer = chosen.clone();
                    longer.push((axis, setting));
                    longer
                })
            };
            combinations = combinations.into_iter().flat_map(longer).collect();
        }
        let digits = combinations.len().to_string().len().max(2);
        let variant = |(at, chosen): (usize, Vec<(&Axis, &Setting)>)| {
            let names: Vec<String> = chosen.iter().map(|(axis, setting)| named(axis, setting)).collect();
            let name = if names.is_empty() { self.name.clone() } else { names.join(", ") };
            PlannedVariant {
                folder: format!("{:0digits$}-{}", at + 1, folder(&name)),
                name,
                baseline: self.baseline(at),
                settings: chosen.iter().map(|(axis, setting)| (axis.name.clone(), setting.name.clone())).collect(),
                options: chosen.iter().fold(self.common.clone(), |all, (_, setting)| all.with(&setting.options)),
                before: chosen.iter().flat_map(|(_, setting)| setting.before.clone()).collect(),
                after: chosen.iter().rev().flat_map(|(_, setting)| setting.after.clone()).collect(),
            }
        };
        combinations.into_iter().enumerate().map(variant).collect()
    }

    fn baseline(&self, variant: usize) -> usize {
        let Some(along) = &self.compare_along else { return 0 };
        let axes = self.axes.iter().rev();
        // The last axis varies fastest.
        let mut stride = 1;
        for axis in axes {
            let settings = axis.settings.len();
            if axis.name == *along {
                return variant - variant / stride % settings * stride;
            }
            stride *= settings;
        }
        0
    }

    /// Returns the runs in order: each repetition runs every variant once in random order, which spreads drift evenly
    /// over the variants.
    pub fn turns(&self, variants: usize) -> Vec<VariantRepetition> {
        let block = |repetition: u32| {
            let mut block: Vec<VariantRepetition> =
                (0..variants).map(|variant| VariantRepetition { repetition, variant }).collect();
            block.sort_by_key(|turn| lot(self.seed, *turn));
            block
        };
        (1..=self.repetitions).flat_map(block).collect()
    }
}

fn named(axis: &Axis, setting: &Setting) -> String {
    if axis.is_option { format!("{} {}", axis.name, setting.name) } else { setting.name.clone() }
}

/// Returns the sort key that shuffles the runs. The same seed gives the same order.
fn lot(seed: u64, turn: VariantRepetition) -> Vec<u8> {
    let numbers = [seed, turn.repetition.into(), turn.variant as u64];
    Sha256::digest(numbers.map(u64::to_le_bytes).concat()).to_vec()
}

/// Bytes of a variant's name in its folder's name. File systems limit names to 255.
const FOLDER_NAME_MAX: usize = 80;

fn folder(name: &str) -> String {
    let mut folder = String::new();
    for c in name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }) {
        if c != '-' || !folder.ends_with('-') {
            folder.push(c);
        }
    }
    folder.truncate(FOLDER_NAME_MAX);
    folder.trim_matches(['-', '.']).to_owned()
}

pub const STUDY: &str = "study.json";

pub const PAGE: &str = "study.html";

/// Bytes of a study's document; more are refused.
const STUDY_MAX: u64 = 256 << 20;

pub(super) struct Memory {
    directory: PathBuf,
    done: HashSet<VariantRepetition>,
    results: Results,
    document: StudyDocument,
}

impl Memory {
    pub(super) fn open(
        directory: &Path,
        study: &Study,
        variants: &[PlannedVariant],
        sources: &Sources,
    ) -> Result<Memory, BenchError> {
        let file = directory.join(STUDY);
        for file in [STUDY, PAGE].map(|name| directory.join(name)) {
            if let Some(source) = sources.name_at(&file) {
                let shown = file.display();
                let text = format!("cannot write {shown}: it is the input {source}; choose another directory");
                return Err(BenchError::Unavailable(text));
            }
        }
        create_private_directory(directory).map_err(BenchError::file("make the directory of the study", directory))?;
        let others = look(directory)?;
        let earlier = match bounded::read(&file, STUDY_MAX) {
            Ok(text) => Some(earlier(&file, &text, study)?),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(BenchError::file("read", &file)(error));
            }
            Err(_) if others => {
                return Err(BenchError::Unavailable(format!(
                    "{} is not empty and has no {STUDY} of a study: name a new or empty directory for the results",
                    directory.display()
                )));
            }
            Err(_) => None,
        };
        let mut memory = Memory {
            directory: directory.to_owned(),
            done: HashSet::new(),
            results: Results::new(
                &study.measures,
                study.repetitions,
                study.seed,
                variants.iter().map(|variant| variant.baseline),
            )
            .suspecting(study.suspect.clone())
            .describing(variants.iter().map(|variant| study.description(variant.options.target()?))),
            document: document(study, variants, directory),
        };
        for run in earlier.into_iter().flat_map(|earlier| earlier.runs) {
            let turn = VariantRepetition { repetition: run.repetition, variant: run.variant };
            if run.failed.is_some() {
                continue;
            }
            let path = directory.join(&run.directory).join(RUN);
            let text = bounded::read(&path, STUDY_MAX).map_err(BenchError::file("read", &path))?;
            let result = bench::BenchDocument::parse(&text)
                .map_err(|error| BenchError::Unavailable(format!("{}: {error}", path.display())))?;
            memory.note(turn, run, Some(&result));
        }
        Ok(memory)
    }

    pub(super) fn is_done(&self, turn: VariantRepetition) -> bool {
        self.done.contains(&turn)
    }

    pub(super) fn note(
        &mut self,
        turn: VariantRepetition,
        run: study::StudyRun,
        result: Option<&bench::BenchDocument>,
    ) {
        self.done.insert(turn);
        if let Some(result) = result {
            self.results.add(&run, result);
        }
        self.document.runs.push(run);
    }

    pub(super) fn keep(&mut self) -> Result<(), BenchError> {
        self.document.started_ns = self.document.runs.iter().map(|run| run.started_ns).min();
        self.document.environment = self.results.environment();
        for (at, variant) in self.document.variants.iter_mut().enumerate() {
            variant.environment = self.results.environment_of(at);
        }
        self.document.unfit = self.results.unfit();
        self.document.results = self.results.rows();
        self.document.server = self.results.server();
        let names: Vec<&str> = self.document.variants.iter().map(|variant| variant.name.as_str()).collect();
        self.document.warnings = self.results.warnings(&names);
        self.document.answer = self.results.answer(&self.document);
        self.write(STUDY, |out| study::write(&self.document, out))
    }

    /// Writes the HTML page. Only called at the end, because the page grows with the number of runs.
    pub(super) fn keep_page(&self) -> Result<(), BenchError> {
        self.write(PAGE, |out| html::write_study(&self.document, out))
    }

    fn write(&self, name: &str, content: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), BenchError> {
        let file = self.directory.join(name);
        let written = Replacement::private(&file).and_then(|mut file| {
            file.write(|out| content(out))?;
            file.finish()
        });
        written.map_err(BenchError::file("write", &file))
    }

    pub(super) fn into_document(self) -> StudyDocument {
        self.document
    }
}

fn earlier(file: &Path, text: &[u8], study: &Study) -> Result<StudyDocument, BenchError> {
    let shown = file.display();
    let earlier = StudyDocument::parse(text).map_err(|error| BenchError::Unavailable(format!("{shown}: {error}")))?;
    if earlier.definition.sha256 != study.definition.sha256 || earlier.repetitions != study.repetitions {
        return Err(BenchError::Unavailable(format!(
            "{shown} belongs to another study, or to this one with other targets, repetitions or file content: name \
             a new directory for the results"
        )));
    }
    Ok(earlier)
}

/// Returns true if the directory contains anything. Removes unfinished files of a killed process first.
fn look(directory: &Path) -> Result<bool, BenchError> {
    let mut others = false;
    for entry in fs::read_dir(directory).map_err(BenchError::file("look into", directory))? {
        let entry = entry.map_err(BenchError::file("look into", directory))?;
        match is_left_over(&entry.file_name().to_string_lossy(), |name| [STUDY, PAGE].contains(&name)) {
            true => fs::remove_file(entry.path()).map_err(BenchError::file("remove", &entry.path()))?,
            false => others = true,
        }
    }
    Ok(others)
}

fn document(study: &Study, variants: &[PlannedVariant], directory: &Path) -> StudyDocument {
    let variant = |variant: &PlannedVariant| study::VariantEntry {
        name: variant.name.clone(),
        baseline: variant.baseline,
        settings: variant.settings.iter().cloned().collect(),
        folder: variant.folder.clone(),
        place: variant.place(),
        environment: BTreeMap::new(),
        command: variant.command(),
        before: variant.before.clone(),
        after: variant.after.clone(),
    };
    let definition = study::StudyDefinitionEntry {
        source: study.definition.source.clone(),
        sha256: study.definition.sha256.clone(),
        text: study.definition.text.clone(),
        quick: study.definition.quick,
        left_out: study.definition.left_out.clone(),
        targets: study.definition.targets.clone(),
        about: study.definition.about.clone(),
    };
    StudyDocument {
        generator: bench::Generator::new(env!("CARGO_PKG_VERSION")),
        name: study.name.clone(),
        question: study.question.clone(),
        answer: Default::default(),
        command: definition.command(study.repetitions, &directory.display().to_string()),
        definition,
        started_ns: None,
        repetitions: study.repetitions,
        seed: study.seed,
        environment: Default::default(),
        variants: variants.iter().map(variant).collect(),
        runs: Vec::new(),
        unfit: Vec::new(),
        results: Vec::new(),
        server: Vec::new(),
        warnings: Vec::new(),
        studies: Vec::new(),
    }
}

const AXIS: &str = "study";

#[derive(Debug)]
pub struct SavedStudy {
    name: String,
    directory: PathBuf,
    document: StudyDocument,
}

impl SavedStudy {
    pub fn is_in(directory: &Path) -> bool {
        directory.join(STUDY).is_file()
    }

    pub fn open(directory: &Path, name: &str) -> Result<SavedStudy, BenchError> {
        let file = directory.join(STUDY);
        let text = bounded::read(&file, STUDY_MAX).map_err(BenchError::file("read", &file))?;
        let document = StudyDocument::parse(&text)
            .map_err(|error| BenchError::Unavailable(format!("{}: {error}", file.display())))?;
        Ok(SavedStudy { name: name.to_owned(), directory: directory.to_owned(), document })
    }

    pub fn variants(&self) -> impl Iterator<Item = (&str, Vec<PathBuf>)> {
        self.document.variants.iter().enumerate().map(|(at, variant)| {
            let runs = self.runs().filter(|run| run.variant == at).map(|run| self.directory.join(&run.directory));
            (variant.name.as_str(), runs.collect())
        })
    }

    fn runs(&self) -> impl Iterator<Item = &study::StudyRun> {
        self.document.runs.iter().filter(|run| run.failed.is_none())
    }
}

pub fn beside(title: Option<String>, studies: &[SavedStudy]) -> Result<StudyDocument, BenchError> {
    let Some(first) = studies.first() else {
        return Err(BenchError::Unavailable("there is no study to compare".to_owned()));
    };
    let (variants, places) = paired(studies);
    let repetitions = studies.iter().map(|study| study.document.repetitions).max().unwrap_or(1);
    let baselines = variants.iter().map(|variant| variant.baseline);
    let mut results = Results::new(&measures(studies), repetitions, first.document.seed, baselines).of_separate_runs();
    let mut runs = Vec::new();
    for (study, places) in studies.iter().zip(&places) {
        for run in study.runs() {
            let directory = study.directory.join(&run.directory);
            let file = directory.join(RUN);
            let text = bounded::read(&file, STUDY_MAX).map_err(BenchError::file("read", &file))?;
            let result = bench::BenchDocument::parse(&text)
                .map_err(|error| BenchError::Unavailable(format!("{}: {error}", file.display())))?;
            let Some(variant) = places.get(run.variant).copied() else { continue };
            let run = study::StudyRun { variant, directory: directory.display().to_string(), ..run.clone() };
            results.add(&run, &result);
            runs.push(run);
        }
    }
    runs.sort_by_key(|run| (run.started_ns, run.variant));
    let names: Vec<&str> = studies.iter().map(|study| study.name.as_str()).collect();
    let words = ["smbscope", "compare"].map(str::to_owned).into_iter();
    let directories = studies.iter().map(|study| quoted(&study.directory.display().to_string()));
    let mut warnings = differences(studies);
    warnings.extend(results.warnings(&variants.iter().map(|variant| variant.name.as_str()).collect::<Vec<_>>()));
    let mut document = StudyDocument {
        generator: bench::Generator::new(env!("CARGO_PKG_VERSION")),
        name: title.unwrap_or_else(|| names.join(" beside ")),
        answer: Default::default(),
        command: words.chain(directories).collect::<Vec<_>>().join(" "),
        started_ns: runs.iter().map(|run| run.started_ns).min(),
        repetitions,
        environment: results.environment(),
        unfit: results.unfit(),
        results: results.rows(),
        server: results.server(),
        variants,
        runs,
        warnings,
        studies: names.into_iter().map(str::to_owned).collect(),
        ..first.document.clone()
    };
    document.answer = results.answer(&document);
    Ok(document)
}

/// Collects the variants of all studies, grouped by name, and the index of each study's variants in that list.
fn paired(studies: &[SavedStudy]) -> (Vec<VariantEntry>, Vec<Vec<usize>>) {
    let mut names: Vec<&str> = Vec::new();
    for variant in studies.iter().flat_map(|study| &study.document.variants) {
        if !names.contains(&variant.name.as_str()) {
            names.push(&variant.name);
        }
    }
    let mut places: Vec<Vec<usize>> = studies.iter().map(|study| vec![0; study.document.variants.len()]).collect();
    let mut variants: Vec<VariantEntry> = Vec::new();
    for name in names {
        let baseline = variants.len();
        for (study, places) in studies.iter().zip(&mut places) {
            let Some(at) = study.document.variants.iter().position(|variant| variant.name == name) else { continue };
            places[at] = variants.len();
            let variant = study.document.variants[at].clone();
            let mut settings = variant.settings.clone();
            settings.insert(AXIS.to_owned(), study.name.clone());
            variants.push(VariantEntry { name: format!("{name}, {}", study.name), baseline, settings, ..variant });
        }
    }
    (variants, places)
}

fn measures(studies: &[SavedStudy]) -> Vec<Measure> {
    let mut measures: Vec<Measure> = Vec::new();
    for row in studies.iter().flat_map(|study| &study.document.results) {
        // Skips measures that a later version added.
        let Ok(measure) = row.measure.parse() else { continue };
        if !measures.contains(&measure) {
            measures.push(measure);
        }
    }
    measures
}

fn differences(studies: &[SavedStudy]) -> Vec<String> {
    let Some((first, others)) = studies.split_first() else { return Vec::new() };
    let mut said = Vec::new();
    for other in others {
        let (a, b) = (&first.document, &other.document);
        if a.definition.text != b.definition.text {
            said.push(format!("{} and {} were made from different files.", first.name, other.name));
        } else if a.definition.quick != b.definition.quick {
            said.push(format!("Of {} and {} only one is the short form (--quick).", first.name, other.name));
        }
        said.extend(environments(first, other));
        let only = |of: &SavedStudy, than: &SavedStudy| -> Vec<String> {
            let has = |name: &str| than.document.variants.iter().any(|variant| variant.name == name);
            of.document.variants.iter().map(|variant| variant.name.clone()).filter(|name| !has(name)).collect()
        };
        for (of, than) in [(first, other), (other, first)] {
            let missing = only(of, than);
            if !missing.is_empty() {
                said.push(format!("{} has no {}.", than.name, missing.join(", ")));
            }
        }
    }
    said
}

fn environments(first: &SavedStudy, other: &SavedStudy) -> Option<String> {
    let (a, b): (&BTreeMap<_, _>, &BTreeMap<_, _>) = (&first.document.environment, &other.document.environment);
    let differ = a.iter().filter_map(|(name, value)| {
        let other_value = b.get(name).filter(|other| *other != value)?;
        Some(format!("{name} ({value}; {other_value})"))
    });
    let differ: Vec<String> = differ.collect();
    (!differ.is_empty())
        .then(|| format!("The environments of {} and {} differ: {}.", first.name, other.name, differ.join(", ")))
}
