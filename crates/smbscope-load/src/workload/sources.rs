//! Workloads that are not plain files: built-in, recorded from a capture, and received from another host.
//!
//! The built-in ones are the generated mix and the TOML files in `workloads/`, which also serve as examples. A
//! recording is a TOML file that contains loadfile lines. Each of its `[[recorded.clients]]` has a text `files`, which
//! creates the files that the client expects before measurement starts, and a text for each of its `threads`, with their
//! commands and the pauses between them, and `pools` of tasks that threads share. [`Travelling`] is the serialised form
//! of any workload, which another load generator parses again.

use super::loadfile::Loadfile;
use super::netbench::{self, NetbenchLike};
use super::threads::RecordedClient;
use super::{
    FileSet, Workload, WorkloadDefinition, WorkloadError, WorkloadKind, WorkloadMetadata, WorkloadSource, read,
};
use super::{Location, suggest};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

const NETBENCH: &str = "netbench-like";
const NETBENCH_FULL: &str = "netbench-like-full";

const FILES: [(&str, &str); 15] = [
    ("open-read-close", include_str!("../../../../workloads/open-read-close.toml")),
    ("echo", include_str!("../../../../workloads/echo.toml")),
    ("metadata", include_str!("../../../../workloads/metadata.toml")),
    ("read", include_str!("../../../../workloads/read.toml")),
    ("write", include_str!("../../../../workloads/write.toml")),
    ("ini", include_str!("../../../../workloads/ini.toml")),
    ("ini-once", include_str!("../../../../workloads/ini-once.toml")),
    ("ini-write", include_str!("../../../../workloads/ini-write.toml")),
    ("ini-create", include_str!("../../../../workloads/ini-create.toml")),
    ("reopen", include_str!("../../../../workloads/reopen.toml")),
    ("logon", include_str!("../../../../workloads/logon.toml")),
    ("blocksweep", include_str!("../../../../workloads/blocksweep.toml")),
    ("copy", include_str!("../../../../workloads/copy.toml")),
    ("copy-small", include_str!("../../../../workloads/copy-small.toml")),
    ("homefolders", include_str!("../../../../workloads/homefolders.toml")),
];

/// Name and description of each workload. The first is the default.
pub(super) fn all_built_in() -> Vec<(&'static str, String)> {
    let names = [NETBENCH, NETBENCH_FULL].into_iter().chain(FILES.iter().map(|(name, _)| *name));
    let described = names.map(|name| {
        let description = built_in(name).map(|workload| workload.description().to_owned());
        (name, description.unwrap_or_default())
    });
    described.collect()
}

pub(super) fn built_in(name: &str) -> Result<Workload, WorkloadError> {
    match name {
        NETBENCH => netbench(NetbenchLike::default()),
        NETBENCH_FULL => netbench(NetbenchLike { scale: 1, ..NetbenchLike::default() }),
        _ => match FILES.iter().find(|(file, _)| *file == name) {
            Some((file, text)) => Workload::toml(&format!("workloads/{file}.toml"), text, WorkloadSource::BuiltIn),
            None => {
                let names: Vec<&str> =
                    [NETBENCH, NETBENCH_FULL].into_iter().chain(FILES.iter().map(|(name, _)| *name)).collect();
                let hint = format!("{}; or give a file", suggest(name, &names));
                Err(WorkloadError::Unknown { name: name.to_owned(), hint })
            }
        },
    }
}

pub(super) fn built_in_text(name: &str) -> Option<String> {
    let generated = |settings| Some(netbench::generate(settings).0);
    match name {
        NETBENCH => generated(NetbenchLike::default()),
        NETBENCH_FULL => generated(NetbenchLike { scale: 1, ..NetbenchLike::default() }),
        _ => FILES.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned()),
    }
}

pub(super) fn netbench(settings: NetbenchLike) -> Result<Workload, WorkloadError> {
    let (text, first) = netbench::generate(settings);
    let loadfile = Loadfile::parse(NETBENCH, &text)?.repeat_from_line(first);
    let name = if settings.scale <= 1 { NETBENCH_FULL } else { NETBENCH };
    let megabytes = loadfile.set_up_bytes() as f64 / 1e6;
    let description = format!("The mix of operations of the NetBench Disk Mix, with {megabytes:.1} MB of files a user");
    Ok(Workload::of_loadfile(name.to_owned(), description, WorkloadSource::BuiltIn, &text, loadfile))
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    pub name: String,
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
    pub clients: Vec<RecordedClient>,
}

/// Threads of a recording, and so its sessions; more are refused.
const RECORDED_THREADS_MAX: usize = 4_096;

impl Recording {
    pub fn to_toml(&self) -> String {
        // Strings and numbers always serialise.
        toml::to_string_pretty(self).unwrap_or_default()
    }
}

pub(super) fn is_recording(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "[recorded]")
}

pub(super) fn parse_recording(file: &str, text: &str, source: WorkloadSource) -> Result<Workload, WorkloadError> {
    let recording: Recording = toml::from_str(text).map_err(|error| {
        let place = Location::at(file, text, error.span().map_or(0, |span| span.start));
        WorkloadError::invalid(place, error.message().replace('\n', ", "), "see docs/workloads.md, or record it again")
    })?;
    let Recording { name, description, recorded } = recording;
    let threads: usize = recorded.clients.iter().map(|client| client.threads.len()).sum();
    if threads > RECORDED_THREADS_MAX || recorded.clients.iter().any(|client| client.threads.is_empty()) {
        let place = Location { file: file.to_owned(), line: None, column: None };
        let what =
            format!("a client of a recording has 1 thread or more, and all of them {RECORDED_THREADS_MAX} at most");
        return Err(WorkloadError::invalid(place, what, "record it again, or fewer clients with --client"));
    }
    let loadfile = Loadfile::parse_recorded(file, &recorded.clients)?;
    let loadfile = if recorded.repeats { loadfile } else { loadfile.once() };
    let definition = WorkloadDefinition::new(text);
    let about = WorkloadMetadata {
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Travelling {
    text: WorkloadText,
    name: String,
    description: String,
    source: WorkloadSource,
    thinking: Option<f64>,
    sha256: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum WorkloadText {
    Table(String, String),
    Lines(String),
    BuiltIn,
}

impl Workload {
    pub fn travelling(&self) -> Result<Travelling, WorkloadError> {
        let about = &self.about;
        let text = match (&about.toml, &about.source) {
            (Some((file, text)), _) => WorkloadText::Table(file.clone(), text.clone()),
            (None, WorkloadSource::BuiltIn) => WorkloadText::BuiltIn,
            (None, WorkloadSource::File(path)) => {
                let (_, bytes) = read(Path::new(path))?;
                WorkloadText::Lines(String::from_utf8_lossy(&bytes).into_owned())
            }
        };
        let sha256 = about.definition.sha256.clone();
        if let WorkloadText::Lines(lines) = &text
            && WorkloadDefinition::new(lines).sha256 != sha256
        {
            return Err(changed(&about.name));
        }
        let (name, description, source) = (about.name.clone(), about.description.clone(), about.source.clone());
        Ok(Travelling { text, name, description, source, thinking: self.thinking, sha256 })
    }
}

impl Travelling {
    /// Restores the workload. Returns an error if its hash differs.
    pub fn arrived(self) -> Result<Workload, WorkloadError> {
        let Travelling { text, name, description, source, thinking, sha256 } = self;
        let workload = match text {
            WorkloadText::Table(file, text) => Workload::toml(&file, &text, source)?,
            WorkloadText::BuiltIn => built_in(&name)?,
            WorkloadText::Lines(text) if is_recording(&text) => parse_recording(&name, &text, source)?,
            WorkloadText::Lines(text) => {
                let loadfile = Loadfile::parse(&name, &text)?;
                Workload::of_loadfile(name.clone(), description, source, &text, loadfile)
            }
        };
        if workload.definition().sha256 != sha256 {
            return Err(changed(&name));
        }
        Ok(match (thinking, &workload.kind) {
            (Some(by), WorkloadKind::Loadfile(_)) => workload.thinking(by),
            _ => workload,
        })
    }
}

fn changed(name: &str) -> WorkloadError {
    WorkloadError::Parameter {
        what: format!("the workload {name} is not the one that was read before"),
        hint: "leave its file as it is during a run".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Action, NetbenchLike, Script, UserSeat};
    use super::*;
    use smbscope_model::travel::{from_bytes, to_bytes};
    use std::time::Duration;

    #[test]
    fn every_one_can_be_had_and_has_work() {
        for (name, description) in all_built_in() {
            let workload = built_in(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(workload.name(), name);
            assert!(!description.is_empty() && !workload.operations().is_empty());
            let seat = UserSeat { number: 0, of: 1, seed: 1, directory: "bench".to_owned() };
            let mut script = workload.script(&seat);
            while script.sets_up() {
                assert!(script.next().is_some());
            }
            assert!(script.next().is_some());
        }
    }

    #[test]
    fn the_generated_mix_makes_its_files_once() {
        let workload = built_in(NETBENCH).unwrap();
        assert_eq!(workload.skipped_lines(), 0);
        // 3 MB plus one byte per file, with the smallest files rounded up.
        assert!((3_000_000..3_600_000).contains(&workload.set_up_bytes()), "{}", workload.set_up_bytes());
        let seat = UserSeat { number: 0, of: 1, seed: 1, directory: "bench".to_owned() };
        let mut script = workload.script(&seat);
        while script.passes() == Some(0) {
            script.next();
        }
        let again = script.next().unwrap().line;
        assert!(!script.sets_up());
        assert!(again > Some(146 * 4));
    }

    #[test]
    fn the_text_of_each_is_a_file_to_begin_from() {
        let folder = tempfile::tempdir().unwrap();
        for (name, _) in all_built_in() {
            let path = folder.path().join("mine");
            std::fs::write(&path, built_in_text(name).unwrap()).unwrap();
            let mine = Workload::load(&path).unwrap();
            assert_eq!(mine.operations().len(), built_in(name).unwrap().operations().len(), "{name}");
        }
        assert_eq!(built_in_text("none"), None);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = built_in("netbench").unwrap_err().to_string();
        assert!(error.contains("no workload is called \"netbench\"") && error.contains("netbench-like"), "{error}");
        assert!(built_in("open-raed-close").unwrap_err().to_string().contains("did you mean \"open-read-close\"?"));
    }

    fn recording(repeats: bool) -> Recording {
        Recording {
            name: "app".to_owned(),
            description: "3 commands".to_owned(),
            recorded: RecordedWorkload {
                commands: 3,
                anonymized: false,
                repeats,
                not_replayed: vec!["2 × CHANGE_NOTIFY: it waits for another client".to_owned()],
                clients: vec![RecordedClient {
                    files:
                        "NTCreateX \"\\a\" 0x40 0x2 0 NT_STATUS_OK\nWriteX 0 0 100 100 NT_STATUS_OK\nClose 0 NT_STATUS_OK\n"
                            .to_owned(),
                    threads: vec![
                        "Create \"\\a\" 0x120089 0x7 1 0x40 0x80 1 SUCCESS\nSleep 20000 SUCCESS\n\
                         ReadX 1 0 100 100 SUCCESS\nClose 1 SUCCESS\n"
                            .to_owned(),
                    ],
                    ..RecordedClient::default()
                }],
            },
        }
    }

    #[test]
    fn clients_is_a_name_like_any_other() {
        let mut recording = recording(false);
        let steps = "Mkdir \"\\clients\" SUCCESS\nMkdir \"\\clients\\client1\" SUCCESS\n".to_owned();
        recording.recorded.clients = vec![RecordedClient { threads: vec![steps], ..RecordedClient::default() }];
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
        parse_recording("app.toml", &recording.to_toml(), WorkloadSource::BuiltIn)
            .unwrap_or_else(|error| panic!("{error}"))
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
        assert!(is_recording(&once.to_toml()));
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

    fn first_steps(workload: &Workload) -> Vec<String> {
        let seat = UserSeat { number: 3, of: 8, seed: 7, directory: "bench".to_owned() };
        let mut script = workload.script(&seat);
        (0..500).map_while(|_| script.next().map(|step| format!("{step:?}"))).collect()
    }

    fn travelled(workload: &Workload) -> Workload {
        let bytes = to_bytes(&workload.travelling().unwrap());
        from_bytes::<Travelling>(&bytes).unwrap().arrived().unwrap()
    }

    #[test]
    fn users_of_another_host_do_the_same_steps() {
        for (name, _) in Workload::built_in() {
            let workload = Workload::builtin(name).unwrap();
            assert_eq!(first_steps(&travelled(&workload)), first_steps(&workload), "{name}");
        }
        let set = Workload::builtin("copy-small").unwrap().set(&[("files".to_owned(), "7".to_owned())]).unwrap();
        assert_eq!(first_steps(&travelled(&set)), first_steps(&set));
    }

    #[test]
    fn a_loadfile_is_read_again_and_must_be_the_same() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), Workload::builtin_text("netbench-like").unwrap()).unwrap();
        let workload = Workload::loadfile(file.path()).unwrap().thinking(0.5);
        assert_eq!(first_steps(&travelled(&workload)), first_steps(&workload));
        std::fs::write(file.path(), "Sleep 5 SUCCESS\n").unwrap();
        assert!(workload.travelling().unwrap_err().to_string().contains("not the one that was read before"));
        // A mix generated with other settings has no name that identifies it.
        let other = Workload::netbench_like(NetbenchLike { seed: 9, ..NetbenchLike::default() }).unwrap();
        assert!(other.travelling().unwrap().arrived().is_err());
    }
}
