//! Differences between ramps other than the server: workload, environment, protocol. They are shown above all answers.

use super::{ComparableDocument, ComparisonNote, Given, NoteKind, ramps};
use crate::bench::{BenchDocument, TargetEntry};
use crate::format::{clean, shorten};
use std::collections::{BTreeMap, BTreeSet};

const VALUE_SHOWN: usize = 40;
/// Digits of a hash that distinguish two definitions.
const HASH_SHOWN: usize = 8;

fn facts(document: &BenchDocument) -> BTreeMap<String, String> {
    let TargetEntry { dialect, signing, signing_algorithm, encryption, cipher, .. } = &document.target;
    let negotiated = |asked: &str, found: &Option<String>| match found {
        Some(found) => format!("{asked}, {found}"),
        None => asked.to_owned(),
    };
    let hash = document.workload.sha256.as_deref().map(|hash| hash.chars().take(HASH_SHOWN).collect());
    let settings = &document.settings;
    let own = [
        ("workload", Some(document.workload.name.clone())),
        ("definition of the workload", hash),
        ("schedule", Some(ramps::schedule(document))),
        ("dialect", dialect.clone()),
        ("signing", Some(negotiated(signing, signing_algorithm))),
        ("encryption", Some(negotiated(encryption, cipher))),
        ("warm-up", Some(settings.warmup_ns.to_string())),
        ("duration", Some(settings.duration_ns.to_string())),
        ("client threads", Some(settings.threads.to_string())),
        ("sessions of a user", Some(settings.sessions_per_user.to_string())),
        ("connections of a session", Some(settings.connections_per_session.to_string())),
        ("smbscope", Some(document.generator.version.clone())),
    ];
    let own = own.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    document.environment.clone().into_iter().chain(own).collect()
}

/// Returns the values of each condition in the runs of a column; `-` is unknown.
fn side(given: &Given) -> Option<BTreeMap<String, BTreeSet<String>>> {
    let runs = given.runs.iter().map(|(_, content)| match content {
        ComparableDocument::Ramp(document) => Some(facts(document)),
        ComparableDocument::Report(_) => None,
    });
    let runs: Vec<BTreeMap<String, String>> = runs.collect::<Option<_>>()?;
    let names: BTreeSet<&String> = runs.iter().flat_map(BTreeMap::keys).collect();
    let values = |name: &String| -> BTreeSet<String> {
        runs.iter().map(|run| run.get(name).map_or_else(|| "-".to_owned(), |value| clean(value))).collect()
    };
    Some(names.into_iter().map(|name| (clean(name), values(name))).collect())
}

pub(super) fn differences(given: &[Given]) -> Vec<ComparisonNote> {
    let sides: Vec<_> = given.iter().map(side).collect();
    let mut notes = Vec::new();
    for (column, (found, given_side)) in sides.iter().zip(given).enumerate() {
        let Some(found) = found else { continue };
        let mut add = |text| notes.push(ComparisonNote { kind: NoteKind::Setup, column, text });
        let uneven: Vec<String> = found
            .iter()
            .filter(|(_, values)| values.len() > 1)
            .map(|(name, values)| format!("{name} {}", list(values)))
            .collect();
        if !uneven.is_empty() {
            add(format!("the runs of {} are not alike: {}", clean(&given_side.name), uneven.join("; ")));
        }
        let Some(base) = sides[0].as_ref().filter(|_| column > 0) else { continue };
        let unknown = BTreeSet::from(["-".to_owned()]);
        let names: BTreeSet<&String> = base.keys().chain(found.keys()).collect();
        let other: Vec<String> = names
            .into_iter()
            .map(|name| (name, base.get(name).unwrap_or(&unknown), found.get(name).unwrap_or(&unknown)))
            .filter(|(_, old, new)| old != new)
            .map(|(name, old, new)| format!("{name} {} (there {})", list(new), list(old)))
            .collect();
        if !other.is_empty() {
            let (own, base) = (clean(&given_side.name), clean(&given[0].name));
            add(format!("{own} was measured otherwise than {base}: {}", other.join("; ")));
        }
    }
    notes
}

fn list(values: &BTreeSet<String>) -> String {
    values.iter().map(|value| shorten(value, VALUE_SHOWN)).collect::<Vec<_>>().join(" and ")
}
