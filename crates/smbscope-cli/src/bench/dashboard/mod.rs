//! Progress display of a run: a dashboard on a terminal, otherwise plain lines per interval and load point.
//!
//! [`DashboardState`] holds the content, and [`view`] draws it on the [`Screen`]. The run passes a
//! [`RampSnapshot`] every second and waits in the display for the rest of the second, until the user wants to stop.

mod view;

use crate::bench::dashboard::view::{DashboardState, FinishedLoadPoint, of_them, phase_name};
use crate::screen::{Screen, ScreenEvent};
use crate::terminal;
use crossterm::event::KeyCode;
use smbscope_load::engine::EnginePhase;
use smbscope_load::prepare;
use smbscope_report::{bench, counted, or_dash, rate};
use smbscope_run::progress::{BenchObserver, Heading, RampSnapshot, Wish};
use std::io::{self, IsTerminal};
use std::thread;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Dashboard if there is a terminal, otherwise lines.
    Auto,
    Plain,
    Quiet,
}

pub(crate) struct ProgressDisplay {
    state: DashboardState,
    medium: Medium,
}

enum Medium {
    Screen(Screen),
    /// Standard error, so that they do not mix with results.
    Lines,
    Nowhere,
}

impl ProgressDisplay {
    /// Opens the display. The dashboard requires a terminal for both output and input. `NO_COLOR` disables colours.
    pub(crate) fn open(choice: Choice, heading: Heading) -> ProgressDisplay {
        let terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
        let color = std::env::var_os("NO_COLOR").is_none();
        let screen = (choice == Choice::Auto && terminal).then(|| Screen::open(color).ok()).flatten();
        let medium = match (choice, screen) {
            (Choice::Quiet, _) => Medium::Nowhere,
            (_, Some(screen)) => Medium::Screen(screen),
            (_, None) => Medium::Lines,
        };
        ProgressDisplay { state: DashboardState::new(heading), medium }
    }

    fn show(&mut self, line: Option<String>) {
        match &mut self.medium {
            Medium::Screen(screen) => {
                // A failed drawing must not abort a measurement.
                let _ = screen.draw(|frame, look| view::draw(frame, &self.state, look));
            }
            Medium::Lines => line.iter().for_each(|line| terminal::line(line)),
            Medium::Nowhere => {}
        }
    }
}

impl BenchObserver for ProgressDisplay {
    fn preparing(&mut self, made: &prepare::PrepareProgress) {
        self.state.prepare(made);
        self.show(self.state.preparing.clone());
    }

    fn update(&mut self, snapshot: RampSnapshot) {
        let line = interval_line(&self.state, &snapshot);
        self.state.update(snapshot);
        self.show(line);
    }

    fn point_done(&mut self, run: &bench::BenchRun) {
        let finished = FinishedLoadPoint::from_run(run);
        let line = load_point_line(&finished);
        self.state.finish(finished);
        self.show(Some(line));
    }

    fn note(&mut self, text: &str) {
        terminal::say(text);
    }

    /// Redraws the dashboard when the terminal is resized. While it is shown, Ctrl-C and q arrive as keys, not as
    /// signals.
    fn wait(&mut self, until: Instant) -> Wish {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match &mut self.medium {
                Medium::Screen(screen) => match screen.event(left.min(LOOK)) {
                    Ok(ScreenEvent::CtrlC) => return Wish::Stop,
                    Ok(ScreenEvent::Key(key)) if key.code == KeyCode::Char('q') => return Wish::Stop,
                    Ok(ScreenEvent::Resized) => {
                        let _ = screen.draw(|frame, look| view::draw(frame, &self.state, look));
                    }
                    Ok(_) => {}
                    Err(_nobody_can_be_asked) => {
                        thread::sleep(left);
                        return Wish::GoOn;
                    }
                },
                Medium::Lines | Medium::Nowhere => thread::sleep(left),
            }
            if left == Duration::ZERO {
                return Wish::GoOn;
            }
        }
    }
}

/// Returns a line about the latest interval, or `None` if it has no news.
fn interval_line(state: &DashboardState, snapshot: &RampSnapshot) -> Option<String> {
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

fn load_point_line(finished: &FinishedLoadPoint) -> String {
    let FinishedLoadPoint { users, per_second, p50, p95, errors, unexpected, limited } = *finished;
    let users = counted(users.into(), "user", "users");
    let limited = if limited { "; the client was the limit" } else { "" };
    let rate = rate(per_second);
    let (p50, p95, of_them) = (or_dash(p50), or_dash(p95), of_them(errors, unexpected));
    format!("{users} done: {rate} commands/s, median {p50}, p95 {p95}, {errors} errors{of_them}{limited}")
}

#[cfg(test)]
mod tests;
