//! Times launches of a real program until it is ready, with its files on this machine or on a share.
//!
//! The time that the program waits for the server comes from a capture of the launch. The result is a
//! [`BenchDocument`](smbscope_report::bench::BenchDocument): a launch is a job of a single user, and the commands are
//! those in the capture. Start reading at [`Series`].

mod document;
mod place;
mod program;

pub use program::Until;

pub use crate::bench::progress::LaunchObserver;
use crate::capture::{RunningCapture, SnapLength, Sniffer};
use crate::directory::RunDirectory;
use crate::environment::{now, run_commands};
use crate::files::Sources;
use crate::keys;
use crate::launch::program::X11Display;
use crate::metrics::Metrics;
use crate::options::{LaunchOptions, LaunchTarget, Mounter};
use crate::server::{Connect, Login, Passwords, Private, ServerUnderTest, Site, probe};
use crate::{BenchError, BenchOutcome, TargetUrl};
use document::Launched;
use place::ProgramFolder;
use program::{CompletionProbe, LaunchedProgram};
use smbscope_client::{SessionOptions, SessionParameters};
use smbscope_crypto::key_ring;
use smbscope_lab::{Launcher, Workplace};
use smbscope_load::engine::result::LoadPointEnd;
use smbscope_model::{Dialect, Timestamp};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use zeroize::Zeroizing;

/// Port of SMB over TCP.
const PORT: u16 = 445;
/// Number of the launches that are not measured.
const WARMUP: u32 = 0;

/// Options of `launch`, and what they stand for on this machine.
#[derive(Debug)]
pub struct SeriesOptions {
    pub launch: LaunchOptions,
    pub until: Until,
    pub files: ProgramFilesLocation,
    /// Input files of the series, which its output must not overwrite.
    pub sources: Sources,
    /// Command line that started the series, without the option for the results.
    pub invocation: Option<String>,
}

impl SeriesOptions {
    /// Looks up the server. `launcher` starts a private one if the options ask for it.
    pub fn new(
        launch: LaunchOptions,
        launcher: Launcher,
        password: Box<Passwords>,
    ) -> Result<SeriesOptions, BenchError> {
        Ok(SeriesOptions {
            until: Until::from_options(&launch),
            files: files(&launch, launcher, password)?,
            sources: sources(&launch),
            invocation: None,
            launch,
        })
    }
}

/// Returns the input files of the launches.
fn sources(options: &LaunchOptions) -> Sources {
    let mut sources = Sources::default();
    options.password_file.iter().chain(&options.content).for_each(|file| sources.add(file));
    sources
}

/// Returns the location of the program's files. Fails if the server's name has no address.
fn files(
    options: &LaunchOptions,
    launcher: Launcher,
    password: Box<Passwords>,
) -> Result<ProgramFilesLocation, BenchError> {
    let server = match &options.target {
        None => return Ok(ProgramFilesLocation::Temporary),
        Some(LaunchTarget::Target(TargetUrl::Folder(folder))) => {
            let server = options.server.as_deref().map(server_address).transpose()?;
            return Ok(ProgramFilesLocation::Folder(folder.clone(), server));
        }
        Some(LaunchTarget::Target(target)) => ServerUnderTest::Named(target.clone()),
        Some(LaunchTarget::Lab) => {
            let mut private = Private { launcher, ..Private::default() };
            // The mount's program logs no keys, but the server does, into its private folder.
            private.settings.extra.extend(options.capture.then(|| "debug encryption = yes".to_owned()));
            ServerUnderTest::Private(private)
        }
    };
    let mut connect = Connect::new(Login::Password, password);
    connect.options = SessionOptions {
        dialect: options.dialect,
        signing: options.signing,
        encryption: options.encryption,
        ..connect.options
    };
    Ok(ProgramFilesLocation::Share(Box::new(OnShare { server, connect, mounter: options.mount })))
}

/// Resolves `HOST` or `HOST:PORT`.
fn server_address(server: &str) -> Result<SocketAddr, BenchError> {
    let unknown = |why: &dyn std::fmt::Display| BenchError::Unavailable(format!("--server {server}: {why}"));
    let found = server.to_socket_addrs().or_else(|_| (server.trim_matches(['[', ']']), PORT).to_socket_addrs());
    let mut found = found.map_err(|error| unknown(&format_args!("expected a host, or host:port: {error}")))?;
    found.next().ok_or_else(|| unknown(&"it has no address"))
}

#[derive(Debug)]
pub enum ProgramFilesLocation {
    Temporary,
    /// An existing folder. The address is the server's if the folder is on a mounted share.
    Folder(PathBuf, Option<SocketAddr>),
    Share(Box<OnShare>),
}

#[derive(Debug)]
pub struct OnShare {
    pub server: ServerUnderTest,
    pub connect: Connect,
    /// `None` selects the best one for the dialect.
    pub mounter: Option<Mounter>,
}

impl OnShare {
    /// Caps the private server's dialect for mounters that can't be limited. Returns false without a private server.
    fn cap_dialect(&mut self, dialect: Dialect) -> bool {
        let ServerUnderTest::Private(private) = &mut self.server else { return false };
        if let Some(most) = place::of_lab(dialect) {
            private.settings.max_dialect = most;
        }
        true
    }
}

pub struct Series {
    options: SeriesOptions,
    started: Timestamp,
    directory: Option<RunDirectory>,
    place: ProgramFolder,
    site: Option<(Site, SessionParameters)>,
    server: Option<SocketAddr>,
    /// Dropped after `place`, whose mount is inside it.
    workplace: Arc<Workplace>,
    /// An X server resets when its last client disconnects, so this one stays.
    _display: Option<X11Display>,
}

impl Series {
    /// Cleans up if it fails.
    pub fn open(mut options: SeriesOptions) -> Result<Series, BenchError> {
        let started = now();
        let open = |path| RunDirectory::open(path, &options.sources);
        let directory = options.launch.output.as_deref().map(open).transpose()?;
        if options.launch.cold {
            place::drop_caches()?;
        }
        let display = CompletionProbe::new(&options.until)?.into_display();
        let workplace = Arc::new(Workplace::open().map_err(BenchError::Lab)?);
        let content = options.launch.content.as_deref();
        let (place, site, server) = match &mut options.files {
            ProgramFilesLocation::Temporary => (ProgramFolder::temporary(content, &workplace)?, None, None),
            ProgramFilesLocation::Folder(folder, server) => {
                (ProgramFolder::folder(folder, content, &workplace)?, None, *server)
            }
            ProgramFilesLocation::Share(share) => {
                if let ServerUnderTest::Named(TargetUrl::Folder(_)) = &share.server {
                    return Err(BenchError::Unavailable("a folder is not a share, and needs no mount".to_owned()));
                }
                let dialect = share.connect.options.dialect;
                let mounter = *share.mounter.get_or_insert(Mounter::for_dialect(dialect));
                let is_private = share.cap_dialect(dialect);
                if let Some(why) = place::beyond(mounter, &share.connect.options, is_private) {
                    return Err(BenchError::Unavailable(why));
                }
                let site = Site::open(&share.server, &share.connect)?;
                let facts = probe(&site.options)?;
                let place = ProgramFolder::share(mounter, &site.options, &site.directory, content, &workplace)?;
                let server = site.options.address;
                (place, Some((site, facts)), Some(server))
            }
        };
        Ok(Series { options, started, directory, place, site, server, workplace, _display: display })
    }

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
        let keys = taken.as_ref().and_then(|taken| taken.as_ref().ok()).and_then(|_| self.lab_keys());
        let ring = keys.as_ref().and_then(|lines| keys::ring_of_lines(lines));
        let (run, document) = self.document(&launched, ended, taken.as_ref(), ring, load)?;
        let kept = match self.directory.take() {
            Some(mut directory) => {
                let kept = keys.map_or(Ok(()), |keys| directory.keys(document::CAPTURE, &keys));
                kept.and_then(|()| keep(directory, &run, &document, metrics.as_ref()))
            }
            None => Ok(()),
        };
        Ok(BenchOutcome { document, kept })
    }

    fn launches(
        &mut self,
        observer: &mut dyn LaunchObserver,
        stop: &AtomicBool,
        launched: &mut Vec<Launched>,
    ) -> Result<(), LoadPointEnd> {
        for _ in 0..self.options.launch.warmup_launches {
            let launch = self.launch(WARMUP, stop)?;
            observer.launched(WARMUP, launch.elapsed);
        }
        for number in 1..=self.options.launch.repetitions {
            let launch = self.launch(number, stop)?;
            observer.launched(number, launch.elapsed);
            launched.push(launch);
        }
        Ok(())
    }

    fn launch(&mut self, number: u32, stop: &AtomicBool) -> Result<Launched, LoadPointEnd> {
        let told = |error: BenchError| LoadPointEnd::Failed(crate::one_line(&error));
        if self.options.launch.cold {
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
        run_commands("before", &self.options.launch.before, &environment).map_err(LoadPointEnd::Failed)?;
        let options = &self.options;
        let filled = |text: &str| text.replace("{folder}", &folder).replace("{local}", &local);
        let command: Vec<String> = options.launch.command.iter().map(|word| filled(word)).collect();
        let until = match &options.until {
            Until::File(path) => Until::File(PathBuf::from(filled(&path.display().to_string()))),
            other => other.clone(),
        };
        let mut watch = CompletionProbe::new(&until).map_err(told)?;
        let started = now();
        let mut program = LaunchedProgram::start(&command, &environment, &self.workplace).map_err(told)?;
        let interrupted = || stop.load(Ordering::Relaxed);
        let reached = watch.wait(&mut program, options.launch.launch_timeout, &interrupted);
        if reached.is_ok() && until != Until::Exit {
            std::thread::sleep(options.launch.linger);
        }
        if !program.stop() {
            self.place.abort();
            program.stop();
        }
        if reached.is_err() && !self.place.answers() {
            let text = "the program hung in the mounted share, which did not answer: its mount was aborted";
            return Err(LoadPointEnd::Failed(text.to_owned()));
        }
        let elapsed = reached?.saturating_duration_since(program.started());
        Ok(Launched { started, elapsed })
    }

    /// Returns the keys of the private server's sessions as lines of Wireshark's `smb2_seskey_list`. `None` if there is no
    /// private server, or no session with keys.
    fn lab_keys(&self) -> Option<Zeroizing<String>> {
        let lab = self.site.as_ref()?.0.lab.as_ref()?;
        let log = keys::read(&lab.record().log_file()).ok()?;
        Some(key_ring::lines_of_samba_log(&log)).filter(|lines| !lines.is_empty())
    }

    fn begin_capture(&mut self) -> Option<Result<RunningCapture, String>> {
        let server = self.server.filter(|_| self.options.launch.capture)?;
        let name = document::CAPTURE;
        let begun = Sniffer::find(server, SnapLength::All).and_then(|sniffer| {
            let file = match &mut self.directory {
                Some(directory) => directory.capture(name).map_err(|error| crate::one_line(&error))?,
                None => self.workplace.path().join(name),
            };
            sniffer.begin(&file)
        });
        // The capture shows file names only for opens, so everything must be opened again.
        if let (Ok(_), Some(_)) = (&begun, &self.site)
            && let Err(error) = self.place.mount_again()
        {
            return Some(Err(crate::one_line(&error)));
        }
        Some(begun)
    }
}

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
