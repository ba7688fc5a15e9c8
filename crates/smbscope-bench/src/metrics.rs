//! What is known of the server's side while it is loaded.

use smbscope_lab::Server;
use smbscope_report::bench::tables::ServerMetric;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Values of the server's side that are kept: a day of seconds.
const METRICS_MAX: usize = 86_400;

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
                time: crate::setup::now(),
                metric: "cpu".into(),
                value: 100.0 * share,
                unit: "percent".into(),
            };
            seen.metrics.push(metric);
        }
    }

    /// All that was noted.
    pub(crate) fn so_far(&self) -> Vec<ServerMetric> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).metrics.clone()
    }
}
