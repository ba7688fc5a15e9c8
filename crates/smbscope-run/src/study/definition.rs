//! The file of a study: what is asked, what all runs have in common, and what differs between them.

use super::options::{Tables, VariantOptions};
use crate::TargetUrl;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use smbscope_load::bounded::{self, WORKLOAD_TABLE_MAX};
use smbscope_load::workload::Location;
use smbscope_stats::Measure;
use std::collections::HashSet;
use std::path::Path;
use toml::{Spanned, Table, Value};

/// Variants of a study: every setting of every axis with every one of the others.
pub const VARIANTS_MAX: usize = 1_000;
/// Repetitions of each variant.
pub const RUNS_OF_A_VARIANT_MAX: u32 = 1_000;
/// Repetitions where the file names none: the fewest that an interval can be made from.
const REPETITIONS: u32 = 5;
/// What is compared where the file names nothing.
const MEASURES: [&str; 5] = ["elapsed", "commands", "throughput", "mean(total)", "p95(total)"];

/// Why a file describes no study.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        #[source]
        error: std::io::Error,
    },
    /// What is wrong, and where.
    #[error("{place}: {what}")]
    Invalid {
        /// Where.
        place: Location,
        /// What is wrong, and what to do.
        what: String,
    },
}

/// A study, as its file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// What it is called.
    pub name: String,
    /// What it answers.
    pub question: String,
    /// Runs of each variant.
    pub repetitions: u32,
    /// What the order of the runs begins from.
    pub seed: u64,
    /// What is compared.
    pub measures: Vec<Measure>,
    /// What all runs have in common.
    pub common: VariantOptions,
    /// What differs, the first axis slowest.
    pub axes: Vec<Axis>,
    /// The axis along which variants are compared: each with the one that has the first setting there and is the same
    /// elsewhere. Without it all are compared with the first one.
    pub compare_along: Option<String>,
    /// What it was made from.
    pub definition: StudySource,
}

/// The text of a study, and by what two of them are known to be the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudySource {
    /// The file, as it was named.
    pub source: String,
    /// Its text.
    pub text: String,
    /// SHA-256 of the text and of what `--quick` makes of it, in hexadecimal.
    pub sha256: String,
    /// The short form.
    pub quick: bool,
    /// Targets that stand for the servers of the file.
    pub targets: Vec<String>,
}

/// Something that differs between variants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// What it is called.
    pub name: String,
    /// Its settings; the first one is that of the baseline.
    pub settings: Vec<Setting>,
    /// The settings are values of an option, and mean nothing without its name: `cpu-load 50`.
    pub is_option: bool,
}

/// One value of an axis.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Setting {
    /// What it is called.
    pub name: String,
    /// What it changes.
    pub options: VariantOptions,
    /// Commands for the shell, before each of its runs.
    pub before: Vec<String>,
    /// Commands for the shell, after each of its runs, also after one that failed.
    pub after: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStudy {
    name: Spanned<String>,
    #[serde(default)]
    question: String,
    repetitions: Option<Spanned<u32>>,
    #[serde(default = "one")]
    seed: u64,
    compare_along: Option<Spanned<String>>,
    #[serde(default)]
    measures: Vec<Spanned<String>>,
    #[serde(default)]
    bench: Table,
    #[serde(default)]
    launch: Table,
    #[serde(default)]
    lab: Table,
    #[serde(default)]
    set: Table,
    #[serde(default)]
    quick: RawQuick,
    #[serde(default)]
    axis: Vec<Spanned<RawAxis>>,
}

/// What the short form changes.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawQuick {
    repetitions: Option<Spanned<u32>>,
    #[serde(default)]
    bench: Table,
    #[serde(default)]
    launch: Table,
    #[serde(default)]
    lab: Table,
    #[serde(default)]
    set: Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAxis {
    name: Option<String>,
    #[serde(default)]
    bench: Table,
    #[serde(default)]
    launch: Table,
    #[serde(default)]
    lab: Table,
    #[serde(default)]
    set: Table,
    #[serde(default)]
    setting: Vec<Spanned<RawSetting>>,
    /// The settings that the short form has, by name.
    quick: Option<Vec<Spanned<Value>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSetting {
    name: String,
    #[serde(default)]
    bench: Table,
    #[serde(default)]
    launch: Table,
    #[serde(default)]
    lab: Table,
    #[serde(default)]
    set: Table,
    #[serde(default)]
    before: Vec<String>,
    #[serde(default)]
    after: Vec<String>,
}

/// The tables of options of a part of the file.
macro_rules! tables {
    ($of:expr) => {
        Tables { bench: $of.bench.clone(), launch: $of.launch.clone(), lab: $of.lab.clone(), set: $of.set.clone() }
    };
}

fn one() -> u64 {
    1
}

impl Study {
    /// Reads the file, for its short form where that is asked for.
    pub fn load(path: &Path, quick: bool) -> Result<Study, DefinitionError> {
        let name = path.display().to_string();
        let unreadable = |error| DefinitionError::Unreadable { path: name.clone(), error };
        let bytes = bounded::read(path, WORKLOAD_TABLE_MAX as u64).map_err(unreadable)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| unreadable(std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8")))?;
        Study::parse(&name, &text, quick)
    }

    /// Returns true if it is one of those that come with this program, unchanged.
    pub fn is_bundled(&self) -> bool {
        super::bundled::has(&self.definition.text)
    }

    /// The study that the text of a file describes.
    pub fn parse(file: &str, text: &str, quick: bool) -> Result<Study, DefinitionError> {
        let invalid = |at: usize, what: String| DefinitionError::Invalid { place: Location::at(file, text, at), what };
        let wrong = |at: usize| move |what: String| invalid(at, what);
        let raw: RawStudy = toml::from_str(text).map_err(|error| {
            invalid(error.span().map_or(0, |span| span.start), error.message().trim().replace('\n', ", "))
        })?;
        let begin = raw.name.span().start;
        let mut common = VariantOptions::parse(&tables!(raw)).map_err(wrong(begin))?;
        let mut repetitions = raw.repetitions;
        if quick {
            let changes = VariantOptions::parse(&tables!(raw.quick)).map_err(wrong(begin))?;
            common = common.with(&changes);
            repetitions = raw.quick.repetitions.or(repetitions);
        }
        if let Some(given) = repetitions.as_ref().filter(|given| !(1..=RUNS_OF_A_VARIANT_MAX).contains(given.get_ref()))
        {
            return Err(invalid(given.span().start, format!("repetitions are 1 to {RUNS_OF_A_VARIANT_MAX}")));
        }
        let mut axes = Vec::new();
        for axis in &raw.axis {
            axes.push(axis.get_ref().read(quick).map_err(wrong(axis.span().start))?);
        }
        let mut names = HashSet::new();
        if let Some(twice) = axes.iter().position(|axis: &Axis| !names.insert(axis.name.as_str())) {
            let what = format!("two axes are called {:?}: give one of them another name", axes[twice].name);
            return Err(invalid(raw.axis[twice].span().start, what));
        }
        let variants = axes.iter().map(|axis| axis.settings.len()).try_fold(1usize, |all, more| all.checked_mul(more));
        if variants.is_none_or(|variants| variants > VARIANTS_MAX) {
            return Err(invalid(begin, format!("the axes have more than {VARIANTS_MAX} variants together")));
        }
        if let Some(along) = raw.compare_along.as_ref().filter(|along| !names.contains(along.get_ref().as_str())) {
            let known: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
            let what = format!("no axis is called {:?}; there are: {}", along.get_ref(), known.join(", "));
            return Err(invalid(along.span().start, what));
        }
        let measures = match raw.measures.as_slice() {
            [] => MEASURES.iter().filter_map(|name| name.parse().ok()).collect(),
            given => {
                let read = |name: &Spanned<String>| {
                    name.get_ref().parse().map_err(|error: smbscope_stats::filter::FilterError| {
                        invalid(name.span().start, error.sentence())
                    })
                };
                given.iter().map(read).collect::<Result<_, _>>()?
            }
        };
        let sha256 = Sha256::new_with_prefix(text).chain_update([u8::from(quick)]).finalize();
        Ok(Study {
            name: raw.name.into_inner(),
            question: raw.question,
            repetitions: repetitions.map_or(REPETITIONS, Spanned::into_inner),
            seed: raw.seed,
            measures,
            common,
            axes,
            compare_along: raw.compare_along.map(Spanned::into_inner),
            definition: StudySource {
                source: file.to_owned(),
                text: text.to_owned(),
                sha256: hexadecimal(&sha256),
                quick,
                targets: Vec::new(),
            },
        })
    }
}

/// The axis whose settings are servers.
const SERVER: &str = "server";

impl Study {
    /// The same with these targets (`[NAME=]smb://…`) instead of the servers that the file names, or instead of private
    /// ones. Error: what is wrong with one of them.
    pub fn at_targets(&mut self, targets: &[String]) -> Result<(), String> {
        let settings = targets.iter().map(|target| at_target(target)).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = settings.first() else { return Ok(()) };
        // What the file says of a private server is about no other.
        self.common = self.common.without_lab();
        match self.axes.iter_mut().find(|axis| axis.name == SERVER) {
            Some(servers) => (servers.settings, servers.is_option) = (settings.clone(), false),
            None if settings.len() == 1 => self.common = self.common.with(&first.options),
            None => self.axes.insert(0, Axis { name: SERVER.to_owned(), settings: settings.clone(), is_option: false }),
        }
        let mut names = HashSet::new();
        if let Some(twice) = settings.iter().find(|setting| !names.insert(setting.name.as_str())) {
            return Err(format!("two targets are called {:?}: give them names, NAME=smb://…", twice.name));
        }
        self.definition.targets = targets.to_vec();
        let mut hash = Sha256::new_with_prefix(&self.definition.sha256);
        targets.iter().for_each(|target| hash.update(target));
        self.definition.sha256 = hexadecimal(&hash.finalize());
        Ok(())
    }
}

/// `[NAME=]smb://…` or `[NAME=]file:DIR`
fn at_target(text: &str) -> Result<Setting, String> {
    let (name, target) = match text.split_once('=') {
        Some((name, target)) if !name.contains([':', '/']) && !name.is_empty() => (Some(name), target),
        _ => (None, text),
    };
    let url: TargetUrl = target.parse().map_err(|error| format!("--target {text}: {error}"))?;
    let own = match url {
        TargetUrl::Share(share) => share.host,
        TargetUrl::Folder(_) => "local".to_owned(),
    };
    let name = name.map_or(own, str::to_owned);
    Ok(Setting { name, options: VariantOptions::default().at(target), ..Setting::default() })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl RawAxis {
    fn read(&self, quick: bool) -> Result<Axis, String> {
        let tables = tables!(self);
        let options: Vec<(&str, &String, &Value)> = tables
            .named()
            .into_iter()
            .flat_map(|(table, options)| options.iter().map(move |(option, values)| (table, option, values)))
            .collect();
        let (name, mut settings) = match (options.as_slice(), self.setting.as_slice()) {
            ([(table, option, Value::Array(values))], []) if !values.is_empty() => {
                let setting = |value: &Value| {
                    let options = VariantOptions::parse(&Tables::one(table, option, value))?;
                    Ok(Setting { name: plain(value), options, ..Setting::default() })
                };
                (Some((*option).clone()), values.iter().map(setting).collect::<Result<Vec<_>, String>>()?)
            }
            ([], settings) if !settings.is_empty() => {
                let read = |setting: &Spanned<RawSetting>| setting.get_ref().read();
                (None, settings.iter().map(read).collect::<Result<Vec<_>, String>>()?)
            }
            _ => {
                return Err("an axis has either one option with a list of values, such as bench.dialect = [\"2.1\", \
                            \"3.1.1\"], or several [[axis.setting]]"
                    .to_owned());
            }
        };
        let Some(name) = self.name.clone().or(name) else {
            return Err("an axis with settings needs a name".to_owned());
        };
        if let Some(kept) = self.quick.as_ref().filter(|_| quick) {
            let kept: Vec<String> = kept.iter().map(|value| plain(value.get_ref())).collect();
            if let Some(unknown) = kept.iter().find(|kept| settings.iter().all(|setting| setting.name != **kept)) {
                return Err(format!("the axis {name} has no setting {unknown:?} for --quick to keep"));
            }
            settings.retain(|setting| kept.contains(&setting.name));
        }
        let mut names = HashSet::new();
        if let Some(twice) = settings.iter().find(|setting| !names.insert(setting.name.as_str())) {
            return Err(format!("the axis {name} has two settings {:?}", twice.name));
        }
        Ok(Axis { name, settings, is_option: !options.is_empty() })
    }
}

impl RawSetting {
    fn read(&self) -> Result<Setting, String> {
        let options = VariantOptions::parse(&tables!(self))?;
        Ok(Setting { name: self.name.clone(), options, before: self.before.clone(), after: self.after.clone() })
    }
}

/// A value as a person writes it.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
