//! An analysis in parts gives the same report as one process, byte for byte, and the same exchanges: for rotated,
//! overlapping and damaged files, and with a filter.

use smbscope_report::csv::CsvExchangeWriter;
use smbscope_report::json;
use smbscope_run::analysis::parts::{
    AnalysisPlan, FilePart, HostPairPart, Pieces, SerializedParts, divide, follow, from_bytes, merge, received_all,
    shared_sessions, to_bytes,
};
use smbscope_run::analysis::{
    AnalysisError, AnalysisOptions, CaptureInput, CaptureSetAnalysis, ExchangeExport, PreparedAnalysis,
};
use smbscope_testkit::traffic::{Damage, Limit, Mix, Settings, generate};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The files of a capture, and a folder for the intermediate files.
struct Captured {
    folder: TempDir,
    files: Vec<PathBuf>,
}

/// Generates traffic and divides its packets among files. `file` returns the file of packet n of a total.
fn generated(settings: &Settings, files: usize, file: impl Fn(usize, usize) -> usize) -> Captured {
    let mut bytes = Vec::new();
    generate(settings, &mut bytes).expect("a Vec takes everything");
    // Records of a little-endian pcap: the captured length is the third word of their header.
    let (header, mut rest) = bytes.split_at(24);
    let mut records = Vec::new();
    while let Some(length) = rest.get(8..12) {
        let length = 16 + u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        let (record, behind) = rest.split_at(length);
        records.push(record);
        rest = behind;
    }
    let mut contents = vec![header.to_vec(); files];
    let count = records.len();
    records.iter().enumerate().for_each(|(n, record)| contents[file(n, count)].extend_from_slice(record));
    let folder = TempDir::new().expect("a temporary folder can be made");
    let named = |index: usize| folder.path().join(format!("{index:02}.pcap"));
    let files = (0..files).map(named).collect();
    let captured = Captured { folder, files };
    captured
        .files
        .iter()
        .zip(contents)
        .for_each(|(path, content)| fs::write(path, content).expect("it can be written"));
    captured
}

fn rotated(n: usize, count: usize) -> usize {
    n * 8 / count
}

fn site(damage: Damage) -> Settings {
    Settings { damage, ..Settings::new(Mix::Site, 60, Limit::Packets(20_000)) }
}

fn as_json(analysis: CaptureSetAnalysis, options: &AnalysisOptions) -> String {
    let report = analysis.into_report(options).expect("a report");
    let mut text = Vec::new();
    json::write(&report, &mut text).expect("memory takes all");
    String::from_utf8(text).expect("JSON is UTF-8")
}

impl Captured {
    fn inputs(&self) -> Vec<CaptureInput> {
        self.files.iter().map(|path| CaptureInput::File(path.clone())).collect()
    }

    fn whole(&self, options: &AnalysisOptions) -> String {
        as_json(CaptureSetAnalysis::run(&self.inputs(), options, &mut ()).expect("captures"), options)
    }

    fn piece(&self, file: usize, part: usize) -> PathBuf {
        self.folder.path().join(format!("{file}-{part}.piece"))
    }

    fn times(&self, file: usize) -> PathBuf {
        self.folder.path().join(format!("{file}.times"))
    }

    fn divided(&self, parts: usize, options: &AnalysisOptions) -> Vec<FilePart> {
        let of_file = |(file, path): (usize, &PathBuf)| {
            let pieces: Vec<PathBuf> = (0..parts).map(|part| self.piece(file, part)).collect();
            let name = path.display().to_string();
            divide(&CaptureInput::File(path.clone()), &name, options, &pieces, &self.times(file)).expect("a capture")
        };
        self.files.iter().enumerate().map(of_file).collect()
    }

    /// Returns the results of some parts and their exchanges as CSV.
    fn followed(&self, plan: &AnalysisPlan, parts: &[usize], options: &AnalysisOptions) -> (HostPairPart, Vec<u8>) {
        let of_file = |file| Pieces {
            times: self.times(file),
            pieces: parts.iter().map(|part| self.piece(file, *part)).collect(),
        };
        let pieces: Vec<Pieces> = (0..self.files.len()).map(of_file).collect();
        let path = self.folder.path().join("exchanges.csv");
        let table = || CsvExchangeWriter::new(fs::File::create(&path)?).map(Some);
        let part = follow(plan, &pieces, options, 0, table).expect("pieces");
        (part, fs::read(&path).expect("it was written"))
    }

    /// Analyses in this many parts, all of them serialized. Returns the report and the sorted exchanges without their
    /// IDs.
    fn in_parts(&self, parts: usize, options: &AnalysisOptions) -> (String, Vec<String>) {
        let files: Vec<FilePart> =
            self.divided(parts, options).iter().map(|file| from_bytes(&to_bytes(file)).expect("whole")).collect();
        let plan: AnalysisPlan = from_bytes(&to_bytes(&AnalysisPlan::new(&files).expect("few files"))).expect("whole");
        let mut exchanges = Vec::new();
        let mut follow_group = |group: &[usize]| {
            let (part, csv) = self.followed(&plan, group, options);
            exchanges.extend(without_ids(&csv));
            from_bytes(&to_bytes(&part)).expect("whole")
        };
        let mut followed: Vec<HostPairPart> = (0..parts).map(|part| follow_group(&[part])).collect();
        assert!(shared_sessions(&followed).iter().all(|group| group.len() == 1));
        // The order of merging must not matter.
        followed.reverse();
        exchanges.sort();
        (as_json(merge(&plan, files, followed, Vec::new(), options).expect("parts"), options), exchanges)
    }

    fn exchanges(&self, options: &AnalysisOptions) -> Vec<String> {
        let mut bytes = Vec::new();
        let prepared = PreparedAnalysis::as_given(self.inputs(), options.clone());
        let exchanges = ExchangeExport::open(&prepared).expect("captures");
        exchanges.write(CsvExchangeWriter::new(&mut bytes), &mut ()).expect("captures").result.expect("memory");
        let mut exchanges = without_ids(&bytes);
        exchanges.sort();
        exchanges
    }

    fn assert_parts_are_the_whole(&self, options: &AnalysisOptions) {
        let (whole, exchanges) = (self.whole(options), self.exchanges(options));
        for parts in [1, 7] {
            let (report, rows) = self.in_parts(parts, options);
            assert!(rows == exchanges, "exchanges of {parts} parts");
            assert_eq!(report, whole, "{parts} parts");
        }
    }
}

/// Returns the rows after the header, without their first column.
fn without_ids(csv: &[u8]) -> Vec<String> {
    let text = String::from_utf8(csv.to_vec()).expect("CSV is UTF-8");
    text.lines().skip(1).filter_map(|row| Some(row.split_once(',')?.1.to_owned())).collect()
}

#[test]
fn rotated_files_with_connections_through_all_of_them() {
    let captured = generated(&site(Damage::default()), 8, rotated);
    let options = AnalysisOptions::default();
    let first_file = Captured { files: captured.files[..1].to_vec(), folder: TempDir::new().expect("a folder") };
    let through = first_file.whole(&options).matches("\"midstream\": false").count();
    assert!(through > 10, "connections begin in the first file: {through}");
    captured.assert_parts_are_the_whole(&options);
}

#[test]
fn files_that_were_given_in_another_order() {
    let mut captured = generated(&site(Damage::default()), 8, rotated);
    captured.files.swap(1, 6);
    captured.files.rotate_left(3);
    captured.assert_parts_are_the_whole(&AnalysisOptions::default());
}

#[test]
fn files_that_overlap_in_time() {
    // Three interfaces. Two of them stop in the middle, where a fourth begins.
    let file = |n: usize, count: usize| if n < count / 2 { n % 3 } else { [0, 3][n % 2] };
    generated(&site(Damage::default()), 4, file).assert_parts_are_the_whole(&AnalysisOptions::default());
}

#[test]
fn damaged_files_that_are_not_in_order() {
    let damage = Damage { drop: 0.02, duplicate: 0.01, reorder: 0.02 };
    let captured = generated(&site(damage), 8, rotated);
    let bytes = fs::read(&captured.files[5]).expect("it was written");
    fs::write(&captured.files[5], &bytes[..bytes.len() - 7]).expect("it can be written");
    captured.assert_parts_are_the_whole(&AnalysisOptions::default());
    assert!(captured.whole(&AnalysisOptions::default()).contains("05.pcap: "), "the cut file is named");
}

#[test]
fn exchanges_that_a_filter_chooses() {
    let captured = generated(&site(Damage::default()), 8, rotated);
    let filter = Some("group == Read and time >= 0.5s and capture ~ *pcap".parse().expect("a filter"));
    let mut options = AnalysisOptions { filter, ..AnalysisOptions::default() };
    options.reading.threads = Some(1);
    captured.assert_parts_are_the_whole(&options);
}

#[test]
fn bundled_captures() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let folders = [".", "own", "encrypted", "damaged"].map(|folder| data.join(folder));
    let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("captures are bundled"));
    let mut seen = 0;
    for entry in entries {
        let path = entry.expect("it can be read").path();
        let name = path.display().to_string();
        if !name.contains(".pcap") {
            continue;
        }
        let options = AnalysisOptions::default();
        let captured = Captured { folder: TempDir::new().expect("a folder"), files: vec![path] };
        if CaptureSetAnalysis::run(&captured.inputs(), &options, &mut ()).is_err() {
            continue;
        }
        seen += 1;
        assert_eq!(captured.in_parts(5, &options).0, captured.whole(&options), "{name}");
    }
    assert!(seen > 10, "{seen} captures");
}

#[test]
fn what_depends_on_the_order_of_exchanges_is_refused() {
    let captured = generated(&Settings::new(Mix::Office, 3, Limit::Packets(300)), 1, |_, _| 0);
    let options = AnalysisOptions { by: vec![smbscope_stats::Dimension::ALL[0]], ..AnalysisOptions::default() };
    let input = captured.inputs().remove(0);
    let error = divide(&input, "a", &options, &[captured.piece(0, 0)], &captured.times(0)).expect_err("no slices");
    assert!(matches!(error, AnalysisError::InParts(_)) && error.to_string().ends_with("use one process"), "{error}");
}

#[test]
fn a_file_that_is_no_capture_is_an_error_that_names_it() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("notes.txt");
    fs::write(&path, "not a capture, but long enough to be looked at").expect("it can be written");
    let captured = Captured { files: vec![path.clone()], folder };
    let options = AnalysisOptions::default();
    let error = divide(&CaptureInput::File(path), "notes.txt", &options, &[captured.piece(0, 0)], &captured.times(0));
    assert!(matches!(&error, Err(AnalysisError::Capture(_))), "{error:?}");
}

/// Updates the checksum of serialized bytes.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    // The header has a word for the format, its number, and the version preceded by its length.
    let at = 11 + usize::from(bytes[10]);
    let mut sum = !0u32;
    for byte in &bytes[at + 4..] {
        sum ^= u32::from(*byte);
        (0..8).for_each(|_| sum = sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 });
    }
    bytes[at..at + 4].copy_from_slice(&(!sum).to_le_bytes());
    bytes
}

#[test]
fn damaged_parts_with_a_valid_checksum_are_merged_or_named_and_never_panic() {
    let captured = generated(&Settings { ..Settings::new(Mix::Site, 6, Limit::Packets(600)) }, 1, |_, _| 0);
    let options = AnalysisOptions::default();
    let files = captured.divided(2, &options);
    let plan = AnalysisPlan::new(&files).expect("few files");
    let parts: Vec<Vec<u8>> = (0..2).map(|part| to_bytes(&captured.followed(&plan, &[part], &options).0)).collect();
    let (files, plan): (Vec<Vec<u8>>, Vec<u8>) = (files.iter().map(to_bytes).collect(), to_bytes(&plan));
    assert_eq!(sealed(parts[0].clone()), parts[0]);
    let start = 15 + usize::from(plan[10]);
    let seed = std::env::var("PARTS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let runs = std::env::var("PARTS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(1_500u32);
    let mut random = smbscope_testkit::random::Random::new(seed);
    let (mut panics, mut merged, mut named) = (std::collections::BTreeMap::new(), 0, 0);
    for run in 0..runs {
        let mut sent = [&files[..], &parts[..], std::slice::from_ref(&plan)].concat();
        let which = random.below(sent.len() as u64) as usize;
        let bytes = &mut sent[which];
        for _ in 0..=random.below(3) {
            let at = start + random.below((bytes.len() - start) as u64) as usize;
            match random.below(4) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize],
                2 => drop(bytes.splice(at..at + 1, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1])),
                _ => bytes[at] = random.below(256) as u8,
            }
        }
        *bytes = sealed(std::mem::take(bytes));
        let done = std::panic::catch_unwind(|| {
            let (files, rest) = sent.split_at(files.len());
            let (parts, plan) = rest.split_at(parts.len());
            SerializedParts { plan: &plan[0], files, parts }.merged(&[], &options, |analysis| {
                json::write(&analysis.into_report(&options)?, &mut Vec::new()).expect("memory takes all");
                Ok(())
            })
        });
        match done {
            Ok(Ok(())) => merged += 1,
            Ok(Err(error)) => {
                let text = error.to_string();
                let is_named = ["part ", "file ", "the plan"].iter().any(|name| text.starts_with(name));
                // The remaining parts may contain no SMB, which is a valid error.
                assert!(is_named || matches!(error, AnalysisError::NoSmb(_)), "{text}");
                named += u32::from(is_named);
            }
            Err(_) => panics.entry(which).or_insert_with(Vec::new).push(run),
        }
    }
    // Most damage gives values that can be merged, or that don't decode.
    assert!(merged > runs / 10 && named > runs / 10, "{merged} {named}");
    assert!(panics.is_empty(), "{panics:?}");
}

#[test]
fn a_part_that_contradicts_itself_is_named_by_its_place() {
    let captured = generated(&Settings { ..Settings::new(Mix::Site, 6, Limit::Packets(600)) }, 1, |_, _| 0);
    let options = AnalysisOptions::default();
    let files = captured.divided(3, &options);
    let plan = AnalysisPlan::new(&files).expect("few files");
    let parts: Vec<Vec<u8>> = (0..3).map(|part| to_bytes(&captured.followed(&plan, &[part], &options).0)).collect();
    let (files, plan): (Vec<Vec<u8>>, Vec<u8>) = (files.iter().map(to_bytes).collect(), to_bytes(&plan));
    let arrived = SerializedParts { plan: &plan, files: &files, parts: &parts };
    let numbers: Vec<Vec<u8>> = [1u64, 2, 3].iter().map(to_bytes).collect();
    let received = received_all(&numbers, "part", |numbers: Vec<u64>| assert!(!numbers.contains(&2)));
    assert!(received.expect_err("it breaks").to_string().starts_with("part 2 of 3: damaged"));
    let mut cut = parts.clone();
    cut[2].pop();
    let error = SerializedParts { parts: &cut, ..arrived }.merged(&[], &options, |_| Ok(())).expect_err("it is cut");
    assert!(error.to_string().starts_with("part 3 of 3: damaged"), "{error}");
    arrived.merged(&[], &options, |analysis| analysis.into_report(&options).map(drop)).expect("all are whole");
}
