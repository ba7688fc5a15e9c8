//! Results of a run: its document (settings, target, environment, load points), and the files that are written as soon
//! as each load point is over.

use crate::bench::setup::{RunOptions, Setup};
use crate::directory::RunDirectory;
use crate::metrics::Metrics;
use crate::server::Site;
use crate::{BenchError, document, environment};
use smbscope_client::{Credentials, SessionParameters};
use smbscope_lab::Workplace;
use smbscope_load::engine::result::LoadPointResult;
use smbscope_load::engine::{Arrivals, ExchangeLog, LoadSchedule, RampPlan};
use smbscope_load::workload::WorkloadSource;
use smbscope_report::Answer;
use smbscope_report::bench::files::ServerMetric;
use smbscope_report::bench::{self, BenchDocument};
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Debug, Clone, Default)]
pub(crate) struct RampResults {
    pub(crate) runs: Vec<bench::BenchRun>,
    pub(crate) capacity: Option<bench::CapacityEntry>,
    pub(crate) losses: Vec<String>,
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
    pub(crate) fn document(&self, measured: RampResults) -> BenchDocument {
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

pub(crate) struct RunResultWriter<'a> {
    setup: &'a Setup,
    pub(crate) metrics: &'a Metrics,
    store: Store,
}

enum Store {
    Kept(RunDirectory),
    Passing(Workplace),
}

impl<'a> RunResultWriter<'a> {
    /// Writes into `directory`. Without one, only captures are written, to a temporary folder.
    pub(crate) fn new(
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

    pub(crate) fn capture(&mut self, name: &str) -> Result<PathBuf, BenchError> {
        match &mut self.store {
            Store::Kept(directory) => directory.capture(name),
            Store::Passing(folder) => Ok(folder.path().join(name)),
        }
    }

    /// Stores the session keys of a capture, if there is a run directory.
    pub(crate) fn keys(&mut self, capture: &str, keys: &str) -> Result<(), BenchError> {
        match &mut self.store {
            Store::Kept(directory) => directory.keys(capture, keys),
            Store::Passing(_) => Ok(()),
        }
    }

    pub(crate) fn point(
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

    pub(crate) fn finish(self, document: &BenchDocument) -> Result<(), BenchError> {
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
