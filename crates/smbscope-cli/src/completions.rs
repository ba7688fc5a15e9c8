//! `smbscope completions`: what a shell needs to complete the command line, made from its definition.

use crate::arguments::Arguments;
use crate::output::Output;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Arguments of `smbscope completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope completions bash > ~/.local/share/bash-completion/completions/smbscope
  smbscope completions fish > ~/.config/fish/completions/smbscope.fish
  smbscope completions zsh > ~/.zfunc/_smbscope    (with ~/.zfunc in fpath, before compinit)
  smbscope completions powershell >> $PROFILE

`make install` installs those for bash, zsh and fish.")]
pub struct CompletionsArguments {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Runs the command.
pub(crate) fn run(arguments: &CompletionsArguments) -> anyhow::Result<()> {
    // Made in memory, since the generator panics where it can't write.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "smbscope", &mut script);
    let mut output = Output::stdout()?;
    let result = output.writer().write_all(&script);
    output.settle(result)
}
