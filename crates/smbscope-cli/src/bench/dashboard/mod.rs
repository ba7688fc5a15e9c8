//! Progress display of a run: a dashboard on a terminal, otherwise plain lines per interval and load point.
//!
//! [`DashboardState`] holds the content, [`view`] draws it, [`Screen`] owns the terminal, and [`plain`] formats lines
//! of the same state. The run passes a [`RampSnapshot`] every second and waits in the display for the rest of the
//! second, until the user wants to stop.

mod plain;
mod screen;
mod state;
mod view;

use crate::terminal;
use screen::Screen;
use smbscope_load::prepare;
use smbscope_report::bench;
use smbscope_run::progress::{BenchObserver, Heading, RampSnapshot, Wish};
use state::{DashboardState, FinishedLoadPoint};
use std::io::{self, IsTerminal};
use std::thread;
use std::time::{Duration, Instant};

/// Requested kind of display.
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
                let _ = screen.draw(&self.state);
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
        let line = plain::interval(&self.state, &snapshot);
        self.state.update(snapshot);
        self.show(line);
    }

    fn point_done(&mut self, run: &bench::BenchRun) {
        let finished = FinishedLoadPoint::from_run(run);
        let line = plain::point(&finished);
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
                Medium::Screen(screen) => match screen.asks_to_stop(left, &self.state) {
                    Ok(true) => return Wish::Stop,
                    Ok(false) => {}
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

#[cfg(test)]
mod tests;
