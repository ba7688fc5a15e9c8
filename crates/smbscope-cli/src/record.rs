//! `smbscope record`: converts a capture to a workload that `bench` replays.

use crate::analyze::{self, Watcher};
use crate::interrupt::{self, InterruptedError};
use crate::output::{self, Output};
use crate::terminal::{self, ReadProgressBar};
use anyhow::{Context, bail};
use smbscope_analyze::AnalyzerOptions;
use smbscope_analyze::pipeline::{self, Sharding, Threading};
use smbscope_analyze::pseudonym::PseudonymKey;
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_model::Exchange;
use smbscope_report::counted;
use smbscope_run::analysis::{self, AnalysisOptions, WITHOUT_THREADS};
use smbscope_run::files::Sources;
use smbscope_run::keys;
use smbscope_run::options::{ReadingOptions, RecordOptions};
use smbscope_run::record::{RecordingOptions, WorkloadRecorder};
use smbscope_stats::filter::Filter;
use std::net::IpAddr;
use std::sync::atomic::Ordering;

pub(crate) fn run(arguments: &RecordOptions) -> anyhow::Result<()> {
    if let Some(path) = &arguments.output {
        output::refuse_other_ending(path, "a workload", &["toml"])?;
    }
    let inputs = CaptureInput::from_arguments(&arguments.files)?;
    let mut sources = Sources::of_inputs(&inputs);
    arguments.reading.decryption.files().for_each(|file| sources.add(file));
    let mut output = Output::open(arguments.output.as_deref(), &sources)?;
    let RecordOptions { reading, client, episode, filter, progress, .. } = arguments;
    let chosen = RecordedPart { client: *client, episode: *episode, filter: filter.as_ref() };
    let RecordedCommands { recorder, names, without_threads } = read(&inputs, reading, &chosen, progress.quiet)?;
    let request = RecordingOptions { name: name(arguments), from: from(arguments, &names), key: key(arguments)? };
    let recording = recorder.finish(&request).with_context(|| match arguments {
        RecordOptions { client: None, filter: None, episode: None, .. } => names.join(", "),
        _ => format!("{}, limited by --client, --filter or --episode", names.join(", ")),
    })?;
    let result = output.writer().write_all(recording.to_toml().as_bytes());
    output.settle(result)?;
    let recorded = &recording.recorded;
    if !progress.quiet {
        if without_threads {
            terminal::say(WITHOUT_THREADS);
        }
        let clients = recorded.clients.len() as u64;
        let threads = recorded.clients.iter().map(|client| client.threads.len() as u64).sum();
        let of = match (clients, threads) {
            (1, 1) => String::new(),
            _ => {
                format!(", of {} with {}", counted(clients, "client", "clients"), counted(threads, "thread", "threads"))
            }
        };
        terminal::say(&format!("{} recorded{of}", counted(recorded.commands, "command", "commands")));
        recorded.not_replayed.iter().for_each(|reason| terminal::say(&format!("not replayed: {reason}")));
    }
    Ok(())
}

/// Part of a capture to record.
pub(crate) struct RecordedPart<'a> {
    pub(crate) client: Option<IpAddr>,
    pub(crate) episode: Option<u32>,
    pub(crate) filter: Option<&'a Filter>,
}

pub(crate) struct RecordedCommands {
    pub(crate) recorder: WorkloadRecorder,
    pub(crate) names: Vec<String>,
    without_threads: bool,
}

/// Reads the commands of captures for a recording.
pub(crate) fn read(
    inputs: &[CaptureInput],
    reading: &ReadingOptions,
    part: &RecordedPart<'_>,
    quiet: bool,
) -> anyhow::Result<RecordedCommands> {
    let mut set = CaptureSet::open_with_memory(inputs, false, reading.memory.bytes())?;
    let names: Vec<String> = set.captures().iter().map(|info| info.name.clone()).collect();
    let stop = set.stop_flag();
    interrupt::sets(&stop);
    let ReadingOptions { ports, memory, tunnels, decryption, .. } = reading;
    let keys = keys::ring(decryption)?;
    let (ports, limits) = (ports.clone(), memory.budget());
    let options =
        AnalyzerOptions { ports, limits, tunnels: tunnels.ports(), details: true, keys, ..AnalyzerOptions::default() };
    let filter = match part.episode {
        Some(number) => Some(of_episode(part, reading, inputs, number, quiet)?),
        None => part.filter.cloned(),
    };
    let mut matcher = filter.as_ref().map(|filter| filter.matcher(&names));
    let start = set.first_packet();
    let mut recorder = WorkloadRecorder::default();
    let mut sink = |exchange: &Exchange| {
        let is_of_client = part.client.is_none_or(|client| exchange.endpoints.client.ip() == client);
        let start = start.get().copied().unwrap_or_default();
        if is_of_client && matcher.as_mut().is_none_or(|matcher| matcher.matches(exchange, start)) {
            recorder.take(exchange);
        }
    };
    let threading = if reading.threads() == 1 { Threading::Inline } else { Threading::Workers };
    let mut progress = ReadProgressBar::new(quiet);
    let sinks = std::slice::from_mut(&mut sink);
    let found = pipeline::run(&mut set, &options, Sharding::None, threading, sinks, |set| {
        progress.show(|| set.progress());
    });
    progress.finish();
    let found = found.map_err(|failure| anyhow::anyhow!("the analysis failed: {failure:?}"))?;
    set.refuse_cut_short()?;
    if stop.load(Ordering::Relaxed) {
        return Err(InterruptedError::with(format!("{}: interrupted, nothing was recorded", names.join(", "))).into());
    }
    if found.connections.is_empty() {
        bail!("{}: no SMB in it; `smbscope analyze` shows what it contains", names.join(", "));
    }
    Ok(RecordedCommands { recorder, names, without_threads: found.without_threads })
}

/// Returns the filter for an episode, numbered as `analyze` lists them for the same captures.
fn of_episode(
    part: &RecordedPart<'_>,
    reading: &ReadingOptions,
    inputs: &[CaptureInput],
    number: u32,
    quiet: bool,
) -> anyhow::Result<Filter> {
    let options =
        AnalysisOptions { filter: part.filter.cloned(), reading: reading.clone(), ..AnalysisOptions::default() };
    let found = analysis::of_episode(inputs, &options, number, &mut Watcher::new(quiet));
    found.map_err(analyze::error)
}

fn name(arguments: &RecordOptions) -> String {
    let stem = || arguments.output.as_deref().and_then(|path| path.file_stem()).map(|stem| stem.to_string_lossy());
    arguments.name.clone().unwrap_or_else(|| stem().map_or_else(|| "recorded".to_owned(), |stem| stem.into_owned()))
}

/// Returns the source of the recording. Anonymised recordings do not contain the capture's name.
fn from(arguments: &RecordOptions, names: &[String]) -> String {
    match (arguments.anonymize, names) {
        (true, _) => "a capture, with other names".to_owned(),
        (false, [only]) => only.clone(),
        (false, names) => counted(names.len() as u64, "capture", "captures"),
    }
}

fn key(arguments: &RecordOptions) -> anyhow::Result<Option<PseudonymKey>> {
    arguments.anonymize.then(random_key).transpose()
}

pub(crate) fn random_key() -> anyhow::Result<PseudonymKey> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("no random bytes for the key of --anonymize")?;
    Ok(PseudonymKey::new(bytes))
}
