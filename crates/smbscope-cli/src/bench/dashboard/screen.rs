//! The terminal of the dashboard. It is given back as it was when the screen is dropped, and by a hook of
//! [`ratatui::try_init`] when the program panics, whichever thread that is in.

use super::state::State;
use super::view;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::DefaultTerminal;
use std::io;
use std::time::Duration;

/// A terminal that is being drawn on.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    color: bool,
}

impl Screen {
    /// Takes the terminal over.
    pub(super) fn open(color: bool) -> io::Result<Screen> {
        match ratatui::try_init() {
            Ok(terminal) => Ok(Screen { terminal, color }),
            Err(error) => {
                // It may have got half of the way.
                let _ = ratatui::try_restore();
                Err(error)
            }
        }
    }

    /// Draws all of it.
    pub(super) fn draw(&mut self, state: &State) -> io::Result<()> {
        let color = self.color;
        self.terminal.draw(|frame| view::draw(frame, state, color)).map(|_| ())
    }

    /// Waits for the next event, and says whether it was the wish to stop: while the dashboard is there, Ctrl-C is a key
    /// and no signal.
    pub(super) fn asks_to_stop(&mut self, longest: Duration, state: &State) -> io::Result<bool> {
        if !event::poll(longest)? {
            return Ok(false);
        }
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                Ok(matches!((key.code, control), (KeyCode::Char('c'), true) | (KeyCode::Char('q'), false)))
            }
            Event::Resize(..) => self.draw(state).map(|()| false),
            _ => Ok(false),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
