//! One analysis by several processes, on one host or many.
//!
//! [`divide()`] reads one file and divides its TCP segments by host pairs into pieces, each in a file of its own.
//! [`follow()`] takes the pieces of some host pairs of all files and returns a [`HostPairPart`]. [`merge`] combines all
//! parts into the [`CaptureSetAnalysis`] of a single process, regardless of their number and order.
//!
//! Two limits apply to each part separately: the memory for connection state, and the number of connections listed one
//! by one. A datagram whose fragments are in two files counts as incomplete. Options that depend on the order of
//! exchanges are refused: groups by fields, and the commands of an episode.

mod follow;

pub use follow::{Pieces, follow};
pub use smbscope_model::travel::{TravelError, from_bytes, to_bytes};

use crate::analysis::recorder::AggregatedExchanges;
use crate::analysis::{AnalysisError, AnalysisOptions, AnalyzedCaptures, CaptureSetAnalysis, catalogue};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use smbscope_analyze::pipeline::{self, part_of};
use smbscope_analyze::{Partial, coupled};
use smbscope_capture::OriginId;
use smbscope_capture::decode::{Decoder, Origin, Origins};
use smbscope_capture::piece::BlockWriter;
use smbscope_capture::private::create_private;
use smbscope_capture::reader::{CaptureError, CaptureInput, CaptureSet};
use smbscope_model::{CaptureId, CaptureInfo, ClockStep, PacketRef, Quality, Stamp, Timestamp};
use std::fs::File;
use std::io::{self, BufWriter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

#[derive(Debug, Serialize, Deserialize)]
pub struct HostPairPart {
    partial: Partial,
    recorded: AggregatedExchanges,
}

/// Groups the indices of parts that share sessions and have to be followed together. Each part is in one group.
pub fn shared_sessions(parts: &[HostPairPart]) -> Vec<Vec<usize>> {
    let partials: Vec<&Partial> = parts.iter().map(|part| &part.partial).collect();
    coupled(&partials)
}

/// Combines all parts. `unread` lists the inputs that could not be read, with the reason, one per line.
pub fn merge(
    plan: &AnalysisPlan,
    files: Vec<FilePart>,
    parts: Vec<HostPairPart>,
    unread: Vec<String>,
    options: &AnalysisOptions,
) -> Result<CaptureSetAnalysis, AnalysisError> {
    let mut partial = Partial::default();
    files.into_iter().for_each(|file| partial.merge(file.partial));
    let mut recorded: Option<AggregatedExchanges> = None;
    for part in parts {
        partial.merge(part.partial);
        match &mut recorded {
            Some(all) => all.merge(part.recorded),
            None => recorded = Some(part.recorded),
        }
    }
    let recorded = recorded.ok_or(AnalysisError::InParts("there is no part to merge"))?;
    let found = AnalyzedCaptures { captures: plan.captures(), unread, analysis: partial.finish(), interrupted: false };
    found.refuse_without_smb(options)?;
    Ok(CaptureSetAnalysis { found, recorded, catalogue: catalogue(options)?, sides: None })
}

fn refuse(options: &AnalysisOptions) -> Result<(), AnalysisError> {
    match options {
        AnalysisOptions { by, .. } if !by.is_empty() => {
            Err(AnalysisError::InParts("groups by fields depend on the order of exchanges: use one process"))
        }
        AnalysisOptions { episode: Some(_), .. } | AnalysisOptions { waterfall: true, .. } => {
            Err(AnalysisError::InParts("one process analyses an episode: choose it by a filter"))
        }
        AnalysisOptions { from: Some(_), .. } | AnalysisOptions { to: Some(_), .. } => {
            Err(AnalysisError::InParts("one process finds the times of --from and --to: filter by time instead"))
        }
        _ => Ok(()),
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AnalysisPlan {
    pub(super) files: Vec<PlannedFile>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlannedFile {
    pub(super) given: usize,
    info: CaptureInfo,
    truncated: Option<String>,
    pub(super) span: Option<(Timestamp, Timestamp)>,
    pub(super) packets: u64,
    steps: Vec<ClockStep>,
    origins: Vec<Origin>,
}

impl AnalysisPlan {
    pub fn new(files: &[FilePart]) -> Result<AnalysisPlan, AnalysisError> {
        if files.len() > usize::from(u16::MAX) {
            return Err(CaptureError::TooManyInputs { count: files.len() }.into());
        }
        let mut planned: Vec<PlannedFile> =
            files.iter().enumerate().map(|(given, file)| planned(given, file)).collect();
        // Same order as in a capture set; the sort is stable.
        planned.sort_by_key(|file| (file.info.first.is_none(), file.info.first));
        Ok(AnalysisPlan { files: planned })
    }

    pub fn captures(&self) -> Vec<CaptureInfo> {
        let info = |file: &PlannedFile| CaptureInfo { truncated: file.truncated.clone(), ..file.info.clone() };
        self.files.iter().map(info).collect()
    }

    pub(super) fn start(&self) -> Timestamp {
        self.files.iter().filter_map(|file| file.span).map(|(first, _)| first).min().unwrap_or_default()
    }

    pub(super) fn steps(&self) -> Vec<ClockStep> {
        let mut steps = Vec::new();
        for (index, file) in self.files.iter().enumerate() {
            let here = |stamp: Stamp| in_capture(stamp, index);
            let of_file = file.steps.iter();
            steps.extend(of_file.map(|step| ClockStep { before: here(step.before), after: here(step.after) }));
        }
        steps
    }

    /// Returns one table of all origins, and for each file the numbers in it. An origin that does not fit is zero.
    pub(super) fn origins(&self) -> (Origins, Vec<Vec<OriginId>>) {
        let all = Origins::default();
        let add = |origin: &Origin| all.add(origin.clone()).unwrap_or_default();
        let numbers = self.files.iter().map(|file| file.origins.iter().map(add).collect()).collect();
        (all, numbers)
    }
}

pub(super) fn in_capture(stamp: Stamp, index: usize) -> Stamp {
    // A plan has no more files than there are IDs.
    Stamp { packet: PacketRef::new(CaptureId(index as u16), stamp.packet.number()), ..stamp }
}

fn planned(given: usize, file: &FilePart) -> PlannedFile {
    let info = file.info();
    PlannedFile {
        given,
        truncated: info.truncated.clone(),
        info,
        span: file.span(),
        packets: file.packets(),
        steps: file.steps.clone(),
        origins: file.origins.clone(),
    }
}

#[derive(Debug, Clone, Copy)]
pub struct SerializedParts<'a> {
    /// An [`AnalysisPlan`].
    pub plan: &'a [u8],
    /// One [`FilePart`] each.
    pub files: &'a [Vec<u8>],
    /// One [`HostPairPart`] each.
    pub parts: &'a [Vec<u8>],
}

impl SerializedParts<'_> {
    /// Merges all parts ([`merge`]) and passes the analysis to `make`. Values with a valid checksum may still
    /// contradict each other: the panic then becomes an error that names the value.
    pub fn merged<T>(
        &self,
        unread: &[String],
        options: &AnalysisOptions,
        make: impl Fn(CaptureSetAnalysis) -> Result<T, AnalysisError>,
    ) -> Result<T, AnalysisError> {
        let count = self.parts.len();
        let attempt = |without: Option<usize>| {
            let plan: AnalysisPlan = received(self.plan, || "the plan".to_owned())?;
            let parts = all(self.parts, "part", without)?;
            let files = all(self.files, "file", without.and_then(|place| place.checked_sub(count)))?;
            let merged = || merge(&plan, files, parts, unread.to_vec(), options).and_then(&make);
            Ok(catch_unwind(AssertUnwindSafe(merged)).ok())
        };
        let name = |place: usize| match place.checked_sub(count) {
            None => numbered("part", place, count),
            Some(file) => numbered("file", file, self.files.len()),
        };
        blaming(count + self.files.len(), name, attempt)?
    }
}

/// Decodes values, which errors call `what`, for `make`. Handles panics like [`SerializedParts::merged`].
pub fn received_all<T: DeserializeOwned, R>(
    bytes: &[Vec<u8>],
    what: &str,
    make: impl Fn(Vec<T>) -> R,
) -> Result<R, AnalysisError> {
    let attempt = |without: Option<usize>| {
        let values = all(bytes, what, without)?;
        Ok(catch_unwind(AssertUnwindSafe(|| make(values))).ok())
    };
    blaming(bytes.len(), |place| numbered(what, place, bytes.len()), attempt)
}

/// If `attempt` panics (returns `None`) on `count` values, finds the value whose omission makes it succeed.
fn blaming<R>(
    count: usize,
    name: impl Fn(usize) -> String,
    attempt: impl Fn(Option<usize>) -> Result<Option<R>, AnalysisError>,
) -> Result<R, AnalysisError> {
    if let Some(made) = attempt(None)? {
        return Ok(made);
    }
    let culprit = (0..count).find(|place| matches!(attempt(Some(*place)), Ok(Some(_))));
    let what = culprit.map_or_else(|| "the plan, or several of the parts".to_owned(), name);
    Err(AnalysisError::Received { what, error: TravelError::Damaged })
}

fn numbered(what: &str, place: usize, of: usize) -> String {
    format!("{what} {} of {of}", place + 1)
}

pub fn received<T: DeserializeOwned>(bytes: &[u8], what: impl FnOnce() -> String) -> Result<T, AnalysisError> {
    from_bytes(bytes).map_err(|error| AnalysisError::Received { what: what(), error })
}

fn all<T: DeserializeOwned>(several: &[Vec<u8>], what: &str, without: Option<usize>) -> Result<Vec<T>, AnalysisError> {
    let kept = several.iter().enumerate().filter(|(place, _)| Some(*place) != without);
    kept.map(|(place, bytes)| received(bytes, || numbered(what, place, several.len()))).collect()
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FilePart {
    info: CaptureInfo,
    /// Serialized here because [`CaptureInfo`] skips it.
    truncated: Option<String>,
    partial: Partial,
    steps: Vec<ClockStep>,
    origins: Vec<Origin>,
    written: u64,
}

impl FilePart {
    pub fn info(&self) -> CaptureInfo {
        CaptureInfo { truncated: self.truncated.clone(), ..self.info.clone() }
    }

    pub fn written(&self) -> u64 {
        self.written
    }

    fn packets(&self) -> u64 {
        self.partial.quality().packets
    }

    fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.partial.span()
    }
}

/// Writes the segments of each part of the host pairs to one of `pieces`, and the times of all packets to `times`.
pub fn divide(
    input: &CaptureInput,
    name: &str,
    options: &AnalysisOptions,
    pieces: &[PathBuf],
    times: &Path,
) -> Result<FilePart, AnalysisError> {
    self::refuse(options)?;
    // A file in time order needs one pass; any other is surveyed first.
    let in_order = [true, false].into_iter().filter(|in_order| !in_order || input.can_be_read_again());
    let mut result = Err(pipeline::RerunReason::OutOfOrder);
    for in_order in in_order {
        let mut set =
            CaptureSet::open_with_memory(std::slice::from_ref(input), in_order, options.reading.memory.bytes())?;
        result = divide_once(&mut set, name, options, pieces, times)?;
        set.refuse_cut_short()?;
        if result.is_ok() {
            break;
        }
    }
    result.map_err(AnalysisError::Failed)
}

fn divide_once(
    set: &mut CaptureSet,
    name: &str,
    options: &AnalysisOptions,
    pieces: &[PathBuf],
    times: &Path,
) -> Result<Result<FilePart, pipeline::RerunReason>, AnalysisError> {
    let mut writers = Vec::new();
    for path in pieces {
        writers.push(create(path)?);
    }
    let mut clock = create(times)?;
    let stop = set.stop_flag();
    let (mut failed, mut late) = (None, None);
    let mut each = |time: Timestamp, _: &Quality| {
        if let Err(error) = clock.push(&time.0) {
            late.get_or_insert(error);
        }
    };
    let mut take = |segment: &smbscope_capture::TcpSegment<'_>| {
        let part = part_of(segment, pieces.len());
        if let Err(error) = writers[part].push(segment) {
            failed.get_or_insert((part, error));
            // Stop: the remaining pieces are useless without this one.
            stop.store(true, Ordering::Relaxed);
        }
    };
    let decoder = Decoder::with_tunnels(options.reading.tunnels.ports());
    let origins = decoder.origins();
    let partial = pipeline::decode(set, decoder, &mut |_| {}, &mut each, &mut take);
    if let Some((part, error)) = failed {
        return Err(piece_error(&pieces[part], error));
    }
    if let Some(error) = late {
        return Err(piece_error(times, error));
    }
    let partial = match partial {
        Ok(partial) => partial,
        Err(failure) => return Ok(Err(failure)),
    };
    let mut written = clock.finish().map_err(|error| piece_error(times, error))?;
    for (writer, path) in writers.into_iter().zip(pieces) {
        written += writer.finish().map_err(|error| piece_error(path, error))?;
    }
    let info = set.captures().first().cloned().expect("a set has the inputs that it was opened with");
    Ok(Ok(named(
        FilePart {
            truncated: info.truncated.clone(),
            info,
            partial,
            steps: set.clock_steps(),
            origins: origins.to_vec(),
            written,
        },
        name,
    )))
}

/// Renames the file to the requested name, which may be an object in a store.
fn named(part: FilePart, name: &str) -> FilePart {
    let was = part.info.name.clone();
    let renamed = |text: &String| text.replace(&was, name);
    let info =
        CaptureInfo { name: name.to_owned(), warnings: part.info.warnings.iter().map(renamed).collect(), ..part.info };
    FilePart { info, truncated: part.truncated.as_ref().map(renamed), ..part }
}

fn create(path: &Path) -> Result<BlockWriter<BufWriter<File>>, AnalysisError> {
    let file = create_private(path).map_err(|error| piece_error(path, error))?;
    Ok(BlockWriter::new(BufWriter::new(file)))
}

fn piece_error(path: &Path, error: io::Error) -> AnalysisError {
    AnalysisError::Piece { path: path.to_owned(), error }
}
