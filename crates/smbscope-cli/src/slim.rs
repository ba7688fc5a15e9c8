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
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

/// Limits for the size of a key: shorter ones can be guessed, longer ones are not read.
const KEY_LEAST: usize = 16;
const KEY_MOST: u64 = 1 << 20;

pub(crate) fn run(arguments: &SlimCopyOptions) -> anyhow::Result<()> {
    output::refuse_other_ending(&arguments.output, "a capture", &["pcapng", "pcap", "zst"])?;
    let inputs: Vec<CaptureInput> = arguments.files.iter().map(CaptureInput::from_argument).collect();
    let options = SlimOptions {
        limits: arguments.memory.budget(),
        tunnels: arguments.tunnels.ports(),
        anonymize: anonymize(arguments)?,
        keys: keys::ring(&arguments.decryption)?,
    };
    let mut set = CaptureSet::open_with_memory(&inputs, false, arguments.memory.bytes())?;
    let mut sources = Sources::of_inputs(&inputs);
    arguments.key_file.iter().chain(arguments.decryption.files()).for_each(|file| sources.add(file));
    let mut output = Output::open(Some(&arguments.output), &sources)?;
    output.refuse_terminal("a capture")?;
    let names: Vec<String> = set.captures().iter().map(|info| info.name.clone()).collect();
    let stop = set.stop_flag();
    interrupt::sets(&stop);
    let mut progress = ReadProgressBar::new(arguments.progress.quiet);
    let compress = arguments.output.extension() == Some(OsStr::new("zst"));
    let written = write(&mut set, &options, output.writer(), compress, &mut |set| {
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
        say(&summary, &arguments.output);
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
