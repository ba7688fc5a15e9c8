//! Reads the exchange table in batches, with few of them in memory.

use crate::table::{PyTable, data_frame, ending, schema, stream};
use crate::work::{LOOK, SmbscopeError, Stopper, broken, interruptible, of_analysis, of_writing};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use signal_hook::consts::SIGINT;
use smbscope_model::Exchange;
use smbscope_report::table::{ExchangeBatches, ExchangeTable, Provenance};
use smbscope_report::{csv, parquet};
use smbscope_run::analysis::{self, ExchangeExportResult, PreparedAnalysis};
use smbscope_run::files::{Destination, Replacement};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, thread};

/// Batches that may wait for the reader.
const AHEAD: usize = 2;

/// The exchange table of captures, with the columns of `smbscope analyze -o exchanges.parquet`. It is read from the
/// captures each time it is used, and is never in memory as a whole.
#[pyclass(name = "Exchanges", frozen, module = "smbscope")]
pub(crate) struct PyExchanges(Arc<PreparedAnalysis>);

impl PyExchanges {
    pub(crate) fn new(prepared: Arc<PreparedAnalysis>) -> PyExchanges {
        PyExchanges(prepared)
    }
}

#[pymethods]
impl PyExchanges {
    fn __iter__(&self) -> PyResult<Batches> {
        Ok(Batches(Mutex::new(ExchangeBatchReader::begin(Arc::clone(&self.0))?)))
    }

    /// Returns all rows as a pandas DataFrame, which needs pandas and pyarrow.
    fn to_pandas<'py>(this: &Bound<'py, PyExchanges>) -> PyResult<Bound<'py, PyAny>> {
        data_frame(this.as_any(), "to_pandas")
    }

    /// Returns all rows as a Polars DataFrame, which needs Polars.
    fn to_polars<'py>(this: &Bound<'py, PyExchanges>) -> PyResult<Bound<'py, PyAny>> {
        data_frame(this.as_any(), "to_polars")
    }

    /// Exports the table as an Arrow stream, while the captures are read.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        stream(py, Interruptible::new(ExchangeBatchReader::begin(Arc::clone(&self.0))?))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema(py, &ExchangeBatches::default().schema())
    }

    fn __repr__(&self) -> String {
        let names: Vec<String> = self.0.inputs.iter().map(|input| input.name()).collect();
        format!("<smbscope.Exchanges of {}>", names.join(", "))
    }
}

/// Iterator over the batches of the exchange table.
#[pyclass(frozen, module = "smbscope")]
pub(crate) struct Batches(Mutex<ExchangeBatchReader>);

#[pymethods]
impl Batches {
    fn __iter__(this: Py<Batches>) -> Py<Batches> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyTable>> {
        loop {
            let next = py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).next());
            match next {
                BatchPoll::Batch(batch) => return Ok(Some(PyTable(batch))),
                BatchPoll::NotYet => py.check_signals()?,
                BatchPoll::Failed(ReaderThreadError::Analysis(error)) => return Err(of_analysis(&error)),
                BatchPoll::Failed(ReaderThreadError::Panic(panic)) => return Err(broken(&*panic)),
                BatchPoll::End => return Ok(None),
            }
        }
    }
}

/// Result of waiting for the next batch.
enum BatchPoll {
    Batch(RecordBatch),
    NotYet,
    Failed(ReaderThreadError),
    End,
}

/// Reason why a table ends early.
enum ReaderThreadError {
    Analysis(analysis::AnalysisError),
    /// A bug.
    Panic(Box<dyn Any + Send>),
}

type BatchResult = Result<RecordBatch, ReaderThreadError>;

/// Receiving end of the table. A thread reads the captures and sends the batches.
struct ExchangeBatchReader {
    batches: Receiver<BatchResult>,
    stopper: Stopper,
    schema: SchemaRef,
}

impl ExchangeBatchReader {
    fn begin(prepared: Arc<PreparedAnalysis>) -> io::Result<ExchangeBatchReader> {
        let (sender, batches) = sync_channel(AHEAD);
        let stopper = Stopper::default();
        let mut observer = stopper.clone();
        let work = move || {
            let table = Sending { batches: ExchangeBatches::default(), sender: sender.clone() };
            let read = || {
                let exchanges = analysis::ExchangeExport::open(&prepared)?;
                let ExchangeExportResult { found, .. } = exchanges.write(Ok(table), &mut observer)?;
                found.refuse_without_smb(&prepared.options)
            };
            let failure = match catch_unwind(AssertUnwindSafe(read)) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => ReaderThreadError::Analysis(error),
                Err(panic) => ReaderThreadError::Panic(panic),
            };
            // The reader may be gone.
            let _ = sender.send(Err(failure));
        };
        thread::Builder::new().spawn(work)?;
        Ok(ExchangeBatchReader { batches, stopper, schema: ExchangeBatches::default().schema() })
    }

    fn next(&self) -> BatchPoll {
        match self.batches.recv_timeout(LOOK) {
            Ok(Ok(batch)) => BatchPoll::Batch(batch),
            Ok(Err(error)) => BatchPoll::Failed(error),
            Err(RecvTimeoutError::Timeout) => BatchPoll::NotYet,
            Err(RecvTimeoutError::Disconnected) => BatchPoll::End,
        }
    }
}

impl Drop for ExchangeBatchReader {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

/// A table that sends its batches to a reader.
struct Sending {
    batches: ExchangeBatches,
    sender: SyncSender<BatchResult>,
}

impl Sending {
    fn send(&self, batch: Option<RecordBatch>) -> io::Result<()> {
        let Some(batch) = batch else { return Ok(()) };
        self.sender.send(Ok(batch)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl ExchangeTable for Sending {
    fn write(&mut self, exchange: &Exchange, exchange_id: u64, capture_names: &[String]) -> io::Result<()> {
        let full = self.batches.add(exchange, exchange_id, capture_names);
        self.send(full)
    }

    fn finish(mut self, _: &Provenance) -> io::Result<()> {
        let rest = self.batches.rest();
        self.send(rest)
    }
}

/// A batch reader that Ctrl-C interrupts even if it is used on another thread, without the GIL.
struct Interruptible {
    reader: ExchangeBatchReader,
    interrupted: Arc<AtomicBool>,
    /// Installed in addition to Python's own handler, which raises KeyboardInterrupt later.
    handler: Option<signal_hook::SigId>,
}

impl Interruptible {
    fn new(reader: ExchangeBatchReader) -> Interruptible {
        let interrupted = Arc::new(AtomicBool::new(false));
        let handler = signal_hook::flag::register(SIGINT, Arc::clone(&interrupted)).ok();
        Interruptible { reader, interrupted, handler }
    }
}

impl Iterator for Interruptible {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let failed = |text: String| Some(Err(ArrowError::ExternalError(text.into())));
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                return failed("interrupted".to_owned());
            }
            match self.reader.next() {
                BatchPoll::Batch(batch) => return Some(Ok(batch)),
                BatchPoll::NotYet => {}
                BatchPoll::Failed(ReaderThreadError::Analysis(error)) => return failed(smbscope_run::one_line(&error)),
                BatchPoll::Failed(ReaderThreadError::Panic(_)) => {
                    return failed("smbscope broke down, please report this".to_owned());
                }
                BatchPoll::End => return None,
            }
        }
    }
}

impl RecordBatchReader for Interruptible {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.reader.schema)
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        self.handler.take().map(signal_hook::low_level::unregister);
    }
}

/// Writes the exchange table to a file in the format of its extension.
pub(crate) fn save(py: Python<'_>, prepared: &PreparedAnalysis, path: &Path) -> PyResult<()> {
    let file = match Destination::open(path).map_err(|error| of_writing(path, &error))? {
        Destination::File(file) => file,
        Destination::Stream(_) => return Err(SmbscopeError::new_err(format!("{}: not a file", path.display()))),
    };
    let written = interruptible(py, |mut stopper| write(prepared, path, &file, &mut stopper))?;
    let ExchangeExportResult { result, found } = written.map_err(|error| of_analysis(&error))?;
    found.refuse_without_smb(&prepared.options).map_err(|error| of_analysis(&error))?;
    result.and_then(|()| file.finish()).map_err(|error| of_writing(path, &error))
}

fn write(
    prepared: &PreparedAnalysis,
    path: &Path,
    file: &Replacement,
    stopper: &mut Stopper,
) -> Result<ExchangeExportResult, analysis::AnalysisError> {
    let exchanges = analysis::ExchangeExport::open(prepared)?;
    let out = file.writer().map(io::BufWriter::new);
    match ending(path) == "parquet" {
        true => exchanges.write(out.and_then(parquet::ParquetExchangeWriter::new), stopper),
        false => exchanges.write(out.and_then(csv::CsvExchangeWriter::new), stopper),
    }
}
