//! Divides one capture file into pieces, each with the segments of some host pairs.

use super::super::{AnalysisError, AnalysisOptions, how};
use crate::files::create_private;
use serde::{Deserialize, Serialize};
use smbscope_analyze::Partial;
use smbscope_analyze::pipeline::{self, part_of};
use smbscope_capture::decode::Origin;
use smbscope_capture::piece::BlockWriter;
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_model::{CaptureInfo, ClockStep, Timestamp};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FilePart {
    info: CaptureInfo,
    /// Serialized here because [`CaptureInfo`] skips it.
    truncated: Option<String>,
    pub(super) partial: Partial,
    pub(super) steps: Vec<ClockStep>,
    pub(super) origins: Vec<Origin>,
    written: u64,
}

impl FilePart {
    pub fn info(&self) -> CaptureInfo {
        CaptureInfo { truncated: self.truncated.clone(), ..self.info.clone() }
    }

    pub fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn packets(&self) -> u64 {
        self.partial.quality().packets
    }

    pub(super) fn span(&self) -> Option<(Timestamp, Timestamp)> {
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
    super::refuse(options)?;
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
    let mut each = |time: Timestamp| {
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
    let partial = pipeline::decode(set, &how(options)?, &mut |_| {}, &mut each, &mut take);
    if let Some((part, error)) = failed {
        return Err(piece_error(&pieces[part], error));
    }
    if let Some(error) = late {
        return Err(piece_error(times, error));
    }
    let (partial, origins) = match partial {
        Ok(read) => read,
        Err(failure) => return Ok(Err(failure)),
    };
    let mut written = clock.finish().map_err(|error| piece_error(times, error))?;
    for (writer, path) in writers.into_iter().zip(pieces) {
        written += writer.finish().map_err(|error| piece_error(path, error))?;
    }
    let info = set.captures().first().cloned().expect("a set has the inputs that it was opened with");
    Ok(Ok(named(
        FilePart { truncated: info.truncated.clone(), info, partial, steps: set.clock_steps(), origins, written },
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

pub(super) fn piece_error(path: &Path, error: io::Error) -> AnalysisError {
    AnalysisError::Piece { path: path.to_owned(), error }
}
