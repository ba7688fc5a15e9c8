//! Interfaces to the caller of the engine: hooks, live figures and the stop flag.

use super::control::StopFlag;
use super::exchanges::ExchangeLog;
use super::live_figures::LiveFigures;
use super::result::LoadPointResult;

/// Notifications about the progress of a ramp, for packet captures, server metrics or a display. All calls come from
/// the thread that runs the engine, which waits for them.
pub trait Hooks {
    /// Called before the sessions of a load point connect, so that a capture started here sees all of them.
    fn point_begins(&mut self, users: u32) {
        let _ = users;
    }

    /// Called when the sessions are connected and the users are about to start the warm-up.
    fn work_begins(&mut self, users: u32) {
        let _ = users;
    }

    /// Called at the start of the measured part. A slow implementation delays `measuring_ends`.
    fn measuring_begins(&mut self) {}

    /// Called after the end of the measured part, when all operations that started in it have ended.
    fn measuring_ends(&mut self) {}

    /// Called with the result of a load point, and with its exchanges if the plan keeps them.
    fn point_ends(&mut self, run: &LoadPointResult, exchanges: Option<ExchangeLog>) {
        let _ = (run, exchanges);
    }
}

/// Ignores all notifications.
impl Hooks for () {}

pub(crate) struct Surroundings<'a> {
    pub(crate) hooks: &'a mut dyn Hooks,
    pub(crate) live: &'a LiveFigures,
    pub(crate) stop: &'a StopFlag,
}
