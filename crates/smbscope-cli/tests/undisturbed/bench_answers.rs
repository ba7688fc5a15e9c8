//! Answers of `bench` about servers, links and clients that are made slow on purpose. Each test is skipped without
//! Samba.

use crate::common::{self, Said};
use rustix::io::Errno;
use serde_json::Value;
use smbscope_lab::{LabServer, LabServerSettings, Storage, available};
use smbscope_testkit::skip;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Number of attempts, because other load on the machine sometimes delays the client.
const TRIES: usize = 3;
/// Large reads, so that a slow link is full.
const READS: &str = "name = 'reads'\n[files]\ncount = 4\nsize = '1MiB'\n[[operation]]\nname = 'read'\n\
    steps = [{ do = 'open_read_close', file = 'random', offset = 0, length = '256KiB' }]\n";
const WRITES: &str = "name = 'writes'\n[[operation]]\nname = 'write'\nsteps = [\n\
    { do = 'open', file = 'new', access = 'write' },\n{ do = 'write', length = '1MiB', block = '64KiB' },\n\
    { do = 'close' }]\n";

/// A private server, while no other measurement runs.
struct Scene {
    server: LabServer,
    _alone: MutexGuard<'static, ()>,
}

impl Scene {
    /// Skips the test and returns `None` if the server is not possible here.
    fn new(settings: &LabServerSettings) -> Option<Scene> {
        if let Err(why) = available() {
            skip::missing(why);
            return None;
        }
        let _alone = crate::alone();
        match LabServer::start(settings) {
            Ok(server) => Some(Scene { server, _alone }),
            Err(error) => {
                skip::unable(format_args!("this server can't be started: {error}"));
                None
            }
        }
    }

    fn begin(&self, options: &[&str]) -> Child {
        let server = &self.server;
        let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
        command.args(["bench", "--quiet", "--format", "json", "--warmup", "1s"]).args(options);
        command.arg(format!("smb://{}@{}/{}", server.user(), server.address(), server.share()));
        command.env("SMBSCOPE_PASSWORD", server.password()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs")
    }

    fn answer(&self, options: &[&str]) -> BenchAnswer {
        BenchAnswer::new(&ended(self.begin(options)))
    }
}

fn ended(child: Child) -> Said {
    common::said(child.wait_with_output().expect("the binary ends"))
}

#[derive(Debug)]
struct BenchAnswer {
    status: Option<i32>,
    culprit: String,
    headline: String,
    document: Value,
}

impl BenchAnswer {
    fn new(said: &Said) -> BenchAnswer {
        let document: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
        let text = |key: &str| document["answer"][key].as_str().expect("a text").replace('\u{a0}', " ");
        let (culprit, headline) = (text("culprit"), text("headline"));
        println!("{culprit}: {headline}");
        BenchAnswer { status: said.status, culprit, headline, document }
    }

    /// Returns true if this party is named and the headline contains the text.
    fn says(&self, culprit: &str, text: &str) -> bool {
        self.culprit == culprit && self.headline.contains(text)
    }

    /// Returns true if this machine's processors were busy for more than 90% of the time.
    fn is_machine_busy(&self) -> bool {
        let mut metrics = self.document["runs"][0]["server"]["metrics"].as_array().into_iter().flatten();
        metrics.any(|metric| metric["metric"] == "cpu" && metric["mean"].as_f64() > Some(90.0))
    }

    fn stalls(&self) -> Vec<(Duration, Duration)> {
        let run = &self.document["runs"][0];
        let nanos = |value: &Value| Duration::from_nanos(value.as_u64().expect("nanoseconds"));
        let stalls = run["stalls"].as_array().expect("a list").iter();
        let after = |stall: &Value| nanos(&stall["start_ns"]).saturating_sub(nanos(&run["started_ns"]));
        stalls.map(|stall| (after(stall), nanos(&stall["duration_ns"]))).collect()
    }
}

/// Repeats a measurement until its answer is right. Panics with all answers if none is.
fn soon(what: &str, measure: impl Fn() -> BenchAnswer, is_right: impl Fn(&BenchAnswer) -> bool) -> BenchAnswer {
    let mut wrong = Vec::new();
    for _ in 0..TRIES {
        let answer = measure();
        if is_right(&answer) {
            return answer;
        }
        wrong.push(answer.headline);
    }
    panic!("{what}: {wrong:#?}");
}

/// Writes a workload into a directory of the test.
fn workload(test: &str, text: &str) -> String {
    let directory = common::directory(&format!("bench-answers-{test}"));
    common::write(&directory, "workload.toml", text);
    directory.join("workload.toml").display().to_string()
}

/// A control group that gives its processes 5% of one processor.
struct StarvedGroup(PathBuf);

impl StarvedGroup {
    /// Skips the test and returns `None` if this system permits no such group.
    fn new(pids: &[u32]) -> Option<StarvedGroup> {
        let name = format!("smbscope-test-{}", std::process::id());
        let first = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"].map(|root| Path::new(root).join(&name));
        let made = first.into_iter().find_map(|folder| StarvedGroup::limited(folder).ok());
        let Some(group) = made else {
            skip::unable("no control group can limit the server's processor time");
            return None;
        };
        for pid in pids {
            // Helpers of Samba end at any time.
            let is_gone = |error: &std::io::Error| error.raw_os_error() == Some(Errno::SRCH.raw_os_error());
            match std::fs::write(group.0.join("cgroup.procs"), pid.to_string()) {
                Err(error) if !is_gone(&error) => panic!("cannot move process {pid}: {error}"),
                _ => {}
            }
        }
        Some(group)
    }

    fn limited(folder: PathBuf) -> std::io::Result<StarvedGroup> {
        std::fs::create_dir(&folder)?;
        let group = StarvedGroup(folder);
        let file = |name: &str| group.0.join(name);
        if file("cpu.max").exists() {
            std::fs::write(file("cpu.max"), "5000 100000")?;
        } else {
            // Opened without creating it: a folder without the controller has no such file.
            std::fs::OpenOptions::new().write(true).open(file("cpu.cfs_quota_us"))?;
            std::fs::write(file("cpu.cfs_period_us"), "100000")?;
            std::fs::write(file("cpu.cfs_quota_us"), "5000")?;
        }
        Ok(group)
    }
}

impl Drop for StarvedGroup {
    fn drop(&mut self) {
        // Its processes end shortly before.
        let end = Instant::now() + Duration::from_secs(5);
        while self.0.exists() && std::fs::remove_dir(&self.0).is_err() && Instant::now() < end {
            sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn a_healthy_server_is_not_accused() {
    let Some(scene) = Scene::new(&LabServerSettings::default()) else { return };
    let measure = || scene.answer(&["--users", "1", "--think", "5ms", "--duration", "4s"]);
    let answer = soon("nothing is slow", measure, |answer| answer.culprit == "nothing" || answer.is_machine_busy());
    if answer.is_machine_busy() {
        skip::unable("other programs keep this machine busy");
        return;
    }
    assert!(answer.document["runs"][0]["answer"]["headline"].to_string().contains("Nothing is slow: median"));
    assert_eq!(answer.stalls(), []);
}

#[test]
fn a_server_without_processor_time_is_starved() {
    let Some(scene) = Scene::new(&LabServerSettings::default()) else { return };
    let Some(group) = StarvedGroup::new(&scene.server.pids()) else { return };
    let measure = || scene.answer(&["--users", "4", "--duration", "5s"]);
    soon("the server is starved", measure, |answer| {
        answer.says("server", " Server: its processes waited for a processor ")
            && ["4%", "5%", "6%"].iter().any(|share| answer.headline.contains(&format!("got {share} of one")))
    });
    drop(scene);
    drop(group);
}

#[test]
fn a_stall_of_the_server_is_named_with_time_and_length() {
    let Some(scene) = Scene::new(&LabServerSettings::default()) else { return };
    let measure = || {
        let bench = scene.begin(&["--users", "4", "--duration", "6s"]);
        sleep(Duration::from_secs(4));
        scene.server.stall(Duration::from_secs(2));
        BenchAnswer::new(&ended(bench))
    };
    let answer = soon("the server stalled", measure, |answer| {
        answer.says("capture", " Server or network: the server answered nothing for 2.")
            && answer.headline.contains(" after the start; otherwise nothing is slow: median ")
    });
    let [(after, length)] = answer.stalls()[..] else { panic!("{:?}", answer.stalls()) };
    // The start takes less than 3 s, and the warm-up one of the 4 s before the stall.
    assert!((Duration::from_millis(500)..Duration::from_millis(3_100)).contains(&after), "{after:?}");
    assert!((Duration::from_millis(1_900)..Duration::from_millis(2_400)).contains(&length), "{length:?}");
}

/// The client is stopped for 2 s. The responses that arrived in this time are not late.
#[test]
fn a_pause_of_the_client_is_no_stall_of_the_server() {
    let Some(scene) = Scene::new(&LabServerSettings::default()) else { return };
    let signal = |name: &str, bench: &Child| {
        let status = Command::new("kill").args([&format!("-{name}"), &bench.id().to_string()]).status();
        assert!(status.expect("there is a kill").success());
    };
    let measure = || {
        let bench = scene.begin(&["--users", "4", "--duration", "6s"]);
        sleep(Duration::from_secs(4));
        signal("STOP", &bench);
        sleep(Duration::from_secs(2));
        signal("CONT", &bench);
        BenchAnswer::new(&ended(bench))
    };
    let answer = soon("the client paused", measure, |answer| {
        answer.says("client", " Client: it did not run for 2.") || answer.says("client", " late, once 2.")
    });
    assert_eq!(answer.stalls(), []);
    assert!(!answer.document["warnings"].to_string().contains("stalled"), "{}", answer.document["warnings"]);
}

#[test]
fn a_disk_that_fills_up_is_named_with_what_to_do() {
    let Some(scene) = Scene::new(&LabServerSettings { disk: Some(96 << 20), ..LabServerSettings::default() }) else {
        return;
    };
    let workload = workload("full", WRITES);
    let answer = scene.answer(&["--users", "2", "--duration", "4s", "--workload", &workload]);
    assert_eq!(answer.status, Some(1));
    assert!(answer.says("server", "The run failed: "), "{answer:?}");
    assert!(answer.headline.contains(" Server: its disk is full: "), "{answer:?}");
    assert!(answer.headline.contains(" commands failed with STATUS_DISK_FULL"), "{answer:?}");
    assert!(answer.headline.contains("Make room on the volume of the share"), "{answer:?}");
}

#[test]
fn a_full_link_is_named() {
    let Some(scene) = Scene::new(&LabServerSettings { bandwidth: Some(20_000_000), ..LabServerSettings::default() })
    else {
        return;
    };
    if scene.server.address().ip().is_loopback() {
        skip::unable("a network namespace needs root");
        return;
    }
    let workload = workload("link", READS);
    let measure = || scene.answer(&["--users", "4", "--duration", "5s", "--workload", &workload]);
    soon("the link is full", measure, |answer| answer.says("network", " Network: the link was "));
}

/// With one user the disk has a reserve, and with four there is a queue.
#[test]
fn a_slow_disk_is_named_with_or_without_a_queue() {
    let storage = Storage { latency: Some(Duration::from_millis(30)), iops: Some(50), ..Storage::default() };
    let Some(scene) = Scene::new(&LabServerSettings { storage, ..LabServerSettings::default() }) else { return };
    let measure = |users| scene.answer(&["--users", users, "--duration", "4s"]);
    soon("the disk is slow", || measure("1"), |answer| answer.says("server", " Server: its disk took 3"));
    soon("the disk is busy", || measure("4"), |answer| answer.says("server", " transfers queued on average"));
}
