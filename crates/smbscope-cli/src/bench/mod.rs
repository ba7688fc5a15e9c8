//! `smbscope bench`: runs a workload at increasing numbers of users, shows progress, and prints the report.

mod dashboard;
mod options;
pub(crate) mod password;

use crate::arguments::{BenchArguments, BenchVerb, CleanArguments};
use crate::interrupt::{self, InterruptedError};
use crate::output::Output;
use crate::terminal::say;
use anyhow::bail;
use dashboard::{Choice, ProgressDisplay};
pub(crate) use options::run_options;
use smbscope_load::workload::Workload;
use smbscope_report::bench::{self, BenchDocument, BenchRunOutcome};
use smbscope_report::{counted, html, listed};
use smbscope_run::options::{BenchFormat, BenchOptions};
use smbscope_run::{Bench, BenchError, BenchOutcome};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<()> {
    match &arguments.other {
        Some(BenchVerb::Clean(arguments)) => clean(arguments),
        Some(BenchVerb::Workloads(arguments)) => workloads(arguments.name.as_deref()),
        None => measure(&arguments.options, options::to_repeat(&arguments.given)),
    }
}

fn measure(arguments: &BenchOptions, command: Option<String>) -> anyhow::Result<()> {
    let options = run_options(arguments.clone(), command)?;
    let mut output = Output::open(None, &options.sources)?;
    if arguments.format == BenchFormat::Html {
        output.refuse_terminal("HTML")?;
    }
    let bench = Bench::open(options)?;
    // Nothing needs cleanup before this point; from here on, signals end the run in order.
    let interrupted = Arc::new(AtomicBool::new(false));
    interrupt::any_end_sets(&interrupted);
    let mut display = ProgressDisplay::open(choice(arguments), bench.heading());
    let BenchOutcome { document, kept } = bench.run(&mut display, &interrupted).map_err(or_interrupted)?;
    drop(display);
    let text = bench::RampTextOptions {
        width: output.width(arguments.width),
        color: output.takes_color(arguments.color),
        detail: if arguments.full { bench::RampDetailLevel::One } else { bench::RampDetailLevel::Brief },
    };
    let printed = print(&document, arguments.format, &text, &mut output);
    output.settle(printed)?;
    kept?;
    how_it_ended(&document)
}

/// Fails if the run failed, or if a signal or a key ended it.
pub(crate) fn how_it_ended(document: &BenchDocument) -> anyhow::Result<()> {
    let has_failed = document.runs.iter().any(|run| matches!(run.ended, BenchRunOutcome::Failed { .. }));
    if !has_failed && document.runs.iter().any(|run| run.ended == BenchRunOutcome::Interrupted) {
        return Err(InterruptedError::said().into());
    }
    match document.failure() {
        Some(why) => bail!("the run failed: {why}"),
        None => Ok(()),
    }
}

fn or_interrupted(error: BenchError) -> anyhow::Error {
    match error {
        BenchError::Interrupted => {
            InterruptedError::with(format!("{error}, and `smbscope bench clean` removes it")).into()
        }
        error => error.into(),
    }
}

pub(crate) fn print(
    document: &BenchDocument,
    format: BenchFormat,
    text: &bench::RampTextOptions,
    output: &mut Output,
) -> io::Result<()> {
    match format {
        BenchFormat::Json => bench::write(document, output.writer())?,
        BenchFormat::Html => html::write_bench(document, output.writer())?,
        BenchFormat::Text => output.writer().write_all(bench::render(document, text).as_bytes())?,
    }
    Ok(())
}

fn workloads(name: Option<&str>) -> anyhow::Result<()> {
    let text = match name {
        Some(name) => match Workload::builtin_text(name) {
            Some(text) => text,
            // The error lists the known names.
            None => return Ok(Workload::builtin(name).map(drop)?),
        },
        None => {
            let all = Workload::built_in().into_iter().map(|(name, about)| [name.to_owned(), about]);
            listed(&all.collect::<Vec<_>>())
        }
    };
    Output::stdout()?.print(&text)
}

fn choice(arguments: &BenchOptions) -> Choice {
    match (arguments.quiet, arguments.plain) {
        (true, _) => Choice::Quiet,
        (_, true) => Choice::Plain,
        _ => Choice::Auto,
    }
}

/// Removes the files that bench created on a share, and nothing else.
fn clean(arguments: &CleanArguments) -> anyhow::Result<()> {
    let options = &arguments.connect;
    let connect = options.connect(password::source(options.password_file.clone()));
    let cleaned = smbscope_run::clean(&arguments.target, &connect, options.prepare_timeout)?;
    match cleaned.removed {
        0 if cleaned.left.count > 0 => {}
        0 => say(&format!("there is nothing to remove at {}", arguments.target)),
        removed => say(&format!("removed {}", counted(removed, "file or directory", "files and directories"))),
    }
    let left = &cleaned.left;
    if left.count > 0 {
        let more = left.count - left.paths.len() as u64;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        bail!(
            "left on the share files that smbscope did not make, and their directories: {}{more}; remove them \
             yourself, then run this again",
            left.paths.join(", ")
        );
    }
    Ok(())
}
