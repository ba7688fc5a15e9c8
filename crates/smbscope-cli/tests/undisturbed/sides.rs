//! Captures at both ends of a link with known properties, compared by `analyze`. The truth is in the packets: one
//! clock stamps both captures. Skipped without Samba, root, or tcpdump.

use crate::common;
use serde_json::Value;
use smbscope_lab::{LabServer, LabServerSettings, LinkDirection, LinkEmulation, available};
use smbscope_testkit::skip;
use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// A capture that begins before the connections, because handshakes show who ends TCP. `bench` begins later.
struct Sniffed {
    child: Child,
    file: PathBuf,
}

impl Sniffed {
    /// Returns `None` if tcpdump can't capture here.
    fn begin(namespace: Option<u32>, interface: &str, file: PathBuf) -> Option<Sniffed> {
        let mut command = match namespace {
            Some(pid) => {
                let mut inside = Command::new("nsenter");
                inside.arg(format!("--net=/proc/{pid}/ns/net")).arg("tcpdump");
                inside
            }
            None => Command::new("tcpdump"),
        };
        command.args(["-i", interface, "-s", "256", "-B", "16384", "-U", "-Z", "root", "-w"]).arg(&file).arg("tcp");
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().ok()?;
        let mut said = BufReader::new(child.stderr.take()?).lines();
        if said.by_ref().map_while(Result::ok).any(|line| line.contains("listening on")) {
            thread::spawn(move || said.map_while(Result::ok).for_each(drop));
            return Some(Sniffed { child, file });
        }
        let _ = child.wait();
        None
    }

    fn end(mut self) -> PathBuf {
        // tcpdump delivers packets a second late at most.
        thread::sleep(1_200 * MS);
        let done = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(done.is_ok_and(|status| status.success()));
        self.child.wait().expect("tcpdump ends");
        self.file.clone()
    }
}

/// A TCP segment with data, as a point saw it.
#[derive(Debug, Clone, Copy)]
struct DataSegment {
    time: i64,
    to_server: bool,
    /// Ports, sequence number, IP identification: the same at both points.
    key: (u16, u16, u32, u16),
}

/// Parses the data segments of an Ethernet capture, independently of our own readers.
fn segments(file: &Path, port: u16) -> Vec<DataSegment> {
    let bytes = fs::read(file).expect("a capture");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let big = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let mut found = Vec::new();
    let mut at = 24;
    while at + 16 <= bytes.len() {
        let time = i64::from(word(at)) * 1_000_000_000 + i64::from(word(at + 4)) * 1_000;
        let (frame, length) = (at + 16, word(at + 8) as usize);
        at = frame + length;
        if big(frame + 12) != 0x0800 || bytes[frame + 23] != 6 {
            continue;
        }
        let (ip, header) = (frame + 14, usize::from(bytes[frame + 14] & 15) * 4);
        let tcp = ip + header;
        let payload = usize::from(big(ip + 2)) - header - usize::from(bytes[tcp + 12] >> 4) * 4;
        if payload > 0 {
            let sequence = u32::from_be_bytes(bytes[tcp + 4..tcp + 8].try_into().expect("four bytes"));
            let key = (big(tcp), big(tcp + 2), sequence, big(ip + 4));
            found.push(DataSegment { time, to_server: big(tcp + 2) == port, key });
        }
    }
    found
}

/// Delays of a direction, and how many of its data segments did not arrive.
#[derive(Debug, Default)]
struct DirectionTruth {
    delays: Vec<i64>,
    lost: u64,
}

impl DirectionTruth {
    fn new(sent: &[DataSegment], received: &[DataSegment], to_server: bool) -> DirectionTruth {
        let arrived: HashMap<_, i64> =
            received.iter().filter(|it| it.to_server == to_server).map(|it| (it.key, it.time)).collect();
        let mut truth = DirectionTruth::default();
        for segment in sent.iter().filter(|it| it.to_server == to_server) {
            match arrived.get(&segment.key) {
                Some(time) => truth.delays.push(time - segment.time),
                None => truth.lost += 1,
            }
        }
        truth
    }

    fn mean(&self) -> f64 {
        self.delays.iter().sum::<i64>() as f64 / self.delays.len() as f64
    }

    fn shortest(&self) -> f64 {
        self.delays.iter().min().copied().unwrap_or_default() as f64
    }
}

/// Answer of `analyze` about both captures, and the delays and losses of their packets.
struct BothEnds {
    segment: Value,
    evidence: String,
    to_server: DirectionTruth,
    to_client: DirectionTruth,
}

/// Device between the client and the link.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Before {
    Nothing,
    /// A proxy that ends TCP.
    Proxy,
}

/// Loads a server at the end of a link, captures at both ends, and compares. Skips the test and returns `None` if that is
/// not possible here.
fn both_ends(settings: &LabServerSettings, workload: &str, before: Before) -> Option<BothEnds> {
    if let Err(why) = available() {
        skip::missing(why);
        return None;
    }
    let _guard = crate::alone();
    let server = match LabServer::start(settings) {
        Ok(server) => server,
        Err(error) => {
            skip::unable(format_args!("this server can't be started: {error}"));
            return None;
        }
    };
    let can_capture = Command::new("tcpdump").arg("--version").output().is_ok();
    if !can_capture || !matches!(server.record().link, Some(LinkEmulation::Network { .. })) {
        skip::unable("captures at both ends need tcpdump, and a network namespace of root");
        return None;
    }
    let proxied = (before == Before::Proxy).then(|| proxy_to(server.address()));
    let address = proxied.unwrap_or(server.address());
    let directory = tempfile::tempdir().expect("a directory");
    let files = match proxied {
        Some(_) => {
            let here = Sniffed::begin(None, "lo", directory.path().join("client.pcap"))?;
            let there = Sniffed::begin(Some(server.pids()[0]), "eth0", directory.path().join("server.pcap"))?;
            load(&server, address, workload, &[]);
            [here.end(), there.end()]
        }
        None => captured_by_bench(&server, workload, directory.path()),
    };
    let ports = [address.port(), server.port()];
    let [client, far] = [0, 1].map(|at| segments(&files[at], ports[at]));
    let mut analyze = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    // In whatever order.
    analyze.args(["analyze", "--quiet", "--format", "json"]).args(files.iter().rev());
    let said = common::finish(analyze);
    assert_eq!(said.status, Some(0), "{}", said.err);
    let document: Value = serde_json::from_str(&said.out).expect("it is JSON");
    let segment = document["sides"]["segments"][0].clone();
    let evidence = document["answer"]["evidence"].to_string().replace('\u{a0}', " ");
    println!("{evidence}");
    assert_eq!((&segment["from"], &segment["to"]), (&"client".into(), &"server".into()));
    let to_server = DirectionTruth::new(&client, &far, true);
    Some(BothEnds { segment, evidence, to_server, to_client: DirectionTruth::new(&far, &client, false) })
}

/// Returns the captures that `bench --capture=both` takes of a load point, each with all its commands.
fn captured_by_bench(server: &LabServer, workload: &str, directory: &Path) -> [PathBuf; 2] {
    let place = directory.to_str().expect("a name in UTF-8");
    load(server, server.address(), workload, &["--capture=both", "-o", place]);
    let run = fs::read(directory.join("run.json")).expect("a run");
    let run: Value = serde_json::from_slice(&run).expect("it is JSON");
    let capture = &run["runs"][0]["capture"];
    let files = [&capture["file"], &capture["server"]["file"]].map(|name| name.as_str().expect("a file"));
    assert_eq!(files, ["point-01-4-users-client.pcap", "point-01-4-users-server.pcap"]);
    assert_eq!([&capture["dropped_packets"], &capture["server"]["dropped_packets"]], [0, 0], "{capture}");
    let files = files.map(|name| directory.join(name));
    let next = format!("smbscope analyze {} {}", files[0].display(), files[1].display());
    assert!(run["answer"]["next"].to_string().contains(&next), "{}", run["answer"]["next"]);
    let commands = capture["client_commands"].as_u64().expect("a count");
    for file in &files {
        let requests = segments(file, server.port()).iter().filter(|segment| segment.to_server).count() as u64;
        assert!(requests >= commands, "{requests} segments with requests, {commands} commands");
    }
    files
}

fn load(server: &LabServer, address: SocketAddr, workload: &str, more: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(["bench", "--quiet", "--warmup", "0s", "--duration", "2s", "--users", "4", "--workload", workload]);
    command.args(more).arg(format!("smb://{}@{address}/{}", server.user(), server.share()));
    command.env("SMBSCOPE_PASSWORD", server.password());
    let said = common::finish(command);
    assert_eq!(said.status, Some(0), "{}", said.err);
}

/// Passes connections on with connections of its own, as a WAN accelerator does.
fn proxy_to(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(server) else { continue };
            let ends = [client, server];
            ends.iter().for_each(|end| end.set_nodelay(true).expect("an option"));
            for (from, to) in [(0, 1), (1, 0)] {
                let [mut from, mut to] = [&ends[from], &ends[to]].map(|end| end.try_clone().expect("a descriptor"));
                thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    });
    address
}

impl BothEnds {
    fn number(&self, key: &str) -> f64 {
        self.segment[key].as_f64().unwrap_or_else(|| panic!("{key} of {}", self.segment))
    }

    fn queue(&self, key: &str) -> f64 {
        self.segment[key]["mean"].as_f64().expect("a mean")
    }

    /// Mean time between the points, there and back, of all commands.
    fn path(&self) -> f64 {
        let groups = self.segment["groups"].as_array().expect("groups").iter();
        let figure = |group: &Value, key: &str| group["path"][key].as_f64().expect("a figure");
        let count: f64 = groups.clone().map(|group| figure(group, "count")).sum();
        groups.map(|group| figure(group, "mean") * figure(group, "count")).sum::<f64>() / count
    }

    /// All commands are paired, and the shortest way there and back is the packets'.
    fn check(&self) {
        assert_eq!((self.number("only_from"), self.number("only_to")), (0.0, 0.0), "{}", self.segment);
        let shortest = self.to_server.shortest() + self.to_client.shortest();
        near(self.number("round_trip_ns"), shortest, "the shortest way there and back");
        let off = (self.segment["clock"]["offset_ns"].as_f64().expect("an offset")).abs();
        assert!(off <= self.segment["clock"]["uncertainty_ns"].as_f64().expect("a bound"), "{}", self.segment);
    }
}

/// Within 5% or 100 µs.
fn near(measured: f64, truth: f64, what: &str) {
    assert!((measured - truth).abs() <= (truth * 0.05).max(100_000.0), "{what}: {measured} ns instead of {truth} ns");
}

#[test]
fn an_asymmetric_way_is_measured() {
    let settings =
        LabServerSettings { delay: Some(2 * MS), delay_to_client: Some(30 * MS), ..LabServerSettings::default() };
    let Some(both) = both_ends(&settings, "open-read-close", Before::Nothing) else { return };
    both.check();
    near(both.path(), both.to_server.mean() + both.to_client.mean(), "the way there and back");
    assert!(both.evidence.contains("Nothing was lost between client and server"), "{}", both.evidence);
}

#[test]
fn losses_are_counted_in_their_direction() {
    for direction in [LinkDirection::ToServer, LinkDirection::ToClient] {
        let impaired_towards = Some(direction);
        let settings = LabServerSettings {
            delay: Some(2 * MS),
            loss: Some(0.03),
            impaired_towards,
            ..LabServerSettings::default()
        };
        let Some(both) = both_ends(&settings, "open-read-close", Before::Nothing) else { return };
        let lost = ["lost_to_server", "lost_to_client"].map(|key| both.number(key));
        let truth = [both.to_server.lost, both.to_client.lost].map(|lost| lost as f64);
        println!("{direction:?}: {lost:?} lost, in truth {truth:?}");
        let harmed = usize::from(direction == LinkDirection::ToClient);
        assert!(truth[harmed] >= 5.0 && truth[1 - harmed] == 0.0, "{truth:?}");
        assert!((lost[harmed] - truth[harmed]).abs() <= (truth[harmed] * 0.05).max(1.0), "{lost:?}, {truth:?}");
        assert_eq!(lost[1 - harmed], 0.0);
        let receiver = ["never reached the server", "never reached the client"][harmed];
        assert!(both.evidence.contains(receiver), "{}", both.evidence);
    }
}

#[test]
fn a_queue_is_found_in_its_direction() {
    let settings = LabServerSettings {
        delay: Some(2 * MS),
        bandwidth: Some(10_000_000),
        impaired_towards: Some(LinkDirection::ToClient),
        ..LabServerSettings::default()
    };
    let Some(both) = both_ends(&settings, "read", Before::Nothing) else { return };
    let (there, back) = (both.queue("queued_to_server"), both.queue("queued_to_client"));
    let truth = [&both.to_server, &both.to_client].map(|direction| direction.mean() - direction.shortest());
    println!("queues: {there} and {back} ns, in truth {truth:?}");
    assert!(back > 4e6 && back > 2.0 * there, "{there} and {back} ns");
    let names_it = both.evidence.contains("wait in a queue") && both.evidence.contains("towards the client for");
    assert!(names_it, "{}", both.evidence);
}

#[test]
fn a_proxy_that_ends_tcp_is_named() {
    let settings = LabServerSettings { delay: Some(8 * MS), ..LabServerSettings::default() };
    let Some(both) = both_ends(&settings, "open-read-close", Before::Proxy) else { return };
    assert_eq!(both.number("only_from"), 0.0);
    assert_eq!(both.segment["terminated"], both.segment["connections"]);
    // The proxy adds its own time to the 16 ms of the link, more on a busy machine.
    let path = both.path();
    assert!((16e6..30e6).contains(&path), "{path} ns");
    assert!(both.evidence.contains("ends TCP"), "{}", both.evidence);
}
