//! Proves predictions: replays the recorded commands, as they were and with each change really made, and measures both
//! on the wire.
//!
//! Replays run on private servers, or on a given one, whose dialect and protection can be changed, but nothing else.
//! The replay as captured calibrates the prediction, because server and client are not the captured ones. Runs
//! take turns, so that drift affects all of them alike. Start reading at [`prove`].

use crate::analysis::{AnalysisOptions, CaptureSetAnalysis};
use crate::bench::setup::RunOptions;
use crate::bench::{Bench, BenchOutcome};
use crate::options::{BenchOptions, CapturePoints, ConnectOptions, OptionsError, RequestOptions};
use crate::server::{Passwords, Private, ServerUnderTest, ShareUrl, TargetUrl};
use crate::{BenchError, one_line};
use smbscope_capture::reader::CaptureInput;
use smbscope_client::{ClientSigningPolicy, Encryption, SessionParameters};
use smbscope_diagnose::whatif::{self, ConnectionThreads, FlowPaths, PredictedDuration, Prediction};
pub use smbscope_diagnose::whatif::{Predictions, Scenario};
use smbscope_lab::{LabServerSettings, Launcher, LinkEmulation, Storage};
use smbscope_load::engine::Users;
use smbscope_load::workload::{RecordedClient, RecordedWorkload, Recording};
use smbscope_model::{CommandGroup, Dialect, Exchange, Nanos, Protocol, TimeKind, Timestamp};
use smbscope_report::bench::{BenchRunOutcome, Captured, RunCapture};
use smbscope_report::proof::{MeasuredDuration, Proof, ProofVerdict, ProvedChange, ReplayedCommands};
use smbscope_stats::Covered;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time limit of one replay.
const REPLAY_MAX: Duration = Duration::from_secs(600);
/// Replays that are expected to take less are repeated: times of some milliseconds differ by half from run to run.
const REPLAY_LEAST: Nanos = Nanos(2_000_000_000);
/// Passes through the commands within one replay.
const PASSES_MAX: u64 = 100;
/// Payload of the repeated commands of one replay, in bytes: a capture of more, at the speed of the lab, loses packets.
const REPEATED_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Runs of a replay that repeats the commands, each with a server and connections of its own. On a virtual machine, a
/// run may take a third longer from its beginning to its end, depending on the processors of client and server.
const RUNS: u32 = 5;
/// Runs from whose capture packets are missing are made again, up to this number of tries in all.
const TRIES_MAX: u32 = 3;
/// Round trip of the lab without a delay. A captured one above it is imitated.
const ROUND_TRIP_OF_LAB: Nanos = Nanos(200_000);

/// A proof to make.
#[derive(Debug)]
pub struct ProofRequest<'a> {
    pub recording: &'a Recording,
    /// Predictions from the capture.
    pub predictions: &'a Predictions,
    pub captured: CapturedConditions,
    pub repetitions: u32,
    pub launcher: Launcher,
    /// Server to replay on. `None` starts private ones.
    pub target: Option<ProofTarget<'a>>,
}

/// Server of a user, on which commands are replayed.
#[derive(Clone, Copy)]
pub struct ProofTarget<'a> {
    pub url: &'a ShareUrl,
    /// Returns the source of passwords for one replay.
    pub password: &'a dyn Fn() -> Box<Passwords>,
}

impl fmt::Debug for ProofTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProofTarget").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Conditions of a capture that a replay has to share.
#[derive(Debug, Clone, Copy, Default)]
pub struct CapturedConditions {
    /// Longest captured round trip, if it is known.
    pub round_trip: Option<Nanos>,
    /// Dialect of most commands, if it is known.
    pub dialect: Option<Dialect>,
    /// True if most commands were signed.
    pub is_signed: bool,
    /// True if most commands were encrypted.
    pub is_encrypted: bool,
    /// Payload bytes of all commands, of both directions.
    pub bytes: u64,
}

impl CapturedConditions {
    pub fn new(exchanges: &[Exchange], round_trip: Option<Nanos>) -> CapturedConditions {
        let mut dialects: BTreeMap<Dialect, usize> = BTreeMap::new();
        exchanges
            .iter()
            .filter_map(|exchange| exchange.dialect)
            .for_each(|dialect| *dialects.entry(dialect).or_default() += 1);
        let mostly =
            |is: fn(&Exchange) -> bool| 2 * exchanges.iter().filter(|exchange| is(exchange)).count() > exchanges.len();
        CapturedConditions {
            round_trip,
            dialect: dialects.into_iter().max_by_key(|(_, commands)| *commands).map(|(dialect, _)| dialect),
            is_signed: mostly(|exchange| exchange.signed),
            is_encrypted: mostly(|exchange| exchange.encrypted),
            bytes: exchanges.iter().map(|exchange| exchange.request.bytes + exchange.response.bytes).sum(),
        }
    }
}

/// Follows the replays.
pub trait ProofObserver {
    /// Called before each replay. `change` is `None` for the conditions of the capture.
    fn begins(&mut self, change: Option<&Scenario>, number: u32, of: u32);
}

/// Conditions of replays, with the replays under them.
struct Condition<'a> {
    /// `None` for the conditions of the capture.
    change: Option<&'a Scenario>,
    settings: Result<ReplaySettings, String>,
    /// Passes through the commands within one replay.
    passes: u32,
    replays: Vec<Replay>,
}

#[derive(Debug, Clone)]
struct ReplaySettings {
    server: LabServerSettings,
    connect: ConnectOptions,
    /// Sends what names a path as one compound.
    compound: bool,
}

/// Runs of a replay. Its times are their means.
struct Replay {
    runs: Vec<ReplayRun>,
}

struct ReplayRun {
    /// Times of one pass in ns: all of it, the server's, and the client's own.
    duration: i64,
    server: i64,
    own: i64,
    retransmitted: u64,
    /// Commands of all passes.
    exchanges: Vec<Exchange>,
    passes: u32,
    paths: FlowPaths,
    /// Id of the algorithm for signatures, if messages were signed.
    signing_algorithm: Option<u16>,
}

impl Replay {
    fn mean(&self, of: impl Fn(&ReplayRun) -> i64) -> i64 {
        mean(self.runs.iter().map(of)).unwrap_or_default()
    }

    fn duration(&self) -> Nanos {
        Nanos(self.mean(|run| run.duration))
    }
}

fn mean(all: impl Iterator<Item = i64>) -> Option<i64> {
    let (count, sum) = all.fold((0, 0), |(count, sum), one| (count + 1, sum + one));
    (count > 0).then(|| sum / count)
}

/// Replays the recording as captured and with each change, and compares. A change that the lab can't make is only
/// named.
pub fn prove<'a>(
    request: &ProofRequest<'a>,
    observer: &mut dyn ProofObserver,
    stop: &AtomicBool,
) -> Result<Proof, BenchError> {
    let folder = tempfile::tempdir().map_err(BenchError::system("temporary directory"))?;
    let recording = folder.path().join("recording.toml");
    std::fs::write(&recording, request.recording.to_toml()).map_err(BenchError::file("write", &recording))?;
    let Predictions { captured_ns, predictions, .. } = request.predictions;
    let base = as_captured(request.captured, predictions.iter().map(|prediction| &prediction.change));
    let under = |change, settings, passes| Condition { change, settings, passes, replays: Vec::new() };
    let passes = |change, expected| passes(&request.recording.recorded, request.captured.bytes, change, expected);
    let of_change = |Prediction { change, duration_ns, .. }: &'a Prediction| {
        let settings = match &request.target {
            Some(_) if !is_of_client(change) => Err(ONLY_PRIVATE.to_owned()),
            _ => settings(&base, change, request.recording),
        };
        under(Some(change), settings, passes(change, duration_ns.best))
    };
    let as_captured = predictions.iter().map(|prediction| passes(&prediction.change, *captured_ns));
    let as_captured: BTreeSet<u32> = as_captured.collect();
    let mut conditions: Vec<Condition> =
        as_captured.into_iter().map(|passes| under(None, Ok(base.clone()), passes)).collect();
    conditions.extend(predictions.iter().map(of_change));
    let made = conditions.iter().filter(|condition| condition.settings.is_ok()).count() as u32;
    let mut number = 0;
    for _ in 0..request.repetitions {
        for Condition { change, settings, passes, replays } in &mut conditions {
            let Ok(settings) = settings else { continue };
            if stop.load(Ordering::Relaxed) {
                return Err(BenchError::Interrupted);
            }
            number += 1;
            observer.begins(*change, number, made * request.repetitions);
            replays.push(replay(request, &recording, settings, *passes, stop)?);
        }
    }
    Ok(compared(request, &conditions))
}

/// Returns the number of passes in a replay that is expected to take this long. Only a single thread repeats its
/// commands: with several connections, passes over the same files would look like threads that share them. Transfers
/// that change are not repeated: after the first pass, TCP's window is open.
fn passes(recorded: &RecordedWorkload, bytes: u64, change: &Scenario, expected: Nanos) -> u32 {
    let is_single = matches!(&recorded.clients[..], [client] if client.threads.len() == 1 && client.pools.is_empty());
    match recorded.repeats && is_single && !change.replays_transfers() {
        true => {
            let needed = (REPLAY_LEAST.0 / expected.0.max(1)) as u64;
            let most = (REPEATED_BYTES_MAX / bytes.max(1)).min(PASSES_MAX);
            needed.min(most).max(1) as u32
        }
        false => 1,
    }
}

const ONLY_PRIVATE: &str = "only a private server can be changed like this: omit --target";

/// Returns true if a client alone can make the change.
fn is_of_client(change: &Scenario) -> bool {
    let Scenario { round_trip, bandwidth, server, slower, cache_opens: _, read_ahead: _, dialect: _, signing: _ } =
        change;
    round_trip.is_none() && bandwidth.is_none() && server.is_none() && slower.is_empty()
}

/// Returns the settings of a server as far away as the captured one, and of a client with its dialect and protection.
fn as_captured<'a>(captured: CapturedConditions, mut changes: impl Iterator<Item = &'a Scenario>) -> ReplaySettings {
    let CapturedConditions { round_trip, dialect, is_signed, is_encrypted, bytes: _ } = captured;
    let delay = round_trip.filter(|trip| *trip > ROUND_TRIP_OF_LAB).map(one_way);
    // The proxy that makes a server slower takes time of its own, which the replay as captured has to share.
    let server_time = changes.any(|change| change.server.is_some()).then_some(1.0);
    let mut connect = BenchOptions::default().connect;
    connect.dialect = match dialect {
        Some(dialect) if dialect.protocol() == Protocol::Smb1 => Dialect::NtLm012,
        Some(dialect @ Dialect::Smb2(_)) => dialect,
        _ => connect.dialect,
    };
    if is_encrypted {
        connect.encryption = Encryption::Required(None);
    } else if is_signed {
        connect.signing = ClientSigningPolicy::Required;
    }
    let server = LabServerSettings { delay, server_time, ..LabServerSettings::default() };
    ReplaySettings { server, connect, compound: false }
}

fn one_way(round_trip: Nanos) -> Duration {
    Duration::from_nanos(round_trip.0.max(0) as u64 / 2)
}

/// Returns the settings that make a change, or why the lab can't make it.
fn settings(base: &ReplaySettings, change: &Scenario, recording: &Recording) -> Result<ReplaySettings, String> {
    let Scenario { round_trip, bandwidth, server, slower, cache_opens, read_ahead, dialect, signing } = change;
    if *cache_opens || *read_ahead {
        return Err("the replay sends the recorded commands, and this change is the client's".to_owned());
    }
    let mut settings = base.clone();
    if let Some(factor) = server {
        if *factor < 1.0 {
            return Err("the lab can make a server slower, not faster".to_owned());
        }
        if settings.connect.encryption != Encryption::Off {
            return Err("the lab can't hold back encrypted responses".to_owned());
        }
        settings.server.server_time = Some(*factor);
    }
    if let Some(trip) = round_trip {
        settings.server.delay = Some(one_way(*trip)).filter(|delay| !delay.is_zero());
    }
    if let Some(rate) = bandwidth {
        settings.server.bandwidth = Some(*rate);
    }
    if !slower.is_empty() {
        let latency = Some(storage_latency(slower, recording)?);
        settings.server.storage = Storage { latency, ..Storage::default() };
    }
    if let Some(dialect) = dialect {
        settings.compound = base.connect.dialect.protocol() == Protocol::Smb1;
        settings.connect.dialect = *dialect;
    }
    if *signing {
        settings.connect.signing = ClientSigningPolicy::Required;
    }
    Ok(settings)
}

/// Slow storage delays reads, writes and flushes alike.
fn storage_latency(slower: &[(CommandGroup, Nanos)], recording: &Recording) -> Result<Duration, String> {
    let alike = "the lab's storage delays reads and writes, by the same time: give both, or record only one of them";
    let all = recording.recorded.clients.iter().flat_map(RecordedClient::lines);
    let has = |names: [&str; 3]| all.clone().any(|line| names.iter().any(|name| line.starts_with(name)));
    let is_given = |group| slower.iter().any(|(given, _)| *given == group);
    let of_storage = |group: &CommandGroup| matches!(group, CommandGroup::Read | CommandGroup::Write);
    let time = slower.first().map_or(Nanos(0), |(_, time)| *time);
    let is_whole = slower.iter().all(|(group, given)| of_storage(group) && *given == time)
        && (is_given(CommandGroup::Read) || !has(["ReadX", "ReadQueue", "Read "]))
        && (is_given(CommandGroup::Write) || !has(["WriteX", "WriteQueue", "Flush"]));
    match is_whole {
        true => Ok(Duration::from_nanos(time.0.max(0) as u64)),
        false => Err(alike.to_owned()),
    }
}

/// Replays the recording, with the passes shared out among the runs.
fn replay(
    request: &ProofRequest<'_>,
    recording: &Path,
    settings: &ReplaySettings,
    passes: u32,
    stop: &AtomicBool,
) -> Result<Replay, BenchError> {
    let runs = passes.min(RUNS);
    let passes = (0..runs).map(|run| passes / runs + u32::from(run < passes % runs));
    let runs = passes.map(|passes| run(request, recording, settings, passes, stop));
    Ok(Replay { runs: runs.collect::<Result<_, _>>()? })
}

/// Makes one run, and reads its capture. If that lost packets, the run is made again.
fn run(
    request: &ProofRequest<'_>,
    recording: &Path,
    settings: &ReplaySettings,
    passes: u32,
    stop: &AtomicBool,
) -> Result<ReplayRun, BenchError> {
    let mut tries = 1;
    loop {
        match run_once(request, recording, settings, passes, stop)? {
            Ok(run) => return Ok(run),
            Err(LostPackets(_)) if tries < TRIES_MAX => tries += 1,
            Err(LostPackets(lost)) => return Err(proves_nothing(&format!("the capture lost {lost} packets"))),
        }
    }
}

struct LostPackets(u64);

fn proves_nothing(why: &str) -> BenchError {
    BenchError::Unavailable(format!("the replay proves nothing: {why}"))
}

fn run_once(
    request: &ProofRequest<'_>,
    recording: &Path,
    settings: &ReplaySettings,
    passes: u32,
    stop: &AtomicBool,
) -> Result<Result<ReplayRun, LostPackets>, BenchError> {
    let folder = tempfile::tempdir().map_err(BenchError::system("temporary directory"))?;
    let directory = folder.path().join("replay");
    let users = request.recording.recorded.clients.len() as u32;
    let ReplaySettings { server, connect, compound } = settings;
    let bench = BenchOptions {
        connect: connect.clone(),
        requests: RequestOptions { compound: *compound, ..BenchOptions::default().requests },
        workload: recording.display().to_string(),
        users: Some(Users::one(users)),
        passes: Some(passes),
        duration: Some(REPLAY_MAX),
        capture: Some(CapturePoints::Client),
        output: Some(directory.clone()),
        target: request.target.map(|target| TargetUrl::Share(target.url.clone())),
        ..BenchOptions::default()
    };
    let password = match &request.target {
        Some(target) => (target.password)(),
        None => Box::new(|_: &str| Err("a private server has its own password".into())),
    };
    let options = RunOptions::new(bench, request.launcher.clone(), password).map_err(|error| match error {
        OptionsError::Conflict(what) => BenchError::Unavailable(what),
        OptionsError::Workload(error) => BenchError::Unavailable(one_line(&error)),
    })?;
    let options = match options.server {
        ServerUnderTest::Named(_) => options,
        ServerUnderTest::Private(private) => {
            let private = Private { settings: server.clone(), ..private };
            RunOptions { server: ServerUnderTest::Private(private), ..options }
        }
    };
    let bench = Bench::open(options)?;
    if let Some(LinkEmulation::Proxy { why }) = bench.lab_link() {
        let what = "a proof needs a network between client and server, and the lab has only a proxy";
        return Err(BenchError::Unavailable(format!("{what}: {why}")));
    }
    let facts = bench.facts().clone();
    let BenchOutcome { document, kept } = bench.run(&mut (), stop)?;
    kept?;
    let run = document.runs.first().ok_or(BenchError::Broken)?;
    match &run.ended {
        BenchRunOutcome::Interrupted => return Err(BenchError::Interrupted),
        BenchRunOutcome::Done if run.failures.is_empty() => {}
        _ => {
            let why = document.failure().unwrap_or_else(|| "some sessions failed".to_owned());
            return Err(BenchError::Unavailable(format!("the replay failed: {why}")));
        }
    }
    match &run.capture {
        Some(RunCapture::Made(Captured { file: Some(file), dropped_packets: 0, .. })) => {
            let has_pool = request.recording.recorded.clients.iter().any(|client| !client.pools.is_empty());
            let threads = if has_pool { ConnectionThreads::OneOfPool } else { ConnectionThreads::One };
            measured(directory.join(file), run.started_ns, passes, threads, &facts).map(Ok)
        }
        Some(RunCapture::Made(Captured { dropped_packets: 0, .. })) => Err(proves_nothing("its capture was not kept")),
        Some(RunCapture::Made(captured)) => Ok(Err(LostPackets(captured.dropped_packets))),
        Some(RunCapture::Skipped { why }) => Err(proves_nothing(&format!("it could not be captured: {why}"))),
        None => Err(proves_nothing("it was not captured")),
    }
}

/// Reads what a replay did from its start on. Before that, it created the files.
fn measured(
    capture: PathBuf,
    started: Timestamp,
    passes: u32,
    threads: ConnectionThreads,
    facts: &SessionParameters,
) -> Result<ReplayRun, BenchError> {
    let options = AnalysisOptions { waterfall: true, no_findings: true, ..AnalysisOptions::default() };
    let inputs = [CaptureInput::File(capture)];
    let unreadable = |error| BenchError::Unavailable(format!("the capture of the replay: {}", one_line(&error)));
    let analysis = CaptureSetAnalysis::run(&inputs, &options, &mut ()).map_err(unreadable)?;
    let report = analysis.into_report(&options).map_err(unreadable)?;
    let starts = |exchange: &Exchange| exchange.request.first.map(|stamp| stamp.time);
    let is_part = |exchange: &Exchange| {
        exchange.group != CommandGroup::Session && starts(exchange).is_some_and(|time| time >= started)
    };
    // The connections were opened before the capture began, so it has no negotiation.
    let negotiated = |one: &Exchange| Exchange { dialect: Some(facts.dialect), ..one.clone() };
    let parts = report.explanation.waterfall.iter().filter(|one| is_part(one));
    let exchanges: Vec<Exchange> = parts.map(negotiated).collect();
    let begin = exchanges.iter().filter_map(starts).min();
    let end = exchanges.iter().filter_map(|exchange| exchange.response.last).map(|stamp| stamp.time).max();
    let Some((begin, end)) = begin.zip(end) else {
        return Err(BenchError::Unavailable("the capture of the replay has none of its commands".to_owned()));
    };
    let duration = end - begin;
    let mut paths = whatif::paths(&report.connections);
    // The connections, one for each thread, were opened before the replay, which alone made the server send much.
    for connection in &report.connections {
        if let Some(path) = paths.get_mut(&connection.flow) {
            let bytes = [None, Some(connection.to_client.bytes)];
            *path = whatif::Path { opened: None, bytes, threads, ..path.clone() };
        }
    }
    let trip = |exchange: &Exchange| paths.get(&exchange.flow).and_then(|path| path.round_trip).unwrap_or_default();
    let server = exchanges.iter().filter_map(|one| Some((one.time(TimeKind::ServiceTime)? - trip(one)).0.max(0))).sum();
    let mut covered = Covered::default();
    let outstanding = exchanges.iter().filter_map(|one| Some((starts(one)?, one.response.last?.time)));
    let waited: i64 = outstanding.map(|(from, until)| covered.add(from, until).0).sum();
    let own = (duration.0 - waited).max(0);
    let of_pass = |time: i64| time / i64::from(passes);
    Ok(ReplayRun {
        duration: of_pass(duration.0),
        server: of_pass(server),
        own: of_pass(own),
        retransmitted: report.quality.retransmitted_segments,
        exchanges,
        passes,
        paths,
        signing_algorithm: facts.signing_id(),
    })
}

fn compared(request: &ProofRequest<'_>, conditions: &[Condition<'_>]) -> Proof {
    let recorded = &request.recording.recorded;
    // With the most passes, the times vary least.
    let bases = || conditions.iter().filter(|condition| condition.change.is_none());
    let base = bases().max_by_key(|base| base.passes).expect("there is a prediction");
    let measured = |condition: &Condition<'_>| {
        let durations = condition.replays.iter().map(Replay::duration);
        MeasuredDuration::new(durations.collect(), condition.passes)
    };
    let changes = conditions.iter().filter_map(|condition| condition.change.map(|change| (change, condition)));
    let changes = changes.map(|(change, condition)| {
        let is_repeated = !change.replays_transfers();
        let alike = bases().find(|base| (base.passes > 1) == is_repeated).unwrap_or(base);
        let as_captured = &alike.replays;
        let runs = condition.replays.iter().flat_map(|replay| &replay.runs);
        let predicted = predicted(as_captured, change, runs.filter_map(|run| run.signing_algorithm).next());
        let measured = measured(condition);
        let verdict = match (&condition.settings, predicted, &measured) {
            (Err(why), ..) => ProofVerdict::NotMade { why: why.clone() },
            (_, Some(predicted), Some(measured)) if measured.is_within(predicted) => ProofVerdict::Holds,
            (_, Some(predicted), Some(measured)) => {
                let miss = (measured.best - predicted.high).0.max((predicted.low - measured.best).0);
                ProofVerdict::Misses { why: failed_assumption(change, as_captured, &condition.replays, miss) }
            }
            _ => ProofVerdict::NotMade { why: "nothing is predicted for the replay".to_owned() },
        };
        let commands = median_commands(&condition.replays);
        ProvedChange { change: change.clone(), predicted_ns: predicted, measured_ns: measured, commands, verdict }
    });
    let passes = conditions.iter().map(|condition| condition.passes).max().filter(|passes| *passes > 1);
    Proof {
        server: request.target.map(|target| target.url.to_string()),
        commands: recorded.commands,
        clients: recorded.clients.len() as u64,
        threads: recorded.clients.iter().map(|client| client.threads.len() as u64).sum(),
        not_replayed: recorded.not_replayed.clone(),
        repeated: passes.map(repeated),
        as_captured_ns: measured(base),
        as_captured_commands: median_commands(&base.replays),
        changes: changes.collect(),
    }
}

/// Says which replays repeat their commands: `Replays of less than two seconds repeat the commands, up to 37 times …`.
fn repeated(passes: u32) -> String {
    format!(
        "Replays of less than two seconds repeat the commands, up to {passes} times in {RUNS} runs, unless the change is \
         to the round trip or the bandwidth; durations are of one pass."
    )
}

/// Returns the median by a key. Of an even number, it is the later one of the two in the middle.
fn median<T, K: Ord>(all: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> Option<T> {
    let mut all: Vec<T> = all.into_iter().collect();
    all.sort_by_key(key);
    let middle = all.len() / 2;
    all.into_iter().nth(middle)
}

fn median_commands(replays: &[Replay]) -> ReplayedCommands {
    let median = median(replays.iter().flat_map(|replay| &replay.runs), |run| run.duration);
    median.map(|run| ReplayedCommands::new(&run.exchanges, run.passes)).unwrap_or_default()
}

/// Predicts a change from each replay as captured, with signatures by this algorithm.
fn predicted(replays: &[Replay], change: &Scenario, signing_algorithm: Option<u16>) -> Option<PredictedDuration> {
    let of_run = |run: &ReplayRun| {
        let signed = |path: &whatif::Path| whatif::Path { signing_algorithm, ..path.clone() };
        let paths = run.paths.iter().map(|(flow, path)| (*flow, signed(path))).collect();
        let found = whatif::predict(&run.exchanges, &paths, std::slice::from_ref(change)).ok()?;
        let PredictedDuration { low, best, high } = found.predictions.first()?.duration_ns;
        Some([low, best, high].map(|time| time.0 / i64::from(run.passes)))
    };
    let of_replay = |replay: &Replay| {
        let runs: Vec<[i64; 3]> = replay.runs.iter().filter_map(of_run).collect();
        let mean = |at: usize| mean(runs.iter().map(|run| run[at])).map(Nanos);
        Some(PredictedDuration { low: mean(0)?, best: mean(1)?, high: mean(2)? })
    };
    combined(&replays.iter().filter_map(of_replay).collect::<Vec<_>>())
}

/// Returns the median prediction. What the assumptions leave open (its own bounds) and how far replays differ (the
/// distance to the lowest and to the highest of all) are independent of each other, so their squares add.
fn combined(predictions: &[PredictedDuration]) -> Option<PredictedDuration> {
    let PredictedDuration { low, best, high } = *median(predictions, |predicted| predicted.best)?;
    let lowest = predictions.iter().map(|predicted| predicted.best).min()?;
    let highest = predictions.iter().map(|predicted| predicted.best).max()?;
    let both = |one: Nanos, other: Nanos| Nanos((one.0 as f64).hypot(other.0 as f64) as i64);
    Some(PredictedDuration {
        low: Nanos((best.0 - both(best - low, best - lowest).0).max(0)),
        best,
        high: Nanos(best.0 + both(high - best, highest - best).0),
    })
}

/// Names the assumption that the changed replays contradict, if that is enough to explain the miss.
fn failed_assumption(change: &Scenario, as_captured: &[Replay], changed: &[Replay], miss: i64) -> String {
    let middle =
        |replays: &[Replay], of: fn(&Replay) -> i64| median(replays.iter().map(of), |value| *value).unwrap_or(0);
    let sent_again = |replay: &Replay| replay.runs.iter().map(|run| run.retransmitted as i64).sum();
    let retransmitted = |replays: &[Replay]| middle(replays, sent_again);
    let of_server = |replay: &Replay| replay.mean(|run| run.server);
    let of_client = |replay: &Replay| replay.mean(|run| run.own);
    if retransmitted(changed) > retransmitted(as_captured) {
        return format!("packets were lost: {} segments were sent again", retransmitted(changed));
    }
    let (server, own) = (middle(as_captured, of_server), middle(as_captured, of_client));
    let expected = (server as f64 * change.server.unwrap_or(1.0)) as i64 + additional(change, as_captured);
    let moved = [
        ("the server", server, expected, middle(changed, of_server)),
        ("the client between commands", own, own, middle(changed, of_client)),
    ];
    let changed = moved.into_iter().filter(|(_, _, expected, after)| (after - expected).abs() * 2 >= miss);
    match changed.max_by_key(|(_, _, expected, after)| (after - expected).abs()) {
        Some((what, before, expected, after)) => {
            let [captured, predicted, after] = [before, expected, after].map(|time| smbscope_report::span(Nanos(time)));
            format!("{what} took {after} in all instead of the predicted {predicted} (as captured: {captured})")
        }
        None => {
            "server and client took as long as predicted, so the order of the commands or the model of TCP is wrong"
                .to_owned()
        }
    }
}

/// Returns the time that the change adds to the server's time of all commands of a pass.
fn additional(change: &Scenario, replays: &[Replay]) -> i64 {
    let Some(run) = replays.first().and_then(|replay| replay.runs.first()) else { return 0 };
    let of_group = |group: CommandGroup| run.exchanges.iter().filter(|command| command.group == group).count() as i64;
    let all: i64 = change.slower.iter().map(|(group, Nanos(time))| of_group(*group).saturating_mul(*time)).sum();
    all / i64::from(run.passes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_load::workload::RecordedPool;

    fn recording(steps: &str) -> Recording {
        recording_of(RecordedClient { threads: vec![steps.to_owned()], ..RecordedClient::default() })
    }

    fn recording_of(client: RecordedClient) -> Recording {
        let recorded = RecordedWorkload {
            commands: 1,
            anonymized: false,
            repeats: false,
            not_replayed: Vec::new(),
            clients: vec![client],
        };
        Recording { name: String::new(), description: String::new(), recorded }
    }

    fn base(captured: CapturedConditions, changes: &[Scenario]) -> ReplaySettings {
        as_captured(captured, changes.iter())
    }

    fn captured_over(milliseconds: i64) -> CapturedConditions {
        CapturedConditions { round_trip: Some(Nanos(milliseconds * 1_000_000)), ..CapturedConditions::default() }
    }

    fn made(change: &str, steps: &str) -> Result<ReplaySettings, String> {
        let changes = [change.parse().unwrap()];
        settings(&base(captured_over(4), &changes), &changes[0], &recording(steps))
    }

    #[test]
    fn a_change_is_made_by_the_link_or_the_storage_or_refused() {
        const MS: Duration = Duration::from_millis(1);
        let reads = "ReadX 1 0 100 100 SUCCESS\n";
        let far = made("rtt=20ms,bandwidth=20mbit", reads).unwrap().server;
        assert_eq!((far.delay, far.bandwidth), (Some(10 * MS), Some(20_000_000)));
        // The captured round trip of 4 ms stays.
        let slow = made("read=+10ms", reads).unwrap().server;
        assert_eq!((slow.delay, slow.storage.latency), (Some(2 * MS), Some(10 * MS)));
        let both = format!("{reads}WriteX 1 0 5 5 SUCCESS\n");
        assert!(made("read=+10ms", &both).is_err() && made("read=+10ms,write=+10ms", &both).is_ok());
        for change in ["open=+10ms", "read=+10ms,write=+5ms", "server=0.5x", "cache=leases", "read-ahead"] {
            assert!(made(change, &both).is_err(), "{change}");
        }
        assert_eq!(base(captured_over(0), &[]).server.delay, None);
    }

    #[test]
    fn a_slower_server_is_compared_with_one_behind_the_same_proxy() {
        let changes = ["server=2x", "rtt=20ms"].map(|change| change.parse().unwrap());
        let base = base(captured_over(0), &changes);
        let times = changes.map(|change| settings(&base, &change, &recording("")).unwrap().server.server_time);
        assert_eq!((base.server.server_time, times), (Some(1.0), [Some(2.0), Some(1.0)]));
        assert_eq!(self::base(captured_over(0), &[]).server.server_time, None);
        let encrypted = CapturedConditions { is_encrypted: true, ..captured_over(0) };
        assert!(settings(&self::base(encrypted, &[]), &"server=2x".parse().unwrap(), &recording("")).is_err());
    }

    #[test]
    fn a_replay_has_the_captured_dialect_and_protection_unless_they_change() {
        let captured = CapturedConditions { dialect: Some(Dialect::NtLm012), is_signed: true, ..captured_over(0) };
        let base = base(captured, &[]);
        assert_eq!((base.connect.dialect, base.connect.signing), (Dialect::NtLm012, ClientSigningPolicy::Required));
        let made = settings(&base, &"dialect=3.1.1".parse().unwrap(), &recording("")).unwrap();
        assert_eq!((made.connect.dialect, made.compound), (Dialect::Smb2(0x0311), true));
        let plain = self::base(CapturedConditions { dialect: Some(Dialect::Smb2(0x0210)), ..captured_over(0) }, &[]);
        assert_eq!((plain.connect.dialect, plain.connect.signing), (Dialect::Smb2(0x0210), ClientSigningPolicy::On));
        let made = settings(&plain, &"signing=required".parse().unwrap(), &recording("")).unwrap();
        assert_eq!((made.connect.signing, made.compound), (ClientSigningPolicy::Required, false));
    }

    /// By the right-angled triangle of 3, 4 and 5: the bounds are 3 (or 30) from the median, the others 4 (or 40).
    #[test]
    fn what_the_model_leaves_open_and_how_replays_differ_are_independent() {
        let of = |low, best, high| PredictedDuration { low: Nanos(low), best: Nanos(best), high: Nanos(high) };
        assert_eq!(combined(&[of(90, 140, 200), of(97, 100, 130), of(1, 96, 99)]), Some(of(95, 100, 150)));
        assert_eq!(combined(&[of(97, 100, 130)]), Some(of(97, 100, 130)));
        assert_eq!(combined(&[]), None);
        // 99 and 97 below the estimate make more than all of it.
        assert_eq!(combined(&[of(1, 100, 100), of(0, 3, 5), of(99, 101, 102)]), Some(of(0, 100, 101)));
    }

    #[test]
    fn only_short_jobs_of_one_thread_are_repeated_in_a_replay() {
        let mut recorded = recording("").recorded;
        let [slower, farther] = ["server=2x", "rtt=20ms"].map(|change| change.parse().unwrap());
        let of = |recorded: &RecordedWorkload, time: i64| passes(recorded, 1_000, &slower, Nanos(time * 1_000_000));
        assert_eq!(of(&recorded, 40), 1, "the commands can't be repeated");
        recorded.repeats = true;
        assert_eq!([0, 1, 40, 1_000, 1_001, 9_000].map(|time| of(&recorded, time)), [100, 100, 50, 2, 1, 1]);
        assert_eq!(passes(&recorded, 1_000, &farther, Nanos(1)), 1);
        // 256 MiB: 13 times 20 MB, and a part of 1 GB.
        assert_eq!([20, 1_000].map(|mb| passes(&recorded, mb * 1_000_000, &slower, Nanos(1))), [13, 1]);
        recorded.clients[0].threads.push(String::new());
        assert_eq!(of(&recorded, 40), 1);
    }

    #[test]
    fn writes_of_a_pool_are_writes_of_the_recording() {
        let pool = RecordedPool { threads: vec![1, 2], tasks: vec!["WriteX 1 0 5 5 SUCCESS\n".to_owned()] };
        let threads = ["ReadX 1 0 100 100 SUCCESS\n", ""].map(str::to_owned).to_vec();
        let recording = recording_of(RecordedClient { threads, pools: vec![pool], ..RecordedClient::default() });
        let made = |change: &str| settings(&base(captured_over(0), &[]), &change.parse().unwrap(), &recording);
        assert!(made("read=+10ms").is_err() && made("read=+10ms,write=+10ms").is_ok());
    }
}
