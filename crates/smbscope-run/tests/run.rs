//! The benchmark as a library: options without a command line, on private Samba servers.

use smbscope_lab::Launcher;
use smbscope_report::bench::{self, BenchDocument, BenchRunOutcome};
use smbscope_run::options::BenchOptions;
use smbscope_run::progress::{BenchObserver, RampSnapshot, Wish};
use smbscope_run::{Bench, BenchOutcome, RUN, RunOptions};
use smbscope_testkit::skip;
use std::fs;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

/// Returns options for echo users on a private server, or `None` if there can't be one.
fn options(users: &str, duration: Duration) -> Option<RunOptions> {
    if let Err(why) = smbscope_lab::available() {
        skip::missing(why);
        return None;
    }
    let password = |user: &str| Err(format!("a private server tells the password of {user} itself").into());
    let bench = BenchOptions {
        workload: "echo".to_owned(),
        users: Some(users.parse().expect("load points")),
        duration: Some(duration),
        warmup: Some(Duration::ZERO),
        ..BenchOptions::default()
    };
    Some(RunOptions::new(bench, Launcher::default(), Box::new(password)).expect("options that fit the workload"))
}

/// Records the events of a run.
#[derive(Default)]
struct Watcher {
    snapshots: Vec<RampSnapshot>,
    done: Vec<u32>,
    /// Stops the run as soon as users work.
    stops: bool,
}

impl BenchObserver for Watcher {
    fn update(&mut self, snapshot: RampSnapshot) {
        self.snapshots.push(snapshot);
    }

    fn point_done(&mut self, run: &bench::BenchRun) {
        self.done.push(run.users);
    }

    fn wait(&mut self, until: Instant) -> Wish {
        thread::sleep(until.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
        let commands: u64 = self.snapshots.iter().map(|snapshot| snapshot.live.commands).sum();
        if self.stops && commands > 0 { Wish::Stop } else { Wish::GoOn }
    }
}

#[test]
fn a_run_is_watched_kept_and_told() {
    let Some(mut options) = options("1,2", Duration::from_millis(300)) else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let directory = folder.path().join("run");
    options.bench.output = Some(directory.clone());
    let bench = Bench::open(options).expect("a server that answers");
    assert_eq!(bench.heading().workload, "echo");
    let mut watcher = Watcher::default();
    let BenchOutcome { document, kept } = bench.run(&mut watcher, &AtomicBool::new(false)).expect("a run");
    kept.expect("a directory that takes files");
    let users = |document: &BenchDocument| document.runs.iter().map(|run| run.users).collect::<Vec<_>>();
    assert_eq!((users(&document), watcher.done), (vec![1, 2], vec![1, 2]));
    assert!(document.runs.iter().all(|run| run.ended == BenchRunOutcome::Done && run.operations > 0), "{document:?}");
    let kept = BenchDocument::parse(&fs::read(directory.join(RUN)).expect("a file")).expect("a document");
    assert_eq!((users(&kept), &kept.workload), (vec![1, 2], &document.workload));
}

#[test]
fn whoever_watches_ends_a_run() {
    let Some(options) = options("1,2", Duration::from_secs(600)) else { return };
    let mut watcher = Watcher { stops: true, ..Watcher::default() };
    let bench = Bench::open(options).expect("a server that answers");
    let outcome = bench.run(&mut watcher, &AtomicBool::new(false)).expect("what was measured until then");
    let ends: Vec<&BenchRunOutcome> = outcome.document.runs.iter().map(|run| &run.ended).collect();
    assert_eq!((ends, watcher.done), (vec![&BenchRunOutcome::Interrupted], vec![1]));
}

#[test]
fn a_load_point_has_what_it_cost_this_machine_and_the_private_server() {
    let Some(options) = options("1", Duration::from_secs(4)) else { return };
    let bench = Bench::open(options).expect("a server that answers");
    let BenchOutcome { document, .. } = bench.run(&mut (), &AtomicBool::new(false)).expect("a run");
    let server = document.runs[0].server.as_ref().expect("samples");
    assert_eq!(server.source, "this machine");
    for metric in ["cpu", "cpu_busiest", "samba_cpu", "memory", "network_received"] {
        let series = server.metric(metric).unwrap_or_else(|| panic!("{metric} of {server:?}"));
        assert!(series.mean > 0.0 && series.mean <= series.max, "{series:?}");
        assert_eq!(series.values.len(), server.times_ns.len());
    }
    let cpu = server.metric("cpu").expect("processors");
    // With all cores busy, the average may differ in the last digit.
    let busiest = server.metric("cpu_busiest").expect("processors").max + 1e-6;
    assert!(cpu.max <= 100.0 && busiest >= cpu.max, "{cpu:?} {busiest}");
}
