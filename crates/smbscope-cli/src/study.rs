//! `smbscope study`: executes the runs of a study and prints the results.

use crate::bench::TypedPasswords;
use crate::interrupt::{self, InterruptedError};
use crate::output::{self, Output};
use crate::{BadArguments, bench, entry, terminal};
use anyhow::bail;
use smbscope_lab::LabServerSettings;
use smbscope_load::engine::OnLostHost;
use smbscope_model::Nanos;
use smbscope_report::bench::BenchDocument;
use smbscope_report::{listed, quoted, span};
use smbscope_run::launch::{ProgramFilesLocation, Series, SeriesOptions};
use smbscope_run::options::{BenchOptions, ClusterOptions, LabServerOptions, LaunchOptions, StudyFormat, StudyOptions};
use smbscope_run::study::{self, Conductor, PlannedVariant, Study, StudyProgress};
use smbscope_run::{Bench, Connect, RunOptions, ServerUnderTest, TargetUrl, busy_percent};
use std::io::{self, BufRead, IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ANSWER_BYTES: u64 = 16;
/// Time between two runs in which the load of other programs is measured.
const BETWEEN_RUNS: Duration = Duration::from_millis(300);

pub(crate) fn run(arguments: &StudyOptions) -> anyhow::Result<()> {
    output::refuse_file_name(arguments.output.as_deref())?;
    let mut study = Study::load(&arguments.file, arguments.quick)?;
    if let Some(repetitions) = arguments.repetitions {
        study.repetitions = repetitions;
    }
    study.at_targets(&arguments.targets).map_err(BadArguments)?;
    study.describe(&arguments.about).map_err(BadArguments)?;
    let variants = study.variants();
    // Validate every variant first: a mistake in the last one should not show up after hours.
    let mut commands: Vec<[String; 2]> = Vec::new();
    for variant in &variants {
        let work = options(variant, Path::new(""), &arguments.cluster).map_err(|error| {
            BadArguments(format!("{}: {}: {}", arguments.file.display(), variant.name, crate::one_line(&error)))
        })?;
        for command in commands_of(variant, &work) {
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
    }
    let Some(directory) = arguments.output.as_deref().filter(|_| !arguments.dry_run) else {
        return Output::stdout()?.print(&(plan(&study, &variants) + &shown(&commands)));
    };
    if !study.is_bundled() && !arguments.allow_commands {
        be_allowed(&arguments.file, &commands)?;
    }
    let mut output = Output::stdout()?;
    let stop = Arc::new(AtomicBool::new(false));
    interrupt::any_end_sets(&stop);
    let cluster = &arguments.cluster;
    let mut runs =
        Runs { stop, quiet: arguments.terminal.progress.quiet, cluster, passwords: TypedPasswords::default() };
    let document = study::run(&study, directory, &mut runs)?;
    let printed = match arguments.format {
        StudyFormat::Json => smbscope_report::study::write(&document, output.writer()),
        StudyFormat::Markdown => output.writer().write_all(smbscope_report::study::markdown(&document).as_bytes()),
        StudyFormat::Text => {
            let (width, color) = (output.width(arguments.terminal.width), output.takes_color(arguments.terminal.color));
            output.writer().write_all(smbscope_report::study::render(&document, width, color).as_bytes())
        }
    };
    output.settle(printed)?;
    if runs.is_interrupted() {
        let done = document.runs.iter().filter(|run| run.failed.is_none()).count();
        let of = variants.len() * study.repetitions as usize;
        return Err(InterruptedError::with(format!(
            "interrupted after {done} of {of} runs; run the same command to resume"
        ))
        .into());
    }
    match document.runs.iter().filter(|run| run.failed.is_some()).count() {
        0 => Ok(()),
        failed => bail!("{failed} of {} runs failed; run the same command to retry them", document.runs.len()),
    }
}

fn plan(study: &Study, variants: &[PlannedVariant]) -> String {
    let turns = study.turns(variants.len());
    let rows = turns.iter().map(|turn| {
        let variant = &variants[turn.variant];
        [format!("{}/{}", variant.folder, turn.repetition), variant.command()]
    });
    listed(&rows.collect::<Vec<_>>())
}

/// Lists the commands that the study file runs around and in a run of the variant, each with its occasion.
fn commands_of(variant: &PlannedVariant, work: &VariantRunOptions) -> Vec<[String; 2]> {
    let (launch, server) = match work {
        VariantRunOptions::Load(options) => (None, Some(&options.server)),
        VariantRunOptions::Launch(options) => (Some(options), None),
    };
    let share = launch.and_then(|series| match &series.files {
        ProgramFilesLocation::Share(share) => Some(&share.server),
        _ => None,
    });
    let settings = match server.or(share) {
        Some(ServerUnderTest::Private(private)) => private.settings.extra.as_slice(),
        _ => &[],
    };
    let program =
        launch.map(|series| series.launch.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "));
    let launched = launch.into_iter().flat_map(|series| &series.launch.before);
    let when = |when: &str, what: &String| [when.to_owned(), crate::terminal::one_line(what)];
    let before = variant.before.iter().chain(launched).map(|command| when("before", command));
    let settings = settings.iter().map(|setting| when("Samba setting", setting));
    let program = program.iter().map(|command| when("launch", command));
    before.chain(settings).chain(program).chain(variant.after.iter().map(|command| when("after", command))).collect()
}

/// Formats the commands of the file for display below the list of runs.
fn shown(commands: &[[String; 2]]) -> String {
    if commands.is_empty() { String::new() } else { format!("\nCommands of the file:\n{}", listed(commands)) }
}

/// Asks for permission to run the commands of a file, which may come from anywhere. Fails if there is no terminal to
/// ask on.
fn be_allowed(file: &Path, commands: &[[String; 2]]) -> anyhow::Result<()> {
    let Some([_, first]) = commands.first() else { return Ok(()) };
    let name = file.display();
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let more = match commands.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = format!(
            "{name} runs commands of its own: `{first}`{more}; list them with --dry-run, then allow them with --allow-commands"
        );
        return Err(BadArguments(text).into());
    }
    shown(commands).lines().for_each(terminal::line);
    terminal::say(&format!("{name} runs these commands with your rights. Run them? [y/N]"));
    let mut answer = String::new();
    io::stdin().lock().take(ANSWER_BYTES).read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing was run: the commands of {name} were not allowed"),
    }
}

enum VariantRunOptions {
    Load(Box<RunOptions>),
    Launch(Box<SeriesOptions>),
}

/// Builds the options of a run from the variant's.
fn options(variant: &PlannedVariant, directory: &Path, cluster: &ClusterOptions) -> anyhow::Result<VariantRunOptions> {
    if variant.options.is_launch() {
        let options = variant.options.launch().parse().map_err(anyhow::Error::msg)?;
        if cluster.address.is_some() {
            bail!("launches run on this machine only: omit --cluster");
        }
        return launching(variant, options, directory).map(|options| VariantRunOptions::Launch(Box::new(options)));
    }
    let options = variant.options.bench().parse().map_err(anyhow::Error::msg)?;
    load(variant, options, directory, cluster).map(|options| VariantRunOptions::Load(Box::new(options)))
}

fn launching(variant: &PlannedVariant, options: LaunchOptions, directory: &Path) -> anyhow::Result<SeriesOptions> {
    let options = LaunchOptions { output: Some(directory.to_owned()), title: Some(variant.name.clone()), ..options };
    let mut options = bench::series_options(options, variant.command())?;
    if let ProgramFilesLocation::Share(share) = &mut options.files {
        fit(variant, &mut share.server)?;
    }
    Ok(options)
}

fn load(
    variant: &PlannedVariant,
    options: BenchOptions,
    directory: &Path,
    ClusterOptions { address, slots }: &ClusterOptions,
) -> anyhow::Result<RunOptions> {
    let over_hosts = options.capture.is_some() || !options.by.is_empty();
    let options = BenchOptions { output: Some(directory.to_owned()), title: Some(variant.name.clone()), ..options };
    let mut options = bench::run_options(options, Some(variant.command()))?;
    if let Some(address) = address {
        if over_hosts {
            bail!("--capture and --by do not support several hosts: omit them or --cluster");
        }
        // A run that continued with fewer users would not be comparable.
        options.cluster = Some(entry::hosts(address, *slots, OnLostHost::Stop)?);
    }
    fit(variant, &mut options.server)?;
    Ok(options)
}

fn fit(variant: &PlannedVariant, server: &mut ServerUnderTest) -> anyhow::Result<()> {
    match (server, variant.options.lab_option()) {
        (ServerUnderTest::Private(private), _) => {
            let (of_lab, of_run) = (settings(variant)?, private.settings.storage);
            let storage = if of_run.is_slow() { of_run } else { of_lab.storage };
            private.settings = LabServerSettings { storage, ..of_lab };
        }
        (ServerUnderTest::Named(target @ TargetUrl::Share(_)), Some(option)) => {
            bail!("{option} applies to a private server only, but the target is {target}")
        }
        // A local folder serves as a baseline for private servers.
        (ServerUnderTest::Named(_), _) => {}
    }
    Ok(())
}

fn settings(variant: &PlannedVariant) -> anyhow::Result<LabServerSettings> {
    let options: LabServerOptions = variant.options.lab().parse().map_err(anyhow::Error::msg)?;
    Ok(options.settings())
}

/// Rejects a run that lost a load host.
fn lost_hosts(document: &BenchDocument) -> anyhow::Result<()> {
    match document.runs.iter().flat_map(|run| run.lost_hosts()).next() {
        Some((host, lost)) => bail!("the load host {} was lost: {}", host.host, lost.why),
        None => Ok(()),
    }
}

/// Executes runs like `smbscope bench` or `smbscope launch`.
struct Runs<'a> {
    stop: Arc<AtomicBool>,
    quiet: bool,
    cluster: &'a ClusterOptions,
    passwords: TypedPasswords,
}

impl Runs<'_> {
    /// Returns the options of a run. Its password prompt reuses answers of earlier runs.
    fn options(&self, variant: &PlannedVariant, directory: &Path) -> anyhow::Result<VariantRunOptions> {
        let mut options = options(variant, directory, self.cluster)?;
        match &mut options {
            VariantRunOptions::Load(options) => self.remember(&options.server, &mut options.connect),
            VariantRunOptions::Launch(options) => {
                if let ProgramFilesLocation::Share(share) = &mut options.files {
                    self.remember(&share.server, &mut share.connect);
                }
            }
        }
        Ok(options)
    }

    fn remember(&self, server: &ServerUnderTest, connect: &mut Connect) {
        let nobody = Box::new(|_: &str| Err("asked twice".into()));
        let ask = std::mem::replace(&mut connect.password, nobody);
        let target = match server {
            ServerUnderTest::Named(target) => target.to_string(),
            ServerUnderTest::Private(_) => String::new(),
        };
        connect.password = self.passwords.once(target, ask);
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            terminal::say(text);
        }
    }
}

impl Conductor for Runs<'_> {
    fn run(&mut self, variant: &PlannedVariant, directory: &Path) -> Result<BenchDocument, String> {
        let run = || -> anyhow::Result<BenchDocument> {
            let outcome = match self.options(variant, directory)? {
                VariantRunOptions::Load(options) => Bench::open(*options)?.run(&mut (), &self.stop)?,
                VariantRunOptions::Launch(options) => Series::open(*options)?.run(&mut (), &self.stop)?,
            };
            outcome.kept?;
            lost_hosts(&outcome.document)?;
            Ok(outcome.document)
        };
        run().map_err(|error| crate::one_line(&error))
    }

    fn is_interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn other_load(&mut self) -> Option<f64> {
        busy_percent(BETWEEN_RUNS)
    }

    fn begins(&mut self, place: &StudyProgress<'_>) {
        let StudyProgress { number, of, variant, repetition, left } = place;
        let left = left.map_or_else(String::new, |left| format!(", about {} left", span(Nanos::from(left))));
        self.say(&format!("run {number} of {of}: {}, repetition {repetition}{left}", variant.name));
    }

    fn ended(&mut self, place: &StudyProgress<'_>, result: Result<&BenchDocument, (&str, bool)>) {
        if let Err((why, again)) = result {
            let then = if again { "it is tried again" } else { "the study continues without it" };
            // Shown even if quiet: the run's results are missing.
            terminal::say(&format!("run {}: {} failed: {why}; {then}", place.number, place.variant.name));
        }
    }

    fn unfit(&mut self, place: &StudyProgress<'_>, why: &str) {
        self.say(&format!("run {}: {} is repeated: {why}", place.number, place.variant.name));
    }
}
