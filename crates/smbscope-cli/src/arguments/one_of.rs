//! Options that take one of a few values of a library's type.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The names that an option takes, each with its line of help and what it stands for.
pub(super) type PossibleValueTable<T> = [(&'static str, &'static str, T)];

/// Takes one of the names for what it stands for.
pub(super) fn one_of<T: Clone + Send + Sync + 'static>(
    table: &'static PossibleValueTable<T>,
) -> impl TypedValueParser<Value = T> {
    named(table.iter().map(|(name, help, value)| (PossibleValue::new(*name).help(*help), value.clone())))
}

/// The same for names that say all.
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
