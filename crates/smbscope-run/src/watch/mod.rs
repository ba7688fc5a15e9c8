//! `smbscope watch`: where its packets come from. `smbscope_explain::analysis::live` follows them.
//!
//! Packets of an interface come from the kernel's ring, if this process may open it: it gives up that right before it
//! reads the first packet. Otherwise tcpdump or dumpcap writes them to a pipe, a program that the system trusts to
//! capture. tcpdump is preferred, because it counts the kernel's losses on request (SIGUSR1); dumpcap counts them at the
//! end.

mod causes;
mod directory;
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
pub mod sandbox;
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
pub mod sandbox {
    //! Systems without a sandbox.

    use crate::options::WatchOptions;
    use std::path::PathBuf;

    /// Does nothing.
    pub fn prepare(_options: &WatchOptions, _read_later: &[PathBuf], _saves_reports: bool) {}

    /// Does nothing.
    pub fn enter_thread() {}

    /// Does nothing.
    pub(super) fn enter(_child: Option<u32>) {}
}

pub use causes::CauseEvents;

use crate::capture::{self, BUFFER_KIB, CaptureProgram};
use crate::environment::{self, ends_within, groups, on_path};
use crate::options::WatchOptions;
use crate::ring::{self, RingEvent, RingLimits, RingProgress, RingSummary};
use crate::{BenchError, one_line};
use causes::SavedFrom;
use directory::CaptureDirectory;
use smbscope_analyze::slim::SlimOptions;
use smbscope_capture::live::{LiveCapture, LiveError, LiveStatus, PacketDrops};
use smbscope_capture::reader::CaptureSet;
use smbscope_lab::command_for;
use smbscope_model::Timestamp;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time until a capture program must have begun.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval at which the end of a growing file is checked.
const TAIL_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes that the pipe from a capture program holds, instead of 64 KiB: each waits for the other less often.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1 << 20;
/// Bytes of a program's messages that are kept.
const SAID_MAX: usize = 16 << 10;

/// Capture that is still being made.
pub struct WatchedCapture {
    pub set: CaptureSet,
    /// The system's clock, if it applies to the packets because they are captured now.
    pub clock: Option<fn() -> Timestamp>,
    /// For the thread that finds causes, which gives it to [`WatchedCapture::finish`].
    pub causes: Option<CauseEvents>,
    interface: Option<InterfaceCapture>,
    ring: Option<RunningRing>,
}

impl WatchedCapture {
    /// Opens the capture. `slim` are the settings of the ring, if the options want one. `tell` gets problems, and what the
    /// command of `--on-cause` prints.
    pub fn open(
        options: &WatchOptions,
        slim: SlimOptions,
        tell: impl Fn(&str) + Clone + Send + Sync + 'static,
    ) -> Result<WatchedCapture, BenchError> {
        let limits = options.ring.limits().map_err(|error| match &options.ring.ring {
            Some(folder) => BenchError::file("make the directory", folder)(error),
            None => BenchError::Broken,
        })?;
        let progress = Arc::<RingProgress>::default();
        let saved_from = limits.clone().map(|limits| SavedFrom { limits, progress: Arc::clone(&progress) });
        let said = tell.clone();
        let notify = move |event: &RingEvent| said(&format!("warning: {event}"));
        let (name, source, interface) = match &options.interface {
            Some(interface) => {
                let (source, capture) = captured_on(interface, options)?;
                (interface.clone(), source, Some(capture))
            }
            None => {
                let file = options.file.as_deref().unwrap_or(Path::new("-"));
                (file.display().to_string(), opened(file, options.follow, limits.as_ref())?, None)
            }
        };
        sandbox::enter(interface.as_ref().and_then(InterfaceCapture::child));
        let (source, ring) = kept(source, limits, slim, progress, notify)?;
        let set = CaptureSet::from_reader(&name, source);
        let set = set.map_err(|error| BenchError::Unavailable(one_line(&error)))?;
        let causes = CauseEvents::begin(options, saved_from, tell)?;
        let clock = interface.as_ref().map(|_| environment::now as fn() -> Timestamp);
        Ok(WatchedCapture { set, clock, causes, interface, ring })
    }

    /// Ends the capture, the ring and the actions. Returns what the ring kept.
    pub fn finish(self, causes: Option<CauseEvents>) -> Option<io::Result<RingSummary>> {
        let WatchedCapture { set, interface, ring, .. } = self;
        // Their ends end the ring's copy of the packets.
        drop(interface);
        drop(set);
        let kept = ring.map(RunningRing::finish);
        if let Some(causes) = causes {
            causes.finish();
        }
        kept
    }

    /// Counts the packets that don't reach the capture, for another thread.
    pub fn losses(&self) -> Option<CaptureLosses> {
        self.interface.as_ref().map(InterfaceCapture::losses)
    }

    /// Returns why the capture ended by itself, if it did.
    pub fn ended_because(&mut self) -> Option<String> {
        self.interface.as_mut()?.ended_because()
    }
}

/// Packets of an interface as they come.
enum InterfaceCapture {
    Kernel(Arc<LiveStatus>),
    Program(CaptureStream),
}

impl InterfaceCapture {
    /// Returns the process that captures, if it is another one.
    fn child(&self) -> Option<u32> {
        match self {
            InterfaceCapture::Kernel(_) => None,
            InterfaceCapture::Program(program) => Some(program.child.id()),
        }
    }

    fn losses(&self) -> CaptureLosses {
        match self {
            InterfaceCapture::Kernel(status) => CaptureLosses::Kernel(Arc::clone(status)),
            InterfaceCapture::Program(program) => program.losses(),
        }
    }

    fn ended_because(&mut self) -> Option<String> {
        match self {
            InterfaceCapture::Kernel(status) => status.failure().map(|why| format!("the capture ended: {why}")),
            InterfaceCapture::Program(program) => program.ended_because(),
        }
    }
}

impl Drop for InterfaceCapture {
    fn drop(&mut self) {
        if let InterfaceCapture::Kernel(status) = self {
            status.stop();
        }
    }
}

/// Chunks of the capture that wait for the ring: about 64 MB. If the disk is slower than that, the capture waits for it.
const RING_BEHIND: usize = 256;

fn captured_on(
    interface: &str,
    options: &WatchOptions,
) -> Result<(Box<dyn Read + Send>, InterfaceCapture), BenchError> {
    let refused = |why: String| BenchError::Unavailable(format!("cannot capture on {interface}: {why}"));
    environment::captures().map_err(refused)?;
    let (filters, snap_length) = (filters(options), options.snap_length.unwrap_or(0));
    match LiveCapture::open(interface, snap_length, BUFFER_KIB << 10, &filters) {
        Ok(packets) => {
            let status = packets.status();
            return Ok((Box::new(packets), InterfaceCapture::Kernel(status)));
        }
        Err(LiveError::Refused(why)) => return Err(refused(why)),
        Err(why) => tracing::info!(%why, "packets come from another program"),
    }
    let mut program = CaptureStream::begin(interface, snap_length, &filters).map_err(refused)?;
    let packets = program.child.stdout.take().ok_or(BenchError::Broken)?;
    Ok((Box::new(packets), InterfaceCapture::Program(program)))
}

/// Opens a file, a directory or standard input.
fn opened(file: &Path, follow: bool, ring: Option<&RingLimits>) -> Result<Box<dyn Read + Send>, BenchError> {
    if file.as_os_str() == "-" {
        return Ok(Box::new(io::stdin()));
    }
    if file.is_dir() {
        refuse_own_ring(file, ring)?;
        return Ok(Box::new(CaptureDirectory::new(file)));
    }
    let opened = File::open(file).map_err(BenchError::file("open", file))?;
    Ok(if follow { Box::new(GrowingFile(opened)) } else { Box::new(opened) })
}

fn refuse_own_ring(folder: &Path, limits: Option<&RingLimits>) -> Result<(), BenchError> {
    let Some(limits) = limits else { return Ok(()) };
    match (folder.canonicalize(), limits.folder.canonicalize()) {
        (Ok(read), Ok(written)) if read == written => Err(BenchError::Unavailable(format!(
            "{}: it is also the directory of --ring: name another directory",
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// Passes a copy of a capture to a ring, if one is wanted.
fn kept(
    source: Box<dyn Read + Send>,
    limits: Option<RingLimits>,
    slim: SlimOptions,
    progress: Arc<RingProgress>,
    notify: impl Fn(&RingEvent) + Send + Sync + 'static,
) -> Result<(Box<dyn Read + Send>, Option<RunningRing>), BenchError> {
    let Some(limits) = limits else { return Ok((source, None)) };
    let (copies, received) = sync_channel(RING_BEHIND);
    let stop = Arc::<AtomicBool>::default();
    let keeper = thread::Builder::new().name("smbscope-ring".to_owned());
    let wanted = Arc::clone(&stop);
    let keep = move || {
        let source = Box::new(ReceivedCopy { received, chunk: Vec::new(), start: 0, stop: wanted });
        let mut set = CaptureSet::from_reader("the capture", source).map_err(io::Error::other)?;
        ring::keep(&mut set, &slim, &limits, &progress, &mut |_| {}, &notify)
    };
    let thread = keeper.spawn(keep).map_err(BenchError::system("thread for the ring"))?;
    Ok((Box::new(CopiedSource { source, copies: Some(copies) }), Some(RunningRing { thread, stop })))
}

/// Source whose bytes a ring gets as well.
struct CopiedSource {
    source: Box<dyn Read + Send>,
    /// None if the ring ended.
    copies: Option<SyncSender<Vec<u8>>>,
}

impl Read for CopiedSource {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(buffer)?;
        if self.copies.as_ref().is_some_and(|copies| copies.send(buffer[..length].to_vec()).is_err()) {
            self.copies = None;
        }
        Ok(length)
    }
}

struct ReceivedCopy {
    received: Receiver<Vec<u8>>,
    chunk: Vec<u8>,
    start: usize,
    stop: Arc<AtomicBool>,
}

impl Read for ReceivedCopy {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.start == self.chunk.len() {
            match self.received.recv_timeout(TAIL_INTERVAL) {
                Ok(chunk) => (self.chunk, self.start) = (chunk, 0),
                Err(RecvTimeoutError::Timeout) if !self.stop.load(Ordering::Relaxed) => {}
                Err(_) => return Ok(0),
            }
        }
        let length = buffer.len().min(self.chunk.len() - self.start);
        buffer[..length].copy_from_slice(&self.chunk[self.start..self.start + length]);
        self.start += length;
        Ok(length)
    }
}

/// Thread that keeps the newest packets.
struct RunningRing {
    thread: thread::JoinHandle<io::Result<RingSummary>>,
    /// No more packets come.
    stop: Arc<AtomicBool>,
}

impl RunningRing {
    fn finish(self) -> io::Result<RingSummary> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Returns the kernel's filter, SMB by its ports and the tunnels in which it travels, and one for interfaces without
/// VLANs.
fn filters(options: &WatchOptions) -> [String; 2] {
    let ports = if options.reading.ports.is_empty() { &[445, 139][..] } else { &options.reading.ports };
    let mut parts: Vec<String> = ports.iter().map(|port| format!("tcp port {port}")).collect();
    // VXLAN, GENEVE; GRE and IP in IP.
    parts.extend(["udp port 4789", "udp port 6081", "ip proto 47", "ip proto 4"].map(str::to_owned));
    parts.extend(options.reading.tunnels.tunnel_ports.iter().map(|tunnel| format!("udp port {}", tunnel.port)));
    let filter = parts.join(" or ");
    // A VLAN tag moves the headers, so that the filter has to hold for both places.
    [format!("{filter} or (vlan and ({filter}))"), filter]
}

/// A file that another program still writes: its end is waited for.
struct GrowingFile(File);

impl Read for GrowingFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Ok(0) => thread::sleep(TAIL_INTERVAL),
                done => return done,
            }
        }
    }
}

/// Capture program that writes to a pipe.
struct CaptureStream {
    program: CaptureProgram,
    child: Child,
    said: Arc<Mutex<String>>,
}

impl CaptureStream {
    fn begin(interface: &str, snap_length: u32, [with_vlans, without]: &[String; 2]) -> Result<CaptureStream, String> {
        let mut reasons = Vec::new();
        for program in CaptureProgram::ALL {
            let Some(path) = on_path(program.name()) else { continue };
            let start = |filter| CaptureStream::start(program, &path, interface, snap_length, filter);
            match start(with_vlans).or_else(|why| if is_about_vlans(&why) { start(without) } else { Err(why) }) {
                Ok(stream) => return Ok(stream),
                Err(why) => reasons.push(why),
            }
        }
        match reasons.is_empty() {
            true => Err("neither tcpdump nor dumpcap is installed; install one of them".to_owned()),
            false => Err(format!("{}; run as root, or allow dumpcap to capture", reasons.join("; "))),
        }
    }

    fn start(
        program: CaptureProgram,
        path: &Path,
        interface: &str,
        snap_length: u32,
        filter: &str,
    ) -> Result<CaptureStream, String> {
        let name = program.name();
        let mut command = command_for(path);
        command.args(program.to_pipe(interface, snap_length, filter));
        // A group of its own keeps Ctrl-C away. If this process is killed, the program ends at its next packet.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        groups::begin(&mut command);
        let mut child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
        #[cfg(target_os = "linux")]
        if let Some(packets) = &child.stdout {
            // Less is enough if the user has reached the limit of pipes.
            let _ = rustix::pipe::fcntl_setpipe_size(packets, PIPE_BYTES);
        }
        let said = Arc::<Mutex<String>>::default();
        if let Some(stderr) = child.stderr.take() {
            let said = Arc::clone(&said);
            let listener = thread::Builder::new().name(format!("smbscope-{name}"));
            listener.spawn(move || listen(stderr, &said)).map_err(|error| format!("no thread: {error}"))?;
        }
        let mut stream = CaptureStream { program, child, said };
        let begun = Instant::now();
        while !stream.said().contains(program.ready()) {
            let ended = stream.child.try_wait().ok().flatten().is_some();
            if ended || begun.elapsed() > PATIENCE {
                // The last words may still be on their way.
                thread::sleep(Duration::from_millis(50));
                return Err(format!("{name}: {}", capture::reason(name, &stream.said())));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(stream)
    }

    fn said(&self) -> MutexGuard<'_, String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended_because(&mut self) -> Option<String> {
        self.child.try_wait().ok().flatten()?;
        let name = self.program.name();
        Some(format!("{name} ended: {}", capture::reason(name, &self.said())))
    }

    fn losses(&self) -> CaptureLosses {
        let counts = (self.program == CaptureProgram::Tcpdump).then(|| self.child.id());
        CaptureLosses::Program { counts, said: Arc::clone(&self.said) }
    }
}

impl Drop for CaptureStream {
    fn drop(&mut self) {
        if let Ok(Some(_)) = self.child.try_wait() {
            return;
        }
        groups::end(&mut self.child);
        if ends_within(&mut self.child, PATIENCE).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Returns true if a filter names VLANs, and the interface has none: `any`, and tunnels without Ethernet headers.
fn is_about_vlans(why: &str) -> bool {
    why.contains("no VLAN support") || why.contains("Invalid capture filter")
}

fn listen(stderr: ChildStderr, said: &Mutex<String>) {
    sandbox::enter_thread();
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() > SAID_MAX {
            said.clear();
        }
        said.push_str(&line);
        said.push('\n');
    }
}

/// Counts of packets that were lost on the way to the capture.
#[derive(Clone)]
pub enum CaptureLosses {
    Kernel(Arc<LiveStatus>),
    Program {
        /// The process, if it counts when it gets SIGUSR1.
        counts: Option<u32>,
        /// Messages of the program.
        said: Arc<Mutex<String>>,
    },
}

impl CaptureLosses {
    /// Returns the last known numbers since the start. `None` if the program doesn't tell before its end.
    pub fn known(&self) -> Option<PacketDrops> {
        match self {
            CaptureLosses::Kernel(status) => Some(status.dropped()),
            CaptureLosses::Program { said, .. } => capture::drops(&said.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Returns the last known numbers, and asks for newer ones. The capture must not be finished.
    pub fn dropped(&self) -> Option<PacketDrops> {
        let known = self.known();
        if let CaptureLosses::Program { counts: Some(process), .. } = self {
            groups::ask_for_counts(*process);
        }
        known
    }
}

/// Sets `stop` after a time.
pub fn stop_after(time: Duration, stop: Arc<AtomicBool>) {
    let timer = thread::Builder::new().name("smbscope-timer".to_owned());
    let _ = timer.spawn(move || {
        thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
    });
}
