//! Workloads recorded from a capture: a TOML file that contains loadfile lines.
//!
//! `[recorded]` has two texts: `files` creates the files that the recording expects, before measurement starts, and
//! `steps` has its commands with the pauses between them.

use super::error::Location;
use super::loadfile::Loadfile;
use super::{FileSet, Workload, WorkloadDefinition, WorkloadError, WorkloadKind, WorkloadSource};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    pub name: String,
    /// One line, possibly empty.
    #[serde(default)]
    pub description: String,
    pub recorded: RecordedWorkload,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedWorkload {
    pub commands: u64,
    /// True if the names are pseudonyms.
    #[serde(default)]
    pub anonymized: bool,
    /// True if a pass restores the files, so that it can be repeated at once. Otherwise each user runs it once.
    #[serde(default)]
    pub repeats: bool,
    /// Commands that are not replayed, with count and reason.
    #[serde(default)]
    pub not_replayed: Vec<String>,
    pub files: String,
    /// Lines that are measured.
    pub steps: String,
}

impl Recording {
    pub fn to_toml(&self) -> String {
        // Strings and numbers always serialise.
        toml::to_string_pretty(self).unwrap_or_default()
    }
}

pub(super) fn is_one(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "[recorded]")
}

pub(super) fn parse(file: &str, text: &str, source: WorkloadSource) -> Result<Workload, WorkloadError> {
    let recording: Recording = toml::from_str(text).map_err(|error| {
        let place = Location::at(file, text, error.span().map_or(0, |span| span.start));
        WorkloadError::invalid(place, error.message().replace('\n', ", "), "see docs/workloads.md, or record it again")
    })?;
    let Recording { name, description, recorded } = recording;
    let lines = format!("{}{}", with_end(&recorded.files), recorded.steps);
    let first = recorded.files.lines().count() as u32 + 1;
    let loadfile = Loadfile::parse_recorded(file, &lines)?.repeat_from_line(first);
    let loadfile = if recorded.repeats { loadfile } else { loadfile.once() };
    let definition = WorkloadDefinition::new(text);
    let about = super::WorkloadMetadata {
        name,
        description,
        source,
        file_set: FileSet::none(),
        definition,
        parameters: Vec::new(),
        toml: None,
    };
    Ok(Workload { about: Arc::new(about), kind: WorkloadKind::Loadfile(Arc::new(loadfile)), thinking: None })
}

fn with_end(text: &str) -> String {
    match text {
        "" => String::new(),
        text if text.ends_with('\n') => text.to_owned(),
        text => format!("{text}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Action, Script, UserSeat};
    use super::*;
    use std::time::Duration;

    fn recording(repeats: bool) -> Recording {
        Recording {
            name: "app".to_owned(),
            description: "3 commands".to_owned(),
            recorded: RecordedWorkload {
                commands: 3,
                anonymized: false,
                repeats,
                not_replayed: vec!["2 × CHANGE_NOTIFY: it waits for somebody else".to_owned()],
                files:
                    "NTCreateX \"\\a\" 0x40 0x2 0 NT_STATUS_OK\nWriteX 0 0 100 100 NT_STATUS_OK\nClose 0 NT_STATUS_OK\n"
                        .to_owned(),
                steps: "Create \"\\a\" 0x120089 0x7 1 0x40 0x80 1 SUCCESS\nSleep 20000 SUCCESS\n\
                        ReadX 1 0 100 100 SUCCESS\nClose 1 SUCCESS\n"
                    .to_owned(),
            },
        }
    }

    #[test]
    fn clients_is_a_name_like_any_other() {
        let mut recording = recording(false);
        recording.recorded.files = String::new();
        recording.recorded.steps = "Mkdir \"\\clients\" SUCCESS\nMkdir \"\\clients\\client1\" SUCCESS\n".to_owned();
        let workload = workload(&recording);
        let seat = UserSeat { number: 0, of: 1, seed: 1, directory: "bench".to_owned() };
        let mut script = workload.script(&seat);
        while script.sets_up() {
            script.next().unwrap();
        }
        let made = [(); 2].map(|()| match script.next().unwrap().action {
            Action::MakeDirectory(path) => path.to_owned(),
            other => panic!("{other:?}"),
        });
        assert_eq!(made, [r"bench\user00001\clients", r"bench\user00001\clients\client1"]);
    }

    fn workload(recording: &Recording) -> Workload {
        parse("app.toml", &recording.to_toml(), WorkloadSource::BuiltIn).unwrap_or_else(|error| panic!("{error}"))
    }

    fn steps(workload: &Workload, most: usize) -> Vec<String> {
        let seat = UserSeat { number: 0, of: 1, seed: 1, directory: "bench".to_owned() };
        let mut script = workload.script(&seat);
        while script.sets_up() {
            assert!(script.next().is_some());
        }
        let mut found = Vec::new();
        while let Some(step) = (found.len() < most).then(|| script.next()).flatten() {
            found.push(match step.action {
                Action::Open { path, access, share, .. } => format!("open {path} {access:#x} {share:#x}"),
                Action::Think(time) => format!("think {time:?}"),
                Action::Read { offset, length, .. } => format!("read {offset} {length}"),
                Action::Close(_) => "close".to_owned(),
                other => format!("{other:?}"),
            });
        }
        found
    }

    const STEPS: [&str; 4] = [r"open bench\user00001\a 0x120089 0x7", "think 20ms", "read 0 100", "close"];

    #[test]
    fn what_is_written_is_read_and_done_once_unless_it_leaves_all_as_it_was() {
        let once = recording(false);
        assert_eq!(toml::from_str::<Recording>(&once.to_toml()).unwrap(), once);
        assert!(is_one(&once.to_toml()));
        assert_eq!(steps(&workload(&once), 9), STEPS);
        let twice: Vec<&str> = STEPS.iter().chain(&STEPS).copied().collect();
        assert_eq!(steps(&workload(&recording(true)), 8), twice);
        assert_eq!(workload(&once).set_up_bytes(), 100);
    }

    #[test]
    fn think_times_are_scaled_or_left_out() {
        let scaled = |by: f64| steps(&workload(&recording(false)).thinking(by), 9);
        assert_eq!(scaled(0.5)[1], format!("think {:?}", Duration::from_millis(10)));
        assert_eq!(scaled(0.0)[1], format!("think {:?}", Duration::ZERO));
    }
}
