//! `smbscope help`, `smbscope man` and `smbscope completions`: help, manual pages and shell completions from the
//! definition of the command line.
//!
//! clap_mangen writes title, synopsis and options. The text after the options in `--help` becomes separate sections:
//! a paragraph that starts with `Examples:` is the section EXAMPLES.

use crate::arguments::{Arguments, CompletionsArguments, HelpArguments, ManArguments};
use crate::help;
use crate::output::{self, Output};
use crate::{BadArguments, exit};
use anyhow::{Context, bail};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use smbscope_stats::filter::did_you_mean;
use std::ffi::OsString;
use std::io;

pub(crate) fn run(arguments: &ManArguments) -> anyhow::Result<()> {
    let pages = pages()?;
    if let Some(directory) = &arguments.output {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        for page in &pages {
            let path = directory.join(format!("{}.1", page.name));
            output::write_file(&path, &page.roff)?;
        }
        return Ok(());
    }
    let wanted = arguments.command.as_ref().map_or(ROOT.to_owned(), |command| format!("{ROOT}-{command}"));
    let Some(page) = pages.iter().find(|page| page.name == wanted) else {
        let known: Vec<&str> = pages.iter().filter_map(|page| page.name.strip_prefix("smbscope-")).collect();
        let asked = wanted.trim_start_matches("smbscope-");
        let near = did_you_mean(asked, known.iter().copied()).map_or_else(String::new, |near| format!("{near} "));
        bail!("no manual page {wanted}; {near}there are pages for {}", known.join(", "));
    };
    let mut output = Output::stdout()?;
    let result = output.writer().write_all(&page.roff);
    output.settle(result)
}

/// Prints the help of a command, or a topic.
pub(crate) fn help(arguments: &HelpArguments) -> anyhow::Result<()> {
    let mut command = Arguments::command();
    command.build();
    let mut found = Some(&command);
    for word in &arguments.words {
        found = found.and_then(|command| command.find_subcommand(word));
    }
    if found.is_some() {
        let line = arguments.words.iter().map(String::as_str).chain(["--help"]);
        match Arguments::parse_line(["smbscope"].into_iter().chain(line).map(OsString::from)) {
            Err(help) => exit(&help),
            Ok(_) => return Ok(()),
        }
    }
    let wanted = arguments.words.join(" ");
    if let Some((_, page)) = help::TOPICS.iter().find(|(topic, _)| *topic == wanted) {
        let output = Output::stdout()?;
        let width = output.width(None).min(help::WIDTH_MAX);
        return output.print(&help::rendered(page, width));
    }
    let topics = help::TOPICS.map(|(topic, _)| topic);
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    let near = did_you_mean(&wanted, commands.chain(topics)).map_or_else(String::new, |near| format!("; {near}"));
    let topics = topics.join(", ");
    Err(BadArguments(format!("there is no command or topic {wanted:?}{near} The topics are {topics}")).into())
}

const ROOT: &str = "smbscope";

struct ManualPage {
    name: String,
    roff: Vec<u8>,
}

/// Returns all pages, the program's own first.
fn pages() -> io::Result<Vec<ManualPage>> {
    let mut command = Arguments::command().mut_subcommand("help", |help| help.hide(true));
    command.build();
    let mut commands = Vec::new();
    with_verbs(&command, &mut commands);
    let names: Vec<String> = commands.iter().map(name).collect();
    commands.into_iter().map(|command| page(command, &names)).collect()
}

fn with_verbs(command: &Command, commands: &mut Vec<Command>) {
    commands.push(command.clone());
    command.get_subcommands().filter(|verb| !verb.is_hide_set()).for_each(|verb| with_verbs(verb, commands));
}

fn name(command: &Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn page(command: Command, names: &[String]) -> io::Result<ManualPage> {
    let name = name(&command);
    let behind = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let has_verbs = command.has_subcommands();
    // No date, so that a version always generates the same pages.
    let man = Man::new(command).source(format!("{ROOT} {}", env!("CARGO_PKG_VERSION"))).manual("smbscope manual");
    let mut roff = Vec::new();
    man.render_title(&mut roff)?;
    man.render_name_section(&mut roff)?;
    man.render_synopsis_section(&mut roff)?;
    man.render_description_section(&mut roff)?;
    man.render_options_section(&mut roff)?;
    if has_verbs {
        man.render_subcommands_section(&mut roff)?;
    }
    let mut rest = Roff::default();
    behind.iter().flat_map(|behind| behind.split("\n\n")).for_each(|paragraph| section(&mut rest, paragraph));
    see_also(&mut rest, &name, names);
    rest.to_writer(&mut roff)?;
    Ok(ManualPage { name, roff })
}

/// Writes `Title: text` as a section; indented lines are examples. A paragraph without a title continues the previous
/// section.
fn section(roff: &mut Roff, paragraph: &str) {
    let is_title = |title: &str| title.len() < 30 && title.chars().all(|c| c.is_ascii_alphabetic() || c == ' ');
    let text = match paragraph.split_once(':').filter(|(title, _)| is_title(title)) {
        Some((title, text)) => {
            roff.control("SH", [title.to_uppercase().as_str()]);
            text
        }
        None => {
            roff.control("PP", []);
            paragraph
        }
    };
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match line.strip_prefix("  ") {
            Some(example) => {
                roff.control("EX", []);
                roff.text([roman(example)]);
                roff.control("EE", []);
            }
            None => {
                roff.text([roman(line.trim())]);
            }
        }
    }
}

fn see_also(roff: &mut Roff, own: &str, names: &[String]) {
    let mut line: Vec<Inline> = Vec::new();
    for other in names.iter().filter(|name| *name != own) {
        if !line.is_empty() {
            line.push(roman(", "));
        }
        line.extend([bold(other.as_str()), roman("(1)")]);
    }
    if !line.is_empty() {
        roff.control("SH", ["SEE ALSO"]);
        roff.text(line);
    }
}

pub(crate) fn completions(arguments: &CompletionsArguments) -> anyhow::Result<()> {
    // Generated in memory, because the generator panics on write errors.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "smbscope", &mut script);
    let mut output = Output::stdout()?;
    let result = output.writer().write_all(&script);
    output.settle(result)
}
