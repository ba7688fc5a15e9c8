//! `smbscope analyze`: packets → flows → exchanges → a report or a table.

use crate::arguments::{AnalyzeArguments, ColorChoice, Format};
use crate::interrupt;
use crate::output::Output;
use crate::progress::Progress;
use crate::readable_name;
use anyhow::bail;
use smbscope_analyze::{Analyzer, Options};
use smbscope_capture::decode::Decoder;
use smbscope_capture::reader::{CaptureInfo, CaptureSet, Input};
use smbscope_capture::tcp::FlowTable;
use smbscope_model::{Exchange, Quality, Timestamp};
use smbscope_report::csv::ExchangeWriter;
use smbscope_report::text::TextOptions;
use smbscope_report::{CaptureEntry, Report, classic, counted, json, text};
use smbscope_stats::Aggregator;
use std::sync::atomic::Ordering;

/// Columns of a report that does not go to a terminal.
const DEFAULT_WIDTH: usize = 100;

/// Runs the command.
pub(crate) fn run(arguments: &AnalyzeArguments) -> anyhow::Result<()> {
    let inputs: Vec<Input> = arguments.files.iter().map(Input::from_argument).collect();
    let mut set = CaptureSet::open(&inputs)?;
    let mut output = Output::open(arguments.output.as_deref(), &inputs)?;
    if arguments.format == Format::Csv {
        return write_csv(arguments, &mut set, &mut output);
    }
    let mut aggregator = Aggregator::new();
    let analysis = analyze(arguments, &mut set, |exchange| aggregator.record(&exchange))?;
    analysis.refuse_without_smb(arguments, &set)?;
    let notes = analysis.notes(arguments.format, &set);
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
    output.settle(result)?;
    say(&notes);
    Ok(())
}

/// Streams the exchange table.
fn write_csv(arguments: &AnalyzeArguments, set: &mut CaptureSet, output: &mut Output) -> anyhow::Result<()> {
    let names: Vec<String> = set.captures().iter().map(|info| info.name.clone()).collect();
    let mut table = Ok(());
    let mut writer = ExchangeWriter::new(output.writer());
    let mut exchange_id = 0;
    let stop = set.stop_flag();
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
    let abandoned = table.is_err();
    let result = table.and(writer.and_then(|mut writer| writer.flush()));
    output.settle(result)?;
    if abandoned {
        return Ok(());
    }
    say(&analysis.notes(arguments.format, set));
    analysis.refuse_without_smb(arguments, set)
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
fn analyze(arguments: &AnalyzeArguments, set: &mut CaptureSet, emit: impl FnMut(Exchange)) -> anyhow::Result<Analysis> {
    let mut decoder = Decoder::new();
    let mut quality = Quality::default();
    let mut flows = FlowTable::new(Analyzer::new(Options { ports: arguments.ports.clone() }, emit));
    let mut progress = Progress::new(arguments.quiet);
    // The flag also ends a read that waits for a pipe.
    let stop = set.stop_flag();
    interrupt::sets(&stop);
    let (mut first, mut last) = (None, None);
    while !stop.load(Ordering::Relaxed) {
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
        interrupted: stop.load(Ordering::Relaxed),
    })
}

impl Analysis {
    /// An error that says what was seen instead, when there was no SMB.
    fn refuse_without_smb(&self, arguments: &AnalyzeArguments, set: &CaptureSet) -> anyhow::Result<()> {
        if !self.found.connections.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = set.captures().iter().map(|info| info.name.as_str()).collect();
        let names = names.join(", ");
        let Quality { packets, tcp_packets, snapped_packets, .. } = self.quality;
        if packets == 0 {
            bail!("{names}: no packets in the capture");
        }
        let links: Vec<String> = self.unsupported_links.iter().map(u32::to_string).collect();
        if tcp_packets == 0 && !links.is_empty() {
            bail!("{names}: link type {} is not supported; capture on an Ethernet or IP interface", links.join(", "));
        }
        let seen = counted(packets, "packet", "packets");
        if tcp_packets == 0 {
            bail!("{names}: no SMB: {seen}, none of them TCP");
        }
        let ports: Vec<String> = self
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
        if self.quality.encrypted_frames > 0 {
            let frames = counted(self.quality.encrypted_frames, "frame is", "frames are");
            notes.push(format!("{frames} encrypted: only the frames can be timed, not the commands in them"));
        }
        notes
    }
}

/// Writes lines to standard error.
fn say(notes: &[String]) {
    for note in notes {
        eprintln!("smbscope: warning: {}", readable_name(note));
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
    let width =
        arguments.width.map(usize::from).or(terminal.map(|(width, _)| usize::from(width.0))).unwrap_or(DEFAULT_WIDTH);
    let color = match arguments.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => output.is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    TextOptions { width, color }
}
