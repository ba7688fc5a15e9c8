//! Puts a workload's files on the share before the first load point.

use super::dashboard::{Display, Phase, Snapshot};
use super::site::Site;
use anyhow::Context;
use smbscope_load::prepare::{self, Progress, Request};
use smbscope_load::workload::Workload;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

/// Sessions that make files at the same time.
const SESSIONS: u32 = 4;
/// How often the display is brought up to date.
const REFRESH: Duration = Duration::from_millis(500);

/// Makes what is missing, for so many sessions.
pub(crate) fn run(site: &Site, workload: &Workload, sessions: u32, display: &mut Display) -> anyhow::Result<()> {
    let request = Request {
        directory: &site.directory,
        workload: workload.name(),
        files: workload.file_set(),
        users: sessions,
        sessions: SESSIONS,
    };
    let mut shown = Instant::now();
    let mut progress = |progress: Progress| {
        if shown.elapsed() >= REFRESH {
            shown = Instant::now();
            let what = format!("file {} of {}", progress.files, progress.of_files);
            // A terminal that cannot be drawn on is no reason not to begin.
            let _cannot_be_shown = display.update(Snapshot { phase: Phase::Preparing(what), ..Snapshot::default() });
        }
    };
    let runtime = Builder::new_current_thread().enable_all().build().context("no runtime for the client")?;
    runtime.block_on(prepare::prepare(&site.options, &request, &mut progress))?;
    Ok(())
}
