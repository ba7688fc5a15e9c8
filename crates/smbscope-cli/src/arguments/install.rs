//! Arguments of the commands used for installation: `completions` and `man`.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope completions bash > ~/.local/share/bash-completion/completions/smbscope
  smbscope completions fish > ~/.config/fish/completions/smbscope.fish
  smbscope completions zsh > ~/.zfunc/_smbscope    (with ~/.zfunc in fpath, before compinit)
  smbscope completions powershell >> $PROFILE

`make install` installs those for bash, zsh and fish.")]
pub struct CompletionsArguments {
    /// Shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope man analyze | man -l -
  smbscope man --output /usr/local/share/man/man1")]
pub struct ManArguments {
    /// Print the page of this command, such as `analyze` or `lab-up`, instead of smbscope's own.
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub command: Option<String>,

    /// Write all pages into this directory, creating it if necessary, instead of printing one.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}
