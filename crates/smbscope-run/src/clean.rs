//! Removes what benchmarks made on a share, and nothing else.

use crate::BenchError;
use crate::options::Connect;
use crate::site::Site;
use crate::target::TargetUrl;
use smbscope_load::prepare::{self, CleanupResult};
use std::time::Duration;
use tokio::runtime::Builder;

/// Sessions that remove files at the same time.
const SESSIONS: u32 = 4;

/// Removes what is there of benchmarks, within this time.
pub fn clean(target: &TargetUrl, connect: &Connect, within: Duration) -> Result<CleanupResult, BenchError> {
    let site = Site::named(target, connect)?;
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(BenchError::system("runtime for the client"))?;
    Ok(runtime.block_on(prepare::clean(&site.options, &site.directory, SESSIONS, within, &mut |_| {}))?)
}
