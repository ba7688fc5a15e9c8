//! One input, opened and surveyed: the location of its bytes and the strategy for reading it in time order.

use super::ParseStep;
use super::clocks::{ClockCorrection, SAMPLE_BYTES, SortedRun, StepBack};
use super::format::{self, CaptureParser, SNIFF_LENGTH, Sniffed};
use super::map::Map;
use super::netmon::NetMon;
use super::pcapng::Interfaces;
use super::stream::{self, Compression, Fill, InputStream, SlicedFile, counted};
use super::survey::{ReorderStrategy, Survey, UnreadCapture};
use super::{CaptureError, CaptureInput};
use smbscope_model::{CaptureInfo, Timestamp};
use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Resident bytes of mapped files at which pages are released.
pub(super) const RESIDENT_BYTES: usize = 8 << 20;
/// Distance before the current position in which packets still in use may touch pages again; rarely reached.
const TOUCHED_BYTES: usize = 256 << 20;
pub(super) const RELEASED_BYTES: usize = 8 << 20;

/// Bytes of a sliced file that are held in memory to sort its packets; larger ones are refused.
const IN_MEMORY_MAX: u64 = 768 << 20;

#[derive(Debug, Clone, Copy)]
pub(super) struct CaptureBudget {
    pub(super) memory: usize,
    pub(super) runs: usize,
    pub(super) window: u64,
}

/// Bytes that a decompression window may always have; larger ones share `--memory`. Plain `zstd` needs 8 MiB, `xz -9`
/// 64 MiB.
pub(super) const WINDOW_LEAST: u64 = 65 << 20;

impl Default for CaptureBudget {
    fn default() -> Self {
        CaptureBudget { memory: 32 << 20, runs: 1 << 18, window: smbscope_model::MemoryBudget::DEFAULT_MEMORY as u64 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaptureTrust {
    Nothing,
    Order,
}

pub(super) struct CaptureSetState {
    trust: CaptureTrust,
    pub(super) stop: Arc<AtomicBool>,
    left: CaptureBudget,
    unreleased: usize,
}

impl CaptureSetState {
    pub(super) fn new(limits: CaptureBudget, trust: CaptureTrust) -> CaptureSetState {
        CaptureSetState { trust, stop: Arc::default(), left: limits, unreleased: 0 }
    }
}

pub struct Backing(BackingBytes);

enum BackingBytes {
    Mapped(Map),
    Owned(Vec<u8>),
}

impl Backing {
    fn mapped(map: Map) -> Arc<Backing> {
        Arc::new(Backing(BackingBytes::Mapped(map)))
    }

    fn owned(bytes: Vec<u8>) -> Arc<Backing> {
        Arc::new(Backing(BackingBytes::Owned(bytes)))
    }

    fn map(&self) -> Option<&Map> {
        match &self.0 {
            BackingBytes::Mapped(map) => Some(map),
            BackingBytes::Owned(_) => None,
        }
    }
}

impl Deref for Backing {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            BackingBytes::Mapped(map) => map,
            BackingBytes::Owned(bytes) => bytes,
        }
    }
}

pub(super) struct OpenCapture {
    pub(super) name: String,
    /// File of a stream that each pass reads again. `None` for inputs in memory and for pipes.
    streamed: Option<StreamedFile>,
    /// `None` for a stream, and after the capture has been read to its end.
    bytes: Option<Arc<Backing>>,
    cut_short: Arc<AtomicBool>,
    live_stream: Option<InputStream>,
    pub(super) live: bool,
    pub(super) surveys_while_reading: bool,
    input_bytes: Option<Arc<AtomicU64>>,
    pub(super) interfaces: Interfaces,
    pub(super) clock_steps: Vec<StepBack>,
    pub(super) sides: Option<Arc<ClockCorrection>>,
    pub(super) survey: Survey,
    pub(super) format: CaptureParser,
    header_length: usize,
    compression: Option<Compression>,
    file_bytes: u64,
    pub(super) plan: ReorderStrategy,
    stop: Arc<AtomicBool>,
    pub(super) delivered_bytes: u64,
}

impl OpenCapture {
    /// Opens an input and, unless it can be read only once, surveys it.
    pub(super) fn open(input: &CaptureInput, shared: &mut CaptureSetState) -> Result<OpenCapture, CaptureError> {
        let name = input.name();
        let failed = |source| CaptureError::Open { name: name.clone(), source };
        match input {
            CaptureInput::Stdin => OpenCapture::open_live(name.clone(), Box::new(io::stdin()), shared),
            CaptureInput::Sliced(file) => OpenCapture::open_sliced(file, shared),
            CaptureInput::File(path) => {
                let mut file = File::open(path).map_err(failed)?;
                let metadata = file.metadata().map_err(failed)?;
                if metadata.is_dir() {
                    return Err(CaptureError::IsDirectory { name });
                }
                if !metadata.is_file() {
                    return OpenCapture::open_live(name, Box::new(file), shared);
                }
                let head = head(&mut file).map_err(failed)?;
                if let Some(compression) = Compression::sniff(&head) {
                    return OpenCapture::open_streamed(input, Some(compression), metadata.len(), shared);
                }
                let recognised = recognise(&name, &head)?;
                match Map::new(&file) {
                    Ok(map) => {
                        let cut_short = Arc::clone(map.cut_short());
                        let capture = OpenCapture::open_bytes(name, recognised, Backing::mapped(map), shared);
                        Ok(OpenCapture { cut_short, ..capture })
                    }
                    Err(_) => OpenCapture::open_live(name, Box::new(Cursor::new(head).chain(file)), shared),
                }
            }
        }
    }

    fn open_sliced(file: &SlicedFile, shared: &mut CaptureSetState) -> Result<OpenCapture, CaptureError> {
        let (name, length) = (file.name(), file.length());
        let failed = |source| CaptureError::Open { name: name.clone(), source };
        let input = CaptureInput::Sliced(file.clone());
        let head = head(&mut file.reader()).map_err(failed)?;
        let compression = Compression::sniff(&head);
        if compression.is_none() {
            let recognised = recognise(&name, &head)?;
            // Its tables follow the packets.
            if matches!(recognised.0, CaptureParser::NetMon(_)) && length <= IN_MEMORY_MAX {
                let mut bytes = Vec::with_capacity(length as usize);
                file.reader().take(IN_MEMORY_MAX).read_to_end(&mut bytes).map_err(failed)?;
                return Ok(OpenCapture::open_bytes(name, recognised, Backing::owned(bytes), shared));
            }
        }
        OpenCapture::open_streamed(&input, compression, length, shared)
    }

    fn open_bytes(
        name: String,
        (mut format, header_length): (CaptureParser, usize),
        bytes: Arc<Backing>,
        shared: &mut CaptureSetState,
    ) -> OpenCapture {
        let packets = bytes.get(header_length..).unwrap_or_default();
        format.settle(packets);
        let relabelled = format.relabel(packets);
        let mut capture = OpenCapture::new(name, format, header_length, shared);
        capture.interfaces.raw_ip_as_ethernet = relabelled;
        if let CaptureParser::NetMon(header) = format {
            capture.interfaces.frame_offsets = header.frame_offsets(&bytes).into();
            header.read_processes(&bytes, &mut capture.interfaces.processes);
        }
        capture.file_bytes = bytes.len() as u64;
        capture.bytes = Some(bytes);
        capture.look_for_two_clocks();
        match shared.trust {
            CaptureTrust::Order if capture.sides.is_none() => capture.expect_order_in_bytes(),
            CaptureTrust::Order | CaptureTrust::Nothing => capture.survey_bytes(shared),
        }
        capture
    }

    fn new(name: String, format: CaptureParser, header_length: usize, shared: &CaptureSetState) -> OpenCapture {
        let mut interfaces = Interfaces::default();
        format.describe(&mut interfaces);
        OpenCapture {
            name,
            streamed: None,
            bytes: None,
            cut_short: Arc::default(),
            live_stream: None,
            live: false,
            surveys_while_reading: false,
            input_bytes: None,
            interfaces,
            clock_steps: Vec::new(),
            sides: None,
            survey: Survey::new(0),
            format,
            header_length,
            compression: None,
            file_bytes: 0,
            plan: ReorderStrategy::Straight,
            stop: Arc::clone(&shared.stop),
            delivered_bytes: 0,
        }
    }

    pub(super) fn open_live(
        name: String,
        mut source: Box<dyn Read + Send>,
        shared: &CaptureSetState,
    ) -> Result<OpenCapture, CaptureError> {
        let input_bytes = Arc::default();
        let mut head = Vec::new();
        let mut first = [0; 6];
        // Reads only enough to detect the compression: a pipe may have no more data yet.
        while head.len() < first.len() {
            let wanted = first.len() - head.len();
            match source.read(&mut first[..wanted]) {
                Ok(0) => break,
                Ok(count) => head.extend_from_slice(&first[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(CaptureError::Open { name, source: error }),
            }
        }
        let compression = Compression::sniff(&head);
        let window = shared.left.window;
        let mut source = counted(Box::new(Cursor::new(head).chain(source)), &input_bytes);
        if let Some(compression) = compression {
            source = compression
                .decoder(source, window)
                .map_err(|source| CaptureError::Open { name: name.clone(), source })?;
        }
        let mut stream = InputStream::new(source, input_bytes, Arc::clone(&shared.stop), 0)
            .map_err(|source| CaptureError::Open { name: name.clone(), source })?;
        let (mut format, header_length) = recognise_stream(&name, &mut stream, compression, window)?;
        stream.consume(header_length);
        // Uses only the data that has arrived: a pipe may have no more yet.
        format.settle(stream.window());
        let relabelled = format.relabel(stream.window());
        let mut capture = OpenCapture::new(name, format, header_length, shared);
        capture.interfaces = Interfaces::for_stream(relabelled);
        format.describe(&mut capture.interfaces);
        capture.live_stream = Some(stream);
        capture.live = true;
        capture.surveys_while_reading = true;
        capture.compression = compression;
        capture.plan = ReorderStrategy::Window;
        Ok(capture)
    }

    fn open_streamed(
        input: &CaptureInput,
        compression: Option<Compression>,
        file_bytes: u64,
        shared: &mut CaptureSetState,
    ) -> Result<OpenCapture, CaptureError> {
        let (name, input_bytes) = (input.name(), Arc::default());
        let file = StreamedFile { input: input.clone(), compression, window: shared.left.window };
        let copy_budget = if shared.trust == CaptureTrust::Order { 0 } else { shared.left.memory };
        let stream = file.stream(&shared.stop, &input_bytes, copy_budget);
        let mut stream = stream.map_err(|source| CaptureError::Open { name: name.clone(), source })?;
        let (mut format, header_length) = recognise_stream(&name, &mut stream, compression, file.window)?;
        stream.consume(header_length);
        stream.fill(super::pcap::SETTLE_LENGTH.max(SAMPLE_BYTES), None);
        format.settle(stream.window());
        let relabelled = format.relabel(stream.window());
        let mut capture = OpenCapture::new(name, format, header_length, shared);
        capture.interfaces.raw_ip_as_ethernet = relabelled;
        capture.compression = compression;
        capture.file_bytes = file_bytes;
        capture.input_bytes = Some(input_bytes);
        capture.sides = ClockCorrection::find(stream.window(), format, &capture.interfaces).map(Arc::new);
        if shared.trust == CaptureTrust::Order && capture.sides.is_none() {
            capture.streamed = Some(file);
            capture.expect_order_in_stream(stream);
            return Ok(capture);
        }
        capture.survey = Survey::new(shared.left.runs);
        capture.survey.read_stream(&mut stream, format, &mut capture.interfaces);
        capture.plan = capture.survey.plan_for_stream();
        if let Some(copy) = stream.copy.take() {
            // A small capture stays in memory, so that it need not be decompressed again.
            shared.left.memory = shared.left.memory.saturating_sub(copy.len());
            capture.bytes = Some(Backing::owned(copy));
            capture.settle_clock();
            capture.plan = capture.survey.plan();
        } else if capture.plan == ReorderStrategy::Merge || capture.survey.may_have_steps() || capture.sides.is_some() {
            drop(stream);
            capture.bytes = Some(file.spool(&capture.survey, &shared.stop)?);
            capture.settle_clock();
            capture.plan = capture.survey.plan();
        }
        capture.streamed = Some(file);
        if capture.sides.is_some() {
            capture.survey_bytes(shared);
        } else {
            capture.settle_plan(shared);
        }
        Ok(capture)
    }

    fn survey_bytes(&mut self, shared: &mut CaptureSetState) {
        self.survey = Survey::new(shared.left.runs);
        let Some(bytes) = self.bytes.as_deref() else { return };
        let map = bytes.map();
        let release = |end: usize| map.iter().for_each(|map| map.release(0, map.len().min(end)));
        let mut released = 0;
        let sides = self.sides.as_deref();
        let file = UnreadCapture { bytes, format: self.format, start: self.header_length };
        self.survey.read_bytes(file, &mut self.interfaces, sides, |position| {
            if position - released >= RESIDENT_BYTES {
                release(position);
                released = position;
            }
        });
        shared.unreleased += map.map_or(0, |map| map.len() - released);
        if shared.unreleased >= RESIDENT_BYTES {
            // Keeps the total of this and all previous captures below the limit.
            release(usize::MAX);
            shared.unreleased = 0;
        }
        self.settle_clock();
        self.plan = self.survey.plan();
        self.settle_plan(shared);
    }

    fn look_for_two_clocks(&mut self) {
        let bytes = self.bytes.as_deref().and_then(|bytes| bytes.get(self.header_length..)).unwrap_or_default();
        self.sides = ClockCorrection::find(bytes, self.format, &self.interfaces).map(Arc::new);
    }

    fn settle_clock(&mut self) {
        let bytes = self.bytes.as_deref().map(Backing::deref).unwrap_or_default();
        self.clock_steps = self.survey.settle_clock(bytes, &self.interfaces);
    }

    fn expect_order_in_bytes(&mut self) {
        let mut format = self.format;
        let mut position = self.header_length;
        let bytes = self.bytes.as_deref().map(Backing::deref).unwrap_or_default();
        let first = loop {
            match format.step(&mut self.interfaces, bytes.get(position..).unwrap_or_default()) {
                ParseStep::Packet(record, _) => break Some(record.time),
                ParseStep::Skip { length, .. } => position = position.saturating_add(length),
                ParseStep::More(_) | ParseStep::Stop(_) => break None,
            }
        };
        let start = SortedRun {
            position: self.header_length as u64,
            number: 1,
            time: first.unwrap_or(i64::MAX),
            format: self.format,
            shift: 0,
        };
        self.survey.first = first;
        self.survey.runs = vec![start];
        self.surveys_while_reading = true;
    }

    fn expect_order_in_stream(&mut self, mut stream: InputStream) {
        self.interfaces = Interfaces::for_stream(self.interfaces.raw_ip_as_ethernet);
        self.format.describe(&mut self.interfaces);
        loop {
            let mut format = self.format;
            match format.step(&mut self.interfaces, stream.window()) {
                ParseStep::Packet(record, _) => {
                    self.survey.first = Some(record.time);
                    break;
                }
                ParseStep::Skip { length, what } => {
                    self.format = format;
                    self.survey.passed(what);
                    let offset = stream.offset();
                    if !stream.consume(length) {
                        self.survey.damaged(stream::ended_inside(&stream), offset);
                        break;
                    }
                }
                ParseStep::More(need) if stream.fill(need, None) == Fill::Ready => {}
                // The reader will meet the same end.
                ParseStep::More(_) | ParseStep::Stop(_) => break,
            }
        }
        self.live_stream = Some(stream);
        self.surveys_while_reading = true;
    }

    fn settle_plan(&mut self, shared: &mut CaptureSetState) {
        if self.plan != ReorderStrategy::Merge {
            self.survey.runs.truncate(1);
        }
        self.survey.runs.shrink_to_fit();
        // Later captures need at least one run, even if they are in order.
        shared.left.runs = shared.left.runs.saturating_sub(self.survey.runs.len()).max(1);
    }

    pub(super) fn is_in_memory(&self) -> bool {
        self.bytes.is_some()
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.as_deref().map(Backing::deref).unwrap_or_default()
    }

    #[inline]
    pub(super) fn backing(&self) -> Option<&Arc<Backing>> {
        self.bytes.as_ref()
    }

    #[inline]
    pub(super) fn parts(&mut self) -> (&[u8], &mut Interfaces, Option<&mut Survey>) {
        let bytes = self.bytes.as_deref().map(Backing::deref).unwrap_or_default();
        (bytes, &mut self.interfaces, self.surveys_while_reading.then_some(&mut self.survey))
    }

    #[inline]
    pub(super) fn tables(&mut self) -> (&mut Interfaces, Option<&mut Survey>) {
        (&mut self.interfaces, self.surveys_while_reading.then_some(&mut self.survey))
    }

    pub(super) fn release_pages(&self) {
        if let Some(map) = self.bytes.as_deref().and_then(Backing::map) {
            let done = match self.plan {
                // Lags while other threads process packets.
                ReorderStrategy::Straight => {
                    (self.delivered_bytes as usize).saturating_sub(RESIDENT_BYTES).min(map.len())
                }
                _ => map.len(),
            };
            // Anything further back was released before and is rarely touched again.
            let since = done.saturating_sub(TOUCHED_BYTES);
            map.release(since, done - since);
        }
    }

    pub(super) fn was_cut_short(&self) -> bool {
        self.cut_short.load(Ordering::Relaxed)
    }

    pub(super) fn close(&mut self) {
        self.bytes = None;
    }

    pub(super) fn open_stream(&mut self) -> io::Result<InputStream> {
        if let Some(stream) = self.live_stream.take() {
            return Ok(stream);
        }
        let Some(file) = &self.streamed else { return Err(io::ErrorKind::NotFound.into()) };
        let mut stream = file.stream(&self.stop, &Arc::default(), 0)?;
        stream.consume(self.header_length);
        // The first pass filled the interface table; this one only steps through it.
        Ok(stream)
    }

    pub(super) fn done_bytes(&self) -> u64 {
        if let (true, Some(input_bytes)) = (self.surveys_while_reading, &self.input_bytes) {
            return input_bytes.load(Ordering::Relaxed).min(self.file_bytes);
        }
        if self.surveys_while_reading || self.survey.length == 0 {
            return self.delivered_bytes;
        }
        let done = u128::from(self.delivered_bytes) * u128::from(self.file_bytes) / u128::from(self.survey.length);
        u64::try_from(done).unwrap_or(u64::MAX).min(self.file_bytes)
    }

    /// Returns the file length; `None` for an input that can be read only once.
    pub(super) fn total_bytes(&self) -> Option<u64> {
        (!self.live).then_some(self.file_bytes)
    }

    pub(super) fn info(&self) -> CaptureInfo {
        let survey = &self.survey;
        let of_what = if self.compression.is_some() { " of the decompressed data" } else { "" };
        let truncated = survey.damage.as_ref().map(|(reason, number, offset)| {
            format!("{}: {reason}: packet {number}, byte {offset}{of_what}; all before it is read", self.name)
        });
        let mut warnings: Vec<String> = truncated.iter().cloned().collect();
        if self.interfaces.simple_packets {
            warnings.push(format!(
                "{}: Simple Packet Blocks have no timestamps; each takes the timestamp of the previous packet",
                self.name
            ));
        }
        if self.interfaces.raw_ip_as_ethernet {
            warnings.push(format!(
                "{}: labelled Ethernet, but its packets begin with IP, without an Ethernet header: read as IP",
                self.name
            ));
        }
        warnings.extend(self.sides.as_deref().map(|sides| format!("{}: {}", self.name, sides.warning())));
        if self.plan == ReorderStrategy::BestEffort {
            warnings.push(format!(
                "{}: too far out of time order for the reader to sort; sort it with reordercap",
                self.name
            ));
        }
        if survey.unreadable > 0 {
            warnings.push(format!("{}: {} records could not be read", self.name, survey.unreadable));
        }
        CaptureInfo {
            name: self.name.clone(),
            format: self.format.name().into(),
            compression: self.compression.map(|compression| compression.name().into()),
            packets: survey.packets,
            bytes: if self.live { survey.length } else { self.file_bytes },
            first: survey.first.map(Timestamp),
            last: survey.last.map(Timestamp),
            resolution_ns: self.interfaces.resolution_ns.max(1),
            snap_length: self.interfaces.snap_length,
            link_types: self.interfaces.link_types.clone(),
            coarse_clock: survey.ticks.coarse(),
            clock_offset: self.sides.as_deref().map(ClockCorrection::offset),
            truncated,
            warnings,
        }
    }
}

/// A file that is read front to back, once or more often.
struct StreamedFile {
    input: CaptureInput,
    compression: Option<Compression>,
    window: u64,
}

impl StreamedFile {
    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match &self.input {
            CaptureInput::File(path) => Box::new(File::open(path)?),
            CaptureInput::Sliced(file) => Box::new(file.reader()),
            CaptureInput::Stdin => Box::new(io::stdin()),
        })
    }

    fn stream(
        &self,
        stop: &Arc<AtomicBool>,
        input_bytes: &Arc<AtomicU64>,
        copy_budget: usize,
    ) -> io::Result<InputStream> {
        let mut source = counted(self.open()?, input_bytes);
        if let Some(compression) = self.compression {
            source = compression.decoder(source, self.window)?;
        }
        InputStream::new(source, Arc::clone(input_bytes), Arc::clone(stop), copy_budget)
    }

    /// Makes bytes accessible in any order, up to where the survey got: in an unlinked temporary file, or in memory where
    /// the file comes from no file system.
    fn spool(&self, survey: &Survey, stop: &Arc<AtomicBool>) -> Result<Arc<Backing>, CaptureError> {
        let name = self.input.name();
        if let CaptureInput::Sliced(_) = self.input {
            let most = IN_MEMORY_MAX;
            if survey.length > most {
                return Err(CaptureError::TooLargeToSort { name, most });
            }
            let mut bytes = Vec::with_capacity(survey.length as usize);
            let copied = self.copy(survey, stop, &mut bytes);
            return copied.map(|()| Backing::owned(bytes)).map_err(|source| CaptureError::Open { name, source });
        }
        let spooled = tempfile::tempfile().and_then(|mut file| {
            self.copy(survey, stop, &mut file)?;
            Map::new(&file)
        });
        spooled.map(Backing::mapped).map_err(|source| CaptureError::Spool { name, source })
    }

    fn copy(&self, survey: &Survey, stop: &Arc<AtomicBool>, to: &mut dyn Write) -> io::Result<()> {
        let mut stream = self.stream(stop, &Arc::default(), 0)?;
        while stream.offset() < survey.length && stream.fill(1, None) == Fill::Ready {
            let window = stream.window();
            to.write_all(window)?;
            let length = window.len();
            stream.consume(length);
        }
        Ok(())
    }
}

fn head(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    source.take(SNIFF_LENGTH as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// Returns true if the content of a file begins like a capture, compressed or not. A file that is gone is none.
pub(super) fn is_capture(path: &Path) -> Result<bool, CaptureError> {
    let failed = |source| CaptureError::Open { name: path.display().to_string(), source };
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file.map_err(failed)?,
    };
    let mut start = head(&mut file).map_err(failed)?;
    if let Some(compression) = Compression::sniff(&start) {
        let whole = Box::new(Cursor::new(start).chain(file));
        // Damaged data is not recognised.
        start = compression.decoder(whole, WINDOW_LEAST).and_then(|mut plain| head(&mut plain)).unwrap_or_default();
    }
    Ok(matches!(format::sniff(&start), Sniffed::Capture(..) | Sniffed::HeaderCut(_)))
}

fn recognise_stream(
    name: &str,
    stream: &mut InputStream,
    compression: Option<Compression>,
    window: u64,
) -> Result<(CaptureParser, usize), CaptureError> {
    // No format needs more than this of its header; waiting for more could mean waiting for a packet.
    stream.fill(4, None);
    let enough = match stream.window() {
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => super::pcapng::FILE_HEADER,
        [b's', b'n', b'o', b'o', ..] => super::pcap::SNOOP_FILE_HEADER,
        magic if NetMon::is_magic(magic) => super::netmon::FILE_HEADER,
        _ => super::pcap::FILE_HEADER,
    };
    stream.fill(enough, None);
    // Records of ERF are judged by as many as in a file.
    if matches!(format::sniff(stream.window()), Sniffed::Unknown | Sniffed::Capture(CaptureParser::Erf, _)) {
        stream.fill(SNIFF_LENGTH, None);
    }
    if stream.window().is_empty()
        && let Some(error) = stream.error()
    {
        let Some(compression) = compression else {
            let source = io::Error::new(error.kind(), error.to_string());
            return Err(CaptureError::Open { name: name.to_owned(), source });
        };
        if error.kind() == io::ErrorKind::OutOfMemory {
            let name = name.to_owned();
            return Err(CaptureError::Window { name, compression: compression.name(), allowed: window });
        }
        return Err(CaptureError::Decompress {
            name: name.to_owned(),
            compression: compression.name(),
            reason: error.to_string(),
        });
    }
    recognise(name, stream.window())
}

fn recognise(name: &str, head: &[u8]) -> Result<(CaptureParser, usize), CaptureError> {
    let name = name.to_owned();
    if head.is_empty() {
        return Err(CaptureError::Empty { name });
    }
    match format::sniff(head) {
        Sniffed::Capture(format, header_length) => Ok((format, header_length)),
        Sniffed::HeaderCut(format) => Err(CaptureError::HeaderCut { name, format, length: head.len() }),
        Sniffed::Foreign(format, converter) => Err(CaptureError::Unsupported { name, format, converter }),
        Sniffed::Unknown => match Compression::sniff_foreign(head) {
            Some((format, remedy)) => Err(CaptureError::Packed { name, format, remedy }),
            None => Err(CaptureError::NotACapture { name, starts_with: format::shown(head) }),
        },
    }
}
