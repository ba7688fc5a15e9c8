//! The command lines of what is installed beside the binary: `completions` and `man`.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

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

/// Arguments of `smbscope man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope man analyze | man -l -
  smbscope man --output /usr/local/share/man/man1")]
pub struct ManArguments {
    /// The command whose page to print, instead of smbscope's own: `analyze`, `lab-up`.
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    pub command: Option<String>,

    /// Write all pages into this directory, which is made if it is not there, instead of printing one.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}
