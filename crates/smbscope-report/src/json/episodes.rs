//! The entries of the JSON report about episodes, and the commands of the one that was chosen.

use crate::episodes::label;
use serde::{Deserialize, Serialize};
use smbscope_diagnose::whatif::Prediction;
use smbscope_diagnose::{Episode, EpisodeKind};
use smbscope_model::{Nanos, Timestamp};
use std::sync::Arc;

/// Commands of an episode that are listed one by one.
pub(super) const BARS_MAX: usize = 5_000;

/// How long the episode would take if something were different.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct WhatIf {
    /// What is different, as --what-if takes it.
    scenario: String,
    /// First request to last response, as captured.
    now_ns: Nanos,
    /// The same if it were so, at least.
    then_low_ns: Nanos,
    /// The same, at best guess.
    then_ns: Nanos,
    /// The same, at most.
    then_high_ns: Nanos,
    /// The longest round trip of the episode's connections, as captured.
    round_trip_ns: Option<Nanos>,
    commands: u64,
    /// Commands that would not be sent.
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

/// A burst of work of one client: its commands are less than 2 s apart, or further where the client has more than 64 bursts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Episode"))]
pub(crate) struct EpisodeEntry {
    /// Its number, from 1: what --episode takes.
    number: usize,
    client: String,
    /// What it looks like, from what it touches.
    kind: EpisodeKind,
    /// The program, document or settings that it opens most.
    about: Option<Arc<str>>,
    /// That in words.
    label: String,
    start_ns: Timestamp,
    end_ns: Timestamp,
    duration_ns: Nanos,
    /// Time with a command outstanding, by connection.
    waited_ns: Nanos,
    /// The rest of the duration.
    think_ns: Nanos,
    /// Commands; as many round trips where they come one after the other.
    commands: u64,
    opens: u64,
    /// Different paths that were opened; an estimate (13%) from 64 on.
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
