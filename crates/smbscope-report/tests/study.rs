//! Terminal report of a study.

use crate::common::bench::ramp;
use smbscope_model::{Nanos, Timestamp};
use smbscope_report::bench::{Generator, OverloadEntry, ServerLoad, ServerSeries, StallEntry};
use smbscope_report::study::{
    Results, StudyDefinitionEntry, StudyDocument, StudyRun, StudyVerdict, Suspect, UnfitReason, VariantEntry, render,
    write,
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
            let made_run = study_run(variant, repetition);
            results.add(&made_run, &made);
            runs.push(made_run);
        }
    }
    let variant = |name: &str| VariantEntry {
        name: name.to_owned(),
        baseline: 0,
        settings: [("scanner".to_owned(), name.to_owned())].into(),
        folder: String::new(),
        place: "private server".to_owned(),
        environment: Default::default(),
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
            left_out: vec!["users 1,4 instead of 1,4,16".to_owned()],
            targets: Vec::new(),
            about: Vec::new(),
        },
        command: String::new(),
        started_ns: Some(Timestamp(0)),
        repetitions,
        seed: 1,
        environment: results.environment(),
        variants: vec![variant("no scanner"), variant("ClamAV on access")],
        runs,
        unfit: results.unfit(),
        results: results.rows(),
        server: results.server(),
        warnings: Vec::new(),
        studies: Vec::new(),
    };
    document.answer = results.answer(&document);
    document
}

fn study_run(variant: usize, repetition: u32) -> StudyRun {
    StudyRun {
        variant,
        repetition,
        directory: format!("0{}-x/{repetition}", variant + 1),
        started_ns: Timestamp(0),
        duration_ns: Nanos(1_000_000_000),
        attempts: 1,
        repeated: None,
        other_load_percent: Some(1.5),
        failed: None,
    }
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
fn a_difference_at_a_lower_load_comes_before_an_open_question_at_the_highest() {
    let answer = of([2.0, 1.03], &[0.8, 1.2, 1.0, 1.15, 0.85], Culprit::Server).answer;
    let expected = "mean(total), 1 user: ClamAV on access is slower than no scanner, ";
    assert!(answer.headline.starts_with(expected), "{}", answer.headline);
    let open = &answer.evidence[0];
    assert!(open.starts_with("mean(total), 4 users: ") && open.contains("is undecided"), "{:?}", answer.evidence);
    assert_eq!(answer.next.len(), 1, "it says how to decide the open question");
    assert_eq!(answer.culprit, Culprit::Server);
}

/// Five ratios whose logarithms are 0.03 + (-0.04, -0.02, 0, 0.02, 0.04): mean 0.03, variance 0.001.
///
/// By hand: the 80% bound of the variance is 0.001 × 4 / 1.6488 = 0.002426 (χ² of 4 degrees of freedom, 20%), its root
/// 0.04925. Equality within ln 1.05 = 0.04879 needs (t.95 + t.90) × 0.04925 / √n below it: n = 11 gives
/// (1.8125 + 1.3722) × 0.01485 = 0.0473, n = 10 gives (1.8331 + 1.3830) × 0.01557 = 0.0501. A difference needs no more.
#[test]
fn an_open_question_says_how_many_repetitions_would_decide_it_and_how_to_make_them() {
    let logs = [-0.01, 0.01, 0.03, 0.05, 0.07f64];
    let mut results = Results::new(&["mean(total)".parse().expect("a measure")], 5, 1, [0, 0]);
    for (repetition, log) in (1..).zip(logs) {
        for (variant, log) in [(0, 0.0), (1, log)] {
            let mut made = ramp();
            made.runs.truncate(1);
            made.runs[0].total.client.mean = Some(Nanos((1e9 * log.exp()) as i64));
            made.runs[0].due = None;
            results.add(&study_run(variant, repetition), &made);
        }
    }
    let mut document = of([1.0, 1.0], &[0.99, 1.0, 1.01, 1.0, 1.0], Culprit::Server);
    document.results = results.rows();
    let answer = results.answer(&document);
    assert_eq!(answer.culprit, Culprit::Capture);
    let expected = "mean(total), 1 user: ClamAV on access against no scanner, 1.03 times (0.99 to 1.07), 1.03 s \
                    against 1.00 s, is undecided: 6 more repetitions would probably decide.";
    assert_eq!(answer.headline, expected);
    let commands: Vec<&str> = answer.next.iter().map(|next| next.command.as_str()).collect();
    assert_eq!(commands, ["smbscope study antivirus.toml --quick --repetitions 11 -o antivirus-11"]);
    let too_few = of([1.0, 1.5], &[0.97, 1.02, 1.0], Culprit::Server).answer.headline;
    assert!(
        too_few.ends_with("has too few repetitions for an interval: 2 more repetitions would give one."),
        "{too_few}"
    );
}

/// Returns a ramp of overload percentages by load, and the answer of the study about it.
fn ramp_answer(repetitions: &[[f64; 2]]) -> Answer {
    let mut results = Results::new(&["overload".parse().expect("a measure")], repetitions.len() as u32, 1, [0]);
    for (repetition, percents) in (1..).zip(repetitions) {
        let mut made = ramp();
        made.runs.truncate(2);
        for (run, percent) in made.runs.iter_mut().zip(percents) {
            run.overload = Some(OverloadEntry {
                scenarios: 1_000,
                late: (percent * 10.0) as u64,
                exceeded: 0,
                not_begun: 0,
                percent: *percent,
                late_ns: Nanos(0),
                budget_ns: None,
            });
            let values = vec![Some(30.0), Some(50.0)];
            let metrics = vec![
                ServerSeries::new("cpu", "percent", values.clone()),
                ServerSeries::new("disk_operations", "1/s", values.clone()),
                ServerSeries::new("disk_queue", "count", values),
            ];
            run.server = Some(ServerLoad { source: String::new(), times_ns: Vec::new(), metrics });
        }
        results.add(&study_run(0, repetition), &made);
    }
    let mut document = document();
    (document.results, document.server, document.unfit) = (results.rows(), results.server(), results.unfit());
    results.answer(&document)
}

#[test]
fn a_ramp_answers_with_the_users_that_each_variant_carries() {
    // Loads of 1 and 4 users. The lower median of 1, 1, 1, 4, 4 is 1.
    let answer = ramp_answer(&[[0.0, 5.0], [0.2, 0.9], [0.0, 1.0], [0.0, 0.0], [0.0, 40.0]]);
    let expected = "Users without overload (under 1% of scenarios): no scanner carries 1 user (1 user to 4 users, range of \
                    5 repetitions).";
    assert_eq!(answer.headline, expected);
    assert_eq!(
        answer.evidence[0],
        "no scanner, 1 user: server CPU 40% on average, 50% at most, 40.0 IOPS, disk queue 40.0."
    );
    let all = ramp_answer(&[[0.0, 0.0], [0.0, 0.0]]).headline;
    assert!(all.ends_with("carries 4 users or more, the highest load (the same in 2 repetitions)."), "{all}");
    let none = ramp_answer(&[[3.0, 0.0]]).headline;
    assert!(none.ends_with("carries fewer than 1 user (the same in 1 repetition)."), "{none}");
}

#[test]
fn commands_under_suspicion_are_cleared_by_their_share_of_all_commands() {
    let judged = |negotiations: u64| {
        let suspect = Suspect { name: "Negotiation".to_owned(), commands: vec!["NEGOTIATE".to_owned()] };
        let mut results = Results::new(&[], 1, 1, [0, 0]).suspecting(Some(suspect));
        for variant in [0, 1] {
            let mut made = ramp();
            made.runs.truncate(1);
            made.runs[0].operations = 1_000 - negotiations;
            made.runs[0].connect_commands = [("NEGOTIATE".to_owned(), negotiations)].into();
            results.add(&study_run(variant, 1), &made);
        }
        results.answer(&document())
    };
    let cleared = judged(1);
    let text = "Negotiation is not the cause: 1 of 1,000 commands (0.1%) were NEGOTIATE (ClamAV on access).";
    assert_eq!(cleared.ruled_out, [text]);
    assert_eq!(cleared.evidence[0], "NEGOTIATE per run: 1 (no scanner; ClamAV on access).");
    // One in four, as with a negotiation for each open.
    let guilty = judged(250);
    assert!(guilty.ruled_out.is_empty());
    assert!(
        guilty.evidence[0].starts_with("Negotiation may be the cause: 250 of 1,000 commands (25.0%) "),
        "{:?}",
        guilty.evidence
    );
    assert!(
        judged(50).evidence[0]
            .starts_with("Negotiation is at most a small part of the cause: 50 of 1,000 commands (5.0%) ")
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
        results.add(&study_run(0, repetition), &made);
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
        results.add(&study_run(variant, 1), &made);
    }
    let expected = "In 3 of 4 load points (near; far), the client was the limit: their figures say nothing about the \
                    server. Use a faster client, or fewer users.";
    assert_eq!(results.warnings(&["near", "far"]), [expected]);
}

/// Returns the results of five repetitions of two variants. `other_load` and `stalls` are by variant and repetition.
fn with_incidents(other_load: &[(usize, u32)], stalls: &[(usize, u32)]) -> Results {
    let mut results = Results::new(&["commands".parse().expect("a measure")], 5, 1, [0, 0]);
    for repetition in 1..=5 {
        for variant in [0, 1] {
            let mut made = ramp();
            made.runs.truncate(1);
            let is_in = |list: &[(usize, u32)]| list.contains(&(variant, repetition));
            let stall = StallEntry { start_ns: Timestamp(0), duration_ns: Nanos(3_000_000_000) };
            made.runs[0].stalls = if is_in(stalls) { vec![stall] } else { Vec::new() };
            let other = if is_in(other_load) { 80.0 } else { 2.0 };
            results.add(&StudyRun { other_load_percent: Some(other), ..study_run(variant, repetition) }, &made);
        }
    }
    results
}

#[test]
fn an_unfit_run_is_left_out_and_counted() {
    let results = with_incidents(&[(1, 2)], &[(0, 4)]);
    let rows = results.rows();
    let has = |row: usize| rows[row].values.iter().map(Option::is_some).collect::<Vec<_>>();
    assert_eq!((has(0), has(1)), (vec![true, true, true, false, true], vec![true, false, true, true, true]));
    assert_eq!(
        results.warnings(&["near", "far"]),
        [
            "Left out: 1 of 10 load points (far), because other programs used the processors of this machine.",
            "Left out: 1 of 10 load points (near), because the server stalled.",
        ]
    );
    let unfit = results.unfit();
    assert!(unfit.iter().all(|point| point.left_out) && unfit.len() == 2, "{unfit:?}");
}

/// Without this exception, a variant that always stalls would lose the stalls, which are its answer.
#[test]
fn what_happens_in_most_runs_is_kept_and_said() {
    let results = with_incidents(&[], &[(1, 1), (1, 3), (1, 5)]);
    assert!(results.rows().iter().all(|row| row.values.iter().all(Option::is_some)));
    let text =
        "In 3 of 10 load points (far), the server stalled. They are kept: it happens in most runs of the variant.";
    assert_eq!(results.warnings(&["near", "far"]), [text]);
    let busy: Vec<(usize, u32)> = (1..=5).flat_map(|repetition| [(0, repetition), (1, repetition)]).collect();
    let results = with_incidents(&busy[..6], &[]);
    assert!(results.unfit().iter().all(|point| point.reason == UnfitReason::OtherLoad && !point.left_out));
    let [text] = &results.warnings(&["near", "far"])[..] else { panic!("one sentence") };
    assert!(text.ends_with("That is too many to leave out: repeat the study on an idle machine."), "{text}");
}
