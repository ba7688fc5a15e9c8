//! Adds password prompt, launcher and load hosts to the options of `smbscope bench`, and writes the command line of a
//! run again, as a prefix for the follow-up commands that reports suggest.

use super::password;
use crate::{BadArguments, embedding, lab};
use clap::{Args, Command};
use smbscope_report::quoted;
use smbscope_run::RunOptions;
use smbscope_run::options::{BenchOptions, GivenOptions, OptionsError};

/// `command` is the command line that started the run, for the report.
pub(crate) fn run_options(options: BenchOptions, command: Option<String>) -> anyhow::Result<RunOptions> {
    let cluster = options.cluster.address.as_deref();
    let cluster = cluster.map(|address| embedding::hosts(address, options.cluster.slots, options.on_lost_host));
    let password = password::source(options.connect.password_file.clone());
    let run = RunOptions::new(options, lab::kept()?, password).map_err(|error| match error {
        OptionsError::Conflict(what) => anyhow::Error::from(BadArguments(what)),
        OptionsError::Workload(error) => error.into(),
    })?;
    Ok(RunOptions { cluster: cluster.transpose()?, command, ..run })
}

/// Options that suggested commands set themselves: load points, schedule and output.
const SAID_ANEW: [&str; 18] = [
    "users",
    "rate",
    "rate-per-user",
    "rates",
    "arrivals",
    "think",
    "find-capacity",
    "capture",
    "output",
    "format",
    "title",
    "color",
    "full",
    "width",
    "by",
    "target",
    "quiet",
    "plain",
];

/// Returns e.g. `smbscope bench smb://ann@files/projects --duration 1min`. `None` if an option is not UTF-8.
pub(super) fn to_repeat(given: &GivenOptions) -> Option<String> {
    let mut words = vec!["smbscope".to_owned(), "bench".to_owned()];
    words.extend(values(given, "target")?);
    let command = BenchOptions::augment_args(Command::default().name("bench"));
    let options = command.get_arguments().filter_map(|option| Some((option.get_long()?, option)));
    for (name, option) in options.filter(|(name, _)| given.contains(name) && !SAID_ANEW.contains(name)) {
        match option.get_action().takes_values() {
            true => words.extend(values(given, name)?.into_iter().flat_map(|value| [format!("--{name}"), value])),
            false => words.push(format!("--{name}")),
        }
    }
    Some(words.join(" "))
}

fn values(given: &GivenOptions, name: &str) -> Option<Vec<String>> {
    given.values(name).iter().map(|value| value.to_str().map(quoted)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Verb};
    use std::ffi::OsString;

    fn command(line: &[&str]) -> Option<String> {
        match Arguments::parse_line(line.iter().map(OsString::from)).ok()?.verb {
            Verb::Bench(arguments) => to_repeat(&arguments.given),
            _ => None,
        }
    }

    #[test]
    fn a_line_is_given_again_without_load_points_and_results() {
        let line = [
            "smbscope",
            "bench",
            "smb://ann@files/my files",
            "--users=1,8",
            "--think",
            "5ms",
            "-o",
            "monday",
            "--duration",
            "1min",
            "--capture",
            "--loadfile",
            "it's.txt",
            "-q",
            "--by",
            "file",
        ];
        let expected = r"smbscope bench 'smb://ann@files/my files' --loadfile 'it'\''s.txt' --duration 1min";
        assert_eq!(command(&line).as_deref(), Some(expected));
        assert_eq!(command(&["smbscope", "bench"]).as_deref(), Some("smbscope bench"));
        assert_eq!(command(&["smbscope", "analyze", "x.pcap"]), None);
        assert_eq!(command(&["smbscope-tests", "--nocapture"]), None);
    }
}
