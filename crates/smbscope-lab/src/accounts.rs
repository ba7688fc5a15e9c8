//! Unix accounts that the server's users act as.
//!
//! Samba needs an existing account of the system behind every user. None is made: a user map gives accounts that are
//! there a second name (`daemon = bench`). The server's own files are accessed as the account that runs it, whoever asks, so
//! that guest and users see the same files with the same rights. A folder that was there before is another matter: root
//! could read and change everything in it, so a server that root runs accesses it as its owner, or, where that is root, with
//! the rights of those accounts.

use crate::LabError;
use std::path::Path;

/// The accounts of this machine, as far as the server needs them.
#[derive(Debug)]
pub(crate) struct SystemAccounts {
    /// Who runs the server.
    pub(crate) own: String,
    /// Who guests are.
    pub(crate) guest: String,
    /// Accounts that users can be, in the order in which they are taken.
    pub(crate) for_users: Vec<String>,
    /// Every account.
    all: Vec<PasswdEntry>,
}

/// An account of passwd(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PasswdEntry {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl SystemAccounts {
    /// Those of `/etc/passwd`.
    pub(crate) fn read() -> Result<SystemAccounts, LabError> {
        let file = Path::new("/etc/passwd");
        let text = std::fs::read_to_string(file).map_err(LabError::file("read", file))?;
        SystemAccounts::choose(&text, rustix::process::geteuid().as_raw())
    }

    /// For the user id that runs the server.
    fn choose(passwd: &str, uid: u32) -> Result<SystemAccounts, LabError> {
        let all: Vec<PasswdEntry> = passwd.lines().filter_map(account).collect();
        let name = |account: &PasswdEntry| account.name.clone();
        let Some(own) = all.iter().find(|account| account.uid == uid).map(name) else {
            let text = format!("the user id {uid} has no name in /etc/passwd, and Samba needs one: add a line for it");
            return Err(LabError::Unavailable(text));
        };
        // Another account can't be taken on without root. Guests are then the user who runs the server, too.
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

    /// As whom the files of a folder that was there before are accessed, its owner being `owner`: `None` for each user's
    /// own account. Never an account with more rights on it than its owner has, and never root.
    pub(crate) fn for_folder(&self, owner: u32) -> Option<&str> {
        let caller = self.all.iter().find(|account| account.name == self.own);
        if caller.is_some_and(|caller| caller.uid != 0) {
            return Some(&self.own);
        }
        let named = self.all.iter().find(|account| account.uid == owner && owner != 0);
        named.map(|account| account.name.as_str())
    }

    /// The account of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&PasswdEntry> {
        self.all.iter().find(|account| account.name == name)
    }
}

/// A line of passwd(5).
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

    /// Expected values: no account may get rights on a folder that its owner has not, and nobody those of root.
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
