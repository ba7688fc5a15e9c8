//! `smbscope bench`: users of a workload on a server, up a ramp; what came out as one document, and a view while it runs.

mod clean;
mod dashboard;
pub(crate) mod directory;
pub(crate) mod document;
mod environment;
mod names;
mod password;
mod prepare;
mod proof;
mod ramp;
mod results;
mod site;
mod sniffer;
pub(crate) mod target;
mod wire;

use crate::BadArguments;
use crate::arguments::{BenchArguments, BenchFormat, BenchVerb, OnFailure};
use crate::interrupt::{self, Interrupted};
use crate::output::{Output, Sources};
use crate::terminal::say;
use anyhow::{Context, bail};
use dashboard::{Choice, Display, Heading};
use directory::RunDirectory;
use ramp::Ramp;
use results::{Described, Keeper, Metrics, Place};
use site::Site;
use smbscope_load::client::{self, Facts, Options, Session};
use smbscope_load::engine::{self, Connects, ErrorLimit, Limits, Plan, Schedule, Search, Users};
use smbscope_load::workload::{Script, Step, UserScript, UserSeat, Workload};
use smbscope_model::Timestamp;
use smbscope_report::bench::Ended;
use sniffer::Sniffer;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::Builder;

/// What passes before a user whose session broke connects again.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// Runs the command.
pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<()> {
    match &arguments.other {
        Some(BenchVerb::Clean(arguments)) => return clean::run(arguments),
        Some(BenchVerb::Workloads(arguments)) => return workloads(arguments.name.as_deref()),
        None => {}
    }
    let started = now();
    let workload = workload(arguments)?;
    let sources = sources(arguments);
    let mut output = Output::open(None, &sources)?;
    fits(arguments, &workload)?;
    if arguments.format == BenchFormat::Html {
        output.refuse_terminal("HTML")?;
    }
    let directory = arguments.output.as_deref().map(|path| RunDirectory::open(path, &sources)).transpose()?;
    let site = Site::open(arguments.target.as_ref(), &arguments.connect)?;
    let facts = look(&site.options)?;
    // Until here there was nothing to give back; from here on all ends in order.
    let interrupted = Arc::new(AtomicBool::new(false));
    interrupt::any_end_sets(&interrupted);
    let place = Place::new(arguments.output.as_deref())?;
    let heading = Heading { workload: workload.name().to_owned(), target: site.heading(&facts) };
    let mut display = Display::open(choice(arguments), heading);
    let plan = plan(arguments);
    let seed = arguments.seed;
    let sessions = plan.users.most().saturating_mul(plan.sessions_per_user);
    if !arguments.no_prepare {
        let within = arguments.connect.prepare_timeout;
        prepare::run(&site, &workload, sessions, within, &mut display, &interrupted)?;
    }

    let scripts = |number: u32| -> Box<dyn Script> {
        let seat = UserSeat { number, of: sessions, seed, directory: site.directory.clone() };
        let script = workload.script(&seat);
        match arguments.passes {
            Some(passes) => Box::new(Passes { script, passes }),
            None => Box::new(script),
        }
    };
    let capture = arguments.capture.then(|| Sniffer::find(site.options.address));
    if let Some(Err(why)) = &capture {
        say(&format!("no capture: {why}"));
    }
    let capacity = arguments.find_capacity.as_ref().map(|criterion| (criterion, search(arguments)));
    let metrics = Metrics::of(site.lab.as_ref());
    let described = Described { arguments, site: &site, facts: &facts, workload: &workload, plan: &plan, started };
    let mut keeper = Keeper::new(directory, described, &metrics);
    let (options, folder) = (&site.options, place.folder());
    let (metrics, interrupted) = (&metrics, &*interrupted);
    let ramp = Ramp { plan: &plan, options, scripts: &scripts, capacity, capture, folder, metrics, interrupted };
    let outcome = ramp.run(&mut display, &mut keeper)?;
    drop(display);

    let failed = outcome.runs.iter().find_map(|run| match &run.ended {
        Ended::Failed { why } => Some(why.clone()),
        _ => None,
    });
    // By a signal, or by a key on the dashboard.
    let was_interrupted = outcome.runs.iter().any(|run| run.ended == Ended::Interrupted);
    let (document, kept) = keeper.finish(outcome);
    let printed = results::print(&document, arguments, &mut output);
    output.settle(printed)?;
    kept?;
    match failed {
        Some(why) => bail!("the run failed: {why}"),
        None if was_interrupted => Err(Interrupted::said().into()),
        None => Ok(()),
    }
}

/// The files that a run is made from.
fn sources(arguments: &BenchArguments) -> Sources {
    let workload = Some(Path::new(&arguments.workload)).filter(|_| arguments.loadfile.is_none());
    let files = [workload, arguments.loadfile.as_deref(), arguments.connect.password_file.as_deref()];
    let mut sources = Sources::default();
    files.into_iter().flatten().filter(|file| !file.is_dir()).for_each(|file| sources.add(file));
    sources
}

/// What cannot wait when a signal ends the process at once.
pub(crate) fn leave() {
    dashboard::give_back();
}

/// A script that ends after some passes.
struct Passes {
    script: UserScript,
    passes: u32,
}

impl Script for Passes {
    fn operations(&self) -> &[String] {
        self.script.operations()
    }

    fn next(&mut self) -> Option<Step<'_>> {
        if self.script.passes() >= self.passes { None } else { self.script.next() }
    }

    fn restart(&mut self) {
        self.script.restart();
    }

    fn sets_up(&self) -> bool {
        self.script.sets_up()
    }

    fn passes(&self) -> u32 {
        self.script.passes()
    }
}

/// The workload that is asked for.
fn workload(arguments: &BenchArguments) -> anyhow::Result<Workload> {
    if let Some(file) = &arguments.loadfile {
        return Ok(Workload::loadfile(file)?);
    }
    let name = &arguments.workload;
    let file = Path::new(name);
    if file.is_file() || name.contains(['/', '.']) { Ok(Workload::load(file)?) } else { Ok(Workload::builtin(name)?) }
}

/// Refuses what is asked of a workload that has no such thing, before anything is begun.
fn fits(arguments: &BenchArguments, workload: &Workload) -> Result<(), BadArguments> {
    if let Some(criterion) = &arguments.find_capacity {
        criterion.check(workload.operations()).map_err(|error| BadArguments(error.to_string()))?;
    }
    if arguments.passes.is_some() && workload.steps_of_a_pass().is_none() {
        let name = workload.name();
        return Err(BadArguments(format!(
            "--passes needs a workload that has an end, and {name} has none: use --operations"
        )));
    }
    Ok(())
}

/// Lists the built-in workloads, or prints one.
fn workloads(name: Option<&str>) -> anyhow::Result<()> {
    let text = match name {
        Some(name) => match Workload::builtin_text(name) {
            Some(text) => text,
            // The error names those that there are.
            None => return Ok(Workload::builtin(name).map(drop)?),
        },
        None => Workload::built_in().into_iter().map(|(name, about)| format!("{name:<18}  {about}\n")).collect(),
    };
    Output::stdout()?.print(&text)
}

/// Connects once, so that a wrong password or a missing share is said before anything is begun.
fn look(options: &Options) -> anyhow::Result<Facts> {
    let runtime = Builder::new_current_thread().enable_all().build().context("no runtime for the client")?;
    runtime.block_on(async {
        let mut session = Session::connect(options).await.map_err(|error| match error {
            // It says where.
            client::Error::Foreign(foreign) => anyhow::Error::new(foreign),
            error => anyhow::Error::new(error).context(format!("cannot connect to {}", options.host)),
        })?;
        let facts = session.facts().clone();
        // What goes wrong with saying goodbye is no reason not to begin.
        let _said = session.disconnect().await;
        Ok(facts)
    })
}

fn choice(arguments: &BenchArguments) -> Choice {
    match (arguments.quiet, arguments.plain) {
        (true, _) => Choice::Quiet,
        (_, true) => Choice::Plain,
        _ => Choice::Auto,
    }
}

fn plan(arguments: &BenchArguments) -> Plan {
    let arrivals = arguments.arrivals.into();
    let rates = arguments.rates.as_ref().map_or_else(Vec::new, |rates| rates.points().to_vec());
    let schedule = match (arguments.rate, arguments.rate_per_user, rates.first()) {
        (Some(rate), _, _) => Schedule::Open { rate, per_user: false, arrivals },
        (_, Some(rate), _) => Schedule::Open { rate, per_user: true, arrivals },
        (_, _, Some(rate)) => Schedule::Open { rate: f64::from(*rate), per_user: false, arrivals },
        _ => Schedule::Closed { think: arguments.think.unwrap_or_default() },
    };
    // A search makes its own load points, from the least to the most.
    let (users, rates) = match (&arguments.find_capacity, rates.is_empty()) {
        (None, _) => (arguments.users(), rates),
        (Some(_), true) => (Users::range(search(arguments).first, search(arguments).most), rates),
        (Some(_), false) => (arguments.users(), vec![search(arguments).first, search(arguments).most]),
    };
    Plan {
        users,
        rates,
        sessions_per_user: arguments.sessions_per_user.into(),
        connections_per_session: arguments.connections_per_session.into(),
        schedule,
        warmup: arguments.warmup,
        duration: arguments.duration,
        connects: Connects { rate: f64::from(arguments.connect_rate), ..Connects::default() },
        workers: arguments.threads.and_then(|threads| NonZeroUsize::new(threads.into())),
        seed: arguments.seed,
        on_failure: match arguments.on_failure {
            OnFailure::End => engine::OnFailure::End,
            OnFailure::Reconnect => engine::OnFailure::Reconnect { delay: RECONNECT_DELAY },
        },
        limits: Limits {
            operations: arguments.operations,
            errors: arguments.stop_on_errors.map(ErrorLimit::Count),
            ..Limits::default()
        },
        busy_poll: arguments.busy_poll,
        exchanges: arguments.capture || arguments.output.is_some(),
        ..Plan::default()
    }
}

/// Between the fewest and the most of the users given, or between the lowest and the highest rate.
fn search(arguments: &BenchArguments) -> Search {
    let users = arguments.users();
    let points = arguments.rates.as_ref().map_or(users.points(), |rates| rates.points());
    let (first, most) = (points.iter().copied().min().unwrap_or(1), points.iter().copied().max().unwrap_or(1));
    Search { first, most, rates: arguments.rates.is_some(), ..Search::default() }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
