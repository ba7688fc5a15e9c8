//! One visit of the page: files, their report, and exports.

use smbscope_analyze::pseudonym::PseudonymKey;
use smbscope_analyze::slim::{self, Anonymize, SlimOptions};
use smbscope_capture::reader::{CaptureInput, CaptureSet, FileSlices, SlicedFile};
use smbscope_explain::analysis::{AnalysisObserver, CaptureSetAnalysis, ExchangeExport, PreparedAnalysis};
use smbscope_explain::options::AnalysisOptions;
use smbscope_report::csv::{CellStyle, CsvExchangeWriter};
use smbscope_report::{Report, html, json};
use std::io::{self, Write};

/// Length of the key that replaces names in an anonymised copy.
const KEY_BYTES: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// The document that the page shows: long lists are shortened.
    View,
    /// The report as `analyze -o x.json` writes it.
    Json,
    /// The report as one file, without the analysis.
    Html,
    /// The exchange table.
    Csv,
    /// An anonymised copy of the captures with headers only.
    Slim,
}

impl ExportFormat {
    pub const ALL: [ExportFormat; 5] =
        [ExportFormat::View, ExportFormat::Json, ExportFormat::Html, ExportFormat::Csv, ExportFormat::Slim];
}

/// Called with the bytes read so far and the total.
pub type ReadProgress<'a> = dyn FnMut(u64, u64) + 'a;

#[derive(Default)]
pub struct PageSession {
    inputs: Vec<CaptureInput>,
    options: AnalysisOptions,
    report: Option<Report>,
}

impl PageSession {
    pub fn add(&mut self, file: impl FileSlices + 'static) {
        self.inputs.push(CaptureInput::Sliced(SlicedFile::new(file)));
        self.report = None;
    }

    pub fn analyze(&mut self, progress: &mut ReadProgress<'_>) -> Result<(), String> {
        let analysis = CaptureSetAnalysis::run(&self.inputs, &self.options, &mut ProgressObserver(progress));
        let report = analysis.and_then(|analysis| analysis.into_report(&self.options));
        self.report = Some(report.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Writes an export of the analysed files.
    pub fn export(
        &self,
        format: ExportFormat,
        out: &mut (dyn Write + Send),
        progress: &mut ReadProgress<'_>,
    ) -> Result<(), String> {
        let report = self.report.as_ref().ok_or("there is no report yet")?;
        let written = match format {
            ExportFormat::View => html::write_data(report, out),
            ExportFormat::Json => json::write(report, out),
            ExportFormat::Html => html::write_report(report, out),
            ExportFormat::Csv => return self.export_exchanges(out, progress),
            ExportFormat::Slim => return self.export_slim(out, progress),
        };
        written.map_err(|error| error.to_string())
    }

    fn export_exchanges(&self, out: &mut (dyn Write + Send), progress: &mut ReadProgress<'_>) -> Result<(), String> {
        let mut observer = ProgressObserver(progress);
        let prepared = PreparedAnalysis::new(&self.inputs, &self.options, &mut observer);
        let prepared = prepared.map_err(|error| error.to_string())?;
        let export = ExchangeExport::open(&prepared).map_err(|error| error.to_string())?;
        let table = CsvExchangeWriter::with_style(out, CellStyle::default());
        let written = export.write(table, &mut observer).map_err(|error| error.to_string())?;
        written.result.map_err(|error| error.to_string())
    }

    fn export_slim(&self, out: &mut (dyn Write + Send), progress: &mut ReadProgress<'_>) -> Result<(), String> {
        let reading = &self.options.reading;
        let opened = CaptureSet::open_with_memory(&self.inputs, false, reading.memory.bytes());
        let mut set = opened.map_err(|error| error.to_string())?;
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(|error| error.to_string())?;
        let anonymize = Some(Anonymize { key: PseudonymKey::of_bytes(&key), depth: false, extensions: false });
        let (limits, tunnels) = (reading.memory.budget(), reading.tunnels.ports());
        let options = SlimOptions { limits, tunnels, anonymize, keys: None };
        let written = compressed(&mut set, &options, out, &mut |set| show(set, progress));
        written.map_err(|error| error.to_string())
    }
}

fn compressed(
    set: &mut CaptureSet,
    options: &SlimOptions,
    out: &mut (dyn Write + Send),
    observe: &mut dyn FnMut(&CaptureSet),
) -> io::Result<()> {
    let mut encoder = zstd::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
    slim::slim(set, options, &mut encoder, observe)?;
    encoder.finish()?.flush()
}

struct ProgressObserver<'p, 'f>(&'p mut ReadProgress<'f>);

impl AnalysisObserver for ProgressObserver<'_, '_> {
    fn reads(&mut self, set: &CaptureSet) {
        show(set, self.0);
    }
}

fn show(set: &CaptureSet, progress: &mut ReadProgress<'_>) {
    let (done, total) = set.progress();
    progress(done, total.unwrap_or(done));
}
