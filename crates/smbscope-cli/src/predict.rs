//! `smbscope predict`: the duration of captured commands under other conditions.

use crate::analyze::{self, AnalysisOutcome};
use crate::interrupt::InterruptedError;
use crate::output::{self, Output};
use crate::terminal;
use anyhow::Context;
use smbscope_capture::reader::CaptureInput;
use smbscope_report::prediction::{PredictedUsers, PredictionDocument};
use smbscope_run::files::Sources;
use smbscope_run::options::{PredictFormat, PredictOptions};

pub(crate) fn run(arguments: &PredictOptions) -> anyhow::Result<()> {
    output::refuse_ending::<PredictFormat>(arguments.format.is_some(), arguments.output.as_deref())?;
    let inputs = CaptureInput::from_arguments(&arguments.files)?;
    let mut sources = Sources::of_inputs(&inputs);
    arguments.reading.decryption.files().for_each(|file| sources.add(file));
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
    let result = match arguments.format() {
        PredictFormat::Json => document.write(output.writer()),
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
