//! The text of a TOML workload: its structure, and its positions for error messages.
//!
//! `[parameters]` defines values that the rest of the file uses as `"$name"`. They replace the names in the text before
//! parsing, so that every key can use a parameter. Positions in the expanded text are mapped back to the original.

use super::super::WorkloadError;
use super::super::draw::{SizeDistribution, Times};
use super::super::{Location, suggest};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use smbscope_model::units;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Value};

#[derive(Clone, Copy)]
pub(super) struct TomlSource<'t> {
    pub(super) file: &'t str,
    text: &'t str,
    edits: &'t [Edit],
}

/// A substitution: range in the original and in the expanded text.
pub(super) struct Edit {
    was: Range<usize>,
    is: Range<usize>,
}

pub(super) struct Expanded {
    pub(super) text: String,
    edits: Vec<Edit>,
}

/// Values by name in TOML syntax, with their positions.
type ParameterValues = BTreeMap<String, (String, Range<usize>)>;

pub(super) const KEYS_HINT: &str = "see docs/workloads.md for the keys and their values";
const KINDS: &str = "write a number, or a text such as \"64KiB\", \"10ms\" or \"random\"";

impl<'t> TomlSource<'t> {
    pub(super) fn new(file: &'t str, text: &'t str) -> TomlSource<'t> {
        TomlSource { file, text, edits: &[] }
    }

    /// Interprets positions in the expanded text.
    pub(super) fn with_expanded<'e>(self, expanded: &'e Expanded) -> TomlSource<'e>
    where
        't: 'e,
    {
        TomlSource { edits: &expanded.edits, ..self }
    }

    pub(super) fn error(&self, span: Range<usize>, what: impl Into<String>, hint: impl Into<String>) -> WorkloadError {
        let place = Location::at(self.file, self.text, self.written(span.start));
        WorkloadError::invalid(place, what, hint)
    }

    fn written(&self, at: usize) -> usize {
        match self.edits.iter().take_while(|edit| edit.is.start <= at).last() {
            Some(edit) if at < edit.is.end => edit.was.start,
            Some(edit) => at - edit.is.end + edit.was.end,
            None => at,
        }
    }

    /// Converts a TOML error. For an unknown key the hint suggests the nearest one.
    pub(super) fn toml_error(&self, error: &toml::de::Error) -> WorkloadError {
        self.toml_error_at(error, error.span().unwrap_or(0..0))
    }

    fn toml_error_at(&self, error: &toml::de::Error, span: Range<usize>) -> WorkloadError {
        let message = error.message().trim().replace('\n', ", ");
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let hint = match quoted.split_first() {
            Some((given, known)) if message.starts_with("unknown field") && !known.is_empty() => suggest(given, known),
            _ => KEYS_HINT.to_owned(),
        };
        let what = match message.split_once(", expected one of") {
            Some((what, _)) if message.starts_with("unknown field") => what.replace('`', "\""),
            _ => message.clone(),
        };
        self.error(span, what, hint)
    }

    /// Returns the value of a key of a step, or `None` if the step lacks it.
    pub(super) fn value<T: DeserializeOwned>(
        &self,
        step: &RawStep,
        key: &str,
    ) -> Result<Option<Spanned<T>>, WorkloadError> {
        let Some(value) = step.0.get(key) else { return Ok(None) };
        let typed = value.get_ref().clone().try_into().map_err(|error| self.toml_error_at(&error, value.span()))?;
        Ok(Some(Spanned::new(value.span(), typed)))
    }

    /// Returns the value of a name, or the first of the list without one.
    pub(super) fn named<T: Copy>(
        &self,
        value: Option<&Spanned<String>>,
        key: &str,
        list: &[(&str, T)],
    ) -> Result<T, WorkloadError> {
        let Some(value) = value else { return Ok(list[0].1) };
        let found = list.iter().find(|(name, _)| name == value.get_ref());
        found.map(|(_, found)| *found).ok_or_else(|| {
            let names: Vec<&str> = list.iter().map(|(name, _)| *name).collect();
            let what = format!("there is no {key} \"{}\"", value.get_ref());
            self.error(value.span(), what, suggest(value.get_ref(), &names))
        })
    }

    pub(super) fn number(&self, value: &Spanned<i64>, key: &str, least: i64, most: i64) -> Result<i64, WorkloadError> {
        let number = *value.get_ref();
        if (least..=most).contains(&number) {
            return Ok(number);
        }
        let hint = format!("write a number from {least} to {most}");
        Err(self.error(value.span(), format!("{key} is {number}"), hint))
    }

    fn table(&self) -> Result<DeTable<'t>, WorkloadError> {
        DeTable::parse(self.text).map(Spanned::into_inner).map_err(|error| self.toml_error(&error))
    }

    fn values(&self, table: &DeTable<'_>) -> Result<ParameterValues, WorkloadError> {
        let Some((_, found)) = table.iter().find(|(key, _)| key.get_ref() == "parameters") else {
            return Ok(ParameterValues::new());
        };
        let DeValue::Table(parameters) = found.get_ref() else {
            let hint = "write [parameters] in a line of its own";
            return Err(self.error(found.span(), "the parameters are not a table", hint));
        };
        let mut values = ParameterValues::new();
        for (key, value) in parameters {
            let name = key.get_ref();
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                let what = format!("\"{name}\" is not a parameter name");
                return Err(self.error(key.span(), what, "write letters and _"));
            }
            let written = match value.get_ref() {
                DeValue::String(_) | DeValue::Integer(_) => self.text.get(value.span()).unwrap_or_default(),
                _ => {
                    let what = format!("the parameter {name} is neither a number nor a string");
                    return Err(self.error(value.span(), what, KINDS));
                }
            };
            values.insert(name.to_string(), (written.to_owned(), value.span()));
        }
        Ok(values)
    }

    /// Returns names and values of the parameters, with values in command-line form.
    pub(super) fn parameters(&self) -> Result<Vec<(String, String)>, WorkloadError> {
        let table = self.table()?;
        let plain = |written: &str| match DeValue::parse(written).map(Spanned::into_inner) {
            Ok(DeValue::String(text)) => text.into_owned(),
            _ => written.to_owned(),
        };
        Ok(self.values(&table)?.into_iter().map(|(name, (written, _))| (name, plain(&written))).collect())
    }

    /// Returns the text with other values in `[parameters]`.
    pub(super) fn with(&self, set: &[(String, String)]) -> Result<String, WorkloadError> {
        let known = self.values(&self.table()?)?;
        let mut replaced = BTreeMap::new();
        for (name, value) in set {
            let Some((written, span)) = known.get(name) else {
                let names: Vec<&str> = known.keys().map(String::as_str).collect();
                let hint = match names.is_empty() {
                    true => "it has none".to_owned(),
                    false => suggest(name, &names),
                };
                return Err(WorkloadError::Parameter {
                    what: format!("the workload has no parameter \"{name}\""),
                    hint,
                });
            };
            let text = if written.starts_with(['"', '\'']) {
                toml::Value::String(value.clone()).to_string()
            } else {
                let number: i64 = value.trim().parse().map_err(|_| WorkloadError::Parameter {
                    what: format!("{name} is a number, and not \"{value}\""),
                    hint: format!("write one, such as its default {written}"),
                })?;
                number.to_string()
            };
            replaced.insert(span.start, (span.clone(), text));
        }
        Ok(edited(self.text, replaced.into_values()).text)
    }

    pub(super) fn expanded(&self) -> Result<Expanded, WorkloadError> {
        let table = self.table()?;
        let values = self.values(&table)?;
        let mut uses = BTreeMap::new();
        for (key, value) in &table {
            if key.get_ref() != "parameters" {
                self.uses(value, &values, &mut uses)?;
            }
        }
        Ok(edited(self.text, uses.into_values()))
    }

    fn uses(
        &self,
        value: &Spanned<DeValue<'_>>,
        values: &ParameterValues,
        uses: &mut BTreeMap<usize, (Range<usize>, String)>,
    ) -> Result<(), WorkloadError> {
        match value.get_ref() {
            DeValue::Array(array) => array.iter().try_for_each(|value| self.uses(value, values, uses)),
            DeValue::Table(table) => table.iter().try_for_each(|(_, value)| self.uses(value, values, uses)),
            DeValue::String(text) => {
                let Some(name) = text.strip_prefix('$') else { return Ok(()) };
                let Some((written, _)) = values.get(name) else {
                    let names: Vec<&str> = values.keys().map(String::as_str).collect();
                    let hint = match names.is_empty() {
                        true => format!("add [parameters] with {name} and its value"),
                        false => suggest(name, &names),
                    };
                    return Err(self.error(value.span(), format!("there is no parameter \"{name}\""), hint));
                };
                uses.insert(value.span().start, (value.span(), written.clone()));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn edited(text: &str, pieces: impl Iterator<Item = (Range<usize>, String)>) -> Expanded {
    let mut expanded = Expanded { text: String::with_capacity(text.len()), edits: Vec::new() };
    let mut at = 0;
    for (was, piece) in pieces {
        expanded.text.push_str(text.get(at..was.start).unwrap_or_default());
        let start = expanded.text.len();
        expanded.text.push_str(&piece);
        at = was.end;
        expanded.edits.push(Edit { was, is: start..expanded.text.len() });
    }
    expanded.text.push_str(text.get(at..).unwrap_or_default());
    expanded
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWorkload {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) description: String,
    pub(super) files: Option<Spanned<RawFiles>>,
    pub(super) think: Option<Spanned<Value>>,
    /// Already substituted into the text.
    #[serde(rename = "parameters")]
    pub(super) _parameters: Option<toml::Table>,
    pub(super) scenarios: Option<RawScenarios>,
    pub(super) order: Option<Spanned<String>>,
    pub(super) start: Option<RawStart>,
    #[serde(default)]
    pub(super) operation: Vec<Spanned<RawOperation>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScenarios {
    pub(super) rate: Spanned<String>,
    pub(super) late: Option<Spanned<Value>>,
    pub(super) budget: Option<Spanned<Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFiles {
    pub(super) count: Spanned<i64>,
    pub(super) directories: Option<Spanned<i64>>,
    pub(super) nested: Option<Spanned<i64>>,
    pub(super) size: Spanned<Value>,
    #[serde(default)]
    pub(super) shared: bool,
    pub(super) seed: Option<Spanned<i64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStart {
    pub(super) steps: Vec<Spanned<RawStep>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawOperation {
    pub(super) name: Spanned<String>,
    pub(super) weight: Option<Spanned<i64>>,
    pub(super) times: Option<Spanned<Value>>,
    pub(super) steps: Vec<Spanned<RawStep>>,
}

/// Keys and values of a step. `do` decides which are valid.
#[derive(Debug, Deserialize)]
pub(super) struct RawStep(BTreeMap<Spanned<String>, Spanned<Value>>);

impl RawStep {
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Returns the keys that `known` lacks, and their values, in alphabetical order.
    pub(super) fn unknown(&self, known: &[&str]) -> impl Iterator<Item = (&Spanned<String>, &Spanned<Value>)> {
        self.0.iter().filter(|(key, _)| !known.contains(&key.get_ref().as_str()))
    }
}

pub(super) type ProblemWithHint = (String, String);

const SIZE_HINT: &str =
    "write 4096, \"4KiB\", { uniform = [\"1KiB\", \"64KiB\"] } or { weighted = [[\"4KiB\", 3], [\"64KiB\", 1]] }";
const TIME_HINT: &str =
    "write \"10ms\", { uniform = [\"1ms\", \"5ms\"] } or { exponential = \"20ms\" }, in us, ms, s or min";

pub(super) fn sizes(value: &Value) -> Result<SizeDistribution, ProblemWithHint> {
    let wrong = |what: String| (what, SIZE_HINT.to_owned());
    let Value::Table(table) = value else { return size(value).map(SizeDistribution::Fixed) };
    let (key, inner) = only(table).ok_or_else(|| wrong("a size has one of fixed, uniform and weighted".to_owned()))?;
    match key {
        "fixed" => size(inner).map(SizeDistribution::Fixed),
        "uniform" => match inner.as_array().map(Vec::as_slice) {
            Some([least, most]) => {
                let (least, most) = (size(least)?, size(most)?);
                if least > most {
                    return Err(wrong(format!("the size begins at {least} and ends at {most}")));
                }
                Ok(SizeDistribution::Uniform(least, most))
            }
            _ => Err(wrong("a uniform size is two sizes".to_owned())),
        },
        "weighted" => {
            let list = inner.as_array().ok_or_else(|| wrong("a weighted size is a list".to_owned()))?;
            let pairs: Result<Vec<(u64, u32)>, ProblemWithHint> = list
                .iter()
                .map(|pair| match pair.as_array().map(Vec::as_slice) {
                    Some([bytes, Value::Integer(weight)]) => {
                        let weight = u32::try_from(*weight).ok().filter(|weight| *weight <= 1_000_000);
                        let weight =
                            weight.ok_or_else(|| wrong("a weight is a number from 0 to 1000000".to_owned()))?;
                        Ok((size(bytes)?, weight))
                    }
                    _ => Err(wrong("each entry of a weighted size is a size and a weight".to_owned())),
                })
                .collect();
            let pairs = pairs?;
            if pairs.iter().all(|(_, weight)| *weight == 0) {
                return Err(wrong("no entry of the weighted size has a weight above 0".to_owned()));
            }
            Ok(SizeDistribution::Weighted(pairs))
        }
        _ => Err(wrong(format!("there is no distribution \"{key}\" of sizes"))),
    }
}

pub(super) fn size(value: &Value) -> Result<u64, ProblemWithHint> {
    let wrong = || (format!("{value} is not a size"), SIZE_HINT.to_owned());
    match value {
        Value::Integer(bytes) => u64::try_from(*bytes).map_err(|_| wrong()),
        // Below 2^53, so that JSON represents it exactly.
        Value::String(text) => units::size(text).ok().filter(|bytes| *bytes < 1 << 53).ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

pub(super) fn times(value: &Value) -> Result<Times, ProblemWithHint> {
    let wrong = |what: String| (what, TIME_HINT.to_owned());
    let Value::Table(table) = value else { return time(value).map(Times::Fixed) };
    let (key, inner) =
        only(table).ok_or_else(|| wrong("a time has one of fixed, uniform and exponential".to_owned()))?;
    match key {
        "fixed" => time(inner).map(Times::Fixed),
        "exponential" => time(inner).map(Times::Exponential),
        "uniform" => match inner.as_array().map(Vec::as_slice) {
            Some([least, most]) => {
                let (least, most) = (time(least)?, time(most)?);
                if least > most {
                    return Err(wrong(format!("the time begins at {least:?} and ends at {most:?}")));
                }
                Ok(Times::Uniform(least, most))
            }
            _ => Err(wrong("a uniform time is two times".to_owned())),
        },
        _ => Err(wrong(format!("there is no distribution \"{key}\" of times"))),
    }
}

/// Time in a workload; more is refused.
const TIME_MAX: Duration = Duration::from_secs(86_400);

pub(super) fn time(value: &Value) -> Result<Duration, ProblemWithHint> {
    let wrong = || (format!("{value} is not a time"), TIME_HINT.to_owned());
    let text = value.as_str().ok_or_else(wrong)?;
    if text.trim() == "0" {
        return Ok(Duration::ZERO);
    }
    units::time(text).ok().filter(|time| *time <= TIME_MAX).ok_or_else(wrong)
}

/// Returns the entry of a table that has exactly one.
fn only(table: &toml::Table) -> Option<(&str, &Value)> {
    let mut entries = table.iter();
    let (key, value) = entries.next()?;
    entries.next().is_none().then_some((key.as_str(), value))
}
