//! Checks what a study needs before its first run: a missing program would otherwise show after minutes, or as failed
//! runs.

use crate::environment::on_path;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A program, a file, an environment variable, or the rights of root.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    program: Option<String>,
    /// Debian package that contains the program.
    package: Option<String>,
    file: Option<PathBuf>,
    variable: Option<String>,
    #[serde(default)]
    root: bool,
    /// Message if it is missing. Programs need none.
    otherwise: Option<String>,
    /// Setting that needs it. `None` if all variants do.
    setting: Option<String>,
}

impl Need {
    /// Returns the mistake in an entry that is not valid.
    pub(super) fn problem(&self) -> Option<&'static str> {
        let named = [self.program.is_some(), self.file.is_some(), self.variable.is_some(), self.root];
        match named.iter().filter(|named| **named).count() {
            1 if self.program.is_some() == self.package.is_some()
                && self.program.is_some() != self.otherwise.is_some() =>
            {
                None
            }
            _ => Some(
                "a need is a program with its package, or one of file, variable and root with a text: otherwise = \"…\"",
            ),
        }
    }

    fn is_of(&self, settings: &BTreeSet<&str>) -> bool {
        self.setting.as_deref().is_none_or(|setting| settings.contains(setting))
    }

    /// Returns false if it is missing here.
    fn is_met(&self) -> bool {
        self.program.as_ref().is_none_or(|program| on_path(program).is_some())
            && self.file.as_ref().is_none_or(|file| file.exists())
            && self.variable.as_ref().is_none_or(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
            && (!self.root || is_root())
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// Returns everything that is missing for runs with these settings, with the command that installs it, in one line.
pub(super) fn missing(needs: &[Need], settings: &BTreeSet<&str>, has_private_servers: bool) -> Option<String> {
    let missing: Vec<&Need> = needs.iter().filter(|need| need.is_of(settings) && !need.is_met()).collect();
    let programs: Vec<&str> = missing.iter().filter_map(|need| need.program.as_deref()).collect();
    let packages: BTreeSet<&str> = missing.iter().filter_map(|need| need.package.as_deref()).collect();
    let mut texts: Vec<String> = Vec::new();
    if has_private_servers {
        texts.extend(smbscope_lab::available().err());
    }
    if !programs.is_empty() {
        let packages = packages.into_iter().collect::<Vec<_>>().join(" ");
        texts.push(format!("{} not installed (Debian, Ubuntu: apt install {packages})", are(&programs)));
    }
    texts.extend(missing.iter().filter_map(|need| need.otherwise.clone()));
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Formats `a is`, or `a, b and c are`.
fn are(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => format!("{last} is"),
        Some((last, others)) => format!("{} and {last} are", others.join(", ")),
        None => String::new(),
    }
}
