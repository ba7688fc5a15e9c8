//! Completion of a launch: the program's window on an X display, a file, a port, a line of output, or its end.

use crate::BenchError;
use crate::launch::program::LaunchedProgram;
use crate::options::LaunchOptions;
use smbscope_load::engine::result::LoadPointEnd;
use std::fmt;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{Atom, AtomEnum, ConnectionExt, MapState, Window};
use x11rb::rust_connection::RustConnection;

const EVERY: Duration = Duration::from_millis(2);
const WINDOWS_EVERY: Duration = Duration::from_millis(10);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Until {
    #[default]
    Exit,
    /// A window whose title or class contains this text is visible on the X display.
    Window(String),
    File(PathBuf),
    Port(SocketAddr),
    Output(String),
}

impl Until {
    pub(super) fn from_options(options: &LaunchOptions) -> Until {
        match options {
            LaunchOptions { window: Some(text), .. } => Until::Window(text.clone()),
            LaunchOptions { file: Some(path), .. } => Until::File(path.clone()),
            LaunchOptions { listen_port: Some(address), .. } => Until::Port(*address),
            LaunchOptions { line: Some(text), .. } => Until::Output(text.clone()),
            _ => Until::Exit,
        }
    }
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Until::Exit => f.write_str("its end"),
            Until::Window(text) => write!(f, "a window with \"{text}\""),
            Until::File(path) => write!(f, "the file {}", path.display()),
            Until::Port(address) => write!(f, "a connection to {address}"),
            Until::Output(text) => write!(f, "a line with \"{text}\""),
        }
    }
}

pub(super) struct CompletionProbe<'u> {
    until: &'u Until,
    display: Option<X11Display>,
}

impl<'u> CompletionProbe<'u> {
    /// Creates a probe. Fails if it can't work, or if the condition already holds before the launch.
    pub(super) fn new(until: &'u Until) -> Result<CompletionProbe<'u>, BenchError> {
        let display =
            matches!(until, Until::Window(_)).then(X11Display::open).transpose().map_err(BenchError::Unavailable)?;
        let mut watch = CompletionProbe { until, display };
        match watch.is_there() {
            Err(why) => Err(BenchError::Unavailable(why)),
            Ok(true) => {
                Err(BenchError::Unavailable(format!("{until} exists before the launch: end or remove it first")))
            }
            Ok(false) => Ok(watch),
        }
    }

    pub(super) fn into_display(self) -> Option<X11Display> {
        self.display
    }

    fn every(&self) -> Duration {
        if self.display.is_some() { WINDOWS_EVERY } else { EVERY }
    }

    pub(super) fn wait(
        &mut self,
        program: &mut LaunchedProgram,
        within: Duration,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Instant, LoadPointEnd> {
        let begun = program.started();
        loop {
            if let Until::Output(text) = self.until
                && let Some(at) = program.said(text)
            {
                return Ok(at);
            }
            // Checked before the exit status: a condition that holds when the program ends counts as reached.
            let is_there = self.is_there().map_err(LoadPointEnd::Failed)?;
            let now = Instant::now();
            if is_there {
                return Ok(now);
            }
            if let Some(end) = program.end().map_err(LoadPointEnd::Failed)? {
                let reached = match (self.until, end.success()) {
                    (Until::Exit, true) => Ok(now),
                    (Until::Exit, false) => Err(format!("the program failed ({end}){}", program.last_output_line())),
                    (Until::Output(text), _) => program.said_before_exit(text).ok_or_else(|| {
                        format!("the program ended ({end}) without {}{}", self.until, program.last_output_line())
                    }),
                    _ => Err(format!("the program ended ({end}) before {}{}", self.until, program.last_output_line())),
                };
                return reached.map_err(LoadPointEnd::Failed);
            }
            if is_interrupted() {
                return Err(LoadPointEnd::Interrupted);
            }
            if now.duration_since(begun) >= within {
                let why = format!("no {} within {within:?}{}", bare(self.until), program.last_output_line());
                return Err(LoadPointEnd::Failed(why));
            }
            std::thread::sleep(self.every());
        }
    }

    fn is_there(&mut self) -> Result<bool, String> {
        match (self.until, &mut self.display) {
            (Until::Window(text), Some(display)) => display.shows(text),
            (Until::File(path), _) => Ok(path.exists()),
            (Until::Port(address), _) => Ok(TcpStream::connect_timeout(address, CONNECT_TIMEOUT).is_ok()),
            _ => Ok(false),
        }
    }
}

fn bare(until: &Until) -> String {
    match until {
        Until::Exit => "end".to_owned(),
        other => {
            let text = other.to_string();
            text.strip_prefix("a ").or_else(|| text.strip_prefix("the ")).unwrap_or(&text).to_owned()
        }
    }
}

/// Maximum depth of the search. Window managers wrap application windows in their own.
const LEVELS: u32 = 4;
/// Windows of a display that are searched.
const WINDOWS_MAX: usize = 4_096;
const TEXT_WORDS: u32 = 256;

pub(super) struct X11Display {
    connection: RustConnection,
    root: Window,
    /// `_NET_WM_NAME`, the title in UTF-8 (Extended Window Manager Hints 1.5).
    title: Atom,
    utf8: Atom,
}

impl X11Display {
    pub(super) fn open() -> Result<X11Display, String> {
        let failed = |error: &dyn std::fmt::Display| {
            format!("no X display to show a window: {error}; set DISPLAY, or start one: Xvfb :99")
        };
        let (connection, screen) = RustConnection::connect(None).map_err(|error| failed(&error))?;
        let atom = |name: &[u8]| -> Result<Atom, String> {
            let reply = connection.intern_atom(false, name).map_err(|error| failed(&error))?.reply();
            Ok(reply.map_err(|error| failed(&error))?.atom)
        };
        let (title, utf8) = (atom(b"_NET_WM_NAME")?, atom(b"UTF8_STRING")?);
        let root = connection.setup().roots.get(screen).map(|screen| screen.root);
        let root = root.ok_or_else(|| failed(&"it has no screen"))?;
        Ok(X11Display { connection, root, title, utf8 })
    }

    pub(super) fn shows(&mut self, text: &str) -> Result<bool, String> {
        let mut level = vec![self.root];
        let mut seen = 0;
        for _ in 0..LEVELS {
            let mut below = Vec::new();
            for window in level {
                let Some(children) = self.shown_children(window)? else { continue };
                seen += children.len();
                for child in &children {
                    if self.texts(*child)?.iter().any(|found| found.contains(text)) {
                        return Ok(true);
                    }
                }
                if seen > WINDOWS_MAX {
                    return Ok(false);
                }
                below.extend(children);
            }
            level = below;
        }
        Ok(false)
    }

    fn shown_children(&self, window: Window) -> Result<Option<Vec<Window>>, String> {
        let asked = self.connection.query_tree(window).map_err(lost)?;
        let Ok(tree) = asked.reply() else { return self.still_there().map(|()| None) };
        let asked: Vec<_> = tree
            .children
            .into_iter()
            .take(WINDOWS_MAX)
            .map(|child| Ok((child, self.connection.get_window_attributes(child).map_err(lost)?)))
            .collect::<Result<_, String>>()?;
        let shown = asked.into_iter().filter_map(|(child, asked)| {
            let attributes = asked.reply().ok()?;
            (attributes.map_state == MapState::VIEWABLE).then_some(child)
        });
        Ok(Some(shown.collect()))
    }

    /// Returns the title and class of a window (ICCCM 4.1.2.1 and 4.1.2.5).
    fn texts(&self, window: Window) -> Result<Vec<String>, String> {
        let wanted = [
            (self.title, self.utf8),
            (AtomEnum::WM_NAME.into(), AtomEnum::ANY.into()),
            (AtomEnum::WM_CLASS.into(), AtomEnum::ANY.into()),
        ];
        let asked: Vec<_> = wanted
            .into_iter()
            .map(|(name, of)| self.connection.get_property(false, window, name, of, 0, TEXT_WORDS).map_err(lost))
            .collect::<Result<_, _>>()?;
        let found = asked.into_iter().filter_map(|asked| asked.reply().ok());
        Ok(found.map(|property| String::from_utf8_lossy(&property.value).into_owned()).collect())
    }

    /// Fails if the display is gone, rather than just a window.
    fn still_there(&self) -> Result<(), String> {
        self.connection.get_input_focus().map_err(lost)?.reply().map(drop).map_err(lost)
    }
}

fn lost(error: impl std::fmt::Display) -> String {
    format!("the X display is gone: {error}")
}
