//! `smbscope analyze`: packets → flows → exchanges → a report or a table.

use crate::arguments::{AnalyzeArguments, Format};
use crate::interrupt::{self, Interrupted};
use crate::output::Output;
use crate::progress::Progress;
use crate::recorder::{Chooser, Recorder, Waterfall};
use crate::{readable_name, terminal};
use anyhow::{Context as _, bail};
use smbscope_analyze::Options;
use smbscope_analyze::pipeline::{self, Failure, Sharding, Sink, Threading};
use smbscope_bench::files::Sources;
use smbscope_capture::reader::{CaptureSet, Input};
use smbscope_findings::whatif::{self, COMMANDS_MAX, Prediction, RoundTrips};
use smbscope_findings::{Catalogue, Context};
use smbscope_load::bounded;
use smbscope_model::units;
use smbscope_model::{
    ClockStep, Connection, Endpoints, Exchange, Nanos, Quality, SeenTwice, SkippedPackets, SkippedProtocol,
};
use smbscope_report::csv::CellStyle;
use smbscope_report::table::{ExchangeTable, Provenance};
use smbscope_report::text::TextOptions;
use smbscope_report::{Explanation, Report, classic, counted, csv, html, json, parquet, slice_table, text};
use smbscope_stats::BINS_MAX;
use smbscope_stats::filter::Filter;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Bytes of a file of thresholds.
const THRESHOLDS_MAX: u64 = 1 << 20;
/// Protocols that an error names.
const NAMED: usize = 4;

/// Runs the command.
pub(crate) fn run(arguments: &AnalyzeArguments) -> anyhow::Result<()> {
    match arguments.episode {
        Some(number) => run_once(&narrowed(arguments, number)?),
        None => run_once(arguments),
    }
}

/// The same arguments with a filter that lets pass what belongs to an episode alone.
fn narrowed(arguments: &AnalyzeArguments, number: u32) -> anyhow::Result<AnalyzeArguments> {
    let (filter, commands) = episode(arguments, number)?;
    if !arguments.what_if.is_empty() && commands > COMMANDS_MAX as u64 {
        let (commands, most) =
            (counted(commands, "command", "commands"), smbscope_model::prose::thousands(COMMANDS_MAX as u64));
        bail!("--what-if: episode {number} has {commands}, more than {most}: choose a part of it with --filter");
    }
    Ok(AnalyzeArguments { filter: Some(filter), episode: None, waterfall: true, ..arguments.clone() })
}

/// A filter that lets pass what belongs to an episode alone, and its commands.
pub(crate) fn episode(arguments: &AnalyzeArguments, number: u32) -> anyhow::Result<(Filter, u64)> {
    let inputs: Vec<Input> = arguments.files.iter().map(Input::from_argument).collect();
    if !inputs.iter().all(Input::can_be_read_again) {
        bail!("--episode reads its captures twice, which a pipe does not allow: give files");
    }
    let first = AnalyzeArguments { by: Vec::new(), episode: None, what_if: Vec::new(), ..arguments.clone() };
    let Done { report, .. } = report_on(&first)?;
    let Some(episode) = report.explanation.episodes.get(number as usize - 1) else {
        match report.explanation.episodes.len() {
            0 => bail!("--episode {number}: there is no episode; an episode has at least 10 commands"),
            n => bail!("--episode {number}: there are {n}; --full lists them"),
        }
    };
    let begin = report.first.unwrap_or_default();
    let at = |time: smbscope_model::Timestamp| units::exact_duration(time - begin);
    let (start, end) = (at(episode.start), at(episode.end));
    let condition = format!("client == {} and time >= {start} and time <= {end}", episode.client);
    let expression = match &arguments.filter {
        Some(given) => format!("({given}) and {condition}"),
        None => condition,
    };
    let filter: Filter = expression.parse().map_err(|error| anyhow::anyhow!("--episode {number}: {error}"))?;
    Ok((filter, episode.commands))
}

fn run_once(arguments: &AnalyzeArguments) -> anyhow::Result<()> {
    let inputs: Vec<Input> = arguments.files.iter().map(Input::from_argument).collect();
    if arguments.format() == Format::Parquet || arguments.format() == Format::Csv && !arguments.slices() {
        return write_table(arguments, &inputs);
    }
    let work = Work::begin(&inputs, arguments)?;
    let mut output = Output::open(arguments.output.as_deref(), &Sources::of_inputs(&inputs))?;
    if arguments.format() == Format::Html {
        output.refuse_terminal("HTML")?;
    }
    let Done { report, notes, interrupted } = work.finish(arguments, &inputs)?;
    let result = match arguments.format() {
        Format::Csv => slice_table::write(&report, cell_style(arguments, &output), output.writer()),
        Format::Json => json::write(&report, output.writer()),
        Format::Html => html::write_report(&report, output.writer()),
        _ if arguments.classic => output.writer().write_all(classic::render(&report).as_bytes()),
        _ => {
            let rendered = text::render(&report, &text_options(arguments, &output));
            output.writer().write_all(rendered.as_bytes())
        }
    };
    output.settle(result)?;
    say(&notes);
    if interrupted { Err(Interrupted::said().into()) } else { Ok(()) }
}

/// How names are written into cells.
fn cell_style(arguments: &AnalyzeArguments, output: &Output) -> CellStyle {
    CellStyle { raw: arguments.csv_raw, terminal: output.is_terminal() }
}

/// The report on a capture, for who has another use for it than to print it.
pub(crate) fn report_on(arguments: &AnalyzeArguments) -> anyhow::Result<Done> {
    let inputs: Vec<Input> = arguments.files.iter().map(Input::from_argument).collect();
    Work::begin(&inputs, arguments)?.finish(arguments, &inputs)
}

/// An analysis whose inputs are open.
struct Work {
    catalogue: Catalogue,
    pass: Pass,
    set: CaptureSet,
}

/// An analysis that is over.
pub(crate) struct Done {
    pub(crate) report: Report,
    /// Lines for standard error.
    pub(crate) notes: Vec<String>,
    /// Ended early by Ctrl-C.
    pub(crate) interrupted: bool,
}

impl Work {
    fn begin(inputs: &[Input], arguments: &AnalyzeArguments) -> anyhow::Result<Work> {
        let catalogue = catalogue(arguments.thresholds.as_deref())?;
        let pass = Pass::first(inputs, arguments);
        Ok(Work { catalogue, set: pass.open(inputs)?, pass })
    }

    fn finish(self, arguments: &AnalyzeArguments, inputs: &[Input]) -> anyhow::Result<Done> {
        let Work { catalogue, mut pass, mut set } = self;
        let (analysis, recorder) = loop {
            match summarize(arguments, pass.sharding, &mut set) {
                Ok(done) => break done,
                Err(failure) => pass.learn(failure),
            }
            set.refuse_cut_short()?;
            set = pass.open(inputs)?;
        };
        set.refuse_cut_short()?;
        analysis.refuse_without_smb(arguments, &set)?;
        let notes = analysis.notes(arguments.format(), &set);
        let interrupted = analysis.interrupted;
        Ok(Done { report: report(arguments, &catalogue, &set, analysis, &recorder)?, notes, interrupted })
    }
}

/// What is taken for granted about the inputs until it proves wrong; then they are read once more without it.
struct Pass {
    in_order: bool,
    sharding: Sharding,
    /// Bytes that decompressors may take.
    memory: usize,
}

impl Pass {
    /// The fastest way, for inputs that can be read again. Slices depend on the order of the exchanges.
    fn first(inputs: &[Input], arguments: &AnalyzeArguments) -> Pass {
        let memory = arguments.common.memory_bytes();
        match inputs.iter().all(Input::can_be_read_again) {
            true if arguments.slices() => Pass { in_order: true, sharding: Sharding::None, memory },
            true => Pass { in_order: true, sharding: Sharding::Connections, memory },
            false => Pass { in_order: false, sharding: Sharding::None, memory },
        }
    }

    fn open(&self, inputs: &[Input]) -> anyhow::Result<CaptureSet> {
        Ok(CaptureSet::open_with_memory(inputs, self.in_order, self.memory)?)
    }

    fn learn(&mut self, failure: Failure) {
        match failure {
            Failure::OutOfOrder => self.in_order = false,
            Failure::Coupled => {
                self.sharding = match self.sharding {
                    Sharding::Connections => Sharding::Hosts,
                    Sharding::Hosts | Sharding::None => Sharding::None,
                }
            }
        }
    }
}

/// Counts every exchange.
fn summarize<'a>(
    arguments: &'a AnalyzeArguments,
    sharding: Sharding,
    set: &mut CaptureSet,
) -> Result<(Analysis, Recorder<'a>), Failure> {
    let workers = if sharding == Sharding::None { 1 } else { arguments.common.threads() };
    let mut recorders: Vec<Recorder> = (0..workers).map(|_| Recorder::new(arguments, set)).collect();
    let threading = if arguments.common.threads() == 1 { Threading::Inline } else { Threading::Workers };
    let analysis = analyze(arguments, set, sharding, threading, &mut recorders)?;
    let mut all = recorders.swap_remove(0);
    recorders.into_iter().for_each(|other| all.merge(other));
    Ok((analysis, all))
}

/// Writes the exchange table.
fn write_table(arguments: &AnalyzeArguments, inputs: &[Input]) -> anyhow::Result<()> {
    let mut set = CaptureSet::open_with_memory(inputs, false, arguments.common.memory_bytes())?;
    let mut output = Output::open(arguments.output.as_deref(), &Sources::of_inputs(inputs))?;
    // Who follows a live capture waits for no batch to be full.
    let at_once = arguments.common.threads() == 1 || !inputs.iter().all(Input::can_be_read_again);
    let threading = if at_once { Threading::Inline } else { Threading::Workers };
    let streamed = if arguments.format() == Format::Parquet {
        output.refuse_terminal("Parquet")?;
        stream_table(arguments, &mut set, threading, parquet::ExchangeWriter::new(output.writer()))
    } else {
        let style = cell_style(arguments, &output);
        stream_table(arguments, &mut set, threading, csv::ExchangeWriter::with_style(output.writer(), style))
    };
    let (analysis, written) = streamed
        .map_err(|failure| anyhow::anyhow!("an analysis that takes nothing for granted failed: {failure:?}"))?;
    if written.is_err() {
        return output.settle(written);
    }
    set.refuse_cut_short()?;
    say(&analysis.notes(arguments.format(), &set));
    analysis.refuse_without_smb(arguments, &set)?;
    output.settle(written)?;
    if analysis.interrupted { Err(Interrupted::said().into()) } else { Ok(()) }
}

/// Writes every exchange to a table as it comes; also tells how the writing went.
fn stream_table<T: ExchangeTable + Send>(
    arguments: &AnalyzeArguments,
    set: &mut CaptureSet,
    threading: Threading,
    table: io::Result<T>,
) -> Result<(Analysis, io::Result<()>), Failure> {
    let names: Vec<String> = set.captures().iter().map(|info| info.name.clone()).collect();
    let stop = set.stop_flag();
    let mut written = Ok(());
    let mut table = table.map_err(|error| written = Err(error)).ok();
    let mut exchange_id = 0;
    let mut chooser = Chooser::new(arguments.filter.as_ref(), set);
    let sink = |exchange: &Exchange| {
        if let (Ok(()), Some(table)) = (&written, &mut table) {
            if chooser.chooses(exchange) {
                written = table.write(exchange, exchange_id, &names);
            }
            exchange_id += 1;
        }
        if written.is_err() {
            // Nobody will read the rest.
            stop.store(true, Ordering::Relaxed);
        }
    };
    let analysis = analyze(arguments, set, Sharding::None, threading, &mut [sink])?;
    if let (Ok(()), Some(table)) = (&written, table) {
        let quality = &analysis.found.quality;
        let filter = chooser.filtered();
        written = table.finish(&Provenance {
            version: env!("CARGO_PKG_VERSION"),
            captures: set.captures(),
            quality,
            skipped: &analysis.found.skipped,
            filter,
        });
    }
    Ok((analysis, written))
}

/// What an analysis found, apart from the exchanges, and whether it was ended early.
struct Analysis {
    found: pipeline::Analysis,
    interrupted: bool,
}

/// Reads every packet and hands every exchange on.
fn analyze<S: Sink>(
    arguments: &AnalyzeArguments,
    set: &mut CaptureSet,
    sharding: Sharding,
    threading: Threading,
    sinks: &mut [S],
) -> Result<Analysis, Failure> {
    let mut progress = Progress::new(arguments.common.quiet);
    // The flag also ends a read that waits for a pipe.
    let stop = set.stop_flag();
    interrupt::sets(&stop);
    let options = Options {
        ports: arguments.ports.clone(),
        limits: arguments.common.limits(),
        beside: arguments.beside.map(Into::into),
        details: false,
    };
    let found = pipeline::run(set, &options, sharding, threading, sinks, |set| progress.show(|| set.progress()));
    progress.finish();
    Ok(Analysis { found: found?, interrupted: stop.load(Ordering::Relaxed) })
}

impl Analysis {
    /// An error that says what was seen instead, when there was no SMB.
    fn refuse_without_smb(&self, arguments: &AnalyzeArguments, set: &CaptureSet) -> anyhow::Result<()> {
        if !self.found.connections.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = set.captures().iter().map(|info| info.name.as_str()).collect();
        let names = names.join(", ");
        if self.interrupted {
            return Err(Interrupted::with(format!("{names}: interrupted before any SMB was read")).into());
        }
        let Quality { packets, tcp_packets, snapped_packets, .. } = self.found.quality;
        if packets == 0 {
            bail!("{names}: no packets in the capture");
        }
        let seen = counted(packets, "packet", "packets");
        let skipped = &self.found.skipped;
        if tcp_packets == 0 {
            let cut = self.found.quality.headers_not_captured;
            if cut > skipped.iter().map(|skipped| skipped.packets).sum() {
                let cut = counted(cut, "packet", "packets");
                bail!(
                    "{names}: no SMB: the snap length cut {cut} of {packets} off inside IP or TCP headers, use one of 256"
                );
            }
            let is_link = |skipped: &&SkippedPackets| matches!(skipped.protocol, SkippedProtocol::LinkType(_));
            if let Some(link) = skipped.first().filter(is_link) {
                bail!("{names}: {} is not supported; capture on an Ethernet or IP interface", link.protocol);
            }
            let seen_instead: Vec<String> = skipped
                .iter()
                .take(NAMED)
                .map(|skipped| format!("{} ({})", skipped.protocol, counted(skipped.packets, "packet", "packets")))
                .collect();
            match seen_instead.is_empty() {
                true => bail!("{names}: no SMB: {seen}, none of them TCP"),
                false => bail!("{names}: no SMB: {seen}, none of them TCP, but {}", seen_instead.join(", ")),
            }
        }
        let ports: Vec<String> = self
            .found
            .busiest_ports
            .iter()
            .map(|(port, packets)| format!("{port} ({})", counted(*packets, "packet", "packets")))
            .collect();
        let busiest = match ports.as_slice() {
            [only] => format!("the busiest port is {only}"),
            _ => format!("the busiest ports are {}", ports.join(", ")),
        };
        let seen = counted(tcp_packets, "TCP packet", "TCP packets");
        if !arguments.ports.is_empty() {
            let wanted: Vec<String> = arguments.ports.iter().map(u16::to_string).collect();
            let wanted = wanted.join(", ");
            bail!("{names}: no SMB on port {wanted} in {seen}; {busiest}; without --port every port is looked at");
        }
        // Headers of Ethernet, IP and TCP alone take up to 74 bytes.
        let advice = match snapped_packets {
            0 => String::new(),
            n => format!("; the snap length cut {} short, use one of 128 or more", counted(n, "packet", "packets")),
        };
        bail!("{names}: no SMB: {seen}, none of them SMB; {busiest}{advice}")
    }

    /// Lines for standard error: what the output does not say, or does not say loud enough.
    fn notes(&self, format: Format, set: &CaptureSet) -> Vec<String> {
        let mut notes = Vec::new();
        if format != Format::Text {
            notes.extend(set.captures().iter().filter_map(|info| info.truncated.clone()));
        }
        if self.interrupted {
            notes.push("interrupted: this is what was read until then".to_owned());
        }
        if self.found.quality.encrypted_frames > 0 {
            let frames = counted(self.found.quality.encrypted_frames, "frame is", "frames are");
            notes.push(format!("{frames} encrypted: only the frames can be timed, not the commands in them"));
        }
        notes
    }
}

/// Writes lines to standard error.
pub(crate) fn say(notes: &[String]) {
    for note in notes {
        terminal::say(&format!("warning: {}", readable_name(note)));
    }
}

/// What findings are called and from when on they are some: as built in, with the thresholds of a file.
fn catalogue(thresholds: Option<&Path>) -> anyhow::Result<Catalogue> {
    let Some(path) = thresholds else { return Ok(Catalogue::default()) };
    let name = || path.display().to_string();
    let text = bounded::read(path, THRESHOLDS_MAX).with_context(|| format!("cannot read {}", name()))?;
    let text = String::from_utf8(text).with_context(|| format!("cannot read {}", name()))?;
    Catalogue::with_thresholds(&text).with_context(name)
}

/// How long the chosen episode would take otherwise.
fn predictions(
    arguments: &AnalyzeArguments,
    connections: &[Connection],
    waterfall: &[Exchange],
) -> anyhow::Result<Vec<Prediction>> {
    let trips = connections.iter().filter_map(|connection| Some((connection.flow, connection.round_trip()?)));
    let trips: RoundTrips = trips.collect();
    let predicted = |scenario| {
        whatif::predict(waterfall, &trips, scenario).with_context(|| {
            format!("--what-if {scenario}: the capture does not show the round trip of all connections of the episode")
        })
    };
    arguments.what_if.iter().map(predicted).collect()
}

fn report(
    arguments: &AnalyzeArguments,
    catalogue: &Catalogue,
    set: &CaptureSet,
    analysis: Analysis,
    recorder: &Recorder,
) -> anyhow::Result<Report> {
    let mut warnings = Vec::new();
    if analysis.interrupted {
        warnings.push("interrupted: the report covers what was read until then".to_owned());
    }
    if analysis.found.connections_left_out > 0 {
        let count = analysis.found.connections_left_out;
        warnings.push(format!("{count} connections are not listed because the list was full; their commands count"));
    }
    warnings.extend(analysis.found.clock_steps.iter().map(|step| clock_step(step, set)));
    warnings.extend(analysis.found.seen_twice.iter().filter_map(|seen| twice(seen, arguments)));
    let foreign = analysis.found.foreign_replies.iter();
    warnings
        .extend(foreign.map(|reply| format!("{} is not an SMB server: it answered {}", reply.server, reply.protocol)));
    let takes_wildcards = arguments.filter.as_ref().is_some_and(Filter::compares_wildcards);
    if takes_wildcards && recorder.chooser.filtered().is_some_and(|filtered| filtered.matched == 0) {
        warnings.push("nothing matched: == takes * and ? for themselves; wildcards go with ~".to_owned());
    }
    let aggregate = recorder.aggregator.finish();
    if let Some(asked) = arguments.interval.filter(|asked| *asked < aggregate.timeline.width) {
        let (width, most) = (aggregate.timeline.width, BINS_MAX);
        warnings
            .push(format!("the bins of the time line are {width} wide: of {asked} there would be more than {most}"));
    }
    let context = Context { catalogue, aggregate: &aggregate, connections: &analysis.found.connections };
    let waterfall = recorder.waterfall.as_ref().map(Waterfall::exchanges).unwrap_or_default();
    let what_if = predictions(arguments, &analysis.found.connections, &waterfall)?;
    let explained = recorder.collector.as_ref().map(|collector| Explanation::of(collector, &context));
    let explanation = explained.unwrap_or_default();
    Ok(Report {
        title: arguments.title.clone(),
        captures: set.captures().to_vec(),
        quality: analysis.found.quality,
        skipped: analysis.found.skipped,
        connections: analysis.found.connections,
        aggregate,
        first: analysis.found.first,
        last: analysis.found.last,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        warnings,
        filter: recorder.chooser.filtered(),
        interval: arguments.interval,
        slow: arguments.slow.clone(),
        explanation: Explanation { what_if, waterfall, ..explanation },
    })
}

/// That the same commands were captured at two places, and how to take one.
fn twice(seen: &SeenTwice, arguments: &AnalyzeArguments) -> Option<String> {
    Some(match seen {
        SeenTwice::Routed(_) if arguments.beside.is_some() => return None,
        SeenTwice::Routed(Endpoints { client, server }) => format!(
            "{client} to {server} was captured on both sides of a router: each packet counts where it passed first; \
             --beside client or --beside server times all at one place"
        ),
        SeenTwice::Translated(one, other) => {
            let (field, address) = match one.client.ip() == other.client.ip() {
                false => ("client", other.client.ip()),
                true => ("server", other.server.ip()),
            };
            format!(
                "{} to {} and {} to {} are the same connection, captured on both sides of an address translation: its \
                 commands count twice; --filter '{field} != {address}' takes one side",
                one.client, one.server, other.client, other.server
            )
        }
    })
}

/// Where and by how much the clock stepped.
fn clock_step(step: &ClockStep, set: &CaptureSet) -> String {
    let name = set.captures().get(usize::from(step.after.packet.capture.0)).map_or("", |info| info.name.as_str());
    let (number, by) = (step.after.packet.number, step.by());
    match by.0 < 0 {
        true => format!(
            "{name}: the clock stepped back by {} at packet {number}; later times are moved forward",
            Nanos(-by.0)
        ),
        false => {
            format!("{name}: the clock stepped forward by {by} at packet {number}, or the capture was stopped there")
        }
    }
}

fn text_options(arguments: &AnalyzeArguments, output: &Output) -> TextOptions {
    TextOptions {
        width: output.width(arguments.common.width),
        color: output.takes_color(arguments.common.color),
        top: arguments.top as usize,
        full: arguments.full,
    }
}
