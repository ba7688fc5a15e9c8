//! `watch` as a service: what sd_notify(3) tells a service manager. Without one, nothing happens.

use crate::system;
use std::time::{Duration, Instant};

/// Reports the start when created, and the end when dropped.
pub(super) struct Service {
    /// Interval of the messages that keep the watchdog quiet: half its time limit. None without a watchdog.
    interval: Option<Duration>,
    told: Instant,
}

impl Service {
    /// Reports that packets are being captured.
    pub(super) fn ready() -> Service {
        system::tell_service_manager("READY=1");
        Service { interval: system::watchdog_limit().map(|limit| limit / 2), told: Instant::now() }
    }

    /// Keeps the watchdog quiet. Only the thread that analyses may call it: one that hangs is then restarted.
    pub(super) fn pulse(&mut self) {
        if self.interval.is_some_and(|interval| self.told.elapsed() >= interval) {
            self.told = Instant::now();
            system::tell_service_manager("WATCHDOG=1");
        }
    }

    /// Shows the line of a minute in `systemctl status`.
    pub(super) fn minute(&self, line: &str) {
        system::tell_service_manager(&format!("STATUS={line}"));
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        system::tell_service_manager("STOPPING=1");
    }
}
