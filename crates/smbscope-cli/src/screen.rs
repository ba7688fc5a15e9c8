//! The terminal of a display that fills it, its styles and its keys.

use crate::{interrupt, system};
use crossterm::cursor::Show;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::execute;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Sparkline};
use ratatui::{DefaultTerminal, Frame};
use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The terminal is in raw mode.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Terminal of a display. It is restored when the screen is dropped, before a signal ends the process, and, by a hook of
/// [`ratatui::try_init`], when any thread panics. Errors are ignored, because the terminal may be gone and the
/// measurement must survive.
pub(crate) struct Screen {
    /// Not dropped: its own destructor would report errors of a closed terminal to that terminal, and panic.
    terminal: ManuallyDrop<DefaultTerminal>,
    look: Look,
}

impl Screen {
    pub(crate) fn open(color: bool) -> io::Result<Screen> {
        interrupt::calls_before_the_end(give_back);
        TAKEN.store(true, Ordering::Relaxed);
        match ratatui::try_init() {
            Ok(terminal) => Ok(Screen { terminal: ManuallyDrop::new(terminal), look: Look { color } }),
            Err(error) => {
                // The setup may be half done.
                give_back();
                Err(error)
            }
        }
    }

    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame, Look)) -> io::Result<()> {
        let look = self.look;
        self.terminal.draw(|frame| draw(frame, look)).map(|_| ())
    }

    /// Waits up to this time for an event. Raw mode delivers Ctrl-C as a key; it has the effect of the signal as well.
    pub(crate) fn event(&mut self, longest: Duration) -> io::Result<ScreenEvent> {
        system::wait_for_input(longest)?;
        if !event::poll(Duration::ZERO)? {
            return Ok(ScreenEvent::None);
        }
        Ok(match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
                    interrupt::as_by_ctrl_c();
                    return Ok(ScreenEvent::CtrlC);
                }
                if key.modifiers.contains(KeyModifiers::CONTROL) { ScreenEvent::None } else { ScreenEvent::Key(key) }
            }
            Event::Resize(..) => ScreenEvent::Resized,
            _ => ScreenEvent::None,
        })
    }
}

pub(crate) enum ScreenEvent {
    None,
    Resized,
    CtrlC,
    /// A key without Ctrl.
    Key(KeyEvent),
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    if TAKEN.swap(false, Ordering::Relaxed) {
        let _ = ratatui::try_restore();
        let _ = execute!(io::stdout(), Show);
    }
}

/// Styles of a display.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    pub(crate) color: bool,
}

impl Look {
    pub(crate) fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(crate) fn warning(self) -> Style {
        self.tinted(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn alarm(self) -> Style {
        self.tinted(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn tinted(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }
}

/// Draws a sparkline below its title, newest value on the right.
pub(crate) fn draw_spark(frame: &mut Frame, title: Line<'_>, values: &[u64], area: Rect, style: Style) {
    if area.height < 2 {
        return;
    }
    let [above, line] = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    frame.render_widget(Paragraph::new(title), above);
    let newest = values.len().saturating_sub(usize::from(line.width));
    frame.render_widget(Sparkline::default().data(&values[newest..]).style(style), line);
}

/// Returns a row whose first cell is a name and whose others are numbers.
pub(crate) fn table_row(texts: impl IntoIterator<Item = String>) -> Row<'static> {
    let cells = texts.into_iter().enumerate().map(|(column, text)| match column {
        0 => Cell::from(text),
        _ => Cell::from(Line::from(text).right_aligned()),
    });
    Row::new(cells)
}
