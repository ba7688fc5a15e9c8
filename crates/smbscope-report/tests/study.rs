//! The text of a study.

mod common;

use common::bench::ramp;
use smbscope_model::{Nanos, Timestamp};
use smbscope_report::bench::{Generator, ServerLoad, ServerSeries};
use smbscope_report::study::{Definition, Document, Results, Run, Variant, Verdict, headline, render, write};

/// Two variants, five times each, at one and four users: the second takes half as long again at four users, and about as
/// long as the first with one.
fn document() -> Document {
    let measures = ["mean(total)", "throughput"].map(|name| name.parse().expect("a measure"));
    let mut results = Results::new(&measures, 5, 1, [0, 0]);
    let mut runs = Vec::new();
    for (repetition, noise) in (1..=5).zip([0.97, 1.02, 1.0, 1.04, 0.98]) {
        for (variant, factors) in [[1.0, 1.0], [1.01, 1.5]].into_iter().enumerate() {
            let mut made = ramp();
            made.runs.truncate(2);
            for (run, factor) in made.runs.iter_mut().zip(factors) {
                let mean = run.total.client.mean.map_or(0, |mean| mean.0) as f64;
                // What drifts hits both; the rest of the noise is that of the variant.
                let own = if variant == 0 { 1.0 } else { 1.0 + (noise - 1.0) / 4.0 };
                run.total.client.mean = Some(Nanos((mean * noise * factor * own) as i64));
                run.due = None;
            }
            results.add(variant, repetition, &made);
            runs.push(Run {
                variant,
                repetition,
                directory: format!("0{}-x/{repetition}", variant + 1),
                started_ns: Timestamp(0),
                duration_ns: Nanos(1_000_000_000),
                attempts: 1,
                failed: None,
            });
        }
    }
    let variant = |name: &str| Variant {
        name: name.to_owned(),
        baseline: 0,
        settings: [("scanner".to_owned(), name.to_owned())].into(),
        folder: String::new(),
        command: String::new(),
        before: Vec::new(),
        after: Vec::new(),
    };
    let mut document = Document {
        generator: Generator::new("0.0.0"),
        name: "antivirus".to_owned(),
        question: "What does a virus scanner add?".to_owned(),
        headline: String::new(),
        definition: Definition {
            source: "antivirus.toml".to_owned(),
            sha256: "0123456789abcdef".repeat(4),
            text: String::new(),
            quick: true,
            targets: Vec::new(),
        },
        command: String::new(),
        started_ns: Some(Timestamp(0)),
        repetitions: 5,
        seed: 1,
        environment: results.environment(),
        variants: vec![variant("no scanner"), variant("ClamAV on access")],
        runs,
        results: results.rows(),
        server: results.server(),
        warnings: Vec::new(),
        studies: Vec::new(),
    };
    document.headline = headline(&document);
    document
}

#[test]
fn a_study_at_80_columns() {
    insta::assert_snapshot!(render(&document(), 80, false));
}

#[test]
fn a_study_is_read_as_it_was_written() {
    let mut text = Vec::new();
    write(&document(), &mut text).expect("memory takes it");
    let read = Document::parse(&text).expect("it is a study");
    assert_eq!(render(&read, 100, false), render(&document(), 100, false));
    let error = Document::parse(b"{\"schema\": \"smbscope.bench/1\"}").expect_err("a load").to_string();
    assert!(error.contains("give the study.json that study wrote"), "{error}");
}

#[test]
fn the_server_of_a_variant_has_a_value_for_each_repetition_that_looked() {
    let mut results = Results::new(&[], 3, 1, [0]);
    for repetition in [1, 3] {
        let mut made = ramp();
        made.runs.truncate(1);
        let values = vec![Some(10.0 * f64::from(repetition)), Some(20.0)];
        made.runs[0].server = Some(ServerLoad {
            source: "this machine".to_owned(),
            times_ns: vec![Timestamp(0), Timestamp(1_000_000_000)],
            metrics: vec![ServerSeries::of("cpu", "percent", values)],
        });
        results.add(0, repetition, &made);
    }
    let rows = results.server();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].metric.as_str(), rows[0].unit.as_str(), rows[0].variant), ("cpu", "percent", 0));
    assert_eq!(rows[0].means, [Some(15.0), None, Some(25.0)]);
    assert_eq!(rows[0].maxima, [Some(20.0), None, Some(30.0)]);
}

#[test]
fn the_verdict_of_a_row_is_what_its_factor_means_once_all_rows_are_judged() {
    let document = document();
    let verdicts = |measure: &str| -> Vec<Option<Verdict>> {
        document.results.iter().filter(|row| row.measure == measure).map(|row| row.verdict).collect()
    };
    // Baseline and variant with one user, and with four.
    assert_eq!(verdicts("mean(total)"), [None, Some(Verdict::Equal), None, Some(Verdict::Slower)]);
}

#[test]
fn load_points_at_which_the_client_was_the_limit_are_said_with_their_variants() {
    let mut results = Results::new(&[], 1, 1, [0, 0]);
    for (variant, limited) in [(0, [true, false]), (1, [true, true])] {
        let mut made = ramp();
        made.runs.truncate(2);
        for (run, limited) in made.runs.iter_mut().zip(limited) {
            run.client_cpu.as_mut().expect("the client was watched").limited = limited;
            run.workload_operations.clear();
            run.failures.clear();
        }
        results.add(variant, 1, &made);
    }
    let expected = "In 3 of 4 load points (near; far), the client was the limit: their figures say nothing about the \
                    server. Use a faster client, or fewer users.";
    assert_eq!(results.warnings(&["near", "far"]), [expected]);
}
