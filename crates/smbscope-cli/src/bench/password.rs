//! The password of a user: from a file, the environment or a prompt, and never from an argument, which everybody on the
//! machine could read.

use anyhow::{Context, bail};
use smbscope_load::client::Secret;
use std::io::IsTerminal;
use std::path::Path;

/// The variable of the environment that may hold it.
pub(crate) const VARIABLE: &str = "SMBSCOPE_PASSWORD";

/// The password of `user`: the first line of the file, the variable, or what is typed.
pub(crate) fn of(user: &str, file: Option<&Path>) -> anyhow::Result<Secret> {
    if let Some(file) = file {
        let name = file.display();
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read the password file {name}"))?;
        return Ok(Secret::new(first_line(&text).to_owned()));
    }
    if let Some(password) = std::env::var_os(VARIABLE) {
        let Ok(password) = password.into_string() else { bail!("{VARIABLE} is not UTF-8") };
        return Ok(Secret::new(password));
    }
    if !std::io::stdin().is_terminal() {
        bail!("no password for {user}: set {VARIABLE}, or name a file with --password-file");
    }
    let typed = rpassword::prompt_password(format!("Password of {user}: ")).context("cannot read the password")?;
    Ok(Secret::new(typed))
}

/// A file's last line end is not part of the password; blanks may be.
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
    fn a_missing_file_is_named() {
        let error = of("ann", Some(Path::new("/nonexistent/secret"))).expect_err("there is none");
        assert!(error.to_string().contains("/nonexistent/secret"), "{error}");
    }
}
