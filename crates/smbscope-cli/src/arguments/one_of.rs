//! Options that accept one of a few named values of a library type.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Accepted names, each with its help text and value.
pub(super) type PossibleValueTable<T> = [(&'static str, &'static str, T)];

/// Returns a parser for the names of a table.
pub(super) fn one_of<T: Clone + Send + Sync + 'static>(
    table: &'static PossibleValueTable<T>,
) -> impl TypedValueParser<Value = T> {
    named(table.iter().map(|(name, help, value)| (PossibleValue::new(*name).help(*help), value.clone())))
}

/// Returns a parser for names without help texts.
pub(super) fn named<T: Clone + Send + Sync + 'static>(
    values: impl IntoIterator<Item = (impl Into<PossibleValue>, T)>,
) -> impl TypedValueParser<Value = T> {
    let (names, values): (Vec<PossibleValue>, Vec<T>) =
        values.into_iter().map(|(name, value)| (name.into(), value)).unzip();
    PossibleValuesParser::new(names.clone()).map(move |given: String| {
        let place = names.iter().position(|name| name.get_name() == given);
        values[place.expect("clap lets no other name pass")].clone()
    })
}
