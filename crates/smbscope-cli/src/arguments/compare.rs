//! Arguments of `smbscope compare`.

use super::{AnalyzeArguments, CommonArguments, by_ending};
use clap::{Args, ValueEnum};
use smbscope_report::compare::RatioLimit;
use smbscope_run::options::{CommandOptions, dimension};
use smbscope_stats::Dimension;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope compare before.pcapng after.pcapng
  smbscope compare --name signing-off --name signing-on off.json on.json
  smbscope compare runs/samba-4.17 runs/samba-4.22
  smbscope compare --fail-if 'p95(Read) > 1.10x' --junit compare.xml runs/main runs/branch
  smbscope compare old-1 old-2 old-3 old-4 old-5 vs new-1 new-2 new-3 new-4 new-5

Exit status: 0 done, 1 unusable input or output, 2 bad arguments, 3 a --fail-if holds, 130 interrupted.")]
#[command(mut_arg("width", |arg| arg.help("Set the width of the text in columns. [default: the terminal's]")))]
#[command(mut_arg("threads", |arg| arg.help("Follow connections on N threads, as `analyze` does. [default: all cores]")))]
#[command(mut_arg("memory", |arg| arg.help("Memory budget in MiB for the analysis of a capture, as in `analyze`")))]
pub struct CompareArguments {
    /// Compare these captures, reports saved as JSON, run directories of `bench` or their run.json, or study
    /// directories: at least two. `-` is a capture on standard input.
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

    /// Analyze only connections with this TCP port at either end. May be repeated.
    ///
    /// Without it, SMB is recognised on any port by its content.
    #[arg(long = "port", value_name = "N")]
    pub ports: Vec<u16>,

    /// Group the commands of each file by these fields, separated by commas or repeated, as in `analyze`. Saved
    /// reports and runs must have been made with the same --by.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = dimension())]
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
    #[arg(long)]
    pub title: Option<String>,

    #[command(flatten)]
    pub common: CommonArguments,
}

impl CommandOptions for CompareArguments {
    fn conflict(&self) -> Option<&'static str> {
        let sides = self.sides();
        if sides.iter().any(Vec::is_empty) {
            Some("`vs` must be between files")
        } else if sides.len() < 2 {
            Some("a comparison needs two sides")
        } else if self.names.len() > sides.len() {
            Some("there are more names than sides")
        } else if self.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
            Some("standard input (-) can be read only once")
        } else {
            None
        }
    }
}

impl CompareArguments {
    /// Returns the output format.
    pub(crate) fn format(&self) -> CompareFormat {
        self.format.or_else(|| by_ending(self.output.as_deref())).unwrap_or(CompareFormat::Text)
    }

    /// Returns the files of each side: one each, or those between `vs`.
    pub(crate) fn sides(&self) -> Vec<Vec<&Path>> {
        let files = || self.files.iter().map(PathBuf::as_path);
        if !files().any(is_versus) {
            return files().map(|file| vec![file]).collect();
        }
        let files: Vec<&Path> = files().collect();
        files.split(|file| is_versus(file)).map(<[&Path]>::to_vec).collect()
    }

    /// Returns the arguments for analyzing one of the files.
    pub(crate) fn analysis_of(&self, file: &Path) -> AnalyzeArguments {
        let defaults = AnalyzeArguments::of_files([file]);
        AnalyzeArguments { ports: self.ports.clone(), by: self.by.clone(), common: self.common.clone(), ..defaults }
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
