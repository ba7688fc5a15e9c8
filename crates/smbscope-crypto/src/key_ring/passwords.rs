//! Passwords of users: the first line of a file, as for `bench`, or the credentials file of smbclient and mount.cifs.

use super::KeyFileError;
use std::fmt;
use zeroize::Zeroizing;

/// Password of a user, or of any user if `user` is `None`.
pub struct UserPassword {
    pub user: Option<String>,
    pub domain: Option<String>,
    pub text: Zeroizing<String>,
}

impl UserPassword {
    /// Returns true unless the file restricts the password to another user or domain.
    pub fn may_belong_to(&self, user: &str, domain: &str) -> bool {
        let fits = |wanted: &Option<String>, there: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.to_lowercase() == there.to_lowercase())
        };
        fits(&self.user, user) && fits(&self.domain, domain)
    }
}

impl fmt::Debug for UserPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserPassword(secret)")
    }
}

/// Parses `username = …`, `password = …` and `domain = …`, each user beginning with his name; or a single password.
pub(super) fn parse(text: &str) -> Result<Vec<UserPassword>, KeyFileError> {
    let Some(entries) = entries(text) else {
        // Blanks are part of the password.
        let text = text.lines().next().unwrap_or_default();
        return match text.is_empty() {
            true => Err(KeyFileError::Malformed { line: 1, expected: "a password" }),
            false => Ok(vec![UserPassword { user: None, domain: None, text: Zeroizing::new(text.to_owned()) }]),
        };
    };
    let mut found: Vec<UserPassword> = Vec::new();
    let (mut user, mut domain, mut password) = (None, None, None);
    let mut end = |user: &mut Option<String>, domain: &mut Option<String>, password: &mut Option<Zeroizing<String>>| {
        if let Some(text) = password.take() {
            found.push(UserPassword { user: user.take(), domain: domain.take(), text });
        }
    };
    for (key, value) in entries {
        match key {
            CredentialKey::User => {
                end(&mut user, &mut domain, &mut password);
                user = Some(value.trim().to_owned());
            }
            CredentialKey::Domain => domain = Some(value.trim().to_owned()).filter(|domain| !domain.is_empty()),
            CredentialKey::Password => password = Some(Zeroizing::new(value.to_owned())),
        }
    }
    end(&mut user, &mut domain, &mut password);
    if found.is_empty() { Err(KeyFileError::NoKeys) } else { Ok(found) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CredentialKey {
    User,
    Password,
    Domain,
}

/// Returns the entries if every line is one, and one of them is a password.
fn entries(text: &str) -> Option<Vec<(CredentialKey, &str)>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let entries: Option<Vec<_>> = lines
        .map(|line| {
            let (key, value) = line.split_once('=')?;
            let key = match key.trim().to_ascii_lowercase().as_str() {
                "username" | "user" => CredentialKey::User,
                "password" | "pass" => CredentialKey::Password,
                "domain" | "dom" | "workgroup" => CredentialKey::Domain,
                _ => return None,
            };
            // smbclient and mount.cifs skip blanks before a value.
            Some((key, value.trim_start()))
        })
        .collect();
    entries.filter(|entries| entries.iter().any(|(key, _)| *key == CredentialKey::Password))
}
