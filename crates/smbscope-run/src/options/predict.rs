//! Options of `smbscope predict`.

use super::{AnalysisOptions, CommandOptions, ReadingOptions, TerminalOptions, format_by_ending, has_repeated_file};
use clap::{Args, ValueEnum};
use smbscope_diagnose::whatif::Scenario;
use smbscope_stats::filter::Filter;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct PredictOptions {
    /// Read these captures; `-` is standard input, and a directory stands for the captures in it. Several files form one
    /// capture, in time order.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Predict the duration with this change: rtt=20ms, bandwidth=100mbit, server=0.5x, read=+10ms, cache=leases or
    /// read-ahead. Commas combine changes; repeated options are predicted one by one.
    ///
    /// rtt sets the round trip; bandwidth limits each client's link, in each direction; server multiplies the server's
    /// time of every command; read=+10ms adds time to each command of a group (open, read, write, directory,
    /// attributes, locking, session, control). With cache=leases, files that are opened again cost nothing.
    #[arg(long = "if", required = true, value_name = "CHANGE,...")]
    pub changes: Vec<Scenario>,

    /// Predict only the episode with this number: a burst of work of one client, such as an application launch.
    /// `analyze --full` lists the episodes. [default: the whole capture]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub episode: Option<u32>,

    /// Predict only commands that match an expression. `smbscope help filters` describes it.
    #[arg(long, value_name = "EXPR")]
    pub filter: Option<Filter>,

    /// Write this format. [default: by the ending of OUT: .txt, .md, .json; text without OUT]
    #[arg(long, value_enum)]
    pub format: Option<PredictFormat>,

    /// Write to this file instead of standard output. It is replaced when the predictions are complete.
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub reading: ReadingOptions,

    #[command(flatten)]
    pub terminal: TerminalOptions,
}

impl CommandOptions for PredictOptions {
    fn conflict(&self) -> Option<&'static str> {
        has_repeated_file(&self.files)
    }
}

impl PredictOptions {
    /// Returns the output format.
    pub fn format(&self) -> PredictFormat {
        self.format.or_else(|| format_by_ending(self.output.as_deref())).unwrap_or(PredictFormat::Text)
    }

    /// Returns the options for the analysis, which keeps the commands.
    pub fn analysis(&self) -> AnalysisOptions {
        AnalysisOptions {
            reading: self.reading.clone(),
            filter: self.filter.clone(),
            episode: self.episode,
            no_findings: self.episode.is_none(),
            waterfall: true,
            ..AnalysisOptions::default()
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PredictFormat {
    /// Table for a terminal.
    #[value(alias = "txt")]
    Text,
    /// Table in Markdown, for a ticket or a pull request.
    #[value(alias = "md")]
    Markdown,
    /// One object, `smbscope.prediction/1`; times in nanoseconds.
    Json,
}
