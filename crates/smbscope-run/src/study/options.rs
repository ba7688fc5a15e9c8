//! Options of `smbscope bench`, `smbscope launch` and `smbscope lab up`, as a study's file names them.

use super::definition::plain;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Options by name, each with its values.
type OptionValues = BTreeMap<String, Vec<String>>;

/// Options of bench that a study sets itself.
const OWN: [&str; 10] =
    ["output", "format", "title", "quiet", "plain", "full", "color", "width", "set", "find-capacity"];

/// What is launched.
const COMMAND: &str = "command";
/// How often.
const REPETITIONS: &str = "repetitions";
/// The target of a launch that stands for a private server.
const PRIVATE: &str = "lab";

/// What a run is made from: options as on the command line, in which later ones replace earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VariantOptions {
    bench: OptionValues,
    /// Absent where the runs are loads.
    launch: OptionValues,
    /// Absent where nothing asks for a private server by its options.
    lab: OptionValues,
    /// Parameters of the workload.
    set: BTreeMap<String, String>,
}

/// The tables of a file that name options.
#[derive(Debug, Clone, Default)]
pub(super) struct Tables {
    pub(super) bench: Table,
    pub(super) launch: Table,
    pub(super) lab: Table,
    pub(super) set: Table,
}

impl Tables {
    /// Those of one option alone.
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

    /// Each with its name.
    pub(super) fn named(&self) -> [(&'static str, &Table); 4] {
        [("bench", &self.bench), ("launch", &self.launch), ("lab", &self.lab), ("set", &self.set)]
    }
}

impl VariantOptions {
    /// From the tables of a file.
    pub(super) fn parse(tables: &Tables) -> Result<VariantOptions, String> {
        let Tables { bench, launch, lab, set } = tables;
        if let Some(own) = bench.keys().chain(launch.keys()).find(|key| OWN.contains(&key.as_str())) {
            return Err(match own.as_str() {
                "set" => "parameters of the workload are in the table [set], not in [bench]".to_owned(),
                own => format!("a study decides about --{own} itself: leave it out"),
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

    /// These with others, which replace them where both have one.
    pub fn with(&self, others: &VariantOptions) -> VariantOptions {
        let mut all = self.clone();
        all.bench.extend(others.bench.clone());
        all.launch.extend(others.launch.clone());
        all.lab.extend(others.lab.clone());
        all.set.extend(others.set.clone());
        all
    }

    /// These for another target: a server that is there already.
    pub fn at(&self, target: &str) -> VariantOptions {
        let mut all = self.clone();
        for options in [&mut all.bench, &mut all.launch] {
            options.insert("target".to_owned(), vec![target.to_owned()]);
        }
        all
    }

    /// These without those of a private server.
    pub(super) fn without_lab(&self) -> VariantOptions {
        VariantOptions { lab: OptionValues::new(), ..self.clone() }
    }

    /// Whether the runs are launches of a program, and no loads.
    pub fn is_launch(&self) -> bool {
        self.launch.contains_key(COMMAND)
    }

    /// The server or folder that is there already; a private server where none is named.
    pub fn target(&self) -> Option<&str> {
        let options = if self.is_launch() { &self.launch } else { &self.bench };
        let target = options.get("target").and_then(|target| target.first()).map(String::as_str);
        target.filter(|target| !self.is_launch() || *target != PRIVATE)
    }

    /// An option of the private server that is set.
    pub fn lab_option(&self) -> Option<&str> {
        self.lab.keys().next().map(String::as_str)
    }

    /// Behind `smbscope bench`.
    pub fn bench_arguments(&self) -> Vec<String> {
        let target = self.target().map(str::to_owned);
        let options = self.bench.iter().filter(|(name, _)| *name != "target");
        let set = self.set.iter().map(|(name, value)| format!("--set={name}={value}"));
        options.flat_map(written).chain(set).chain(target).collect()
    }

    /// Behind `smbscope launch`: a run of a study is one launch where nothing else is said.
    pub fn launch_arguments(&self) -> Vec<String> {
        let once = (!self.launch.contains_key(REPETITIONS)).then(|| format!("--{REPETITIONS}=1"));
        let options = self.launch.iter().filter(|(name, _)| *name != COMMAND).flat_map(written);
        let command = self.launch.get(COMMAND).into_iter().flatten().cloned();
        once.into_iter().chain(options).chain(["--".to_owned()]).chain(command).collect()
    }

    /// Behind `smbscope`: what a run does.
    pub fn arguments(&self) -> Vec<String> {
        let (verb, arguments) = match self.is_launch() {
            true => ("launch", self.launch_arguments()),
            false => ("bench", self.bench_arguments()),
        };
        [verb.to_owned()].into_iter().chain(arguments).collect()
    }

    /// Behind `smbscope lab up`.
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

/// An option as on the command line: a switch that is on stands alone, one that is off is left out.
fn written((name, values): (&String, &Vec<String>)) -> Vec<String> {
    let one = |value: &String| match value.as_str() {
        "true" => Some(format!("--{name}")),
        "false" => None,
        value => Some(format!("--{name}={value}")),
    };
    values.iter().filter_map(one).collect()
}
