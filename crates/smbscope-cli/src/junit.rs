//! What came of `--fail-if` as JUnit XML, which pipelines show as tests.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use smbscope_report::compare::Judgement;
use std::io::{self, Write};

/// A suite for each column, in which each limit is a test. What is beyond its limit and not shown is one that was skipped:
/// it neither passed nor failed.
pub(crate) fn write(judged: &[Judgement], mut out: impl Write) -> io::Result<()> {
    let mut report = Report::new("smbscope compare");
    let mut suites: Vec<TestSuite> = Vec::new();
    for judgement in judged {
        let mut status = match (judgement.exceeded, judgement.beyond) {
            (true, _) => TestCaseStatus::non_success(NonSuccessKind::Failure),
            (false, true) => TestCaseStatus::skipped(),
            (false, false) => TestCaseStatus::success(),
        };
        status.set_message(judgement.text.as_str());
        let mut test = TestCase::new(judgement.limit.as_str(), status);
        test.set_classname(judgement.name.as_str());
        test.set_system_out(judgement.text.as_str());
        match suites.iter_mut().find(|suite| suite.name.as_str() == judgement.name) {
            Some(suite) => suite.add_test_case(test),
            None => {
                let mut suite = TestSuite::new(judgement.name.as_str());
                suite.add_test_case(test);
                suites.push(suite);
                continue;
            }
        };
    }
    report.add_test_suites(suites);
    let text = report.to_string().map_err(io::Error::other)?;
    out.write_all(text.as_bytes())
}
