//! Episodes in the JSON report, and what-if predictions for the selected one.

use crate::episodes::label;
use serde::{Deserialize, Serialize};
use smbscope_diagnose::whatif::Prediction;
use smbscope_diagnose::{Episode, EpisodeKind};
use smbscope_model::{Nanos, Timestamp};
use std::sync::Arc;

pub(super) const BARS_MAX: usize = 5_000;

/// Prediction of the episode's duration under other conditions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct WhatIf {
    /// Scenario, in the syntax of --what-if.
    scenario: String,
    /// Captured duration, from the first request to the last response.
    now_ns: Nanos,
    /// Lower bound of the predicted duration.
    then_low_ns: Nanos,
    /// Best estimate of the predicted duration.
    then_ns: Nanos,
    /// Upper bound of the predicted duration.
    then_high_ns: Nanos,
    /// Longest captured round-trip time of the episode's connections.
    round_trip_ns: Option<Nanos>,
    commands: u64,
    /// Commands that would be saved.
    saved: u64,
}

impl WhatIf {
    pub(super) fn new(prediction: &Prediction) -> WhatIf {
        let Prediction { scenario, now, low, then, high, round_trip, commands, saved } = prediction;
        WhatIf {
            scenario: scenario.to_string(),
            now_ns: *now,
            then_low_ns: *low,
            then_ns: *then,
            then_high_ns: *high,
            round_trip_ns: *round_trip,
            commands: *commands,
            saved: *saved,
        }
    }
}

/// Burst of work of one client. Its commands are less than 2 s apart, or further if the client has more than 64 bursts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Episode"))]
pub(crate) struct EpisodeEntry {
    /// Number for --episode, from 1.
    number: usize,
    client: String,
    /// Kind of work, guessed from the files used.
    kind: EpisodeKind,
    /// Program, document or settings opened most often.
    about: Option<Arc<str>>,
    /// Description in words.
    label: String,
    start_ns: Timestamp,
    end_ns: Timestamp,
    duration_ns: Nanos,
    /// Time with a command outstanding, summed over connections.
    waited_ns: Nanos,
    /// Rest of the duration.
    think_ns: Nanos,
    /// Number of commands; equal to round trips if they are sequential.
    commands: u64,
    opens: u64,
    /// Distinct paths opened; from 64 on an estimate (13% error).
    files: u64,
    bytes_read: u64,
    bytes_written: u64,
}

impl EpisodeEntry {
    pub(crate) fn all(episodes: &[Episode]) -> Vec<EpisodeEntry> {
        episodes.iter().enumerate().map(|(at, episode)| EpisodeEntry::new(at + 1, episode)).collect()
    }

    fn new(number: usize, episode: &Episode) -> EpisodeEntry {
        EpisodeEntry {
            number,
            client: episode.client.to_string(),
            kind: episode.kind,
            about: episode.about.clone(),
            label: label(episode),
            start_ns: episode.start,
            end_ns: episode.end,
            duration_ns: episode.duration(),
            waited_ns: episode.waited,
            think_ns: episode.think(),
            commands: episode.commands,
            opens: episode.opens,
            files: episode.files,
            bytes_read: episode.bytes_read,
            bytes_written: episode.bytes_written,
        }
    }
}
