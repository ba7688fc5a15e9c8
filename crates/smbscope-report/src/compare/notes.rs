//! Caveats of a comparison: few commands, different workload, damaged captures, encryption, filters.
//!
//! [`setup_differences`] finds differences between ramps other than the server: workload, environment, protocol. They
//! come first.

use super::{ComparableDocument, ComparedGroup, ComparisonInput, Given, ramps};
use crate::bench::{BenchDocument, TargetEntry};
use crate::format::{clean, counted, share, shorten, thousands, unbroken};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Timed commands below which a group's figures are noise: a single command moves the 99th percentile.
pub const FEW: u64 = 100;
/// Percentage of commands in other groups above which two columns have different workloads.
pub const MIX_PERCENT: f64 = 10.0;
/// Percentage of untimed commands above which a column gets a caveat.
pub const UNTIMED_PERCENT: f64 = 1.0;

/// A caveat of the comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparisonNote {
    /// Subject of the caveat.
    pub kind: NoteKind,
    /// Index of the column.
    pub column: usize,
    /// Text, usually without a final full stop.
    pub text: String,
}

/// Subject of a caveat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// Ramps with different workload, environment or protocol.
    Setup,
    /// Too few timed commands.
    Few,
    /// Workload different from the baseline's.
    Mix,
    /// Times measured in a different place than the baseline's: in the client, or on the wire.
    Place,
    /// Commands that couldn't be timed.
    Damage,
    /// Commands hidden by encryption.
    Encrypted,
    /// Filter different from the baseline's.
    Filter,
    /// Warning of the report or of one of its captures.
    Warning,
}

pub(super) fn notes(inputs: &[ComparisonInput], groups: &[ComparedGroup]) -> Vec<ComparisonNote> {
    let mut notes = Vec::new();
    for (column, input) in inputs.iter().enumerate() {
        let mut add = |kind, text| notes.push(ComparisonNote { kind, column, text });
        let report = &input.report;
        if let Some(text) = filter(input, &inputs[0]) {
            add(NoteKind::Filter, text);
        }
        if let Some(text) = mix(groups, column, &inputs[0].name) {
            add(NoteKind::Mix, text);
        }
        if let Some(text) = few(groups, column) {
            add(NoteKind::Few, text);
        }
        let overview = &report.overview;
        let untimed = share(overview.untimed, overview.commands);
        if untimed > UNTIMED_PERCENT {
            let share = format!("{untimed:.1}%");
            add(NoteKind::Damage, format!("{share} of the commands have no time, and may be the slowest"));
        }
        if report.encrypted_frames > 0 {
            let frames = counted(report.encrypted_frames, "frame is", "frames are");
            add(
                NoteKind::Encrypted,
                format!("{frames} encrypted; the other groups, and commands, are those in the clear"),
            );
        }
        let warnings = report.captures.iter().flat_map(|capture| &capture.warnings).chain(&report.warnings);
        warnings.for_each(|warning| add(NoteKind::Warning, warning.clone()));
    }
    notes
}

fn filter(input: &ComparisonInput, base: &ComparisonInput) -> Option<String> {
    let (mine, bases) = (&input.report.filter, &base.report.filter);
    let named =
        |filter: &Option<String>| filter.as_ref().map_or("all exchanges".to_owned(), |text| format!("'{text}'"));
    (mine != bases).then(|| format!("about {}, and {} about {}", named(mine), base.name, named(bases)))
}

fn leaves(groups: &[ComparedGroup]) -> impl Iterator<Item = &ComparedGroup> {
    groups.iter().filter(|group| group.headline && group.group != crate::names::OTHER)
}

fn few(groups: &[ComparedGroup], column: usize) -> Option<String> {
    let comparable =
        leaves(groups).filter(|group| group.cells.iter().flatten().filter(|cell| cell.timed > 0).count() > 1);
    let few: Vec<String> = comparable
        .filter_map(|group| Some((group, group.cells[column].as_ref()?)))
        .filter(|(_, cell)| (1..FEW).contains(&cell.timed))
        .map(|(group, cell)| unbroken(format!("{} ({})", group.group, thousands(cell.timed))))
        .collect();
    let commands = unbroken(format!("{FEW} commands"));
    (!few.is_empty()).then(|| {
        format!("fewer than {commands} were timed in {}: small sample, differences may be noise", few.join(", "))
    })
}

fn mix(groups: &[ComparedGroup], column: usize, base: &str) -> Option<String> {
    let counts = |column: usize| -> Vec<u64> {
        leaves(groups).map(|group| group.cells[column].as_ref().map_or(0, |cell| cell.count)).collect()
    };
    let shares = |counts: &[u64]| -> Vec<f64> {
        let whole = super::sum(counts.iter().copied());
        counts.iter().map(|count| share(*count, whole)).collect()
    };
    let (bases, mine) = (counts(0), counts(column));
    if super::sum(bases.iter().copied()) == 0 || super::sum(mine.iter().copied()) == 0 {
        return None;
    }
    let (bases, mine) = (shares(&bases), shares(&mine));
    // Half the sum of the differences (total variation distance): the share of commands that would change groups.
    let differences = bases.iter().zip(&mine).map(|(base, mine)| (base - mine).abs());
    let distance = differences.clone().sum::<f64>() / 2.0;
    if distance <= MIX_PERCENT {
        return None;
    }
    let (largest, group) = differences
        .zip(leaves(groups))
        .enumerate()
        .max_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b))
        .map(|(at, (_, group))| (at, &group.group))?;
    let percent = |value: f64| format!("{value:.0}%");
    Some(format!(
        "different work from {base}: {} of the commands are in another group ({group} {}, in {base} {}); compare \
         groups and commands rather than totals",
        percent(distance),
        percent(mine[largest]),
        percent(bases[largest]),
    ))
}

/// Notes columns that may differ because of another workload or place of measurement.
pub(super) fn load_differences(given: &[Given]) -> Vec<ComparisonNote> {
    let Some((base, others)) = given.split_first() else { return Vec::new() };
    let mut found = Vec::new();
    for (column, other) in (1..).zip(others) {
        let name = &base.name;
        let (Some((_, base)), Some((_, other))) = (base.runs.first(), other.runs.first()) else { continue };
        match (base, other) {
            (ComparableDocument::Ramp(base), ComparableDocument::Ramp(ramp)) => {
                found.extend(load_difference(ramp, base, name).map(|text| ComparisonNote {
                    kind: NoteKind::Mix,
                    column,
                    text,
                }));
            }
            (ComparableDocument::Report(_), ComparableDocument::Report(_)) => {}
            (ComparableDocument::Report(_), ComparableDocument::Ramp(_)) => {
                let text = format!("times measured inside the client, but on the wire in {name}: {ELSEWHERE}");
                found.push(ComparisonNote { kind: NoteKind::Place, column, text });
            }
            (ComparableDocument::Ramp(_), ComparableDocument::Report(_)) => {
                let text = format!("times measured on the wire, but inside the client in {name}: {ELSEWHERE}");
                found.push(ComparisonNote { kind: NoteKind::Place, column, text });
            }
        }
    }
    found
}

const ELSEWHERE: &str = "times inside the client include its own system and its network";

fn load_difference(ramp: &BenchDocument, base: &BenchDocument, name: &str) -> Option<String> {
    let load = |ramp: &BenchDocument| format!("{}, {}", ramp.workload.name, ramps::schedule(ramp));
    let users = |ramp: &BenchDocument| ramp.runs.iter().map(|run| run.users).collect::<BTreeSet<u32>>();
    let definitions = (&ramp.workload.sha256, &base.workload.sha256);
    if load(ramp) != load(base) {
        Some(format!("a different load from {name}: {}, there {}", load(ramp), load(base)))
    } else if let (Some(own), Some(bases)) = definitions
        && own != bases
    {
        let workload = &ramp.workload.name;
        Some(format!("a different workload from {name}: both are called {workload}, but their definitions differ"))
    } else if ramp.workload.seed != base.workload.seed {
        Some(format!("a different seed from {name}: the order, places and sizes of operations differ"))
    } else if users(ramp) != users(base) {
        Some(format!("different load points from {name}: overall response times of different ranges do not compare"))
    } else {
        None
    }
}

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

pub(super) fn setup_differences(given: &[Given]) -> Vec<ComparisonNote> {
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
            add(format!("{own} was measured differently from {base}: {}", other.join("; ")));
        }
    }
    notes
}

fn list(values: &BTreeSet<String>) -> String {
    values.iter().map(|value| shorten(value, VALUE_SHOWN)).collect::<Vec<_>>().join(" and ")
}
