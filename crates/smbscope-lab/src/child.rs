//! Children without the user's password.

use std::ffi::OsStr;
use std::process::Command;

pub const PASSWORD_VARIABLE: &str = "SMBSCOPE_PASSWORD";

/// Returns a command that does not inherit the user's password, which the child would pass on to its own children.
pub fn command_for(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove(PASSWORD_VARIABLE);
    command
}
