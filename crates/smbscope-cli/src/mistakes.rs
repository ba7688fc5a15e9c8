//! Advice for command lines that clap refuses without knowing what the user meant.

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use smbscope_stats::filter::did_you_mean;
use std::ffi::OsString;
use std::path::Path;

/// Adds a tip to an error of the command line, and hides a password in it. The line starts with the program's name.
pub(crate) fn explained(mut error: Error, line: &[OsString]) -> Error {
    let words: Vec<&str> = line.iter().skip(1).filter_map(|word| word.to_str()).collect();
    if let Some(hidden) = context(&error, ContextKind::InvalidValue).and_then(|value| without_password(&value)) {
        error.insert(ContextKind::InvalidValue, ContextValue::String(hidden));
    }
    if let Some(tip) = tip(&error, &words) {
        // clap's own proposal, and the usage that it is about.
        if error.remove(ContextKind::SuggestedArg).is_some() {
            error.remove(ContextKind::Usage);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

fn context(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        _ => None,
    }
}

fn tip(error: &Error, words: &[&str]) -> Option<String> {
    let argument = || context(error, ContextKind::InvalidArg);
    match (error.kind(), words) {
        (ErrorKind::ArgumentConflict | ErrorKind::ValueValidation, ["bench", rest @ ..])
            if rest.windows(2).any(|pair| pair == ["--capture", "both"]) =>
        {
            Some("the value follows =: --capture=both".to_owned())
        }
        (ErrorKind::InvalidSubcommand, [first, ..]) => {
            Path::new(first).exists().then(|| format!("to read a capture: smbscope analyze {first}"))
        }
        (ErrorKind::UnknownArgument, ["bench", ..]) if argument()?.starts_with("--target") => {
            Some("bench takes its target without an option: smbscope bench smb://host/share".to_owned())
        }
        (ErrorKind::UnknownArgument, ["launch", ..] | ["lab", "run", ..]) => {
            let wrong = argument().filter(|wrong| !wrong.starts_with('-') && !words.contains(&"--"))?;
            Some(format!("the command follows --: -- {wrong}"))
        }
        (ErrorKind::ArgumentConflict | ErrorKind::ValueValidation, ["bench", second, ..]) => {
            did_you_mean(second, ["clean", "workloads"])
        }
        _ => None,
    }
}

/// Returns a URL with dots for its password, or `None` if it has none.
fn without_password(value: &str) -> Option<String> {
    let (scheme, rest) = value.split_once("://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (login, host) = authority.rsplit_once('@')?;
    let (user, _) = login.split_once(':')?;
    Some(format!("{scheme}://{user}:…@{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;

    fn refused(line: &[&str]) -> String {
        let line: Vec<OsString> = std::iter::once(&"smbscope").chain(line).map(OsString::from).collect();
        Arguments::parse_line(line).expect_err("a mistake").to_string()
    }

    #[test]
    fn a_mistake_gets_the_command_that_was_meant() {
        for (line, tip) in [
            (&["Cargo.toml"][..], "tip: to read a capture: smbscope analyze Cargo.toml"),
            (&["bench", "--target", "smb://files/x"], "tip: bench takes its target without an option: smbscope bench"),
            (&["bench", "claen", "smb://files/x"], "tip: did you mean clean?"),
            (&["bench", "claen"], "tip: did you mean clean?"),
            (&["launch", "true"], "tip: the command follows --: -- true"),
            (&["bench", "--capture", "both", "smb://files/x"], "tip: the value follows =: --capture=both"),
            (&["lab", "run", "--delay", "1ms", "true"], "tip: the command follows --: -- true"),
            (&["analyse", "x.pcap"], "tip: a similar subcommand exists: 'analyze'"),
            (&["analyze", "--fromat", "json", "x.pcap"], "tip: a similar argument exists: '--format'"),
        ] {
            let text = refused(line);
            assert!(text.contains(tip), "{line:?}: {text}");
        }
        assert!(!refused(&["bench", "--target", "smb://files/x"]).contains("--rate"));
    }

    #[test]
    fn a_password_in_a_url_is_not_repeated() {
        for target in ["smb://ann:secret@files/x", "smb://ann:se@cret@files/x", "smb://ann:secret@files"] {
            let text = refused(&["bench", target]);
            assert!(text.contains("smb://ann:…@files") && !text.contains("cret"), "{text}");
        }
    }
}
