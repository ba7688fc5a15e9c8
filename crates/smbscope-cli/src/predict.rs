//! `smbscope predict`: the duration of captured commands under other conditions.

use crate::analyze::{self, AnalysisOutcome};
use crate::bench::{TypedPasswords, password_source};
use crate::interrupt::{self, InterruptedError};
use crate::output::{self, Output};
use crate::record::{self, RecordedCommands, RecordedPart};
use crate::{lab, terminal};
use anyhow::Context;
use smbscope_capture::reader::CaptureInput;
use smbscope_report::html;
use smbscope_report::prediction::{PredictedUsers, PredictionDocument};
use smbscope_report::proof::Proof;
use smbscope_run::BenchError;
use smbscope_run::files::Sources;
use smbscope_run::options::{PredictFormat, PredictOptions};
use smbscope_run::predict::{
    CapturedConditions, Predictions, ProofObserver, ProofRequest, ProofTarget, Scenario, prove as prove_in_lab,
};
use smbscope_run::record::RecordingOptions;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) fn run(arguments: &PredictOptions) -> anyhow::Result<()> {
    output::refuse_ending::<PredictFormat>(arguments.format.is_some(), arguments.output.as_deref())?;
    let inputs = CaptureInput::from_arguments(&arguments.files)?;
    let mut sources = Sources::of_inputs(&inputs);
    let others = arguments.reading.decryption.files().chain(&arguments.target_password_file);
    others.for_each(|file| sources.add(file));
    let mut output = Output::open(arguments.output.as_deref(), &sources)?;
    let found = analyze::report_on(&inputs, &arguments.analysis(), arguments.terminal.progress.quiet)?;
    let AnalysisOutcome { report, notes, interrupted, .. } = found;
    let names: Vec<String> = report.captures.iter().map(|capture| capture.name.clone()).collect();
    if interrupted {
        return Err(InterruptedError::with(format!("{}: interrupted, nothing was predicted", names.join(", "))).into());
    }
    let users = arguments.users.as_ref();
    let users = users.map(|users| PredictedUsers { numbers: users.numbers(), identity: arguments.user_is });
    let document = PredictionDocument::new(&report, arguments.episode, &arguments.changes, users)
        .with_context(|| names.join(", "))?;
    let document = match document.predictions().filter(|_| arguments.prove) {
        Some(predictions) => {
            let captured = CapturedConditions::new(&report.explanation.waterfall, predictions.round_trip_ns);
            let proof = prove(arguments, &inputs, captured, predictions)?;
            document.proved(proof)
        }
        None => document,
    };
    let result = match arguments.format() {
        PredictFormat::Json => document.write(output.writer()),
        PredictFormat::Html => html::write_prediction(&document, output.writer()),
        PredictFormat::Markdown => output.writer().write_all(document.markdown().as_bytes()),
        PredictFormat::Text => {
            let (width, color) = (output.width(arguments.terminal.width), output.takes_color(arguments.terminal.color));
            output.writer().write_all(document.render(width, color).as_bytes())
        }
    };
    output.settle(result)?;
    terminal::warn(&notes);
    Ok(())
}

/// Replays the commands, as captured and with each change.
fn prove(
    arguments: &PredictOptions,
    inputs: &[CaptureInput],
    captured: CapturedConditions,
    predictions: &Predictions,
) -> anyhow::Result<Proof> {
    let PredictOptions { reading, episode, filter, repetitions, terminal, target, target_password_file, .. } =
        arguments;
    let part = RecordedPart { client: None, episode: *episode, filter: filter.as_ref() };
    let RecordedCommands { recorder, names, .. } = record::read(inputs, reading, &part, terminal.progress.quiet)?;
    let named = RecordingOptions { name: "recorded".to_owned(), from: names.join(", "), key: None };
    let recording = recorder.finish(&named).with_context(|| names.join(", "))?;
    let passwords = TypedPasswords::default();
    let password = || passwords.once(String::new(), password_source(target_password_file.clone()));
    let request = ProofRequest {
        recording: &recording,
        predictions,
        captured,
        repetitions: *repetitions,
        launcher: lab::kept()?,
        target: target.as_ref().map(|url| ProofTarget { url, password: &password }),
    };
    let stop = Arc::new(AtomicBool::new(false));
    interrupt::any_end_sets(&stop);
    let proof = prove_in_lab(&request, &mut Replays { quiet: terminal.progress.quiet }, &stop);
    match proof {
        Ok(proof) => Ok(proof),
        Err(BenchError::Interrupted) => {
            Err(InterruptedError::with("interrupted, nothing was proved".to_owned()).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Says which replay runs.
struct Replays {
    quiet: bool,
}

impl ProofObserver for Replays {
    fn begins(&mut self, change: Option<&Scenario>, number: u32, of: u32) {
        if !self.quiet {
            let what = change.map_or_else(|| "as captured".to_owned(), |change| format!("with {change}"));
            terminal::say(&format!("replay {number} of {of}, {what}"));
        }
    }
}
