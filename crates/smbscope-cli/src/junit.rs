//! `--junit`: writes the results of `--fail-if` as JUnit XML for CI systems.

use crate::BadArguments;
use crate::output::Output;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use smbscope_report::{Judged, Judgement, clean};
use smbscope_run::files::Sources;
use std::io;
use std::path::Path;

/// Open output file for the results.
pub(crate) struct JunitFile(Output);

impl JunitFile {
    /// Opens the file if one was requested. It must be neither an input nor the file of `other`.
    pub(crate) fn open(path: Option<&Path>, sources: &Sources, other: &Output) -> anyhow::Result<Option<JunitFile>> {
        let Some(path) = path else { return Ok(None) };
        let output = Output::open(Some(path), sources)?;
        if output.is_same_as(other) {
            let text = format!("--junit {} is where the report goes, too: name another file", path.display());
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
