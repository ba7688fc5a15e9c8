//! `smbscope completions`: what a shell needs to complete the command line, made from its definition.

use crate::arguments::{Arguments, CompletionsArguments};
use crate::output::Output;
use clap::CommandFactory;

/// Runs the command.
pub(crate) fn run(arguments: &CompletionsArguments) -> anyhow::Result<()> {
    // Made in memory, since the generator panics where it can't write.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "smbscope", &mut script);
    let mut output = Output::stdout()?;
    let result = output.writer().write_all(&script);
    output.settle(result)
}
