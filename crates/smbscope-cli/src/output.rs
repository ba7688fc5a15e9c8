//! Output to a file or to standard output, opened before any work is done.

use crate::BadArguments;
use crate::interrupt;
use crate::system;
use crate::terminal::SanitizingWriter;
use anyhow::{Context, bail};
use clap::ValueEnum;
use smbscope_run::files::{self, Destination, Replacement, Sources};
use smbscope_run::options::ColorChoice;
use std::fs;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

/// Width of text that does not go to a terminal.
const DEFAULT_WIDTH: usize = 100;

/// Open output. An existing file is only replaced by [`Output::settle`].
pub(crate) struct Output {
    writer: Box<dyn Write + Send>,
    name: String,
    is_terminal: bool,
    file: Option<Replacement>,
}

impl Output {
    pub(crate) fn stdout() -> anyhow::Result<Output> {
        Output::open(None, &Sources::default())
    }

    /// Opens a file or standard output. Refuses to overwrite an input.
    pub(crate) fn open(path: Option<&Path>, sources: &Sources) -> anyhow::Result<Output> {
        let Some(path) = path.filter(|path| path.as_os_str() != "-") else {
            refuse_source("standard output", sources.name_of_stdout())?;
            return Ok(Output::stream(io::stdout(), "standard output".to_owned()));
        };
        let name = path.display().to_string();
        refuse_source(&name, sources.name_at(path))?;
        interrupt::removes_unfinished_files();
        let opened = Destination::open(path).and_then(|place| {
            Ok(match place {
                Destination::Stream(stream) => Output::stream(stream, name.clone()),
                Destination::File(file) => {
                    let writer = Box::new(BufWriter::new(file.writer()?));
                    Output { writer, name: name.clone(), is_terminal: false, file: Some(file) }
                }
            })
        });
        opened.map_err(|error| {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
            let missing =
                folder.map(|folder| format!("the directory {} does not exist; create it first", folder.display()));
            let error = missing.map_or(anyhow::Error::from(error), anyhow::Error::msg);
            error.context(format!("cannot write {name}"))
        })
    }

    fn stream(stream: impl Write + IsTerminal + Send + 'static, name: String) -> Output {
        let is_terminal = stream.is_terminal();
        let writer: Box<dyn Write + Send> = match is_terminal {
            true => Box::new(BufWriter::new(SanitizingWriter::new(stream))),
            false => Box::new(BufWriter::new(stream)),
        };
        Output { writer, name, is_terminal, file: None }
    }

    /// Returns true if the output is displayed immediately.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Returns the width of text in columns: as requested, or the terminal's.
    pub(crate) fn width(&self, wanted: Option<u16>) -> usize {
        let terminal = self.is_terminal.then(terminal_size::terminal_size).flatten();
        let columns = wanted.or(terminal.map(|(width, _)| width.0));
        columns.map_or(DEFAULT_WIDTH, usize::from)
    }

    pub(crate) fn takes_color(&self, choice: ColorChoice) -> bool {
        match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => self.is_terminal && std::env::var_os("NO_COLOR").is_none() && system::takes_styles(),
        }
    }

    /// Fails if binary data or markup would go to a terminal.
    pub(crate) fn refuse_terminal(&self, format: &str) -> anyhow::Result<()> {
        if self.is_terminal {
            bail!("cannot write {format} to a terminal; name a file with -o, or send the output to a file or program");
        }
        Ok(())
    }

    pub(crate) fn is_same_as(&self, other: &Output) -> bool {
        match (&self.file, &other.file) {
            (Some(file), Some(other)) => file.has_place_of(other),
            _ => self.name == other.name,
        }
    }

    /// Completes the output and puts the file in its place. A closed pipe (`| head`) is not an error.
    pub(crate) fn settle(mut self, result: io::Result<()>) -> anyhow::Result<()> {
        let result = result.and_then(|()| self.writer.flush());
        let result = result.and_then(|()| self.file.take().map_or(Ok(()), Replacement::finish));
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.with_context(|| format!("cannot write {}", self.name)),
        }
    }

    pub(crate) fn print(mut self, text: &str) -> anyhow::Result<()> {
        let result = self.writer.write_all(text.as_bytes());
        self.settle(result)
    }

    pub(crate) fn writer(&mut self) -> &mut (dyn Write + Send) {
        &mut self.writer
    }
}

pub(crate) fn write_file(path: &Path, contents: &[u8]) -> anyhow::Result<()> {
    interrupt::removes_unfinished_files();
    files::write_file(path, contents).with_context(|| format!("cannot write {}", path.display()))
}

/// Refuses a report file whose ending names no format of the command, unless the format is given: nothing silently
/// becomes text. Devices and pipes need no ending.
pub(crate) fn refuse_ending<F: ValueEnum>(is_format_given: bool, output: Option<&Path>) -> Result<(), BadArguments> {
    let Some(path) = output.filter(|path| !is_format_given && path.as_os_str() != "-") else { return Ok(()) };
    let is_stream = ["/dev", "/proc"].iter().any(|directory| path.starts_with(directory))
        || files::names_device(path)
        || fs::metadata(path).is_ok_and(|found| !found.is_file());
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    if is_stream || ending.as_ref().is_some_and(|ending| F::from_str(ending, false).is_ok()) {
        return Ok(());
    }
    let advice = match ending.as_deref() {
        Some("pdf") => "write .html and print it as PDF in a browser".to_owned(),
        Some("xls" | "xlsx") if F::from_str("csv", false).is_ok() => "write .csv, which spreadsheets open".to_owned(),
        Some(ending) => format!(".{ending} is not the ending of a format"),
        None => "the ending of the name selects the format".to_owned(),
    };
    let endings = F::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let endings: Vec<String> = endings.map(|value| format!(".{}", ending_of(value.get_name()))).collect();
    let name = path.display();
    Err(BadArguments(format!("cannot write {name}: {advice}; endings that work: {}", endings.join(", "))))
}

/// Refuses an ending that belongs to another kind of file.
pub(crate) fn refuse_other_ending(output: &Path, what: &str, endings: &[&str]) -> Result<(), BadArguments> {
    let Some(ending) = output.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase()) else {
        return Ok(());
    };
    if endings.contains(&&*ending) || fs::metadata(output).is_ok_and(|found| !found.is_file()) {
        return Ok(());
    }
    let endings: Vec<String> = endings.iter().map(|ending| format!(".{ending}")).collect();
    let name = output.display();
    Err(BadArguments(format!("cannot write {name}: the output is {what}; endings that work: {}", endings.join(", "))))
}

/// Returns the usual ending of files in a format.
fn ending_of(format: &str) -> &str {
    match format {
        "text" => "txt",
        "markdown" => "md",
        other => other,
    }
}

/// Endings of documents, which directories don't have.
const DOCUMENTS: [&str; 14] =
    ["csv", "doc", "docx", "htm", "html", "json", "markdown", "md", "parquet", "pdf", "text", "txt", "xls", "xlsx"];

/// Refuses the name of a document for the directory of a run, unless there is such a directory.
pub(crate) fn refuse_file_name(directory: Option<&Path>) -> Result<(), BadArguments> {
    let Some(path) = directory.filter(|path| !path.is_dir()) else { return Ok(()) };
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    if !ending.is_some_and(|ending| DOCUMENTS.contains(&&*ending)) {
        return Ok(());
    }
    let (name, stem) = (path.display(), path.with_extension("").display().to_string());
    Err(BadArguments(format!(
        "{name}: -o names a directory, for the report and its data; write -o {stem}, or print the report alone with \
         --format markdown, html or json"
    )))
}

fn refuse_source(output: &str, input: Option<&str>) -> anyhow::Result<()> {
    if let Some(input) = input {
        bail!("cannot write {output}: it is the input {input}; choose another name for the output");
    }
    Ok(())
}
