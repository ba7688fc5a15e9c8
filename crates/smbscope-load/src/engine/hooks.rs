//! What belongs to whoever runs the engine: hooks, what a display shows, and the wish to end.

use super::control::StopFlag;
use super::exchanges::ExchangeLog;
use super::live_figures::LiveFigures;
use super::result::LoadPointResult;

/// Is told where a ramp is: to take packet captures and metrics of the server, or to show it. All calls come from the
/// thread that runs the engine, which waits for them.
pub trait Hooks {
    /// Before the sessions of a load point are made: a capture that begins here knows all of them.
    fn point_begins(&mut self, users: u32) {
        let _ = users;
    }

    /// Sessions are made, users are about to work. The warm-up comes first.
    fn work_begins(&mut self, users: u32) {
        let _ = users;
    }

    /// The measured part begins now. What takes long here makes the call of `measuring_ends` late.
    fn measuring_begins(&mut self) {}

    /// The measured part has ended, and all operations that began in it too.
    fn measuring_ends(&mut self) {}

    /// A load point is over, and this is what came out; with every command where the plan says so.
    fn point_ends(&mut self, run: &LoadPointResult, exchanges: Option<ExchangeLog>) {
        let _ = (run, exchanges);
    }
}

/// Nobody wants to know.
impl Hooks for () {}

/// What belongs to the caller.
pub(crate) struct Surroundings<'a> {
    pub(crate) hooks: &'a mut dyn Hooks,
    pub(crate) live: &'a LiveFigures,
    pub(crate) stop: &'a StopFlag,
}
