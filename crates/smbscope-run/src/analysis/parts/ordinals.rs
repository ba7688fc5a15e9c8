//! Computes the position of a packet among the packets of all captures in order of time, while reading only some
//! connections.
//!
//! The position within its own file is known. Of the other files, those that end earlier count completely and those
//! that start later don't count. For files that overlap, such as captures of two interfaces, the times of all packets
//! are read along.

use super::super::AnalysisError;
use super::divide::piece_error;
use super::plan::AnalysisPlan;
use smbscope_capture::piece::BlockReader;
use smbscope_model::Timestamp;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

pub(super) struct Ordinals<'p> {
    later: Vec<FilePacketCounter<'p>>,
    now: Vec<FilePacketCounter<'p>>,
    passed: u64,
}

struct FilePacketCounter<'p> {
    file: usize,
    first: Timestamp,
    last: Timestamp,
    packets: u64,
    times: &'p PathBuf,
    reader: Option<BlockReader<BufReader<File>, i64>>,
    /// First time not counted yet.
    next: Option<i64>,
    counted: u64,
}

impl<'p> Ordinals<'p> {
    pub(super) fn new(plan: &AnalysisPlan, times: &[&'p PathBuf]) -> Ordinals<'p> {
        let mut later: Vec<FilePacketCounter<'p>> = Vec::new();
        for (file, planned) in plan.files.iter().enumerate() {
            let Some((first, last)) = planned.span else { continue };
            let (packets, times) = (planned.packets, times[planned.given]);
            later.push(FilePacketCounter { file, first, last, packets, times, reader: None, next: None, counted: 0 });
        }
        later.sort_by_key(|counter| std::cmp::Reverse((counter.first, counter.file)));
        Ordinals { later, now: Vec::new(), passed: 0 }
    }

    /// Returns the overall number of the packet that is number `local` in its file.
    pub(super) fn ordinal(&mut self, file: usize, local: u64, time: Timestamp) -> Result<u64, AnalysisError> {
        while let Some(counter) = self.later.pop_if(|counter| counter.first <= time) {
            self.now.push(counter);
        }
        let mut ended = 0;
        self.now.retain(|counter| {
            let goes_on = counter.last >= time;
            ended += if goes_on { 0 } else { counter.packets };
            goes_on
        });
        self.passed += ended;
        let mut before = self.passed;
        for counter in self.now.iter_mut().filter(|counter| counter.file != file) {
            before += counter.count_before(time.0, file)?;
        }
        Ok(before + local)
    }
}

impl FilePacketCounter<'_> {
    /// Counts the packets before `time`, including those at `time` if this file precedes the other.
    fn count_before(&mut self, time: i64, file: usize) -> Result<u64, AnalysisError> {
        let fails = |error| piece_error(self.times, error);
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => {
                let file = File::open(self.times).map_err(fails)?;
                let reader = none.insert(BlockReader::new(BufReader::new(file)));
                self.next = reader.next_value().map_err(fails)?;
                reader
            }
        };
        while self.next.is_some_and(|next| next < time || next == time && self.file < file) {
            self.counted += 1;
            self.next = reader.next_value().map_err(fails)?;
        }
        Ok(self.counted)
    }
}
