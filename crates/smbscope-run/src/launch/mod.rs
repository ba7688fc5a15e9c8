//! Launches of a real program, timed from its start until it is ready, with its files on this machine or on a share: the
//! experiment of the folder redirection studies.
//!
//! What the program waits for the server is taken from a capture of the launch. The result is a [`Document`](
//! smbscope_report::bench::Document) like that of a load: a launch is a job of one user, and commands are those of the capture.

mod document;
mod mount;
mod place;
mod program;
mod until;
mod window;

pub use mount::Mounter;
pub use until::Until;

use crate::directory::RunDirectory;
use crate::files::Sources;
use crate::metrics::Metrics;
use crate::options::{Connect, ServerUnderTest};
use crate::run::look;
use crate::setup::now;
use crate::site::Site;
use crate::sniffer::{RunningCapture, SnapLength, Sniffer};
use crate::study::commands;
use crate::{BenchError, BenchOutcome, TargetUrl};
use document::Launched;
use place::ProgramFolder;
use program::LaunchedProgram;
use smbscope_client::SessionParameters;
use smbscope_lab::Workplace;
use smbscope_load::engine::result::LoadPointEnd;
use smbscope_model::{Dialect, Timestamp};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use until::CompletionProbe;
use window::X11Display;

/// Launches of a series.
pub const LAUNCHES_MAX: u32 = 1_000;

/// What is asked of a series of launches.
#[derive(Debug)]
pub struct LaunchOptions {
    /// The program and its arguments; `{folder}` stands for the folder with its files, `{local}` for an empty one of this
    /// machine, new for each launch.
    pub command: Vec<String>,
    /// When a launch is done.
    pub until: Until,
    /// How long it may take.
    pub timeout: Duration,
    /// Launches that count; one that does not goes before them, which fills caches, and does what a program does only once.
    pub repetitions: u32,
    /// Caches are emptied before each launch.
    pub cold: bool,
    /// What passes between a launch and the end of the program.
    pub linger: Duration,
    /// For the shell, before each launch.
    pub before: Vec<String>,
    /// Where the program's files are.
    pub files: ProgramFilesLocation,
    /// What is in the folder at first; it stays as launches leave it.
    pub content: Option<PathBuf>,
    /// Take a packet capture, which tells what the program waited for the server.
    pub capture: bool,
    /// Where the series is kept.
    pub directory: Option<PathBuf>,
    /// What it is made from: none of it is written over.
    pub sources: Sources,
    /// Title of the report.
    pub title: Option<String>,
    /// The command line that asks for it, without a place for results.
    pub invocation: Option<String>,
}

/// Where a launched program's files are.
#[derive(Debug)]
pub enum ProgramFilesLocation {
    /// In a new folder of this machine.
    Temporary,
    /// In this folder; where it is on a share that is mounted already, this is its server.
    Folder(PathBuf, Option<SocketAddr>),
    /// On a share that is mounted for the launches.
    Share(Box<OnShare>),
}

/// A share that is mounted for the launches.
#[derive(Debug)]
pub struct OnShare {
    /// The server.
    pub server: ServerUnderTest,
    /// How to speak to it.
    pub connect: Connect,
    /// What mounts it; otherwise what is best for the dialect.
    pub mounter: Option<Mounter>,
}

impl OnShare {
    /// Has a private server speak no dialect above this one, as which some programs can't be told; whether there is one.
    fn be_spoken_to_in(&mut self, dialect: Dialect) -> bool {
        let ServerUnderTest::Private(private) = &mut self.server else { return false };
        if let Some(most) = mount::of_lab(dialect) {
            private.settings.max_dialect = most;
        }
        true
    }
}

/// Hears how a series gets on.
pub trait LaunchObserver {
    /// A launch is done, the first that counts is 1.
    fn launched(&mut self, number: u32, elapsed: Duration);

    /// Something that weakens the result, as a sentence without its end.
    fn note(&mut self, text: &str);
}

impl LaunchObserver for () {
    fn launched(&mut self, _: u32, _: Duration) {}

    fn note(&mut self, _: &str) {}
}

/// A series of launches whose server has answered, and whose results have a place.
pub struct Series {
    options: LaunchOptions,
    started: Timestamp,
    directory: Option<RunDirectory>,
    place: ProgramFolder,
    /// The server of the share, and what was negotiated with it.
    site: Option<(Site, SessionParameters)>,
    server: Option<SocketAddr>,
    /// Ends last: the mount is in it.
    workplace: Arc<Workplace>,
    /// An X server begins anew when its last client leaves, and refuses who comes meanwhile.
    _display: Option<X11Display>,
}

impl Series {
    /// Finds a place for the results, mounts the share, and copies the content. Whatever fails here leaves nothing behind.
    pub fn open(mut options: LaunchOptions) -> Result<Series, BenchError> {
        let started = now();
        let open = |path| RunDirectory::open(path, &options.sources);
        let directory = options.directory.as_deref().map(open).transpose()?;
        if options.cold {
            place::drop_caches()?;
        }
        let display = CompletionProbe::new(&options.until)?.into_display();
        let workplace = Arc::new(Workplace::open().map_err(BenchError::Lab)?);
        let content = options.content.as_deref();
        let (place, site, server) = match &mut options.files {
            ProgramFilesLocation::Temporary => (ProgramFolder::temporary(content, &workplace)?, None, None),
            ProgramFilesLocation::Folder(folder, server) => {
                (ProgramFolder::folder(folder, content, &workplace)?, None, *server)
            }
            ProgramFilesLocation::Share(share) => {
                if let ServerUnderTest::Named(TargetUrl::Folder(_)) = &share.server {
                    return Err(BenchError::Unavailable("a folder is no share, and needs no mount".to_owned()));
                }
                let dialect = share.connect.options.dialect;
                let mounter = *share.mounter.get_or_insert(Mounter::for_dialect(dialect));
                let is_private = share.be_spoken_to_in(dialect);
                if let Some(why) = mount::beyond(mounter, &share.connect.options, is_private) {
                    return Err(BenchError::Unavailable(why));
                }
                let site = Site::open(&share.server, &share.connect)?;
                let facts = look(&site.options)?;
                let place = ProgramFolder::share(mounter, &site.options, &site.directory, content, &workplace)?;
                let server = site.options.address;
                (place, Some((site, facts)), Some(server))
            }
        };
        Ok(Series { options, started, directory, place, site, server, workplace, _display: display })
    }

    /// Launches the program again and again; ends early, with what was measured until then, when `stop` is set.
    pub fn run(mut self, observer: &mut dyn LaunchObserver, stop: &AtomicBool) -> Result<BenchOutcome, BenchError> {
        let lab = self.site.as_ref().and_then(|(site, _)| site.lab_record());
        let metrics = self.server.map(|server| Metrics::new(server, lab, None));
        if self.place.left_out > 0 {
            observer.note(&format!("{} links and devices of the content were not copied", self.place.left_out));
        }
        if self.workplace.swept() > 0 {
            observer.note("an earlier run was killed: what it left (processes, mounts, temporary files) was removed");
        }
        let capture = self.begin_capture();
        let mut launched = Vec::new();
        let ended = self.launches(observer, stop, &mut launched).err().unwrap_or(LoadPointEnd::Done);
        let taken = capture.map(|capture| capture.and_then(RunningCapture::end));
        if let Some(Err(why)) = &taken {
            observer.note(&format!("no capture: {why}"));
        }
        let first = launched.first().map_or(self.started, |launch: &Launched| launch.started);
        let length = launched.last().map_or(Duration::ZERO, |last| {
            Duration::from_nanos((last.started - first).0.unsigned_abs()) + last.elapsed
        });
        let load = metrics.as_ref().and_then(|metrics| metrics.within(first, length));
        let (run, document) = self.document(&launched, ended, taken.as_ref(), load)?;
        let kept = match self.directory.take() {
            Some(directory) => keep(directory, &run, &document, metrics.as_ref()),
            None => Ok(()),
        };
        Ok(BenchOutcome { document, kept })
    }

    /// All launches until one fails. Error: why, or that it was interrupted.
    fn launches(
        &mut self,
        observer: &mut dyn LaunchObserver,
        stop: &AtomicBool,
        launched: &mut Vec<Launched>,
    ) -> Result<(), LoadPointEnd> {
        for number in 0..=self.options.repetitions {
            let launch = self.launch(number, stop)?;
            observer.launched(number, launch.elapsed);
            if number > 0 {
                launched.push(launch);
            }
        }
        Ok(())
    }

    fn launch(&mut self, number: u32, stop: &AtomicBool) -> Result<Launched, LoadPointEnd> {
        let told = |error: BenchError| LoadPointEnd::Failed(crate::one_line(&error));
        if self.options.cold {
            self.place.cool().map_err(told)?;
        }
        let local = tempfile::Builder::new().prefix("local-").tempdir_in(self.workplace.path());
        let local = local.map_err(BenchError::system("temporary directory")).map_err(told)?;
        let [folder, local] = [self.place.path(), local.path()].map(|path| path.display().to_string());
        let environment = [
            ("SMBSCOPE_FOLDER", folder.clone()),
            ("SMBSCOPE_LOCAL", local.clone()),
            ("SMBSCOPE_LAUNCH", number.to_string()),
        ];
        commands::run("before", &self.options.before, &environment).map_err(LoadPointEnd::Failed)?;
        let options = &self.options;
        let filled = |text: &str| text.replace("{folder}", &folder).replace("{local}", &local);
        let command: Vec<String> = options.command.iter().map(|word| filled(word)).collect();
        let until = match &options.until {
            Until::File(path) => Until::File(PathBuf::from(filled(&path.display().to_string()))),
            other => other.clone(),
        };
        let mut watch = CompletionProbe::new(&until).map_err(told)?;
        let started = now();
        let mut program = LaunchedProgram::start(&command, &environment, &self.workplace).map_err(told)?;
        let interrupted = || stop.load(Ordering::Relaxed);
        let reached = watch.wait(&mut program, options.timeout, &interrupted)?;
        let elapsed = reached.saturating_duration_since(program.started());
        if until != Until::Exit {
            std::thread::sleep(options.linger);
        }
        program.stop();
        Ok(Launched { started, elapsed })
    }

    /// Begins the capture of the whole series, where there is a server and it is asked for.
    fn begin_capture(&mut self) -> Option<Result<RunningCapture, String>> {
        let server = self.server.filter(|_| self.options.capture)?;
        let name = document::CAPTURE;
        let begun = Sniffer::find(server, SnapLength::All).and_then(|sniffer| {
            let file = match &mut self.directory {
                Some(directory) => directory.capture(name).map_err(|error| crate::one_line(&error))?,
                None => self.workplace.path().join(name),
            };
            sniffer.begin(&file)
        });
        // What is on the share is known by its name only to who saw it opened.
        if let (Ok(_), Some(_)) = (&begun, &self.site)
            && let Err(error) = self.place.mount_again()
        {
            return Some(Err(crate::one_line(&error)));
        }
        Some(begun)
    }
}

/// Keeps the results.
fn keep(
    mut directory: RunDirectory,
    run: &smbscope_load::engine::result::LoadPointResult,
    document: &smbscope_report::bench::BenchDocument,
    metrics: Option<&Metrics>,
) -> Result<(), BenchError> {
    directory.add_histograms(run);
    directory.keep(document, &metrics.map(Metrics::so_far).unwrap_or_default())?;
    directory.keep_page(document)?;
    directory.put_in_place()
}
