//! Options of `smbscope bench`, `smbscope launch` and `smbscope lab up` as written in a study file.

use crate::options::{GivenOptions, word};
use std::collections::BTreeMap;
use std::ffi::OsString;
use toml::{Table, Value};

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
    set: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Tables {
    pub(super) bench: Table,
    pub(super) launch: Table,
    pub(super) lab: Table,
    pub(super) set: Table,
}

impl Tables {
    pub(super) fn one(table: &str, option: &str, value: &Value) -> Tables {
        let one = Table::from_iter([(option.to_owned(), value.clone())]);
        let mut tables = Tables::default();
        match table {
            "bench" => tables.bench = one,
            "launch" => tables.launch = one,
            "lab" => tables.lab = one,
            _ => tables.set = one,
        }
        tables
    }

    pub(super) fn named(&self) -> [(&'static str, &Table); 4] {
        [("bench", &self.bench), ("launch", &self.launch), ("lab", &self.lab), ("set", &self.set)]
    }
}

impl VariantOptions {
    pub(super) fn parse(tables: &Tables) -> Result<VariantOptions, String> {
        let Tables { bench, launch, lab, set } = tables;
        if let Some(own) = bench.keys().chain(launch.keys()).find(|key| OWN.contains(&key.as_str())) {
            return Err(match own.as_str() {
                "set" => "parameters of the workload are in the table [set], not in [bench]".to_owned(),
                own => format!("a study sets --{own} itself: omit it"),
            });
        }
        let parameter = |(name, value): (&String, &Value)| match value {
            Value::Array(_) | Value::Table(_) => Err(format!("the parameter {name} has one value")),
            value => Ok((name.clone(), plain(value))),
        };
        Ok(VariantOptions {
            bench: named(bench)?,
            launch: named(launch)?,
            lab: named(lab)?,
            set: set.iter().map(parameter).collect::<Result<_, _>>()?,
        })
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
        bench.set("set", self.set.iter().map(|(name, value)| format!("{name}={value}")));
        bench
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
        let set = self.set.iter().map(|(name, value)| format!("--set={name}={value}"));
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

fn named(table: &Table) -> Result<GivenOptions, String> {
    let mut options = GivenOptions::default();
    for (name, value) in table {
        let values = match value {
            Value::Table(_) => return Err(format!("the option {name} has a value or a list of values")),
            Value::Array(values) => values.iter().map(plain).collect(),
            value => vec![plain(value)],
        };
        if let Some(bare) = name.strip_prefix("--") {
            return Err(format!("options are written without --: {bare}"));
        }
        options.set(name, values);
    }
    Ok(options)
}

fn written((name, values): (&str, &[OsString])) -> Vec<String> {
    let words = values.iter().filter_map(|value| word(name, value, true));
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
