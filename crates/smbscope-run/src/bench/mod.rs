//! Runs a benchmark: [`Bench`] goes from [`RunOptions`] to the document.
//!
//! `prepare` creates the workload's files, `ramp` runs the load points, and `results` describes and stores them.

pub(crate) mod prepare;
pub mod progress;
mod ramp;
mod results;
pub(crate) mod setup;

use crate::BenchError;
use crate::bench::progress::{BenchObserver, Heading};
use crate::bench::ramp::{CapturedKeys, Captures};
use crate::bench::results::RunResultWriter;
use crate::bench::setup::{RunOptions, Setup};
use crate::capture::{SnapLength, Sniffers};
use crate::directory::RunDirectory;
use crate::environment::now;
use crate::exposition::{MetricsEndpoint, MetricsRegistry};
use crate::metrics::Metrics;
use crate::options::CapturePoints;
use crate::server::{Site, probe};
use smbscope_client::KeyLog;
use smbscope_lab::LinkEmulation;
use smbscope_load::engine::{Fleet, RampPlan};
use smbscope_report::bench::BenchDocument;
use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

/// Threads on a local folder; more users share them.
const FOLDER_THREADS_MAX: usize = 256;

/// A run that is ready to start: the server has answered, and there is a place for the results.
pub struct Bench {
    setup: Setup,
    directory: Option<RunDirectory>,
    fleet: Option<Fleet>,
    /// `None` if no captures were asked for.
    sniffers: Option<Result<Sniffers, String>>,
    /// Figures for Prometheus, with the server that exposes them if one was asked for.
    exposed: (MetricsRegistry, Option<MetricsEndpoint>),
}

#[derive(Debug)]
pub struct BenchOutcome {
    pub document: BenchDocument,
    /// Result of writing the run directory. `Ok` if none was requested.
    pub kept: Result<(), BenchError>,
}

impl Bench {
    /// Prepares the run directory, finds or starts the server, and connects to it once. Leaves nothing on the server if
    /// it fails.
    pub fn open(mut options: RunOptions) -> Result<Bench, BenchError> {
        let started = now();
        let registry = MetricsRegistry::new();
        let endpoint = MetricsEndpoint::open(&options.bench.metrics, &registry)?;
        let open = |path| RunDirectory::open(path, &options.sources);
        let directory = options.bench.output.as_deref().map(open).transpose()?;
        let is_here = options.cluster.is_none();
        options.connect.options.key_log = (options.bench.capture.is_some() && is_here).then(KeyLog::default);
        let site = Site::open(&options.server, &options.connect)?;
        if site.options.folder.is_some() {
            adapt_to_folder(&mut options)?;
        }
        let facts = probe(&site.options)?;
        let sniffers = sniffers(&options, &site)?;
        let cluster = options.cluster.take();
        let mut setup = Setup { options, started, site, hosts: Vec::new(), facts };
        let fleet = cluster.map(|cluster| setup.fleet(cluster)).transpose()?;
        Ok(Bench { setup, directory, fleet, sniffers, exposed: (registry, endpoint) })
    }

    pub fn heading(&self) -> Heading {
        let Setup { options, site, facts, .. } = &self.setup;
        Heading { workload: options.workload.name().to_owned(), target: site.heading(facts) }
    }

    /// Returns the emulated link to the private server. `None` if no link is emulated.
    pub(crate) fn lab_link(&self) -> Option<LinkEmulation> {
        self.setup.site.lab_record()?.link
    }

    /// Creates the workload's files, runs all load points and stores the results. Ends early with the measurements so
    /// far if `stop` is set or the observer asks for it.
    pub fn run(self, progress: &mut dyn BenchObserver, stop: &AtomicBool) -> Result<BenchOutcome, BenchError> {
        let Bench { setup, directory, fleet, sniffers, exposed: (registry, endpoint) } = self;
        if let Some(within) = setup.options.bench.prepare_within() {
            prepare::create_files(&setup, within, progress, stop)?;
        }
        let keep = setup.options.bench.keep_keys || setup.site.lab_record().is_some();
        let keys = CapturedKeys { log: setup.site.options.key_log.clone(), keep };
        let captures = Captures::new(setup.site.options.address, sniffers, keys);
        if let Some(why) = captures.why_not() {
            progress.note(&format!("no capture: {why}"));
        }
        let (address, lab) = (setup.site.options.address, setup.site.lab_record());
        tracing::info!(server = %address, private = lab.is_some(), "the load begins");
        let metrics = Metrics::new(address, lab, setup.options.bench.server_metrics.server_metrics.as_ref());
        let mut keeper = RunResultWriter::new(&setup, directory, &metrics)?;
        let exposed = endpoint.is_some().then_some(&registry);
        let measured = ramp::run(&setup, fleet, (captures, exposed), &mut keeper, progress, stop)?;
        let document = setup.document(measured);
        let kept = keeper.finish(&document);
        Ok(BenchOutcome { document, kept })
    }
}

/// Prepares the captures. A capture at the client that is not possible is reported with the load points; both ends are
/// captured or the run doesn't begin.
fn sniffers(options: &RunOptions, site: &Site) -> Result<Option<Result<Sniffers, String>>, BenchError> {
    let Some(points) = options.bench.capture else { return Ok(None) };
    let bytes = if options.workload.has_queues() { SnapLength::All } else { SnapLength::First512 };
    let lab = (points == CapturePoints::Both).then(|| site.far_lab_record()).flatten();
    let found = Sniffers::find(points, site.options.address, lab.as_ref(), bytes);
    if points == CapturePoints::Client {
        return Ok(Some(found));
    }
    let found = found.map_err(|why| points.refused(&why))?;
    found.check(|| probe(&site.options)).map_err(|why| points.refused(&why))??;
    Ok(Some(Ok(found)))
}

/// Gives each user of a local folder a thread, because file system calls block. Refuses options that need SMB.
fn adapt_to_folder(options: &mut RunOptions) -> Result<(), BenchError> {
    let RampPlan { users, sessions, connections_per_session, workers, .. } = &mut options.plan;
    let of_smb = match (options.bench.capture.is_some(), *connections_per_session) {
        (true, _) => Some("--capture needs packets"),
        (_, 2..) => Some("several connections a session are of SMB 3"),
        _ => None,
    };
    if let Some(what) = of_smb {
        return Err(BenchError::Unavailable(format!("{what}, and the target is a local folder: omit it")));
    }
    let sessions = sessions.of_users(users.most()) as usize;
    *workers = workers.or(NonZeroUsize::new(sessions.min(FOLDER_THREADS_MAX)));
    Ok(())
}
