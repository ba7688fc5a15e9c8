//! Divides the commands of a client's threads into those that become one line, in the order of the replay.

use smbscope_diagnose::whatif::ThreadPlace;
use smbscope_model::{CommandGroup, Exchange, ResponseStatus, Subcommand};
use smbscope_wire::status::{DosError, NtStatus};
use std::collections::BTreeMap;

/// A thread, and its task if that is one of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LinePlace {
    pub(super) thread: usize,
    pub(super) pooled: Option<(usize, usize)>,
}

/// Commands that become one line: a single one, or transfers that were outstanding together.
pub(super) struct CommandBatch {
    pub(super) place: LinePlace,
    pub(super) commands: Vec<usize>,
}

pub(super) fn outstanding(taken: &[&Exchange]) -> usize {
    let mut moments: Vec<(i64, bool)> =
        taken.iter().flat_map(|taken| [(start(taken), true), (end(taken), false)]).collect();
    // At equal times, ends sort before starts.
    moments.sort_unstable();
    let (mut now, mut most) = (0usize, 1);
    for (_, begins) in moments {
        now = if begins { now + 1 } else { now.saturating_sub(1) };
        most = most.max(now);
    }
    most
}

pub(super) fn start(taken: &Exchange) -> i64 {
    taken.request.first.map_or(0, |stamp| stamp.time.0)
}

pub(super) fn end(taken: &Exchange) -> i64 {
    taken.response.last.map_or_else(|| start(taken), |stamp| stamp.time.0)
}

/// Returns false for commands that a replay has no use for. The load generator sets up its own sessions, and the data of
/// a Write_Raw belongs to its request.
pub(super) fn is_wanted(taken: &Exchange) -> bool {
    !matches!(taken.group, CommandGroup::Session | CommandGroup::Waiting)
        && taken.subcommand != Some(Subcommand::AsyncPortion)
}

/// Divides the commands of a client into those that become one line, in the order of their ends. Overlapping commands of
/// a thread are assumed to have been executed in the order of their responses.
pub(super) fn batches(taken: &[Exchange], places: &[Option<ThreadPlace>]) -> Vec<CommandBatch> {
    let mut of_threads: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, place) in places.iter().enumerate() {
        of_threads.entry(place.as_ref().map_or(0, |place| place.thread)).or_default().push(at);
    }
    let mut batches = Vec::new();
    for (thread, mut commands) in of_threads {
        // The sort is stable: the members of a compound, answered together, keep their order.
        commands.sort_by_key(|at| (end(&taken[*at]), start(&taken[*at])));
        let mut rest = &commands[..];
        while let Some(first) = rest.first() {
            let (now, later) = rest.split_at(together(taken, rest));
            let pooled = places[*first].as_ref().and_then(|place| place.pooled);
            batches.push(CommandBatch { place: LinePlace { thread, pooled }, commands: now.to_vec() });
            rest = later;
        }
    }
    batches.sort_by_key(|batch| {
        let ends = batch.commands.iter().map(|at| (end(&taken[*at]), start(&taken[*at])));
        ends.max().unwrap_or_default()
    });
    batches
}

/// Returns the number of commands at the start of `order` that are overlapping, successful transfers of the same file,
/// and 1 if the first command isn't such a transfer. `order` is sorted by response time.
fn together(taken: &[Exchange], order: &[usize]) -> usize {
    let Some(first) = order.first().map(|at| &taken[*at]) else { return 0 };
    if !is_transfer(first) {
        return 1;
    }
    let mut until = end(first);
    let others = order[1..].iter().map(|at| &taken[*at]).take_while(|next| {
        let overlaps = start(next) < until;
        until = until.max(end(next));
        overlaps
            && is_transfer(next)
            && next.group == first.group
            && (next.flow, next.file_id) == (first.flow, first.file_id)
    });
    1 + others.count()
}

fn is_transfer(taken: &Exchange) -> bool {
    matches!(taken.group, CommandGroup::Read | CommandGroup::Write)
        && !taken.compounded
        && taken.file_id.is_some()
        && taken.offset.is_some()
        && taken.length.is_some_and(|length| length > 0)
        && taken.status.is_some_and(|status| !nt(status).is_error())
        && taken.subcommand.is_none()
        && !taken.share.as_deref().is_some_and(is_pipe)
}

pub(super) fn is_pipe(share: &str) -> bool {
    share.eq_ignore_ascii_case("IPC$")
}

/// Maps a DOS error to the NT status, as far as recordings distinguish them (MS-CIFS 2.2.2.4).
pub(super) fn nt(status: ResponseStatus) -> NtStatus {
    match status {
        ResponseStatus::Nt(status) => status,
        ResponseStatus::Dos(error) if !error.is_error() => NtStatus::SUCCESS,
        ResponseStatus::Dos(DosError { class: 1, code: 2 }) => NtStatus::OBJECT_NAME_NOT_FOUND,
        ResponseStatus::Dos(DosError { class: 1, code: 3 }) => NtStatus::OBJECT_PATH_NOT_FOUND,
        ResponseStatus::Dos(DosError { class: 1, code: 18 }) => NtStatus::NO_SUCH_FILE,
        ResponseStatus::Dos(DosError { class: 1, code: 80 | 183 }) => NtStatus::OBJECT_NAME_COLLISION,
        ResponseStatus::Dos(_) => NtStatus::UNSUCCESSFUL,
    }
}
