//! Unix accounts that the server's users act as.
//!
//! Samba needs an existing account of the system behind every user. None is made: a user map gives accounts that are
//! there a second name (`daemon = bench`). Files are accessed as the account that runs the server whoever asks, so that
//! guest and users see the same files with the same rights.

use crate::Error;
use std::path::Path;

/// The accounts of this machine, as far as the server needs them.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// Who runs the server.
    pub(crate) own: String,
    /// Who guests are.
    pub(crate) guest: String,
    /// Accounts that users can be, in the order in which they are taken.
    pub(crate) for_users: Vec<String>,
}

impl Accounts {
    /// Those of `/etc/passwd`.
    pub(crate) fn read() -> Result<Accounts, Error> {
        let file = Path::new("/etc/passwd");
        let text = std::fs::read_to_string(file).map_err(Error::file("read", file))?;
        Accounts::choose(&text, rustix::process::geteuid().as_raw())
    }

    /// For the user id that runs the server.
    fn choose(passwd: &str, uid: u32) -> Result<Accounts, Error> {
        let all: Vec<(&str, u32)> = passwd.lines().filter_map(account).collect();
        let Some(&(own, _)) = all.iter().find(|(_, id)| *id == uid) else {
            let text = format!("the user id {uid} has no name in /etc/passwd, and Samba needs one: add a line for it");
            return Err(Error::Unavailable(text));
        };
        // Another account can't be taken on without root. Guests are then the user who runs the server, too.
        let nobody = all.iter().find(|(name, id)| *name == "nobody" && *id != 0 && uid == 0);
        let guest = nobody.map_or(own, |(name, _)| *name);
        let others = all.iter().filter(|(name, id)| *id != 0 && *id != uid && *name != guest);
        let first = (uid != 0).then_some(own);
        let for_users: Vec<String> =
            first.into_iter().chain(others.map(|(name, _)| *name)).map(str::to_owned).collect();
        if for_users.is_empty() {
            let text = "/etc/passwd has no account other than root, and Samba needs one for its user: add one";
            return Err(Error::Unavailable(text.to_owned()));
        }
        Ok(Accounts { own: own.to_owned(), guest: guest.to_owned(), for_users })
    }
}

/// Name and user id of a line of passwd(5).
fn account(line: &str) -> Option<(&str, u32)> {
    let mut fields = line.split(':');
    let name = fields.next().filter(|name| !name.is_empty() && !name.contains(char::is_whitespace))?;
    Some((name, fields.nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1::/:/bin/false\nbin:x:2:2::/:/bin/false\n\
        nobody:x:65534:65534::/:/bin/false\nann:x:1000:1000::/home/ann:/bin/sh\n";

    #[test]
    fn root_runs_the_server_with_unprivileged_accounts_for_users() {
        let accounts = Accounts::choose(PASSWD, 0).expect("there are accounts");
        assert_eq!((accounts.own.as_str(), accounts.guest.as_str()), ("root", "nobody"));
        assert_eq!(accounts.for_users, ["daemon", "bin", "ann"]);
    }

    #[test]
    fn an_ordinary_user_is_its_own_first_user_and_guest() {
        let accounts = Accounts::choose(PASSWD, 1000).expect("there are accounts");
        assert_eq!((accounts.own.as_str(), accounts.guest.as_str()), ("ann", "ann"));
        assert_eq!(accounts.for_users, ["ann", "daemon", "bin", "nobody"]);
    }

    #[test]
    fn a_user_without_a_name_is_told_so() {
        let error = Accounts::choose(PASSWD, 4711).expect_err("4711 is not there");
        assert!(error.to_string().starts_with("the user id 4711 has no name in /etc/passwd"), "{error}");
    }
}
