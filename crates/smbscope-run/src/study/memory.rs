//! State of a study: `study.json` in its directory, written after each run, so the study can continue after an
//! interruption.

use super::{PlannedVariant, Study, VariantRepetition};
use crate::BenchError;
use crate::directory::RUN;
use crate::files::{Replacement, Sources, create_private_directory, is_left_over};
use smbscope_load::bounded;
use smbscope_report::study::{self, Results, StudyDocument};
use smbscope_report::{bench, html};
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

pub const STUDY: &str = "study.json";

pub const PAGE: &str = "study.html";

/// Bytes of a study's document; more are refused.
pub(super) const STUDY_MAX: u64 = 256 << 20;

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
            if let Some(source) = fs::metadata(&file).ok().and_then(|found| sources.name_of(&found).map(str::to_owned))
            {
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
            ),
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
            self.results.add(turn.variant, turn.repetition, result);
        }
        self.document.runs.push(run);
    }

    pub(super) fn keep(&mut self) -> Result<(), BenchError> {
        self.document.started_ns = self.document.runs.iter().map(|run| run.started_ns).min();
        self.document.environment = self.results.environment();
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
        command: variant.command(),
        before: variant.before.clone(),
        after: variant.after.clone(),
    };
    let definition = study::StudyDefinitionEntry {
        source: study.definition.source.clone(),
        sha256: study.definition.sha256.clone(),
        text: study.definition.text.clone(),
        quick: study.definition.quick,
        targets: study.definition.targets.clone(),
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
        results: Vec::new(),
        server: Vec::new(),
        warnings: Vec::new(),
        studies: Vec::new(),
    }
}
