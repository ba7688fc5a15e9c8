//! Workloads on a real server: every response is as expected in every dialect, and nothing is left behind.
//!
//! The Debian package's `client.txt` is cut off after some thousand lines. With SMBSCOPE_WHOLE_LOADFILE=USERS in the
//! environment this number of users run all of it, which takes minutes per dialect.

use smbscope_client::SessionOptions;
use smbscope_lab::{LabServer, LabServerSettings};
use smbscope_load::engine::result::{LoadPointEnd, LoadPointResult};
use smbscope_load::engine::{self, LiveFigures, RampPlan, StopFlag, Users};
use smbscope_load::prepare::{self, PrepareRequest};
use smbscope_load::workload::{CreatedPaths, NetbenchLike, Script, ScriptStep, UserSeat, Workload};
use smbscope_model::{Command, Dialect};
use std::path::Path;
use std::time::{Duration, Instant};

const DIALECTS: [Dialect; 6] = [
    Dialect::NtLm012,
    Dialect::Smb2(0x0202),
    Dialect::Smb2(0x0210),
    Dialect::Smb2(0x0300),
    Dialect::Smb2(0x0302),
    Dialect::Smb2(0x0311),
];

const DIRECTORY: &str = "smbscope-bench";
/// More than any preparation takes.
const LONG: Duration = Duration::from_secs(7_200);

/// A user who stops after one pass, or after a number of steps.
struct Once {
    script: Box<dyn Script>,
    left: usize,
}

impl Script for Once {
    fn operations(&self) -> &[String] {
        self.script.operations()
    }

    fn next(&mut self) -> Option<ScriptStep<'_>> {
        self.left = self.left.checked_sub(1)?;
        if self.script.passes() > Some(0) { None } else { self.script.next() }
    }

    fn restart(&mut self) {
        self.script.restart();
    }

    fn sets_up(&self) -> bool {
        self.script.sets_up()
    }

    fn passes(&self) -> Option<u32> {
        self.script.passes()
    }
}

/// Returns a server, or prints why there is none.
fn server() -> Option<LabServer> {
    match smbscope_lab::available() {
        Ok(()) => Some(
            LabServer::start(&LabServerSettings { guests: true, ..LabServerSettings::default() })
                .expect("a lab server"),
        ),
        Err(reason) => {
            smbscope_testkit::skip::missing(reason);
            None
        }
    }
}

fn options(server: &LabServer, dialect: Dialect) -> SessionOptions {
    SessionOptions { dialect, ..SessionOptions::new("localhost", server.address(), server.share()) }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// Lists the content of the share.
fn on_disk(server: &LabServer) -> Vec<String> {
    let entries = std::fs::read_dir(server.share_folder()).expect("the folder of the share");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// Prepares, lets users perform up to `steps` steps, and cleans up.
fn run(server: &LabServer, dialect: Dialect, workload: &Workload, users: u32, steps: usize) -> LoadPointResult {
    let options = options(server, dialect);
    let request = PrepareRequest {
        directory: DIRECTORY,
        workload: workload.name(),
        files: workload.file_set(),
        made: &workload.made(),
        users,
        sessions: 4,
        within: LONG,
    };
    block_on(prepare::prepare(&options, &request, &mut |_| {})).unwrap_or_else(|error| panic!("{dialect}: {error}"));
    let plan = RampPlan {
        users: Users::one(users),
        warmup: Duration::ZERO,
        duration: Duration::from_secs(7200),
        ..RampPlan::default()
    };
    let scripts = |number| -> Box<dyn Script> {
        let seat = UserSeat { number, of: users, seed: 1, directory: DIRECTORY.to_owned() };
        Box::new(Once { script: Box::new(workload.script(&seat)), left: steps })
    };
    let started = Instant::now();
    let mut runs =
        engine::run(&plan, &options, &scripts, &mut (), &LiveFigures::default(), &StopFlag::new()).expect("a plan");
    let run = runs.pop().expect("a load point");
    let commands = run.answered();
    println!("{} by {users} over {dialect}: {commands} commands in {:?}", workload.name(), started.elapsed());
    block_on(prepare::clean(&options, DIRECTORY, 4, LONG, &mut |_| {}))
        .unwrap_or_else(|error| panic!("{dialect}: {error}"));
    assert!(on_disk(server).is_empty(), "{dialect}: {:?}", on_disk(server));
    run
}

fn assert_as_expected(run: &LoadPointResult, dialect: Dialect) {
    assert_eq!(run.ended, LoadPointEnd::Done, "{dialect}");
    assert!(run.failures.is_empty(), "{dialect}: {:?}", run.failures);
    for operation in &run.operations {
        assert!(operation.unexpected.is_empty(), "{dialect}: {}: {:?}", operation.name, operation.unexpected);
    }
}

#[test]
fn a_pass_of_the_generated_mix_is_answered_as_expected_in_every_dialect() {
    let Some(server) = server() else { return };
    let workload = Workload::netbench_like(NetbenchLike { passes: 1, ..NetbenchLike::default() }).unwrap();
    for dialect in DIALECTS {
        assert_as_expected(&run(&server, dialect, &workload, 2, usize::MAX), dialect);
    }
}

#[test]
fn debians_client_txt_is_answered_as_expected_in_every_dialect() {
    let path = Path::new("/usr/share/dbench/client.txt");
    if !path.exists() {
        smbscope_testkit::skip::missing(format_args!("{} (Debian package dbench)", path.display()));
        return;
    }
    let Some(server) = server() else { return };
    let workload = Workload::loadfile(path).unwrap();
    let whole = std::env::var("SMBSCOPE_WHOLE_LOADFILE").ok().map(|users| users.parse().expect("a number of users"));
    let (users, steps) = whole.map_or((2, 2_500), |users| (users, usize::MAX));
    for dialect in DIALECTS {
        assert_as_expected(&run(&server, dialect, &workload, users, steps), dialect);
    }
}

/// Reduces the workload's size parameters, if it has any.
fn small(workload: Workload) -> Workload {
    let less = |name: &str| match name {
        "files" | "settings" | "opens" => Some("20"),
        "folders" => Some("5"),
        "bytes" => Some("100KB"),
        "size" => Some("40000"),
        _ => None,
    };
    let names: Vec<String> = workload.parameters().iter().map(|(name, _)| name.clone()).collect();
    let set: Vec<(String, String)> =
        names.into_iter().filter_map(|name| less(&name).map(|value| (name, value.to_owned()))).collect();
    workload.set(&set).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_walk_reads_all_of_a_tree_and_the_tree_can_be_removed() {
    let Some(server) = server() else { return };
    let workload = small(Workload::builtin("logon").unwrap());
    for dialect in DIALECTS {
        let run = run(&server, dialect, &workload, 2, usize::MAX);
        assert_as_expected(&run, dialect);
        // Each user reads all files, and lists 5 folders.
        assert_eq!(run.bytes_read, 2 * workload.file_set().bytes(), "{dialect}");
        let jobs = run.jobs.expect("a walk has an end");
        assert_eq!((jobs.elapsed.count(), jobs.sum.files), (2, 2 * 20), "{dialect}");
        assert_eq!(run.operations[0].service.count(), 2 * (20 + 5), "{dialect}");
    }
}

#[test]
fn built_in_workloads_are_answered_as_expected() {
    let Some(server) = server() else { return };
    for (name, _) in Workload::built_in().into_iter().filter(|(name, _)| !name.starts_with("netbench")) {
        let workload = small(Workload::builtin(name).unwrap());
        for dialect in [Dialect::NtLm012, Dialect::Smb2(0x0202), Dialect::Smb2(0x0311)] {
            let run = run(&server, dialect, &workload, 2, 300);
            assert_as_expected(&run, dialect);
            let done: u64 = run.operations.iter().map(|operation| operation.service.count()).sum();
            assert!(done > 0, "{name} over {dialect}");
        }
    }
}

#[test]
fn home_folders_send_the_published_mix_of_commands() {
    use smbscope_wire::smb2::Smb2Command as Smb2;
    let Some(server) = server() else { return };
    let workload = Workload::builtin("homefolders").unwrap();
    for dialect in [Dialect::Smb2(0x0210), Dialect::Smb2(0x0311)] {
        let run = run(&server, dialect, &workload, 4, 5_000);
        assert_as_expected(&run, dialect);
        let count = |of: Smb2| -> u64 {
            let kinds = run.counted.kinds().filter(|((command, _, _), _)| *command == Command::Smb2(of));
            kinds.map(|(_, counted)| counted.response_time.count()).sum()
        };
        let all = run.answered() as f64;
        for (command, published) in [
            (Smb2::CREATE, 22.0),
            (Smb2::CLOSE, 19.0),
            (Smb2::READ, 14.0),
            (Smb2::QUERY_INFO, 13.0),
            (Smb2::QUERY_DIRECTORY, 10.0),
            (Smb2::WRITE, 7.0),
            (Smb2::IOCTL, 4.0),
            (Smb2::SESSION_SETUP, 3.0),
            (Smb2::TREE_CONNECT, 2.0),
        ] {
            let share = 100.0 * count(command) as f64 / all;
            println!("{command} {share:.1}% of {all}");
            assert!((share - published).abs() <= 2.0, "{dialect}: {command} {share:.1}% instead of {published}%");
        }
    }
}

#[test]
fn a_prepared_set_is_kept_and_topped_up_in_every_dialect() {
    let Some(server) = server() else { return };
    let workload = Workload::builtin("metadata").unwrap();
    let files = workload.file_set();
    for dialect in DIALECTS {
        let options = options(&server, dialect);
        let prepare = |users| {
            let request = PrepareRequest {
                directory: DIRECTORY,
                workload: "metadata",
                files,
                made: &CreatedPaths::default(),
                users,
                sessions: 3,
                within: LONG,
            };
            block_on(prepare::prepare(&options, &request, &mut |_| {}))
                .unwrap_or_else(|error| panic!("{dialect}: {error}"))
        };
        let (first, second) = (prepare(1), prepare(2));
        assert_eq!((first.made, second.found, second.made), (200, 200, 200), "{dialect}");
        let cleaned = block_on(prepare::clean(&options, DIRECTORY, 3, LONG, &mut |_| {})).unwrap();
        // For each user 200 files in 10 directories, their parent and the user's own; the marker and the working
        // directory.
        assert_eq!(cleaned.removed, 2 * 212 + 2, "{dialect}");
        assert!(on_disk(&server).is_empty(), "{dialect}");
    }
}

#[test]
fn what_the_server_wrote_is_what_the_set_says() {
    let Some(server) = server() else { return };
    let workload = Workload::builtin("open-read-close").unwrap();
    let options = options(&server, Dialect::Smb2(0x0311));
    let request = PrepareRequest {
        directory: DIRECTORY,
        workload: "w",
        files: workload.file_set(),
        made: &CreatedPaths::default(),
        users: 1,
        sessions: 2,
        within: LONG,
    };
    block_on(prepare::prepare(&options, &request, &mut |_| {})).unwrap();
    let files = server.share_folder().join(DIRECTORY).join("user00001/files/dir0003");
    let names: Vec<_> = std::fs::read_dir(&files).unwrap().map(|entry| entry.unwrap().path()).collect();
    // 100 files in 10 directories.
    assert_eq!(names.len(), 10);
    assert!(names.iter().all(|path| std::fs::metadata(path).unwrap().len() == 4096));

    std::fs::write(server.share_folder().join("thesis.txt"), "mine").unwrap();
    block_on(prepare::clean(&options, DIRECTORY, 2, LONG, &mut |_| {})).unwrap();
    assert_eq!(on_disk(&server), ["thesis.txt"]);
    // A foreign directory must not be taken over.
    std::fs::create_dir(server.share_folder().join(DIRECTORY)).unwrap();
    std::fs::write(server.share_folder().join(DIRECTORY).join("thesis.txt"), "mine").unwrap();
    let error = block_on(prepare::prepare(&options, &request, &mut |_| {})).unwrap_err();
    assert!(error.to_string().contains("was not made by smbscope"), "{error}");
    assert!(block_on(prepare::clean(&options, DIRECTORY, 2, LONG, &mut |_| {})).is_err());
}
