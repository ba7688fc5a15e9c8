//! Follows the connections of some host pairs through the pieces of all files.
//!
//! Reports number packets over all files in order of time, although only some connections are read here ([`Ordinals`]).
//! Files that end earlier count completely, and those that start later don't count. For files that overlap, such as
//! captures of two interfaces, the times of all packets are read along.

use crate::analysis::parts::piece_error;
use crate::analysis::parts::{AnalysisPlan, HostPairPart, in_capture, refuse};
use crate::analysis::recorder::{AnalysisRecorder, Chooser};
use crate::analysis::{AnalysisError, AnalysisOptions, how};
use smbscope_analyze::pipeline::{HostPairFollower, RerunReason, Sharding, Sink};
use smbscope_capture::TcpSegment;
use smbscope_capture::piece::{BlockReader, PieceReader};
use smbscope_model::{ConnectionSummary, Exchange, Settled, Timestamp};
use smbscope_report::table::{ExchangeTable, Provenance};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

#[derive(Debug, Clone)]
pub struct Pieces {
    pub times: PathBuf,
    pub pieces: Vec<PathBuf>,
}

/// Follows the connections of some host pairs. `files` must be in the order in which the plan was made from them. If
/// `table` returns a table, exchanges that pass the filter are written to it as well, numbered from `first_id`.
pub fn follow<T: ExchangeTable + Send>(
    plan: &AnalysisPlan,
    files: &[Pieces],
    options: &AnalysisOptions,
    first_id: u64,
    mut table: impl FnMut() -> io::Result<Option<T>>,
) -> Result<HostPairPart, AnalysisError> {
    refuse(options)?;
    if files.len() != plan.files.len() {
        return Err(AnalysisError::InParts("the pieces belong to other files than the plan"));
    }
    let mut sharding = Sharding::Connections;
    loop {
        let table = table().map_err(AnalysisError::Table)?;
        match follow_once(
            plan,
            files,
            options,
            sharding,
            NumberedExchangeTable { table, next_id: first_id, result: Ok(()) },
        )? {
            Ok(part) => return Ok(part),
            // A session spans several shards: use coarser ones.
            Err(_) if sharding == Sharding::Connections => sharding = Sharding::Hosts,
            Err(_) => sharding = Sharding::None,
        }
    }
}

fn follow_once<T: ExchangeTable + Send>(
    plan: &AnalysisPlan,
    files: &[Pieces],
    options: &AnalysisOptions,
    sharding: Sharding,
    table: NumberedExchangeTable<T>,
) -> Result<Result<HostPairPart, RerunReason>, AnalysisError> {
    let names: Vec<String> = plan.captures().into_iter().map(|info| info.name).collect();
    let start = Arc::new(OnceLock::from(plan.start()));
    let recorder = AnalysisRecorder::new(options, &names, Arc::clone(&start));
    let chooser = Chooser::new(options.filter.as_ref(), &names, start);
    let mut sink = HostPairSink { recorder, chooser, table, names: &names };
    let (origins, numbers) = plan.origins();
    let mut follower = HostPairFollower::new(&how(options)?, sharding, &mut sink, &plan.steps(), &origins);
    let mut ordinals = Ordinals::new(plan, &files.iter().map(|file| &file.times).collect::<Vec<_>>());
    let mut merged = Merged::new(plan, files);
    while let Some((file, segment)) = merged.next_segment()? {
        let ordinal = ordinals.ordinal(file, segment.ordinal, segment.stamp.time)?;
        let (first, stamp) = (in_capture(segment.first, file), in_capture(segment.stamp, file));
        let origin = usize::from(segment.origin.0).checked_sub(1).and_then(|index| numbers.get(file)?.get(index));
        let origin = origin.copied().unwrap_or_default();
        follower.segment(&TcpSegment { ordinal, first, stamp, origin, ..segment });
        if follower.is_coupled() {
            return Ok(Err(RerunReason::Coupled));
        }
    }
    let partial = match follower.finish() {
        Ok(partial) => partial,
        Err(failure) => return Ok(Err(failure)),
    };
    let HostPairSink { recorder, table, .. } = sink;
    let part = HostPairPart { partial, recorded: recorder.finish() };
    table.result.and_then(|()| part.finish_table(plan, table.table)).map_err(AnalysisError::Table)?;
    Ok(Ok(part))
}

impl HostPairPart {
    fn finish_table<T: ExchangeTable>(&self, plan: &AnalysisPlan, table: Option<T>) -> io::Result<()> {
        let Some(table) = table else { return Ok(()) };
        table.finish(&Provenance {
            version: env!("CARGO_PKG_VERSION"),
            captures: &plan.captures(),
            quality: self.partial.quality(),
            skipped: &[],
            encapsulations: &[],
            filter: self.recorded.filtered.clone(),
        })
    }
}

struct HostPairSink<'f, T> {
    recorder: AnalysisRecorder<'f>,
    chooser: Chooser<'f>,
    table: NumberedExchangeTable<T>,
    names: &'f [String],
}

struct NumberedExchangeTable<T> {
    table: Option<T>,
    next_id: u64,
    result: io::Result<()>,
}

impl<T: ExchangeTable + Send> Sink for HostPairSink<'_, T> {
    fn exchange(&mut self, exchange: &Exchange) {
        self.recorder.exchange(exchange);
        let NumberedExchangeTable { table: Some(table), next_id, result: result @ Ok(()) } = &mut self.table else {
            return;
        };
        if self.chooser.chooses(exchange) {
            *result = table.write(exchange, *next_id, self.names);
        }
        *next_id += 1;
    }

    fn settled(&mut self, settled: &Settled) {
        self.recorder.settled(settled);
    }

    fn closed(&mut self, connection: &ConnectionSummary) {
        self.recorder.closed(connection);
    }
}

type SegmentOrderKey = (Timestamp, usize, u64);

struct Merged<'p> {
    /// Files not opened yet, the next one last: start time, index in the plan, pieces.
    later: Vec<(Timestamp, usize, &'p Pieces)>,
    open: Vec<Option<OpenPiece<'p>>>,
    heads: BinaryHeap<Reverse<(SegmentOrderKey, usize)>>,
    taken: Option<usize>,
}

struct OpenPiece<'p> {
    file: usize,
    path: &'p PathBuf,
    reader: PieceReader<BufReader<File>>,
}

impl<'p> Merged<'p> {
    fn new(plan: &AnalysisPlan, files: &'p [Pieces]) -> Merged<'p> {
        let mut later: Vec<(Timestamp, usize, &Pieces)> = Vec::new();
        for (index, planned) in plan.files.iter().enumerate() {
            later.extend(planned.span.map(|(first, _)| (first, index, &files[planned.given])));
        }
        later.sort_by_key(|(first, index, _)| Reverse((*first, *index)));
        Merged { later, open: Vec::new(), heads: BinaryHeap::new(), taken: None }
    }

    fn next_segment(&mut self) -> Result<Option<(usize, TcpSegment<'_>)>, AnalysisError> {
        let begins = |heads: &BinaryHeap<Reverse<(SegmentOrderKey, usize)>>, first: Timestamp| {
            heads.peek().is_none_or(|Reverse(((time, ..), _))| first <= *time)
        };
        if let Some(index) = self.taken.take() {
            self.advance(index)?;
        }
        while let Some((_, file, pieces)) = self.later.pop_if(|(first, ..)| begins(&self.heads, *first)) {
            for path in &pieces.pieces {
                let reader = File::open(path).map_err(|error| piece_error(path, error))?;
                self.open.push(Some(OpenPiece { file, path, reader: PieceReader::new(BufReader::new(reader)) }));
                self.advance(self.open.len() - 1)?;
            }
        }
        let Some(Reverse((_, index))) = self.heads.pop() else { return Ok(None) };
        self.taken = Some(index);
        let Some(Some(open)) = self.open.get_mut(index) else { return Ok(None) };
        let segment = open.reader.next_segment().map_err(|error| piece_error(open.path, error))?;
        Ok(segment.map(|segment| (open.file, segment)))
    }

    fn advance(&mut self, index: usize) -> Result<(), AnalysisError> {
        let Some(open) = &mut self.open[index] else { return Ok(()) };
        match open.reader.next_stamp().map_err(|error| piece_error(open.path, error))? {
            Some(stamp) => self.heads.push(Reverse(((stamp.time, open.file, stamp.packet.number()), index))),
            None => self.open[index] = None,
        }
        Ok(())
    }
}

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
