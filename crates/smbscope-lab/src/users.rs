//! Users and the files with their passwords.

use crate::LabError;
use crate::accounts::SystemAccounts;
use crate::child::command_for;
use crate::tools::{self, Tools};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// File with the first user's password, for `--password-file`.
pub(crate) const PASSWORD_FILE: &str = "password";
/// File with a line `user:password` for each user.
const PASSWORDS_FILE: &str = "passwords";

/// User of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabUser {
    /// Name for clients.
    pub name: String,
    /// System account of the user.
    pub account: String,
}

/// Password, hidden from debug output.
#[derive(Clone)]
pub(crate) struct Password(String);

impl Password {
    /// Generates 128 random bits.
    fn generate() -> Result<Password, LabError> {
        let mut bytes = [0; 16];
        let filled = getrandom::fill(&mut bytes);
        filled.map_err(|error| LabError::Unavailable(format!("no randomness for passwords: {error}")))?;
        Ok(Password(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Returns `bench`, `bench2`, …, each with its own account.
pub(crate) fn choose(count: u16, accounts: &SystemAccounts) -> Result<Vec<LabUser>, LabError> {
    let available = accounts.for_users.len();
    if usize::from(count) > available {
        let text = format!(
            "{count} users need as many accounts in /etc/passwd, and {available} are there besides those of root and of guests"
        );
        return Err(LabError::Settings(text));
    }
    let name = |index: usize| if index == 0 { "bench".to_owned() } else { format!("bench{}", index + 1) };
    let chosen = accounts.for_users.iter().take(count.into()).enumerate();
    Ok(chosen.map(|(index, account)| LabUser { name: name(index), account: account.clone() }).collect())
}

/// Creates the users in Samba with random passwords, and stores those for the owner of the server.
pub(crate) fn enroll(folder: &Path, users: &[LabUser], tools: &Tools) -> Result<Vec<Password>, LabError> {
    let map: String = users.iter().map(|user| format!("{} = {}\n", user.account, user.name)).collect();
    let file = folder.join("username.map");
    fs::write(&file, map).map_err(LabError::file("write", &file))?;
    let (mut passwords, mut lines) = (Vec::new(), String::new());
    for user in users {
        let password = Password::generate()?;
        let mut pdbedit = command_for(&tools.pdbedit);
        pdbedit.arg("-s").arg(folder.join("smb.conf")).args(["-a", "-t", "-u", &user.account]);
        let text = password.reveal();
        tools::run(&mut pdbedit, &format!("{text}\n{text}\n"))?;
        lines += &format!("{}:{text}\n", user.name);
        passwords.push(password);
    }
    write_secret(&folder.join(PASSWORDS_FILE), &lines)?;
    let first = passwords.first().map_or("", Password::reveal);
    write_secret(&folder.join(PASSWORD_FILE), &format!("{first}\n"))?;
    Ok(passwords)
}

/// Reads the passwords of a server that another process started, in the order of its users.
pub(crate) fn read(folder: &Path) -> Result<Vec<Password>, LabError> {
    let file = folder.join(PASSWORDS_FILE);
    let text = fs::read_to_string(&file).map_err(LabError::file("read", &file))?;
    let passwords = text.lines().filter_map(|line| line.split_once(':'));
    Ok(passwords.map(|(_, password)| Password(password.to_owned())).collect())
}

/// Creates a file that only the owner can read.
fn write_secret(path: &Path, text: &str) -> Result<(), LabError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(LabError::file("write", path))
}
