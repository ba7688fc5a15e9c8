//! `smbscope launch`: measures repeated launches of a program.

use crate::bench::{how_it_ended, password_source, print};
use crate::output::{self, Output};
use crate::{interrupt, lab, terminal};
use smbscope_model::Nanos;
use smbscope_report::{bench, span};
use smbscope_run::BenchOutcome;
use smbscope_run::launch::{LaunchObserver, Series, SeriesOptions};
use smbscope_run::options::{BenchFormat, LaunchOptions};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub(crate) fn run(arguments: &LaunchOptions) -> anyhow::Result<()> {
    output::refuse_file_name(arguments.output.as_deref())?;
    let options = series_options(arguments.clone(), "smbscope launch".to_owned())?;
    let mut output = Output::open(None, &options.sources)?;
    if arguments.format == BenchFormat::Html {
        output.refuse_terminal("HTML")?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    interrupt::any_end_sets(&stop);
    let series = Series::open(options)?;
    let mut observer = LaunchProgressPrinter { quiet: arguments.terminal.progress.quiet, of: arguments.repetitions };
    let BenchOutcome { document, kept } = series.run(&mut observer, &stop)?;
    let text = bench::RampTextOptions {
        width: output.width(arguments.terminal.width),
        color: output.takes_color(arguments.terminal.color),
        detail: if arguments.full { bench::RampDetailLevel::One } else { bench::RampDetailLevel::Brief },
    };
    let printed = print(&document, arguments.format, &text, &mut output);
    output.settle(printed)?;
    kept?;
    how_it_ended(&document)
}

/// Adds password prompt and launcher.
pub(crate) fn series_options(options: LaunchOptions, invocation: String) -> anyhow::Result<SeriesOptions> {
    let password = password_source(options.password_file.clone());
    let series = SeriesOptions::new(options, lab::kept()?, password)?;
    Ok(SeriesOptions { invocation: Some(invocation), ..series })
}

struct LaunchProgressPrinter {
    quiet: bool,
    of: u32,
}

impl LaunchObserver for LaunchProgressPrinter {
    fn launched(&mut self, number: u32, elapsed: Duration) {
        if self.quiet {
            return;
        }
        let took = span(Nanos::from(elapsed));
        terminal::say(&match number {
            0 => format!("first launch: {took}, not counted"),
            number => format!("launch {number} of {}: {took}", self.of),
        });
    }

    fn note(&mut self, text: &str) {
        terminal::say(&format!("warning: {text}"));
    }
}
