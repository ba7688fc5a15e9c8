//! Options given by name: in a study file, by Python, or for a task of a cluster.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use toml::Value;

/// Options of one command, which clap parses into a structure.
pub trait CommandOptions: Args {
    /// Returns an error message for options that contradict each other in a way that clap can't express.
    fn conflict(&self) -> Option<&'static str> {
        None
    }
}

/// Names of options and positional arguments, each with its values as text. A switch has the value `true` or `false`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "BTreeMap<String, GivenValue>")]
pub struct GivenOptions(BTreeMap<String, Vec<OsString>>);

/// Value of an option in a TOML file, as text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub enum GivenValue {
    One(String),
    Several(Vec<String>),
}

impl TryFrom<Value> for GivenValue {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<GivenValue, &'static str> {
        let text = |value: Value| match value {
            Value::String(text) => Ok(text),
            Value::Array(_) | Value::Table(_) => Err("an option has a value or a list of values"),
            other => Ok(other.to_string()),
        };
        match value {
            Value::Array(values) => Ok(GivenValue::Several(values.into_iter().map(text).collect::<Result<_, _>>()?)),
            value => text(value).map(GivenValue::One),
        }
    }
}

impl GivenValue {
    /// Returns the value, unless it is a list.
    pub fn one(&self) -> Option<&str> {
        match self {
            GivenValue::One(value) => Some(value),
            GivenValue::Several(_) => None,
        }
    }
}

impl From<BTreeMap<String, GivenValue>> for GivenOptions {
    fn from(values: BTreeMap<String, GivenValue>) -> GivenOptions {
        let mut given = GivenOptions::default();
        for (name, value) in values {
            match value {
                GivenValue::One(value) => given.set(&name, [value]),
                GivenValue::Several(values) => given.set(&name, values),
            }
        }
        given
    }
}

impl GivenOptions {
    /// Sets an option, by its name on the command line or in Python. Replaces earlier values.
    pub fn set<V: Into<OsString>>(&mut self, name: &str, values: impl IntoIterator<Item = V>) {
        self.0.insert(name.trim_end_matches('_').replace('_', "-"), values.into_iter().map(Into::into).collect());
    }

    /// Returns what a command line gives, without the defaults.
    pub fn from_matches(command: &Command, matches: &ArgMatches) -> GivenOptions {
        let mut given = GivenOptions::default();
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            let is_given = matches!(matches.try_contains_id(id), Ok(true))
                && matches.value_source(id) == Some(ValueSource::CommandLine);
            match (argument.get_long().unwrap_or(id), argument.get_action().takes_values()) {
                (name, true) if is_given => given.set(name, matches.get_raw(id).into_iter().flatten()),
                (name, false) if is_given => given.set(name, ["true"]),
                _ => {}
            }
        }
        given
    }

    /// Returns these options with others, which take precedence.
    pub fn with(mut self, others: &GivenOptions) -> GivenOptions {
        self.0.extend(others.0.clone());
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[OsString])> {
        self.0.iter().map(|(name, values)| (name.as_str(), values.as_slice()))
    }

    /// Returns the values of an option, or none if it was not given.
    pub fn values(&self, name: &str) -> &[OsString] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Parses the options of a command, with the checks and defaults of the command line. The error is one line.
    pub fn parse<O: CommandOptions>(&self) -> Result<O, String> {
        let options = self.parsed::<O>().map_err(|error| one_line(&error))?;
        options.conflict().map_or(Ok(options), |conflict| Err(conflict.to_owned()))
    }

    /// clap takes words only, and its checks (values, conflicts, requirements) depend on them.
    fn parsed<O: Args>(&self) -> Result<O, clap::Error> {
        let command = Command::default().name("smbscope").no_binary_name(true).disable_help_flag(true);
        let mut command = O::augment_args(command);
        command.build();
        let switches = command.get_arguments().filter(|argument| is_switch(argument));
        let switches: Vec<&str> = switches.filter_map(|switch| switch.get_long()).collect();
        let places: Vec<&str> = command.get_positionals().map(|place| place.get_id().as_str()).collect();
        let named = self.iter().filter(|(name, _)| !places.contains(name));
        let named = named.flat_map(|(name, values)| {
            values.iter().filter_map(|value| word(name, value, switches.contains(&name))).collect::<Vec<_>>()
        });
        let placed = places.iter().flat_map(|name| self.values(name)).cloned();
        let words: Vec<OsString> = named.chain([OsString::from("--")]).chain(placed).collect();
        O::from_arg_matches(&command.try_get_matches_from(words)?)
    }
}

/// Returns true for an option that can be given without a value.
fn is_switch(option: &Arg) -> bool {
    let has_optional_value = option.get_num_args().is_some_and(|count| count.min_values() == 0);
    matches!(option.get_action(), ArgAction::SetTrue) || (option.get_action().takes_values() && has_optional_value)
}

/// Formats a value for the command line. A switch that is on is a name only; one that is off is left out.
pub fn word(name: &str, value: &OsStr, is_switch: bool) -> Option<OsString> {
    let mut word = OsString::from(format!("--{name}"));
    match value.to_str() {
        Some("true") if is_switch => return Some(word),
        Some("false") if is_switch => return None,
        _ => {}
    }
    word.push("=");
    word.push(value);
    Some(word)
}

/// Formats an error without the usage, which describes a command line.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let said = text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let said: Vec<&str> = said.map(str::trim).filter(|line| !line.is_empty()).collect();
    said.join("; ").trim_start_matches("error: ").to_owned()
}
