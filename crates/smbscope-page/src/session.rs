//! One visit of the page: files, their report, and exports.

use smbscope_analyze::pseudonym::PseudonymKey;
use smbscope_analyze::slim::{self, Anonymize, SlimOptions};
use smbscope_capture::reader::{CaptureInput, CaptureSet, FileSlices, SlicedFile};
use smbscope_crypto::kerberos::KEYTAB;
use smbscope_crypto::key_ring::{KeyFileError, KeyRing};
use smbscope_explain::analysis::{AnalysisObserver, CaptureSetAnalysis, ExchangeExport, PreparedAnalysis};
use smbscope_explain::keys::KEY_FILE_MAX;
use smbscope_explain::options::AnalysisOptions;
use smbscope_report::csv::{CellStyle, CsvExchangeWriter};
use smbscope_report::{Report, html, json};
use std::io::{self, Write};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Length of the key that replaces names in an anonymised copy.
const KEY_BYTES: usize = 32;
/// Bytes that tell text and keytabs from captures.
const HEAD_BYTES: usize = 512;

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
    keys: KeyRing,
    /// Error of a file with keys.
    refused: Option<String>,
    options: AnalysisOptions,
    report: Option<Report>,
}

impl PageSession {
    /// Adds a capture, or a file with keys, which is recognised by its content. All files come before the analysis.
    pub fn add(&mut self, file: impl FileSlices + 'static) {
        let added = text_or_keytab(&file).map(|content| self.keys.add_keys(&content));
        match added {
            Some(Ok(_)) => {}
            None | Some(Err(KeyFileError::Unknown | KeyFileError::NotText)) => {
                self.inputs.push(CaptureInput::Sliced(SlicedFile::new(file)));
            }
            Some(Err(error)) => self.refused = Some(format!("{}: {error}", file.name())),
        }
    }

    pub fn analyze(&mut self, progress: &mut ReadProgress<'_>) -> Result<(), String> {
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        if !self.keys.is_empty() {
            if self.inputs.is_empty() {
                return Err("these are keys: drop them together with the capture".to_owned());
            }
            self.options.reading.decryption.ring = Some(Arc::new(std::mem::take(&mut self.keys)));
        }
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

/// Returns the content of a file that may contain keys.
fn text_or_keytab(file: &impl FileSlices) -> Option<Zeroizing<Vec<u8>>> {
    let length = Some(file.length()).filter(|length| *length <= KEY_FILE_MAX)? as usize;
    let mut content = Zeroizing::new(vec![0; length.min(HEAD_BYTES)]);
    let found = read_into(file, &mut content)?;
    // The head may end inside a character.
    let is_text = std::str::from_utf8(found).map_or_else(|error| error.error_len().is_none(), |_| true);
    if !found.starts_with(&KEYTAB) && (!is_text || found.contains(&0)) {
        return None;
    }
    content = Zeroizing::new(vec![0; length]);
    read_into(file, &mut content)?;
    Some(content)
}

/// Fills the buffer from the start of a file. Returns `None` if it can't be read, or has become shorter.
fn read_into<'b>(file: &impl FileSlices, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let mut done = 0;
    while done < buffer.len() {
        done += file.read_at(done as u64, &mut buffer[done..]).ok().filter(|count| *count > 0)?;
    }
    Some(buffer)
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
