//! Answers on captures with a known cause: something was slowed down deliberately, or nothing was, and the cause was
//! recorded.
//!
//! tests/data/known/TRUTH.tsv lists what was done, EXPECT.tsv the correct answers. The README there explains the
//! columns.

use crate::common::{bundled, finish};
use serde_json::Value;
use smbscope_diagnose::Catalogue;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

const FIRST_SCREEN: usize = 12;
/// Required percentage of right answers. Wrong answers are not allowed.
const RIGHT_LEAST: usize = 90;

/// Expected contents of an answer.
struct Expected {
    file: String,
    culprit: Vec<String>,
    /// Keys of causes that may come first; `-` if there may be none.
    cause: Vec<String>,
    must_not: Vec<String>,
    names: Vec<String>,
}

/// Answer and first lines of the text report.
struct Answered {
    answer: Value,
    screen: String,
}

#[derive(Debug, PartialEq)]
enum Score {
    Right,
    /// Blames nothing wrongly, but is incomplete.
    Short(String),
    Wrong(String),
}

static ANSWERS: LazyLock<Vec<(Expected, Answered)>> = LazyLock::new(|| {
    let folder = folder();
    let expected = expectations(&folder);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let answer = |expected: &[Expected]| -> Vec<Answered> {
        expected.iter().map(|expected| answered(&folder.join(&expected.file))).collect()
    };
    let answers: Vec<Answered> = std::thread::scope(|scope| {
        let parts = expected.chunks(expected.len().div_ceil(workers));
        let working: Vec<_> = parts.map(|part| scope.spawn(|| answer(part))).collect();
        working.into_iter().flat_map(|part| part.join().expect("every capture is answered")).collect()
    });
    expected.into_iter().zip(answers).collect()
});

fn folder() -> PathBuf {
    bundled("known")
}

fn expectations(folder: &Path) -> Vec<Expected> {
    let text = std::fs::read_to_string(folder.join("EXPECT.tsv")).expect("EXPECT.tsv is there");
    let list = |cell: &str| -> Vec<String> { cell.split('|').map(str::to_owned).collect() };
    let without_dash = |cell: &str| list(cell).into_iter().filter(|word| word != "-").collect();
    let rows = text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let rows = rows.map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [file, culprit, cause, must_not, names, ..] = cells[..] else { panic!("too few columns: {line}") };
        Expected {
            file: file.to_owned(),
            culprit: list(culprit),
            cause: list(cause),
            must_not: without_dash(must_not),
            names: without_dash(names),
        }
    });
    rows.collect()
}

fn run(arguments: &[&str], capture: &Path) -> String {
    let mut analyze = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    analyze.args(["analyze", "-q"]).args(arguments).arg(capture).stdin(Stdio::null()).env("NO_COLOR", "1");
    finish(analyze).out
}

fn answered(capture: &Path) -> Answered {
    let report: Value = serde_json::from_str(&run(&["--format", "json"], capture))
        .unwrap_or_else(|error| panic!("{}: {error}", capture.display()));
    let text = run(&["--width", "100"], capture);
    let screen: Vec<&str> = text.lines().take(FIRST_SCREEN).collect();
    Answered { answer: report["answer"].clone(), screen: screen.join(" ").to_lowercase() }
}

impl Answered {
    fn culprit(&self) -> &str {
        self.answer["culprit"].as_str().expect("a culprit")
    }

    fn causes(&self) -> Vec<&str> {
        let causes = self.answer["causes"].as_array().expect("a list");
        causes.iter().map(|cause| cause["id"].as_str().expect("a key")).collect()
    }
}

fn score(expected: &Expected, answered: &Answered) -> Score {
    let (culprit, causes) = (answered.culprit(), answered.causes());
    let first = causes.first().copied().unwrap_or("-");
    let has = |list: &[String], word: &str| list.iter().any(|known| known == word);
    let accuses = !matches!(culprit, "nothing" | "capture");
    if accuses && (!has(&expected.culprit, culprit) || has(&expected.must_not, culprit)) {
        return Score::Wrong(format!("accuses the {culprit}"));
    }
    if has(&expected.must_not, first) {
        return Score::Wrong(format!("first cause {first}"));
    }
    if !has(&expected.culprit, culprit) || !has(&expected.cause, first) {
        return Score::Short(format!("{culprit}, {first}"));
    }
    let named =
        expected.names.is_empty() || expected.names.iter().any(|name| answered.screen.contains(&name.to_lowercase()));
    match named || culprit == "nothing" {
        true => Score::Right,
        false => Score::Short(format!("the first screen names none of {:?}", expected.names)),
    }
}

#[test]
fn answers_on_captures_of_known_cause_are_right_and_none_is_wrong() {
    let scores: Vec<(&str, Score)> =
        ANSWERS.iter().map(|(expected, answered)| (expected.file.as_str(), score(expected, answered))).collect();
    let of = |is: fn(&Score) -> bool| -> Vec<&(&str, Score)> { scores.iter().filter(|(_, score)| is(score)).collect() };
    let wrong = of(|score| matches!(score, Score::Wrong(_)));
    let short = of(|score| matches!(score, Score::Short(_)));
    println!("{} captures; not all of it said: {short:#?}", scores.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    let right = scores.len() - short.len();
    assert!(right * 100 >= scores.len() * RIGHT_LEAST, "{right} of {} right: {short:#?}", scores.len());
}

#[test]
fn no_part_of_an_answer_contradicts_another() {
    for (expected, Answered { answer, .. }) in ANSWERS.iter() {
        let file = &expected.file;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let culprit = text(&answer["culprit"]);
        let headline = text(&answer["headline"]);
        let causes = answer["causes"].as_array().expect("a list");
        let ruled_out: Vec<String> = answer["ruled_out"].as_array().expect("a list").iter().map(text).collect();
        match culprit.as_str() {
            "nothing" => assert!(causes.is_empty() && headline.starts_with("Nothing is slow"), "{file}: {headline}"),
            "capture" => assert!(headline.starts_with("The capture can't tell"), "{file}: {headline}"),
            _ => assert!(headline.to_lowercase().starts_with(&culprit), "{file}: {headline}"),
        }
        if answer["states_first_cause"] == true {
            assert_eq!(text(&causes[0]["culprit"]), culprit, "{file}");
            assert!(headline.contains(&text(&causes[0]["sentence"])), "{file}: {headline}");
        }
        for cause in causes {
            let of = |key: &str| cause["lost_ns"][key].as_i64();
            if let (Some(low), Some(best), Some(high)) = (of("low"), of("best"), of("high")) {
                let active = cause["active_ns"].as_i64().expect("a time");
                assert!(0 <= low && low <= best && best <= high && (active == 0 || high <= active), "{file}: {cause}");
            }
            for said in &ruled_out {
                let excluded = said.split(':').next().unwrap_or_default().to_lowercase();
                let id = text(&cause["id"]);
                let contradicts = match excluded.as_str() {
                    "packet loss" => id == "network-loss" || id == "network-outage",
                    "negotiation" => id == "negotiate-churn",
                    other => other == text(&cause["culprit"]),
                };
                assert!(!contradicts, "{file}: {said} beside {id}");
            }
        }
        let mut seen = BTreeSet::new();
        for cause in causes {
            assert!(
                seen.insert((text(&cause["id"]), text(&cause["subject"]["client"]), text(&cause["subject"]["server"]))),
                "{file}: twice {cause}"
            );
        }
    }
}

#[test]
fn every_command_that_an_answer_proposes_runs() {
    for (expected, Answered { answer, .. }) in ANSWERS.iter().step_by(6) {
        for next in answer["next"].as_array().expect("a list") {
            let line = next["command"].as_str().expect("a command");
            let line = line.strip_prefix("smbscope ").expect("it is ours");
            let mut shell = Command::new("sh");
            shell.current_dir(env!("CARGO_TARGET_TMPDIR")).args(["-c", &format!("\"$SMBSCOPE\" {line}")]);
            let said = finish({
                shell.env("SMBSCOPE", env!("CARGO_BIN_EXE_smbscope")).stdin(Stdio::null());
                shell
            });
            assert_eq!(said.status, Some(0), "{}: {line}: {}", expected.file, said.err);
        }
    }
}

/// Tests that provoke a cause, or build it packet by packet.
const PROVOKED: [&str; 6] = [
    include_str!("built.rs"),
    include_str!("client.rs"),
    include_str!("files.rs"),
    include_str!("ini.rs"),
    include_str!("network.rs"),
    include_str!("server.rs"),
];

#[test]
fn every_cause_is_found_in_a_capture_and_absent_from_another() {
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, Answered { answer, .. }) in ANSWERS.iter() {
        let causes = ["causes", "notes"].into_iter().flat_map(|list| answer[list].as_array().expect("a list"));
        let titles = |cause: &'static Value| cause["also"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let ids: BTreeSet<&str> = causes
            .flat_map(|cause| {
                cause["id"].as_str().into_iter().chain(titles(cause).filter_map(crate::causes::scene::key_of))
            })
            .collect();
        ids.into_iter().for_each(|id| *found.entry(id).or_default() += 1);
    }
    for (id, _) in Catalogue::default().entries() {
        let times = found.get(id).copied().unwrap_or(0);
        assert!(times < ANSWERS.len() / 2, "{id} is in {times} of {} captures", ANSWERS.len());
        println!("{id}: {times}");
        let is_provoked = PROVOKED.iter().any(|tests| tests.contains(&format!("\"{id}\"")));
        assert!(times > 0 || is_provoked, "no capture shows {id}, and no test provokes it");
    }
}
