//! Puts a workload's files on the share before the first load point.

use super::dashboard::{Display, Phase, Snapshot, Wish};
use super::site::Site;
use crate::interrupt::Interrupted;
use anyhow::Context;
use smbscope_load::prepare::{self, Progress, Request};
use smbscope_load::workload::Workload;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

/// Sessions that make files at the same time.
const SESSIONS: u32 = 4;
/// How often the display is brought up to date.
const REFRESH: Duration = Duration::from_millis(500);
/// How often it is looked whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(100);

/// Makes what is missing, for so many sessions.
pub(crate) fn run(
    site: &Site,
    workload: &Workload,
    sessions: u32,
    within: Duration,
    display: &mut Display,
    interrupted: &AtomicBool,
) -> anyhow::Result<()> {
    let made = workload.made();
    let request = Request {
        directory: &site.directory,
        workload: workload.name(),
        files: workload.file_set(),
        made: &made,
        users: sessions,
        sessions: SESSIONS,
        within,
    };
    let display = RefCell::new(display);
    let mut shown = Instant::now();
    let mut progress = |progress: Progress| {
        if shown.elapsed() >= REFRESH {
            shown = Instant::now();
            let what = format!("file {} of {}", progress.files, progress.of_files);
            // A terminal that cannot be drawn on is no reason not to begin.
            let snapshot = Snapshot { phase: Phase::Preparing(what), ..Snapshot::default() };
            let _cannot_be_shown = display.borrow_mut().update(snapshot);
        }
    };
    let runtime = Builder::new_current_thread().enable_all().build().context("no runtime for the client")?;
    let stopped = async {
        while !interrupted.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK).await;
            if display.borrow_mut().wait(Instant::now()).is_ok_and(|wish| wish == Wish::Stop) {
                break;
            }
        }
    };
    runtime.block_on(async {
        tokio::select! {
            prepared = prepare::prepare(&site.options, &request, &mut progress) => Ok(prepared.map(drop)?),
            () = stopped => Err(Interrupted::with(
                "interrupted while the files of the workload were made: what is there serves the next run, and \
                 `smbscope bench clean` removes it",
            ).into()),
        }
    })
}
