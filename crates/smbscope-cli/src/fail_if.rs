//! Results of `--fail-if`: warnings, JUnit XML and the exit status.

use crate::analyze;
use crate::junit::JunitFile;
use smbscope_report::{Judged, Judgement};

/// Messages of `--fail-if` conditions that hold.
#[derive(Debug)]
pub struct LimitExceeded(Vec<String>);

impl LimitExceeded {
    pub fn status(&self) -> u8 {
        3
    }

    /// Returns one line per condition, with the measured value and the limit.
    pub fn lines(&self) -> &[String] {
        &self.0
    }
}

impl std::fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for LimitExceeded {}

/// Writes the JUnit file, warns of undecided conditions, and fails if any condition holds.
pub(crate) fn settle(command: &str, judged: Vec<Judgement>, junit: Option<JunitFile>) -> anyhow::Result<()> {
    if let Some(junit) = junit {
        junit.write(command, &judged)?;
    }
    let texts = |wanted| judged.iter().filter(move |found| found.judged == wanted).map(|found| found.text.clone());
    analyze::say(&texts(Judged::Undecided).collect::<Vec<_>>());
    let lines: Vec<String> = texts(Judged::Holds).collect();
    if lines.is_empty() { Ok(()) } else { Err(LimitExceeded(lines).into()) }
}
