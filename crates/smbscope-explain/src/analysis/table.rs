//! Writes exchanges to a table, in order of their ends.

use super::recorder::Chooser;
use super::{AnalysisError, AnalysisObserver, AnalyzedCaptures, PreparedAnalysis, how, names};
use smbscope_analyze::AnalyzerOptions;
use smbscope_analyze::pipeline::{Sharding, Threading};
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_model::Exchange;
use smbscope_report::table::{ExchangeTable, Provenance};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Exchanges passed to the table's writer at once.
const BATCH_EXCHANGES: usize = 256;
const EXCHANGE_BATCHES_AHEAD: usize = 4;

pub struct ExchangeExport<'p> {
    prepared: &'p PreparedAnalysis,
    how: AnalyzerOptions,
    set: CaptureSet,
    threading: Threading,
}

#[derive(Debug)]
pub struct ExchangeExportResult {
    /// Result of writing. Reading stops at the first error.
    pub result: io::Result<()>,
    pub found: AnalyzedCaptures,
}

impl<'p> ExchangeExport<'p> {
    pub fn open(prepared: &'p PreparedAnalysis) -> Result<ExchangeExport<'p>, AnalysisError> {
        let PreparedAnalysis { inputs, options, .. } = prepared;
        let set = CaptureSet::open_with_memory(inputs, false, options.reading.memory.bytes())?;
        // Batches would delay the output of a live capture.
        let at_once = options.reading.threads() <= 1 || !inputs.iter().all(CaptureInput::can_be_read_again);
        let threading = if at_once { Threading::Inline } else { Threading::Workers };
        Ok(ExchangeExport { prepared, how: how(options)?, set, threading })
    }

    /// Writes exchanges that pass the filter. The caller then checks [`AnalyzedCaptures::refuse_without_smb`].
    pub fn write<T: ExchangeTable + Send>(
        self,
        table: io::Result<T>,
        observer: &mut dyn AnalysisObserver,
    ) -> Result<ExchangeExportResult, AnalysisError> {
        let ExchangeExport { prepared, how, mut set, threading } = self;
        let (options, following) = (&prepared.options, prepared.following(&how));
        let names = names(&set);
        let stop = set.stop_flag();
        let mut rows = Rows { table, names: &names, stop: &stop };
        let mut chooser = Chooser::new(options.filter.as_ref(), &names, set.first_packet());
        let mut exchange_id = 0;
        let mut chosen = |exchange: &Exchange| {
            exchange_id += 1;
            chooser.chooses(exchange).then_some(exchange_id - 1)
        };
        let beside_writer = match threading {
            Threading::Inline => None,
            Threading::Workers => thread::scope(|scope| {
                let (mut line, batches, empties) = ExchangeBatchSender::new();
                let rows = &mut rows;
                let write = move || rows.take(&batches, &empties);
                // If the thread can't be started, nothing has been read yet and the calling thread does all the work.
                let writer = thread::Builder::new().spawn_scoped(scope, write).ok()?;
                let sink = |exchange: &Exchange| {
                    if let Some(id) = chosen(exchange) {
                        line.add(exchange, id);
                    }
                };
                let found = following.follow(&mut set, Sharding::None, threading, &mut [sink], observer);
                line.send();
                drop(line);
                if let Err(panic) = writer.join() {
                    std::panic::resume_unwind(panic);
                }
                Some(found)
            }),
        };
        let without_writer = threading == Threading::Workers && beside_writer.is_none();
        let found = beside_writer.unwrap_or_else(|| {
            let sink = |exchange: &Exchange| {
                if let Some(id) = chosen(exchange) {
                    rows.add(exchange, id);
                }
            };
            following.follow(&mut set, Sharding::None, Threading::Inline, &mut [sink], observer)
        });
        let mut found = found.map_err(AnalysisError::Failed)?;
        found.analysis.without_threads |= without_writer;
        let result = rows.table.and_then(|table| {
            table.finish(&Provenance {
                version: env!("CARGO_PKG_VERSION"),
                captures: &found.captures,
                quality: &found.analysis.quality,
                skipped: &found.analysis.skipped,
                encapsulations: &found.analysis.encapsulations,
                filter: chooser.filtered(),
            })
        });
        if result.is_ok() {
            set.refuse_cut_short()?;
        }
        Ok(ExchangeExportResult { result, found })
    }
}

struct Rows<'a, T> {
    table: io::Result<T>,
    names: &'a [String],
    stop: &'a AtomicBool,
}

impl<T: ExchangeTable> Rows<'_, T> {
    fn add(&mut self, exchange: &Exchange, id: u64) {
        if let Ok(table) = &mut self.table
            && let Err(error) = table.write(exchange, id, self.names)
        {
            self.table = Err(error);
        }
        if self.table.is_err() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn take(&mut self, batches: &Receiver<NumberedExchanges>, empties: &SyncSender<NumberedExchanges>) {
        for mut batch in batches {
            batch.drain(..).for_each(|(exchange, id)| self.add(&exchange, id));
            // The channel has room for every batch.
            let _ = empties.try_send(batch);
        }
    }
}

type NumberedExchanges = Vec<(Exchange, u64)>;

/// Sends exchanges to the writer thread. Building rows takes as long as finding the exchanges.
struct ExchangeBatchSender {
    gathered: NumberedExchanges,
    batches: SyncSender<NumberedExchanges>,
    empties: Receiver<NumberedExchanges>,
}

impl ExchangeBatchSender {
    fn new() -> (ExchangeBatchSender, Receiver<NumberedExchanges>, SyncSender<NumberedExchanges>) {
        let (batches, taken) = sync_channel(EXCHANGE_BATCHES_AHEAD);
        let (returned, empties) = sync_channel(EXCHANGE_BATCHES_AHEAD + 2);
        (ExchangeBatchSender { gathered: NumberedExchanges::new(), batches, empties }, taken, returned)
    }

    fn add(&mut self, exchange: &Exchange, id: u64) {
        self.gathered.push((exchange.clone(), id));
        if self.gathered.len() >= BATCH_EXCHANGES {
            self.send();
        }
    }

    fn send(&mut self) {
        let empty = self.empties.try_recv().unwrap_or_default();
        // Sending fails only if the writer panicked; joining its thread reports that.
        let _ = self.batches.send(std::mem::replace(&mut self.gathered, empty));
    }
}
