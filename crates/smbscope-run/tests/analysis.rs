//! The analysis as a library: options without a command line, on a bundled capture.

use smbscope_report::json;
use smbscope_run::analysis::{AnalysisError, AnalysisObserver, AnalysisOptions, CaptureInput, CaptureSetAnalysis};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn office() -> [CaptureInput; 1] {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/demo-smb311-office.pcap.zst");
    [CaptureInput::File(data)]
}

/// Returns the report as JSON.
fn analyzed(options: &AnalysisOptions) -> Result<String, AnalysisError> {
    let report = CaptureSetAnalysis::run(&office(), options, &mut ())?.into_report(options)?;
    let mut text = Vec::new();
    json::write(&report, &mut text).expect("memory takes all");
    Ok(String::from_utf8(text).expect("JSON is UTF-8"))
}

#[test]
fn the_report_does_not_depend_on_the_number_of_threads() {
    let filter = "group == Read".parse().expect("a filter");
    let options = |threads| {
        let mut options = AnalysisOptions { filter: Some(Clone::clone(&filter)), ..Default::default() };
        options.reading.threads = Some(threads);
        options
    };
    let alone = analyzed(&options(1)).expect("a bundled capture");
    assert!(alone.contains("\"filter\": \"group == Read\""), "{alone}");
    assert_eq!(analyzed(&options(3)).expect("a bundled capture"), alone);
}

/// Stops every analysis before it begins.
struct Impatient;

impl AnalysisObserver for Impatient {
    fn begins(&mut self, stop: &Arc<AtomicBool>) {
        stop.store(true, Ordering::Relaxed);
    }
}

#[test]
fn whoever_watches_can_end_it() {
    let result = CaptureSetAnalysis::run(&office(), &AnalysisOptions::default(), &mut Impatient);
    assert!(matches!(result, Err(AnalysisError::Interrupted(_))), "{result:?}");
}

#[test]
fn an_episode_that_is_not_there_is_an_error() {
    let options = |episode| AnalysisOptions { episode: Some(episode), ..Default::default() };
    for episode in [0, 1_000_000] {
        let error = analyzed(&options(episode)).expect_err("there is none");
        assert!(error.to_string().starts_with(&format!("--episode {episode}: there ")), "{error}");
    }
    let one = analyzed(&options(1)).expect("the capture has episodes");
    assert!(one.contains("\"waterfall\": [\n"), "the commands of the episode are drawn");
}
