//! Captures the packets of a load point or launch with tcpdump or dumpcap, and reads the capture.

use crate::environment::{self, UNTIL_END_OF_INPUT, ends_within, groups, on_path};
use crate::files::{create_private, create_private_directory};
use crate::options::CapturePoints;
use crate::{BenchError, keys, one_line};
use smbscope_analyze::AnalyzerOptions;
use smbscope_analyze::pipeline::{self, Sharding, Sink, Threading};
use smbscope_capture::live::PacketDrops;
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_crypto::key_ring::{self, KeyRing};
use smbscope_lab::{LinkEmulation, ServerRecord, Workplace, command_for};
use smbscope_model::{ConnectionSummary, Exchange, Settled};
use smbscope_report::Report;
use smbscope_report::bench::ServerCapture;
use smbscope_stats::Aggregator;
use std::fs;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnapLength {
    /// All headers and the names in most messages. Enough if each message starts in a new packet, which holds for a
    /// client with one outstanding command.
    First512,
    /// Whole packets. With several outstanding commands, a message can start anywhere in a packet.
    All,
}

impl SnapLength {
    fn snap_length(self) -> &'static str {
        match self {
            SnapLength::First512 => "512",
            SnapLength::All => "0",
        }
    }
}

/// Kernel buffer in KiB, large because a capture with dropped packets proves little.
pub(crate) const BUFFER_KIB: u32 = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum delay between the network and the capture file: the kernel delivers packets in blocks, at the latest after
/// the one-second timeout that tcpdump sets.
const SETTLE: Duration = Duration::from_millis(1_200);
/// Length of a pcap file without packets.
const FILE_HEADER: u64 = 24;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaptureProgram {
    Tcpdump,
    Dumpcap,
}

impl CaptureProgram {
    pub(crate) const ALL: [CaptureProgram; 2] = [CaptureProgram::Tcpdump, CaptureProgram::Dumpcap];

    pub(crate) fn name(self) -> &'static str {
        match self {
            CaptureProgram::Tcpdump => "tcpdump",
            CaptureProgram::Dumpcap => "dumpcap",
        }
    }

    pub(crate) fn ready(self) -> &'static str {
        match self {
            CaptureProgram::Tcpdump => "listening on",
            CaptureProgram::Dumpcap => "File: ",
        }
    }

    /// Returns arguments to write packets to standard output as they come. Bytes beyond `snap_length` of a packet are
    /// left out; 0 keeps all.
    pub(crate) fn to_pipe(self, interface: &str, snap_length: u32, filter: &str) -> Vec<String> {
        let (snap_length, buffer) = (snap_length.to_string(), BUFFER_KIB.to_string());
        let megabytes = (BUFFER_KIB >> 10).to_string();
        let arguments: &[&str] = match self {
            CaptureProgram::Tcpdump => {
                &["-i", interface, "-s", &snap_length, "-B", &buffer, "-n", "-U", "--nano", "-w", "-", filter]
            }
            CaptureProgram::Dumpcap => {
                &["-i", interface, "-s", &snap_length, "-B", &megabytes, "-q", "-w", "-", "-f", filter]
            }
        };
        arguments.iter().map(|argument| (*argument).to_owned()).collect()
    }

    fn command(self, path: &Path, interface: &str, bytes: SnapLength, filter: &str, file: &Path) -> Command {
        let mut command = command_for("sh");
        command.args(["-c", UNTIL_END_OF_INPUT, "sh"]).arg(path);
        command.args(["-i", interface, "-s", bytes.snap_length()]);
        match self {
            // Without -Z, tcpdump switches to a user who may not be able to write here.
            CaptureProgram::Tcpdump => command.args(["-B", &BUFFER_KIB.to_string(), "-n", "-Z", "root"]).arg("-w"),
            CaptureProgram::Dumpcap => command.args(["-B", &(BUFFER_KIB >> 10).to_string(), "-q", "-P", "-w"]),
        };
        command.arg(file);
        match self {
            CaptureProgram::Tcpdump => command.arg(filter),
            CaptureProgram::Dumpcap => command.args(["-f", filter]),
        };
        command
    }
}

#[derive(Debug)]
pub(crate) struct Sniffer {
    program: CaptureProgram,
    path: PathBuf,
    interface: String,
    bytes: SnapLength,
    filter: String,
    /// The server at whose end of the link to capture. `None` captures on this machine's interface.
    lab: Option<ServerRecord>,
}

impl Sniffer {
    /// Finds a working capture program. The error says why there is none and what to do.
    pub(crate) fn find(server: SocketAddr, bytes: SnapLength) -> Result<Sniffer, String> {
        Sniffer::on(interface_to(server), server, bytes, None)
    }

    /// Finds a working capture program for the server's end of a link.
    fn at_server(lab: &ServerRecord, bytes: SnapLength) -> Result<Sniffer, String> {
        Sniffer::on(lab.server_interface().to_owned(), lab.address(), bytes, Some(lab))
    }

    fn on(
        interface: String,
        server: SocketAddr,
        bytes: SnapLength,
        lab: Option<&ServerRecord>,
    ) -> Result<Sniffer, String> {
        environment::captures()?;
        let filter = format!("tcp port {} and host {}", server.port(), server.ip());
        let mut reasons = Vec::new();
        for program in CaptureProgram::ALL {
            let Some(path) = on_path(program.name()) else { continue };
            let (interface, filter, lab) = (interface.clone(), filter.clone(), lab.cloned());
            let sniffer = Sniffer { program, path, interface, bytes, filter, lab };
            match sniffer.works() {
                Ok(()) => return Ok(sniffer),
                Err(why) => reasons.push(why),
            }
        }
        if reasons.is_empty() {
            return Err("neither tcpdump nor dumpcap is installed; install one of them".to_owned());
        }
        Err(format!("{}; run as root, or allow dumpcap to capture", reasons.join("; ")))
    }

    pub(crate) fn begin(&self, file: &Path) -> Result<RunningCapture, String> {
        let name = self.program.name();
        let mut log = file.to_owned().into_os_string();
        log.push(".log");
        let log = PathBuf::from(log);
        let said = create_private(&log).map_err(|error| format!("cannot write {}: {error}", log.display()))?;
        let mut command = self.program.command(&self.path, &self.interface, self.bytes, &self.filter, file);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(said);
        // Keeps Ctrl-C away from the program: responses still in flight must be captured.
        groups::begin(&mut command);
        let child = match &self.lab {
            Some(lab) => lab.at_server(|| command.spawn()).and_then(|spawned| spawned),
            None => command.spawn(),
        }
        .map_err(|error| format!("cannot start {name}: {error}"))?;
        let mut capture = RunningCapture { child: Some(child), file: file.to_owned(), log };
        let begun = Instant::now();
        loop {
            let said = capture.said();
            if said.contains(self.program.ready()) {
                return Ok(capture);
            }
            let ended = capture.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if ended.is_some() || begun.elapsed() > PATIENCE {
                return Err(format!("{name} does not capture on {}: {}", self.interface, reason(name, &said)));
            }
            sleep(Duration::from_millis(5));
        }
    }

    /// Begins a capture and ends it at once.
    fn works(&self) -> Result<(), String> {
        let folder = Workplace::open().map_err(|error| error.to_string())?;
        self.begin(&folder.path().join("trial.pcap"))?.finish().map(drop)
    }

    /// Captures the work. Returns its result, and whether there were packets.
    fn trial<T>(&self, work: impl FnOnce() -> T) -> Result<(T, bool), String> {
        let folder = Workplace::open().map_err(|error| error.to_string())?;
        let capture = self.begin(&folder.path().join("trial.pcap"))?;
        let done = work();
        let taken = capture.end()?;
        let length = fs::metadata(&taken.file).map_err(|error| error.to_string())?.len();
        Ok((done, length > FILE_HEADER))
    }
}

/// Returns the lab server at whose end a second capture can be taken. The error is one line and says what to do.
fn far_end(lab: Option<&ServerRecord>) -> Result<&ServerRecord, String> {
    let Some(record) = lab else {
        return Err("it needs a lab server at the other end of a link: start one with `smbscope lab up --delay 2ms`, \
                    and name it as the target"
            .to_owned());
    };
    match &record.link {
        Some(LinkEmulation::Network { .. }) => Ok(record),
        Some(LinkEmulation::Proxy { why }) => Err(format!(
            "it needs a network of the server's own, and a proxy stands in for it ({why}): start the lab server as root"
        )),
        None => Err("it needs a link between client and server: start the lab server with one, such as --delay 2ms, \
                     and name it as the target"
            .to_owned()),
    }
}

/// Captures the same traffic at the client and, if wanted, at the server.
#[derive(Debug)]
pub(crate) struct Sniffers {
    client: Sniffer,
    server: Option<Sniffer>,
}

impl Sniffers {
    /// `server` is the client's target. For both ends, `lab` is the server at the other end of the link.
    pub(crate) fn find(
        points: CapturePoints,
        server: SocketAddr,
        lab: Option<&ServerRecord>,
        bytes: SnapLength,
    ) -> Result<Sniffers, String> {
        let at_server = || Sniffer::at_server(far_end(lab)?, bytes).map(Some);
        let both = if points == CapturePoints::Both { at_server()? } else { None };
        Ok(Sniffers { client: Sniffer::find(server, bytes)?, server: both })
    }

    /// Does work that exchanges packets with the server. Fails if the capture at the server has none of them.
    pub(crate) fn check<T>(&self, work: impl FnOnce() -> T) -> Result<T, String> {
        let Some(server) = &self.server else { return Ok(work()) };
        let (done, is_seen) = server.trial(work)?;
        is_seen.then_some(done).ok_or_else(|| "the target's packets do not reach the lab server".to_owned())
    }

    pub(crate) fn is_pair(&self) -> bool {
        self.server.is_some()
    }

    /// Begins the captures, with these names at the client and, if wanted, at the server.
    pub(crate) fn begin(
        &self,
        [at_client, at_server]: [&str; 2],
        mut file: impl FnMut(&str) -> Result<PathBuf, String>,
    ) -> Result<RunningCaptures, String> {
        let server = match &self.server {
            Some(sniffer) => Some(sniffer.begin(&file(at_server)?)?),
            None => None,
        };
        let client = self.client.begin(&file(at_client)?)?;
        Ok(RunningCaptures { client, server })
    }
}

/// Returns the name of a load point's capture at the client.
pub(crate) fn client_file(base: &str, is_pair: bool) -> String {
    if is_pair { format!("{base}-client.pcap") } else { format!("{base}.pcap") }
}

pub(crate) fn server_file(base: &str) -> String {
    format!("{base}-server.pcap")
}

#[derive(Debug)]
pub(crate) struct RunningCaptures {
    client: RunningCapture,
    server: Option<RunningCapture>,
}

#[derive(Debug)]
pub(crate) struct FinishedCaptures {
    pub(crate) client: FinishedCapture,
    pub(crate) server: Option<FinishedCapture>,
}

impl RunningCaptures {
    pub(crate) fn end(self) -> Result<FinishedCaptures, String> {
        sleep(SETTLE);
        let server = self.server.map(RunningCapture::finish).transpose()?;
        Ok(FinishedCaptures { client: self.client.finish()?, server })
    }
}

/// Captures of the traffic with a lab server, in a directory: `client.pcap` and, of both ends, `server.pcap`.
#[derive(Debug)]
pub struct LabCapture {
    captures: RunningCaptures,
    log: PathBuf,
    keys: PathBuf,
}

impl LabCapture {
    /// Begins to capture. The directory is created if necessary.
    pub fn begin(record: &ServerRecord, points: CapturePoints, directory: &Path) -> Result<LabCapture, BenchError> {
        let sniffers = Sniffers::find(points, record.address(), Some(record), SnapLength::All);
        let sniffers = sniffers.map_err(|why| points.refused(&why))?;
        create_private_directory(directory).map_err(BenchError::file("make the directory", directory))?;
        let keys = directory.join("session.keys");
        // An earlier capture may have left its keys.
        let _ = fs::remove_file(&keys);
        let captures = sniffers.begin(["client.pcap", "server.pcap"], |name| {
            let file = directory.join(name);
            create_private(&file).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
            Ok(file)
        });
        let captures = captures.map_err(|why| points.refused(&why))?;
        Ok(LabCapture { captures, log: record.log_file(), keys })
    }

    /// Ends the captures, while the server still runs. Returns the files of the client and the server, and the file of the
    /// session keys, if the server logged any.
    pub fn end(self) -> Result<(Vec<PathBuf>, Option<PathBuf>), BenchError> {
        let taken = self.captures.end().map_err(BenchError::Unavailable)?;
        let log = keys::read(&self.log).unwrap_or_default();
        let lines = key_ring::lines_of_samba_log(&log);
        let keys = (!lines.is_empty()).then_some(self.keys);
        if let Some(file) = &keys {
            let written = create_private(file).and_then(|mut file| file.write_all(lines.as_bytes()));
            written.map_err(BenchError::file("write", file))?;
        }
        Ok((std::iter::once(taken.client).chain(taken.server).map(|taken| taken.file).collect(), keys))
    }
}

impl CapturePoints {
    pub(crate) fn refused(self, why: &str) -> BenchError {
        match self {
            CapturePoints::Client => BenchError::Unavailable(format!("--capture: {why}")),
            CapturePoints::Both => BenchError::Unavailable(format!("--capture=both: {why}")),
        }
    }
}

#[derive(Debug)]
pub(crate) struct RunningCapture {
    child: Option<Child>,
    file: PathBuf,
    log: PathBuf,
}

#[derive(Debug)]
pub(crate) struct FinishedCapture {
    pub(crate) file: PathBuf,
    /// Packets dropped by the kernel, if the program reported them.
    pub(crate) dropped: Option<u64>,
}

impl RunningCapture {
    pub(crate) fn end(self) -> Result<FinishedCapture, String> {
        sleep(SETTLE);
        self.finish()
    }

    /// Ends a capture of packets that have settled.
    fn finish(mut self) -> Result<FinishedCapture, String> {
        self.stop();
        let said = self.said();
        if !self.file.is_file() {
            return Err(format!("the capture {} was not written: {}", self.file.display(), reason("", &said)));
        }
        let dropped = drops(&said).map(|drops| drops.kernel);
        let _ = std::fs::remove_file(&self.log);
        Ok(FinishedCapture { file: self.file.clone(), dropped })
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        drop(child.stdin.take());
        if ends_within(&mut child, PATIENCE).is_none() {
            groups::kill(&mut child);
            let _ = child.wait();
        }
    }
}

impl Drop for RunningCapture {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the interface that leads to the server, or `any` if it can't be determined.
fn interface_to(server: SocketAddr) -> String {
    let any = || "any".to_owned();
    let local: IpAddr = if server.ip().is_ipv4() { [0, 0, 0, 0].into() } else { [0u16; 8].into() };
    // Connecting a datagram socket sends nothing; it only looks up the route.
    let Ok(socket) = UdpSocket::bind((local, 0)) else { return any() };
    let Ok(own) = socket.connect(server).and_then(|()| socket.local_addr()) else { return any() };
    if server.ip().is_loopback() || own.ip() == server.ip() {
        return "lo".to_owned();
    }
    let told = command_for(on_path("ip").unwrap_or_else(|| "ip".into()))
        .args(["-o", "route", "get", &server.ip().to_string()])
        .output();
    let told = told.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    device_of(&told).map_or_else(any, str::to_owned)
}

fn device_of(route: &str) -> Option<&str> {
    route.split_whitespace().skip_while(|word| *word != "dev").nth(1)
}

/// Extracts the reason of a failure from the program's output: the first line about permissions, otherwise the first
/// one with the program's name, otherwise the last one.
pub(crate) fn reason(name: &str, said: &str) -> String {
    // Captures of tcpdump begin with the interface, and some with its data link type.
    let is_reason = |line: &&str| {
        !line.is_empty() && ["listening on ", "data link type "].into_iter().all(|begin| !line.contains(begin))
    };
    let lines = || said.lines().map(str::trim).filter(is_reason);
    let own = format!("{name}: ");
    let found = lines()
        .find(|line| line.to_ascii_lowercase().contains("permi"))
        .or_else(|| lines().find(|line| !name.is_empty() && line.starts_with(&own)))
        .or_else(|| lines().next_back());
    let text = found.unwrap_or("it said nothing");
    text.strip_prefix(&own).unwrap_or(text).trim_end_matches('.').to_owned()
}

/// Extracts the last count of lost packets from the output of tcpdump (`7 packets dropped by kernel`, on lines of their own
/// at its end, and in one line after SIGUSR1) or dumpcap (`Packets received/dropped on interface 'lo': 5/7 …`).
pub(crate) fn drops(said: &str) -> Option<PacketDrops> {
    let last = |count: fn(&str) -> Option<u64>| said.lines().rev().find_map(count);
    Some(PacketDrops {
        kernel: last(dropped_by_kernel)?,
        // tcpdump names the interface only if it dropped packets.
        interface: last(dropped_by_interface).unwrap_or(0),
    })
}

fn dropped_by_kernel(line: &str) -> Option<u64> {
    if let Some((counts, _)) = line.split_once(" dropped by kernel") {
        return counts.rsplit(' ').nth(1)?.parse().ok();
    }
    let (_, counts) = line.strip_prefix("Packets received/dropped on interface ")?.rsplit_once("': ")?;
    counts.split('/').nth(1)?.split_whitespace().next()?.parse().ok()
}

fn dropped_by_interface(line: &str) -> Option<u64> {
    if let Some((counts, _)) = line.split_once(" dropped by interface") {
        return counts.rsplit(' ').nth(1)?.parse().ok();
    }
    let (_, counts) = line.split_once("ps_ifdrop:")?;
    counts.split(')').next()?.parse().ok()
}

#[derive(Debug, Clone, Default)]
pub(crate) struct CaptureFacts {
    pub(crate) file: Option<String>,
    pub(crate) quality: String,
    pub(crate) packets: u64,
    pub(crate) dropped_packets: u64,
    pub(crate) server: Option<ServerCapture>,
}

struct ForwardingAggregator<'e> {
    each: &'e mut (dyn FnMut(&Exchange) + Send),
    aggregator: Aggregator,
}

impl Sink for ForwardingAggregator<'_> {
    fn exchange(&mut self, exchange: &Exchange) {
        (self.each)(exchange);
        self.aggregator.follow(exchange, true);
        self.aggregator.record(exchange);
    }

    fn settled(&mut self, settled: &Settled) {
        self.aggregator.settled(settled);
    }

    fn closed(&mut self, connection: &ConnectionSummary) {
        self.aggregator.closed(connection);
    }
}

/// Reads a capture and forwards its commands in order of their end. Returns the capture's quality and counts. `port` is
/// the server's.
pub(crate) fn read(
    taken: &FinishedCapture,
    port: u16,
    keys: Option<Arc<KeyRing>>,
    each: &mut (dyn FnMut(&Exchange) + Send),
) -> Result<CaptureFacts, String> {
    let name = taken.file.display().to_string();
    let mut set = CaptureSet::open(&[CaptureInput::File(taken.file.clone())]).map_err(|error| one_line(&error))?;
    let options = AnalyzerOptions { ports: vec![port], keys, ..AnalyzerOptions::default() };
    let mut sinks = [ForwardingAggregator { each, aggregator: Aggregator::new() }];
    let analysis = pipeline::run(&mut set, &options, Sharding::None, Threading::Inline, &mut sinks, |_| {})
        .map_err(|failure| format!("cannot read {name}: the analysis failed: {failure:?}"))?;
    let packets = analysis.quality.packets;
    let report = Report {
        captures: set.captures().to_vec(),
        quality: analysis.quality,
        skipped: analysis.skipped,
        connections: analysis.connections,
        aggregate: sinks[0].aggregator.finish(),
        first: analysis.first,
        last: analysis.last,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Report::default()
    };
    Ok(CaptureFacts {
        file: None,
        quality: report.quality_sentence(),
        packets,
        dropped_packets: taken.dropped.unwrap_or_default(),
        server: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_both_programs_are_read() {
        // Output of tcpdump 4.99 and dumpcap 4.0.
        let dumpcap = "Packets captured: 6\nPackets received/dropped on interface 'lo': 6/3 (pcap:3/dumpcap:0/flushed:0/ps_ifdrop:9) (66.7%)\n";
        let read = [
            ("6 packets captured\n12 packets received by filter\n7 packets dropped by kernel\n", 7, 0),
            ("1 packet captured\n1 packet dropped by kernel\n1 packet dropped by interface\n", 1, 1),
            ("tcpdump: 8 packets captured, 9 packets received by filter, 2 packets dropped by kernel\n", 2, 0),
            (
                "tcpdump: 8 packets captured, 9 packets received by filter, 2 packets dropped by kernel, 3 packets \
                 dropped by interface\ntcpdump: 8 packets captured, 9 packets received by filter, 4 packets dropped by \
                 kernel, 5 packets dropped by interface\n",
                4,
                5,
            ),
            (dumpcap, 3, 9),
        ];
        for (said, kernel, interface) in read {
            assert_eq!(drops(said), Some(PacketDrops { kernel, interface }), "{said}");
        }
        assert_eq!(drops("nothing of the kind"), None);
    }

    #[test]
    fn of_what_a_program_says_the_reason_is_found() {
        // Output of tcpdump 4.99 and dumpcap 4.0.
        let tcpdump = "tcpdump: lo: You don't have permission to perform this capture on that device\n\
                       (socket: Operation not permitted)\n";
        assert_eq!(reason("tcpdump", tcpdump), "lo: You don't have permission to perform this capture on that device");
        let dumpcap = "Capturing on 'lo'\ndumpcap: The capture session could not be initiated on capture device \"lo\" \
                       (You don't have permission to capture on that device).\nPlease check to make sure you have \
                       sufficient permissions.\n\nOn Debian, install it\n\n    and then restarting Wireshark.\n";
        let expected = "The capture session could not be initiated on capture device \"lo\" (You don't have permission \
                        to capture on that device)";
        assert_eq!(reason("dumpcap", dumpcap), expected);
        assert_eq!(reason("tcpdump", "tcpdump: nosuch: No such device exists\n(x)\n"), "nosuch: No such device exists");
        let gone = "tcpdump: listening on eth1, link-type EN10MB (Ethernet), snapshot length 262144 bytes\n\
                    tcpdump: pcap_loop: The interface disappeared\n0 packets captured\n";
        assert_eq!(reason("tcpdump", gone), "pcap_loop: The interface disappeared");
        let any = "tcpdump: data link type LINUX_SLL2\ntcpdump: no VLAN support for Linux cooked v2\n";
        assert_eq!(reason("tcpdump", any), "no VLAN support for Linux cooked v2");
        assert_eq!(reason("tcpdump", "\n"), "it said nothing");
    }

    #[test]
    fn the_device_of_a_route_is_found() {
        // Output of iproute2 6.1.
        assert_eq!(device_of("10.1.2.3 via 10.0.0.1 dev eth0 src 10.0.0.9 uid 0 \\    cache"), Some("eth0"));
        assert_eq!(device_of("RTNETLINK answers: Network is unreachable"), None);
    }

    #[test]
    fn a_server_on_this_machine_is_reached_over_the_loopback() {
        assert_eq!(interface_to("127.0.0.1:445".parse().expect("an address")), "lo");
    }
}
