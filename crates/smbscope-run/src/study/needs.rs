//! Checks what a study needs before its first run: a missing program would otherwise show after minutes, or as failed
//! runs.

use super::{PlannedVariant, Study};
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

    fn is_of(&self, variants: &[PlannedVariant]) -> bool {
        self.setting.as_ref().is_none_or(|setting| {
            variants.iter().any(|variant| variant.settings.iter().any(|(_, name)| name == setting))
        })
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

/// Returns everything that is missing in one line, with the command that installs it.
pub(super) fn check(study: &Study, variants: &[PlannedVariant]) -> Result<(), String> {
    let missing: Vec<&Need> = study.needs.iter().filter(|need| need.is_of(variants) && !need.is_met()).collect();
    let programs: Vec<&str> = missing.iter().filter_map(|need| need.program.as_deref()).collect();
    let packages: BTreeSet<&str> = missing.iter().filter_map(|need| need.package.as_deref()).collect();
    let mut texts: Vec<String> = Vec::new();
    if variants.iter().any(PlannedVariant::has_private_server) {
        texts.extend(smbscope_lab::available().err());
    }
    if !programs.is_empty() {
        let packages = packages.into_iter().collect::<Vec<_>>().join(" ");
        texts.push(format!("{} not installed (Debian, Ubuntu: apt install {packages})", are(&programs)));
    }
    texts.extend(missing.iter().filter_map(|need| need.otherwise.clone()));
    match texts.as_slice() {
        [] => Ok(()),
        texts => Err(format!("{} can't run here: {}", study.name, texts.join("; "))),
    }
}

/// Formats `a is`, or `a, b and c are`.
fn are(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => format!("{last} is"),
        Some((last, others)) => format!("{} and {last} are", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(needs: &str) -> Result<(), String> {
        let text = format!(
            "name = 'x'\n{needs}\n[[axis]]\nname = 'a'\n[[axis.setting]]\nname = 'on'\nbench.target = 'file:.'\n"
        );
        let study = Study::parse("x.toml", &text, false).expect("a study");
        check(&study, &study.variants())
    }

    #[test]
    fn everything_that_is_missing_is_told_at_once_with_the_command_that_installs_it() {
        assert_eq!(
            missing("[[need]]\nprogram = 'sh'\npackage = 'dash'\n[[need]]\nfile = '/'\notherwise = 'none'"),
            Ok(())
        );
        let needs = "[[need]]\nprogram = 'no-such-a'\npackage = 'b'\n[[need]]\nprogram = 'no-such-b'\npackage = 'a'\n\
                     [[need]]\nfile = '/no/such'\notherwise = 'the power profile is fixed'\n\
                     [[need]]\nvariable = 'NO_SUCH_VARIABLE'\notherwise = 'off has none'\nsetting = 'off'";
        let expected = "x can't run here: no-such-a and no-such-b are not installed (Debian, Ubuntu: apt install a b); \
                        the power profile is fixed";
        assert_eq!(missing(needs), Err(expected.to_owned()));
    }

    #[test]
    fn a_need_without_advice_is_refused() {
        for need in ["program = 'a'", "file = '/a'", "program = 'a'\npackage = 'b'\nroot = true\notherwise = 'c'", ""] {
            let error =
                Study::parse("x.toml", &format!("name = 'x'\n[[need]]\n{need}"), false).unwrap_err().to_string();
            assert!(error.starts_with("x.toml:2:1: a need is a program with its package"), "{error}");
        }
    }
}
