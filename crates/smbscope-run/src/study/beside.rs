//! Compares finished studies: each variant with the variant of the same name in the first study.

use super::STUDY;
use super::memory::STUDY_MAX;
use crate::BenchError;
use crate::directory::RUN;
use smbscope_load::bounded;
use smbscope_report::study::{self, Results, StudyDocument, VariantEntry};
use smbscope_report::{bench, quoted};
use smbscope_stats::Measure;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
            results.add(variant, run.repetition, &result);
            runs.push(study::StudyRun { variant, directory: directory.display().to_string(), ..run.clone() });
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
