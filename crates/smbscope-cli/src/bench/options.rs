//! Completes the options of `smbscope bench` with what only the program has, and reconstructs the command line of a run as a
//! prefix for the follow-up commands that reports suggest.

use super::password;
use crate::arguments::Arguments;
use crate::{BadArguments, embedding, lab};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};
use smbscope_report::quoted;
use smbscope_run::RunOptions;
use smbscope_run::options::{BenchOptions, OptionsError};
use std::ffi::OsString;

pub(crate) fn run_options(options: BenchOptions) -> anyhow::Result<RunOptions> {
    let cluster = options.cluster.address.as_deref();
    let cluster = cluster.map(|address| embedding::hosts(address, options.cluster.slots, options.on_lost_host));
    let password = password::source(options.connect.password_file.clone());
    let run = RunOptions::new(options, lab::kept()?, password).map_err(|error| match error {
        OptionsError::Conflict(what) => anyhow::Error::from(BadArguments(what)),
        OptionsError::Workload(error) => error.into(),
    })?;
    Ok(RunOptions { cluster: cluster.transpose()?, command: to_repeat(std::env::args_os()), ..run })
}

/// Options that suggested commands set themselves: load points, schedule and output.
const SAID_ANEW: [&str; 18] = [
    "users",
    "rate",
    "rate_per_user",
    "rates",
    "arrivals",
    "think",
    "find_capacity",
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

/// Returns e.g. `smbscope bench smb://ann@files/projects --duration 1min`. `None` if the line is not a bench command
/// or not UTF-8.
fn to_repeat(line: impl IntoIterator<Item = OsString>) -> Option<String> {
    let matches = Arguments::command().try_get_matches_from(line).ok()?;
    let ("bench", matches) = matches.subcommand()? else { return None };
    let mut words = vec!["smbscope".to_owned(), "bench".to_owned()];
    words.extend(values(matches, "target")?);
    let command = Arguments::command();
    for argument in command.find_subcommand("bench")?.get_arguments() {
        let id = argument.get_id().as_str();
        let given = matches!(matches.try_contains_id(id), Ok(true))
            && matches.value_source(id) == Some(ValueSource::CommandLine);
        let (Some(long), true) = (argument.get_long(), given && !SAID_ANEW.contains(&id)) else { continue };
        match argument.get_action().takes_values() {
            true => words.extend(values(matches, id)?.into_iter().flat_map(|value| [format!("--{long}"), value])),
            false => words.push(format!("--{long}")),
        }
    }
    Some(words.join(" "))
}

fn values(matches: &ArgMatches, id: &str) -> Option<Vec<String>> {
    let Ok(Some(values)) = matches.try_get_raw(id) else { return Some(Vec::new()) };
    values.map(|value| value.to_str().map(quoted)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &[&str]) -> Option<String> {
        to_repeat(line.iter().map(OsString::from))
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
