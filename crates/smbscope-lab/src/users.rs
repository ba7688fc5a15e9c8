//! Users of a server, the files with their passwords, and their Unix accounts.
//!
//! Samba needs a system account for every user: a user map gives existing accounts a second name (`daemon = bench`).
//! Samba accesses the server's own files as the account that runs it, so that guests and users see the same files. In a
//! folder that existed before, root could read and change everything: a server run by root accesses it as its owner,
//! or, if that is root, with the rights of the users' accounts.

use crate::LabError;
use crate::command_for;
use crate::tools::{self, Tools};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub(crate) const PASSWORD_FILE: &str = "password";
const PASSWORDS_FILE: &str = "passwords";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabUser {
    pub name: String,
    pub account: String,
}

#[derive(Clone)]
pub(crate) struct Password(String);

impl Password {
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

/// Chooses `bench`, `bench2`, …, each with its own account.
pub(crate) fn choose(count: u16, accounts: &SystemAccounts) -> Result<Vec<LabUser>, LabError> {
    let available = accounts.for_users.len();
    if usize::from(count) > available {
        let text = format!(
            "{count} users need {count} accounts in /etc/passwd, which has {available} besides root's and the guest's"
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

pub(crate) fn read(folder: &Path) -> Result<Vec<Password>, LabError> {
    let file = folder.join(PASSWORDS_FILE);
    let text = fs::read_to_string(&file).map_err(LabError::file("read", &file))?;
    let passwords = text.lines().filter_map(|line| line.split_once(':'));
    Ok(passwords.map(|(_, password)| Password(password.to_owned())).collect())
}

fn write_secret(path: &Path, text: &str) -> Result<(), LabError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(LabError::file("write", path))
}

#[derive(Debug)]
pub(crate) struct SystemAccounts {
    pub(crate) own: String,
    pub(crate) guest: String,
    pub(crate) for_users: Vec<String>,
    all: Vec<PasswdEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PasswdEntry {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl SystemAccounts {
    pub(crate) fn read() -> Result<SystemAccounts, LabError> {
        let file = Path::new("/etc/passwd");
        let text = std::fs::read_to_string(file).map_err(LabError::file("read", file))?;
        SystemAccounts::choose(&text, rustix::process::geteuid().as_raw())
    }

    fn choose(passwd: &str, uid: u32) -> Result<SystemAccounts, LabError> {
        let all: Vec<PasswdEntry> = passwd.lines().filter_map(account).collect();
        let name = |account: &PasswdEntry| account.name.clone();
        let Some(own) = all.iter().find(|account| account.uid == uid).map(name) else {
            let text = format!("the user id {uid} has no name in /etc/passwd, and Samba needs one: add a line for it");
            return Err(LabError::Unavailable(text));
        };
        // Changing accounts requires root. Otherwise guests act as the user who runs the server.
        let nobody = all.iter().find(|account| account.name == "nobody" && account.uid != 0 && uid == 0);
        let guest = nobody.map_or_else(|| own.clone(), name);
        let others = all.iter().filter(|account| account.uid != 0 && account.uid != uid && account.name != guest);
        let first = (uid != 0).then(|| own.clone());
        let for_users: Vec<String> = first.into_iter().chain(others.map(name)).collect();
        if for_users.is_empty() {
            let text = "/etc/passwd has no account other than root, and Samba needs one for its user: add one";
            return Err(LabError::Unavailable(text.to_owned()));
        }
        Ok(SystemAccounts { own, guest, for_users, all })
    }

    /// Returns the account for accessing an existing folder of this owner, or `None` for each user's own account.
    /// Never root, and never an account with more rights on the folder than its owner.
    pub(crate) fn for_folder(&self, owner: u32) -> Option<&str> {
        let caller = self.all.iter().find(|account| account.name == self.own);
        if caller.is_some_and(|caller| caller.uid != 0) {
            return Some(&self.own);
        }
        let named = self.all.iter().find(|account| account.uid == owner && owner != 0);
        named.map(|account| account.name.as_str())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&PasswdEntry> {
        self.all.iter().find(|account| account.name == name)
    }
}

fn account(line: &str) -> Option<PasswdEntry> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty() && !name.contains(char::is_whitespace))?;
    Some(PasswdEntry { name: name.to_owned(), uid: fields.nth(1)?.parse().ok()?, gid: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1::/:/bin/false\nbin:x:2:2::/:/bin/false\n\
        nobody:x:65534:65534::/:/bin/false\nann:x:1000:1000::/home/ann:/bin/sh\n";

    #[test]
    fn root_runs_the_server_with_unprivileged_accounts_for_users() {
        let accounts = SystemAccounts::choose(PASSWD, 0).expect("there are accounts");
        assert_eq!((accounts.own.as_str(), accounts.guest.as_str()), ("root", "nobody"));
        assert_eq!(accounts.for_users, ["daemon", "bin", "ann"]);
    }

    #[test]
    fn an_ordinary_user_is_its_own_first_user_and_guest() {
        let accounts = SystemAccounts::choose(PASSWD, 1000).expect("there are accounts");
        assert_eq!((accounts.own.as_str(), accounts.guest.as_str()), ("ann", "ann"));
        assert_eq!(accounts.for_users, ["ann", "daemon", "bin", "nobody"]);
    }

    /// No account may gain rights on a folder that its owner does not have, and none may gain root's.
    #[test]
    fn a_folder_that_was_there_before_is_never_accessed_as_root() {
        let root = SystemAccounts::choose(PASSWD, 0).expect("there are accounts");
        assert_eq!([0, 1000, 4711].map(|owner| root.for_folder(owner)), [None, Some("ann"), None]);
        let ann = SystemAccounts::choose(PASSWD, 1000).expect("there are accounts");
        assert_eq!([0, 1, 1000].map(|owner| ann.for_folder(owner)), [Some("ann"); 3]);
    }

    #[test]
    fn a_user_without_a_name_is_told_so() {
        let error = SystemAccounts::choose(PASSWD, 4711).expect_err("4711 is not there");
        assert!(error.to_string().starts_with("the user id 4711 has no name in /etc/passwd"), "{error}");
    }
}
