//! Catalogue of causes with their thresholds, which a TOML file can override.

use crate::answer::Culprit;
use serde::Deserialize;
use smbscope_model::{Nanos, units};
use smbscope_stats::filter::did_you_mean;
use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub struct Catalogue {
    entries: BTreeMap<String, CauseDefinition>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CauseDefinition {
    pub culprit: Culprit,
    pub title: &'static str,
    /// Condition under which it is reported, with thresholds quoted by name.
    pub condition: &'static str,
    pub advice: &'static str,
    pub source: &'static str,
    pub(crate) thresholds: BTreeMap<String, Threshold>,
}

impl CauseDefinition {
    pub fn thresholds(&self) -> impl Iterator<Item = (&str, &str)> {
        self.thresholds.iter().map(|(name, threshold)| (name.as_str(), threshold.text.as_str()))
    }
}

/// Number, fraction, duration in ns, size in bytes, or rate in bytes per second.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "TomlThreshold")]
pub(crate) struct Threshold {
    value: f64,
    kind: ThresholdKind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThresholdKind {
    Number,
    Share,
    Duration,
    Size,
    /// Stored in bytes per second, written in bits per second.
    Rate,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum TomlThreshold {
    Whole(i64),
    Decimal(f64),
    Text(String),
}

pub(crate) fn built_in(thresholds: &[(&str, &str)]) -> BTreeMap<String, Threshold> {
    let parsed = thresholds.iter().map(|(name, text)| {
        let threshold = Threshold::try_from(TomlThreshold::from_text(text));
        ((*name).to_owned(), threshold.expect("a test reads the thresholds of all detectors"))
    });
    parsed.collect()
}

impl TomlThreshold {
    fn from_text(text: &str) -> TomlThreshold {
        match text.parse::<f64>() {
            Ok(number) => TomlThreshold::Decimal(number),
            Err(_) => TomlThreshold::Text(text.to_owned()),
        }
    }
}

impl TryFrom<TomlThreshold> for Threshold {
    type Error = String;

    fn try_from(written: TomlThreshold) -> Result<Threshold, String> {
        let (value, kind) = match &written {
            TomlThreshold::Whole(n) => (*n as f64, ThresholdKind::Number),
            TomlThreshold::Decimal(n) => (*n, ThresholdKind::Number),
            TomlThreshold::Text(text) if text.trim_end().ends_with('%') => {
                (units::percentage(text)?, ThresholdKind::Share)
            }
            TomlThreshold::Text(text) => match (units::duration(text), units::size(text), units::bit_rate(text)) {
                (Ok(time), ..) => (time.0 as f64, ThresholdKind::Duration),
                (_, Ok(size), _) => (size as f64, ThresholdKind::Size),
                (.., Ok(bits)) => (bits as f64 / 8.0, ThresholdKind::Rate),
                _ => {
                    return Err(format!(
                        "{text:?}: expected a number, a share (70%), a duration (10s), a size (64KiB) or a rate (100Mbit)"
                    ));
                }
            },
        };
        if !value.is_finite() || value < 0.0 {
            return Err(format!("expected a number from 0 on, not {value}"));
        }
        let text = match &written {
            TomlThreshold::Text(text) => format!("{text:?}"),
            _ => value.to_string(),
        };
        Ok(Threshold { value, kind, text })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CatalogueError {
    NotReadable(String),
    UnknownCause(String),
    UnknownThreshold(String, String, Vec<String>),
    OtherKind(String, String, &'static str),
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CatalogueError::NotReadable(why) => f.write_str(why),
            CatalogueError::UnknownCause(id) => {
                let catalogue = Catalogue::default();
                let near = did_you_mean(id, catalogue.entries().map(|(id, _)| id));
                let hint = near.unwrap_or_else(|| "`smbscope help causes` lists all".to_owned());
                write!(f, "[{id}]: unknown cause; {hint}")
            }
            CatalogueError::UnknownThreshold(id, name, known) if known.is_empty() => {
                write!(f, "[{id}] {name}: this cause has no threshold")
            }
            CatalogueError::UnknownThreshold(id, name, known) => {
                write!(f, "[{id}] {name}: unknown threshold; it has {}", known.join(", "))
            }
            CatalogueError::OtherKind(id, name, kind) => write!(f, "[{id}] {name}: expected {kind}"),
        }
    }
}

impl std::error::Error for CatalogueError {}

impl Catalogue {
    pub(crate) fn new(causes: impl IntoIterator<Item = (&'static str, CauseDefinition)>) -> Catalogue {
        Catalogue { entries: causes.into_iter().map(|(id, cause)| (id.to_owned(), cause)).collect() }
    }

    /// Returns the built-in catalogue with overrides from a TOML file: one table per cause, one key per threshold.
    pub fn with_thresholds(text: &str) -> Result<Catalogue, CatalogueError> {
        let given: BTreeMap<String, BTreeMap<String, Threshold>> =
            toml::from_str(text).map_err(|error| CatalogueError::NotReadable(in_one_line(&error)))?;
        let mut catalogue = Catalogue::default();
        for (id, thresholds) in given {
            let Some(entry) = catalogue.entries.get_mut(&id) else { return Err(CatalogueError::UnknownCause(id)) };
            for (name, threshold) in thresholds {
                let Some(known) = entry.thresholds.get_mut(&name) else {
                    return Err(CatalogueError::UnknownThreshold(id, name, entry.thresholds.keys().cloned().collect()));
                };
                if known.kind != threshold.kind {
                    let kind = match known.kind {
                        ThresholdKind::Number => "a number, such as 20",
                        ThresholdKind::Share => "a share, such as 70%",
                        ThresholdKind::Duration => "a duration, such as 10s",
                        ThresholdKind::Size => "a size, such as 64KiB",
                        ThresholdKind::Rate => "a rate, such as 100Mbit",
                    };
                    return Err(CatalogueError::OtherKind(id, name, kind));
                }
                *known = threshold;
            }
        }
        Ok(catalogue)
    }

    pub fn entries(&self) -> impl Iterator<Item = (&str, &CauseDefinition)> {
        self.entries.iter().map(|(id, entry)| (id.as_str(), entry))
    }

    pub(crate) fn entry(&self, id: &str) -> &CauseDefinition {
        self.entries.get(id).expect("detectors name causes of the registry: a test runs all of them")
    }

    /// Returns a threshold in ns, bytes, bytes per second, as a fraction, or as a plain number.
    pub(crate) fn threshold(&self, id: &str, name: &str) -> f64 {
        let threshold = self.entry(id).thresholds.get(name);
        threshold.expect("detectors name their own thresholds: a test runs all of them").value
    }

    pub(crate) fn time(&self, id: &str, name: &str) -> Nanos {
        Nanos(self.threshold(id, name) as i64)
    }
}

fn in_one_line(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let place = text.lines().next().unwrap_or_default();
    format!("{place}: {}", error.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_catalogue_is_whole() {
        let catalogue = Catalogue::default();
        assert!(catalogue.entries().count() > 20);
        for (id, entry) in catalogue.entries() {
            assert!(!entry.title.is_empty() && !entry.advice.is_empty() && !entry.source.is_empty(), "{id}");
        }
        assert_eq!(catalogue.threshold("ini-pattern", "opens"), 20.0);
        assert_eq!(catalogue.threshold("ini-pattern", "window"), 10e9);
    }

    #[test]
    fn thresholds_can_be_overridden_one_by_one() {
        let own = Catalogue::with_thresholds("[ini-pattern]\nopens = 5\n\n[serial-client]\nshare = \"90%\"\n");
        let own = own.expect("these thresholds exist");
        assert_eq!((own.threshold("ini-pattern", "opens"), own.threshold("ini-pattern", "window")), (5.0, 10e9));
        assert_eq!(own.threshold("serial-client", "share"), 0.9);
    }

    #[test]
    fn errors_in_a_file_are_one_line() {
        let said = |text| Catalogue::with_thresholds(text).expect_err("it is wrong").to_string();
        assert_eq!(said("[in]\nopens = 5"), "[in]: unknown cause; `smbscope help causes` lists all");
        assert_eq!(said("[ini-patern]\nopens = 5"), "[ini-patern]: unknown cause; did you mean ini-pattern?");
        assert_eq!(said("[ini-pattern]\nopen = 5"), "[ini-pattern] open: unknown threshold; it has opens, window");
        assert_eq!(said("[ini-pattern]\nwindow = 5"), "[ini-pattern] window: expected a duration, such as 10s");
        assert!(said("[ini-pattern]\nopens = -5").contains("expected a number from 0 on, not -5"));
        assert!(said("[ini-pattern").starts_with("TOML parse error at line 1"), "{}", said("[ini-pattern"));
    }
}
