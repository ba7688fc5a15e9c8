//! What the `smbscope` command does: [`run`] is the binary without the process around it, so that tests call the
//! same code.

#![forbid(unsafe_code)]

mod analyze;
mod arguments;
mod interrupt;
mod output;
mod progress;

pub use arguments::{AnalyzeArguments, Arguments, ColorChoice, Format, Verb};

/// Does what the arguments ask for. An error is one line: what, where, what to do.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.verb {
        Verb::Analyze(arguments) => analyze::run(arguments),
    }
}
