//! A real Samba that follows links: entries that smbscope did not create are never removed, whatever they look like.
//!
//! The server shows a link to a directory as a directory and hides a dangling link, which no client can detect.

use smbscope_client::{ClientSession, SessionOptions};
use smbscope_lab::{LabServer, LabServerSettings};
use smbscope_load::prepare::{self, PrepareRequest};
use smbscope_load::workload::Workload;
use smbscope_model::Dialect;
use std::fs;
use std::future::Future;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

const DIALECTS: [Dialect; 3] = [Dialect::NtLm012, Dialect::Smb2(0x0210), Dialect::Smb2(0x0311)];
const DIRECTORY: &str = "smbscope-bench";
const LONG: Duration = Duration::from_secs(600);

/// A server that follows links, including links out of the share if its module `widelinks` is installed.
fn server() -> Option<LabServer> {
    if let Err(reason) = smbscope_lab::available() {
        smbscope_testkit::skip::missing(reason);
        return None;
    }
    let start = |extra: &[&str]| {
        let extra = extra.iter().map(|line| (*line).to_owned()).collect();
        LabServer::start(&LabServerSettings { guests: true, extra, ..LabServerSettings::default() })
            .expect("a lab server")
    };
    let wide = start(&["follow symlinks = yes", "wide links = yes", "allow insecure wide links = yes"]);
    match run(ClientSession::connect(&options(&wide, Dialect::Smb2(0x0311)))) {
        Ok(_) => Some(wide),
        Err(error) => {
            println!("links out of the share were skipped, those within it are followed: {error}");
            drop(wide);
            Some(start(&["follow symlinks = yes"]))
        }
    }
}

fn options(server: &LabServer, dialect: Dialect) -> SessionOptions {
    SessionOptions { dialect, ..SessionOptions::new("127.0.0.1", server.address(), server.share()) }
}

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

fn prepared(options: &SessionOptions, workload: &str) -> prepare::Prepared {
    let workload = Workload::builtin(workload).expect("it is built in");
    let (files, made) = (workload.file_set(), workload.made());
    let request =
        PrepareRequest { directory: DIRECTORY, workload: "w", files, made: &made, users: 1, sessions: 2, within: LONG };
    run(prepare::prepare(options, &request, &mut |_| {})).expect("it is prepared")
}

fn cleaned(options: &SessionOptions) -> prepare::CleanupResult {
    run(prepare::clean(options, DIRECTORY, 2, LONG, &mut |_| {})).expect("it is cleaned")
}

/// A directory of files, with smbscope's names and with others.
fn precious(at: &Path) {
    fs::create_dir_all(at.join("sub")).expect("a directory");
    for name in ["thesis.txt", "file000001.dat", "sub/file000000.dat", "smbscope-bench.toml"] {
        fs::write(at.join(name), "mine").expect("a file");
    }
}

fn assert_precious(at: &Path, what: &str) {
    for name in ["thesis.txt", "file000001.dat", "sub/file000000.dat", "smbscope-bench.toml"] {
        assert_eq!(fs::read_to_string(at.join(name)).ok().as_deref(), Some("mine"), "{what}: {name}");
    }
}

#[test]
fn links_within_the_share_and_out_of_it_are_neither_followed_nor_lost() {
    let Some(server) = server() else { return };
    let outside = tempfile::tempdir().expect("a directory");
    let share = server.share_folder().to_owned();
    for dialect in DIALECTS {
        let options = options(&server, dialect);
        prepared(&options, "open-read-close");
        let (inside, outside) = (share.join("precious"), outside.path().join(format!("{dialect}").replace(' ', "-")));
        precious(&inside);
        precious(&outside);
        let ours = share.join(DIRECTORY);
        symlink(&inside, ours.join("inside")).expect("a link");
        symlink(&outside, ours.join("user00001/outside")).expect("a link");
        symlink(&outside, ours.join("user00001/files/dir0001/user00001")).expect("a link");
        symlink(outside.join("thesis.txt"), ours.join("user00001/files/dir0002/note.txt")).expect("a link");
        // Another set replaces the first one, so all of the first must go.
        prepared(&options, "metadata");
        let left = cleaned(&options).left;
        assert!(left.count >= 3, "{dialect}: {left:?}");
        assert_precious(&inside, &format!("{dialect}, inside"));
        assert_precious(&outside, &format!("{dialect}, outside"));
        assert!(ours.join("smbscope-bench.toml").is_file(), "{dialect}: it is smbscope's still");
        assert!(ours.join("inside").is_symlink() && ours.join("user00001/outside").is_symlink(), "{dialect}");
        // Without the links, cleanup completes.
        fs::remove_file(ours.join("inside")).expect("a link");
        fs::remove_file(ours.join("user00001/outside")).expect("a link");
        fs::remove_file(ours.join("user00001/files/dir0001/user00001")).expect("a link");
        fs::remove_file(ours.join("user00001/files/dir0002/note.txt")).expect("a link");
        assert_eq!(cleaned(&options).left.count, 0, "{dialect}");
        assert!(!ours.exists(), "{dialect}");
    }
}

#[test]
fn a_link_in_the_place_of_a_file_or_a_directory_of_smbscopes_loses_nothing_behind_it() {
    let Some(server) = server() else { return };
    let share = server.share_folder().to_owned();
    for dialect in DIALECTS {
        let options = options(&server, dialect);
        prepared(&options, "open-read-close");
        let (victim, ours) = (share.join("victim"), share.join(DIRECTORY));
        fs::create_dir_all(&victim).expect("a directory");
        fs::write(victim.join("thesis.txt"), "mine").expect("a file");
        // A file of the set is a link to a foreign file, and a directory of the set a link to a foreign directory.
        let file = ours.join("user00001/files/dir0003/file000003.dat");
        fs::remove_file(&file).expect("the set has it");
        symlink(victim.join("thesis.txt"), &file).expect("a link");
        let directory = ours.join("user00001/files/dir0004");
        fs::remove_dir_all(&directory).expect("the set has it");
        symlink(&victim, &directory).expect("a link");
        // The link occupies the name of the file: it is removed, and its target is not overwritten.
        prepared(&options, "open-read-close");
        assert_eq!(fs::read_to_string(victim.join("thesis.txt")).expect("it is there"), "mine", "{dialect}");
        cleaned(&options);
        assert_eq!(fs::read_to_string(victim.join("thesis.txt")).expect("it is there"), "mine", "{dialect}");
        fs::remove_dir_all(&victim).expect("the test's");
        if ours.exists() {
            fs::remove_dir_all(&ours).expect("the test's");
        }
    }
}

#[test]
fn a_link_that_leads_nowhere_and_foreign_files_leave_the_marker_for_the_next_time() {
    let Some(server) = server() else { return };
    let share = server.share_folder().to_owned();
    for dialect in DIALECTS {
        let options = options(&server, dialect);
        prepared(&options, "open-read-close");
        let ours = share.join(DIRECTORY);
        symlink("/nowhere/at/all", ours.join("dangling")).expect("a link");
        assert_eq!(cleaned(&options).left.count, 1, "{dialect}");
        assert!(ours.join("smbscope-bench.toml").is_file(), "{dialect}: it is smbscope's still");
        // Another run reuses the directory, and cleanup can be repeated.
        assert_eq!(prepared(&options, "open-read-close").made, 100, "{dialect}");
        fs::remove_file(ours.join("dangling")).expect("a link");
        fs::write(ours.join("user00001/notes.txt"), "mine").expect("a file");
        let left = cleaned(&options).left;
        assert_eq!(left.paths, [r"smbscope-bench\user00001\notes.txt"], "{dialect}");
        assert_eq!(fs::read_to_string(ours.join("user00001/notes.txt")).expect("it is there"), "mine");
        fs::remove_file(ours.join("user00001/notes.txt")).expect("a file");
        assert_eq!(cleaned(&options).left.count, 0, "{dialect}");
        assert!(!ours.exists(), "{dialect}");
    }
}

#[test]
fn a_workload_that_empties_its_directory_leaves_what_it_did_not_make() {
    use smbscope_load::engine::{self, LiveFigures, RampPlan, StopFlag, Users};
    use smbscope_load::workload::{Script, UserSeat};
    let Some(server) = server() else { return };
    let share = server.share_folder().to_owned();
    for (dialect, workload) in
        DIALECTS.into_iter().flat_map(|dialect| [(dialect, "metadata"), (dialect, "netbench-like")])
    {
        let options = options(&server, dialect);
        prepared(&options, workload);
        let (victim, ours) = (share.join("precious"), share.join(DIRECTORY));
        precious(&victim);
        let own = ours.join("user00001");
        let deep = if workload == "metadata" { own.join("new") } else { own.clone() };
        fs::create_dir_all(&deep).expect("a directory");
        symlink(&victim, deep.join("link")).expect("a link");
        let read = Workload::builtin(workload).expect("it is built in");
        let scripts = |number| -> Box<dyn Script> {
            Box::new(read.script(&UserSeat { number, of: 1, seed: 1, directory: DIRECTORY.to_owned() }))
        };
        let plan = RampPlan {
            users: Users::one(1),
            warmup: Duration::ZERO,
            duration: Duration::from_secs(1),
            ..RampPlan::default()
        };
        engine::run(&plan, &options, &scripts, &mut (), &LiveFigures::default(), &StopFlag::new()).expect("it runs");
        assert_precious(&victim, &format!("{dialect} {workload}"));
        fs::remove_file(deep.join("link")).expect("it is still there");
        assert_eq!(cleaned(&options).left.count, 0, "{dialect} {workload}");
    }
}
