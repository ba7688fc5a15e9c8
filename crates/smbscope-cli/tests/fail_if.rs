//! `analyze --fail-if`: exit statuses, lines on standard error, and JUnit XML.

use crate::common::{Said, analyze, bundled, directory, write};
use std::path::Path;

const SLOW: &str = "demo-slow-server.pcap.zst";

fn gate(directory: &Path, arguments: &[&str]) -> Said {
    let capture = bundled(SLOW);
    let capture = capture.to_str().expect("the path is UTF-8");
    analyze(directory, &[&["-q", "-o", "report.json", capture][..], arguments].concat())
}

fn lines(said: &Said) -> Vec<&str> {
    said.err.lines().collect()
}

#[test]
fn conditions_that_hold_are_a_line_each_and_exit_status_3() {
    let directory = directory("fail_if_holds");
    let conditions =
        ["READ.p50 > 1us", "p50(READ) > 1us", "total.count > 0", "READ.max > 1h", "answer.culprit != capture"];
    let options: Vec<&str> = conditions.iter().flat_map(|condition| ["--fail-if", condition]).collect();
    let said = gate(&directory, &options);
    assert_eq!((said.status, said.out.as_str()), (Some(3), ""), "{}", said.err);
    let [first, second, third, fourth] = lines(&said)[..] else { panic!("four lines: {}", said.err) };
    assert!(first.starts_with("smbscope: READ.p50 > 1us: ") && first.ends_with("s, limit 1.00 µs"), "{first}");
    assert!(second.starts_with("smbscope: p50(READ) > 1us: "), "{second}");
    assert!(third.starts_with("smbscope: total.count > 0: ") && third.ends_with(", limit 0"), "{third}");
    assert!(fourth.starts_with("smbscope: answer.culprit != capture: the culprit is "), "{fourth}");
    let report = std::fs::read_to_string(directory.join("report.json")).expect("the report is written all the same");
    assert!(report.starts_with('{'));
    assert_eq!(gate(&directory, &["--fail-if", "READ.max > 1h"]).output(), "");
}

#[test]
fn a_missing_figure_is_a_warning_and_a_skipped_test() {
    let directory = directory("fail_if_missing");
    let (missing, fine) = ("READ_ANDX.p95 > 1ms", "READ.max > 1h");
    let said = gate(&directory, &["--fail-if", missing, "--fail-if", fine, "--junit", "smb.xml"]);
    let warning = "smbscope: warning: READ_ANDX.p95 > 1ms: no such figure: the capture has no READ_ANDX";
    assert_eq!((said.status, lines(&said)), (Some(0), vec![warning]));
    let xml = std::fs::read_to_string(directory.join("smb.xml")).expect("the file was written");
    let suites = "<testsuites name=\"smbscope analyze\" tests=\"2\" skipped=\"1\" failures=\"0\" errors=\"0\">";
    assert!(xml.contains(suites), "{xml}");
    let failed = gate(&directory, &["--fail-if", "total.count > 0", "--junit", "smb.xml", "--title", "Monday"]);
    assert_eq!(failed.status, Some(3), "{}", failed.err);
    let xml = std::fs::read_to_string(directory.join("smb.xml")).expect("the file was replaced");
    assert!(xml.contains("failures=\"1\"") && xml.contains("<testsuite name=\"Monday\""), "{xml}");
}

#[test]
fn wrong_conditions_are_refused_before_anything_is_read() {
    let directory = directory("fail_if_arguments");
    for (arguments, expected) in [
        (&["--fail-if", "REED.p95 > 20ms"][..], "did you mean READ"),
        (&["--fail-if", "answer.culprit == sever"], "did you mean server?"),
        (&["--fail-if", "answer.cause == slow-storge"], "did you mean slow-storage?"),
        (&["--fail-if", "READ.p95 > 20"], "a time needs its unit: did you mean 20ms?"),
        (&["--fail-if", "answer.lost > 1s", "--no-findings"], "needs the causes that --no-findings leaves out"),
        (&["--fail-if", "READ.p95 > 1s", "--format", "parquet"], "use --format text, markdown, json or html"),
        (&["--junit", "smb.xml"], "--fail-if <LIMIT>"),
    ] {
        let said = analyze(&directory, &[&["absent.pcap"], arguments].concat());
        assert_eq!((said.status, said.out.as_str()), (Some(2), ""), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(expected), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn no_file_is_both_the_report_and_junit_nor_an_input() {
    let directory = directory("fail_if_outputs");
    let capture = std::fs::read(bundled(SLOW)).expect("the capture is in the repository");
    write(&directory, "smb.pcap.zst", &capture);
    write(&directory, "report.json", "yesterday");
    let gate = |output: &str, junit: &str| {
        let options = ["-q", "smb.pcap.zst", "-o", output, "--junit", junit, "--format", "json"];
        analyze(&directory, &[&options[..], &["--fail-if", "total.count > 0"]].concat())
    };
    for (output, junit) in [("report.json", "./report.json"), ("new.json", "new.json"), ("-", "-")] {
        let expected = format!("--junit {junit} is also the file of the report: name another file");
        assert_eq!(gate(output, junit).error(2), expected);
    }
    let expected = "cannot write smb.pcap.zst: it is the input smb.pcap.zst; choose another name for the output";
    assert_eq!(gate("report.json", "smb.pcap.zst").error(1), expected);
    assert_eq!(std::fs::read(directory.join("report.json")).expect("it is still there"), b"yesterday");
    assert_eq!(std::fs::read(directory.join("smb.pcap.zst")).expect("it is still there"), capture);
    assert!(!directory.join("new.json").exists());
}
