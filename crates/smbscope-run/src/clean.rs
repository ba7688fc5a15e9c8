//! Removes the files that benchmarks created on a share.

use crate::BenchError;
use crate::options::Connect;
use crate::site::Site;
use crate::target::TargetUrl;
use smbscope_load::prepare::{self, CleanupResult};
use std::time::Duration;
use tokio::runtime::Builder;

const SESSIONS: u32 = 4;

/// Removes the files of benchmarks on the target and nothing else, within this time.
pub fn clean(target: &TargetUrl, connect: &Connect, within: Duration) -> Result<CleanupResult, BenchError> {
    let site = Site::named(target, connect)?;
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(BenchError::system("runtime for the client"))?;
    Ok(runtime.block_on(prepare::clean(&site.options, &site.directory, SESSIONS, within, &mut |_| {}))?)
}
