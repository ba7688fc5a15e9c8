//! Runs a benchmark: [`Bench`] goes from [`RunOptions`] to the document (settings, target, environment, load points),
//! and to the files that are written as soon as each load point is over.
//!
//! `setup` holds everything that stays the same during the run and creates the workload's files, and `ramp` runs the
//! load points.

pub mod progress;
mod ramp;
pub(crate) mod setup;

use crate::bench::progress::{BenchObserver, Heading};
use crate::bench::ramp::{CapturedKeys, Captures};
use crate::bench::setup::{RunOptions, Setup, create_files};
use crate::capture::{SnapLength, Sniffers};
use crate::directory::RunDirectory;
use crate::environment::now;
use crate::exposition::{MetricsEndpoint, MetricsRegistry};
use crate::metrics::Metrics;
use crate::options::CapturePoints;
use crate::server::{Site, probe};
use crate::{BenchError, document, environment};
use smbscope_client::{Credentials, KeyLog, SessionParameters};
use smbscope_lab::{LinkEmulation, Workplace};
use smbscope_load::engine::result::LoadPointResult;
use smbscope_load::engine::{Arrivals, ExchangeLog, Fleet, LoadSchedule, RampPlan};
use smbscope_load::workload::WorkloadSource;
use smbscope_report::bench::BenchDocument;
use smbscope_report::bench::files::ServerMetric;
use smbscope_report::{Answer, bench};
use std::num::NonZeroUsize;
use std::path::PathBuf;
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

    pub(crate) fn facts(&self) -> &SessionParameters {
        &self.setup.facts
    }

    /// Creates the workload's files, runs all load points and stores the results. Ends early with the measurements so
    /// far if `stop` is set or the observer asks for it.
    pub fn run(self, progress: &mut dyn BenchObserver, stop: &AtomicBool) -> Result<BenchOutcome, BenchError> {
        let Bench { setup, directory, fleet, sniffers, exposed: (registry, endpoint) } = self;
        if let Some(within) = setup.options.bench.prepare_within() {
            create_files(&setup, within, progress, stop)?;
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

#[derive(Debug, Clone, Default)]
struct RampResults {
    runs: Vec<bench::BenchRun>,
    capacity: Option<bench::CapacityEntry>,
    losses: Vec<String>,
}

impl Site {
    pub(crate) fn described(&self, facts: &SessionParameters) -> bench::TargetEntry {
        let options = &self.options;
        bench::TargetEntry {
            host: options.host.clone(),
            port: options.address.port(),
            share: options.share.clone(),
            directory: Some(self.directory.replace('\\', "/")),
            user: match &options.credentials {
                Credentials::Ntlm { user, .. } => Some(user.clone()),
                _ => None,
            },
            dialect: Some(facts.dialect.to_string()),
            signing: document::signing(options.signing).to_owned(),
            signing_algorithm: facts.signing.map(|algorithm| document::algorithm(algorithm).to_owned()),
            encryption: document::encryption(options.encryption).to_owned(),
            cipher: facts.cipher.map(|cipher| document::cipher(cipher).to_owned()),
        }
    }
}

impl Setup {
    fn document(&self, measured: RampResults) -> BenchDocument {
        let mut environment = environment::of_client();
        environment.extend(self.site.environment());
        if !self.hosts.is_empty() {
            environment.insert("load hosts".to_owned(), self.hosts.join(", "));
        }
        let folder = self.site.lab.as_ref().map(|lab| lab.share_folder());
        let storage = folder.or(self.site.options.folder.as_deref()).and_then(environment::storage);
        environment.extend(storage.map(|storage| ("storage".to_owned(), storage)));
        let mut warnings = measured.losses;
        if let (true, Credentials::Ntlm { user, .. }) = (self.facts.guest, &self.site.options.credentials) {
            warnings.push(format!(
                "The server does not know {user} and let all users in as guests, so nothing was signed."
            ));
        }
        warnings.extend(
            self.site.lab_record().and_then(|lab| lab.link?.caveat()).map(|caveat| format!("Slow link: {caveat}.")),
        );
        let mut runs = measured.runs;
        if self.site.options.folder.is_some() {
            // In a folder run the client's threads do the file system's work, so a busy thread is not a client
            // bottleneck.
            runs.iter_mut().filter_map(|run| run.client_cpu.as_mut()).for_each(|cpu| cpu.limited = false);
        }
        let document = BenchDocument {
            generator: bench::Generator::new(env!("CARGO_PKG_VERSION")),
            title: self.options.bench.title.clone(),
            answer: Answer::default(),
            target: self.site.described(&self.facts),
            workload: self.workload(),
            settings: self.settings(),
            started_ns: self.started,
            environment,
            runs,
            capacity: measured.capacity,
            overall_response_time_ns: None,
            warnings,
            invocation: self.options.command.clone().map(|command| bench::Invocation {
                command,
                directory: self.options.bench.output.as_ref().map(|directory| directory.display().to_string()),
            }),
            launch: None,
        };
        document.completed()
    }

    fn workload(&self) -> bench::WorkloadEntry {
        let RunOptions { workload, plan, .. } = &self.options;
        let files = workload.file_set();
        let sets = if files.shared { 1 } else { u64::from(plan.sessions.of_users(plan.users.most())) };
        bench::WorkloadEntry {
            name: workload.name().to_owned(),
            source: match workload.source() {
                WorkloadSource::BuiltIn => None,
                WorkloadSource::File(name) => Some(name.clone()),
            },
            parameters: workload.parameters().iter().cloned().collect(),
            seed: Some(plan.seed),
            file_set: (files.files > 0)
                .then(|| bench::FileSetTotals { files: sets * u64::from(files.files), bytes: sets * files.bytes() }),
            sha256: Some(workload.definition().sha256.clone()),
            definition: workload.definition().text.clone(),
        }
    }

    fn settings(&self) -> bench::RampSettings {
        let RampPlan { users, schedule, warmup, duration, connects, workers, .. } = &self.options.plan;
        let half = || std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
        bench::RampSettings {
            schedule: match *schedule {
                LoadSchedule::Closed { think } => bench::LoopModel::Closed { think_ns: think.into() },
                LoadSchedule::Open { rate, per_user, arrivals } => {
                    bench::LoopModel::Open { rate, per_user, random: arrivals == Arrivals::Poisson }
                }
            },
            users: users.points().to_vec(),
            rates: self.options.plan.rates.clone(),
            duration_ns: (*duration).into(),
            warmup_ns: (*warmup).into(),
            threads: workers.map_or_else(half, NonZeroUsize::get) as u32,
            sessions_per_user: self.options.plan.sessions.most(),
            connections_per_session: self.options.plan.connections_per_session,
            busy_poll: self.options.plan.busy_poll,
            passes: self.options.plan.limits.passes,
            connects_per_second: Some(connects.rate),
            max_errors_percent: Some(self.options.bench.max_errors),
            capture: self.options.bench.capture.is_some(),
        }
    }
}

struct RunResultWriter<'a> {
    setup: &'a Setup,
    metrics: &'a Metrics,
    store: Store,
}

enum Store {
    Kept(RunDirectory),
    Passing(Workplace),
}

impl<'a> RunResultWriter<'a> {
    /// Writes into `directory`. Without one, only captures are written, to a temporary folder.
    fn new(
        setup: &'a Setup,
        directory: Option<RunDirectory>,
        metrics: &'a Metrics,
    ) -> Result<RunResultWriter<'a>, BenchError> {
        let store = match directory {
            Some(directory) => Store::Kept(directory),
            None => Store::Passing(Workplace::open().map_err(BenchError::Lab)?),
        };
        Ok(RunResultWriter { setup, metrics, store })
    }

    fn capture(&mut self, name: &str) -> Result<PathBuf, BenchError> {
        match &mut self.store {
            Store::Kept(directory) => directory.capture(name),
            Store::Passing(folder) => Ok(folder.path().join(name)),
        }
    }

    /// Stores the session keys of a capture, if there is a run directory.
    fn keys(&mut self, capture: &str, keys: &str) -> Result<(), BenchError> {
        match &mut self.store {
            Store::Kept(directory) => directory.keys(capture, keys),
            Store::Passing(_) => Ok(()),
        }
    }

    fn point(
        &mut self,
        run: &LoadPointResult,
        exchanges: Option<&ExchangeLog>,
        so_far: &RampResults,
    ) -> Result<(), BenchError> {
        let Store::Kept(directory) = &mut self.store else { return Ok(()) };
        directory.add_histograms(run);
        if let Some(exchanges) = exchanges {
            directory.add_exchanges(&exchanges.list, exchanges.left_out)?;
        }
        directory.keep(&self.setup.document(so_far.clone()), &self.metrics.so_far())
    }

    fn finish(self, document: &BenchDocument) -> Result<(), BenchError> {
        match self.store {
            Store::Kept(directory) => store(directory, document, &self.metrics.so_far()),
            Store::Passing(_) => Ok(()),
        }
    }
}

fn store(mut directory: RunDirectory, document: &BenchDocument, metrics: &[ServerMetric]) -> Result<(), BenchError> {
    if directory.has_earlier() && document.runs.iter().all(|run| run.operations == 0) {
        return Err(BenchError::NothingMeasured(directory.path().to_owned()));
    }
    directory.keep(document, metrics)?;
    // A disk too full for the table may still have room for the page.
    let table = directory.end_table();
    directory.keep_page(document)?;
    if directory.has_earlier() {
        // An earlier run is replaced only if the table is complete.
        table?;
        return directory.put_in_place();
    }
    directory.put_in_place()?;
    table
}
