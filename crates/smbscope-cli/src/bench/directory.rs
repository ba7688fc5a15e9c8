//! The run directory: `run.json`, `intervals.parquet`, `exchanges.parquet`, `histograms.hgrm` and `server.parquet`.
//!
//! Every file is written beside its place and then renamed, and `run.json` last, so whatever is there is whole and of one
//! run. After each load point all but the exchanges are written anew: an interrupted run leaves what was finished. A
//! directory that holds something and no `run.json` of ours is another's, and is refused.

use anyhow::{Context, bail};
use smbscope_load::engine::result::Run;
use smbscope_model::{Exchange, Group, Quality, Timestamp};
use smbscope_report::bench::histograms::{self, TaggedHistogram};
use smbscope_report::bench::tables::{self, ServerMetric};
use smbscope_report::bench::{self, Document};
use smbscope_report::parquet::ExchangeWriter;
use smbscope_report::table::{ExchangeTable, Provenance};
use smbscope_stats::{Limit, Summary};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What `compare` looks for.
pub(crate) const RUN: &str = "run.json";
const INTERVALS: &str = "intervals.parquet";
const EXCHANGES: &str = "exchanges.parquet";
const HISTOGRAMS: &str = "histograms.hgrm";
const SERVER: &str = "server.parquet";

/// The report as a page.
pub(crate) const PAGE: &str = "report.html";

/// All that a run directory holds, beside captures.
const FILES: [&str; 6] = [RUN, INTERVALS, EXCHANGES, HISTOGRAMS, SERVER, PAGE];

/// What is added to the name of a file that is not whole yet.
const PARTIAL: &str = ".partial";

/// Bytes of a `run.json` that are looked at to tell whose it is.
const HEAD: u64 = 4 << 10;

/// A directory that a run is kept in.
pub(crate) struct RunDirectory {
    path: PathBuf,
    /// What an earlier run left and is still there, with the time of its last change: a capture may be written anew
    /// before anything is kept.
    earlier: Vec<(PathBuf, Option<SystemTime>)>,
    exchanges: Table,
    histograms: Vec<TaggedHistogram>,
}

/// The exchange table.
enum Table {
    NotBegun,
    Open {
        writer: Box<ExchangeWriter<BufWriter<File>>>,
        next: u64,
    },
    /// Not every command was kept, and a part would be taken for the whole.
    GivenUp,
}

impl RunDirectory {
    /// Makes the directory, or takes over one that is empty or holds an earlier run. Nothing of the earlier run is
    /// touched before there is something to put in its place.
    pub(crate) fn open(path: &Path) -> anyhow::Result<RunDirectory> {
        let shown = path.display();
        fs::create_dir_all(path).with_context(|| format!("cannot make the run directory {shown}"))?;
        let entries: Vec<PathBuf> = fs::read_dir(path)
            .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
            .with_context(|| format!("cannot look into the run directory {shown}"))?;
        let name =
            |entry: &Path| entry.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let is_partial = |entry: &Path| {
            let name = name(entry);
            name.strip_suffix(PARTIAL).is_some_and(|name| FILES.contains(&name))
        };
        // Captures are there before the first load point is over.
        let is_passing = |entry: &Path| is_partial(entry) || is_capture(&name(entry));
        if !is_run(&path.join(RUN)) && !entries.iter().all(|entry| is_passing(entry)) {
            bail!("{shown} holds something, and no run.json of a run: name a new or empty directory for the results");
        }
        for partial in entries.iter().filter(|entry| is_partial(entry)) {
            fs::remove_file(partial).with_context(|| format!("cannot remove {}", partial.display()))?;
        }
        let is_ours = |entry: &&PathBuf| FILES.contains(&name(entry).as_str()) || is_capture(&name(entry));
        let earlier = entries.iter().filter(is_ours).map(|file| (file.clone(), changed(file))).collect();
        Ok(RunDirectory { path: path.to_owned(), earlier, exchanges: Table::NotBegun, histograms: Vec::new() })
    }

    /// Takes the response times of a load point, by group.
    pub(crate) fn add_histograms(&mut self, run: &Run) {
        let mut add = |group: &str, summary: &Summary| {
            if let Some(histogram) = summary.histogram().filter(|histogram| !histogram.is_empty()) {
                self.histograms.push(TaggedHistogram {
                    users: run.users,
                    group: group.to_owned(),
                    started: run.started,
                    duration: super::document::nanos(run.duration),
                    histogram,
                });
            }
        };
        add(histograms::ALL, &run.total);
        let mut other = Summary::new(Limit::ROW);
        for (group, summary) in &run.groups {
            add(group.name(), summary);
            if group.is_other() {
                other.merge(summary);
            }
        }
        debug_assert!(Group::ALL.iter().all(|group| group.name() != bench::OTHER));
        add(bench::OTHER, &other);
    }

    /// Adds the commands of a load point to the exchange table. Once some were left out there is no table: histograms
    /// hold them all.
    pub(crate) fn add_exchanges(&mut self, exchanges: &[Exchange], left_out: u64) -> anyhow::Result<()> {
        if left_out > 0 {
            self.exchanges = Table::GivenUp;
            return Ok(());
        }
        if let Err(error) = self.append(exchanges) {
            // A table that is not whole is none, and what is full has other things to hold.
            self.exchanges = Table::GivenUp;
            let partial = self.partial(EXCHANGES);
            let _gone_or_to_stay = fs::remove_file(&partial);
            return Err(error).with_context(|| format!("cannot write {}", partial.display()));
        }
        Ok(())
    }

    fn append(&mut self, exchanges: &[Exchange]) -> io::Result<()> {
        if let Table::NotBegun = self.exchanges {
            let file = BufWriter::new(File::create(self.partial(EXCHANGES))?);
            self.exchanges = Table::Open { writer: Box::new(ExchangeWriter::new(file)?), next: 1 };
        }
        if let Table::Open { writer, next } = &mut self.exchanges {
            for exchange in exchanges {
                writer.write(exchange, *next, &[])?;
                *next += 1;
            }
        }
        Ok(())
    }

    /// Writes what is known so far, after each load point.
    pub(crate) fn keep(&mut self, document: &Document, server: &[ServerMetric]) -> anyhow::Result<()> {
        self.remove_earlier()?;
        self.replace(INTERVALS, |out| tables::write_intervals(&document.runs, out))?;
        if !self.histograms.is_empty() {
            let start = document.runs.iter().map(|run| run.started_ns).min().unwrap_or(Timestamp(0));
            self.replace(HISTOGRAMS, |out| histograms::write(start, &self.histograms, out))?;
        }
        if !server.is_empty() {
            self.replace(SERVER, |out| tables::write_server(server, out))?;
        }
        self.replace(RUN, |out| bench::write(document, out))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the exchange table.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let partial = self.partial(EXCHANGES);
        match std::mem::replace(&mut self.exchanges, Table::NotBegun) {
            Table::Open { writer, .. } => {
                let provenance = Provenance {
                    version: env!("CARGO_PKG_VERSION"),
                    captures: &[],
                    quality: &Quality::default(),
                    skipped: &[],
                    filter: None,
                };
                let place = self.path.join(EXCHANGES);
                let result = writer.finish(&provenance).and_then(|()| settle(&partial, &place));
                if result.is_err() {
                    let _gone_or_to_stay = fs::remove_file(&partial);
                }
                result.with_context(|| format!("cannot write {}", place.display()))?;
            }
            Table::GivenUp if partial.exists() => {
                fs::remove_file(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
            }
            Table::GivenUp | Table::NotBegun => {}
        }
        Ok(())
    }

    /// First what says that the others belong together.
    fn remove_earlier(&mut self) -> anyhow::Result<()> {
        let mut earlier = std::mem::take(&mut self.earlier);
        earlier.sort_by_key(|(file, _)| !file.ends_with(RUN));
        for (file, _) in earlier.into_iter().filter(|(file, before)| changed(file) == *before) {
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", file.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes a file whole or not at all.
    fn replace(&self, name: &str, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> anyhow::Result<()> {
        let (partial, place) = (self.partial(name), self.path.join(name));
        let result = File::create(&partial).and_then(|file| {
            let mut out = BufWriter::new(file);
            write(&mut out)?;
            out.flush()?;
            settle(&partial, &place)
        });
        result.with_context(|| format!("cannot write {}", place.display()))
    }

    fn partial(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{PARTIAL}"))
    }
}

/// Puts a file that is whole in its place; what the disk does not have yet would be lost with the power.
fn settle(partial: &Path, place: &Path) -> io::Result<()> {
    File::open(partial)?.sync_all()?;
    fs::rename(partial, place)
}

/// Whether a capture of a load point is called so: `point-02-8-users.pcap`, or what its program said, which is there while
/// it is taken.
fn is_capture(name: &str) -> bool {
    let name = name.strip_suffix(".pcap").or_else(|| name.strip_suffix(".log"));
    let number = name.and_then(|name| name.strip_prefix("point-")?.strip_suffix("-users"));
    number.is_some_and(|number| number.bytes().all(|c| c.is_ascii_digit() || c == b'-'))
}

/// When a file was last changed.
fn changed(file: &Path) -> Option<SystemTime> {
    file.metadata().and_then(|metadata| metadata.modified()).ok()
}

/// Whether the file is a `run.json`, going by how it begins.
fn is_run(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.is_ok() && String::from_utf8_lossy(&head).contains(&format!("\"schema\": \"{}\"", bench::SCHEMA))
}

#[cfg(test)]
mod tests {
    use super::super::document::tests::{READ, document, exchange, run};
    use super::*;
    use std::time::Duration;

    fn names(path: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn read(path: &Path) -> Document {
        Document::parse(&fs::read(path.join(RUN)).unwrap()).unwrap()
    }

    #[test]
    fn a_run_directory_holds_what_was_finished_after_each_load_point() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("new/results");
        let mut directory = RunDirectory::open(&path).unwrap();
        directory.add_histograms(&run(1));
        directory.add_exchanges(&[exchange(1, READ, 1, 0, 5)], 0).unwrap();
        directory.keep(&document(&[1]), &[]).unwrap();
        // As if the process were killed here.
        assert_eq!(names(&path), ["exchanges.parquet.partial", "histograms.hgrm", "intervals.parquet", "run.json"]);
        assert_eq!(read(&path), document(&[1]));
        let metric = ServerMetric { time: Timestamp(0), metric: "cpu".into(), value: 1.0, unit: "percent".into() };
        directory.keep(&document(&[1, 8]), &[metric]).unwrap();
        directory.finish().unwrap();
        let all = ["exchanges.parquet", "histograms.hgrm", "intervals.parquet", "run.json", "server.parquet"];
        assert_eq!(names(&path), all);
        assert_eq!(read(&path).runs.len(), 2);
    }

    #[test]
    fn a_directory_of_someone_else_is_refused_and_left_alone() {
        for (name, text) in [("letter.txt", "dear"), ("run.json", "{\"schema\": \"another/1\"}")] {
            let place = tempfile::tempdir().unwrap();
            fs::write(place.path().join(name), text).unwrap();
            let error = RunDirectory::open(place.path()).err().expect("it is another's").to_string();
            assert!(error.contains("name a new or empty directory"), "{error}");
            assert_eq!(fs::read_to_string(place.path().join(name)).unwrap(), text);
        }
    }

    #[test]
    fn an_earlier_run_stays_until_there_is_something_in_its_place() {
        let place = tempfile::tempdir().unwrap();
        let mut first = RunDirectory::open(place.path()).unwrap();
        first.add_exchanges(&[exchange(1, READ, 1, 0, 5)], 0).unwrap();
        first.keep(&document(&[1]), &[]).unwrap();
        first.finish().unwrap();
        for name in ["point-01-1-users.pcap", "point-02-8-users.pcap", "notes.txt"] {
            fs::write(place.path().join(name), "earlier").unwrap();
        }
        let mut second = RunDirectory::open(place.path()).unwrap();
        assert_eq!(read(place.path()), document(&[1]));
        // The second run has taken its first capture before anything is kept.
        let capture = File::create(place.path().join("point-01-1-users.pcap")).unwrap();
        capture.set_modified(SystemTime::now() + Duration::from_secs(1)).unwrap();
        second.keep(&document(&[2]), &[]).unwrap();
        second.finish().unwrap();
        // The exchanges of the first are not taken for those of the second.
        assert_eq!(names(place.path()), ["intervals.parquet", "notes.txt", "point-01-1-users.pcap", "run.json"]);
        assert_eq!(read(place.path()).runs[0].users, 2);
    }

    #[test]
    fn too_many_exchanges_leave_no_table() {
        let place = tempfile::tempdir().unwrap();
        let mut directory = RunDirectory::open(place.path()).unwrap();
        directory.add_exchanges(&[exchange(1, READ, 1, 0, 5)], 0).unwrap();
        directory.add_exchanges(&[], 7).unwrap();
        directory.add_histograms(&run(1));
        directory.keep(&document(&[1]), &[]).unwrap();
        directory.finish().unwrap();
        assert_eq!(names(place.path()), ["histograms.hgrm", "intervals.parquet", "run.json"]);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        let error = RunDirectory::open(&file).err().expect("it is a file");
        assert!(error.to_string().contains(&file.display().to_string()), "{error}");
    }
}
