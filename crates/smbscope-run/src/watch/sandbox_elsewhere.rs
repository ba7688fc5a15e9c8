//! Systems without a sandbox.

use crate::options::WatchOptions;
use std::path::PathBuf;

/// Does nothing.
pub fn prepare(_options: &WatchOptions, _read_later: &[PathBuf], _saves_reports: bool) {}

/// Does nothing.
pub fn enter_thread() {}

/// Does nothing.
pub(super) fn enter(_child: Option<u32>) {}
