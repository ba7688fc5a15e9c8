//! `smbscope slim`: reduces captures to the data that the analysis needs.

use crate::interrupt::{self, InterruptedError};
use crate::output::{self, Output};
use crate::record::random_key;
use crate::terminal::{self, ReadProgressBar};
use anyhow::{Context, bail};
use smbscope_analyze::pseudonym::PseudonymKey;
use smbscope_analyze::slim::{self, Anonymize, SlimOptions, SlimSummary};
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_load::bounded;
use smbscope_report::counted;
use smbscope_run::files::Sources;
use smbscope_run::keys;
use smbscope_run::options::{KeptOfNames, SlimCopyOptions};
use smbscope_run::ring::{self, RingEvent, RingLimits};
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Limits for the size of a key: shorter ones can be guessed, longer ones are not read.
const KEY_LEAST: usize = 16;
const KEY_MOST: u64 = 1 << 20;

pub(crate) fn run(arguments: &SlimCopyOptions) -> anyhow::Result<()> {
    if let Some(output) = &arguments.output {
        output::refuse_other_ending(output, "a capture", &["pcapng", "pcap", "zst"])?;
    }
    let inputs = CaptureInput::from_arguments(&arguments.files)?;
    let options = SlimOptions {
        limits: arguments.memory.budget(),
        tunnels: arguments.tunnels.ports(),
        anonymize: anonymize(arguments)?,
        keys: keys::ring(&arguments.decryption)?,
    };
    let mut set = CaptureSet::open_with_memory(&inputs, false, arguments.memory.bytes())?;
    let limits = arguments.ring.limits().context("cannot create the directory of --ring")?;
    if let Some(limits) = &limits {
        refuse_inputs_in(&limits.folder, &inputs)?;
    }
    match (&arguments.output, limits) {
        (_, Some(limits)) => keep(arguments, &mut set, &options, &limits),
        (Some(output), None) => write_copy(arguments, &inputs, &mut set, &options, output),
        (None, None) => bail!("give --output or --ring"),
    }
}

/// Refuses to read a ring into itself.
fn refuse_inputs_in(folder: &Path, inputs: &[CaptureInput]) -> anyhow::Result<()> {
    let folder = folder.canonicalize()?;
    let is_in = |input: &&CaptureInput| match input {
        CaptureInput::File(path) => path.canonicalize().is_ok_and(|path| path.parent() == Some(&folder)),
        _ => false,
    };
    match inputs.iter().find(is_in) {
        Some(input) => bail!("cannot write to {}: the input {} is in it", folder.display(), input.name()),
        None => Ok(()),
    }
}

/// Keeps a ring until the end of the input, or until Ctrl-C.
fn keep(
    arguments: &SlimCopyOptions,
    set: &mut CaptureSet,
    options: &SlimOptions,
    limits: &RingLimits,
) -> anyhow::Result<()> {
    let folder = limits.folder.display();
    interrupt::sets(&set.stop_flag());
    let mut progress = ReadProgressBar::new(arguments.progress.quiet);
    let mut observe = |set: &CaptureSet| progress.show(|| set.progress());
    let notify = |event: &RingEvent| terminal::say(&format!("warning: {event}"));
    let kept = ring::keep(set, options, limits, &Arc::default(), &mut observe, &notify);
    progress.finish();
    set.refuse_cut_short()?;
    let summary = kept.with_context(|| folder.to_string())?;
    if !arguments.progress.quiet {
        let packets = counted(summary.slim.packets - summary.dropped_packets, "packet", "packets");
        let files = counted(summary.files, "file", "files");
        terminal::say(&format!("{packets} in {files} in {folder}; {} old ones removed", summary.removed_files));
        warn(&summary.slim);
    }
    Ok(())
}

fn write_copy(
    arguments: &SlimCopyOptions,
    inputs: &[CaptureInput],
    set: &mut CaptureSet,
    options: &SlimOptions,
    path: &Path,
) -> anyhow::Result<()> {
    let mut sources = Sources::of_inputs(inputs);
    arguments.key_file.iter().chain(arguments.decryption.files()).for_each(|file| sources.add(file));
    let mut output = Output::open(Some(path), &sources)?;
    output.refuse_terminal("a capture")?;
    let names: Vec<String> = set.captures().iter().map(|info| info.name.clone()).collect();
    let stop = set.stop_flag();
    interrupt::sets(&stop);
    let mut progress = ReadProgressBar::new(arguments.progress.quiet);
    let compress = path.extension() == Some(OsStr::new("zst"));
    let written = write(set, options, output.writer(), compress, &mut |set| {
        progress.show(|| set.progress());
    });
    progress.finish();
    set.refuse_cut_short()?;
    if stop.load(Ordering::Relaxed) {
        return Err(InterruptedError::with(format!("{}: interrupted, nothing was written", names.join(", "))).into());
    }
    let summary = match written {
        Ok(summary) => {
            output.settle(Ok(()))?;
            summary
        }
        Err(error) => return output.settle(Err(error)),
    };
    if !arguments.progress.quiet {
        let damage = set.captures().iter().filter_map(|info| info.truncated.as_deref());
        damage.for_each(|damage| terminal::say(&format!("warning: {damage}")));
        say(&summary, path);
    }
    Ok(())
}

fn write(
    set: &mut CaptureSet,
    options: &SlimOptions,
    out: &mut (dyn Write + Send),
    compress: bool,
    observe: &mut dyn FnMut(&CaptureSet),
) -> std::io::Result<SlimSummary> {
    if !compress {
        return slim::slim(set, options, out, observe);
    }
    let mut encoder = zstd::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    let summary = slim::slim(set, options, &mut encoder, observe)?;
    encoder.finish()?.flush()?;
    Ok(summary)
}

fn anonymize(arguments: &SlimCopyOptions) -> anyhow::Result<Option<Anonymize>> {
    if !arguments.anonymize {
        return Ok(None);
    }
    let key = match &arguments.key_file {
        Some(path) => key_of(path)?,
        None => random_key()?,
    };
    Ok(Some(Anonymize {
        key,
        depth: arguments.keep.contains(&KeptOfNames::Depth),
        extensions: arguments.keep.contains(&KeptOfNames::Extensions),
    }))
}

fn key_of(path: &Path) -> anyhow::Result<PseudonymKey> {
    let name = || path.display().to_string();
    let bytes = bounded::read(path, KEY_MOST).with_context(|| format!("cannot read {}", name()))?;
    if bytes.len() < KEY_LEAST {
        bail!(
            "{}: a key needs {KEY_LEAST} bytes or more, it has {}; head -c 32 /dev/urandom makes one",
            name(),
            bytes.len()
        );
    }
    Ok(PseudonymKey::of_bytes(&bytes))
}

fn say(summary: &SlimSummary, output: &Path) {
    let packets = counted(summary.packets, "packet", "packets");
    let written = std::fs::metadata(output).map_or(0, |written| written.len());
    let ratio = match written {
        0 => String::new(),
        written => format!(
            ", 1/{:.0} of the {} bytes captured",
            summary.captured_bytes as f64 / written as f64,
            summary.captured_bytes
        ),
    };
    terminal::say(&format!("{packets} in {written} bytes{ratio}"));
    warn(summary);
}

fn warn(summary: &SlimSummary) {
    if summary.undecided > 0 {
        let count = counted(summary.undecided, "packet", "packets");
        terminal::say(&format!(
            "warning: {count} lost their SMB headers: too many were waiting for bytes that were not captured"
        ));
    }
    summary.decryption.problems().for_each(|problem| terminal::say(&format!("warning: {problem}")));
    if summary.moved > 0 {
        let count = counted(summary.moved, "packet", "packets");
        terminal::say(&format!("warning: {count} were renumbered because their file is far from time order"));
    }
}
