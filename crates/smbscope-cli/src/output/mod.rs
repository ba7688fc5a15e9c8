//! Where results go: a file or standard output, opened before any work is done.

use crate::arguments::ColorChoice;
use anyhow::{Context, bail};
use smbscope_capture::reader::Input;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

/// Columns of a page that does not go to a terminal.
const DEFAULT_WIDTH: usize = 100;

/// An open output.
pub(crate) struct Output {
    writer: Box<dyn Write + Send>,
    name: String,
    is_terminal: bool,
}

impl Output {
    /// Opens the file, or standard output. An input is never overwritten by what is made of it.
    pub(crate) fn open(path: Option<&Path>, inputs: &[Input]) -> anyhow::Result<Output> {
        let Some(path) = path.filter(|path| path.as_os_str() != "-") else {
            let stdout = io::stdout();
            let is_terminal = stdout.is_terminal();
            return Ok(Output {
                writer: Box::new(BufWriter::new(stdout)),
                name: "standard output".to_owned(),
                is_terminal,
            });
        };
        let name = path.display().to_string();
        let is_output = |input: &&Input| match input {
            Input::File(input) => is_same_file(input, path),
            Input::Stdin => false,
        };
        if let Some(input) = inputs.iter().find(is_output) {
            bail!("cannot write {name}: it is the input {}; choose another name for the output", input.name());
        }
        let file = File::create(path).with_context(|| format!("cannot write {name}"))?;
        Ok(Output { writer: Box::new(BufWriter::new(file)), name, is_terminal: false })
    }

    /// Columns of a page: those asked for, or the terminal's.
    pub(crate) fn width(&self, wanted: Option<u16>) -> usize {
        let terminal = self.is_terminal.then(terminal_size::terminal_size).flatten();
        let columns = wanted.or(terminal.map(|(width, _)| width.0));
        columns.map_or(DEFAULT_WIDTH, usize::from)
    }

    /// Whether to use colour.
    pub(crate) fn takes_color(&self, choice: ColorChoice) -> bool {
        match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => self.is_terminal && std::env::var_os("NO_COLOR").is_none(),
        }
    }

    /// An error where a person would have to look at bytes.
    pub(crate) fn refuse_terminal(&self, format: &str) -> anyhow::Result<()> {
        if self.is_terminal {
            bail!("cannot write {format} to a terminal; name a file with -o, or send the output to a file or program");
        }
        Ok(())
    }

    /// Turns the outcome of writing into the command's: a reader that went away (`| head`) is no failure.
    pub(crate) fn settle(&self, result: io::Result<()>) -> anyhow::Result<()> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.with_context(|| format!("cannot write {}", self.name)),
        }
    }

    /// The writer.
    pub(crate) fn writer(&mut self) -> &mut (dyn Write + Send) {
        &mut self.writer
    }
}

/// Whether both names lead to one regular file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let canonical = |path: &Path| path.canonicalize().ok().filter(|path| path.is_file());
    canonical(one).is_some_and(|one| canonical(other) == Some(one))
}
