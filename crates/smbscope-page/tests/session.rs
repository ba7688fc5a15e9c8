//! Sessions over the bundled captures, without a browser. Expected values come from the analysis of files by their paths.

use smbscope_capture::reader::{CaptureInput, FileSlices};
use smbscope_explain::analysis::{AnalysisOptions, CaptureSetAnalysis};
use smbscope_page::{ExportFormat, PageSession};
use smbscope_report::json;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
struct HeldFile {
    name: String,
    bytes: Vec<u8>,
}

impl FileSlices for HeldFile {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// Returns the document about a file that is read by its path, or the error.
fn by_path(path: &Path) -> Result<String, String> {
    let (inputs, options) = ([CaptureInput::File(path.to_owned())], AnalysisOptions::default());
    let analysis = CaptureSetAnalysis::run(&inputs, &options, &mut ());
    let report = analysis.and_then(|analysis| analysis.into_report(&options)).map_err(|error| error.to_string())?;
    let mut document = Vec::new();
    json::write(&report, &mut document).expect("memory");
    Ok(String::from_utf8(document).expect("JSON"))
}

fn exported(session: &PageSession, format: ExportFormat) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    session.export(format, &mut out, &mut |_, _| {})?;
    Ok(out)
}

fn session_on(path: &Path) -> PageSession {
    let mut session = PageSession::default();
    session.add(HeldFile { name: path.display().to_string(), bytes: std::fs::read(path).expect("a file") });
    session
}

fn by_slices(path: &Path) -> Result<String, String> {
    let mut session = session_on(path);
    session.analyze(&mut |_, _| {})?;
    exported(&session, ExportFormat::Json).map(|document| String::from_utf8(document).expect("JSON"))
}

fn bundled() -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let folders = ["", "damaged", "encrypted", "found", "own"].map(|folder| data.join(folder));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("captures"));
    let mut files: Vec<PathBuf> = files.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| {
        path.to_string_lossy().ends_with(".pcap.zst") || path.to_string_lossy().ends_with(".pcapng.zst")
    });
    files.sort();
    files
}

#[test]
fn files_in_slices_give_the_document_of_the_same_files_by_path() {
    let place = tempfile::tempdir().expect("a folder");
    for compressed in bundled() {
        let plain = place.path().join(compressed.file_stem().expect("a name"));
        let bytes = zstd::decode_all(std::fs::File::open(&compressed).expect("a file")).expect("zstd");
        std::fs::write(&plain, bytes).expect("room");
        for path in [&compressed, &plain] {
            assert!(by_slices(path) == by_path(path), "{}", path.display());
        }
        std::fs::remove_file(&plain).expect("it is there");
    }
}

/// Adds files with these names, and analyses them.
fn analysed(names: &[&str]) -> Result<String, String> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/encrypted");
    let mut session = PageSession::default();
    for name in names {
        let bytes = std::fs::read(data.join(name)).expect("a file");
        session.add(HeldFile { name: (*name).to_owned(), bytes });
    }
    session.analyze(&mut |_, _| {})?;
    exported(&session, ExportFormat::Csv).map(|rows| String::from_utf8(rows).expect("CSV"))
}

#[test]
fn keys_dropped_in_any_order_decrypt_the_capture() {
    for [capture, keys] in
        [["samba_ciphers.pcap.zst", "samba_ciphers.log"], ["kerberos_tickets.pcap.zst", "kerberos_tickets.keytab"]]
    {
        let encrypted = |names: &[&str]| analysed(names).expect("a table").matches(",ENCRYPTED,").count();
        assert!(encrypted(&[capture]) > 100, "{capture}");
        assert_eq!([encrypted(&[capture, keys]), encrypted(&[keys, capture])], [0, 0], "{capture}");
    }
    let alone = analysed(&["samba_ciphers.log"]);
    assert_eq!(alone, Err("these are keys: drop them together with the capture".to_owned()));
}

#[test]
fn a_damaged_file_with_keys_is_named() {
    let mut session = PageSession::default();
    session.add(HeldFile { name: "bad.keytab".to_owned(), bytes: vec![5, 2, 0, 0, 0, 99, 1] });
    assert_eq!(session.analyze(&mut |_, _| {}), Err("bad.keytab: the keytab is damaged".to_owned()));
}

#[test]
fn an_anonymised_copy_keeps_the_commands_and_no_address() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/demo-slow-server.pcap.zst");
    let mut session = session_on(&demo);
    assert_eq!(exported(&session, ExportFormat::Slim), Err("there is no report yet".to_owned()));
    session.analyze(&mut |_, _| {}).expect("a report");
    let mut copy = PageSession::default();
    let bytes = exported(&session, ExportFormat::Slim).expect("a copy");
    copy.add(HeldFile { name: "copy.pcapng.zst".to_owned(), bytes });
    copy.analyze(&mut |_, _| {}).expect("a report on the copy");
    let rows =
        |session: &PageSession| String::from_utf8(exported(session, ExportFormat::Csv).expect("rows")).expect("CSV");
    let (original, anonymous) = (rows(&session), rows(&copy));
    assert_eq!(original.lines().count(), anonymous.lines().count());
    assert!(original.contains("198.18.44.82") && !anonymous.contains("198.18.44.82"));
}
