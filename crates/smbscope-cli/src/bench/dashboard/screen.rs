//! The terminal of the dashboard. It is given back as it was when the screen is dropped, before a signal ends the
//! process, and by a hook of [`ratatui::try_init`] when the program panics, whichever thread that is in. It may be gone
//! by then: nothing of that is worth a word, or the loss of a measurement.

use super::state::DashboardState;
use super::view;
use crate::interrupt;
use crossterm::cursor::Show;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::execute;
use ratatui::DefaultTerminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest time without a look whether the window has another size.
const LOOK: Duration = Duration::from_millis(200);

/// Whether the terminal is taken over.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A terminal that is being drawn on.
pub(super) struct Screen {
    /// Its own end would complain about a terminal that is gone, on that terminal, and panic of it.
    terminal: ManuallyDrop<DefaultTerminal>,
    color: bool,
}

impl Screen {
    /// Takes the terminal over.
    pub(super) fn open(color: bool) -> io::Result<Screen> {
        interrupt::calls_before_the_end(give_back);
        TAKEN.store(true, Ordering::Relaxed);
        match ratatui::try_init() {
            Ok(terminal) => Ok(Screen { terminal: ManuallyDrop::new(terminal), color }),
            Err(error) => {
                // It may have got half of the way.
                give_back();
                Err(error)
            }
        }
    }

    /// Draws all of it.
    pub(super) fn draw(&mut self, state: &DashboardState) -> io::Result<()> {
        let color = self.color;
        self.terminal.draw(|frame| view::draw(frame, state, color)).map(|_| ())
    }

    /// Waits for the next event, or a little, and says whether it was the wish to stop: while the dashboard is there, Ctrl-C is a key
    /// and no signal.
    pub(super) fn asks_to_stop(&mut self, longest: Duration, state: &DashboardState) -> io::Result<bool> {
        wait_for_input(longest.min(LOOK))?;
        if !event::poll(Duration::ZERO)? {
            return Ok(false);
        }
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                let is_ctrl_c = control && key.code == KeyCode::Char('c');
                if is_ctrl_c {
                    interrupt::as_by_ctrl_c();
                }
                Ok(is_ctrl_c || (!control && key.code == KeyCode::Char('q')))
            }
            Event::Resize(..) => self.draw(state).map(|()| false),
            _ => Ok(false),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Returns when something was typed, at the latest then; an error where the terminal is gone. crossterm would read it for
/// ever.
fn wait_for_input(longest: Duration) -> io::Result<()> {
    let stdin = io::stdin();
    let mut waited = [PollFd::new(&stdin, PollFlags::IN)];
    let longest = Timespec::try_from(longest).map_err(io::Error::other)?;
    match poll(&mut waited, Some(&longest)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if waited[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::Error::other("the terminal is gone"));
    }
    Ok(())
}

/// Gives the terminal back, if it is taken over.
fn give_back() {
    if TAKEN.swap(false, Ordering::Relaxed) {
        let _ = ratatui::try_restore();
        let _ = execute!(io::stdout(), Show);
    }
}
