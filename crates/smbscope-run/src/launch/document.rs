//! Converts launches and their capture into the bench document.

use super::{ProgramFilesLocation, Series, SeriesOptions};
use crate::capture::{self, CaptureFacts, FinishedCapture};
use crate::document::{self, LoadPointCapture};
use crate::options::LaunchOptions;
use crate::{BenchError, environment};
use smbscope_crypto::key_ring::KeyRing;
use smbscope_load::engine::result::{ClientCpuUsage, LoadPointEnd, LoadPointResult, PacingResult};
use smbscope_load::engine::{FinishedJob, JobSummary};
use smbscope_model::{CommandGroup, Exchange, Nanos, Timestamp};
use smbscope_report::Answer;
use smbscope_report::bench::{self, BenchDocument, ServerLoad};
use smbscope_stats::{Aggregator, Covered, Summary, SummaryPrecision, derived};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub(super) const CAPTURE: &str = "point-01-1-users.pcap";

#[derive(Debug, Clone, Copy)]
pub(super) struct Launched {
    pub(super) started: Timestamp,
    pub(super) elapsed: Duration,
}

impl Launched {
    fn end(&self) -> Timestamp {
        Timestamp(self.started.0.saturating_add(Nanos::from(self.elapsed).0))
    }
}

struct LaunchTraffic<'l> {
    launches: &'l [Launched],
    jobs: Vec<FinishedJob>,
    covered: Vec<Covered>,
    counted: Aggregator,
    dialect: Option<String>,
}

impl<'l> LaunchTraffic<'l> {
    fn from_launches(launches: &'l [Launched]) -> LaunchTraffic<'l> {
        let job = |launch: &Launched| FinishedJob {
            session: 0,
            started: launch.started,
            elapsed: launch.elapsed,
            waited: Duration::ZERO,
            files: 0,
            bytes_read: 0,
            bytes_written: 0,
        };
        LaunchTraffic {
            launches,
            jobs: launches.iter().map(job).collect(),
            covered: vec![Covered::default(); launches.len()],
            counted: Aggregator::new(),
            dialect: None,
        }
    }

    fn record(&mut self, exchange: &Exchange) {
        let is_command = exchange.group != CommandGroup::Waiting;
        let (Some(first), Some(last), true) = (exchange.request.first, exchange.response.last, is_command) else {
            return;
        };
        let Some(at) = self.launches.partition_point(|launch| launch.started <= first.time).checked_sub(1) else {
            return;
        };
        let launch = &self.launches[at];
        if first.time >= launch.end() {
            return;
        }
        if let Some(dialect) = exchange.dialect.filter(|_| self.dialect.is_none()) {
            self.dialect = Some(dialect.to_string());
        }
        let job = &mut self.jobs[at];
        let waited = self.covered[at].add(first.time, last.time.min(launch.end()));
        job.waited += Duration::from_nanos(waited.0.unsigned_abs());
        job.files +=
            u64::from(exchange.group == CommandGroup::OpenClose && smbscope_model::groups::opens(exchange.command));
        if let Some(moved) = derived::moved(exchange) {
            *(if exchange.group == CommandGroup::Write { &mut job.bytes_written } else { &mut job.bytes_read }) +=
                moved;
        }
        self.counted.record(exchange);
    }
}

impl Series {
    pub(super) fn document(
        &self,
        launches: &[Launched],
        ended: LoadPointEnd,
        taken: Option<&Result<FinishedCapture, String>>,
        keys: Option<Arc<KeyRing>>,
        load: Option<ServerLoad>,
    ) -> Result<(LoadPointResult, BenchDocument), BenchError> {
        let mut shown = LaunchTraffic::from_launches(launches);
        let port = self.server.map_or(0, |server| server.port());
        let facts = taken.map(|taken| {
            let taken = taken.as_ref().map_err(String::clone)?;
            capture::read(taken, port, keys, &mut |exchange| shown.record(exchange))
        });
        let LaunchTraffic { jobs: list, counted, dialect, .. } = shown;
        let run = run(launches, list, counted, ended);
        let mut point = document::load_point(&run, LoadPointCapture::NotAsked);
        // The CPU time of the launched program is unknown.
        point.client_cpu = None;
        point.server = load;
        let mut warnings = Vec::new();
        let is_seen = match facts {
            None => false,
            Some(Err(why)) => {
                point.capture = Some(bench::RunCapture::Skipped { why });
                false
            }
            Some(Ok(CaptureFacts { quality, packets, dropped_packets, .. })) => {
                point.capture = Some(bench::RunCapture::Made(bench::Captured {
                    file: Some(CAPTURE.to_owned()),
                    quality,
                    packets,
                    dropped_packets,
                    client_commands: run.answered(),
                    wire_commands: run.answered(),
                    matched: None,
                    server: None,
                }));
                if run.answered() == 0 && !launches.is_empty() {
                    warnings.push(
                        "The capture contains no command of the launches: the program used no file on the share, or \
                         all of them were cached."
                            .to_owned(),
                    );
                }
                true
            }
        };
        if let Some(jobs) = point.jobs.as_mut().filter(|_| !is_seen && self.server.is_some()) {
            jobs.waited_sum_ns = None;
            jobs.list.iter_mut().for_each(|job| job.waited_ns = None);
        }
        let document = self.described(point, dialect, warnings);
        Ok((run, document.completed()))
    }

    fn described(&self, run: bench::BenchRun, seen_dialect: Option<String>, warnings: Vec<String>) -> BenchDocument {
        let SeriesOptions { launch, until, files, invocation, .. } = &self.options;
        let mut environment = environment::of_client();
        environment.extend(self.site.iter().flat_map(|(site, _)| site.environment()));
        let storage = environment::storage(self.place.path());
        environment.extend(storage.map(|storage| ("folder".to_owned(), storage)));
        let program = launch.command.first().map_or("", String::as_str);
        let name = program.rsplit('/').next().unwrap_or(program).to_owned();
        BenchDocument {
            generator: bench::Generator::new(env!("CARGO_PKG_VERSION")),
            title: launch.title.clone(),
            answer: Answer::default(),
            target: self.target(seen_dialect),
            workload: bench::WorkloadEntry {
                name: name.clone(),
                source: None,
                parameters: BTreeMap::new(),
                seed: None,
                file_set: None,
                sha256: None,
                definition: None,
            },
            settings: settings(launch),
            started_ns: self.started,
            environment,
            runs: vec![run],
            capacity: None,
            overall_response_time_ns: None,
            warnings,
            invocation: invocation.clone().map(|command| bench::Invocation {
                command,
                directory: launch.output.as_ref().map(|directory| directory.display().to_string()),
            }),
            launch: Some(bench::Launch {
                program: name,
                command: launch.command.clone(),
                until: until.to_string(),
                caches: if launch.cold { bench::Caches::Cold } else { bench::Caches::Warm },
                mounted_by: match files {
                    ProgramFilesLocation::Share(share) => share.mounter.map(|mounter| mounter.name().to_owned()),
                    _ => None,
                },
            }),
        }
    }

    fn target(&self, seen_dialect: Option<String>) -> bench::TargetEntry {
        if let Some((site, facts)) = &self.site {
            return site.described(facts);
        }
        let (host, port) = match self.server {
            Some(server) => (server.ip().to_string(), server.port()),
            None => (bench::THIS_MACHINE.to_owned(), 0),
        };
        bench::TargetEntry {
            host,
            port,
            share: self.place.path().display().to_string(),
            directory: None,
            user: None,
            dialect: seen_dialect.or_else(|| self.server.is_none().then(|| "local".to_owned())),
            signing: document::signing(smbscope_client::ClientSigningPolicy::On).to_owned(),
            signing_algorithm: None,
            encryption: document::encryption(smbscope_client::Encryption::Off).to_owned(),
            cipher: None,
        }
    }
}

fn settings(options: &LaunchOptions) -> bench::RampSettings {
    bench::RampSettings {
        schedule: bench::LoopModel::Closed { think_ns: Nanos(0) },
        users: vec![1],
        rates: Vec::new(),
        duration_ns: Nanos(0),
        warmup_ns: Nanos(0),
        threads: 1,
        sessions_per_user: 1,
        connections_per_session: 1,
        busy_poll: false,
        connects_per_second: None,
        max_errors_percent: None,
        passes: Some(options.repetitions),
        capture: options.capture,
    }
}

fn run(launches: &[Launched], list: Vec<FinishedJob>, counted: Aggregator, ended: LoadPointEnd) -> LoadPointResult {
    let sum = |of: fn(&FinishedJob) -> u64| list.iter().map(of).sum();
    let (bytes_read, bytes_written) = (sum(|job| job.bytes_read), sum(|job| job.bytes_written));
    let mut jobs = JobSummary::default();
    list.into_iter().for_each(|job| jobs.completed(job));
    let started = launches.first().map_or(Timestamp(0), |launch| launch.started);
    let length: Duration = launches.iter().map(|launch| launch.elapsed).sum();
    LoadPointResult {
        users: 1,
        started,
        // The sum of the launches, so that rates describe the program's startup only.
        duration: length,
        warmup: Duration::ZERO,
        counted,
        due: None,
        operations: Vec::new(),
        bytes_read,
        bytes_written,
        intervals: Vec::new(),
        connects: Summary::new(SummaryPrecision::ROW),
        connect_commands: BTreeMap::new(),
        failures: BTreeMap::new(),
        unanswered: 0,
        stalls: Vec::new(),
        client_cpu: ClientCpuUsage {
            user: Duration::ZERO,
            system: Duration::ZERO,
            busy_poll: false,
            busiest: 0.0,
            limited: false,
            late_p99: None,
            late_max: None,
        },
        ended,
        pace: PacingResult::Closed,
        jobs: Some(jobs),
        queue: None,
        hosts: Vec::new(),
        overload: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_testkit::exchange::read;

    /// Two launches of 100 ms at 0 and 200 ms, with reads worked out by hand.
    #[test]
    fn a_command_counts_to_the_launch_in_which_it_began() {
        const MS: i64 = 1_000_000;
        let launch = |at: i64| Launched { started: Timestamp(at * MS), elapsed: Duration::from_millis(100) };
        let launches = [launch(0), launch(200)];
        let mut shown = LaunchTraffic::from_launches(&launches);
        // 10–30 and 20–40 ms overlap; 90–150 ms counts up to the end of the launch; 150 ms is between the launches.
        for (start, took) in [(10, 20), (20, 20), (90, 60), (150, 10), (250, 5), (350, 5)] {
            shown.record(&read(start * MS, took * MS));
        }
        let waited: Vec<u128> = shown.jobs.iter().map(|job| job.waited.as_millis()).collect();
        assert_eq!(waited, [30 + 10, 5]);
        let run = run(&launches, shown.jobs, shown.counted, LoadPointEnd::Done);
        assert_eq!((run.answered(), run.duration.as_millis()), (4, 200));
    }
}
