//! Options of `smbscope bench`, `smbscope launch` and `smbscope lab up` as written in a study file.

use std::collections::BTreeMap;
use toml::{Table, Value};

type OptionValues = BTreeMap<String, Vec<String>>;

const OWN: [&str; 10] =
    ["output", "format", "title", "quiet", "plain", "full", "color", "width", "set", "find-capacity"];

const COMMAND: &str = "command";
const REPETITIONS: &str = "repetitions";
const PRIVATE: &str = "lab";

/// Options of a run as on the command line. Later ones replace earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VariantOptions {
    bench: OptionValues,
    launch: OptionValues,
    /// Empty unless a private server with options is needed.
    lab: OptionValues,
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
        all.bench.extend(others.bench.clone());
        all.launch.extend(others.launch.clone());
        all.lab.extend(others.lab.clone());
        all.set.extend(others.set.clone());
        all
    }

    pub fn at(&self, target: &str) -> VariantOptions {
        let mut all = self.clone();
        for options in [&mut all.bench, &mut all.launch] {
            options.insert("target".to_owned(), vec![target.to_owned()]);
        }
        all
    }

    pub(super) fn without_lab(&self) -> VariantOptions {
        VariantOptions { lab: OptionValues::new(), ..self.clone() }
    }

    pub fn is_launch(&self) -> bool {
        self.launch.contains_key(COMMAND)
    }

    pub fn target(&self) -> Option<&str> {
        let options = if self.is_launch() { &self.launch } else { &self.bench };
        let target = options.get("target").and_then(|target| target.first()).map(String::as_str);
        target.filter(|target| !self.is_launch() || *target != PRIVATE)
    }

    pub fn lab_option(&self) -> Option<&str> {
        self.lab.keys().next().map(String::as_str)
    }

    pub fn bench_arguments(&self) -> Vec<String> {
        let target = self.target().map(str::to_owned);
        let options = self.bench.iter().filter(|(name, _)| *name != "target");
        let set = self.set.iter().map(|(name, value)| format!("--set={name}={value}"));
        options.flat_map(written).chain(set).chain(target).collect()
    }

    pub fn launch_arguments(&self) -> Vec<String> {
        let once = (!self.launch.contains_key(REPETITIONS)).then(|| format!("--{REPETITIONS}=1"));
        let options = self.launch.iter().filter(|(name, _)| *name != COMMAND).flat_map(written);
        let command = self.launch.get(COMMAND).into_iter().flatten().cloned();
        once.into_iter().chain(options).chain(["--".to_owned()]).chain(command).collect()
    }

    pub fn arguments(&self) -> Vec<String> {
        let (verb, arguments) = match self.is_launch() {
            true => ("launch", self.launch_arguments()),
            false => ("bench", self.bench_arguments()),
        };
        [verb.to_owned()].into_iter().chain(arguments).collect()
    }

    pub fn lab_arguments(&self) -> Vec<String> {
        self.lab.iter().flat_map(written).collect()
    }
}

fn named(table: &Table) -> Result<OptionValues, String> {
    let values = |(name, value): (&String, &Value)| {
        let values = match value {
            Value::Table(_) => return Err(format!("the option {name} has a value or a list of values")),
            Value::Array(values) => values.iter().map(plain).collect(),
            value => vec![plain(value)],
        };
        match name.strip_prefix("--") {
            Some(bare) => Err(format!("options are written without --: {bare}")),
            None => Ok((name.replace('_', "-"), values)),
        }
    };
    table.iter().map(values).collect()
}

/// Formats an option for the command line. A switch that is on has no value; one that is off is left out.
fn written((name, values): (&String, &Vec<String>)) -> Vec<String> {
    let one = |value: &String| match value.as_str() {
        "true" => Some(format!("--{name}")),
        "false" => None,
        value => Some(format!("--{name}={value}")),
    };
    values.iter().filter_map(one).collect()
}

pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
