//! `smbscope launch`: measures repeated launches of a program.

use crate::arguments::{LaunchArguments, LaunchTarget};
use crate::bench::{how_it_ended, password, print};
use crate::interrupt;
use crate::output::{self, Output};
use crate::{lab, terminal};
use anyhow::Context as _;
use smbscope_client::SessionOptions;
use smbscope_model::Nanos;
use smbscope_report::{bench, span};
use smbscope_run::files::Sources;
use smbscope_run::launch::{LaunchObserver, LaunchOptions, OnShare, ProgramFilesLocation, Series, Until};
use smbscope_run::options::BenchFormat;
use smbscope_run::{BenchOutcome, Connect, Login, Private, ServerUnderTest, TargetUrl};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const PORT: u16 = 445;

pub(crate) fn run(arguments: &LaunchArguments) -> anyhow::Result<()> {
    output::refuse_file_name(arguments.output.as_deref())?;
    let options = options(arguments)?;
    let mut output = Output::open(None, &options.sources)?;
    if arguments.format == BenchFormat::Html {
        output.refuse_terminal("HTML")?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    interrupt::any_end_sets(&stop);
    let series = Series::open(options)?;
    let mut observer = LaunchProgressPrinter { quiet: arguments.quiet, of: arguments.repetitions };
    let BenchOutcome { document, kept } = series.run(&mut observer, &stop)?;
    let text = bench::RampTextOptions {
        width: output.width(arguments.width),
        color: output.takes_color(arguments.color),
        detail: if arguments.full { bench::RampDetailLevel::One } else { bench::RampDetailLevel::Brief },
    };
    let printed = print(&document, arguments.format, &text, &mut output);
    output.settle(printed)?;
    kept?;
    how_it_ended(&document)
}

pub(crate) fn options(arguments: &LaunchArguments) -> anyhow::Result<LaunchOptions> {
    let until = match arguments {
        LaunchArguments { window: Some(text), .. } => Until::Window(text.clone()),
        LaunchArguments { file: Some(path), .. } => Until::File(path.clone()),
        LaunchArguments { port: Some(address), .. } => Until::Port(*address),
        LaunchArguments { line: Some(text), .. } => Until::Output(text.clone()),
        _ => Until::Exit,
    };
    let mut sources = Sources::default();
    arguments.password_file.iter().chain(&arguments.content).for_each(|file| sources.add(file));
    Ok(LaunchOptions {
        command: arguments.command.clone(),
        until,
        timeout: arguments.timeout,
        repetitions: arguments.repetitions,
        cold: arguments.cold,
        linger: arguments.linger,
        before: arguments.before.clone(),
        files: files(arguments)?,
        content: arguments.content.clone(),
        capture: arguments.capture,
        directory: arguments.output.clone(),
        sources,
        title: arguments.title.clone(),
        invocation: Some("smbscope launch".to_owned()),
    })
}

fn files(arguments: &LaunchArguments) -> anyhow::Result<ProgramFilesLocation> {
    let server = match &arguments.target {
        None => return Ok(ProgramFilesLocation::Temporary),
        Some(LaunchTarget::Target(TargetUrl::Folder(folder))) => {
            let server = arguments.server.as_deref().map(address).transpose()?;
            return Ok(ProgramFilesLocation::Folder(folder.clone(), server));
        }
        Some(LaunchTarget::Target(target)) => ServerUnderTest::Named(target.clone()),
        Some(LaunchTarget::Lab) => ServerUnderTest::Private(Private { launcher: lab::kept()?, ..Private::default() }),
    };
    let mut connect = Connect::new(Login::Password, password::source(arguments.password_file.clone()));
    connect.options = SessionOptions {
        dialect: arguments.dialect,
        signing: arguments.signing,
        encryption: arguments.encryption,
        ..connect.options
    };
    Ok(ProgramFilesLocation::Share(Box::new(OnShare { server, connect, mounter: arguments.mount })))
}

/// Resolves `HOST` or `HOST:PORT`.
fn address(server: &str) -> anyhow::Result<SocketAddr> {
    let found = server.to_socket_addrs().or_else(|_| (server.trim_matches(['[', ']']), PORT).to_socket_addrs());
    let mut found = found.with_context(|| format!("--server {server}: expected a host, or host:port"))?;
    found.next().with_context(|| format!("--server {server}: it has no address"))
}

struct LaunchProgressPrinter {
    quiet: bool,
    of: u32,
}

impl LaunchObserver for LaunchProgressPrinter {
    fn launched(&mut self, number: u32, elapsed: Duration) {
        if self.quiet {
            return;
        }
        let took = span(Nanos::from(elapsed));
        terminal::say(&match number {
            0 => format!("first launch: {took}, not counted"),
            number => format!("launch {number} of {}: {took}", self.of),
        });
    }

    fn note(&mut self, text: &str) {
        terminal::say(&format!("warning: {text}"));
    }
}
