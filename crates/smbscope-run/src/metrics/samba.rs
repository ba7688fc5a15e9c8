//! Samba's own figures: its clients, and the time inside smbd by operation.
//!
//! smbstatus(1) provides them. A process whose sandbox denies other programs reads them through a [`SambaReader`], a
//! separate process that answers each line on its standard input with a line of JSON.

use smbscope_lab::{SambaCount, SambaOperation, SambaStatus, SmbstatusReading};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Pause after an smbstatus call, as a multiple of its CPU time. smbstatus reads Samba's databases, which takes CPU
/// from the server. Waiting doesn't count, or a busy server would never be polled.
const REST: u32 = 20;

/// Name, unit and value of a metric.
pub(super) type MetricReading = (String, Cow<'static, str>, f64);

#[derive(Debug)]
pub(super) struct Samba {
    status: SambaStatus,
    profile: PollSchedule,
    clients: PollSchedule,
    before: Option<(Instant, BTreeMap<SambaOperation, SambaCount>)>,
}

/// Failures of smbstatus in a row; then it is asked only once in a while, because Samba may be started later.
const FAILURES_MAX: u32 = 3;
const AGAIN: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
struct PollSchedule {
    due: Instant,
    failures: u32,
    /// The last failure, if no call has succeeded since.
    failure: Option<String>,
}

impl PollSchedule {
    fn now() -> PollSchedule {
        PollSchedule { due: Instant::now(), failures: 0, failure: None }
    }

    fn take<T>(&mut self, ask: impl FnOnce() -> Result<SmbstatusReading<T>, String>) -> Option<T> {
        let begun = Instant::now();
        if self.due > begun {
            return None;
        }
        match ask() {
            Ok(reading) => {
                let rest = reading.cpu * REST;
                // Counting from the start keeps a one-second schedule from drifting.
                self.due = if rest < Duration::from_secs(1) { begun } else { Instant::now() + rest };
                (self.failures, self.failure) = (0, None);
                Some(reading.value)
            }
            Err(why) => {
                tracing::debug!("{why}");
                self.failures += 1;
                self.failure = Some(why);
                if self.failures >= FAILURES_MAX {
                    self.due = begun + AGAIN;
                }
                None
            }
        }
    }
}

impl Samba {
    pub(super) fn new(status: SambaStatus) -> Samba {
        Samba { status, profile: PollSchedule::now(), clients: PollSchedule::now(), before: None }
    }

    pub(super) fn missing(&self) -> Option<String> {
        let of_clients = || Some(format!("sessions and open files ({})", self.clients.failure.as_ref()?));
        let profile = self.profile.failure.as_ref().map(|why| format!("the time inside smbd ({why})"));
        profile.or_else(of_clients)
    }

    pub(super) fn look(&mut self) -> Vec<MetricReading> {
        let mut values = Vec::new();
        let status = &self.status;
        if let Some(clients) = self.clients.take(|| status.clients()) {
            for (name, count) in
                [("sessions", clients.sessions), ("open_files", clients.open_files), ("locks", clients.locks)]
            {
                values.push((format!("samba_{name}"), "count".into(), count as f64));
            }
        }
        if let Some(now) = self.profile.take(|| status.profile()) {
            let at = Instant::now();
            if let Some((before_at, before)) = &self.before {
                values.extend(since(before, &now, at - *before_at));
            }
            self.before = Some((at, now));
        }
        values
    }
}

/// Computes the rate and the mean time of each operation. Leaves out operations that were never performed.
fn since<'a>(
    before: &'a BTreeMap<SambaOperation, SambaCount>,
    now: &'a BTreeMap<SambaOperation, SambaCount>,
    passed: Duration,
) -> impl Iterator<Item = MetricReading> + 'a {
    let values = move |(operation, now): (&SambaOperation, &SambaCount)| {
        let before = before.get(operation).copied().unwrap_or_default();
        // The counters restart with Samba.
        let count = now.count.checked_sub(before.count).filter(|_| now.count > 0)? as f64;
        let time = now.time.checked_sub(before.time)?.as_nanos() as f64;
        let rate = (format!("samba_{operation}"), "1/s".into(), count / passed.as_secs_f64().max(1e-9));
        let mean = (format!("samba_{operation}_time"), "ns".into(), time / count);
        Some([Some(rate), (count > 0.0).then_some(mean)].into_iter().flatten())
    };
    now.iter().filter_map(values).flatten()
}

/// Source of Samba's figures.
#[derive(Debug)]
pub(super) enum SambaSource {
    Own(Samba),
    Reader(SambaReader),
}

impl SambaSource {
    pub(super) fn look(&mut self) -> Vec<MetricReading> {
        match self {
            SambaSource::Own(samba) => samba.look(),
            SambaSource::Reader(reader) => reader.look(),
        }
    }

    /// Returns the figures that are missing and why, if that is known.
    pub(super) fn missing(&self) -> Option<String> {
        match self {
            SambaSource::Own(samba) => samba.missing(),
            SambaSource::Reader(_) => None,
        }
    }
}

/// Process that runs smbstatus for this one, and ends with it, however that happens.
#[derive(Debug)]
pub struct SambaReader {
    child: Child,
    requests: Option<ChildStdin>,
    readings: BufReader<ChildStdout>,
}

impl SambaReader {
    /// Starts a command that has to call [`read_samba`]. Returns `None` without smbstatus.
    pub fn start(mut command: Command) -> io::Result<Option<SambaReader>> {
        if SambaStatus::find(None).is_none() {
            return Ok(None);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(requests), Some(readings)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both were asked for");
        };
        Ok(Some(SambaReader { child, requests: Some(requests), readings: BufReader::new(readings) }))
    }

    fn look(&mut self) -> Vec<MetricReading> {
        self.ask().unwrap_or_else(|error| {
            if self.requests.take().is_some() {
                tracing::warn!("Samba's figures are missing from now on: {error}");
            }
            Vec::new()
        })
    }

    fn ask(&mut self) -> io::Result<Vec<MetricReading>> {
        let Some(requests) = &mut self.requests else { return Ok(Vec::new()) };
        requests.write_all(b"\n")?;
        let mut line = String::new();
        if self.readings.read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the process that reads them has ended"));
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for SambaReader {
    fn drop(&mut self) {
        self.requests = None;
        let _ = self.child.wait();
    }
}

/// Called by the command passed to [`SambaReader::start`]. Returns when the process that started it ends.
pub fn read_samba() -> io::Result<()> {
    let Some(status) = SambaStatus::find(None) else { return Ok(()) };
    let mut samba = Samba::new(status);
    let (requests, mut readings) = (io::stdin().lock(), io::stdout().lock());
    for request in requests.lines() {
        request?;
        let mut line = serde_json::to_vec(&samba.look())?;
        line.push(b'\n');
        readings.write_all(&line)?;
        readings.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads: 10 more in 2 s, 30 ms altogether, so 5/s of 3 ms each. The close counter was reset.
    #[test]
    fn two_profiles_make_rates_and_mean_times() {
        let count = |count, milliseconds| SambaCount { count, time: Duration::from_millis(milliseconds) };
        let before = [
            (SambaOperation::Close, count(9, 9)),
            (SambaOperation::Read, count(5, 70)),
            (SambaOperation::Flush, count(1, 1)),
        ];
        let now = [
            (SambaOperation::Close, count(2, 2)),
            (SambaOperation::Read, count(15, 100)),
            (SambaOperation::Write, count(0, 0)),
            (SambaOperation::Flush, count(1, 1)),
        ];
        let (before, now) = (before.into(), now.into());
        let values: Vec<MetricReading> = since(&before, &now, Duration::from_secs(2)).collect();
        let expected =
            [("samba_read", "1/s", 5.0), ("samba_read_time", "ns", 3_000_000.0), ("samba_flush", "1/s", 0.0)];
        assert_eq!(values, expected.map(|(name, unit, value)| (name.to_owned(), unit.into(), value)));
    }

    #[test]
    fn an_expensive_call_rests_and_a_failing_one_is_repeated_later() {
        let reading = |milliseconds| Ok(SmbstatusReading { value: (), cpu: Duration::from_millis(milliseconds) });
        let mut schedule = PollSchedule::now();
        assert!(schedule.take(|| reading(40)).is_some() && schedule.take(|| reading(60)).is_some());
        assert!(schedule.take(|| reading(40)).is_none(), "it worked for 60 ms, and rests for 1.2 s");
        let mut schedule = PollSchedule::now();
        let mut asked = 0;
        for _ in 0..5 {
            let failed = schedule.take(|| {
                asked += 1;
                Err::<SmbstatusReading<()>, _>(format!("failure {asked}"))
            });
            assert!(failed.is_none());
        }
        assert_eq!((asked, schedule.failure.as_deref()), (3, Some("failure 3")));
    }

    /// On a busy machine smbstatus waits, which costs the server nothing.
    #[test]
    fn a_call_that_only_waits_is_repeated_at_once() {
        let mut schedule = PollSchedule::now();
        let waits = || {
            std::thread::sleep(Duration::from_millis(60));
            Ok(SmbstatusReading { value: (), cpu: Duration::ZERO })
        };
        assert!(schedule.take(waits).is_some() && schedule.take(waits).is_some());
    }
}
