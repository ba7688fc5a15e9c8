//! A study: its file (the question, the common options and the axes), and the servers that replace its own.

use crate::TargetUrl;
use crate::environment::Need;
use crate::options::{GivenOptions, GivenValue, RUNS_OF_A_VARIANT_MAX};
use crate::study::{VariantOptions, changes};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use smbscope_load::bounded::{self, WORKLOAD_TABLE_MAX};
use smbscope_load::workload::Location;
use smbscope_report::study::Suspect;
use smbscope_stats::Measure;
use smbscope_stats::filter::did_you_mean;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use toml::Spanned;

/// Variants of a study; more are refused.
pub const VARIANTS_MAX: usize = 1_000;
/// Default repetitions: the fewest that allow a confidence interval.
const REPETITIONS: u32 = 5;
const MEASURES: [&str; 5] = ["elapsed", "commands", "throughput", "mean(total)", "p95(total)"];

#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    #[error("cannot read {path}: {error}")]
    Unreadable {
        path: String,
        #[source]
        error: std::io::Error,
    },
    #[error("{place}: {what}")]
    Invalid { place: Location, what: String },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    pub name: String,
    pub question: String,
    pub repetitions: u32,
    pub seed: u64,
    pub measures: Vec<Measure>,
    pub common: VariantOptions,
    /// The last axis varies fastest.
    pub axes: Vec<Axis>,
    /// Axis to compare along: each variant is compared with the one that has the first setting of this axis and
    /// otherwise the same settings. `None` compares all variants with the first one.
    pub compare_along: Option<String>,
    /// Commands that the study finds guilty or clears.
    pub suspect: Option<Suspect>,
    /// Programs, files and rights without which no run works.
    pub needs: Vec<Need>,
    /// Reason why the study makes no sense with `--target`.
    pub this_machine: Option<String>,
    pub definition: StudySource,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudySource {
    pub source: String,
    pub text: String,
    /// SHA-256 of the text, of `--quick` and of the targets, in hexadecimal.
    pub sha256: String,
    pub quick: bool,
    /// Settings and options that the short form or the targets leave out or change.
    pub left_out: Vec<String>,
    pub targets: Vec<String>,
    /// Hardware and settings of targets in the user's words: `NAME=TEXT`.
    pub about: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    pub name: String,
    /// The first setting is the baseline.
    pub settings: Vec<Setting>,
    /// True if the settings are values of an option and need its name to be understood: `cpu-load 50`.
    pub is_option: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Setting {
    pub name: String,
    pub options: VariantOptions,
    pub before: Vec<String>,
    /// Shell commands after each run, even a failed one.
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
    suspect: Option<Suspect>,
    #[serde(default)]
    need: Vec<Spanned<Need>>,
    this_machine: Option<String>,
    #[serde(default)]
    measures: Vec<Spanned<String>>,
    #[serde(default)]
    bench: GivenOptions,
    #[serde(default)]
    launch: GivenOptions,
    #[serde(default)]
    lab: GivenOptions,
    #[serde(default)]
    set: BTreeMap<String, GivenValue>,
    #[serde(default)]
    quick: RawQuick,
    #[serde(default)]
    axis: Vec<Spanned<RawAxis>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawQuick {
    repetitions: Option<Spanned<u32>>,
    #[serde(default)]
    bench: GivenOptions,
    #[serde(default)]
    launch: GivenOptions,
    #[serde(default)]
    lab: GivenOptions,
    #[serde(default)]
    set: BTreeMap<String, GivenValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAxis {
    name: Option<String>,
    #[serde(default)]
    bench: OptionLists,
    #[serde(default)]
    launch: OptionLists,
    #[serde(default)]
    lab: OptionLists,
    #[serde(default)]
    set: OptionLists,
    #[serde(default)]
    setting: Vec<Spanned<RawSetting>>,
    quick: Option<Vec<Spanned<GivenValue>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSetting {
    name: String,
    #[serde(default)]
    bench: GivenOptions,
    #[serde(default)]
    launch: GivenOptions,
    #[serde(default)]
    lab: GivenOptions,
    #[serde(default)]
    set: BTreeMap<String, GivenValue>,
    #[serde(default)]
    before: Vec<String>,
    #[serde(default)]
    after: Vec<String>,
}

/// Options of an axis by name. A valid axis has one, with a list of values.
type OptionLists = BTreeMap<String, GivenValue>;

macro_rules! options {
    ($of:expr) => {
        VariantOptions {
            bench: $of.bench.clone(),
            launch: $of.launch.clone(),
            lab: $of.lab.clone(),
            set: $of.set.clone(),
            server: None,
        }
        .checked()
    };
}

fn one() -> u64 {
    1
}

impl Study {
    pub fn load(path: &Path, quick: bool) -> Result<Study, DefinitionError> {
        let name = path.display().to_string();
        let unreadable = |error| DefinitionError::Unreadable { path: name.clone(), error };
        let bytes = bounded::read(path, WORKLOAD_TABLE_MAX as u64).map_err(unreadable)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| unreadable(std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8")))?;
        Study::parse(&name, &text, quick)
    }

    pub fn is_bundled(&self) -> bool {
        is_bundled(&self.definition.text)
    }

    /// Parses the text of a study file. `file` is its name in errors.
    pub fn parse(file: &str, text: &str, quick: bool) -> Result<Study, DefinitionError> {
        let place = StudyText { file, text };
        let raw: RawStudy = toml::from_str(text)
            .map_err(|error| place.invalid(error.span().map_or(0, |span| span.start), said(error.message())))?;
        let (common, repetitions) = common_options(&raw, quick, place)?;
        let axes = read_axes(&raw, quick, place)?;
        if let Some(along) =
            raw.compare_along.as_ref().filter(|along| axes.iter().all(|axis| axis.name != *along.get_ref()))
        {
            let known: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
            let what = format!("no axis is called {:?}; there are: {}", along.get_ref(), known.join(", "));
            return Err(place.invalid(along.span().start, what));
        }
        let measures = read_measures(&raw.measures, place)?;
        let needs = read_needs(&raw.need, place)?;
        let sha256 = Sha256::new_with_prefix(text).chain_update([u8::from(quick)]).finalize();
        let mut study = Study {
            name: raw.name.into_inner(),
            question: raw.question,
            repetitions,
            seed: raw.seed,
            measures,
            common,
            axes,
            compare_along: raw.compare_along.map(Spanned::into_inner),
            suspect: raw.suspect,
            needs,
            this_machine: raw.this_machine,
            definition: StudySource {
                source: file.to_owned(),
                text: text.to_owned(),
                sha256: hexadecimal(&sha256),
                quick,
                left_out: Vec::new(),
                targets: Vec::new(),
                about: Vec::new(),
            },
        };
        if quick {
            study.definition.left_out = changes(&Study::parse(file, text, false)?, &study);
        }
        Ok(study)
    }
}

/// Text of a study file, and its name for errors.
#[derive(Clone, Copy)]
struct StudyText<'a> {
    file: &'a str,
    text: &'a str,
}

impl StudyText<'_> {
    fn invalid(self, at: usize, what: String) -> DefinitionError {
        DefinitionError::Invalid { place: Location::at(self.file, self.text, at), what }
    }
}

/// Formats an error of the TOML parser. Proposes the nearest key for an unknown one.
fn said(message: &str) -> String {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match (names.split_first(), message.split_once(", expected")) {
        (Some((unknown, known)), Some((what, _))) if message.starts_with("unknown field") => {
            let near = did_you_mean(unknown, known.iter().copied());
            format!("{what}; {}", near.unwrap_or_else(|| format!("there are: {}", known.join(", "))))
        }
        _ => message.trim().replace('\n', ", "),
    }
}

/// Returns the options of all variants and the number of repetitions.
fn common_options(raw: &RawStudy, quick: bool, place: StudyText<'_>) -> Result<(VariantOptions, u32), DefinitionError> {
    let wrong = |what: String| place.invalid(raw.name.span().start, what);
    let mut common = options!(raw).map_err(wrong)?;
    let mut repetitions = raw.repetitions.as_ref();
    if quick {
        let changes = options!(raw.quick).map_err(wrong)?;
        common = common.with(&changes);
        repetitions = raw.quick.repetitions.as_ref().or(repetitions);
    }
    if let Some(given) = repetitions.filter(|given| !(1..=RUNS_OF_A_VARIANT_MAX).contains(given.get_ref())) {
        let what = format!("repetitions are 1 to {RUNS_OF_A_VARIANT_MAX}");
        return Err(place.invalid(given.span().start, what));
    }
    Ok((common, repetitions.map_or(REPETITIONS, |given| *given.get_ref())))
}

fn read_axes(raw: &RawStudy, quick: bool, place: StudyText<'_>) -> Result<Vec<Axis>, DefinitionError> {
    let mut axes = Vec::new();
    for axis in &raw.axis {
        axes.push(axis.get_ref().read(quick).map_err(|what| place.invalid(axis.span().start, what))?);
    }
    let mut names = HashSet::new();
    if let Some(twice) = axes.iter().position(|axis: &Axis| !names.insert(axis.name.as_str())) {
        let what = format!("two axes are called {:?}: give one of them another name", axes[twice].name);
        return Err(place.invalid(raw.axis[twice].span().start, what));
    }
    let variants = axes.iter().map(|axis| axis.settings.len()).try_fold(1usize, |all, more| all.checked_mul(more));
    if variants.is_none_or(|variants| variants > VARIANTS_MAX) {
        let what = format!("the axes have more than {VARIANTS_MAX} variants together");
        return Err(place.invalid(raw.name.span().start, what));
    }
    Ok(axes)
}

/// Parses the measures of a study, or the default ones if it has none.
fn read_measures(given: &[Spanned<String>], place: StudyText<'_>) -> Result<Vec<Measure>, DefinitionError> {
    if given.is_empty() {
        return Ok(MEASURES.iter().filter_map(|name| name.parse().ok()).collect());
    }
    let read = |name: &Spanned<String>| {
        name.get_ref()
            .parse()
            .map_err(|error: smbscope_stats::filter::FilterError| place.invalid(name.span().start, error.sentence()))
    };
    given.iter().map(read).collect()
}

fn read_needs(given: &[Spanned<Need>], place: StudyText<'_>) -> Result<Vec<Need>, DefinitionError> {
    let read = |need: &Spanned<Need>| match need.get_ref().problem() {
        Some(what) => Err(place.invalid(need.span().start, what.to_owned())),
        None => Ok(need.get_ref().clone()),
    };
    given.iter().map(read).collect()
}

const SERVER: &str = "server";

impl Study {
    /// Replaces the servers of the file, or the private ones, by these targets (`[NAME=]smb://…`). Fails if a target is
    /// invalid, a name occurs twice, or the study is about this machine.
    pub fn at_targets(&mut self, targets: &[String]) -> Result<(), String> {
        let settings = targets.iter().map(|target| at_target(target)).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = settings.first() else { return Ok(()) };
        if let Some(why) = &self.this_machine {
            return Err(format!("{} can't be made with --target: {why}", self.name));
        }
        // Settings of the private server don't apply to a target.
        self.common = self.common.without_lab();
        self.leave_out_private_servers();
        // Without a mark where the server is, every launch has its files there.
        let is_marked = self.axes.iter().flat_map(|axis| &axis.settings).any(|setting| setting.options.is_at_server());
        let placed = |setting: &Setting| match is_marked {
            true => setting.clone(),
            false => Setting { options: setting.options.launched_at_server(), ..setting.clone() },
        };
        let settings: Vec<Setting> = settings.iter().map(placed).collect();
        match self.axes.iter_mut().find(|axis| axis.name == SERVER) {
            Some(servers) => (servers.settings, servers.is_option) = (settings.clone(), false),
            None if settings.len() == 1 => self.common = self.common.with(&placed(first).options),
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

    /// Describes targets (`NAME=TEXT`), since a server's hardware can't be seen from its client.
    pub fn describe(&mut self, about: &[String]) -> Result<(), String> {
        let named = |target: &String| at_target(target).map(|setting| setting.name);
        let names: Vec<String> = self.definition.targets.iter().map(named).collect::<Result<_, _>>()?;
        for text in about {
            let Some((name, _)) = described(text) else {
                return Err(format!("--about {text}: expected NAME=TEXT, such as old='2 processors, 64 GB, RAID 10'"));
            };
            if !names.iter().any(|known| known == name) {
                let near = did_you_mean(name, names.iter().map(String::as_str));
                let known = near.unwrap_or_else(|| format!("there are: {}", names.join(", ")));
                return Err(format!("--about {name}: no --target has this name; {known}"));
            }
        }
        self.definition.about = about.to_vec();
        Ok(())
    }

    /// Returns the description of a target.
    pub(super) fn description(&self, target: &str) -> Option<String> {
        let named = self.definition.targets.iter().find(|text| target_of(text).1 == target)?;
        let name = at_target(named).ok()?.name;
        let mut descriptions = self.definition.about.iter().filter_map(|text| described(text));
        descriptions.find(|(described, _)| *described == name).map(|(_, text)| text.to_owned())
    }

    /// Removes settings that need a private server, if others remain to be compared.
    fn leave_out_private_servers(&mut self) {
        let is_private = |setting: &Setting| setting.options.lab_option().is_some();
        let mut axes = self.axes.clone();
        for axis in axes.iter_mut().filter(|axis| axis.name != SERVER) {
            axis.settings.retain(|setting| !is_private(setting));
        }
        let variants: usize = axes.iter().map(|axis| axis.settings.len()).product();
        if variants < 2 && self.variants().len() > 1 {
            return;
        }
        for axis in self.axes.iter().filter(|axis| axis.name != SERVER) {
            let names = axis.settings.iter().filter(|setting| is_private(setting)).map(|setting| setting.name.as_str());
            let text = names.map(|name| format!("{name} (needs a private server)"));
            self.definition.left_out.extend(text);
        }
        self.axes = axes;
    }
}

/// Splits `NAME=TEXT`.
fn described(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').map(|(name, text)| (name, text.trim())).filter(|(_, text)| !text.is_empty())
}

/// Splits `[NAME=]TARGET`.
fn target_of(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((name, target)) if !name.contains([':', '/']) && !name.is_empty() => (Some(name), target),
        _ => (None, text),
    }
}

fn at_target(text: &str) -> Result<Setting, String> {
    let (name, target) = target_of(text);
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
        let tables = [("bench", &self.bench), ("launch", &self.launch), ("lab", &self.lab), ("set", &self.set)];
        let options: Vec<(&str, &String, &GivenValue)> = tables
            .into_iter()
            .flat_map(|(table, options)| options.iter().map(move |(option, values)| (table, option, values)))
            .collect();
        let (name, mut settings) = match (options.as_slice(), self.setting.as_slice()) {
            ([(table, option, GivenValue::Several(values))], []) if !values.is_empty() => {
                let setting = |value: &String| {
                    let options = VariantOptions::single(table, option, value.clone()).checked()?;
                    Ok(Setting { name: value.clone(), options, ..Setting::default() })
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
            let kept: Vec<&str> = kept.iter().filter_map(|value| value.get_ref().one()).collect();
            if let Some(unknown) = kept.iter().find(|kept| settings.iter().all(|setting| setting.name != **kept)) {
                return Err(format!("the axis {name} has no setting {unknown:?} for --quick to keep"));
            }
            settings.retain(|setting| kept.contains(&setting.name.as_str()));
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
        let options = options!(self)?;
        Ok(Setting { name: self.name.clone(), options, before: self.before.clone(), after: self.after.clone() })
    }
}

const STUDIES: &[&str] = &[
    include_str!("../../../../studies/antivirus.toml"),
    include_str!("../../../../studies/block-sizes.toml"),
    include_str!("../../../../studies/copies.toml"),
    include_str!("../../../../studies/disk.toml"),
    include_str!("../../../../studies/homefolders-ramp.toml"),
    include_str!("../../../../studies/ini-dialects.toml"),
    include_str!("../../../../studies/launch.toml"),
    include_str!("../../../../studies/logon.toml"),
    include_str!("../../../../studies/netbench-two-servers.toml"),
    include_str!("../../../../studies/power-profile.toml"),
    include_str!("../../../../studies/processor-load.toml"),
    include_str!("../../../../studies/protection.toml"),
];

/// Returns true if the text is a shipped study's, so its commands are trusted.
fn is_bundled(text: &str) -> bool {
    STUDIES.contains(&text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn every_study_of_the_repository_is_known() {
        let folder = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies")).expect("it is there");
        let files = folder.map(|entry| entry.expect("it can be listed").path());
        for file in files.filter(|file| file.extension().is_some_and(|ending| ending == "toml")) {
            assert!(super::is_bundled(&fs::read_to_string(&file).expect("it can be read")), "{}", file.display());
        }
        assert!(!super::is_bundled(""));
    }
}
