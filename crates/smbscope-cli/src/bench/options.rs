//! Converts the arguments of `smbscope bench` to options of a run, and reconstructs the command line of a run as a
//! prefix for the follow-up commands that reports suggest.

use super::password;
use crate::arguments::Arguments;
use crate::{BadArguments, embedding, lab};
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};
use smbscope_client::SessionOptions;
use smbscope_lab::LabServerSettings;
use smbscope_load::engine::{
    Connects, EngineError, ErrorLimit, LoadPointLimits, LoadSchedule, OverloadLimits, RampPlan, Search, Users,
};
use smbscope_load::workload::{Scenarios, Workload};
use smbscope_report::quoted;
use smbscope_run::files::Sources;
use smbscope_run::options::{BenchOptions, ConnectOptions, Think};
use smbscope_run::{Cluster, Connect, Private, RunOptions, ServerUnderTest};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

pub(crate) fn run_options(arguments: &BenchOptions) -> anyhow::Result<RunOptions> {
    let workload = workload(arguments)?;
    fits(arguments, &workload)?;
    let server = match &arguments.target {
        Some(target) => ServerUnderTest::Named(target.clone()),
        None => {
            let settings = LabServerSettings { storage: arguments.storage.settings(), ..LabServerSettings::default() };
            ServerUnderTest::Private(Private { launcher: lab::kept()?, settings })
        }
    };
    Ok(RunOptions {
        plan: plan(arguments, &workload),
        capacity: arguments.find_capacity.clone().map(|criterion| (criterion, search(arguments))),
        prepare: (!arguments.no_prepare).then_some(arguments.connect.prepare_timeout),
        cluster: cluster(arguments)?,
        capture: arguments.capture,
        max_errors_percent: arguments.max_errors,
        server_metrics: arguments.server_metrics.clone(),
        directory: arguments.output.clone(),
        sources: sources(arguments),
        title: arguments.title.clone(),
        command: to_repeat(std::env::args_os()),
        ..RunOptions::new(server, connect(&arguments.connect), workload)
    })
}

fn cluster(arguments: &BenchOptions) -> Result<Option<Cluster>, BadArguments> {
    let address = arguments.cluster.address.as_deref();
    address.map(|address| embedding::hosts(address, arguments.cluster.slots, arguments.on_lost_host)).transpose()
}

pub(super) fn connect(arguments: &ConnectOptions) -> Connect {
    let file = arguments.password_file.clone();
    let password = move |user: &str| Ok(password::read(user, file.as_deref())?);
    let mut connect = Connect::new(arguments.login, Box::new(password));
    connect.options = SessionOptions {
        dialect: arguments.dialect,
        signing: arguments.signing,
        signing_algorithm: arguments.signing_algorithm,
        encryption: arguments.encryption,
        transport: arguments.transport,
        timeout: arguments.timeout,
        compound: arguments.compound,
        raw: arguments.raw,
        leases: arguments.leases,
        ..connect.options
    };
    connect
}

fn workload(arguments: &BenchOptions) -> anyhow::Result<Workload> {
    if let Some(file) = &arguments.loadfile {
        return Ok(thinking(arguments, Workload::loadfile(file)?)?);
    }
    let name = &arguments.workload;
    let file = Path::new(name);
    let is_file = file.is_file() || name.contains(['/', '.']);
    let workload = if is_file { Workload::load(file)? } else { Workload::builtin(name)? };
    Ok(thinking(arguments, workload.set(&arguments.set)?)?)
}

/// Scales the pauses of the workload.
fn thinking(arguments: &BenchOptions, workload: Workload) -> Result<Workload, BadArguments> {
    let Some(Think::Recorded(by)) = arguments.think else { return Ok(workload) };
    if !workload.has_pauses() {
        let name = workload.name();
        return Err(BadArguments(format!(
            "{name} is neither a loadfile nor a recording, so --think has no pauses to scale: give a duration"
        )));
    }
    Ok(workload.thinking(by))
}

/// Rejects options that do not fit the workload, before anything is started.
fn fits(arguments: &BenchOptions, workload: &Workload) -> Result<(), BadArguments> {
    if let Some(criterion) = &arguments.find_capacity {
        criterion.check(workload.operations()).map_err(|error| BadArguments(EngineError::from(error).to_string()))?;
        let has_scenarios = workload.scenarios().is_some() && schedule(arguments, workload).is_open();
        if criterion.needs_scenarios() && !has_scenarios {
            let what = "overload is a share of scenarios: it needs a workload with [scenarios], and no --think";
            return Err(BadArguments(what.to_owned()));
        }
    }
    workload.check_dialect(arguments.connect.dialect).map_err(|error| BadArguments(error.to_string()))?;
    if arguments.passes.is_some() && !workload.has_end() {
        let name = workload.name();
        return Err(BadArguments(format!(
            "--passes needs a workload that has an end, and {name} has none: use --operations, or order = \"sequence\" in a TOML file"
        )));
    }
    Ok(())
}

fn sources(arguments: &BenchOptions) -> Sources {
    let workload = Some(Path::new(&arguments.workload)).filter(|_| arguments.loadfile.is_none());
    let files = [workload, arguments.loadfile.as_deref(), arguments.connect.password_file.as_deref()];
    let mut sources = Sources::default();
    files.into_iter().flatten().filter(|file| !file.is_dir()).for_each(|file| sources.add(file));
    sources
}

fn plan(arguments: &BenchOptions, workload: &Workload) -> RampPlan {
    let rates = arguments.rates.as_ref().map_or_else(Vec::new, |rates| rates.points().to_vec());
    let schedule = schedule(arguments, workload);
    let overload = workload.scenarios().filter(|_| schedule.is_open());
    // A search generates its own load points within the range.
    let (users, rates) = match (&arguments.find_capacity, rates.is_empty()) {
        (None, _) => (arguments.users(), rates),
        (Some(_), true) => (Users::range(search(arguments).first, search(arguments).most), rates),
        (Some(_), false) => (arguments.users(), vec![search(arguments).first, search(arguments).most]),
    };
    RampPlan {
        users,
        rates,
        sessions_per_user: arguments.sessions_per_user.into(),
        connections_per_session: arguments.connections_per_session.into(),
        schedule,
        overload: overload.map(|Scenarios { late, budget, .. }| OverloadLimits { late, budget }),
        warmup: arguments.warmup(),
        duration: arguments.duration(),
        connects: Connects { rate: f64::from(arguments.connect_rate), ..Connects::default() },
        workers: arguments.threads.and_then(|threads| NonZeroUsize::new(threads.into())),
        seed: arguments.seed,
        on_failure: arguments.on_failure,
        limits: LoadPointLimits {
            passes: arguments.passes,
            operations: arguments.operations,
            errors: arguments.stop_on_errors.map(ErrorLimit::Count),
            ..LoadPointLimits::default()
        },
        busy_poll: arguments.busy_poll,
        exchanges: arguments.capture || arguments.output.is_some(),
        by: arguments.by.clone(),
        ..RampPlan::default()
    }
}

/// Returns the schedule set by the arguments, or by the workload.
fn schedule(arguments: &BenchOptions, workload: &Workload) -> LoadSchedule {
    let arrivals = arguments.arrivals;
    let rates = arguments.rates.as_ref().and_then(|rates| rates.points().first());
    match (arguments.rate, arguments.rate_per_user, rates, workload.scenarios()) {
        (Some(rate), ..) => LoadSchedule::Open { rate, per_user: false, arrivals },
        (_, Some(rate), ..) => LoadSchedule::Open { rate, per_user: true, arrivals },
        (_, _, Some(rate), _) => LoadSchedule::Open { rate: f64::from(*rate), per_user: false, arrivals },
        (.., Some(Scenarios { rate, .. })) if arguments.think.is_none() => {
            LoadSchedule::Open { rate, per_user: true, arrivals }
        }
        _ => LoadSchedule::Closed {
            think: match arguments.think {
                Some(Think::Between(think)) => think,
                _ => Duration::ZERO,
            },
        },
    }
}

/// Returns the search range, spanned by the given users or rates.
fn search(arguments: &BenchOptions) -> Search {
    let users = arguments.users();
    let points = arguments.rates.as_ref().map_or(users.points(), |rates| rates.points());
    let (first, most) = (points.iter().copied().min().unwrap_or(1), points.iter().copied().max().unwrap_or(1));
    Search { first, most, rates: arguments.rates.is_some(), ..Search::default() }
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
