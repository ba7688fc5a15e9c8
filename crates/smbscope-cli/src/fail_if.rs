//! Results of `--fail-if`: warnings, JUnit XML (`--junit`) for CI systems, and the exit status.

use crate::output::Output;
use crate::{BadArguments, terminal};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use smbscope_report::{Judged, Judgement, clean};
use smbscope_run::files::Sources;
use std::io;
use std::path::Path;

/// Messages of `--fail-if` conditions that hold.
#[derive(Debug)]
pub struct LimitExceeded(Vec<String>);

impl LimitExceeded {
    pub fn status(&self) -> u8 {
        3
    }

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
    terminal::warn(&texts(Judged::Undecided).collect::<Vec<_>>());
    let lines: Vec<String> = texts(Judged::Holds).collect();
    if lines.is_empty() { Ok(()) } else { Err(LimitExceeded(lines).into()) }
}

pub(crate) struct JunitFile(Output);

impl JunitFile {
    /// Opens the file if one was requested. It must be neither an input nor the file of `other`.
    pub(crate) fn open(path: Option<&Path>, sources: &Sources, other: &Output) -> anyhow::Result<Option<JunitFile>> {
        let Some(path) = path else { return Ok(None) };
        let output = Output::open(Some(path), sources)?;
        if output.is_same_as(other) {
            let text = format!("--junit {} is also the file of the report: name another file", path.display());
            return Err(BadArguments(text).into());
        }
        Ok(Some(JunitFile(output)))
    }

    pub(crate) fn write(mut self, command: &str, judged: &[Judgement]) -> anyhow::Result<()> {
        let text = report(command, judged).to_string().map_err(io::Error::other);
        let result = text.and_then(|text| self.0.writer().write_all(text.as_bytes()));
        self.0.settle(result)
    }
}

/// Builds a suite per capture or side with a test per condition. Undecided ones are skipped: they neither passed nor
/// failed.
fn report(command: &str, judged: &[Judgement]) -> Report {
    let mut report = Report::new(format!("smbscope {command}"));
    let mut suites: Vec<TestSuite> = Vec::new();
    for judgement in judged {
        let mut status = match judgement.judged {
            Judged::Holds => TestCaseStatus::non_success(NonSuccessKind::Failure),
            Judged::Undecided => TestCaseStatus::skipped(),
            Judged::DoesNotHold => TestCaseStatus::success(),
        };
        // CI systems display them verbatim.
        let [text, condition, name] = [&judgement.text, &judgement.condition, &judgement.name].map(|text| clean(text));
        status.set_message(text.as_str());
        let mut test = TestCase::new(condition.as_str(), status);
        test.set_classname(name.as_str());
        test.set_system_out(text.as_str());
        match suites.iter_mut().find(|suite| suite.name.as_str() == name) {
            Some(suite) => suite.add_test_case(test),
            None => {
                let mut suite = TestSuite::new(name.as_str());
                suite.add_test_case(test);
                suites.push(suite);
                continue;
            }
        };
    }
    report.add_test_suites(suites);
    report
}
