//! Determines the order in which the files of a set form one capture.

use super::super::AnalysisError;
use super::FilePart;
use serde::{Deserialize, Serialize};
use smbscope_capture::reader::CaptureError;
use smbscope_model::{CaptureId, CaptureInfo, ClockStep, PacketRef, Stamp, Timestamp};

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
    }
}
