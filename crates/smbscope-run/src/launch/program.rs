//! The launched program: started in its own process group, its output recorded, and ended with all its children; and
//! the moment at which a launch counts as complete: a window on an X display, a file, a port, a line of output, or the
//! program's end.

use crate::BenchError;
use crate::environment::on_path;
use crate::options::LaunchOptions;
use rustix::process::{Pid, Signal, kill_process_group};
use smbscope_lab::{Workplace, command_for};
use smbscope_load::engine::result::LoadPointEnd;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{Atom, AtomEnum, ConnectionExt, MapState, Window};
use x11rb::rust_connection::RustConnection;

/// Runs the program with a parent-death signal, so that it dies with this process (setpriv(1), util-linux).
const SETPRIV: &str = "setpriv";
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an output line; longer ones are split.
const LINE_MAX: u64 = 64 << 10;
/// Output lines kept: the last.
const LINES_MAX: usize = 1_000;

type TimedOutputLines = Arc<Mutex<Vec<(Instant, String)>>>;

pub(super) struct LaunchedProgram {
    child: Option<Child>,
    started: Instant,
    lines: TimedOutputLines,
    readers: Vec<JoinHandle<()>>,
}

impl LaunchedProgram {
    pub(super) fn start(
        command: &[String],
        environment: &[(&str, String)],
        workplace: &Workplace,
    ) -> Result<LaunchedProgram, BenchError> {
        let Some((name, arguments)) = command.split_first() else {
            return Err(BenchError::Unavailable("no command to launch: give it after --".to_owned()));
        };
        let is_there = if name.contains('/') { Path::new(name).exists() } else { on_path(name).is_some() };
        if !is_there {
            return Err(BenchError::Unavailable(format!("cannot start {name}: there is no such program")));
        }
        let mut command = match on_path(SETPRIV) {
            Some(with_us) => {
                let mut command = command_for(with_us);
                command.args(["--pdeathsig", "TERM", "--", name]);
                command
            }
            None => command_for(name),
        };
        workplace.mark(&mut command);
        command.args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let started = Instant::now();
        let mut child =
            command.spawn().map_err(|error| BenchError::Unavailable(format!("cannot start {name}: {error}")))?;
        let stdout = child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>);
        let stderr = child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>);
        let mut program = LaunchedProgram { child: Some(child), started, lines: Arc::default(), readers: Vec::new() };
        for stream in [stdout, stderr].into_iter().flatten() {
            let reader = listen(stream, &program.lines);
            program.readers.push(reader.map_err(BenchError::system("thread that reads the output of the program"))?);
        }
        Ok(program)
    }

    pub(super) fn started(&self) -> Instant {
        self.started
    }

    pub(super) fn end(&mut self) -> Result<Option<ExitStatus>, String> {
        let Some(child) = &mut self.child else { return Ok(None) };
        child.try_wait().map_err(|error| format!("cannot check whether the program runs: {error}"))
    }

    pub(super) fn said(&self, text: &str) -> Option<Instant> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().find(|(_, line)| line.contains(text)).map(|(at, _)| *at)
    }

    pub(super) fn said_before_exit(&self, text: &str) -> Option<Instant> {
        self.drain_output();
        self.said(text)
    }

    pub(super) fn last_output_line(&self) -> String {
        self.drain_output();
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let last = lines.iter().rev().map(|(_, line)| line.trim()).find(|line| !line.is_empty());
        last.map_or_else(String::new, |line| format!(": {}", smbscope_model::prose::clean(line)))
    }

    /// Waits until the output has been read completely, for half a second at most, because a child may hold it open.
    fn drain_output(&self) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(500) && !self.readers.iter().all(JoinHandle::is_finished) {
            sleep(Duration::from_millis(1));
        }
    }

    /// Ends the program with all its children. Returns false if it is still there: a process that waits for a mount
    /// that hangs can't be killed. Call this again once the mount is gone.
    pub(super) fn stop(&mut self) -> bool {
        let Some(child) = &mut self.child else { return true };
        let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return true };
        for signal in [Signal::TERM, Signal::KILL] {
            let begun = Instant::now();
            let _ = kill_process_group(group, signal);
            while begun.elapsed() < PATIENCE {
                let ended = matches!(child.try_wait(), Ok(Some(_)) | Err(_));
                // The group exists as long as any of its processes does, and after SIGKILL at most as zombies.
                let is_gone = || rustix::process::test_kill_process_group(group).is_err();
                if ended && (signal == Signal::KILL || is_gone()) {
                    self.child = None;
                    return true;
                }
                sleep(Duration::from_millis(5));
            }
        }
        false
    }
}

impl Drop for LaunchedProgram {
    fn drop(&mut self) {
        self.stop();
    }
}

fn listen(stream: impl Read + Send + 'static, lines: &TimedOutputLines) -> std::io::Result<JoinHandle<()>> {
    let lines = Arc::clone(lines);
    let read = move || {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            match stream.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {
                    let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                    if lines.len() == LINES_MAX {
                        lines.remove(0);
                    }
                    lines.push((Instant::now(), text));
                }
            }
        }
    };
    std::thread::Builder::new().name("launch-output".to_owned()).spawn(read)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// The workplace must outlive the program.
    fn shell(text: &str) -> (LaunchedProgram, Workplace) {
        let workplace = Workplace::open().unwrap();
        let command = ["/bin/sh", "-c", text].map(str::to_owned);
        (LaunchedProgram::start(&command, &[], &workplace).unwrap(), workplace)
    }

    #[test]
    fn what_a_program_started_ends_with_it() {
        let (mut program, _workplace) = shell("sleep 600 & echo $!; wait");
        let pid = loop {
            if let Some((_, line)) = program.lines.lock().unwrap().first() {
                break line.parse::<u32>().unwrap();
            }
            sleep(Duration::from_millis(5));
        };
        assert!(smbscope_lab::Process::find(pid).is_some());
        program.stop();
        assert!(smbscope_lab::Process::find(pid).is_none());
    }

    #[test]
    fn a_program_that_does_not_listen_is_killed() {
        let (mut program, _workplace) = shell("trap '' TERM; echo ready; while :; do sleep 1; done");
        while program.said("ready").is_none() {
            sleep(Duration::from_millis(5));
        }
        let pid = program.child.as_ref().unwrap().id();
        program.stop();
        assert!(smbscope_lab::Process::find(pid).is_none());
    }

    #[test]
    fn the_last_lines_are_kept_and_long_ones_cut() {
        let (mut program, _workplace) =
            shell("yes | head -n 5000; head -c 200000 /dev/zero | tr '\\0' x; echo; echo at last >&2");
        while program.end().unwrap().is_none() {
            sleep(Duration::from_millis(5));
        }
        assert!(program.said_before_exit("at last").is_some());
        let lines = program.lines.lock().unwrap();
        assert!(lines.len() <= LINES_MAX && lines.iter().all(|(_, line)| line.len() as u64 <= LINE_MAX));
    }
}
