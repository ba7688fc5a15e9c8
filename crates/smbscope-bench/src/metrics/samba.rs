//! What Samba counts of itself: its clients, and how long operations took inside smbd.

use smbscope_lab::{SambaCount, SambaOperation, SambaStatus};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// smbstatus is a program that reads Samba's databases: where that takes long, it is asked less often, so that it works for at
/// most a twentieth of the time.
const REST: u32 = 20;

/// A metric with its value: a name, a unit, how much.
pub(super) type Value = (String, &'static str, f64);

/// A Samba that is asked again and again.
#[derive(Debug)]
pub(super) struct Samba {
    status: SambaStatus,
    profile: Turn,
    clients: Turn,
    /// The last profile, and when it was taken.
    before: Option<(Instant, BTreeMap<SambaOperation, SambaCount>)>,
    /// Why something is not known.
    missing: Option<String>,
}

/// Failures one after the other, after which it is not asked again.
const FAILURES_MAX: u32 = 3;

/// When to ask again.
#[derive(Debug, Clone, Copy)]
struct Turn {
    due: Instant,
    /// How often it was in vain since it worked last.
    failures: u32,
}

impl Turn {
    fn now() -> Turn {
        Turn { due: Instant::now(), failures: 0 }
    }

    /// Asks, if it is time to.
    fn take<T>(&mut self, ask: impl FnOnce() -> Result<T, String>) -> Option<Result<T, String>> {
        let begun = Instant::now();
        if self.due > begun || self.failures >= FAILURES_MAX {
            return None;
        }
        let said = ask();
        let ended = Instant::now();
        // What is asked every second is not late for having taken a moment.
        let rest = (ended - begun) * REST;
        self.due = if rest < Duration::from_secs(1) { begun } else { ended + rest };
        self.failures = if said.is_ok() { 0 } else { self.failures + 1 };
        Some(said)
    }
}

impl Samba {
    pub(super) fn new(status: SambaStatus) -> Samba {
        let now = Turn::now();
        Samba { status, profile: now, clients: now, before: None, missing: None }
    }

    /// What is not known, and why.
    pub(super) fn missing(&self) -> Option<&str> {
        self.missing.as_deref()
    }

    /// What it does now, and did since the last look.
    pub(super) fn look(&mut self) -> Vec<Value> {
        let mut values = Vec::new();
        let status = &self.status;
        match self.clients.take(|| status.clients()) {
            Some(Ok(clients)) => {
                for (name, count) in
                    [("sessions", clients.sessions), ("open_files", clients.open_files), ("locks", clients.locks)]
                {
                    values.push((format!("samba_{name}"), "count", count as f64));
                }
            }
            Some(Err(why)) => self.missing = Some(format!("sessions and open files ({why})")),
            None => {}
        }
        let kept = || status.profile()?.ok_or_else(|| "this Samba keeps no profile".to_owned());
        match self.profile.take(kept) {
            Some(Ok(now)) => {
                let at = Instant::now();
                if let Some((before_at, before)) = &self.before {
                    values.extend(since(before, &now, at - *before_at));
                }
                self.before = Some((at, now));
            }
            Some(Err(why)) => self.missing = Some(format!("the time inside smbd ({why})")),
            None => {}
        }
        values
    }
}

/// How often each operation was done a second, and how long one took on average. What was never done is left out.
fn since<'a>(
    before: &'a BTreeMap<SambaOperation, SambaCount>,
    now: &'a BTreeMap<SambaOperation, SambaCount>,
    passed: Duration,
) -> impl Iterator<Item = Value> + 'a {
    let values = move |(operation, now): (&SambaOperation, &SambaCount)| {
        let before = before.get(operation).copied().unwrap_or_default();
        // Samba may have been started anew in between.
        let count = now.count.checked_sub(before.count).filter(|_| now.count > 0)? as f64;
        let time = now.time.checked_sub(before.time)?.as_nanos() as f64;
        let rate = (format!("samba_{operation}"), "1/s", count / passed.as_secs_f64().max(1e-9));
        let mean = (format!("samba_{operation}_time"), "ns", time / count);
        Some([Some(rate), (count > 0.0).then_some(mean)].into_iter().flatten())
    };
    now.iter().filter_map(values).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 reads of 30 ms altogether in 2 s: 5 a second, of 3 ms each. Closes were counted anew; nothing more was flushed, and
    /// nothing ever written.
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
        let values: Vec<Value> = since(&before, &now, Duration::from_secs(2)).collect();
        let expected =
            [("samba_read", "1/s", 5.0), ("samba_read_time", "ns", 3_000_000.0), ("samba_flush", "1/s", 0.0)];
        assert_eq!(values, expected.map(|(name, unit, value)| (name.to_owned(), unit, value)));
    }

    #[test]
    fn what_takes_long_is_asked_less_often_and_what_is_in_vain_not_again() {
        let mut turn = Turn::now();
        assert!(turn.take(|| Ok(())).is_some() && turn.take(|| Ok(())).is_some());
        let slow = || {
            std::thread::sleep(Duration::from_millis(60));
            Ok(())
        };
        assert!(turn.take(slow).is_some() && turn.take(|| Ok(())).is_none());
        let mut turn = Turn::now();
        let mut fail = || turn.take(|| Err::<(), _>("no".to_owned())).is_some();
        assert_eq!([fail(), fail(), fail(), fail()], [true, true, true, false]);
        assert!(turn.take(|| Ok(())).is_none());
    }
}
