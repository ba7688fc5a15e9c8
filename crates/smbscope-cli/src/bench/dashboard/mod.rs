//! What is shown while users work: a dashboard on a terminal, otherwise a plain line an interval and a load point.
//!
//! [`State`] is what there is to show, [`view`] draws it, [`Screen`] owns the terminal; [`plain`] makes lines of the same
//! state. Whoever runs the load takes a [`Snapshot`] every second, hands it to [`Display::update`], and spends the rest
//! of the second in [`Display::wait`], which says when the user wants to stop.

mod meter;
mod plain;
mod screen;
mod state;
mod view;

pub(crate) use meter::CpuMeter;
pub(crate) use screen::give_back;
pub(crate) use state::{Finished, GroupFigures, Heading, Phase, Point, Snapshot};

use crate::terminal;
use screen::Screen;
use state::State;
use std::io::{self, IsTerminal};
use std::thread;
use std::time::{Duration, Instant};

/// How to show what happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The dashboard, where there is a terminal.
    Auto,
    /// Lines.
    Plain,
    /// Nothing.
    Quiet,
}

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To go on.
    GoOn,
    /// To end the load point and keep what was measured: Ctrl-C or q on the dashboard, where the terminal makes no
    /// signal of it.
    Stop,
}

/// Where it is shown.
pub(crate) struct Display {
    state: State,
    place: Place,
}

enum Place {
    Screen(Screen),
    /// Of standard error, so that they never get into a result.
    Lines,
    Nowhere,
}

impl Display {
    /// The dashboard needs a terminal to draw on and to be asked from; lines go to standard error, so that they never
    /// get into a result. Colour is left out where `NO_COLOR` says so.
    pub(crate) fn open(choice: Choice, heading: Heading) -> Display {
        let terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
        let color = std::env::var_os("NO_COLOR").is_none();
        let screen = (choice == Choice::Auto && terminal).then(|| Screen::open(color).ok()).flatten();
        let place = match (choice, screen) {
            (Choice::Quiet, _) => Place::Nowhere,
            (_, Some(screen)) => Place::Screen(screen),
            (_, None) => Place::Lines,
        };
        Display { state: State::new(heading), place }
    }

    /// Takes what happened since the last time, and shows it.
    pub(crate) fn update(&mut self, snapshot: Snapshot) -> io::Result<()> {
        let line = plain::interval(&self.state, &snapshot);
        self.state.update(snapshot);
        self.show(line)
    }

    /// Takes what came out of a load point, and shows it.
    pub(crate) fn point_done(&mut self, finished: Finished) -> io::Result<()> {
        let line = plain::point(&finished);
        self.state.finish(finished);
        self.show(Some(line))
    }

    fn show(&mut self, line: Option<String>) -> io::Result<()> {
        match &mut self.place {
            Place::Screen(screen) => screen.draw(&self.state),
            Place::Lines => {
                line.iter().for_each(|line| terminal::line(line));
                Ok(())
            }
            Place::Nowhere => Ok(()),
        }
    }

    /// Waits until then, or until the user wants to stop. Keeps the dashboard as large as its terminal.
    pub(crate) fn wait(&mut self, until: Instant) -> io::Result<Wish> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match &mut self.place {
                Place::Screen(screen) => match screen.asks_to_stop(left, &self.state) {
                    Ok(true) => return Ok(Wish::Stop),
                    Ok(false) => {}
                    Err(error) => {
                        // Nobody can be asked: no reason to ask all the time.
                        thread::sleep(left);
                        return Err(error);
                    }
                },
                Place::Lines | Place::Nowhere => thread::sleep(left),
            }
            if left == Duration::ZERO {
                return Ok(Wish::GoOn);
            }
        }
    }
}

#[cfg(test)]
mod tests;
