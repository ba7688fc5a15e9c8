//! Stores the results of each load point as soon as it is over.

use crate::BenchError;
use crate::describe::RampResults;
use crate::directory::RunDirectory;
use crate::metrics::Metrics;
use crate::setup::Setup;
use smbscope_lab::Workplace;
use smbscope_load::engine::ExchangeLog;
use smbscope_load::engine::result::LoadPointResult;
use smbscope_report::bench::BenchDocument;
use smbscope_report::bench::tables::ServerMetric;
use std::path::PathBuf;

pub(crate) struct RunResultWriter<'a> {
    setup: &'a Setup,
    metrics: &'a Metrics,
    store: Store,
}

enum Store {
    Kept(RunDirectory),
    /// A temporary folder for captures, removed after the run.
    Passing(Workplace),
}

impl<'a> RunResultWriter<'a> {
    /// Writes into `directory`. Without one, only captures are written, to a temporary folder.
    pub(crate) fn new(
        setup: &'a Setup,
        directory: Option<RunDirectory>,
        metrics: &'a Metrics,
    ) -> Result<RunResultWriter<'a>, BenchError> {
        let store = match directory {
            Some(directory) => Store::Kept(directory),
            None => Store::Passing(Workplace::open().map_err(BenchError::Lab)?),
        };
        Ok(RunResultWriter { setup, metrics, store })
    }

    pub(crate) fn capture(&mut self, name: &str) -> Result<PathBuf, BenchError> {
        match &mut self.store {
            Store::Kept(directory) => directory.capture(name),
            Store::Passing(folder) => Ok(folder.path().join(name)),
        }
    }

    pub(crate) fn point(
        &mut self,
        run: &LoadPointResult,
        exchanges: Option<&ExchangeLog>,
        so_far: &RampResults,
    ) -> Result<(), BenchError> {
        let Store::Kept(directory) = &mut self.store else { return Ok(()) };
        directory.add_histograms(run);
        if let Some(exchanges) = exchanges {
            directory.add_exchanges(&exchanges.list, exchanges.left_out)?;
        }
        directory.keep(&self.setup.document(so_far.clone()), &self.metrics.so_far())
    }

    pub(crate) fn finish(self, document: &BenchDocument) -> Result<(), BenchError> {
        match self.store {
            Store::Kept(directory) => finish(directory, document, &self.metrics.so_far()),
            Store::Passing(_) => Ok(()),
        }
    }
}

fn finish(mut directory: RunDirectory, document: &BenchDocument, metrics: &[ServerMetric]) -> Result<(), BenchError> {
    if directory.has_earlier() && document.runs.iter().all(|run| run.operations == 0) {
        return Err(BenchError::NothingMeasured(directory.path().to_owned()));
    }
    directory.keep(document, metrics)?;
    // A disk too full for the table may still have room for the page.
    let table = directory.end_table();
    directory.keep_page(document)?;
    if directory.has_earlier() {
        // An earlier run is replaced only if the table is complete.
        table?;
        return directory.put_in_place();
    }
    directory.put_in_place()?;
    table
}
