//! Terminal of the dashboard. It is restored when the screen is dropped, before a signal ends the process, and, by a
//! hook of [`ratatui::try_init`], when any thread panics. Errors are ignored, because the terminal may be gone and
//! the measurement must survive.

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

const LOOK: Duration = Duration::from_millis(200);

/// The terminal is in raw mode.
static TAKEN: AtomicBool = AtomicBool::new(false);

pub(super) struct Screen {
    /// Not dropped: its own destructor would report errors of a closed terminal to that terminal, and panic.
    terminal: ManuallyDrop<DefaultTerminal>,
    color: bool,
}

impl Screen {
    pub(super) fn open(color: bool) -> io::Result<Screen> {
        interrupt::calls_before_the_end(give_back);
        TAKEN.store(true, Ordering::Relaxed);
        match ratatui::try_init() {
            Ok(terminal) => Ok(Screen { terminal: ManuallyDrop::new(terminal), color }),
            Err(error) => {
                // The setup may be half done.
                give_back();
                Err(error)
            }
        }
    }

    pub(super) fn draw(&mut self, state: &DashboardState) -> io::Result<()> {
        let color = self.color;
        self.terminal.draw(|frame| view::draw(frame, state, color)).map(|_| ())
    }

    /// Waits briefly for an event. Returns true for Ctrl-C or q; raw mode delivers Ctrl-C as a key.
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

/// Waits for input, up to this time. Fails if the terminal is gone, because crossterm would then read forever.
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

fn give_back() {
    if TAKEN.swap(false, Ordering::Relaxed) {
        let _ = ratatui::try_restore();
        let _ = execute!(io::stdout(), Show);
    }
}
