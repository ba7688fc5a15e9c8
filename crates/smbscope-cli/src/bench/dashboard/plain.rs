//! Progress as plain lines: one per interval while measuring, one per phase change, one per finished load point.

use super::state::{DashboardState, FinishedLoadPoint, of_them, phase_name};
use smbscope_load::engine::EnginePhase;
use smbscope_report::{counted, or_dash, rate};
use smbscope_run::progress::RampSnapshot;

/// Returns a line about the latest interval, or `None` if it has no news.
pub(super) fn interval(state: &DashboardState, snapshot: &RampSnapshot) -> Option<String> {
    let (point, live) = (snapshot.point, &snapshot.live);
    let users = counted(point.users.into(), "user", "users");
    match live.phase {
        EnginePhase::Warmup | EnginePhase::Measuring => {}
        _ if live.phase == state.now.live.phase && point == state.now.point => return None,
        EnginePhase::Connecting => {
            let of = point.of.map_or_else(String::new, |of| format!(" of {of}"));
            return Some(format!("load point {}{of}: {users}, connecting", point.number));
        }
        EnginePhase::Ending | EnginePhase::Idle => return None,
    }
    let megabytes = |bytes: u64| format!("{:.2}", snapshot.per_second(bytes) / 1e6);
    let mut line = format!(
        "{users} {}: {}/{} connected, {} commands/s, {} MB/s read, {} written, median {}, p95 {}",
        phase_name(live.phase),
        live.sessions,
        point.users,
        rate(snapshot.per_second(live.commands)),
        megabytes(live.bytes_read),
        megabytes(live.bytes_written),
        or_dash(live.p50),
        or_dash(live.p95),
    );
    if live.errors > 0 {
        line += &format!(", {} errors{}", live.errors, of_them(live.errors, live.unexpected));
    }
    if live.failures > 0 {
        line += &format!(", {} sessions failed", live.failures);
    }
    if let Some((left, _)) = snapshot.remaining {
        line += &format!(", {} s left", left.as_secs_f64().ceil());
    }
    if snapshot.cpu.is_some_and(|cpu| cpu.limited) {
        line += ", the client is the limit";
    }
    Some(line)
}

/// Returns a line about a finished load point.
pub(super) fn point(finished: &FinishedLoadPoint) -> String {
    let FinishedLoadPoint { users, per_second, p50, p95, errors, unexpected, limited } = *finished;
    let users = counted(users.into(), "user", "users");
    let limited = if limited { "; the client was the limit" } else { "" };
    let rate = rate(per_second);
    let (p50, p95, of_them) = (or_dash(p50), or_dash(p95), of_them(errors, unexpected));
    format!("{users} done: {rate} commands/s, median {p50}, p95 {p95}, {errors} errors{of_them}{limited}")
}
