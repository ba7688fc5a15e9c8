//! Passwords from a file, the environment or a prompt, never from an argument, which every user of the machine could
//! read.

use anyhow::{Context, bail};
use smbscope_client::Secret;
use smbscope_report::clean;
use smbscope_run::{PASSWORD_VARIABLE, Passwords};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

/// Maximum length of the first line of a password file. Windows accepts passwords of 256 characters.
const PASSWORD_LINE_MAX: u64 = 4 << 10;

/// Returns a function that reads passwords.
pub(crate) fn source(file: Option<PathBuf>) -> Box<Passwords> {
    Box::new(move |user| Ok(read(user, file.as_deref())?))
}

/// Returns the password of `user`: the first line of the file, the variable, or a typed answer.
fn read(user: &str, file: Option<&Path>) -> anyhow::Result<Secret> {
    if let Some(file) = file {
        let name = file.display();
        let line = first_line_of(file).with_context(|| format!("cannot read the password file {name}"))?;
        if first_line(&line).is_empty() {
            bail!("the password file {name} begins with an empty line: write the password there");
        }
        return Ok(Secret::new(first_line(&line).to_owned()));
    }
    if let Some(password) = std::env::var_os(PASSWORD_VARIABLE) {
        let Ok(password) = password.into_string() else { bail!("{PASSWORD_VARIABLE} is not UTF-8") };
        return Ok(Secret::new(password));
    }
    if !std::io::stdin().is_terminal() {
        bail!("no password for {user}: set {PASSWORD_VARIABLE}, or name a file with --password-file");
    }
    let typed =
        rpassword::prompt_password(format!("Password of {}: ", clean(user))).context("cannot read the password")?;
    Ok(Secret::new(typed))
}

/// Reads only the first line: the file may be endless.
fn first_line_of(file: &Path) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(File::open(file)?.take(PASSWORD_LINE_MAX)).read_line(&mut line)?;
    if line.len() as u64 == PASSWORD_LINE_MAX && !line.ends_with('\n') {
        return Err(io::Error::other(format!("its first line has more than {PASSWORD_LINE_MAX} bytes")));
    }
    Ok(line)
}

/// Removes the line end. Blanks are part of the password.
fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_end_is_no_part_of_a_password_but_blanks_are() {
        assert_eq!(["a b \n", "a b \r\n", "a b "].map(first_line), ["a b "; 3]);
        assert_eq!(first_line(""), "");
    }

    #[test]
    fn no_more_than_a_line_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "secret\n".to_owned() + &"x".repeat(1 << 20)).unwrap();
        assert_eq!(first_line_of(file.path()).unwrap(), "secret\n");
        let endless = first_line_of(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(endless, "its first line has more than 4096 bytes");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read("ann", Some(Path::new("/nonexistent/secret"))).expect_err("there is none");
        assert!(error.to_string().contains("/nonexistent/secret"), "{error}");
    }
}
