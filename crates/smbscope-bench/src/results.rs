//! What a run leaves: the document, and what is kept of it in a directory.

use crate::directory::RunDirectory;
use crate::document::nanos;
use crate::options::RunOptions;
use crate::ramp::Measured;
use crate::site::Site;
use crate::{environment, names};
use anyhow::{Context, bail};
use smbscope_lab::Server;
use smbscope_load::client::{Credentials, Facts};
use smbscope_load::engine::result::Run;
use smbscope_load::engine::{Arrivals, Exchanges, Plan, Schedule};
use smbscope_load::workload::Source;
use smbscope_model::Timestamp;
use smbscope_report::bench::tables::ServerMetric;
use smbscope_report::bench::{self, Document};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Values of the server's side that are kept: a day of seconds.
const METRICS_MAX: usize = 86_400;

/// Where a run is kept: a directory of the user's, or one that goes with the process.
pub(crate) enum Place {
    Kept(PathBuf),
    Passing(TempDir),
}

impl Place {
    /// The directory that is asked for, or one for captures alone.
    pub(crate) fn new(directory: Option<&Path>) -> anyhow::Result<Place> {
        match directory {
            Some(directory) => Ok(Place::Kept(directory.to_owned())),
            None => {
                let passing = tempfile::Builder::new().prefix("smbscope-bench-").tempdir();
                Ok(Place::Passing(passing.context("no temporary directory")?))
            }
        }
    }

    /// Where captures go.
    pub(crate) fn folder(&self) -> &Path {
        match self {
            Place::Kept(folder) => folder,
            Place::Passing(folder) => folder.path(),
        }
    }
}

/// Keeps what each load point yields, as soon as it is over.
pub(crate) struct Keeper<'a> {
    directory: Option<RunDirectory>,
    described: Described<'a>,
    metrics: &'a Metrics<'a>,
}

impl<'a> Keeper<'a> {
    /// In this directory, if any.
    pub(crate) fn new(
        directory: Option<RunDirectory>,
        described: Described<'a>,
        metrics: &'a Metrics<'a>,
    ) -> Keeper<'a> {
        Keeper { directory, described, metrics }
    }

    /// Where a capture of that name is to be written; absent where nothing is kept.
    pub(crate) fn capture(&mut self, name: &str) -> anyhow::Result<Option<PathBuf>> {
        self.directory.as_mut().map(|directory| directory.capture(name)).transpose()
    }

    /// A load point is over; `runs` are all so far.
    pub(crate) fn point(
        &mut self,
        run: &Run,
        exchanges: Option<&Exchanges>,
        runs: &[bench::Run],
    ) -> anyhow::Result<()> {
        let Some(directory) = &mut self.directory else { return Ok(()) };
        directory.add_histograms(run);
        if let Some(exchanges) = exchanges {
            directory.add_exchanges(&exchanges.list, exchanges.left_out)?;
        }
        let so_far = Measured { runs: runs.to_vec(), capacity: None, losses: Vec::new() };
        directory.keep(&self.described.document(so_far), &self.metrics.so_far())
    }

    /// The document of the whole run, kept too.
    pub(crate) fn finish(self, measured: Measured) -> (Document, anyhow::Result<()>) {
        let document = self.described.document(measured);
        let kept = match self.directory {
            Some(directory) => finish(directory, &document, &self.metrics.so_far()),
            None => Ok(()),
        };
        (document, kept)
    }
}

fn finish(mut directory: RunDirectory, document: &Document, metrics: &[ServerMetric]) -> anyhow::Result<()> {
    if directory.has_earlier() && document.runs.iter().all(|run| run.operations == 0) {
        let path = directory.path().display();
        bail!("nothing was measured: the earlier run in {path} was kept");
    }
    directory.keep(document, metrics)?;
    // Where there is no room for the table, there may be for the page.
    let table = directory.end_table();
    directory.keep_page(document)?;
    if directory.has_earlier() {
        // With the table, or not at all.
        table?;
        return directory.put_in_place();
    }
    directory.put_in_place()?;
    table
}

/// What is known of the server's side: of a private one, its processor time.
pub(crate) struct Metrics<'a> {
    server: Option<&'a Server>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    before: Option<(Instant, Duration)>,
    metrics: Vec<ServerMetric>,
}

impl<'a> Metrics<'a> {
    /// Of this server, if any.
    pub(crate) fn of(server: Option<&'a Server>) -> Metrics<'a> {
        Metrics { server, seen: Mutex::default() }
    }

    /// Notes what happened since the last look.
    pub(crate) fn look(&self) {
        let Some(server) = self.server else { return };
        let (now, used) = (Instant::now(), server.cpu_time());
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, used_before)) = seen.before.replace((now, used))
            && seen.metrics.len() < METRICS_MAX
        {
            // A process of the server that ended takes its time with it.
            let share = used.saturating_sub(used_before).as_secs_f64() / (now - before).as_secs_f64().max(1e-3);
            let metric = ServerMetric {
                time: crate::run::now(),
                metric: "cpu".into(),
                value: 100.0 * share,
                unit: "percent".into(),
            };
            seen.metrics.push(metric);
        }
    }

    fn so_far(&self) -> Vec<ServerMetric> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).metrics.clone()
    }
}

/// Everything that the document says beside what was measured.
pub(crate) struct Described<'a> {
    pub(crate) options: &'a RunOptions,
    pub(crate) site: &'a Site,
    pub(crate) facts: &'a Facts,
    pub(crate) started: Timestamp,
}

impl Described<'_> {
    /// The document of the run.
    pub(crate) fn document(&self, measured: Measured) -> Document {
        let mut environment = environment::of_client();
        if self.site.lab.is_some() {
            environment.insert("server".to_owned(), "a private Samba on the same machine".to_owned());
        }
        let mut warnings = measured.losses;
        if let (true, Credentials::Ntlm { user, .. }) = (self.facts.guest, &self.site.options.credentials) {
            warnings.push(format!(
                "The server does not know {user} and let everybody in as a guest, so nothing was signed."
            ));
        }
        warnings.extend(self.site.caveat().map(|caveat| format!("Slow link: {caveat}.")));
        let document = Document {
            generator: bench::Generator::new(env!("CARGO_PKG_VERSION")),
            title: self.options.title.clone(),
            target: self.target(),
            workload: self.workload(),
            settings: self.settings(),
            started_ns: self.started,
            environment,
            runs: measured.runs,
            capacity: measured.capacity,
            overall_response_time_ns: None,
            warnings,
        };
        document.completed()
    }

    fn target(&self) -> bench::Target {
        let options = &self.site.options;
        bench::Target {
            host: options.host.clone(),
            port: options.address.port(),
            share: options.share.clone(),
            directory: Some(self.site.directory.replace('\\', "/")),
            user: match &options.credentials {
                Credentials::Ntlm { user, .. } => Some(user.clone()),
                _ => None,
            },
            dialect: Some(self.facts.dialect.to_string()),
            signing: names::signing(options.signing).to_owned(),
            signing_algorithm: self.facts.signing.map(|algorithm| names::algorithm(algorithm).to_owned()),
            encryption: names::encryption(options.encryption).to_owned(),
            cipher: self.facts.cipher.map(|cipher| names::cipher(cipher).to_owned()),
        }
    }

    fn workload(&self) -> bench::Workload {
        let RunOptions { workload, plan, .. } = self.options;
        let files = workload.file_set();
        let sets = if files.shared { 1 } else { u64::from(plan.users.most()) * u64::from(plan.sessions_per_user) };
        bench::Workload {
            name: workload.name().to_owned(),
            source: match workload.source() {
                Source::BuiltIn => None,
                Source::File(name) => Some(name.clone()),
            },
            seed: Some(plan.seed),
            file_set: (files.files > 0)
                .then(|| bench::FileSet { files: sets * u64::from(files.files), bytes: sets * files.bytes() }),
            sha256: Some(workload.definition().sha256.clone()),
            definition: workload.definition().text.clone(),
        }
    }

    fn settings(&self) -> bench::Settings {
        let Plan { users, schedule, warmup, duration, connects, workers, .. } = &self.options.plan;
        let half = || std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
        bench::Settings {
            schedule: match *schedule {
                Schedule::Closed { think } => bench::Schedule::Closed { think_ns: nanos(think) },
                Schedule::Open { rate, per_user, arrivals } => {
                    bench::Schedule::Open { rate, per_user, random: arrivals == Arrivals::Poisson }
                }
            },
            users: users.points().to_vec(),
            rates: self.options.plan.rates.clone(),
            duration_ns: nanos(*duration),
            warmup_ns: nanos(*warmup),
            threads: workers.map_or_else(half, NonZeroUsize::get) as u32,
            sessions_per_user: self.options.plan.sessions_per_user,
            connections_per_session: self.options.plan.connections_per_session,
            busy_poll: self.options.plan.busy_poll,
            connects_per_second: Some(connects.rate),
            capture: self.options.capture,
        }
    }
}
