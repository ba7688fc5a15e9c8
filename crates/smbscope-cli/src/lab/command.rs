//! `smbscope lab run`: runs a command with a private server.

use super::launcher;
use crate::arguments::RunArguments;
use crate::interrupt;
use anyhow::{Context, bail};
use smbscope_lab::LabServer;
use smbscope_run::PASSWORD_VARIABLE;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

/// The command of `lab run` failed; smbscope ends with the same status.
#[derive(Debug)]
pub struct CommandEnded(ExitStatus);

impl CommandEnded {
    /// Returns the exit code, or 128 plus the number of the signal, as shells do.
    pub fn status(&self) -> u8 {
        let code = self.0.code().or(self.0.signal().map(|signal| 128 + signal));
        code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }
}

impl std::fmt::Display for CommandEnded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the command ended with {}", self.0)
    }
}

impl std::error::Error for CommandEnded {}

pub(super) fn run(arguments: &RunArguments) -> anyhow::Result<()> {
    let Some((program, rest)) = arguments.command.split_first() else { bail!("there is no command to run") };
    let mut server = launcher(&arguments.state)?.start(&arguments.server.settings())?;
    if let Some(caveat) = server.record().link.as_ref().and_then(smbscope_lab::LinkEmulation::caveat) {
        crate::terminal::say(&format!("note: {caveat}"));
    }
    // The command also gets Ctrl-C from the terminal and decides how to react.
    interrupt::is_left_to_others();
    let mut command = Command::new(program);
    command.args(rest);
    tell(&mut command, &server);
    let mut child = command.spawn().with_context(|| format!("cannot run {}", program.display()))?;
    // Without the server the command is useless.
    server.takes_along(child.id())?;
    let status = child.wait().with_context(|| format!("cannot wait for {}", program.display()))?;
    server.stop()?;
    if status.success() { Ok(()) } else { Err(CommandEnded(status).into()) }
}

fn tell(command: &mut Command, server: &LabServer) {
    let record = server.record();
    command.env("SMBSCOPE_LAB_URL", record.url());
    command.env("SMBSCOPE_LAB_ENCRYPTED_URL", record.encrypted_url());
    command.env("SMBSCOPE_LAB_HOST", server.address().ip().to_string());
    command.env("SMBSCOPE_LAB_PORT", server.port().to_string());
    command.env("SMBSCOPE_LAB_USER", server.user());
    command.env("SMBSCOPE_LAB_INTERFACE", record.interface());
    command.env(PASSWORD_VARIABLE, server.password());
    command.env("SMBSCOPE_LAB_PASSWORD_FILE", record.password_file());
    command.env("SMBSCOPE_LAB_FOLDER", server.folder());
    command.env("SMBSCOPE_LAB_SHARE_FOLDER", server.share_folder());
    command.env("SMBSCOPE_LAB_CONF", server.folder().join("smb.conf"));
}
