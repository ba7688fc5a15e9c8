//! Suggested commands for a column that is slower: analyse its capture, or measure its load point again.

use super::{ComparedCommand, Comparison, ComparisonColumn, answer};
use smbscope_diagnose::next::{SuggestedCommand, file, quoted};

/// Returns at most two commands. Empty if no command got slower.
pub(super) fn steps(comparison: &Comparison, column: usize) -> Vec<SuggestedCommand> {
    let Some(command) = answer::costliest(comparison, column) else { return Vec::new() };
    let filter = condition(command).map_or_else(String::new, |filter| format!("--filter {} ", quoted(&filter)));
    let ramp = comparison.ramps.as_ref().and_then(|ramps| ramps.columns.get(column)?.as_ref());
    let (Some(base), Some(other)) = (comparison.columns.first(), comparison.columns.get(column)) else {
        return Vec::new();
    };
    let capture = captured(other).or_else(|| file(ramp?.capture.as_deref()?));
    let files =
        capture.map(|capture| SuggestedCommand::new("files", format!("smbscope analyze {filter}--by file {capture}")));
    let again = || Some(SuggestedCommand::new("again", format!("{} --full", ramp?.again.as_ref()?)));
    let both = captured(base).zip(captured(other)).filter(|_| comparison.slices.is_none());
    let both =
        both.map(|(base, other)| SuggestedCommand::new("both", format!("smbscope compare --by file {base} {other}")));
    files.or_else(again).into_iter().chain(both).collect()
}

/// Returns the column's capture if it was given as an argument. The captures of a saved report may have moved.
fn captured(column: &ComparisonColumn) -> Option<String> {
    match column.captures.as_slice() {
        [only] if only.name == column.source => file(&column.source),
        _ => None,
    }
}

/// Returns a filter for the command. None for combined commands, which no single name selects.
fn condition(command: &ComparedCommand) -> Option<String> {
    command.members.is_none().then(|| format!("command == {}", command.command))
}
