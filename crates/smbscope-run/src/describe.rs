//! Builds the document of a run: settings, target, environment and results.

use crate::options::RunOptions;
use crate::setup::Setup;
use crate::site::Site;
use crate::{environment, names};
use smbscope_client::{Credentials, SessionParameters};
use smbscope_load::engine::{Arrivals, LoadSchedule, RampPlan};
use smbscope_load::workload::WorkloadSource;
use smbscope_report::Answer;
use smbscope_report::bench::{self, BenchDocument};
use std::num::NonZeroUsize;

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
            signing: names::signing(options.signing).to_owned(),
            signing_algorithm: facts.signing.map(|algorithm| names::algorithm(algorithm).to_owned()),
            encryption: names::encryption(options.encryption).to_owned(),
            cipher: facts.cipher.map(|cipher| names::cipher(cipher).to_owned()),
        }
    }
}

impl Setup {
    pub(crate) fn document(&self, measured: RampResults) -> BenchDocument {
        let mut environment = environment::of_client();
        if self.site.lab.is_some() {
            let version = smbscope_lab::version().map_or_else(String::new, |version| format!(" {version}"));
            environment.insert("server".to_owned(), format!("a private Samba{version} on the same machine"));
        }
        if !self.hosts.is_empty() {
            environment.insert("load hosts".to_owned(), self.hosts.join(", "));
        }
        let folder = self.site.lab.as_ref().map(|lab| lab.share_folder());
        let storage = folder.or(self.site.options.folder.as_deref()).and_then(environment::storage);
        environment.extend(storage.map(|storage| ("storage".to_owned(), storage)));
        let mut warnings = measured.losses;
        if let (true, Credentials::Ntlm { user, .. }) = (self.facts.guest, &self.site.options.credentials) {
            warnings.push(format!(
                "The server does not know {user} and let everybody in as a guest, so nothing was signed."
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
            title: self.options.title.clone(),
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
                directory: self.options.directory.as_ref().map(|directory| directory.display().to_string()),
            }),
            launch: None,
        };
        document.completed()
    }

    fn workload(&self) -> bench::WorkloadEntry {
        let RunOptions { workload, plan, .. } = &self.options;
        let files = workload.file_set();
        let sets = if files.shared { 1 } else { u64::from(plan.users.most()) * u64::from(plan.sessions_per_user) };
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
            sessions_per_user: self.options.plan.sessions_per_user,
            connections_per_session: self.options.plan.connections_per_session,
            busy_poll: self.options.plan.busy_poll,
            passes: self.options.plan.limits.passes,
            connects_per_second: Some(connects.rate),
            max_errors_percent: Some(self.options.max_errors_percent),
            capture: self.options.capture,
        }
    }
}
