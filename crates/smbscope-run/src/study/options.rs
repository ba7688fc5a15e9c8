//! Options of `smbscope bench`, `smbscope launch` and `smbscope lab up` as written in a study file.

use crate::options::{GivenOptions, GivenValue, word};
use std::collections::BTreeMap;
use std::ffi::OsString;

const OWN: [&str; 10] =
    ["output", "format", "title", "quiet", "plain", "full", "color", "width", "set", "find-capacity"];

const COMMAND: &str = "command";
const REPETITIONS: &str = "repetitions";
const PRIVATE: &str = "lab";

/// Options of a run by name. Later ones replace earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VariantOptions {
    pub(super) bench: GivenOptions,
    pub(super) launch: GivenOptions,
    /// Empty unless a private server with options is needed.
    pub(super) lab: GivenOptions,
    /// Parameters of the workload.
    pub(super) set: BTreeMap<String, GivenValue>,
}

impl VariantOptions {
    /// Returns options with a single one, of the table of this name.
    pub(super) fn single(table: &str, option: &str, value: String) -> VariantOptions {
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
    pub(super) fn checked(self) -> Result<VariantOptions, String> {
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

    pub(super) fn without_lab(&self) -> VariantOptions {
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
    pub(super) fn words(&self) -> Vec<String> {
        let (verb, words) = match self.is_launch() {
            true => ("launch", self.launch_words()),
            false => ("bench", self.bench_words()),
        };
        [verb.to_owned()].into_iter().chain(words).collect()
    }

    pub(super) fn bench_words(&self) -> Vec<String> {
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

    pub(super) fn lab_words(&self) -> Vec<String> {
        self.lab.iter().flat_map(written).collect()
    }
}

fn written((name, values): (&str, &[OsString])) -> Vec<String> {
    let words = values.iter().filter_map(|value| word(name, value, true));
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}
