//! `smbscope compare`: reads captures, saved reports and ramps, and writes one comparison.

use crate::analyze::{self, AnalysisOutcome, JunitFile};
use crate::interrupt::InterruptedError;
use crate::output::{self, Output};
use crate::{BadArguments, terminal};
use anyhow::{Context, bail};
use smbscope_capture::reader::CaptureInput;
use smbscope_report::bench::{self, BenchDocument};
use smbscope_report::compare::{self, ComparableDocument, ComparableReport, Comparison, Given};
use smbscope_report::{html, study};
use smbscope_run::RUN;
use smbscope_run::analysis::nearer_to_the_client;
use smbscope_run::files::Sources;
use smbscope_run::options::{AnalysisOptions, CompareFormat, CompareOptions};
use smbscope_run::study::{SavedStudy, beside};
use smbscope_stats::sides::PointSightings;
use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of a saved report. Their lists are bounded, so that they take some ten megabytes at most.
const SAVED_MAX: u64 = 256 << 20;
/// Bytes that distinguish a saved report from a capture.
const HEAD: u64 = 64;

pub(crate) fn run(arguments: &CompareOptions) -> anyhow::Result<()> {
    output::refuse_ending::<CompareFormat>(arguments.format.is_some(), arguments.output.as_deref())?;
    let sides = arguments.sides();
    // Report missing files before anything is read.
    for file in sides.iter().flatten().filter(|file| file.as_os_str() != "-") {
        file.metadata().with_context(|| format!("cannot open {}", file.display()))?;
    }
    let files: Vec<CaptureInput> = sides.iter().flatten().map(|file| CaptureInput::from_argument(*file)).collect();
    let mut sources = Sources::of_inputs(&files);
    arguments.reading.decryption.files().for_each(|file| sources.add(file));
    let mut output = Output::open(arguments.output.as_deref(), &sources)?;
    if arguments.format() == CompareFormat::Html {
        output.refuse_terminal("HTML")?;
    }
    let names = names(&sides.iter().map(|files| files[0]).collect::<Vec<_>>(), &arguments.names);
    if sides.iter().all(|files| matches!(files.as_slice(), [file] if SavedStudy::is_in(file))) {
        return studies(arguments, &sides.concat(), &names, output);
    }
    let junit = JunitFile::open(arguments.junit.as_deref(), &sources, &output)?;
    let mut reader = ComparisonReader { arguments, sightings: Vec::new() };
    let mut inputs = Vec::new();
    for (files, name) in sides.iter().zip(names) {
        // Each variant of a study is a side.
        if let [file] = files.as_slice()
            && SavedStudy::is_in(file)
        {
            for (variant, places) in SavedStudy::open(file, &name)?.variants() {
                let runs = reader.contents(&places)?;
                inputs.extend((!runs.is_empty()).then(|| Given { name: format!("{name}: {variant}"), runs }));
            }
            continue;
        }
        let mut runs = Vec::new();
        for file in files {
            let places = repetitions(file)?.unwrap_or_else(|| vec![file.to_path_buf()]);
            runs.extend(reader.contents(&places)?);
        }
        inputs.push(Given { name, runs });
    }
    let mut comparison = Comparison::of_all(arguments.title.clone(), &inputs);
    if let Some(near) = reader.nearer_to_the_client() {
        comparison.say_same_traffic(near);
    }
    let result = match arguments.format() {
        CompareFormat::Json => compare::write(&comparison, env!("CARGO_PKG_VERSION"), output.writer()),
        CompareFormat::Html => html::write_comparison(&comparison, env!("CARGO_PKG_VERSION"), output.writer()),
        CompareFormat::Markdown => output.writer().write_all(compare::markdown(&comparison).as_bytes()),
        CompareFormat::Text => {
            let (width, color) = (output.width(arguments.terminal.width), output.takes_color(arguments.terminal.color));
            output.writer().write_all(compare::render(&comparison, width, color).as_bytes())
        }
    };
    output.settle(result)?;
    let judged = compare::judge(&arguments.fail_if, &inputs, &comparison, arguments.strict)?;
    analyze::settle_conditions("compare", judged, junit)
}

/// Compares studies variant by variant; the result is a study.
fn studies(
    arguments: &CompareOptions,
    directories: &[&Path],
    names: &[String],
    mut output: Output,
) -> anyhow::Result<()> {
    let of_runs = [("--fail-if", !arguments.fail_if.is_empty()), ("--by", !arguments.by.is_empty())];
    if let Some((option, _)) = of_runs.into_iter().find(|(_, given)| *given) {
        let text = "is for runs and captures: name the directories of variants, such as";
        let example = directories[0].display();
        return Err(BadArguments(format!("{option} {text} {example}/VARIANT")).into());
    }
    let made: Result<Vec<SavedStudy>, _> =
        directories.iter().zip(names).map(|(directory, name)| SavedStudy::open(directory, name)).collect();
    let document = beside(arguments.title.clone(), &made?)?;
    let result = match arguments.format() {
        CompareFormat::Json => study::write(&document, output.writer()),
        CompareFormat::Html => html::write_study(&document, output.writer()),
        CompareFormat::Markdown => output.writer().write_all(study::markdown(&document).as_bytes()),
        CompareFormat::Text => {
            let (width, color) = (output.width(arguments.terminal.width), output.takes_color(arguments.terminal.color));
            output.writer().write_all(study::render(&document, width, color).as_bytes())
        }
    };
    output.settle(result)
}

/// Returns the run directories in a directory that is not one itself, in numeric order.
fn repetitions(directory: &Path) -> anyhow::Result<Option<Vec<PathBuf>>> {
    if !directory.is_dir() || directory.join(RUN).exists() {
        return Ok(None);
    }
    let unreadable = || format!("cannot read {}", directory.display());
    let mut runs = Vec::new();
    for entry in directory.read_dir().with_context(unreadable)? {
        let place = entry.with_context(unreadable)?.path();
        if place.join(RUN).is_file() {
            runs.push(place);
        }
    }
    let number = |place: &Path| place.file_name()?.to_str()?.parse::<u64>().ok();
    runs.sort_by_cached_key(|place| (number(place), place.clone()));
    Ok((!runs.is_empty()).then_some(runs))
}

/// Reads the sides of a comparison. Keeps the exchanges of two captures, which may be of the same traffic.
struct ComparisonReader<'a> {
    arguments: &'a CompareOptions,
    sightings: Vec<PointSightings>,
}

impl ComparisonReader<'_> {
    fn has_two_files(&self) -> bool {
        matches!(self.arguments.sides().as_slice(), [one, other] if one.len() == 1 && other.len() == 1)
    }

    /// Returns the side that was captured nearer to the client, if both are captures of the same traffic.
    fn nearer_to_the_client(&self) -> Option<usize> {
        let [one, other] = self.sightings.as_slice() else { return None };
        nearer_to_the_client([one, other])
    }

    fn contents(&mut self, places: &[PathBuf]) -> anyhow::Result<Vec<(String, ComparableDocument)>> {
        places.iter().map(|place| Ok((place.display().to_string(), self.content(place)?))).collect()
    }

    /// Reads a file or directory, and checks that it has the requested slices.
    fn content(&mut self, file: &Path) -> anyhow::Result<ComparableDocument> {
        let content = self.read(file)?;
        let by: Vec<&str> = self.arguments.by.iter().map(|by| by.name()).collect();
        if !by.is_empty() && by != content.by() {
            let (source, by) = (file.display(), by.join(","));
            bail!("{source} has no slices by {by}: give the capture, or a report or run that was made with --by {by}");
        }
        Ok(content)
    }

    fn read(&mut self, file: &Path) -> anyhow::Result<ComparableDocument> {
        let name = file.display().to_string();
        let run = file.join(RUN);
        let captures = match file.is_dir() && !run.exists() {
            true => CaptureInput::from_arguments([file]),
            false => Ok(vec![CaptureInput::from_argument(file)]),
        };
        if file.is_dir() && (run.exists() || captures.is_err()) {
            let text = saved(&run).with_context(|| format!("cannot read {}", run.display()))?;
            let text = text.with_context(|| format!("{name}: a directory without captures or a {RUN} of bench"))?;
            let ramp = BenchDocument::parse(&text).with_context(|| format!("{}: no ramp", run.display()))?;
            return Ok(ComparableDocument::Ramp(Box::new(ramp)));
        }
        if let Some(text) = saved(file).with_context(|| format!("cannot read {name}"))? {
            if matches!(bench::schema_of(&text), Ok(Some(schema)) if schema == bench::SCHEMA) {
                let ramp = BenchDocument::parse(&text).with_context(|| format!("{name}: no ramp"))?;
                return Ok(ComparableDocument::Ramp(Box::new(ramp)));
            }
            let report = ComparableReport::parse(&text).with_context(|| format!("{name}: no report"))?;
            return Ok(ComparableDocument::Report(Box::new(report)));
        }
        let AnalysisOutcome { report, notes, interrupted, sightings } = analyze::report_on(
            &captures?,
            &AnalysisOptions { sightings: self.has_two_files(), ..self.arguments.analysis() },
            self.arguments.terminal.progress.quiet,
        )?;
        if interrupted {
            return Err(
                InterruptedError::with(format!("interrupted while reading {name}; nothing was compared")).into()
            );
        }
        self.sightings.extend(sightings);
        let named = |note: &String| if note.starts_with(&name) { note.clone() } else { format!("{name}: {note}") };
        terminal::warn(&notes.iter().map(named).collect::<Vec<_>>());
        Ok(ComparableDocument::Report(Box::new(ComparableReport::from_report(&report))))
    }
}

/// Reads a file that starts like JSON. Returns `None` for any other file, and for pipes, which can't be read twice.
fn saved(file: &Path) -> std::io::Result<Option<Vec<u8>>> {
    if file.as_os_str() == "-" || !file.is_file() {
        return Ok(None);
    }
    let mut open = File::open(file)?;
    let mut text = Vec::new();
    open.by_ref().take(HEAD).read_to_end(&mut text)?;
    if !begins_as_json(&text) {
        return Ok(None);
    }
    open.take(SAVED_MAX).read_to_end(&mut text)?;
    if text.len() as u64 > SAVED_MAX {
        let most = SAVED_MAX >> 20;
        return Err(std::io::Error::other(format!("it begins as a report does, but is larger than {most} MiB")));
    }
    Ok(Some(text))
}

/// Returns true for an object after optional blanks. A pcapng block type consists of line ends, but is not JSON.
fn begins_as_json(head: &[u8]) -> bool {
    !head.starts_with(b"\n\r\r\n") && head.trim_ascii_start().first() == Some(&b'{')
}

/// Returns the column titles: as requested, or file names without directory and extensions. Duplicates get a number.
fn names(files: &[impl AsRef<Path>], wanted: &[String]) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut names = Vec::new();
    for (at, file) in files.iter().enumerate() {
        let name = wanted.get(at).cloned().unwrap_or_else(|| stem(file.as_ref()));
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
        let free = free.expect("there are more numbers than files");
        taken.insert(free.clone());
        names.push(free);
    }
    names
}

const ENDINGS: [&str; 11] = ["gz", "zst", "lz4", "xz", "pcap", "pcapng", "cap", "snoop", "dmp", "ntar", "json"];

fn stem(file: &Path) -> String {
    if file.as_os_str() == "-" {
        return "standard input".to_owned();
    }
    // Resolves `.` and paths that end with `..`.
    let whole = file.file_name().is_none().then(|| file.canonicalize().ok()).flatten();
    let file = whole.as_deref().unwrap_or(file);
    let file = match file.parent() {
        Some(directory) if file.ends_with(RUN) && directory.file_name().is_some() => directory,
        _ => file,
    };
    let mut name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    while let Some((rest, ending)) = name.rsplit_once('.')
        && !rest.is_empty()
        && ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending))
    {
        name = rest.to_owned();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Verb};
    use clap::Parser;
    use serde_json::json;
    use std::fs;

    #[test]
    fn columns_are_called_by_their_files_and_never_the_same() {
        let files = [
            "a/monday.pcap.zst",
            "b/monday.JSON",
            "10.0.0.1.cap",
            ".json",
            "-",
            "monday-2",
            "x/new/run.json",
            "run.json",
        ];
        let expected = ["monday", "monday-2", "10.0.0.1", ".json", "standard input", "monday-2-2", "new", "run"];
        assert_eq!(names(&files, &[]), expected);
        assert_eq!(names(&files[..3], &["before".to_owned(), "before".to_owned()]), ["before", "before-2", "10.0.0.1"]);
        let here = std::env::current_dir().expect("there is one");
        let here = here.file_name().expect("tests do not run in /").to_string_lossy();
        assert_eq!(names(&["."], &[]), [here.as_ref()]);
    }

    /// Returns a ramp as bench writes it, with five commands at each load point.
    fn ramp(users: &[u32]) -> serde_json::Value {
        let times = json!({ "count": 5, "p50": 50_000 });
        let total = json!({ "client": times });
        let run = |users: &u32| {
            json!({
                "users": users, "started_ns": 0, "duration_ns": 10_000_000_000u64, "warmup_ns": 0,
                "ended": { "how": "done" }, "pace": { "loop": "closed" },
                "operations": 5, "operations_per_second": 0.5, "bytes_read": 0, "bytes_written": 0,
                "errors": {}, "total": total, "groups": [], "commands": [], "workload_operations": [],
                "intervals": [], "connects": times, "failures": {}, "unanswered": 0, "stalls": [], "connect_commands": {},
                "hosts": [],
            })
        };
        json!({
            "schema": bench::SCHEMA,
            "generator": { "name": "smbscope", "version": "0.1.0" },
            "target": { "host": "files", "port": 445, "share": "share", "signing": "off", "encryption": "off" },
            "workload": { "name": "echo", "parameters": {} },
            "settings": {
                "schedule": { "loop": "closed", "think_ns": 0 }, "users": users, "rates": [], "duration_ns": 10_000_000_000u64,
                "warmup_ns": 0, "threads": 1, "sessions_per_user": 1, "connections_per_session": 1,
                "busy_poll": false, "capture": false,
            },
            "answer": smbscope_report::Answer::default(), "started_ns": 0, "environment": {},
            "runs": users.iter().map(run).collect::<Vec<_>>(), "warnings": [],
        })
    }

    /// Runs the command line and returns the comparison as JSON.
    fn compared(place: &Path, files: [&str; 2]) -> anyhow::Result<serde_json::Value> {
        let out = place.join("out.json");
        let options = ["smbscope", "compare", "--format", "json", "--output"].map(PathBuf::from);
        let files = files.map(|file| place.join(file));
        let line = options.into_iter().chain([out.clone()]).chain(files);
        let Verb::Compare(arguments) = Arguments::parse_from(line).verb else { panic!("the line says compare") };
        run(&arguments)?;
        Ok(serde_json::from_slice(&fs::read(out)?)?)
    }

    #[test]
    fn run_directories_are_compared_at_the_load_that_both_have() {
        let place = tempfile::tempdir().unwrap();
        for (name, users) in [("monday", [1, 8]), ("tuesday", [8, 16])] {
            let directory = place.path().join(name);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join(RUN), ramp(&users).to_string()).unwrap();
        }
        let found = compared(place.path(), ["monday", "tuesday/run.json"]).unwrap();
        let columns = found["columns"].as_array().unwrap();
        assert_eq!([&columns[0]["name"], &columns[1]["name"]], ["monday", "tuesday"]);
        let ramps = &found["ramps"];
        assert_eq!([&ramps["columns"][0]["users"], &ramps["columns"][1]["users"]], [8, 8]);
        let loads: Vec<u64> =
            ramps["points"].as_array().unwrap().iter().map(|p| p["users"].as_u64().unwrap()).collect();
        assert_eq!(loads, [1, 8, 16]);
        assert_eq!(ramps["points"][1]["total"][1]["ratios"]["p50"]["value"], 1.0);
        assert!(ramps["points"][2]["total"][0].is_null());
    }

    #[test]
    fn a_directory_of_runs_is_one_side() {
        let place = tempfile::tempdir().unwrap();
        for (name, numbers) in [("old", [1, 2, 3, 10, 11]), ("new", [1, 2, 3, 4, 5])] {
            for number in numbers {
                let directory = place.path().join(name).join(number.to_string());
                fs::create_dir_all(&directory).unwrap();
                fs::write(directory.join(RUN), ramp(&[8]).to_string()).unwrap();
            }
        }
        // A directory without a run is ignored.
        fs::create_dir(place.path().join("new/6")).unwrap();
        let order: Vec<PathBuf> = repetitions(&place.path().join("old")).unwrap().expect("there are runs");
        assert!(order[3].ends_with("old/10") && order[4].ends_with("old/11"), "{order:?}");
        let found = compared(place.path(), ["old", "new"]).unwrap();
        let columns = found["columns"].as_array().unwrap();
        assert_eq!(columns.iter().map(|column| column["name"].as_str().unwrap()).collect::<Vec<_>>(), ["old", "new"]);
        assert_eq!([&columns[0]["runs"], &columns[1]["runs"]], [5, 5]);
        let ratio = &found["headline"]["cells"][1]["ratios"]["p50"];
        assert_eq!(ratio["certainty"]["answer"], "equal");
        assert_eq!(ratio["certainty"]["repetitions"], 5);
    }

    #[test]
    fn a_directory_that_is_no_run_is_named() {
        let place = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        let error = crate::one_line(&compared(place.path(), ["a", "b"]).unwrap_err());
        assert!(error.ends_with("/a: a directory without captures or a run.json of bench"), "{error}");
    }

    #[test]
    fn a_report_is_told_from_a_capture_by_its_first_character() {
        assert!(begins_as_json(b"{\"schema\"") && begins_as_json(b"\n  {"));
        // pcapng whose first block has a length of 0x7b000000 in one byte order; pcap; an empty file.
        assert!(![&b"\n\r\r\n{\0\0\0"[..], b"\xd4\xc3\xb2\xa1", b"", b"[]"].into_iter().any(begins_as_json));
    }
}
