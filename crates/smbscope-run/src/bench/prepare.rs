//! Creates a workload's files on the share before the first load point, and removes those of all benchmarks on request.

use crate::BenchError;
use crate::bench::progress::{BenchObserver, Wish};
use crate::bench::setup::Setup;
use crate::server::{Connect, Site, TargetUrl};
use smbscope_load::prepare::{self, CleanupResult, PrepareRequest};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

const SESSIONS: u32 = 4;
const REFRESH: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn create_files(
    setup: &Setup,
    within: Duration,
    watcher: &mut dyn BenchObserver,
    stop: &AtomicBool,
) -> Result<(), BenchError> {
    let workload = &setup.options.workload;
    let made = workload.made();
    let request = PrepareRequest {
        directory: &setup.site.directory,
        workload: workload.name(),
        files: workload.file_set(),
        made: &made,
        users: setup.sessions(),
        sessions: SESSIONS,
        within,
    };
    let watcher = RefCell::new(watcher);
    let mut told = Instant::now();
    let mut progress = |made: prepare::PrepareProgress| {
        if told.elapsed() >= REFRESH {
            told = Instant::now();
            watcher.borrow_mut().preparing(&made);
        }
    };
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(BenchError::system("runtime for the client"))?;
    let stopped = async {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK).await;
            if watcher.borrow_mut().wait(Instant::now()) == Wish::Stop {
                break;
            }
        }
    };
    let prepared: Result<(), BenchError> = runtime.block_on(async {
        tokio::select! {
            prepared = prepare::prepare(&setup.site.options, &request, &mut progress) => Ok(prepared.map(drop)?),
            () = stopped => Err(BenchError::Interrupted),
        }
    });
    prepared?;
    settle(setup.options.bench.settle.unwrap_or_default(), &mut **watcher.borrow_mut(), stop)
}

fn settle(time: Duration, watcher: &mut dyn BenchObserver, stop: &AtomicBool) -> Result<(), BenchError> {
    let begun = Instant::now();
    while let left = time.saturating_sub(begun.elapsed())
        && !left.is_zero()
    {
        if stop.load(Ordering::Relaxed) || watcher.wait(Instant::now() + left.min(LOOK)) == Wish::Stop {
            return Err(BenchError::Interrupted);
        }
    }
    Ok(())
}

pub fn clean(target: &TargetUrl, connect: &Connect, within: Duration) -> Result<CleanupResult, BenchError> {
    let site = Site::named(target, connect)?;
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(BenchError::system("runtime for the client"))?;
    Ok(runtime.block_on(prepare::clean(&site.options, &site.directory, SESSIONS, within, &mut |_| {}))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settling_takes_its_time_unless_the_run_is_stopped() {
        let (begun, time) = (Instant::now(), Duration::from_millis(150));
        settle(time, &mut (), &AtomicBool::new(false)).unwrap();
        assert!(begun.elapsed() >= time);
        let stopped = settle(Duration::from_secs(3_600), &mut (), &AtomicBool::new(true));
        assert!(matches!(stopped, Err(BenchError::Interrupted)), "{stopped:?}");
    }
}
