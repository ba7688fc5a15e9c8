//! The text of a TOML workload: maps positions for error messages and substitutes parameters. `[parameters]` defines
//! values that the rest of the file uses as `"$name"`.
//!
//! Values replace names in the text before parsing, so that every key can use a parameter. Positions in the expanded
//! text are mapped back to the original.

use super::super::WorkloadError;
use super::super::error::{Location, suggest};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

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

const KINDS: &str = "write a number, or a text such as \"64KiB\", \"10ms\" or \"random\"";

impl<'t> TomlSource<'t> {
    pub(super) fn new(file: &'t str, text: &'t str) -> TomlSource<'t> {
        TomlSource { file, text, edits: &[] }
    }

    /// Interprets positions as those of the expanded text.
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
        let message = error.message().trim().replace('\n', ", ");
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        let hint = match quoted.split_first() {
            Some((given, known)) if message.starts_with("unknown field") && !known.is_empty() => suggest(given, known),
            _ => "see docs/workloads.md for the keys and their values".to_owned(),
        };
        let what = match message.split_once(", expected one of") {
            Some((what, _)) if message.starts_with("unknown field") => what.replace('`', "\""),
            _ => message.clone(),
        };
        self.error(error.span().unwrap_or(0..0), what, hint)
    }

    fn table(&self) -> Result<DeTable<'t>, WorkloadError> {
        DeTable::parse(self.text).map(Spanned::into_inner).map_err(|error| self.toml_error(&error))
    }

    fn values(&self, table: &DeTable<'_>) -> Result<ParameterValues, WorkloadError> {
        let Some((_, found)) = table.iter().find(|(key, _)| key.get_ref() == "parameters") else {
            return Ok(ParameterValues::new());
        };
        let DeValue::Table(parameters) = found.get_ref() else {
            return Err(self.error(
                found.span(),
                "the parameters are no table",
                "write [parameters] in a line of its own",
            ));
        };
        let mut values = ParameterValues::new();
        for (key, value) in parameters {
            let name = key.get_ref();
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(self.error(
                    key.span(),
                    format!("\"{name}\" is no name of a parameter"),
                    "write letters and _",
                ));
            }
            let written = match value.get_ref() {
                DeValue::String(_) | DeValue::Integer(_) => self.text.get(value.span()).unwrap_or_default(),
                _ => {
                    return Err(self.error(
                        value.span(),
                        format!("the parameter {name} is no number and no text"),
                        KINDS,
                    ));
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

    /// Collects the parameter references in a value and their replacements.
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
