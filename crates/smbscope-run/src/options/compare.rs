//! Options of `smbscope compare`.

use super::{
    AnalysisOptions, CommandOptions, ReadingOptions, TerminalOptions, dimension, format_by_ending, has_several_stdin,
};
use clap::{Args, ValueEnum};
use smbscope_report::compare::RatioLimit;
use smbscope_stats::Dimension;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct CompareOptions {
    /// Compare these captures or directories of captures, reports saved as JSON, run directories of `bench` or their
    /// run.json, or study directories: at least two. `-` is a capture on standard input.
    ///
    /// Study directories are compared variant by variant, and the result is a study; together with runs or captures,
    /// each variant is a side. A directory of run directories is one side with several runs. `vs` groups files into
    /// sides: `a1 a2 a3 vs b1 b2 b3`. With five runs or more per side, ratios have a 95% interval.
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Set the name of the first side; repeat the option for the next ones. [default: the file name]
    #[arg(long = "name", value_name = "NAME")]
    pub names: Vec<String>,

    /// Write this format. [default: by the ending of OUT: .txt, .md, .html, .json; text without OUT]
    #[arg(long, value_enum)]
    pub format: Option<CompareFormat>,

    /// Write to this file instead of standard output. It is replaced when the comparison is complete.
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,

    /// Group the commands of each file by these fields, as `analyze` does. Saved
    /// reports and runs must have been made with the same --by.
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',', value_parser = dimension())]
    pub by: Vec<Dimension>,

    /// Fail (exit status 3) if a measure exceeds a multiple of the baseline: 'p95(Read) > 1.10x'. May be repeated.
    ///
    /// Measures: mean, max, p50, p90, p95, p99 or p999 of (total), of a (group), an (operation) or a (command);
    /// commands, ops, throughput, elapsed. The command fails only if the whole 95% interval exceeds the limit, which
    /// requires 5 runs per side. For mean, p50 and p95 of (total) of two single runs, the interval within these runs
    /// is used.
    #[arg(long = "fail-if", value_name = "LIMIT")]
    pub fail_if: Vec<RatioLimit>,

    /// Apply --fail-if to the ratio itself and ignore its interval.
    #[arg(long, requires = "fail_if")]
    pub strict: bool,

    /// Write the results of --fail-if to this file as JUnit XML.
    #[arg(long, value_name = "FILE", requires = "fail_if")]
    pub junit: Option<PathBuf>,

    /// Set the title of the comparison.
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,

    #[command(flatten)]
    pub reading: ReadingOptions,

    #[command(flatten)]
    pub terminal: TerminalOptions,
}

impl CommandOptions for CompareOptions {
    fn conflict(&self) -> Option<&'static str> {
        let sides = self.sides();
        if sides.iter().any(Vec::is_empty) {
            Some("`vs` must be between files")
        } else if sides.len() < 2 {
            Some("a comparison needs two sides")
        } else if self.names.len() > sides.len() {
            Some("there are more names than sides")
        } else {
            has_several_stdin(&self.files)
        }
    }
}

impl CompareOptions {
    /// Returns the output format.
    pub fn format(&self) -> CompareFormat {
        self.format.or_else(|| format_by_ending(self.output.as_deref())).unwrap_or(CompareFormat::Text)
    }

    /// Returns the files of each side: one each, or those between `vs`.
    pub fn sides(&self) -> Vec<Vec<&Path>> {
        let files = || self.files.iter().map(PathBuf::as_path);
        if !files().any(is_versus) {
            return files().map(|file| vec![file]).collect();
        }
        let files: Vec<&Path> = files().collect();
        files.split(|file| is_versus(file)).map(<[&Path]>::to_vec).collect()
    }

    /// Returns the options for analyzing one of the files.
    pub fn analysis(&self) -> AnalysisOptions {
        AnalysisOptions { by: self.by.clone(), reading: self.reading.clone(), ..AnalysisOptions::default() }
    }
}

/// Returns true for the separator between sides of several files.
fn is_versus(file: &Path) -> bool {
    file.as_os_str() == "vs"
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// Tables for a terminal.
    #[value(alias = "txt")]
    Text,
    /// Comparison in Markdown, for a ticket or a pull request.
    #[value(alias = "md")]
    Markdown,
    /// Self-contained page with charts.
    #[value(alias = "htm")]
    Html,
    /// One object, `smbscope.compare/1`; times in nanoseconds.
    Json,
}
