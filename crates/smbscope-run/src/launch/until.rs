//! Completion of a launch: the program's window, a file, a port, a line of output, or its end.

use super::program::LaunchedProgram;
use super::window::X11Display;
use crate::BenchError;
use smbscope_load::engine::result::LoadPointEnd;
use std::fmt;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(2);
const WINDOWS_EVERY: Duration = Duration::from_millis(10);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Until {
    /// The program exits successfully.
    #[default]
    Exit,
    /// A window whose title or class contains this text is visible on the X display.
    Window(String),
    File(PathBuf),
    Port(SocketAddr),
    /// The program writes a line that contains this text.
    Output(String),
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
                Err(BenchError::Unavailable(format!("{until} is there before the launch: end or remove it first")))
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
                    (Until::Exit, false) => Err(format!("the program failed ({end}){}", program.last_words())),
                    // The last line may not have been read yet.
                    (Until::Output(text), _) => program.said_at_last(text).ok_or_else(|| {
                        format!("the program ended ({end}) without {}{}", self.until, program.last_words())
                    }),
                    _ => Err(format!("the program ended ({end}) before {}{}", self.until, program.last_words())),
                };
                return reached.map_err(LoadPointEnd::Failed);
            }
            if is_interrupted() {
                return Err(LoadPointEnd::Interrupted);
            }
            if now.duration_since(begun) >= within {
                let why = format!("no {} within {within:?}{}", bare(self.until), program.last_words());
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
