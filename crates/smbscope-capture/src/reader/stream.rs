//! Inputs read front to back: pipes, standard input and compressed files (gzip, zstd, lz4 and xz, by content); and
//! files outside the file system, read in slices, because a web page gets no path of a file that the user drops, and
//! can't map it.
//!
//! A thread reads and decompresses ahead into a bounded channel; the parser sees a refillable window. If the system
//! refuses the thread, the parser reads the source itself.

use super::format::CaptureParser;
use super::pcapng::Interfaces;
use super::{PacketRecord, ParseStep, SkipReason};
use std::fmt::Debug;
use std::io::{self, BufReader, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(super) const ENDS_INSIDE: &str = "the file ends in the middle of a record";

/// Bytes decompressed at once.
const CHUNK_LENGTH: usize = 256 << 10;
/// Chunks decompressed ahead of the reader.
const CHUNKS_AHEAD: usize = 4;
/// Interval at which a blocked read checks the stop flag.
const STOP_INTERVAL: Duration = Duration::from_millis(100);

struct Counting<R> {
    source: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    Ready,
    Ended,
    Idle,
}

enum Chunks {
    Ahead(Receiver<io::Result<Vec<u8>>>),
    /// The source itself; waits for it can't be interrupted.
    Source(ChunkedSource),
}

impl Chunks {
    fn next(&mut self, patience: Duration) -> Result<io::Result<Vec<u8>>, RecvTimeoutError> {
        match self {
            Chunks::Ahead(chunks) => chunks.recv_timeout(patience),
            Chunks::Source(source) => source.next().ok_or(RecvTimeoutError::Disconnected),
        }
    }
}

pub(super) struct InputStream {
    chunks: Chunks,
    window: Vec<u8>,
    start: usize,
    offset: u64,
    ended: bool,
    error: Option<io::Error>,
    stop: Arc<AtomicBool>,
    input_bytes: Arc<AtomicU64>,
    /// Everything read so far, while it fits the budget.
    pub(super) copy: Option<Vec<u8>>,
    copy_budget: usize,
}

pub(super) fn counted(source: Box<dyn Read + Send>, bytes: &Arc<AtomicU64>) -> Box<dyn Read + Send> {
    Box::new(Counting { source, bytes: Arc::clone(bytes) })
}

impl InputStream {
    /// Starts reading `source` on a thread. `input_bytes` is updated by a [`counted`] source below it.
    pub(super) fn new(
        source: Box<dyn Read + Send>,
        input_bytes: Arc<AtomicU64>,
        stop: Arc<AtomicBool>,
        copy_budget: usize,
    ) -> io::Result<InputStream> {
        let (sender, chunks) = sync_channel(CHUNKS_AHEAD);
        let shared = Arc::new(Mutex::new(Some(ChunkedSource { source, buffer: Vec::new() })));
        let taken = Arc::clone(&shared);
        let take = move |shared: &Mutex<Option<_>>| shared.lock().unwrap_or_else(PoisonError::into_inner).take();
        let read = move || take(&taken).into_iter().for_each(|source| read_ahead(source, &sender));
        let spawned = std::thread::Builder::new().name("smbscope-read".into()).spawn(read);
        let chunks = match spawned {
            Ok(_) => Chunks::Ahead(chunks),
            Err(error) => Chunks::Source(take(&shared).ok_or(error)?),
        };
        let copy = (copy_budget > 0).then(Vec::new);
        Ok(InputStream {
            chunks,
            window: Vec::new(),
            start: 0,
            offset: 0,
            ended: false,
            error: None,
            stop,
            input_bytes,
            copy,
            copy_budget,
        })
    }

    pub(super) fn window(&self) -> &[u8] {
        &self.window[self.start..]
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn input_bytes(&self) -> u64 {
        self.input_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    fn ended_cleanly(&self) -> bool {
        self.error.is_none() && (self.window().is_empty() || self.stop.load(Ordering::Relaxed))
    }

    pub(super) fn fill(&mut self, need: usize, patience: Option<Duration>) -> Fill {
        while self.window.len() - self.start < need {
            if self.ended {
                return Fill::Ended;
            }
            if matches!(self.chunks, Chunks::Source(_)) && self.stop.load(Ordering::Relaxed) {
                self.ended = true;
                continue;
            }
            match self.chunks.next(patience.unwrap_or(STOP_INTERVAL)) {
                Ok(Ok(chunk)) => self.append(chunk),
                Ok(Err(error)) => {
                    self.error = Some(error);
                    self.ended = true;
                }
                Err(RecvTimeoutError::Disconnected) => self.ended = true,
                Err(RecvTimeoutError::Timeout) if self.stop.load(Ordering::Relaxed) => self.ended = true,
                Err(RecvTimeoutError::Timeout) if patience.is_some() => return Fill::Idle,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Fill::Ready
    }

    fn append(&mut self, chunk: Vec<u8>) {
        if let Some(copy) = &mut self.copy {
            if copy.len() + chunk.len() <= self.copy_budget {
                copy.extend_from_slice(&chunk);
            } else {
                self.copy = None;
            }
        }
        if self.window().is_empty() {
            // Chunks of a live capture are whole packets, so most need no copy.
            self.window = chunk;
        } else {
            self.window.drain(..self.start);
            self.window.extend_from_slice(&chunk);
        }
        self.start = 0;
    }

    pub(super) fn consume(&mut self, mut length: usize) -> bool {
        loop {
            let step = length.min(self.window.len() - self.start);
            self.start += step;
            self.offset += step as u64;
            length -= step;
            if length == 0 {
                return true;
            }
            if self.fill(1, None) != Fill::Ready {
                return false;
            }
        }
    }
}

fn read_ahead(source: ChunkedSource, chunks: &SyncSender<io::Result<Vec<u8>>>) {
    for chunk in source {
        let failed = chunk.is_err();
        // If the receiver is gone, the error has nowhere to go.
        if chunks.send(chunk).is_err() || failed {
            return;
        }
    }
}

/// Chunks of a source, as long as what each read returns.
struct ChunkedSource {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
}

impl Iterator for ChunkedSource {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        self.buffer.resize(CHUNK_LENGTH, 0);
        loop {
            match self.source.read(&mut self.buffer) {
                Ok(0) => return None,
                // A live capture returns one packet at a time: a new buffer for each would cost more than the packet.
                Ok(count) if count < CHUNK_LENGTH / 2 => return Some(Ok(self.buffer[..count].to_vec())),
                Ok(count) => {
                    let mut chunk = std::mem::take(&mut self.buffer);
                    chunk.truncate(count);
                    return Some(Ok(chunk));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RecordPoll {
    Packet(PacketRecord, usize),
    /// A record was skipped because it could not be read, or because it is not a packet although Wireshark numbers it.
    Passed(SkipReason),
    Idle,
    /// End of the stream, with a reason and the offset of the record if it is not a clean one.
    End(Option<(String, u64)>),
}

pub(super) fn next_record(
    stream: &mut InputStream,
    format: &mut CaptureParser,
    interfaces: &mut Interfaces,
    patience: Option<Duration>,
) -> RecordPoll {
    loop {
        match format.step(interfaces, stream.window()) {
            ParseStep::Packet(record, length) => return RecordPoll::Packet(record, length),
            ParseStep::Skip { length, what } => {
                let offset = stream.offset();
                if !stream.consume(length) {
                    return RecordPoll::End(Some((ended_inside(stream), offset)));
                }
                if what != SkipReason::Description {
                    return RecordPoll::Passed(what);
                }
            }
            ParseStep::More(need) => match stream.fill(need, patience) {
                Fill::Ready => {}
                Fill::Idle => return RecordPoll::Idle,
                Fill::Ended if stream.ended_cleanly() => return RecordPoll::End(None),
                Fill::Ended => return RecordPoll::End(Some((ended_inside(stream), stream.offset()))),
            },
            ParseStep::Stop(reason) => return RecordPoll::End(Some((reason, stream.offset()))),
        }
    }
}

pub(super) fn ended_inside(stream: &InputStream) -> String {
    match stream.error() {
        Some(error) => format!("the input is damaged or ends early ({error})"),
        None => ENDS_INSIDE.to_owned(),
    }
}

const READ_LENGTH: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
    Lz4,
    Xz,
}

impl Compression {
    pub(super) fn sniff(head: &[u8]) -> Option<Compression> {
        match head {
            [0x1f, 0x8b, 8, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            // A skippable frame, which parallel compressors write first.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
            [0x04, 0x22, 0x4d, 0x18, ..] | [0x02, 0x21, 0x4c, 0x18, ..] => Some(Compression::Lz4),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
            _ => None,
        }
    }

    /// Detects compressions and archives that are not supported; returns the name and the command that unpacks them.
    pub(super) fn sniff_foreign(head: &[u8]) -> Option<(&'static str, &'static str)> {
        match head {
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(("bzip2", "bunzip2")),
            [b'P', b'K', 3, 4, ..] => Some(("zip archive", "unzip")),
            [b'7', b'z', 0xbc, 0xaf, ..] => Some(("7z archive", "7z x")),
            [0x1f, 0x9d, ..] => Some(("compress", "uncompress")),
            _ if head.get(257..262) == Some(b"ustar") => Some(("tar archive", "tar -x")),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Lz4 => "lz4",
            Compression::Xz => "xz",
        }
    }

    /// Returns a reader of all decompressed members. A window over `window` bytes fails with
    /// [`io::ErrorKind::OutOfMemory`].
    pub(super) fn decoder(self, compressed: Box<dyn Read + Send>, window: u64) -> io::Result<Box<dyn Read + Send>> {
        let buffered = BufReader::with_capacity(READ_LENGTH, compressed);
        Ok(match self {
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(buffered)),
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered)?;
                // A window is a power of two plus up to seven eighths; zstd compares the limit with the total.
                decoder.window_log_max(window.max(1).ilog2().clamp(10, 31))?;
                Box::new(Windowed { decoder, window })
            }
            Compression::Lz4 => {
                let source = Tail { source: buffered, last: [0xff; 8] };
                Box::new(Lz4Frames { decoder: lz4_flex::frame::FrameDecoder::new(source) })
            }
            Compression::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(window, liblzma::stream::CONCATENATED)
                    .map_err(io::Error::other)?;
                Box::new(Windowed { decoder: liblzma::bufread::XzDecoder::new_stream(buffered, stream), window })
            }
        })
    }
}

struct Windowed<R> {
    decoder: R,
    window: u64,
}

impl<R: Read> Read for Windowed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(buffer).map_err(|error| {
            let reason = error.to_string().to_lowercase();
            // "Frame requires too much memory for decoding" (zstd), "memory limit reached" (xz).
            if !reason.contains("too much memory") && !reason.contains("memory limit") {
                return error;
            }
            let allowed = self.window >> 20;
            let text = format!("it needs a window of more than the {allowed} MiB that --memory allows: raise --memory");
            io::Error::new(io::ErrorKind::OutOfMemory, text)
        })
    }
}

struct Tail<R> {
    source: R,
    last: [u8; 8],
}

impl<R: Read> Read for Tail<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        let new = &buffer[..count];
        let kept = new.len().min(8);
        self.last.copy_within(kept.., 0);
        self.last[8 - kept..].copy_from_slice(&new[new.len() - kept..]);
        Ok(count)
    }
}

/// Reads consecutive lz4 frames. The decoder returns zero bytes both at the end of a frame and for a truncated one. The
/// end mark, four zero bytes before an optional checksum, distinguishes them (LZ4 frame format).
struct Lz4Frames<R: Read> {
    decoder: lz4_flex::frame::FrameDecoder<Tail<R>>,
}

impl<R: Read> Read for Lz4Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        for _ in 0..2 {
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
        }
        let last = &self.decoder.get_ref().last;
        match last[..4] == [0; 4] || last[4..] == [0; 4] {
            true => Ok(0),
            false => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "incomplete frame")),
        }
    }
}

/// Access to the bytes of a file outside the file system. They don't change while it is read.
pub trait FileSlices: Debug + Send + Sync {
    fn name(&self) -> String;

    fn length(&self) -> u64;

    /// Reads up to `buffer.len()` bytes from `offset` on. Returns their number, 0 only at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

#[derive(Debug, Clone)]
pub struct SlicedFile(Arc<dyn FileSlices>);

impl SlicedFile {
    pub fn new(file: impl FileSlices + 'static) -> SlicedFile {
        SlicedFile(Arc::new(file))
    }

    pub(super) fn name(&self) -> String {
        self.0.name()
    }

    pub(super) fn length(&self) -> u64 {
        self.0.length()
    }

    pub(super) fn reader(&self) -> SliceReader {
        SliceReader { file: Arc::clone(&self.0), offset: 0 }
    }
}

impl PartialEq for SlicedFile {
    fn eq(&self, other: &SlicedFile) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SlicedFile {}

pub(super) struct SliceReader {
    file: Arc<dyn FileSlices>,
    offset: u64,
}

impl Read for SliceReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.offset, buffer)?;
        self.offset += count as u64;
        Ok(count)
    }
}
