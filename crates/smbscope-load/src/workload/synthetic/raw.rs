//! The structure of a TOML workload, with source positions for error messages.

use super::super::draw::{SizeDistribution, Times};
use serde::Deserialize;
use smbscope_model::units;
use std::time::Duration;
use toml::{Spanned, Value};

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

/// A step with the keys of all kinds of steps. `do` decides which are valid.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStep {
    #[serde(rename = "do")]
    pub(super) what: Spanned<String>,
    pub(super) file: Option<Spanned<String>>,
    pub(super) access: Option<Spanned<String>>,
    pub(super) mode: Option<Spanned<String>>,
    #[serde(rename = "as")]
    pub(super) handle: Option<Spanned<String>>,
    pub(super) of: Option<Spanned<String>>,
    pub(super) offset: Option<Spanned<Value>>,
    pub(super) length: Option<Spanned<Value>>,
    pub(super) block: Option<Spanned<Value>>,
    pub(super) depth: Option<Spanned<i64>>,
    pub(super) parallel: Option<Spanned<i64>>,
    pub(super) size: Option<Spanned<Value>>,
    pub(super) exclusive: Option<Spanned<bool>>,
    pub(super) info: Option<Spanned<String>>,
    pub(super) directory: Option<Spanned<String>>,
    pub(super) pattern: Option<Spanned<String>>,
    pub(super) code: Option<Spanned<String>>,
    pub(super) share: Option<Spanned<String>>,
    pub(super) time: Option<Spanned<Value>>,
    pub(super) expect: Option<Spanned<String>>,
    pub(super) counts_as: Option<Spanned<String>>,
    pub(super) repeat: Option<Spanned<i64>>,
}

impl RawStep {
    /// Returns name and position of each key that is present, except those that every step may have.
    pub(super) fn keys(&self) -> Vec<(&'static str, std::ops::Range<usize>)> {
        let mut keys = Vec::new();
        macro_rules! note {
            ($($field:ident $name:literal),* $(,)?) => {
                $(if let Some(value) = &self.$field { keys.push(($name, value.span())); })*
            };
        }
        note!(file "file", access "access", mode "mode", handle "as", of "of", offset "offset", length "length", block "block", depth "depth", parallel "parallel");
        note!(size "size", exclusive "exclusive", info "info", directory "directory", pattern "pattern", code "code", share "share",
            time "time");
        keys
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
    let wrong = || (format!("{value} is no size"), SIZE_HINT.to_owned());
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

const TIME_MAX: Duration = Duration::from_secs(86_400);

pub(super) fn time(value: &Value) -> Result<Duration, ProblemWithHint> {
    let wrong = || (format!("{value} is no time"), TIME_HINT.to_owned());
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
