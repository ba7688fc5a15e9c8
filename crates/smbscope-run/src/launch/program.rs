//! The launched program: started in its own process group, its output recorded, and ended with all its children.

use crate::BenchError;
use crate::environment::on_path;
use rustix::process::{Pid, Signal, kill_process_group};
use smbscope_lab::{Workplace, command_for};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

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

    pub(super) fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
        let begun = Instant::now();
        let _ = kill_process_group(group, Signal::TERM);
        while begun.elapsed() < PATIENCE {
            let ended = matches!(child.try_wait(), Ok(Some(_)) | Err(_));
            // The group exists as long as any of its processes does.
            if ended && rustix::process::test_kill_process_group(group).is_err() {
                return;
            }
            sleep(Duration::from_millis(5));
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = child.wait();
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
