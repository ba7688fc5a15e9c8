//! Keeper: a separate process that runs a server for its parent and outlives the parent long enough to clean up.
//!
//! The keeper reads from a pipe whose only writing end belongs to the parent. The kernel closes it when the parent
//! ends, whatever the cause. Messages are lines of JSON on the keeper's standard input and output.

use crate::running::Running;
use crate::state_folder::end_process;
use crate::{LabError, LabServerSettings, Process, ServerRecord, StateFolder, process};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

#[derive(Debug, Serialize, Deserialize)]
enum KeeperRequest {
    Start {
        state: PathBuf,
        name: String,
        settings: Box<LabServerSettings>,
        detached: bool,
    },
    Stay,
    /// End this process, too, if the pipe closes without a `Stop`.
    TakeAlong(Process),
    Stop,
}

#[derive(Debug, Serialize, Deserialize)]
enum KeeperResponse {
    Started(Box<ServerRecord>),
    Stopped,
    Failed(String),
    Refused(String),
}

#[derive(Debug)]
pub(crate) struct KeeperProcess {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl KeeperProcess {
    pub(crate) fn start(
        mut command: Command,
        state: &StateFolder,
        name: &str,
        settings: &LabServerSettings,
        detached: bool,
    ) -> Result<(KeeperProcess, ServerRecord), LabError> {
        // The keeper has another working directory.
        let mut settings = Box::new(settings.clone());
        if let Some(folder) = &mut settings.share_folder {
            *folder = folder.canonicalize().map_err(LabError::file("share", folder))?;
        }
        // The keeper must not hold a terminal, or a pipe that another process waits for.
        process::mark_keeper(&mut command, &state.path().join(name));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(failed)?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both have been asked for");
        };
        let mut keeper = KeeperProcess { child, requests: Some(requests), answers: BufReader::new(answers) };
        let start = KeeperRequest::Start { state: state.path().to_owned(), name: name.to_owned(), settings, detached };
        let answer = keeper.tell(&start).and_then(|()| keeper.answer());
        let error = match answer {
            Ok(KeeperResponse::Started(record)) => return Ok((keeper, *record)),
            Ok(KeeperResponse::Failed(said)) => LabError::Keeper(said),
            Ok(KeeperResponse::Refused(said)) => LabError::Settings(said),
            Ok(KeeperResponse::Stopped) => LabError::Keeper("the server was stopped while it started".to_owned()),
            Err(error) => error,
        };
        keeper.requests = None;
        let _ = keeper.child.wait();
        Err(error)
    }

    pub(crate) fn takes_along(&mut self, process: Process) -> Result<(), LabError> {
        self.tell(&KeeperRequest::TakeAlong(process))
    }

    pub(crate) fn leave(mut self) -> Result<(), LabError> {
        self.tell(&KeeperRequest::Stay)?;
        self.requests = None;
        Ok(())
    }

    pub(crate) fn stop(mut self) -> Result<(), LabError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), LabError> {
        if self.requests.is_none() {
            return Ok(());
        }
        let told = self.tell(&KeeperRequest::Stop);
        self.requests = None;
        let answer = self.answer();
        let _ = self.child.wait();
        told?;
        match answer? {
            KeeperResponse::Failed(said) | KeeperResponse::Refused(said) => Err(LabError::Keeper(said)),
            KeeperResponse::Started(_) | KeeperResponse::Stopped => Ok(()),
        }
    }

    fn tell(&mut self, request: &KeeperRequest) -> Result<(), LabError> {
        let Some(requests) = &mut self.requests else { return Ok(()) };
        write_line(requests, request).map_err(failed)
    }

    fn answer(&mut self) -> Result<KeeperResponse, LabError> {
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(failed)?;
        serde_json::from_str(&line).map_err(|_| failed(io::Error::other("it ended without an answer")))
    }
}

impl Drop for KeeperProcess {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!("lab: {error}");
        }
    }
}

fn failed(error: io::Error) -> LabError {
    LabError::Program { program: "the process that takes care of the server".to_owned(), said: error.to_string() }
}

fn write_line(writer: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    writer.write_all(&line)?;
    writer.flush()
}

/// Called by the command passed to [`Launcher::kept_by`](crate::Launcher::kept_by). Returns when the server is gone.
pub fn keep() -> Result<(), LabError> {
    // Ctrl-C and a closing terminal concern the program that uses the server.
    let _ = rustix::process::setsid();
    std::env::set_current_dir("/").map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    // Install the handlers first, so that signals during the start are not lost.
    let signals = {
        let _entered = runtime.enter();
        [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal)
    };
    let [Ok(terminate), Ok(interrupt), Ok(hangup)] = signals else {
        return Err(failed(io::Error::other("signals can't be caught")));
    };

    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(failed)?;
    let Ok(KeeperRequest::Start { state, name, settings, detached }) = serde_json::from_str(&line) else {
        return Err(failed(io::Error::other("it is started by other commands, and not by hand")));
    };
    let running = match StateFolder::new(&state).and_then(|state| Running::start(&state, &name, &settings, detached)) {
        Ok(running) => running,
        Err(error) => {
            answer(&match &error {
                LabError::Settings(said) => KeeperResponse::Refused(said.clone()),
                _ => KeeperResponse::Failed(error.to_string()),
            });
            return Ok(());
        }
    };
    let requests =
        requests().map_err(failed).inspect_err(|error| answer(&KeeperResponse::Failed(error.to_string())))?;
    answer(&KeeperResponse::Started(Box::new(running.record.clone())));

    let along = runtime.block_on(until_the_end(requests, [terminate, interrupt, hangup]));
    // The thread that reads standard input may be blocked.
    runtime.shutdown_background();
    along.into_iter().for_each(end_process);
    let stopped = running.stop();
    answer(
        &stopped.as_ref().map_or_else(|error| KeeperResponse::Failed(error.to_string()), |()| KeeperResponse::Stopped),
    );
    stopped
}

async fn until_the_end(mut requests: mpsc::UnboundedReceiver<KeeperRequest>, signals: [Signal; 3]) -> Vec<Process> {
    let [mut terminate, mut interrupt, mut hangup] = signals;
    let mut along = Vec::new();
    let mut stays = false;
    loop {
        tokio::select! {
            _ = terminate.recv() => return along,
            _ = interrupt.recv() => return along,
            _ = hangup.recv() => return along,
            request = requests.recv(), if !stays => match request {
                Some(KeeperRequest::Stay) => stays = true,
                Some(KeeperRequest::TakeAlong(process)) => along.push(process),
                Some(KeeperRequest::Stop) => return Vec::new(),
                Some(KeeperRequest::Start { .. }) => {}
                None => return along,
            },
        }
    }
}

fn requests() -> io::Result<mpsc::UnboundedReceiver<KeeperRequest>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let listen = move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            let Ok(request) = serde_json::from_str(&line) else { continue };
            if sender.send(request).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("lab-requests".to_owned()).spawn(listen)?;
    Ok(receiver)
}

fn answer(answer: &KeeperResponse) {
    let _ = write_line(&mut io::stdout().lock(), answer);
}
