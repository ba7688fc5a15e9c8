//! Turns a capture into a workload: the clients' file commands as lines for the load engine, the files they need with
//! their sizes, and a list of the commands that can't be replayed.
//!
//! Commands are replayed in the order of their responses, with the pauses during which nothing was outstanding. Reads
//! of a file that were outstanding together are outstanding together again, and so are writes; all other commands run
//! one after the other. Start reading at [`WorkloadRecorder`].

mod commands;
mod files;
mod lines;
#[cfg(test)]
mod tests;

use lines::RecordingBuilder;
use smbscope_analyze::pseudonym::PseudonymKey;
use smbscope_load::workload::{RecordedWorkload, Recording};
use smbscope_model::exchange::Details;
use smbscope_model::{
    Command, CommandGroup, Exchange, ExchangeOutcome, FileId, FlowId, ResponseStatus, Subcommand, Timestamp,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Commands of a recording; more are refused. Larger captures need a filter.
pub const RECORDED_MAX: usize = 100_000;
/// Bytes of the paths in its opens; more are refused.
pub const RECORDED_NAMES_MAX: usize = 8 << 20;

#[derive(Debug)]
struct BufferedCommand {
    start: Timestamp,
    end: Timestamp,
    flow: FlowId,
    command: Command,
    subcommand: Option<Subcommand>,
    group: CommandGroup,
    file_id: Option<FileId>,
    share: Option<Arc<str>>,
    path: Option<Arc<str>>,
    status: Option<ResponseStatus>,
    offset: Option<u64>,
    length: Option<u64>,
    compounded: bool,
    details: Option<Box<Details>>,
}

#[derive(Debug, Default)]
pub struct WorkloadRecorder {
    taken: Vec<BufferedCommand>,
    name_bytes: usize,
    incomplete: BTreeMap<ExchangeOutcome, u64>,
    is_full: bool,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RecordingError {
    #[error(
        "more than {RECORDED_MAX} commands, or than {} MiB of names: choose some with --client or --filter",
        RECORDED_NAMES_MAX >> 20
    )]
    TooMany,
    #[error("no command in it can be replayed{}", .0.iter().map(|line| format!("; {line}")).collect::<String>())]
    Nothing(Vec<String>),
}

#[derive(Debug, Clone, Default)]
pub struct RecordingOptions {
    pub name: String,
    pub from: String,
    /// Key for pseudonyms. `None` keeps the real names.
    pub key: Option<PseudonymKey>,
}

impl WorkloadRecorder {
    /// Adds an exchange. It must have been analysed with [`smbscope_analyze::AnalyzerOptions::details`].
    pub fn take(&mut self, exchange: &Exchange) {
        if exchange.outcome != ExchangeOutcome::Complete {
            if !matches!(exchange.outcome, ExchangeOutcome::ServerInitiated | ExchangeOutcome::NoResponseByDesign) {
                *self.incomplete.entry(exchange.outcome).or_default() += 1;
            }
            return;
        }
        let times = exchange.request.first.zip(exchange.response.last);
        let Some((first, last)) = times.filter(|_| !self.is_full) else { return };
        if exchange.details.as_ref().is_some_and(|details| details.created.is_some()) {
            self.name_bytes += exchange.path.as_ref().map_or(0, |path| path.len());
        }
        self.is_full = self.taken.len() >= RECORDED_MAX || self.name_bytes > RECORDED_NAMES_MAX;
        self.taken.push(BufferedCommand {
            start: first.time,
            end: last.time,
            flow: exchange.flow,
            command: exchange.command,
            subcommand: exchange.subcommand,
            group: exchange.group,
            file_id: exchange.file_id,
            share: exchange.share.clone(),
            path: exchange.path.clone(),
            status: exchange.status,
            offset: exchange.offset,
            length: exchange.length,
            compounded: exchange.compounded,
            details: exchange.details.clone(),
        });
    }

    pub fn finish(self, request: &RecordingOptions) -> Result<Recording, RecordingError> {
        let WorkloadRecorder { mut taken, incomplete, is_full, .. } = self;
        if is_full {
            return Err(RecordingError::TooMany);
        }
        // Overlapping commands are assumed to have been executed in the order of their responses. The sort is stable:
        // the members of a compound, answered together, keep their order.
        taken.sort_by_key(|taken| (taken.end, taken.start));
        let mut lines = RecordingBuilder::new(request.key.as_ref(), &taken);
        let mut rest = &taken[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(lines::together(rest));
            lines.add(now);
            rest = later;
        }
        let commands = lines.commands();
        let done = lines.finish();
        let incomplete =
            incomplete.into_iter().map(|(outcome, count)| format!("{count} × incomplete in the capture ({outcome})"));
        let not_replayed: Vec<String> = done.not_replayed.into_iter().chain(incomplete).collect();
        if commands == 0 {
            return Err(RecordingError::Nothing(not_replayed));
        }
        Ok(Recording {
            name: request.name.clone(),
            description: format!("{commands} commands recorded from {}", request.from),
            recorded: RecordedWorkload {
                commands,
                anonymized: request.key.is_some(),
                repeats: done.repeats,
                not_replayed,
                files: done.files,
                steps: done.steps,
            },
        })
    }
}
