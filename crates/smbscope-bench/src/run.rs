//! A run from its options to its document.

use crate::directory::RunDirectory;
use crate::options::RunOptions;
use crate::prepare;
use crate::progress::{Heading, Progress};
use crate::ramp::Ramp;
use crate::results::{Described, Keeper, Metrics, Place};
use crate::site::Site;
use crate::sniffer::Sniffer;
use anyhow::Context;
use smbscope_load::client::{self, Facts, Options, Session};
use smbscope_load::workload::{Script, Step, UserScript, UserSeat};
use smbscope_model::Timestamp;
use smbscope_report::bench::Document;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::runtime::Builder;

/// A run that can begin: its server has answered, and its results have a place.
pub struct Bench {
    options: RunOptions,
    started: Timestamp,
    directory: Option<RunDirectory>,
    site: Site,
    facts: Facts,
}

/// What came out of a run.
#[derive(Debug)]
pub struct Outcome {
    /// All of it.
    pub document: Document,
    /// Whether it was kept, where that was asked for.
    pub kept: anyhow::Result<()>,
}

impl Bench {
    /// Finds a place for the results, finds or starts the server, and connects to it once. Whatever fails here leaves
    /// nothing behind.
    pub fn open(options: RunOptions) -> anyhow::Result<Bench> {
        let started = now();
        let open = |path| RunDirectory::open(path, &options.sources);
        let directory = options.directory.as_deref().map(open).transpose()?;
        let site = Site::open(&options.server, &options.connect)?;
        let facts = look(&site.options)?;
        Ok(Bench { options, started, directory, site, facts })
    }

    /// What is to be shown while it runs.
    pub fn heading(&self) -> Heading {
        Heading { workload: self.options.workload.name().to_owned(), target: self.site.heading(&self.facts) }
    }

    /// Makes the workload's files, runs all load points, and keeps and tells what came out; ends early, with what was
    /// measured until then, when `stop` is set or whoever watches wants it.
    pub fn run(self, progress: &mut dyn Progress, stop: &AtomicBool) -> anyhow::Result<Outcome> {
        let Bench { options, started, directory, site, facts } = self;
        let RunOptions { workload, plan, .. } = &options;
        let place = Place::new(options.directory.as_deref())?;
        let sessions = plan.users.most().saturating_mul(plan.sessions_per_user);
        if let Some(within) = options.prepare {
            prepare::run(&site, workload, sessions, within, progress, stop)?;
        }

        let scripts = |number: u32| -> Box<dyn Script> {
            let seat = UserSeat { number, of: sessions, seed: plan.seed, directory: site.directory.clone() };
            let script = workload.script(&seat);
            match options.passes {
                Some(passes) => Box::new(Passes { script, passes }),
                None => Box::new(script),
            }
        };
        let capture = options.capture.then(|| Sniffer::find(site.options.address));
        if let Some(Err(why)) = &capture {
            progress.note(&format!("no capture: {why}"));
        }
        let capacity = options.capacity.as_ref().map(|(criterion, search)| (criterion, *search));
        let metrics = Metrics::of(site.lab.as_ref());
        let described = Described { options: &options, site: &site, facts: &facts, started };
        let mut keeper = Keeper::new(directory, described, &metrics);
        let (metrics, folder) = (&metrics, place.folder());
        let ramp = Ramp { plan, options: &site.options, scripts: &scripts, capacity, capture, folder, metrics, stop };
        let measured = ramp.run(progress, &mut keeper)?;
        let (document, kept) = keeper.finish(measured);
        Ok(Outcome { document, kept })
    }
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

/// By the clock of the system.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}
