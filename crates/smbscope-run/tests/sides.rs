//! Captures of the same traffic at client and server, made from one capture by arithmetic: the way between the points
//! and the clock of the server are known to the nanosecond.

use smbscope_model::Timestamp;
use smbscope_report::Report;
use smbscope_report::csv::CsvExchangeWriter;
use smbscope_run::analysis::{
    AnalysisOptions, CaptureInput, CaptureSetAnalysis, ExchangeExport, PreparedAnalysis, nearer_to_the_client,
};
use smbscope_stats::sides::PathSegment;
use smbscope_testkit::recording::{Kept, Recording};
use std::fs;
use std::path::{Path, PathBuf};

const MS: i64 = 1_000_000;
const S: i64 = 1_000 * MS;

fn capture(name: &str) -> Recording {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(name);
    Recording::read(&data).expect("a bundled capture")
}

/// Returns what client and server see of traffic captured at the server if the way between them takes time: whatever
/// follows a response is later by one more round trip.
fn both_points(server: &Recording, there: i64, back: i64) -> [Vec<Kept>; 2] {
    let (mut later, mut answered) = (0, false);
    let seen = |kept: Kept| {
        let from_client = server.direction(kept.origin).is_none_or(|direction| direction % 2 == 0);
        if from_client && answered {
            later += there + back;
        }
        answered = !from_client;
        let way = if from_client { -there } else { back };
        let at = |way: i64| Kept { time: Timestamp(kept.time.0 + later + way), ..kept };
        (at(way), at(0))
    };
    let (client, server) = server.undamaged().into_iter().map(seen).unzip();
    [client, server]
}

/// Returns the packets with the times of another clock, which steps in the middle.
fn by_clock(packets: Vec<Kept>, offset: i64, drift_ppm: f64, step: i64) -> Vec<Kept> {
    let (first, middle) = (packets[0].time.0, packets[packets.len() / 2].time.0);
    let stepped = |time: Timestamp| if time.0 < middle { 0 } else { step };
    let shown = |time: Timestamp| time.0 + offset + ((time.0 - first) as f64 * drift_ppm / 1e6) as i64 + stepped(time);
    packets.into_iter().map(|kept| Kept { time: Timestamp(shown(kept.time)), ..kept }).collect()
}

fn report(files: &[PathBuf], options: &AnalysisOptions) -> Report {
    let inputs: Vec<CaptureInput> = files.iter().cloned().map(CaptureInput::File).collect();
    CaptureSetAnalysis::run(&inputs, options, &mut ()).expect("captures").into_report(options).expect("a report")
}

fn only_segment(report: &Report) -> &PathSegment {
    let sides = report.sides.as_ref().expect("captures of both sides");
    assert_eq!(sides.points.iter().map(|point| point.name.as_str()).collect::<Vec<_>>(), ["client", "server"]);
    &sides.segments[0]
}

#[test]
fn the_way_is_exact_whatever_the_clocks_show() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = capture("demo-smb1-netbench.pcap.zst");
    let [client_file, server_file] = ["client.pcap", "server.pcap"].map(|name| directory.path().join(name));
    for (there, back, offset, drift, step) in [
        (2 * MS, 30 * MS, 37 * S, 0.0, 0),
        (MS, MS, -3 * 3_600 * S, 0.0, 0),
        (8 * MS, 8 * MS, 5 * S, 80.0, 0),
        (2 * MS, 30 * MS, 0, 0.0, 2 * S),
        (MS, 3 * MS, 0, -80.0, -2 * S),
    ] {
        let [at_client, at_server] = both_points(&server, there, back);
        fs::write(&client_file, server.to_pcap(&at_client)).expect("room");
        fs::write(&server_file, server.to_pcap(&by_clock(at_server, offset, drift, step))).expect("room");
        // In whatever order.
        let files = [server_file.clone(), client_file.clone()];
        let report = report(&files, &AnalysisOptions::default());
        let segment = only_segment(&report);
        let whole = self::report(std::slice::from_ref(&client_file), &AnalysisOptions::default());
        let complete = whole.aggregate.total.timed;
        assert!(segment.pairs >= complete * 99 / 100, "{} of {complete} paired", segment.pairs);
        assert_eq!((segment.rewritten, segment.terminated), (0, 0));
        let trip = there + back;
        assert!((segment.round_trip_ns.0 - trip).abs() < 5_000, "{:?}", segment.round_trip_ns);
        assert!(segment.clock.uncertainty_ns.0 >= (back - there).abs() / 2 - 5_000, "{:?}", segment.clock);
        assert_eq!(segment.clock.steps, u64::from(step != 0), "{:?}", segment.clock);
        let queued = [&segment.queued_to_server, &segment.queued_to_client].map(|queue| queue.max.unwrap_or_default());
        let allowed = ((there + back) / 20).max(100_000);
        assert!(queued.iter().all(|time| time.0 < allowed), "unexpected queue: {queued:?}");
        assert_eq!(report.aggregate.total.timed, complete, "all figures come from the capture at the client");
        let evidence = &report.explanation.answer.evidence;
        assert!(evidence.iter().any(|said| said.contains("pass between client and server")), "{evidence:?}");
    }
}

/// The capture at the server begins in the middle of the connections, ends early, and has other snap lengths.
#[test]
fn what_both_points_saw_is_compared() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = capture("demo-smb1-netbench.pcap.zst");
    let files = ["client.pcap", "server.pcap"].map(|name| directory.path().join(name));
    let [at_client, at_server] = both_points(&server, 4 * MS, 12 * MS);
    let third = at_server.len() / 3;
    let cut: Vec<Kept> = at_server[third..2 * third].iter().map(|kept| Kept { snap: 200, ..*kept }).collect();
    fs::write(&files[0], server.to_pcap(&at_client)).expect("room");
    fs::write(&files[1], server.to_pcap(&by_clock(cut.clone(), -3_600 * S, 40.0, 0))).expect("room");
    let report = report(&files, &AnalysisOptions::default());
    let segment = only_segment(&report);
    let alone = directory.path().join("alone.pcap");
    fs::write(&alone, server.to_pcap(&cut)).expect("room");
    let seen = self::report(&[alone], &AnalysisOptions::default()).aggregate.total.timed;
    assert!(segment.pairs >= seen * 99 / 100, "{} of {seen} paired", segment.pairs);
    assert!((segment.round_trip_ns.0 - 16 * MS).abs() < 5_000, "{:?}", segment.round_trip_ns);
    assert_eq!((segment.lost_to_server, segment.lost_to_client), (Some(0), Some(0)));
    assert!(segment.packets_to_client <= third as u64 && segment.packets_to_server <= third as u64);
}

#[test]
fn the_exchange_table_has_each_exchange_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = capture("demo-smb1-netbench.pcap.zst");
    let files = ["client.pcap", "server.pcap"].map(|name| directory.path().join(name));
    for (file, packets) in files.iter().zip(both_points(&server, MS, MS)) {
        fs::write(file, server.to_pcap(&packets)).expect("room");
    }
    let rows = |files: &[PathBuf]| {
        let inputs: Vec<CaptureInput> = files.iter().cloned().map(CaptureInput::File).collect();
        let options = AnalysisOptions::default();
        let prepared = PreparedAnalysis::new(&inputs, &options, &mut ()).expect("captures");
        let mut table = Vec::new();
        let exchanges = ExchangeExport::open(&prepared).expect("captures");
        exchanges.write(CsvExchangeWriter::new(&mut table), &mut ()).expect("captures").result.expect("memory");
        table.split(|byte| *byte == b'\n').count()
    };
    assert_eq!(rows(&files), rows(&files[..1]));
}

#[test]
fn different_traffic_is_one_capture_as_before() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = capture("demo-smb1-netbench.pcap.zst");
    let half = server.undamaged().len() / 2;
    let [first, second] = [&server.undamaged()[..half], &server.undamaged()[half..]].map(<[Kept]>::to_vec);
    let files = [("1.pcap", first), ("2.pcap", second)].map(|(name, packets)| {
        let path = directory.path().join(name);
        fs::write(&path, server.to_pcap(&packets)).expect("room");
        path
    });
    let report = report(&files, &AnalysisOptions::default());
    assert!(report.sides.is_none());
    assert_eq!(report.captures.len(), 2);
}

#[test]
fn a_comparison_recognises_the_same_traffic() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = capture("demo-smb1-netbench.pcap.zst");
    let [client_file, server_file] = ["client.pcap", "server.pcap"].map(|name| directory.path().join(name));
    let [at_client, at_server] = both_points(&server, MS, 2 * MS);
    fs::write(&client_file, server.to_pcap(&at_client)).expect("room");
    fs::write(&server_file, server.to_pcap(&by_clock(at_server, -5 * S, 0.0, 0))).expect("room");
    let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/demo-slow-server.pcap.zst");
    let seen = |file: &Path| {
        let options = AnalysisOptions { sightings: true, ..AnalysisOptions::default() };
        let input = CaptureInput::File(file.to_path_buf());
        let mut analysis = CaptureSetAnalysis::run(&[input], &options, &mut ()).expect("a capture");
        analysis.take_sightings().expect("they were asked for")
    };
    let [client, server, other] = [&client_file, &server_file, &other].map(|file| seen(file));
    assert_eq!(nearer_to_the_client([&client, &server]), Some(0));
    assert_eq!(nearer_to_the_client([&server, &client]), Some(1));
    assert_eq!(nearer_to_the_client([&client, &client]), None, "one point");
    assert_eq!(nearer_to_the_client([&client, &other]), None, "other traffic");
    let copy = directory.path().join("copy.pcap");
    fs::copy(&client_file, &copy).expect("room");
    assert_eq!(report(&[client_file, copy], &AnalysisOptions::default()).sides, None, "a file and its copy");
}
