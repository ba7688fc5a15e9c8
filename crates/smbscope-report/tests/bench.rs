//! Ramps: checked against their schema and hand-computed figures, with snapshots of the text.

use crate::common;
use crate::common::bench::{nothing, ramp, run, trouble};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use smbscope_model::{Nanos, Timestamp};
use smbscope_report::Culprit;
use smbscope_report::bench::files::ServerMetric;
use smbscope_report::bench::{
    self, BenchDocument, BenchRunOutcome, LoadHostEntry, LostHost, RampDetailLevel, RampTextOptions, ServerLoad,
    ServerSeries, overall_response_time,
};
use smbscope_stats::Dimension;

fn written(document: &BenchDocument) -> Vec<u8> {
    let mut text = Vec::new();
    bench::write(document, &mut text).expect("writing to memory does not fail");
    text
}

fn value(document: &BenchDocument) -> Value {
    serde_json::from_slice(&written(document)).expect("the document is JSON")
}

fn problems(document: &Value) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/smbscope.bench-1.schema.json");
    let schema = std::fs::read_to_string(path).expect("the schema is in the repository");
    let schema: Value = serde_json::from_str(&schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is valid");
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn text(document: &BenchDocument, width: usize) -> String {
    bench::render(document, &RampTextOptions { width, ..RampTextOptions::default() })
}

#[test]
fn every_ramp_follows_the_schema() {
    let mut failed = trouble();
    failed.runs[0].ended = BenchRunOutcome::Failed { why: "the share is gone".into() };
    failed.runs[1].ended = BenchRunOutcome::Interrupted;
    failed.runs[0].client_cpu = None;
    for document in [ramp(), trouble(), nothing(), failed] {
        assert_eq!(problems(&value(&document)), Vec::<String>::new());
    }
}

#[test]
fn mangled_ramps_do_not_follow_the_schema() {
    let good = value(&ramp());
    type Mangle = fn(&mut Value);
    let mangle: [(&str, Mangle); 9] = [
        ("another version", |d| d["schema"] = json!("smbscope.bench/2")),
        ("a password", |d| d["target"]["password"] = json!("secret")),
        ("a key too few", |d| drop(d["runs"][0].as_object_mut().map(|o| o.remove("pace")))),
        ("a time in seconds", |d| d["runs"][0]["total"]["client"]["mean"] = json!(0.005)),
        ("an unknown group", |d| d["runs"][0]["groups"][0]["group"] = json!("Misc")),
        ("no users", |d| d["runs"][0]["users"] = json!(0)),
        ("a failure without a reason", |d| d["runs"][0]["ended"] = json!({"how": "failed"})),
        ("an open loop without a rate", |d| d["settings"]["schedule"] = json!({"loop": "open"})),
        ("a capture in another state", |d| d["runs"][0]["capture"]["state"] = json!("lost")),
    ];
    for (what, mangle) in mangle {
        let mut bad = good.clone();
        mangle(&mut bad);
        assert_ne!(problems(&bad), Vec::<String>::new(), "{what}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    for document in [ramp(), trouble(), nothing()] {
        // Compare as text: sums of times are not serialised, so parsed statistics differ from the originals.
        let text = written(&document);
        assert_eq!(written(&BenchDocument::parse(&text).expect("it is a ramp")), text);
    }
}

#[test]
fn overall_response_time_is_the_area_under_the_curve_over_the_range() {
    let at = |users, mean| {
        let mut run = run(users, 10, 1, false);
        run.total.client.mean = Some(Nanos(mean));
        run
    };
    // From 1 to 3 users (10 + 20) / 2 × 2 = 30, from 3 to 5 (20 + 60) / 2 × 2 = 80: 110 over a range of 4.
    let runs = [at(5, 60), at(1, 10), at(3, 20)];
    assert_eq!(overall_response_time(&runs, false), Some(Nanos(28)));
    // A repeated load counts once, with its average: (10 + 20) / 2 = 15 over 2 users.
    assert_eq!(overall_response_time(&[at(1, 10), at(3, 10), at(3, 30)], false), Some(Nanos(15)));
    assert_eq!(overall_response_time(&[at(4, 7)], false), Some(Nanos(7)));
    assert_eq!(overall_response_time(&[], false), None);
}

#[test]
fn a_percentile_without_enough_values_stays_absent() {
    // 16 users make 16 connects: enough for p90 (10), not for p95 (20).
    let connects = value(&ramp())["runs"][2]["connects"].clone();
    assert!(connects["p90"].is_i64());
    assert_eq!(connects["p95"], Value::Null);
}

#[test]
fn warnings_name_the_load_points_and_the_gravest_comes_first() {
    let warnings = trouble().warnings;
    let expected = [
        "At 8 users the run was stopped: more than 10 % errors.",
        "At 8 users the client was the limit: the figures say nothing about the server. Use a faster client, or several.",
        "At 8 users the server stalled: it answered nothing for 2.10 s, 4.00 s after the start of the measured part.",
        "At 8 users 950 operations ended otherwise than the workload expects.",
        "At 8 users the server answered 10.8% of the commands with an error (972).",
        "At 8 users 3 sessions could not be made or broke: cannot connect to 127.0.0.1:14450: connection refused.",
        "7 commands were outstanding when the connection ended, and have no time.",
        "At 8 users the rate was not kept: 900 operations a second of 1,500; 6,000 had not begun at the end.",
        "No capture was made: tcpdump is not installed.",
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn a_closed_loop_says_that_it_hides_stalls() {
    let closed = "Closed loop: users wait for each answer, so a stall of the server holds back the load and hides in the \
                  percentiles; a run with --rate shows it.";
    assert_eq!(ramp().warnings, [closed]);
}

#[test]
fn a_capture_that_disagrees_is_warned_of() {
    let mut document = ramp();
    document.warnings.clear();
    let Some(bench::RunCapture::Made(made)) = &mut document.runs[0].capture else { panic!("the ramp has captures") };
    (made.wire_commands, made.dropped_packets) = (11_000, 3);
    let warnings = document.completed().warnings;
    assert_eq!(warnings[0], "At 1 user the capture lost 3 packets: some times on the wire are missing.");
    assert_eq!(warnings[1], "At 1 user the client counted 12,000 commands, and the capture 11,000.");
}

/// Returns the rows of a Parquet file and the names of its columns.
fn rows(file: Vec<u8>) -> (usize, Vec<String>, arrow_array::RecordBatch) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(file)).expect("it is Parquet");
    let batch = reader.build().expect("it has rows").next().expect("a batch").expect("it is whole");
    let names = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    (batch.num_rows(), names, batch)
}

#[test]
fn intervals_of_all_load_points_are_rows() {
    let mut file = Vec::new();
    bench::files::write_intervals(&trouble().runs, &mut file).expect("writing to memory does not fail");
    let (count, names, batch) = rows(file);
    // Two runs of ten seconds.
    assert_eq!(count, 20);
    let expected = [
        "run",
        "users",
        "start_ns",
        "connected",
        "operations",
        "errors",
        "bytes_read",
        "bytes_written",
        "p50_ns",
        "p95_ns",
        "max_ns",
    ];
    assert_eq!(names, expected);
    let column = |name: &str| batch.column_by_name(name).expect("the column").as_primitive::<Int64Type>().clone();
    assert_eq!((column("run").value(0), column("run").value(10), column("users").value(10)), (1, 2, 8));
    // The server stalls from the fifth second on.
    assert_eq!((column("operations").value(14), column("p50_ns").is_null(14)), (0, true));
    assert_eq!(column("max_ns").value(16), 2_100_000_000);
}

#[test]
fn figures_of_the_server_are_rows() {
    let metric = |second: i64, value| ServerMetric {
        time: Timestamp(common::START + second * common::bench::SECOND),
        metric: "cpu_busy".to_owned(),
        value,
        unit: "percent".to_owned(),
    };
    let mut file = Vec::new();
    let metrics = [metric(0, 12.5), metric(1, 99.0)];
    bench::files::write_server(&metrics, &mut file).expect("writing to memory does not fail");
    let (count, names, batch) = rows(file);
    assert_eq!((count, names.join(" ").as_str()), (2, "time_ns metric value unit"));
    assert_eq!(batch.column(2).as_primitive::<Float64Type>().value(1), 99.0);
}

#[test]
fn ramp_at_100_columns() {
    insta::assert_snapshot!(text(&ramp(), 100));
}

#[test]
fn ramp_at_80_columns() {
    insta::assert_snapshot!(text(&ramp(), 80));
}

#[test]
fn trouble_at_100_columns() {
    insta::assert_snapshot!(text(&trouble(), 100));
}

#[test]
fn nothing_at_80_columns() {
    insta::assert_snapshot!(text(&nothing(), 80));
}

#[test]
fn no_line_is_wider_than_the_page() {
    for document in [ramp(), trouble(), nothing()] {
        for width in [80, 100, 132, 160] {
            let text = bench::render(
                &document,
                &RampTextOptions { width, detail: RampDetailLevel::All, ..RampTextOptions::default() },
            );
            // Suggested commands may be wider, so that they can be pasted.
            let lines = text.lines().filter(|line| !line.contains(" smbscope bench "));
            let wide: Vec<&str> = lines.filter(|line| line.chars().count() > width).collect();
            assert_eq!(wide, Vec::<&str>::new(), "at {width}");
        }
    }
}

#[test]
fn all_load_points_are_detailed_where_that_is_asked_for() {
    let text = bench::render(&ramp(), &RampTextOptions { detail: RampDetailLevel::All, ..RampTextOptions::default() });
    assert_eq!(text.lines().filter(|line| line.starts_with("At ")).count(), 4);
    // By default, the load point at the capacity is shown.
    assert!(self::text(&ramp(), 100).contains("\nAt 16 users\n"));
}

#[test]
fn names_from_outside_cannot_steer_a_terminal() {
    let mut document = trouble();
    document.title = Some("\u{1b}[31mred".into());
    document.target.share = "a\nb".into();
    document.runs[1].failures = [("\u{1b}]0;x\u{7}".to_owned(), 1)].into();
    document.runs[1].workload_operations[0].operation = "\u{202e}x".into();
    document.warnings = vec!["\u{1b}[2J".into()];
    let text = bench::render(
        &document.completed(),
        &RampTextOptions { detail: RampDetailLevel::All, ..RampTextOptions::default() },
    );
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']));
}

#[test]
fn a_rate_that_was_far_from_reached_is_at_the_top_of_the_report() {
    let mut document = common::bench::ramp();
    let top = |document: &bench::BenchDocument| {
        let options = bench::RampTextOptions { width: 100, color: false, detail: bench::RampDetailLevel::One };
        bench::render(document, &options).lines().take(2).collect::<Vec<_>>().join("\n")
    };
    document.runs.truncate(1);
    document.runs[0].users = 1;
    document.runs[0].pace = bench::ScheduleAdherence::Open { rate: 400.0, rate_kept: 20.0, not_begun: 0 };
    // 20 of 400 are 5%.
    let expected = "At 1 user the rate was not reached: 20.0/s of 400/s (5%).";
    assert!(top(&document).contains(expected), "{}", top(&document));
    document.runs[0].pace = bench::ScheduleAdherence::Open { rate: 400.0, rate_kept: 390.0, not_begun: 0 };
    assert!(!top(&document).contains("not reached"));
}

#[test]
fn the_headline_says_where_throughput_peaks_and_what_more_users_pay() {
    // 16 users reach 7,800/s and 32 users 7,900/s. That is within 5%, so 16 are enough; 100/7,800 is 1.3%, and the p95
    // ratio is 5.79 ms / 2.33 ms.
    let expected = "Peaks at 7,800 commands/s with 16 users, median 1.56 ms, p95 2.33 ms; at 32 users p95 is 2.5 times as \
                    long for 1.3% more throughput.";
    assert_eq!(plain(&ramp().answer.headline), expected);
    let upto = |runs: usize| {
        let mut document = ramp();
        document.runs.truncate(runs);
        plain(&document.completed().answer.headline)
    };
    assert_eq!(upto(1), "1,200 commands/s with 1 user, median 451 µs, p95 675 µs.");
    let expected = "4,100 commands/s with 4 users, still rising, median 548 µs, p95 820 µs; p95 is 1.2 times as long as with \
                    1 user.";
    assert_eq!(upto(2), expected);
    // After a dip, higher loads can't be predicted.
    let mut dipped = ramp();
    dipped.runs.truncate(3);
    dipped.runs[1].operations_per_second = 900.0;
    assert!(plain(&dipped.completed().answer.headline).starts_with("7,800 commands/s with 16 users, median"));
    assert_eq!(upto(0), "No command was answered.");
}

/// Replaces non-breaking spaces.
fn plain(text: &str) -> String {
    text.replace('\u{a0}', " ")
}

#[test]
fn in_brief_a_ramp_fits_a_screen() {
    let text = bench::render(
        &ramp(),
        &RampTextOptions { width: 80, detail: RampDetailLevel::Brief, ..RampTextOptions::default() },
    );
    assert!(text.lines().count() <= 40, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn jobs_stand_below_the_load_points_and_are_read_back() {
    let mut document = ramp();
    let second = 1_000_000_000;
    let job = |elapsed: i64| bench::JobEntry {
        session: 1,
        started_ns: Timestamp(871_291_800_000_000_000),
        elapsed_ns: Nanos(elapsed * second),
        waited_ns: Some(Nanos(elapsed * second * 3 / 4)),
        files: 100,
        bytes_read: 5_000_000,
        bytes_written: 0,
    };
    let figures = smbscope_stats::DurationStatistics {
        count: 2,
        min: Some(Nanos(2 * second)),
        max: Some(Nanos(4 * second)),
        mean: Some(Nanos(3 * second)),
        stddev: Some(Nanos(1_414_213_562)),
        ..smbscope_stats::DurationStatistics::default()
    };
    let last = document.runs.last_mut().expect("a load point");
    last.jobs = Some(bench::JobStatistics {
        elapsed: figures,
        unfinished: 1,
        elapsed_sum_ns: Nanos(6 * second),
        waited_sum_ns: Some(Nanos(6 * second * 3 / 4)),
        files: 200,
        bytes_read: 10_000_000,
        bytes_written: 0,
        list: vec![job(2), job(4)],
    });
    assert_eq!(problems(&value(&document)), Vec::<String>::new());
    let read = BenchDocument::parse(&written(&document)).expect("it is a ramp");
    assert_eq!(read.runs.last().map(|run| &run.jobs), document.runs.last().map(|run| &run.jobs));
    // 200 files and 10 MB in 6 s.
    for detail in [RampDetailLevel::Brief, RampDetailLevel::One] {
        let text = bench::render(&document, &RampTextOptions { width: 100, detail, ..RampTextOptions::default() });
        let line = text.lines().skip_while(|line| !line.starts_with("Jobs")).nth(1).expect("a line of jobs");
        let cells: Vec<&str> = line.split_whitespace().skip(2).collect();
        let expected = ["2", "3.00", "s", "1.41", "s", "2.00", "s", "4.00", "s", "33.3", "1.67", "75.0%"];
        assert_eq!(cells, expected, "{text}");
        assert!(text.replace('\n', " ").contains("1 job was not finished"), "{text}");
    }
    assert!(!self::text(&ramp(), 100).contains("Jobs"));
}

#[test]
fn a_queue_that_was_never_full_is_a_warning() {
    let warned = |reached| {
        let mut document = ramp();
        document.warnings.clear();
        document.runs[0].queue = Some(bench::QueueDepthEntry { asked: 8, reached });
        let document = document.completed();
        assert_eq!(problems(&value(&document)), Vec::<String>::new());
        document.warnings.iter().any(|warning| warning.contains("wants 8 commands outstanding"))
    };
    assert!(warned(3) && !warned(8));
}

#[test]
fn slices_of_a_load_point_are_in_the_table_of_captures_and_are_read_back() {
    let mut document = ramp();
    let last = document.runs.last_mut().expect("a load point");
    last.counted = Some(common::bench::counted(0, 1_000_000, &[Dimension::File]));
    document.capacity = None;
    // Reads 0, 3, … 18 take 1, 4, 7, 3, 6, 2 and 5 ms: 28 of 77 ms in total, as response times cycle through 1 to 7 ms.
    let expected = [
        "By file Count Total wait Share",
        r"(unknown)\docs\report.docx 13 49.0 ms 63.6%",
        r"(unknown)\ini\settings.ini 7 28.0 ms 36.4%",
    ];
    for detail in [RampDetailLevel::Brief, RampDetailLevel::One] {
        let text = bench::render(&document, &RampTextOptions { detail, ..RampTextOptions::default() });
        let table = text.lines().skip_while(|line| !line.starts_with("By file"));
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let table: Vec<String> = table.take(3).map(words).collect();
        assert_eq!(table.len(), 3, "{text}");
        table.iter().zip(expected).for_each(|(line, begin)| assert!(line.starts_with(begin), "{line}"));
    }
    assert_eq!(problems(&value(&document)), Vec::<String>::new());
    let read = BenchDocument::parse(&written(&document)).expect("it was written so");
    assert_eq!(value(&read), value(&document));
}

/// Returns the commands that the ramp suggests.
fn next(document: BenchDocument) -> Vec<String> {
    document.completed().answer.next.iter().map(|next| format!("{}: {}", next.label, next.command)).collect()
}

const BENCH: &str = "smbscope bench smb://bench@127.0.0.1:14450/share --duration 10s";

#[test]
fn what_next_looks_closer_at_the_knee_and_whose_the_time_is() {
    let peaked = BenchDocument { capacity: None, ..ramp() };
    // Between the load points on both sides of the peak at 16 users, in sixths of the range.
    assert_eq!(next(peaked.clone()), [format!("knee: {BENCH} --users 4..32:4")]);
    let mut rising = peaked.clone();
    rising.runs.truncate(2);
    rising.runs.iter_mut().for_each(|run| run.capture = None);
    let packets = format!("packets: {BENCH} --users 4 --capture");
    assert_eq!(next(rising.clone()), [format!("load: {BENCH} --users 4,8,16"), packets]);
    rising.runs.remove(0);
    rising.settings.schedule = bench::LoopModel::Closed { think_ns: Nanos(5_000_000) };
    let options = "--users 4 --think 5.00ms --capture";
    let expected = [format!("ramp: {BENCH} --users 1,2,4,8 --think 5.00ms"), format!("packets: {BENCH} {options}")];
    assert_eq!(next(rising.clone()), expected);
    rising.settings.schedule = bench::LoopModel::Open { rate: 50.0, per_user: false, random: true };
    let expected = [
        format!("ramp: {BENCH} --users 4 --rates 50,100,200 --arrivals poisson"),
        format!("packets: {BENCH} --users 4 --rate 50 --arrivals poisson --capture"),
    ];
    assert_eq!(next(rising), expected);
}

#[test]
fn what_next_has_the_capture_that_was_kept_and_a_rate_where_the_server_stalled() {
    let mut stalled = ramp();
    stalled.capacity = None;
    stalled.invocation.as_mut().expect("it is known").directory = Some("runs/it's".to_owned());
    let last = stalled.runs.last_mut().expect("a load point");
    last.stalls = vec![bench::StallEntry { start_ns: Timestamp(0), duration_ns: Nanos(1_000_000_000) }];
    let Some(bench::RunCapture::Made(made)) = &mut last.capture else { panic!("the ramp has captures") };
    made.file = Some("point-04-32-users.pcap".to_owned());
    // 79,000 commands are 15,800 operations in 10 s.
    let packets = r"packets: smbscope analyze --by file 'runs/it'\''s/point-04-32-users.pcap'";
    assert_eq!(next(stalled.clone()), [format!("stalls: {BENCH} --users 32 --rate 1580"), packets.to_owned()]);
    // If the client is the bottleneck, more load says nothing.
    let last = stalled.runs.last_mut().expect("a load point");
    last.client_cpu.as_mut().expect("it is known").limited = true;
    assert_eq!(next(stalled.clone()), [packets]);
    stalled.invocation = None;
    assert_eq!(next(stalled), Vec::<String>::new());
}

#[test]
fn the_answer_on_a_load_point_goes_by_percentiles_and_the_clients_processor() {
    let answer = |p95: i64, limited: bool| {
        let mut run = ramp().runs.remove(0);
        run.client_cpu.as_mut().expect("it is known").limited = limited;
        let read = run.groups.iter_mut().find(|group| group.group == "Read").expect("there are reads");
        read.times.client.p95 = Some(Nanos(p95 * 1_000_000));
        let document = BenchDocument { runs: vec![run], ..ramp() }.completed();
        let answer = document.runs[0].answer.clone().expect("commands were answered");
        assert_eq!(document.answer.culprit, answer.culprit);
        answer
    };
    let fine = answer(20, false);
    assert_eq!(fine.culprit, Culprit::Nothing);
    assert!(plain(&fine.headline).starts_with("Nothing is slow: median 451 µs, p95 675 µs"), "{}", fine.headline);
    let slow = answer(21, false);
    assert_eq!(slow.culprit, Culprit::Capture);
    assert!(plain(&slow.headline).starts_with("Server or network: service time took 100% of"), "{}", slow.headline);
    assert_eq!(plain(&slow.evidence[0]), "Slow: p95 of Read 21.0 ms, above 20.0 ms.");
    assert_eq!(answer(21, true).culprit, Culprit::Client);
}

#[test]
fn a_resource_that_is_used_up_is_the_answer() {
    let answer = |source: &str, metrics: &[(&str, f64)]| {
        let mut run = ramp().runs.remove(0);
        run.client_cpu.as_mut().expect("it is known").limited = false;
        // About as long as all response times together: one command was outstanding on average.
        run.duration_ns = Nanos(100_000_000);
        let series = metrics.iter().map(|(name, value)| ServerSeries::new(name, "percent", vec![Some(*value)]));
        run.server = Some(ServerLoad::new(source.to_owned(), vec![run.started_ns], series.collect()));
        let document = BenchDocument { runs: vec![run], ..ramp() }.completed();
        assert_eq!(Some(document.answer.culprit), document.runs[0].answer.as_ref().map(|answer| answer.culprit));
        (document.answer.culprit, plain(&document.answer.headline))
    };
    let url = "http://files:9100/metrics";
    let (culprit, headline) = answer(url, &[("cpu", 97.0), ("cpu_waiting", 88.0)]);
    assert_eq!(culprit, Culprit::Server);
    let expected = "Server: its processors were busy 97% of the time; processes waited for one 88% of the time; more load \
                    would only add waiting.";
    assert!(headline.ends_with(expected), "{headline}");
    assert!(headline.contains(" commands/s with "), "{headline}");
    let (culprit, headline) = answer("this machine", &[("cpu", 97.0)]);
    assert_eq!(culprit, Culprit::Capture);
    assert!(headline.contains("Client and server: they share the processors of this machine"), "{headline}");
    let (culprit, headline) = answer(url, &[("disk_busiest", 99.0), ("disk_queue", 7.8)]);
    assert_eq!(culprit, Culprit::Server);
    assert!(headline.contains("its disk was busy 99% of the time, with 7.8 transfers queued on average"), "{headline}");
    // A busy disk without a queue still has a reserve.
    assert_eq!(answer(url, &[("disk_busiest", 99.0), ("disk_queue", 0.9)]).0, Culprit::Nothing);
    let (culprit, headline) = answer(url, &[("network_busiest", 96.0)]);
    assert_eq!(culprit, Culprit::Network);
    assert!(headline.contains("Network: the link was 96% full"), "{headline}");
    let (culprit, headline) =
        answer("this machine", &[("cpu", 40.0), ("samba_cpu", 10.0), ("samba_cpu_wait", 5_000.0)]);
    assert_eq!(culprit, Culprit::Server);
    let expected = "its processes waited for a processor 100% of the time that commands were outstanding, and got 10% of \
                    one";
    assert!(headline.contains(expected), "{headline}");
    assert_eq!(answer(url, &[("cpu", 89.0), ("network_busiest", 50.0)]).0, Culprit::Nothing);
}

#[test]
fn a_client_that_waits_for_its_processors_is_the_answer() {
    let answer = |late: i64| {
        let mut run = ramp().runs.remove(0);
        let cpu = run.client_cpu.as_mut().expect("it is known");
        (cpu.limited, cpu.late_p99_ns) = (false, Some(Nanos(late)));
        BenchDocument { runs: vec![run], ..ramp() }.completed().answer
    };
    let late = answer(12_000_000);
    assert_eq!(late.culprit, Culprit::Client);
    assert!(plain(&late.headline).contains("Client: other programs kept its processors busy"), "{}", late.headline);
    assert_eq!(answer(4_000_000).culprit, Culprit::Nothing);
}

/// The expected values come from the tables of the same document.
#[test]
fn a_measure_has_the_value_that_the_tables_show() {
    let document = ramp();
    let run = &document.runs[0];
    let value = |text: &str| run.value(&text.parse().expect("a measure"));
    let seconds = |time: Option<Nanos>| time.map(Nanos::as_secs_f64);
    let read = run.groups.iter().find(|group| group.group == "Read").expect("there are reads");
    assert_eq!(value("p95(Read)"), seconds(read.times.client.p95));
    assert_eq!(value("MEAN(total)"), seconds(run.total.client.mean));
    assert_eq!(value("commands"), Some(run.operations_per_second));
    let bytes = (run.bytes_read + run.bytes_written) as f64;
    assert_eq!(value("throughput"), Some(bytes / run.duration_ns.as_secs_f64()));
    assert_eq!(value("count(read)"), Some(read.times.client.count as f64));
    // The command table has none; these belong to connects.
    assert_eq!([value("count(NEGOTIATE)"), value("count(LOGOFF)")], [Some(f64::from(run.users)), Some(0.0)]);
    assert_eq!([value("p50(nothing of that name)"), value("elapsed")], [None, None]);
}

#[test]
fn overload_stands_in_the_load_curve_and_is_explained_at_the_load_point() {
    let mut document = ramp();
    let text = |document: &bench::BenchDocument| {
        bench::render(document, &RampTextOptions { detail: RampDetailLevel::All, ..RampTextOptions::default() })
    };
    assert!(!text(&document).contains("Overload"));
    let (late_ns, budget_ns) = (Nanos(1_000_000_000), Some(Nanos(10_000_000_000)));
    // 5 of 40 are 12.5%.
    document.runs[0].overload = Some(bench::OverloadEntry {
        scenarios: 40,
        late: 2,
        exceeded: 2,
        not_begun: 1,
        percent: 12.5,
        late_ns,
        budget_ns,
    });
    assert_eq!(problems(&value(&document)), Vec::<String>::new());
    let text = text(&document);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence =
        "Overload 12.5%: of 40 scenarios 2 began more than 1.00 s late, 2 took longer than 10.0 s, 1 did not begin.";
    assert!(flat.contains(sentence), "{text}");
    assert!(flat.contains("Client CPU Overload"), "{text}");
    assert_eq!(document.runs[0].value(&"overload".parse().unwrap()), Some(12.5));
    assert_eq!(document.runs[1].value(&"overload".parse().unwrap()), None);
}

/// Returns a ramp with one load point on two hosts, one of them lost.
fn on_hosts() -> BenchDocument {
    let mut document = ramp();
    document.capacity = None;
    document.runs.truncate(1);
    let run = &mut document.runs[0];
    let host = |name: &str, lost: Option<LostHost>| LoadHostEntry {
        host: name.to_owned(),
        sessions: 4,
        operations: if lost.is_some() { 0 } else { run.operations },
        errors: 0,
        bytes_read: 0,
        bytes_written: 0,
        times: if lost.is_some() { nothing_timed() } else { run.total.client },
        client_cpu: run.client_cpu.filter(|_| lost.is_none()),
        clock_ahead_ns: -12_000_000,
        clock_bound_ns: Nanos(if lost.is_some() { 250_000_000 } else { 340_000 }),
        late_ns: Nanos(if lost.is_some() { 0 } else { 20_000_000 }),
        lost,
    };
    let lost = LostHost { at_ns: run.started_ns, why: "its process ended".to_owned(), operations: 1_234 };
    run.hosts = vec![host("a", None), host("b", Some(lost))];
    document.completed()
}

fn nothing_timed() -> smbscope_stats::DurationStatistics {
    smbscope_stats::Summary::new(smbscope_stats::SummaryPrecision::ROW).figures()
}

#[test]
fn hosts_are_listed_and_what_became_of_them_is_said() {
    let document = on_hosts();
    assert_eq!(problems(&value(&document)), Vec::<String>::new());
    let parsed = BenchDocument::parse(&written(&document)).expect("it was written");
    assert_eq!(value(&parsed)["runs"][0]["hosts"], value(&document)["runs"][0]["hosts"]);
    let text = text(&document, 120);
    let row = text.lines().find(|line| line.starts_with("b (lost)")).expect("b is listed");
    assert!(row.contains("-12.0 ms") && row.contains("250 ms"), "{row}");
    let warnings = document.warnings.join("\n");
    for part in [
        "the load host b was lost with 4 sessions: its process ended. The figures cover the other hosts only; \
         1,234 commands that it had reported are left out.",
        "the load host a began 20.0 ms late",
        "the clock of the load host b is known only to ±250 ms",
    ] {
        assert!(warnings.contains(part), "{part}\n{warnings}");
    }
    // Packets of another host can't be captured on this machine.
    assert!(document.answer.next.iter().all(|next| !next.command.contains("--capture")), "{:?}", document.answer.next);
}
