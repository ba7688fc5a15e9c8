use super::*;
use crate::directory::RUN;
use crate::document::tests::document;
use smbscope_model::Nanos;
use std::collections::BTreeMap;
use std::fs;

const TWO: &str = "
name = 'two'
repetitions = 5
measures = ['commands']

[bench]
users = 4

[[axis]]
name = 'server'
[[axis.setting]]
name = 'old'
[[axis.setting]]
name = 'new'
lab.delay = '1ms'

[[axis]]
bench.dialect = ['2.1', '3.1.1']
";

fn study(text: &str) -> Study {
    Study::parse("two.toml", text, false).unwrap()
}

/// Fake runs whose throughput depends on the variant and the repetition.
#[derive(Default)]
struct Made {
    /// Interrupts the study after this many runs.
    most: Option<usize>,
    failing: Option<(&'static str, usize)>,
    begun: Vec<(String, u32)>,
    said: Vec<String>,
    /// Loads of other programs, from the last to the first; 0 afterwards.
    other_loads: Vec<f64>,
    /// Variant whose first runs stall, and how many of them.
    stalling: Option<(&'static str, usize)>,
}

impl Conductor for Made {
    fn run(&mut self, variant: &PlannedVariant, directory: &Path) -> Result<bench::BenchDocument, String> {
        self.begun.push((variant.name.clone(), directory.file_name().unwrap().to_str().unwrap().parse().unwrap()));
        if let Some((name, times)) = &mut self.failing
            && variant.name.starts_with(*name)
            && *times > 0
        {
            *times -= 1;
            return Err("no such server".to_owned());
        }
        let mut made = document(&[4]);
        // A fit run: without failed operations and missed arrivals.
        made.runs[0].pace = bench::ScheduleAdherence::Closed;
        made.runs[0].workload_operations.iter_mut().for_each(|operation| operation.unexpected.clear());
        let repetition = self.begun.last().unwrap().1;
        made.runs[0].operations_per_second =
            (if variant.name.starts_with("new") { 50.0 } else { 100.0 }) + f64::from(repetition);
        if let Some((name, times)) = &mut self.stalling
            && variant.name.starts_with(*name)
            && *times > 0
        {
            *times -= 1;
            let start_ns = made.runs[0].started_ns;
            made.runs[0].stalls = vec![bench::StallEntry { start_ns, duration_ns: Nanos(2_000_000_000) }];
        }
        fs::create_dir_all(directory).unwrap();
        let mut text = Vec::new();
        bench::write(&made, &mut text).unwrap();
        fs::write(directory.join(RUN), text).unwrap();
        Ok(made)
    }

    fn is_interrupted(&self) -> bool {
        self.most.is_some_and(|most| self.begun.len() >= most)
    }

    fn other_load(&mut self) -> Option<f64> {
        Some(self.other_loads.pop().unwrap_or(0.0))
    }

    fn begins(&mut self, _place: &StudyProgress<'_>) {}

    fn unfit(&mut self, place: &StudyProgress<'_>, why: &str) {
        self.said.push(format!("{}: {why}", place.variant.name));
    }

    fn ended(&mut self, place: &StudyProgress<'_>, result: Result<&bench::BenchDocument, (&str, bool)>) {
        if let Err((why, again)) = result {
            self.said.push(format!("{}: {why}, {again}", place.variant.name));
        }
    }
}

#[test]
fn every_setting_goes_with_every_other_and_later_ones_replace_earlier_ones() {
    let variants = study(TWO).variants();
    let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["old, dialect 2.1", "old, dialect 3.1.1", "new, dialect 2.1", "new, dialect 3.1.1"]);
    assert_eq!(variants[3].folder, "04-new-dialect-3.1.1");
    assert_eq!(variants[3].options.bench_words(), ["--dialect=3.1.1", "--users=4"]);
    assert_eq!(variants[3].options.lab_words(), ["--delay=1ms"]);
    assert_eq!(variants[0].options.lab_words(), Vec::<String>::new());
}

#[test]
fn variants_are_compared_with_the_first_or_along_an_axis() {
    let baselines = |along: &str| -> Vec<usize> {
        let study = study(&TWO.replace("measures", &format!("{along}\nmeasures")));
        study.variants().iter().map(|variant| variant.baseline).collect()
    };
    assert_eq!(baselines(""), [0, 0, 0, 0]);
    assert_eq!(baselines("compare_along = 'dialect'"), [0, 0, 2, 2]);
    assert_eq!(baselines("compare_along = 'server'"), [0, 1, 0, 1]);
}

#[test]
fn a_repetition_has_every_variant_once_in_an_order_of_its_own() {
    let study = study(TWO);
    let turns = study.turns(4);
    assert_eq!(turns, study.turns(4));
    let blocks: Vec<Vec<usize>> =
        turns.chunks(4).map(|block| block.iter().map(|turn| turn.variant).collect()).collect();
    for (at, block) in blocks.iter().enumerate() {
        let mut sorted = block.clone();
        sorted.sort_unstable();
        assert_eq!((sorted, turns[4 * at].repetition), (vec![0, 1, 2, 3], at as u32 + 1));
    }
    assert!(blocks.iter().any(|block| *block != blocks[0]));
    assert_ne!(Study { seed: 2, ..study }.turns(4), turns);
}

#[test]
fn the_short_form_keeps_some_settings_and_changes_options() {
    let text = TWO.replace("[bench]", "[quick]\nrepetitions = 2\nbench.users = 1\n[bench]")
        + "quick = ['3.1.1']\n[[axis]]\nset.block = [4096, '64KiB']\n";
    let quick = Study::parse("two.toml", &text, true).unwrap();
    assert_eq!((quick.repetitions, quick.variants().len()), (2, 4));
    let arguments = quick.variants()[0].options.bench_words();
    assert_eq!(arguments, ["--dialect=3.1.1", "--users=1", "--set=block=4096"]);
    assert_ne!(quick.definition.sha256, study(&text).definition.sha256);
    assert_eq!(study(&text).repetitions, 5);
}

#[test]
fn targets_stand_for_the_servers_of_the_file() {
    let mut named = study(TWO);
    named.at_targets(&["a=smb://ann@a/s".to_owned(), "smb://b.example/s".to_owned()]).unwrap();
    let variants = named.variants();
    assert_eq!(variants[0].name, "a, dialect 2.1");
    assert_eq!(variants[2].name, "b.example, dialect 2.1");
    assert_eq!(variants[2].options.target(), Some("smb://b.example/s"));
    assert_eq!(variants[2].options.lab_option(), None);
    assert_ne!(named.definition.sha256, study(TWO).definition.sha256);
    // A single target for a study without servers adds no axis.
    let mut one = study("name = 'one'\n[lab]\ndelay = '1ms'\n");
    one.at_targets(&["smb://a/s".to_owned()]).unwrap();
    assert_eq!((one.variants().len(), one.variants()[0].options.lab_option()), (1, None));
    let error = one.at_targets(&["a=smb://x/s".to_owned(), "a=smb://y/s".to_owned()]).unwrap_err();
    assert!(error.contains("two targets are called \"a\""), "{error}");
    assert!(one.at_targets(&["\\\\x\\s".to_owned()]).unwrap_err().contains("--target"));
}

#[test]
fn targets_are_described_by_their_names() {
    let mut named = study(TWO);
    named.at_targets(&["a=smb://ann@a/s".to_owned(), "smb://b.example/s".to_owned()]).unwrap();
    named.describe(&["a= 2 processors, RAID 10".to_owned(), "b.example=x=y".to_owned()]).unwrap();
    let about = ["smb://ann@a/s", "smb://b.example/s", "smb://c/s"].map(|target| named.description(target));
    assert_eq!(about, [Some("2 processors, RAID 10".to_owned()), Some("x=y".to_owned()), None]);
    for (text, expected) in [("c=x", "no --target has this name"), ("a", "expected NAME=TEXT"), ("a=", "NAME=TEXT")] {
        let error = named.describe(&[text.to_owned()]).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, expected) in [
        ("", "two.toml:1:1: missing field `name`"),
        ("name = 'x'\nrepetition = 3", "two.toml:2:1: unknown field `repetition`; did you mean repetitions?"),
        ("name = 'x'\nrepetitions = 0", "two.toml:2:15: repetitions are 1 to 1000"),
        ("name = 'x'\nmeasures = ['p42(Read)']", "two.toml:2:13: `p42` is none of"),
        ("name = 'x'\n[[axis]]\n", "two.toml:2:1: an axis has either one option"),
        ("name = 'x'\n[[axis]]\nbench.users = 5", "two.toml:2:1: an axis has either one option"),
        ("name = 'x'\n[[axis]]\nbench.users = [5, 5]", "two.toml:2:1: the axis users has two settings \"5\""),
        ("name = 'x'\n[[axis]]\n[[axis.setting]]\nname='a'", "two.toml:2:1: an axis with settings needs a name"),
        (
            "name = 'x'\n[[axis]]\nbench.users = [5]\n[[axis]]\nname = 'users'\nlab.accounts = [1]",
            "two.toml:4:1: two axes are called \"users\"",
        ),
        ("name = 'x'\n[bench]\noutput = 'there'", "two.toml:1:8: a study sets --output itself"),
        ("name = 'x'\n[bench]\nset = ['a=1']", "two.toml:1:8: parameters of the workload are in the table [set]"),
        ("name = 'x'\n[bench]\n\"--users\" = 1", "two.toml:1:8: options are written without --: users"),
        ("name = 'x'\n[[axis", "two.toml:2:7: "),
        (
            "name = 'x'\ncompare_along = 'dialekt'\n[[axis]]\nbench.dialect = ['2.1']",
            "two.toml:2:17: no axis is called \"dialekt\"; there are: dialect",
        ),
    ] {
        let error = Study::parse("two.toml", text, false).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let many = "[[axis]]\nname = 'NAME'\nbench.users = [1,2,3,4,5,6,7,8,9,10,11]\n";
    let many: String = ["a", "b", "c"].map(|name| many.replace("NAME", name)).concat();
    let error = Study::parse("two.toml", &format!("name = 'x'\n{many}"), false).unwrap_err().to_string();
    assert!(error.ends_with("more than 1000 variants together"), "{error}");
}

#[test]
fn an_interrupted_study_goes_on_and_repeats_or_loses_nothing() {
    let (study, place) = (study(TWO), tempfile::tempdir().unwrap());
    let path = place.path().join("results");
    let mut begun = Vec::new();
    let mut last = None;
    // The last session has nothing left to do.
    for most in [3, 1, 7, 100, 100] {
        let mut session = Made { most: Some(most), ..Made::default() };
        let document = run(&study, &path, &mut session).unwrap();
        begun.append(&mut session.begun);
        let kept = fs::read(path.join(STUDY)).unwrap();
        let mut told = Vec::new();
        study::write(&document, &mut told).unwrap();
        assert_eq!(String::from_utf8(kept).unwrap(), String::from_utf8(told).unwrap());
        assert_eq!(document.runs.len(), begun.len());
        last = Some(document);
    }
    let mut once: BTreeMap<(String, u32), u32> = BTreeMap::new();
    begun.iter().for_each(|run| *once.entry(run.clone()).or_default() += 1);
    assert_eq!((once.len(), once.values().max()), (20, Some(&1)));
    // Compare with an uninterrupted study.
    let whole = run(&study, &place.path().join("whole"), &mut Made::default()).unwrap();
    let last = last.unwrap();
    assert_eq!(last.results, whole.results);
    // 51 to 55 against 101 to 105 commands per second: about half, far outside an error of five percent.
    let new = last.results.iter().find(|row| row.variant == 2).unwrap();
    let factor = new.factor.as_ref().unwrap();
    assert!((factor.ratio.unwrap() - 0.514).abs() < 0.001, "{factor:?}");
    assert!(factor.answer.differs());
    let said = "commands, 4 users: dialect 2.1: new is slower than old, 1.94 times (1.91 to 1.98)";
    let headline = &last.answer.headline;
    assert!(headline.starts_with(said) && headline.ends_with("; 1 more below."), "{headline}");
    assert_eq!(last.answer, whole.answer);
    assert_eq!(last.results[1].factor.as_ref().unwrap().answer, smbscope_stats::replication::DifferenceVerdict::Equal);
}

#[test]
fn a_failed_run_is_tried_once_more_and_then_left_out_until_the_next_time() {
    let (study, place) = (study(TWO), tempfile::tempdir().unwrap());
    let mut once = Made { failing: Some(("old, dialect 3", 1)), ..Made::default() };
    let document = run(&study, &place.path().join("once"), &mut once).unwrap();
    assert_eq!(once.said, ["old, dialect 3.1.1: no such server, true"]);
    assert_eq!((once.begun.len(), document.runs.len()), (21, 20));
    assert_eq!(document.runs.iter().map(|run| run.attempts).max(), Some(2));

    let path = place.path().join("twice");
    let mut twice = Made { failing: Some(("old, dialect 3", 2)), ..Made::default() };
    let document = run(&study, &path, &mut twice).unwrap();
    let failed: Vec<_> = document.runs.iter().filter_map(|run| run.failed.as_deref()).collect();
    assert_eq!((failed.as_slice(), document.runs.len()), (&["no such server"][..], 20));
    let mut next = Made::default();
    let document = run(&study, &path, &mut next).unwrap();
    assert_eq!((next.begun.len(), document.runs.len()), (1, 20));
    assert!(document.runs.iter().all(|run| run.failed.is_none()));
}

#[test]
fn an_unfit_run_is_repeated_once_and_only_the_repetition_counts() {
    let (study, place) = (study(TWO), tempfile::tempdir().unwrap());
    let mut once = Made { stalling: Some(("old, dialect 3", 1)), ..Made::default() };
    let document = run(&study, &place.path().join("once"), &mut once).unwrap();
    assert_eq!(once.said, ["old, dialect 3.1.1: the server stalled"]);
    assert_eq!((once.begun.len(), document.runs.len(), document.unfit.len()), (21, 20, 0));
    let repeated: Vec<_> = document.runs.iter().filter_map(|run| run.repeated.as_deref()).collect();
    assert_eq!(repeated, ["the server stalled"]);

    let mut twice = Made { stalling: Some(("old, dialect 3", 2)), ..Made::default() };
    let document = run(&study, &place.path().join("twice"), &mut twice).unwrap();
    assert_eq!((twice.begun.len(), document.unfit.len()), (21, 1));
    assert!(document.warnings.iter().any(|text| text.starts_with("Left out: 1 of 20 load points")), "{document:?}");
    let left_out: Vec<_> = document.results.iter().filter(|row| row.values.contains(&None)).collect();
    assert_eq!(left_out.len(), 1);
}

#[test]
fn other_load_before_or_after_a_run_makes_it_unfit_and_repeats_are_bounded() {
    let (study, place) = (study(TWO), tempfile::tempdir().unwrap());
    // Before and after the first run, and before and after its repetition, from the last to the first.
    let mut made = Made { other_loads: vec![2.0, 1.0, 90.0, 3.0], ..Made::default() };
    let document = run(&study, &place.path().join("after"), &mut made).unwrap();
    assert_eq!((made.begun.len(), document.runs[0].attempts), (21, 2));
    // The load after a run is the load before the next.
    assert_eq!((document.runs[0].other_load_percent, document.runs[1].other_load_percent), (Some(2.0), Some(2.0)));
    assert_eq!(document.unfit.len(), 0);
    let mut made = Made { other_loads: vec![90.0; 100], ..Made::default() };
    let document = run(&study, &place.path().join("always"), &mut made).unwrap();
    // 20 runs, and 20 / 4 + 1 repeats.
    assert_eq!((made.begun.len(), document.unfit.len()), (26, 20));
    assert!(document.unfit.iter().all(|point| !point.left_out));
}

#[test]
fn the_short_form_says_what_it_leaves_out() {
    let text = TWO.replace("[bench]", "[quick]\nbench.users = 1\n[bench]") + "quick = ['3.1.1']\n";
    let quick = Study::parse("two.toml", &text, true).unwrap();
    assert_eq!(quick.definition.left_out, ["dialect 2.1", "users 1 instead of 4"]);
    assert!(study(&text).definition.left_out.is_empty());
}

#[test]
fn with_a_target_launches_say_where_they_ran_and_private_servers_are_left_out() {
    let text = "name = 'launch'\n[launch]\ncommand = ['true']\n[[axis]]\nname = 'profile'\n\
                [[axis.setting]]\nname = 'local'\n\
                [[axis.setting]]\nname = 'share'\nlaunch = { target = 'lab' }\n\
                [[axis.setting]]\nname = 'busy'\nlaunch = { target = 'lab' }\nlab.cpu-load = 50\n";
    let mut given = study(text);
    let places = |study: &Study| study.variants().iter().map(PlannedVariant::place).collect::<Vec<_>>();
    assert_eq!(places(&given), ["this machine", "private server", "private server"]);
    given.at_targets(&["smb://ann@server/share".to_owned()]).unwrap();
    assert_eq!(places(&given), ["this machine", "smb://ann@server/share"]);
    assert_eq!(given.definition.left_out, ["busy (needs a private server)"]);
    assert_eq!(given.variants()[1].options.launch().values("target"), ["smb://ann@server/share"]);
    assert!(given.variants()[0].options.launch().values("target").is_empty());
    // A study without marks has all its files on the target.
    let mut all = study("name = 'x'\n[launch]\ncommand = ['true']\n");
    all.at_targets(&["smb://a/s".to_owned()]).unwrap();
    assert_eq!(places(&all), ["smb://a/s"]);
    let mut power = study("name = 'power'\nthis_machine = 'it is fixed'\n");
    let error = power.at_targets(&["smb://a/s".to_owned()]).unwrap_err();
    assert_eq!(error, "power can't be made with --target: it is fixed");
}

#[test]
fn commands_stand_around_each_run_and_one_that_fails_is_a_failed_run() {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    let text = format!(
        "name = 'x'\nrepetitions = 1\n[[axis]]\nname = 'power'\n[[axis.setting]]\nname = 'a'\n\
         before = ['echo before $SMBSCOPE_VARIANT >>{log}']\nafter = ['echo after $SMBSCOPE_REPETITION >>{log}']\n\
         [[axis.setting]]\nname = 'b'\nbefore = ['echo no such profile >&2; exit 4']\nafter = ['echo after b >>{log}']\n",
        log = log.display()
    );
    let mut made = Made::default();
    let document = run(&study(&text), &place.path().join("results"), &mut made).unwrap();
    assert_eq!(made.begun, [("a".to_owned(), 1)]);
    let mut said: Vec<String> = fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect();
    said.sort();
    assert_eq!(said, ["after 1", "after b", "after b", "before a"]);
    let failed = document.runs.iter().find_map(|run| run.failed.as_deref()).unwrap();
    assert!(failed.starts_with("the command before the run failed (exit status: 4)"), "{failed}");
    assert!(failed.ends_with("no such profile"), "{failed}");
}

#[test]
fn the_directory_of_another_study_or_of_somebody_else_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let foreign = place.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("letter.txt"), "dear").unwrap();
    let refused = |study: &Study, path: &Path| run(study, path, &mut Made::default()).unwrap_err().to_string();
    assert!(refused(&study(TWO), &foreign).contains("name a new or empty directory"));
    let path = place.path().join("mine");
    run(&study(TWO), &path, &mut Made { most: Some(1), ..Made::default() }).unwrap();
    let kept = fs::read(path.join(STUDY)).unwrap();
    let changed = study(&TWO.replace("users = 4", "users = 8"));
    assert!(refused(&changed, &path).contains("belongs to another study"));
    assert!(refused(&Study { repetitions: 6, ..study(TWO) }, &path).contains("belongs to another study"));
    assert_eq!(fs::read(path.join(STUDY)).unwrap(), kept);
    // Half a document, left by a killed process.
    fs::write(path.join(STUDY), &kept[..kept.len() / 2]).unwrap();
    assert!(refused(&study(TWO), &path).contains("study.json: not JSON, or cut off"));
}

fn missing(needs: &str) -> Result<(), String> {
    let text =
        format!("name = 'x'\n{needs}\n[[axis]]\nname = 'a'\n[[axis.setting]]\nname = 'on'\nbench.target = 'file:.'\n");
    let study = Study::parse("x.toml", &text, false).expect("a study");
    check_needs(&study, &study.variants())
}

#[test]
fn everything_that_is_missing_is_told_at_once_with_the_command_that_installs_it() {
    assert_eq!(missing("[[need]]\nprogram = 'sh'\npackage = 'dash'\n[[need]]\nfile = '/'\notherwise = 'none'"), Ok(()));
    let needs = "[[need]]\nprogram = 'no-such-a'\npackage = 'b'\n[[need]]\nprogram = 'no-such-b'\npackage = 'a'\n\
                 [[need]]\nfile = '/no/such'\notherwise = 'the power profile is fixed'\n\
                 [[need]]\nvariable = 'NO_SUCH_VARIABLE'\notherwise = 'off has none'\nsetting = 'off'";
    let expected = "x can't run here: no-such-a and no-such-b are not installed (Debian, Ubuntu: apt install a b); \
                    the power profile is fixed";
    assert_eq!(missing(needs), Err(expected.to_owned()));
}

#[test]
fn a_need_without_advice_is_refused() {
    for need in ["program = 'a'", "file = '/a'", "program = 'a'\npackage = 'b'\nroot = true\notherwise = 'c'", ""] {
        let error = Study::parse("x.toml", &format!("name = 'x'\n[[need]]\n{need}"), false).unwrap_err().to_string();
        assert!(error.starts_with("x.toml:2:1: a need is a program with its package"), "{error}");
    }
}
