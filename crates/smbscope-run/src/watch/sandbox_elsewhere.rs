//! Systems without a sandbox.

use crate::options::WatchOptions;

/// Does nothing.
pub fn prepare(_options: &WatchOptions, _saves_reports: bool) {}

/// Does nothing.
pub fn enter_thread() {}

/// Does nothing.
pub(super) fn enter(_child: Option<u32>) {}
