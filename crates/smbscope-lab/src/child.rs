//! Child processes, which get nothing that is not theirs.

use std::ffi::OsStr;
use std::process::Command;

/// Environment variable that holds the user's password.
pub const PASSWORD_VARIABLE: &str = "SMBSCOPE_PASSWORD";

/// Returns a command that starts a program without the user's password in its environment, which a child would pass on to
/// whatever it starts.
pub fn command_for(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove(PASSWORD_VARIABLE);
    command
}
