//! `smbscope completions`: generates shell completions from the definition of the command line.

use crate::arguments::{Arguments, CompletionsArguments};
use crate::output::Output;
use clap::CommandFactory;

pub(crate) fn run(arguments: &CompletionsArguments) -> anyhow::Result<()> {
    // Generated in memory, because the generator panics on write errors.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "smbscope", &mut script);
    let mut output = Output::stdout()?;
    let result = output.writer().write_all(&script);
    output.settle(result)
}
