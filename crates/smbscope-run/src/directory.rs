//! The run directory: `run.json`, `intervals.parquet`, `exchanges.parquet`, `histograms.hgrm`, `server.parquet`,
//! captures and the HTML page.
//!
//! Every file is written under a temporary name and then renamed, `run.json` last, so a directory with `run.json` is
//! complete and of a single run. In a new directory this happens after each load point, so an interrupted run leaves
//! its finished points. An earlier run stays untouched until the new one has ended. A directory that has other files
//! but no `run.json` of ours is refused.

use crate::BenchError;
use crate::files::{Replacement, Sources, create_private_directory, is_left_over};
use smbscope_load::engine::result::LoadPointResult;
use smbscope_model::{CommandGroup, Exchange, Quality, Timestamp};
use smbscope_report::bench::files::{self as run_files, ServerMetric, TaggedHistogram};
use smbscope_report::bench::{self, BenchDocument};
use smbscope_report::html;
use smbscope_report::parquet::ParquetExchangeWriter;
use smbscope_report::table::{ExchangeTable, Provenance};
use smbscope_stats::Summary;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The document, which `compare` reads.
pub const RUN: &str = "run.json";
const INTERVALS: &str = "intervals.parquet";
const EXCHANGES: &str = "exchanges.parquet";
const HISTOGRAMS: &str = "histograms.hgrm";
const SERVER: &str = "server.parquet";

const PAGE: &str = "report.html";

const FILES: [&str; 6] = [RUN, INTERVALS, EXCHANGES, HISTOGRAMS, SERVER, PAGE];

const HEAD: u64 = 4 << 10;

pub(crate) struct RunDirectory {
    path: PathBuf,
    /// Files of an earlier run that are still in place.
    earlier: Vec<PathBuf>,
    ready: BTreeMap<String, Replacement>,
    exchanges: ExchangeTableFile,
    histograms: Vec<TaggedHistogram>,
}

enum ExchangeTableFile {
    NotBegun,
    Open {
        writer: Box<ParquetExchangeWriter<BufWriter<File>>>,
        file: Replacement,
        next: u64,
    },
    /// Commands were left out. A partial table would be mistaken for a complete one.
    GivenUp,
}

impl RunDirectory {
    /// Creates the directory, or takes over one that is empty or holds an earlier run. Fails if a file of that run is
    /// an input of this one.
    pub(crate) fn open(path: &Path, sources: &Sources) -> Result<RunDirectory, BenchError> {
        create_private_directory(path).map_err(BenchError::file("make the run directory", path))?;
        let entries: Vec<PathBuf> = fs::read_dir(path)
            .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
            .map_err(BenchError::file("look into the run directory", path))?;
        let name =
            |entry: &Path| entry.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let is_left = |entry: &Path| {
            let name = name(entry);
            // Log of the capturing program.
            is_left_over(name.strip_suffix(".log").unwrap_or(&name), is_ours)
        };
        // Capture of a run that never finished a load point.
        let is_passing = |entry: &Path| is_left(entry) || is_capture(&name(entry));
        if !is_run(&path.join(RUN)) && !entries.iter().all(|entry| is_passing(entry)) {
            return Err(BenchError::Unavailable(format!(
                "{} is not empty and has no run.json of a run: name a new or empty directory for the results",
                path.display()
            )));
        }
        let earlier: Vec<PathBuf> = entries.iter().filter(|entry| is_ours(&name(entry))).cloned().collect();
        for file in &earlier {
            if let Some(source) = sources.name_at(file) {
                let text =
                    format!("cannot write {}: it is the input {source}; choose another directory", file.display());
                return Err(BenchError::Unavailable(text));
            }
        }
        for left in entries.iter().filter(|entry| is_left(entry)) {
            fs::remove_file(left).map_err(BenchError::file("remove", left))?;
        }
        let path = path.to_owned();
        Ok(RunDirectory {
            path,
            earlier,
            ready: BTreeMap::new(),
            exchanges: ExchangeTableFile::NotBegun,
            histograms: Vec::new(),
        })
    }

    pub(crate) fn capture(&mut self, name: &str) -> Result<PathBuf, BenchError> {
        debug_assert!(is_capture(name));
        let path = self.path.join(name);
        let file = Replacement::private(&path).map_err(BenchError::file("write", &path))?;
        let unfinished = file.path().to_owned();
        self.ready.insert(name.to_owned(), file);
        Ok(unfinished)
    }

    /// Stores the session keys of a capture next to it.
    pub(crate) fn keys(&mut self, capture: &str, keys: &str) -> Result<(), BenchError> {
        let name = format!("{}.keys", capture.strip_suffix(".pcap").unwrap_or(capture));
        debug_assert!(is_capture(&name));
        self.prepare(&name, |out| out.write_all(keys.as_bytes()))
    }

    pub(crate) fn add_histograms(&mut self, run: &LoadPointResult) {
        let mut add = |group: &str, summary: &Summary| {
            let histogram = summary.histogram();
            if !histogram.is_empty() {
                self.histograms.push(TaggedHistogram {
                    users: run.users,
                    group: group.to_owned(),
                    started: run.started,
                    duration: run.duration.into(),
                    histogram,
                });
            }
        };
        add(run_files::ALL, &run.total());
        for group in CommandGroup::ALL {
            debug_assert!(group.name() != bench::OTHER);
            add(group.name(), &run.group(group));
        }
        add(bench::OTHER, &run.counted.response_times(|(_, _, group)| group.is_other()));
    }

    /// Adds the commands of a load point to the exchange table. Drops the table as soon as commands were left out; the
    /// histograms still have all of them.
    pub(crate) fn add_exchanges(&mut self, exchanges: &[Exchange], left_out: u64) -> Result<(), BenchError> {
        if left_out > 0 {
            self.exchanges = ExchangeTableFile::GivenUp;
            return Ok(());
        }
        if let Err(error) = self.append(exchanges) {
            // A partial table is useless, and dropping it frees space on a full disk.
            self.exchanges = ExchangeTableFile::GivenUp;
            return Err(BenchError::file("write", &self.path.join(EXCHANGES))(error));
        }
        Ok(())
    }

    fn append(&mut self, exchanges: &[Exchange]) -> io::Result<()> {
        if let ExchangeTableFile::NotBegun = self.exchanges {
            let file = Replacement::private(&self.path.join(EXCHANGES))?;
            let writer = ParquetExchangeWriter::new(BufWriter::new(file.writer()?))?;
            self.exchanges = ExchangeTableFile::Open { writer: Box::new(writer), file, next: 1 };
        }
        if let ExchangeTableFile::Open { writer, next, .. } = &mut self.exchanges {
            for exchange in exchanges {
                writer.write(exchange, *next, &[])?;
                *next += 1;
            }
        }
        Ok(())
    }

    pub(crate) fn keep(&mut self, document: &BenchDocument, server: &[ServerMetric]) -> Result<(), BenchError> {
        self.prepare(INTERVALS, |out| run_files::write_intervals(&document.runs, out))?;
        if !self.histograms.is_empty() {
            let start = document.runs.iter().map(|run| run.started_ns).min().unwrap_or(Timestamp(0));
            let histograms = std::mem::take(&mut self.histograms);
            let written = self.prepare(HISTOGRAMS, |out| run_files::write_histograms(start, &histograms, out));
            self.histograms = histograms;
            written?;
        }
        if !server.is_empty() {
            self.prepare(SERVER, |out| run_files::write_server(server, out))?;
        }
        self.prepare(RUN, |out| bench::write(document, out))?;
        // Partial results don't replace an earlier run.
        if self.earlier.is_empty() { self.put_in_place() } else { Ok(()) }
    }

    pub(crate) fn keep_page(&mut self, document: &BenchDocument) -> Result<(), BenchError> {
        self.prepare(PAGE, |out| html::write_bench(document, out))
    }

    pub(crate) fn has_earlier(&self) -> bool {
        !self.earlier.is_empty()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn end_table(&mut self) -> Result<(), BenchError> {
        if let ExchangeTableFile::Open { writer, file, .. } =
            std::mem::replace(&mut self.exchanges, ExchangeTableFile::NotBegun)
        {
            let provenance = Provenance {
                version: env!("CARGO_PKG_VERSION"),
                captures: &[],
                quality: &Quality::default(),
                skipped: &[],
                encapsulations: &[],
                filter: None,
            };
            let place = self.path.join(EXCHANGES);
            writer.finish(&provenance).map_err(BenchError::file("write", &place))?;
            self.ready.insert(EXCHANGES.to_owned(), file);
        }
        Ok(())
    }

    /// Renames all written files into place and removes the earlier run. `run.json` vouches for the other files, so the
    /// old one goes first and the new one comes last.
    pub(crate) fn put_in_place(&mut self) -> Result<(), BenchError> {
        let mut earlier = std::mem::take(&mut self.earlier);
        earlier.sort_by_key(|file| !file.ends_with(RUN));
        for file in earlier {
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(BenchError::file("remove", &file)(error));
                }
                _ => {}
            }
        }
        let mut ready: Vec<(String, Replacement)> = std::mem::take(&mut self.ready).into_iter().collect();
        ready.sort_by_key(|(name, _)| name == RUN);
        for (name, file) in ready {
            // An empty file: the capture failed.
            if file.is_empty().unwrap_or(false) {
                continue;
            }
            file.finish().map_err(BenchError::file("write", &self.path.join(name)))?;
        }
        Ok(())
    }

    fn prepare(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>,
    ) -> Result<(), BenchError> {
        let place = self.path.join(name);
        let written = Replacement::private(&place).and_then(|mut file| {
            file.write(write)?;
            Ok(file)
        });
        self.ready.insert(name.to_owned(), written.map_err(BenchError::file("write", &place))?);
        Ok(())
    }
}

/// Removes the files of a run that was killed while they were renamed into place: without `run.json`,
/// [`RunDirectory::open`] would refuse the directory. Call it only for directories that never hold anything but runs.
pub(crate) fn clear_unfinished(path: &Path) -> Result<(), BenchError> {
    if !path.is_dir() || path.join(RUN).exists() {
        return Ok(());
    }
    for name in fs::read_dir(path).map_err(BenchError::file("look into the run directory", path))? {
        let entry = name.map_err(BenchError::file("look into the run directory", path))?;
        if is_ours(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path()).map_err(BenchError::file("remove", &entry.path()))?;
        }
    }
    Ok(())
}

fn is_ours(name: &str) -> bool {
    FILES.contains(&name) || is_capture(name)
}

/// Returns true for `point-02-8-users.pcap`, a capture of one end, such as `point-02-8-users-server.pcap`, the keys, and
/// the capturing program's log that exists during the capture.
fn is_capture(name: &str) -> bool {
    const ENDINGS: [&str; 5] = ["-client.pcap", "-server.pcap", ".pcap", ".keys", ".log"];
    let name = ENDINGS.into_iter().find_map(|ending| name.strip_suffix(ending));
    let number = name.and_then(|name| name.strip_prefix("point-")?.strip_suffix("-users"));
    number.is_some_and(|number| number.bytes().all(|c| c.is_ascii_digit() || c == b'-'))
}

fn is_run(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.is_ok() && String::from_utf8_lossy(&head).contains(&format!("\"schema\": \"{}\"", bench::SCHEMA))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::tests::{READ, document, exchange, run};

    fn names(path: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn finish(mut directory: RunDirectory) {
        directory.end_table().unwrap();
        directory.put_in_place().unwrap();
    }

    fn read(path: &Path) -> BenchDocument {
        BenchDocument::parse(&fs::read(path.join(RUN)).unwrap()).unwrap()
    }

    fn written(document: &BenchDocument) -> String {
        let mut text = Vec::new();
        bench::write(document, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_run_directory_holds_what_was_finished_after_each_load_point() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("new/results");
        let mut directory = RunDirectory::open(&path, &Sources::default()).unwrap();
        directory.add_histograms(&run(1));
        directory.add_exchanges(&[exchange(1, READ, 1, 0, 5)], 0).unwrap();
        directory.keep(&document(&[1]), &[]).unwrap();
        // As if the process were killed here.
        let found = names(&path);
        assert!(found[0].starts_with(".exchanges.parquet.") && found[0].ends_with(".partial"), "{found:?}");
        assert_eq!(found[1..], ["histograms.hgrm", "intervals.parquet", "run.json"]);
        assert_eq!(written(&read(&path)), written(&document(&[1])));
        let metric = ServerMetric { time: Timestamp(0), metric: "cpu".into(), value: 1.0, unit: "percent".into() };
        directory.keep(&document(&[1, 8]), &[metric]).unwrap();
        finish(directory);
        let all = ["exchanges.parquet", "histograms.hgrm", "intervals.parquet", "run.json", "server.parquet"];
        assert_eq!(names(&path), all);
        assert_eq!(read(&path).runs.len(), 2);
    }

    #[test]
    fn what_a_killed_run_left_without_its_document_is_cleared_where_only_runs_are() {
        let place = tempfile::tempdir().unwrap();
        for name in ["intervals.parquet", "point-01-2-users.pcap", "letter.txt"] {
            fs::write(place.path().join(name), "").unwrap();
        }
        let refused = RunDirectory::open(place.path(), &Sources::default());
        assert!(refused.is_err());
        clear_unfinished(place.path()).unwrap();
        assert_eq!(names(place.path()), ["letter.txt"]);
        fs::remove_file(place.path().join("letter.txt")).unwrap();
        RunDirectory::open(place.path(), &Sources::default()).unwrap();
        // A complete run stays.
        for name in ["intervals.parquet", RUN] {
            fs::write(place.path().join(name), "").unwrap();
        }
        clear_unfinished(place.path()).unwrap();
        assert_eq!(names(place.path()), ["intervals.parquet", RUN]);
        clear_unfinished(&place.path().join("none")).unwrap();
    }

    #[test]
    fn a_directory_of_someone_else_is_refused_and_left_alone() {
        for (name, text) in [("letter.txt", "dear"), ("run.json", "{\"schema\": \"another/1\"}")] {
            let place = tempfile::tempdir().unwrap();
            fs::write(place.path().join(name), text).unwrap();
            let error =
                RunDirectory::open(place.path(), &Sources::default()).err().expect("it is another's").to_string();
            assert!(error.contains("name a new or empty directory"), "{error}");
            assert_eq!(fs::read_to_string(place.path().join(name)).unwrap(), text);
        }
    }

    #[test]
    fn an_earlier_run_stays_until_there_is_something_in_its_place() {
        let place = tempfile::tempdir().unwrap();
        let mut first = RunDirectory::open(place.path(), &Sources::default()).unwrap();
        first.add_exchanges(&[exchange(1, READ, 1, 0, 5)], 0).unwrap();
        first.keep(&document(&[1]), &[]).unwrap();
        finish(first);
        for name in ["point-01-1-users.pcap", "point-02-8-users.pcap", "notes.txt"] {
            fs::write(place.path().join(name), "earlier").unwrap();
        }
        let mut second = RunDirectory::open(place.path(), &Sources::default()).unwrap();
        assert_eq!(written(&read(place.path())), written(&document(&[1])));
        for (name, contents) in [("point-01-1-users.pcap", "later"), ("point-03-9-users.pcap", "")] {
            fs::write(second.capture(name).unwrap(), contents).unwrap();
        }
        second.keep(&document(&[2]), &[]).unwrap();
        // As if the process were killed here.
        assert_eq!(written(&read(place.path())), written(&document(&[1])));
        assert_eq!(fs::read_to_string(place.path().join("point-01-1-users.pcap")).unwrap(), "earlier");
        finish(second);
        // The first run's exchange table must not pass for the second's.
        assert_eq!(names(place.path()), ["intervals.parquet", "notes.txt", "point-01-1-users.pcap", "run.json"]);
        assert_eq!(read(place.path()).runs[0].users, 2);
        assert_eq!(fs::read_to_string(place.path().join("point-01-1-users.pcap")).unwrap(), "later");
    }

    #[test]
    fn a_run_that_is_dropped_leaves_the_earlier_one_whole() {
        let place = tempfile::tempdir().unwrap();
        let mut first = RunDirectory::open(place.path(), &Sources::default()).unwrap();
        first.keep(&document(&[1]), &[]).unwrap();
        finish(first);
        let before = names(place.path());
        let mut second = RunDirectory::open(place.path(), &Sources::default()).unwrap();
        second.add_exchanges(&[exchange(1, READ, 1, 0, 5)], 0).unwrap();
        second.keep(&document(&[2]), &[]).unwrap();
        drop(second);
        assert_eq!(names(place.path()), before);
        assert_eq!(written(&read(place.path())), written(&document(&[1])));
    }

    #[test]
    fn a_file_that_the_run_reads_is_never_replaced() {
        let place = tempfile::tempdir().unwrap();
        let mut first = RunDirectory::open(place.path(), &Sources::default()).unwrap();
        first.keep(&document(&[1]), &[]).unwrap();
        finish(first);
        let workload = tempfile::tempdir().unwrap();
        let linked = workload.path().join("linked");
        fs::hard_link(place.path().join(RUN), &linked).unwrap();
        let mut sources = Sources::default();
        sources.add(&linked);
        let error = RunDirectory::open(place.path(), &sources).err().expect("it reads run.json").to_string();
        assert!(error.contains("run.json: it is the input") && error.contains("linked"), "{error}");
    }

    #[test]
    fn only_the_owner_reads_what_a_run_keeps() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let place = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        // One directory that smbscope creates, and one that the user created for a group, with a world-readable file.
        let (new, old) = (place.path().join("results/new"), place.path().join("old"));
        fs::create_dir(&old).unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o750)).unwrap();
        fs::write(old.join("point-01-1-users.pcap"), "of an earlier run").unwrap();
        fs::set_permissions(old.join("point-01-1-users.pcap"), fs::Permissions::from_mode(0o644)).unwrap();
        for path in [&new, &old] {
            let mut directory = RunDirectory::open(path, &Sources::default()).unwrap();
            let capture = directory.capture("point-01-1-users.pcap").unwrap();
            assert_eq!(mode(&capture), 0o600, "while it is taken");
            fs::write(capture, "logins").unwrap();
            directory.add_exchanges(&[exchange(1, READ, 1, 0, 5)], 0).unwrap();
            directory.add_histograms(&run(1));
            directory.keep(&document(&[1]), &[]).unwrap();
            directory.keep_page(&document(&[1])).unwrap();
            finish(directory);
            let files = names(path);
            assert!(files.iter().any(|name| name.ends_with(".pcap")) && files.len() > 4, "{files:?}");
            files.iter().for_each(|name| assert_eq!(mode(&path.join(name)), 0o600, "{name}"));
        }
        assert_eq!([mode(&new), mode(&old)], [0o700, 0o750]);
    }

    #[test]
    fn too_many_exchanges_leave_no_table() {
        let place = tempfile::tempdir().unwrap();
        let mut directory = RunDirectory::open(place.path(), &Sources::default()).unwrap();
        directory.add_exchanges(&[exchange(1, READ, 1, 0, 5)], 0).unwrap();
        directory.add_exchanges(&[], 7).unwrap();
        directory.add_histograms(&run(1));
        directory.keep(&document(&[1]), &[]).unwrap();
        finish(directory);
        assert_eq!(names(place.path()), ["histograms.hgrm", "intervals.parquet", "run.json"]);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        let error = RunDirectory::open(&file, &Sources::default()).err().expect("it is a file");
        assert!(error.to_string().contains(&file.display().to_string()), "{error}");
    }
}
