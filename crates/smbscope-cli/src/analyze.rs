//! `smbscope analyze`: packets → flows → exchanges → a report or a table.

use crate::arguments::{AnalyzeArguments, ColorChoice, Format};
use crate::interrupt;
use crate::output::Output;
use crate::progress::Progress;
use anyhow::bail;
use smbscope_analyze::{Analyzer, Options};
use smbscope_capture::decode::Decoder;
use smbscope_capture::reader::{CaptureInfo, CaptureSet, Input};
use smbscope_capture::tcp::FlowTable;
use smbscope_model::{Exchange, Quality, Timestamp};
use smbscope_report::csv::ExchangeWriter;
use smbscope_report::text::TextOptions;
use smbscope_report::{CaptureEntry, Report, classic, json, text};
use smbscope_stats::Aggregator;
use std::sync::atomic::Ordering;

/// Columns of a report that does not go to a terminal.
const DEFAULT_WIDTH: usize = 100;

/// Runs the command.
pub(crate) fn run(arguments: &AnalyzeArguments) -> anyhow::Result<()> {
    let inputs: Vec<Input> = arguments.files.iter().map(Input::from_argument).collect();
    let mut set = CaptureSet::open(&inputs)?;
    let mut output = Output::open(arguments.output.as_deref())?;
    if arguments.format == Format::Csv {
        return write_csv(arguments, &mut set, &mut output);
    }
    let mut aggregator = Aggregator::new();
    let analysis = analyze(arguments, &mut set, |exchange| aggregator.record(&exchange))?;
    analysis.refuse_without_smb(&set)?;
    let report = report(arguments, &set, analysis, &aggregator);
    let result = match arguments.format {
        Format::Json => json::write(&report, output.writer()),
        _ if arguments.classic => output.writer().write_all(classic::render(&report).as_bytes()),
        _ => {
            let rendered = text::render(&report, &text_options(arguments, &output));
            output.writer().write_all(rendered.as_bytes())
        }
    };
    let result = result.and_then(|()| output.writer().flush());
    output.settle(result)
}

/// Streams the exchange table.
fn write_csv(arguments: &AnalyzeArguments, set: &mut CaptureSet, output: &mut Output) -> anyhow::Result<()> {
    let names: Vec<String> = set.captures().iter().map(|info| info.name.clone()).collect();
    let mut table = Ok(());
    let mut writer = ExchangeWriter::new(output.writer());
    let mut exchange_id = 0;
    let stop = interrupt::flag();
    let analysis = analyze(arguments, set, |exchange| {
        if let (Ok(()), Ok(writer)) = (&table, &mut writer) {
            table = writer.write(&exchange, exchange_id, &names);
            exchange_id += 1;
            if table.is_err() {
                // Nobody will read the rest.
                stop.store(true, Ordering::Relaxed);
            }
        }
    })?;
    let result = table.and(writer.and_then(|mut writer| writer.flush()));
    output.settle(result)?;
    warn(analysis.quality.truncated_captures > 0, set);
    analysis.refuse_without_smb(set)
}

/// What an analysis found, apart from the exchanges.
struct Analysis {
    quality: Quality,
    found: smbscope_analyze::Outcome,
    busiest_ports: Vec<(u16, u64)>,
    unsupported_links: Vec<u32>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    interrupted: bool,
}

/// Reads every packet and hands every exchange on.
fn analyze(
    arguments: &AnalyzeArguments,
    set: &mut CaptureSet,
    emit: impl FnMut(Exchange),
) -> anyhow::Result<Analysis> {
    let mut decoder = Decoder::new();
    let mut quality = Quality::default();
    let mut flows = FlowTable::new(Analyzer::new(Options { ports: arguments.ports.clone() }, emit));
    let mut progress = Progress::new(arguments.quiet);
    let stop = interrupt::flag();
    let stop_reading = set.stop_flag();
    let (mut first, mut last) = (None, None);
    let mut interrupted = false;
    loop {
        if stop.load(Ordering::Relaxed) {
            stop_reading.store(true, Ordering::Relaxed);
            interrupted = true;
            break;
        }
        let Some(packet) = set.next_packet()? else { break };
        first.get_or_insert(packet.stamp.time);
        last = last.max(Some(packet.stamp.time));
        if let Some(segment) = decoder.decode(&packet, &mut quality) {
            flows.segment(&segment);
        }
        progress.packet(|| set.progress());
    }
    progress.finish();
    decoder.finish(&mut quality);
    let found = flows.finish().finish();
    quality.merge(set.quality());
    quality.merge(&found.quality);
    Ok(Analysis {
        quality,
        found,
        busiest_ports: decoder.busiest_ports(5),
        unsupported_links: decoder.unsupported_links().to_vec(),
        first,
        last,
        interrupted,
    })
}

impl Analysis {
    /// An error that says what was seen instead, when there was no SMB.
    fn refuse_without_smb(&self, set: &CaptureSet) -> anyhow::Result<()> {
        if !self.found.connections.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = set.captures().iter().map(|info| info.name.as_str()).collect();
        let names = names.join(", ");
        let packets = self.quality.packets;
        if packets == 0 {
            bail!("{names}: no packets in the capture");
        }
        let links: Vec<String> = self.unsupported_links.iter().map(u32::to_string).collect();
        if self.quality.tcp_packets == 0 && !links.is_empty() {
            bail!("{names}: link type {} is not supported; capture on an Ethernet or IP interface", links.join(", "));
        }
        if self.quality.tcp_packets == 0 {
            bail!("{names}: no SMB: {packets} packets, none of them TCP");
        }
        let ports: Vec<String> =
            self.busiest_ports.iter().map(|(port, packets)| format!("{port} ({packets} packets)")).collect();
        bail!(
            "{names}: no SMB: {} TCP packets, none of them SMB; the busiest ports are {}",
            self.quality.tcp_packets,
            ports.join(", ")
        )
    }
}

/// Says on standard error what a table can't.
fn warn(truncated: bool, set: &CaptureSet) {
    if truncated {
        for warning in set.captures().iter().filter_map(|info| info.truncated.as_ref()) {
            eprintln!("smbscope: warning: {warning}");
        }
    }
}

fn report(arguments: &AnalyzeArguments, set: &CaptureSet, analysis: Analysis, aggregator: &Aggregator) -> Report {
    let mut warnings = Vec::new();
    if analysis.interrupted {
        warnings.push("interrupted: the report covers what was read until then".to_owned());
    }
    if analysis.found.connections_left_out > 0 {
        let count = analysis.found.connections_left_out;
        warnings.push(format!("{count} connections are not listed because the list was full; their commands count"));
    }
    Report {
        title: arguments.title.clone(),
        captures: set.captures().iter().map(capture_entry).collect(),
        quality: analysis.quality,
        connections: analysis.found.connections,
        aggregate: aggregator.finish(),
        first: analysis.first,
        last: analysis.last,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        warnings,
    }
}

fn capture_entry(info: &CaptureInfo) -> CaptureEntry {
    CaptureEntry {
        name: info.name.clone(),
        format: info.format.to_owned(),
        compression: info.compression.map(str::to_owned),
        packets: info.packets,
        bytes: info.bytes,
        first: info.first,
        last: info.last,
        resolution_ns: info.resolution_ns,
        snap_length: info.snap_length,
        link_types: info.link_types.clone(),
        warnings: info.truncated.iter().chain(&info.warnings).cloned().collect(),
    }
}

fn text_options(arguments: &AnalyzeArguments, output: &Output) -> TextOptions {
    let terminal = output.is_terminal().then(terminal_size::terminal_size).flatten();
    let width = arguments
        .width
        .map(usize::from)
        .or(terminal.map(|(width, _)| usize::from(width.0)))
        .unwrap_or(DEFAULT_WIDTH);
    let color = match arguments.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => output.is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    TextOptions { width, color }
}

