//! Terminal report of a study.

use crate::common::bench::ramp;
use smbscope_model::{Nanos, Timestamp};
use smbscope_report::bench::{Generator, ServerLoad, ServerSeries};
use smbscope_report::study::{
    Results, StudyDefinitionEntry, StudyDocument, StudyRun, StudyVerdict, VariantEntry, render, write,
};
use smbscope_report::{Answer, Cause, Culprit};

/// Returns a study of two variants with five repetitions, at one and four users: the second variant takes 1.5 times as
/// long at four users, and about as long at one.
fn document() -> StudyDocument {
    of([1.01, 1.5], &[0.97, 1.02, 1.0, 1.04, 0.98], Culprit::Server)
}

/// Returns a study whose second variant takes `factors` times as long, with a repetition per value in `noises`. All
/// runs of the second variant except the first name `culprit`.
fn of(factors: [f64; 2], noises: &[f64], culprit: Culprit) -> StudyDocument {
    let repetitions = noises.len() as u32;
    let measures = ["mean(total)", "throughput"].map(|name| name.parse().expect("a measure"));
    let mut scanner = Cause::default();
    scanner.id = "filter-delay".to_owned();
    let mut results = Results::new(&measures, repetitions, 1, [0, 0]);
    let mut runs = Vec::new();
    for (repetition, noise) in (1..=repetitions).zip(noises) {
        for (variant, factors) in [[1.0, 1.0], factors].into_iter().enumerate() {
            let mut made = ramp();
            made.runs.truncate(2);
            for (run, factor) in made.runs.iter_mut().zip(factors) {
                let mean = run.total.client.mean.map_or(0, |mean| mean.0) as f64;
                // The noise affects both variants, plus a quarter of it only the second.
                let own = if variant == 0 { 1.0 } else { 1.0 + (noise - 1.0) / 4.0 };
                run.total.client.mean = Some(Nanos((mean * noise * factor * own) as i64));
                run.due = None;
                run.answer = Some(match (variant, repetition) {
                    (0, _) | (_, 1) => Answer { headline: "Nothing is slow.".to_owned(), ..Answer::default() },
                    _ => Answer {
                        culprit,
                        headline: "Whose it is: the scanner's.".to_owned(),
                        causes: vec![scanner.clone()],
                        ..Answer::default()
                    },
                });
            }
            results.add(variant, repetition, &made);
            runs.push(StudyRun {
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
    let variant = |name: &str| VariantEntry {
        name: name.to_owned(),
        baseline: 0,
        settings: [("scanner".to_owned(), name.to_owned())].into(),
        folder: String::new(),
        command: String::new(),
        before: Vec::new(),
        after: Vec::new(),
    };
    let mut document = StudyDocument {
        generator: Generator::new("0.0.0"),
        name: "antivirus".to_owned(),
        question: "What does a virus scanner add?".to_owned(),
        answer: Answer::default(),
        definition: StudyDefinitionEntry {
            source: "antivirus.toml".to_owned(),
            sha256: "0123456789abcdef".repeat(4),
            text: String::new(),
            quick: true,
            targets: Vec::new(),
        },
        command: String::new(),
        started_ns: Some(Timestamp(0)),
        repetitions,
        seed: 1,
        environment: results.environment(),
        variants: vec![variant("no scanner"), variant("ClamAV on access")],
        runs,
        results: results.rows(),
        server: results.server(),
        warnings: Vec::new(),
        studies: Vec::new(),
    };
    document.answer = results.answer(&document);
    document
}

#[test]
fn a_study_at_80_columns() {
    insta::assert_snapshot!(render(&document(), 80, false));
}

#[test]
fn a_study_in_markdown() {
    insta::assert_snapshot!(smbscope_report::study::markdown(&document()));
}

#[test]
fn the_culprit_is_the_one_that_most_runs_of_the_worse_variant_name() {
    let answer = document().answer;
    assert_eq!(answer.culprit, Culprit::Server);
    assert_eq!(answer.evidence, ["ClamAV on access: Whose it is: the scanner's."]);
    assert_eq!(answer.causes.iter().map(|cause| cause.id.as_str()).collect::<Vec<_>>(), ["filter-delay"]);
    assert!(answer.caveats.is_empty() && answer.next.is_empty(), "{answer:?}");
    // The baseline is worse, and its runs name no culprit.
    let answer = of([0.99, 0.5], &[0.97, 1.02, 1.0, 1.04, 0.98], Culprit::Server).answer;
    assert!(answer.headline.contains("is faster than no scanner"), "{}", answer.headline);
    assert_eq!((answer.culprit, answer.causes.len()), (Culprit::Nothing, 0));
}

#[test]
fn variants_that_are_equal_blame_nobody() {
    let answer = of([1.0, 1.0], &[0.99, 1.0, 1.01, 1.0, 1.0], Culprit::Server).answer;
    assert!(answer.headline.contains("is equal to no scanner within 5%"), "{}", answer.headline);
    assert_eq!(answer.culprit, Culprit::Nothing);
}

#[test]
fn what_is_open_says_how_many_repetitions_would_decide_it_and_how_to_make_them() {
    let answer = of([1.0, 1.1], &[0.6, 1.5, 0.8, 1.3, 0.9], Culprit::Server).answer;
    assert_eq!(answer.culprit, Culprit::Capture);
    let [caveat] = answer.caveats.as_slice() else { panic!("{answer:?}") };
    let given = caveat.strip_prefix("Undecided: ClamAV on access against no scanner; ").expect("what is undecided");
    let more: u32 = given.split_once(" more repetitions would probably decide.").expect("how many").0.parse().unwrap();
    let expected = format!("smbscope study antivirus.toml --quick --repetitions {0} -o antivirus-{0}", 5 + more);
    assert_eq!(answer.next.iter().map(|next| next.command.as_str()).collect::<Vec<_>>(), [expected]);
    let too_few = of([1.0, 1.5], &[0.97, 1.02, 1.0], Culprit::Server).answer;
    assert_eq!(
        too_few.caveats,
        ["Undecided: ClamAV on access against no scanner; 2 more repetitions would probably decide."]
    );
}

#[test]
fn a_study_is_read_as_it_was_written() {
    let mut text = Vec::new();
    write(&document(), &mut text).expect("memory takes it");
    let read = StudyDocument::parse(&text).expect("it is a study");
    assert_eq!(render(&read, 100, false), render(&document(), 100, false));
    let error = StudyDocument::parse(b"{\"schema\": \"smbscope.bench/1\"}").expect_err("a load").to_string();
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
            metrics: vec![ServerSeries::new("cpu", "percent", values)],
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
    let verdicts = |measure: &str| -> Vec<Option<StudyVerdict>> {
        document.results.iter().filter(|row| row.measure == measure).map(|row| row.verdict).collect()
    };
    // Baseline and variant with one user, then with four.
    assert_eq!(verdicts("mean(total)"), [None, Some(StudyVerdict::Equal), None, Some(StudyVerdict::Slower)]);
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
