use super::super::{Action, Expected, Scenarios, Script, UserSeat, Workload, WorkloadSource};
use super::*;
use proptest::prelude::*;
use smbscope_wire::status::NtStatus;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

fn seat(number: u32, seed: u64) -> UserSeat {
    UserSeat { number, of: 4, seed, directory: "bench".to_owned() }
}

fn script(text: &str) -> SyntheticScript {
    SyntheticScript::new(
        Arc::new(parse("my.toml", text).unwrap_or_else(|error| panic!("{error}")).synthetic),
        &seat(0, 1),
    )
}

fn error(text: &str) -> String {
    match parse("my.toml", text) {
        Ok(_) => panic!("it was taken"),
        Err(error) => error.to_string(),
    }
}

/// A workload with one operation of these steps.
fn with_steps(steps: &str) -> String {
    format!("name = \"w\"\n[files]\ncount = 4\nsize = \"10KiB\"\n[[operation]]\nname = \"o\"\nsteps = [{steps}]\n")
}

#[test]
fn steps_say_what_the_file_says() {
    let mut script = script(&with_steps(
        r#"{ do = "open", file = "next", access = "both" }, { do = "write", offset = "sequential", length = "4KiB", repeat = 3 },
           { do = "read", offset = 100, length = 10 }, { do = "close" }"#,
    ));
    let steps: Vec<String> = (0..6).map(|_| format!("{:?}", script.next().unwrap().action)).collect();
    assert!(steps[0].contains(r#"path: "bench\\user00001\\files\\dir0000\\file000000.dat""#), "{}", steps[0]);
    assert_eq!(steps[1], "Write { slot: HandleSlot(0), offset: 0, length: 4096 }");
    assert_eq!(steps[2], "Write { slot: HandleSlot(0), offset: 4096, length: 4096 }");
    // A third block would extend the 10 KiB file, so the offset wraps to the beginning.
    assert_eq!(steps[3], "Write { slot: HandleSlot(0), offset: 0, length: 4096 }");
    assert_eq!(steps[4], "Read { slot: HandleSlot(0), offset: 100, length: 10 }");
    assert_eq!(steps[5], "Close(HandleSlot(0))");
}

#[test]
fn steps_that_count_as_something_else_are_operations_of_their_own() {
    let workload = Workload::builtin("metadata").unwrap();
    let names = ["create", "query", "rename", "remove", "make directory", "remove directory", "query nothing", "list"];
    assert_eq!(workload.operations(), names);
    let mut script = workload.script(&seat(0, 1));
    let mut completed = BTreeMap::new();
    let mut begun = None;
    for _ in 0..10_000 {
        let step = script.next().unwrap();
        let Some(operation) = step.operation else { continue };
        // An operation completes before the next one starts.
        assert!(begun.is_none_or(|begun| begun == operation));
        begun = (!step.completes).then_some(operation);
        *completed.entry(names[operation]).or_insert(0) += u32::from(step.completes);
    }
    assert!(completed["create"].abs_diff(completed["remove"]) <= 1);
    assert_eq!(completed["make directory"].abs_diff(completed["remove directory"]), 0);
}

#[test]
fn what_is_made_is_renamed_and_removed_by_its_own_name() {
    let mut script =
        script(&with_steps(r#"{ do = "open", file = "new" }, { do = "close" }, { do = "rename" }, { do = "remove" }"#));
    let steps: Vec<String> = (0..6).map(|_| format!("{:?}", script.next().unwrap().action)).collect();
    assert_eq!(steps[0], r#"RemoveTree("bench\\user00001\\new", Own("bench\\user00001"))"#);
    assert_eq!(steps[1], r#"MakeDirectory("bench\\user00001\\new")"#);
    assert!(steps[2].contains(r#"new\\file00000001.dat"#) && steps[2].contains("Create"), "{}", steps[2]);
    assert_eq!(
        steps[4],
        r#"Rename { from: "bench\\user00001\\new\\file00000001.dat", to: "bench\\user00001\\new\\file00000002.dat" }"#
    );
    assert_eq!(steps[5], r#"RemoveFile("bench\\user00001\\new\\file00000002.dat")"#);
}

#[test]
fn weights_are_kept() {
    let text = "name = \"w\"\n[[operation]]\nname = \"a\"\nweight = 70\nsteps = [{ do = \"echo\" }]\n\
                [[operation]]\nname = \"b\"\nweight = 30\nsteps = [{ do = \"echo\" }]\n\
                [[operation]]\nname = \"c\"\nweight = 0\nsteps = [{ do = \"echo\" }]\n";
    let mut script = script(text);
    let mut counts = [0u32; 3];
    for _ in 0..10_000 {
        counts[script.next().unwrap().operation.unwrap()] += 1;
    }
    // 7,000 of 10,000 with a standard deviation of 46.
    assert!((6_800..7_200).contains(&counts[0]) && counts[2] == 0, "{counts:?}");
}

#[test]
fn users_think_between_operations_and_nowhere_else() {
    let mut script = script(
        "name = \"w\"\nthink = { uniform = [\"1ms\", \"3ms\"] }\n[[operation]]\nname = \"a\"\nsteps = [{ do = \"echo\", repeat = 2 }]\n",
    );
    let steps: Vec<bool> = (0..6).map(|_| matches!(script.next().unwrap().action, Action::Think(_))).collect();
    assert_eq!(steps, [false, false, true, false, false, true]);
}

#[test]
fn a_new_session_opens_again_what_stays_open() {
    let mut script = Workload::builtin("read").unwrap().script(&seat(0, 1));
    assert!(script.sets_up());
    assert!(matches!(script.next().unwrap().action, Action::Open { .. }));
    assert!(!script.sets_up());
    assert!(matches!(script.next().unwrap().action, Action::Read { offset: 0, length: 65_536, .. }));
    assert!(matches!(script.next().unwrap().action, Action::Read { offset: 65_536, .. }));
    script.restart();
    assert!(matches!(script.next().unwrap().action, Action::Open { .. }));
    assert!(matches!(script.next().unwrap().action, Action::Read { offset: 0, .. }));
}

#[test]
fn errors_say_where_and_what_is_allowed() {
    assert_eq!(
        error("name = \"w\"\n[[operation]]\nname = \"a\"\nsteps = [{ do = \"raed\" }]")
            .split("? There")
            .next()
            .unwrap(),
        "my.toml:4:17: there is no step \"raed\"; did you mean \"read\""
    );
    assert_eq!(
        error("name = \"w\"\ndescripton = \"x\"\n").split("? There").next().unwrap(),
        "my.toml:2:1: unknown field \"descripton\"; did you mean \"description\""
    );
    let wrong = [
        (r#"{ do = "echo", length = 3 }"#, "a step \"echo\" has no key \"length\""),
        (r#"{ do = "read", length = 3 }"#, "\"file\" is not open here; open a file in a step before"),
        (r#"{ do = "open", file = "random" }"#, "the operation leaves \"file\" open"),
        (
            r#"{ do = "open", access = "read" }, { do = "write", length = 1 }, { do = "close" }"#,
            "was not opened for this",
        ),
        (r#"{ do = "open" }, { do = "open" }, { do = "close" }"#, "\"file\" is open already"),
        (r#"{ do = "open", mode = "create" }, { do = "close" }"#, "a file of the set can only be opened"),
        (r#"{ do = "query", file = "any" }"#, "there is no file \"any\""),
        (r#"{ do = "query", file = "same" }"#, "no step before has chosen a file"),
        (r#"{ do = "query", file = "random" }, { do = "remove" }"#, "no file that this step may remove"),
        (r#"{ do = "list", pattern = "..\\*" }"#, "could lead out"),
        (r#"{ do = "list", pattern = "a\\b" }"#, "the pattern is not a name"),
        (r#"{ do = "open_read_close", length = 0 }"#, "the length is out of bounds"),
        (r#"{ do = "open_read_close", length = "4 bits" }"#, "\"4 bits\" is not a size"),
        (r#"{ do = "think" }"#, "the step has no time"),
        (r#"{ do = "think", time = "5" }"#, "\"5\" is not a time"),
        (r#"{ do = "remove_directory" }"#, "there is no directory to remove"),
        (r#"{ do = "query", expect = "NOPE" }"#, "\"NOPE\" is not a status"),
        (r#"{ do = "echo", repeat = 0 }"#, "repeat is 0; write a number from 1"),
    ];
    for (steps, expected) in wrong {
        let error = error(&with_steps(steps));
        assert!(error.contains(expected) && error.starts_with("my.toml:"), "{steps}: {error}");
    }
    assert!(error("name = \"w\"").contains("no operation"));
    assert!(error("name = ").starts_with("my.toml:1:"));
    let bare = "name = \"w\"\n[[operation]]\nname = \"a\"\nsteps = [{ do = \"query\", file = \"random\" }]";
    assert!(error(bare).contains("the workload has no files"));
}

#[test]
fn scenarios_have_a_rate_and_limits() {
    let with = |scenarios: &str| {
        let text = format!(
            "name = \"w\"\n[parameters]\nrate = \"5/min\"\n[scenarios]\n{scenarios}\n[[operation]]\nname = \"o\"\n\
             steps = [{{ do = \"echo\" }}]\n"
        );
        Workload::toml("my.toml", &text, WorkloadSource::BuiltIn).map(|workload| workload.scenarios())
    };
    let expected = Scenarios { rate: 5.0 / 60.0, late: Duration::from_secs(1), budget: None };
    assert_eq!(with("rate = \"$rate\"").unwrap(), Some(expected));
    let expected = Scenarios { rate: 2.0, late: Duration::from_millis(500), budget: Some(Duration::from_secs(10)) };
    assert_eq!(with("rate = \"2/s\"\nlate = \"500ms\"\nbudget = \"10s\"").unwrap(), Some(expected));
    for (scenarios, said) in [
        ("rate = \"0/s\"", "my.toml:5:8: \"0/s\" is not a rate; write how many each user begins a second"),
        ("rate = \"2/s\"\nbudget = \"0\"", "my.toml:6:10: the limit is 0"),
        ("rate = \"2/s\"\nlate = \"soon\"", "my.toml:6:8: \"soon\" is not a time"),
        ("late = \"1s\"", "missing field `rate`"),
    ] {
        let error = with(scenarios).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let sequence = "name = \"w\"\norder = \"sequence\"\n[scenarios]\nrate = \"2/s\"\n[[operation]]\nname = \"o\"\n\
                    steps = [{ do = \"echo\" }]\n";
    assert!(error(sequence).contains("scenarios are drawn at random, and a sequence is not"), "{}", error(sequence));
    assert_eq!(Workload::builtin("read").unwrap().scenarios(), None);
}

#[test]
fn control_codes_are_known_by_name_and_belong_to_dialects() {
    let controls = r#"{ do = "open", file = "next" }, { do = "ioctl", code = "FSCTL_GET_REPARSE_POINT" },
        { do = "ioctl", code = "DFS_GET_REFERRALS" }, { do = "close" }, { do = "session_setup" },
        { do = "tree_connect" }, { do = "tree_connect", share = "IPC$" }"#;
    let mut script = script(&with_steps(controls));
    let steps: Vec<(String, Expected)> = (0..7)
        .map(|_| {
            let step = script.next().unwrap();
            let action = match step.action {
                Action::Control { control, slot } => format!("{} {}", control.code, slot.is_some()),
                other => format!("{other:?}"),
            };
            (action, step.expected)
        })
        .collect();
    let names: Vec<&str> = steps.iter().map(|(action, _)| action.as_str()).collect();
    assert_eq!(names[1..3], ["FSCTL_GET_REPARSE_POINT true", "FSCTL_DFS_GET_REFERRALS false"]);
    assert_eq!(names[4..], ["SessionSetup", "TreeConnect(Own)", "TreeConnect(Ipc)"]);
    let refused = steps[1].1;
    assert!(refused.is_met_by(NtStatus::NOT_A_REPARSE_POINT) && refused.is_met_by(NtStatus::SUCCESS));
    assert!(!refused.is_met_by(NtStatus::ACCESS_DENIED));

    let workload = Workload::toml("w.toml", &with_steps(controls), WorkloadSource::BuiltIn).unwrap();
    assert!(workload.check_dialect(Dialect::Smb2(0x0202)).is_ok());
    let refused = workload.check_dialect(Dialect::NtLm012).unwrap_err().to_string();
    assert!(refused.contains("sends FSCTL_DFS_GET_REFERRALS, which can't be done in NT LM 0.12"), "{refused}");

    let error = |step: &str| error(&with_steps(step));
    for (step, expected) in [
        (r#"{ do = "ioctl" }"#, "the step has no code; add code"),
        (r#"{ do = "ioctl", code = "SET_REPARSE_POINT" }"#, "did you mean \"GET_REPARSE_POINT\""),
        (r#"{ do = "ioctl", code = "GET_REPARSE_POINT" }"#, "\"file\" is not open here"),
        (r#"{ do = "ioctl", code = "DFS_GET_REFERRALS", of = "file" }"#, "is about the server, and not about a file"),
        (r#"{ do = "tree_connect", share = "C$" }"#, "there is no share \"C$\""),
    ] {
        assert!(error(step).contains(expected), "{}", error(step));
    }
}

#[test]
fn a_text_is_told_from_a_loadfile_by_its_first_line() {
    assert!(looks_like_toml("# comment\n\nname = \"x\"\n"));
    assert!(looks_like_toml("[files]\n"));
    assert!(!looks_like_toml("# comment\nMkdir \"\\a=b\" NT_STATUS_OK\n"));
    assert!(!looks_like_toml("0.5 Mkdir \"\\a\" NT_STATUS_OK\n"));
}

/// Returns a user's steps as text, and the paths in them.
fn walk(name: &str, seat: &UserSeat, steps: usize) -> (String, Vec<String>) {
    let mut script = Workload::builtin(name).unwrap().script(seat);
    let (mut text, mut paths) = (String::new(), Vec::new());
    for _ in 0..steps {
        let step = script.next().unwrap();
        text.push_str(&format!("{step:?}\n"));
        match step.action {
            Action::Open { path, .. } | Action::QueryPath(path, _) | Action::RemoveFile(path) => {
                paths.push(path.to_owned())
            }
            Action::MakeDirectory(path) | Action::RemoveDirectory(path) | Action::RemoveTree(path, _) => {
                paths.push(path.to_owned())
            }
            Action::OpenReadClose { path, .. } => paths.push(path.to_owned()),
            Action::Rename { from, to } => paths.extend([from.to_owned(), to.to_owned()]),
            Action::List { pattern, .. } => paths.push(pattern.rsplit_once('\\').unwrap().0.to_owned()),
            _ => {}
        }
    }
    (text, paths)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_same_seed_gives_the_same_steps(seed: u64, number in 0u32..4, name in "(open-read-close|metadata|read|write)") {
        let (one, _) = walk(&name, &seat(number, seed), 300);
        let (other, _) = walk(&name, &seat(number, seed), 300);
        prop_assert_eq!(one, other);
    }

    #[test]
    fn every_path_stays_in_the_users_own_directory(seed: u64, number in 0u32..4, name in "(open-read-close|metadata|netbench-like)") {
        let own = seat(number, seed).own_directory();
        let (_, paths) = walk(&name, &seat(number, seed), 300);
        for path in paths {
            let inside = path.strip_prefix(&own).unwrap_or_else(|| panic!("{path} is not below {own}"));
            prop_assert!(inside.is_empty() || inside.starts_with('\\'), "{}", path);
            for part in inside.split('\\').skip(1) {
                prop_assert!(!part.is_empty() && part != "." && part != "..", "{}", path);
                prop_assert!(!part.contains([':', '*', '?', '"', '<', '>', '|', '/']), "{}", path);
            }
        }
    }
}

/// Returns the actions of a sequence up to the end of `passes` passes, each with the number of passes completed when it
/// was handed out.
fn passes(text: &str, passes: u32) -> Vec<(String, Option<u32>)> {
    let mut script = script(text);
    let mut actions = Vec::new();
    while script.passes() < Some(passes) {
        let before = script.passes();
        let action = match script.next().unwrap().action {
            Action::OpenReadClose { path, .. } => path.rsplit('\\').next().unwrap().to_owned(),
            other => format!("{other:?}"),
        };
        actions.push((action, before));
    }
    actions
}

#[test]
fn a_sequence_performs_its_operations_in_order_each_as_often_as_it_says_and_ends() {
    let text = r#"
        name = "w"
        order = "sequence"
        think = "5ms"
        [files]
        count = 2
        size = 10
        [[operation]]
        name = "echo"
        times = 2
        steps = [{ do = "echo" }]
        [[operation]]
        name = "read"
        times = "files"
        steps = [{ do = "open_read_close", file = "next", length = 1 }]
    "#;
    let think = "Think(5ms)";
    let pass = ["Echo", think, "Echo", think, "file000000.dat", think, "file000001.dat"];
    // The user also thinks between passes, which belongs to neither pass.
    let expected: Vec<(&str, Option<u32>)> = pass
        .iter()
        .map(|action| (*action, Some(0)))
        .chain([(think, Some(1))])
        .chain(pass.iter().map(|action| (*action, Some(1))))
        .collect();
    let found = passes(text, 2);
    assert_eq!(found.iter().map(|(action, passes)| (action.as_str(), *passes)).collect::<Vec<_>>(), expected);
}

#[test]
fn a_sequence_begins_again_with_a_new_session() {
    let text = "name = \"w\"\norder = \"sequence\"\n[[operation]]\nname = \"a\"\ntimes = 3\nsteps = [{ do = \"echo\" }]\n\
                [[operation]]\nname = \"b\"\nsteps = [{ do = \"query_file_system\" }]\n";
    let mut script = script(text);
    script.next();
    script.next();
    script.restart();
    let actions: Vec<String> = (0..4).map(|_| format!("{:?}", script.next().unwrap().action)).collect();
    assert_eq!(actions[..3], ["Echo", "Echo", "Echo"]);
    assert!(actions[3].starts_with("QueryFileSystem") && script.passes() == Some(1), "{actions:?}");
}

#[test]
fn what_does_not_go_with_the_order_is_refused_with_its_place() {
    let with = |top: &str, operation: &str| {
        error(&format!(
            "name = \"w\"\n{top}\n[[operation]]\nname = \"o\"\n{operation}\nsteps = [{{ do = \"echo\" }}]\n"
        ))
    };
    for (top, operation, said) in [
        ("", "times = 2", "my.toml:5:9: operations are drawn at random, so none has times"),
        (
            "order = \"sequence\"",
            "weight = 2",
            "my.toml:5:10: operations are performed in sequence, so none has a weight",
        ),
        ("order = \"sequence\"", "times = 0", "my.toml:5:9: times is 0; write a number from 1 to"),
        ("order = \"sequence\"", "times = \"files\"", "my.toml:5:9: the workload has no files"),
        ("order = \"sequnece\"", "", "my.toml:2:9: there is no order \"sequnece\"; did you mean \"sequence\"?"),
    ] {
        let error = with(top, operation);
        assert!(error.contains(said), "{error}");
    }
    assert!(script(&with_steps(r#"{ do = "echo" }"#)).passes().is_none());
}

const PARAMETERS: &str = r#"name = "w"
[parameters]
count = 3 # of files
size = "4KiB"
[files]
count = "$count"
size = "$size"
[[operation]]
name = "o"
steps = [{ do = "open", file = "next" }, { do = "read", length = "$size", repeat = "$count" }, { do = "close" }]
"#;

fn set(text: &str, values: &[(&str, &str)]) -> Result<String, String> {
    let values: Vec<_> = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    with_parameters("my.toml", text, &values).map_err(|error| error.to_string())
}

#[test]
fn parameters_stand_for_their_values_in_every_key() {
    let parsed = parse("my.toml", PARAMETERS).unwrap_or_else(|error| panic!("{error}")).synthetic;
    assert_eq!((parsed.files.files, parsed.files.size(0), parsed.choices[0].1.len()), (3, 4096, 5));
    let found = parameters("my.toml", PARAMETERS).unwrap();
    assert_eq!(found, [("count".to_owned(), "3".to_owned()), ("size".to_owned(), "4KiB".to_owned())]);
    // New values replace the defaults, and nothing else changes.
    let changed = set(PARAMETERS, &[("size", "1 KB"), ("count", "12")]).unwrap();
    assert_eq!(changed, PARAMETERS.replace("= 3", "= 12").replace("4KiB", "1 KB"));
    let parsed = parse("my.toml", &changed).unwrap_or_else(|error| panic!("{error}")).synthetic;
    assert_eq!((parsed.files.files, parsed.files.size(0), parsed.choices[0].1.len()), (12, 1000, 14));
    // A string stays a string, whatever it contains.
    let quoted = set(PARAMETERS, &[("size", "\"\n[files]\ncount = 1")]).unwrap();
    assert_eq!(parameters("my.toml", &quoted).unwrap()[1].1, "\"\n[files]\ncount = 1");
}

#[test]
fn what_is_wrong_with_a_parameter_is_said_with_its_place_in_the_file_as_it_was_written() {
    for (from, to, said) in [
        (
            "count = \"$count\"",
            "count = \"$cuont\"",
            "my.toml:6:9: there is no parameter \"cuont\"; did you mean \"count\"?",
        ),
        ("count = 3 ", "count = 3.5 ", "my.toml:3:9: the parameter count is neither a number nor a string"),
        ("count = 3 ", "count = 0 ", "my.toml:6:9: count is 0; write a number from 1"),
        ("count = 3 ", "\"a b\" = 3 ", "my.toml:3:1: \"a b\" is not a parameter name"),
        // After two values that are longer or shorter than their names.
        ("repeat = \"$count\"", "repaet = 3", "my.toml:10:"),
        (
            "{ do = \"close\" }",
            "{ do = \"clsoe\" }",
            "my.toml:10:103: there is no step \"clsoe\"; did you mean \"close\"?",
        ),
    ] {
        let text = PARAMETERS.replace(from, to);
        assert_ne!(text, PARAMETERS);
        let error = error(&text);
        assert!(error.contains(said), "{error}");
    }
    let error = |values: &[(&str, &str)]| set(PARAMETERS, values).unwrap_err();
    assert_eq!(
        error(&[("cuont", "3")]),
        "the workload has no parameter \"cuont\"; did you mean \"count\"? There are: count, size"
    );
    assert_eq!(error(&[("count", "4KiB")]), "count is a number, and not \"4KiB\"; write one, such as its default 3");
    let none = with_steps(r#"{ do = "echo" }"#);
    assert_eq!(set(&none, &[("a", "1")]).unwrap_err(), "the workload has no parameter \"a\"; it has none");
}

#[test]
fn a_whole_file_is_read_in_blocks_each_a_step_and_together_one_operation() {
    let mut script = script(&with_steps(
        r#"{ do = "open", file = "next", access = "both" }, { do = "read", length = "file", block = "4KiB" },
           { do = "write", length = "6KiB", offset = 1024, block = "4KiB" }, { do = "close" }"#,
    ));
    let mut steps = Vec::new();
    for _ in 0..8 {
        let step = script.next().unwrap();
        steps.push((format!("{:?}", step.action), step.completes));
    }
    let (actions, completes): (Vec<String>, Vec<bool>) = steps.into_iter().unzip();
    assert_eq!(completes, [false, false, false, false, false, false, true, false]);
    let expected = [
        "Read { slot: HandleSlot(0), offset: 0, length: 4096 }",
        "Read { slot: HandleSlot(0), offset: 4096, length: 4096 }",
        // The file has 10 KiB.
        "Read { slot: HandleSlot(0), offset: 8192, length: 2048 }",
        "Write { slot: HandleSlot(0), offset: 1024, length: 4096 }",
        "Write { slot: HandleSlot(0), offset: 5120, length: 2048 }",
        "Close(HandleSlot(0))",
    ];
    assert_eq!(actions[1..7], expected);
}

#[test]
fn blocks_at_random_are_as_many_as_the_file_has() {
    let mut script = script(&with_steps(
        r#"{ do = "open", file = "next" }, { do = "read", offset = "random", length = "file", block = "1KiB" }, { do = "close" }"#,
    ));
    script.next();
    for _ in 0..10 {
        let Action::Read { offset, length, .. } = script.next().unwrap().action else { panic!("no read") };
        assert!(offset % 1024 == 0 && offset + u64::from(length) <= 10_240, "{offset}");
    }
    assert!(matches!(script.next().unwrap().action, Action::Close(_)));
}

#[test]
fn a_walk_lists_each_directory_and_reads_each_file_in_it() {
    let text = "name = \"w\"\norder = \"sequence\"\n[files]\ncount = 3\nsize = \"3KiB\"\ndirectories = 2\nnested = 2\n\
                [[operation]]\nname = \"o\"\nsteps = [{ do = \"walk\", block = \"2KiB\" }]\n";
    let mut script = script(text);
    let mut found = Vec::new();
    while script.passes() == Some(0) {
        let step = script.next().unwrap();
        let what = match step.action {
            Action::List { pattern, .. } => pattern.rsplit_once("files\\").unwrap().1.to_owned(),
            Action::Open { path, .. } => path.rsplit_once("files\\").unwrap().1.to_owned(),
            Action::Read { offset, length, .. } => format!("{offset}+{length}"),
            other => format!("{other:?}"),
        };
        found.push((what, step.completes));
    }
    let file = |path: &str| {
        [(path, false), ("0+2048", false), ("2048+1024", false), ("Close(HandleSlot(0))", true)]
            .map(|(what, completes)| (what.to_owned(), completes))
    };
    let list = |path: &str| (path.to_owned(), true);
    let expected: Vec<(String, bool)> = [list(r"dir0000\*")]
        .into_iter()
        .chain(file(r"dir0000\file000000.dat"))
        .chain(file(r"dir0000\file000002.dat"))
        .chain([list(r"dir0000\dir0001\*")])
        .chain(file(r"dir0000\dir0001\file000001.dat"))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_parallel_walk_lists_ahead_and_reads_every_file_once() {
    let text = |files: u32, directories: u32, parallel: u32| {
        format!(
            "name = \"w\"\norder = \"sequence\"\n[files]\ncount = {files}\ndirectories = {directories}\nsize = 10\n\
             [[operation]]\nname = \"o\"\nsteps = [{{ do = \"walk\", block = \"4KiB\", parallel = {parallel} }}]\n"
        )
    };
    // Listings by directory number, parts by number of files, and the total number of files.
    let walk = |files: u32, directories: u32, parallel: u32| {
        let mut script = script(&text(files, directories, parallel));
        let (mut parts, mut read) = (Vec::new(), Vec::new());
        while script.passes() == Some(0) {
            let step = script.next().unwrap();
            assert!(step.completes);
            match step.action {
                Action::List { pattern, .. } => parts.push(format!("list {}", &pattern[pattern.len() - 6..])),
                Action::ReadFiles { files, block, at_once } => {
                    assert_eq!((block, at_once), (4096, parallel));
                    assert!(files.iter().all(|file| file.size == 10));
                    parts.push(format!("{} files", files.len()));
                    read.extend(files.iter().map(|file| file.path[file.path.len() - 19..].to_owned()));
                }
                other => panic!("{other:?}"),
            }
        }
        (parts, read)
    };
    // 16 files for each of 2 places: 20 files are known after one listing, 40 after two; 8 are left, and so on.
    let (parts, read) = walk(100, 5, 2);
    let expected = [
        r"list 0000\*",
        r"list 0001\*",
        "32 files",
        r"list 0002\*",
        r"list 0003\*",
        "32 files",
        r"list 0004\*",
        "32 files",
        "4 files",
    ];
    assert_eq!(parts, expected);
    let in_order: Vec<String> = (0..5)
        .flat_map(|directory| (directory..100).step_by(5).map(move |file| (directory, file)))
        .map(|(directory, file)| format!("{directory:04}\\file{file:06}.dat"))
        .collect();
    let read: Vec<&str> = read.iter().map(|path| path.as_str()).collect();
    assert_eq!(read, in_order);
    // One directory, and fewer files than places.
    assert_eq!(walk(3, 1, 8).0, [r"list 0000\*", "3 files"]);
    assert!(error(&text(3, 1, 0)).contains("parallel is 0; write a number from 1 to 256"), "{}", error(&text(3, 1, 0)));
}

#[test]
fn the_profile_of_a_logon_is_as_large_as_it_is_said_to_be() {
    let logon = Workload::builtin("logon").unwrap();
    let set = |values: &[(&str, &str)]| {
        let values: Vec<_> = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        logon.clone().set(&values).unwrap_or_else(|error| panic!("{error}"))
    };
    for (workload, files, bytes) in [
        (logon.clone(), 18_460, 151_000_000_u64),
        (set(&[("files", "114"), ("folders", "14"), ("bytes", "4.69MB")]), 114, 4_690_000),
        (set(&[("files", "1461"), ("folders", "175"), ("bytes", "19.9MB")]), 1_461, 19_900_000),
    ] {
        assert_eq!(workload.file_set().files, files);
        let found = workload.file_set().bytes();
        assert!(found.abs_diff(bytes) < u64::from(files), "{found}");
    }
    let small = set(&[("files", "114"), ("folders", "14")]);
    assert_ne!(small.definition().sha256, logon.definition().sha256);
    assert_eq!(small.parameters()[1], ("files".to_owned(), "114".to_owned()));
}

#[test]
fn a_depth_hands_out_many_blocks_together_and_all_of_the_file() {
    let text = |offset: &str| {
        format!(
            "name = \"w\"\n[files]\ncount = 1\nsize = \"2MiB\"\n[[operation]]\nname = \"o\"\nsteps = [\
             {{ do = \"open\", file = \"next\" }}, \
             {{ do = \"read\", offset = {offset}, length = \"file\", block = \"4KiB\", depth = 3 }}, {{ do = \"close\" }}]"
        )
    };
    for offset in ["\"sequential\"", "0", "\"random\""] {
        let mut script = script(&text(offset));
        script.next();
        let mut offsets = Vec::new();
        let mut parts = 0;
        loop {
            let step = script.next().unwrap();
            let Action::Queue { ranges, depth: 3, writes: false, .. } = step.action else { break };
            assert!(ranges.len() <= 64 * 3 && ranges.iter().all(|range| range.length == 4096), "{offset}");
            offsets.extend(ranges.iter().map(|range| range.offset));
            parts += 1;
        }
        // 512 blocks, 192 at once.
        assert_eq!((parts, offsets.len()), (3, 512), "{offset}");
        let in_order: Vec<u64> = (0..512).map(|block| block * 4096).collect();
        assert_eq!(offsets == in_order, offset != "\"random\"", "{offset}");
        assert!(offsets.iter().all(|at| at % 4096 == 0 && *at < 2 << 20), "{offset}");
    }
    let single =
        with_steps(r#"{ do = "open", file = "next" }, { do = "read", length = 10, depth = 2 }, { do = "close" }"#);
    assert!(error(&single).contains("a single transfer has no depth"), "{}", error(&single));
}

#[test]
fn a_deletion_opens_the_new_file_marks_it_and_closes_it() {
    let steps = r#"{ do = "open", file = "new", access = "write" }, { do = "close" }, { do = "delete" }"#;
    let mut script = script(&with_steps(steps));
    let steps: Vec<(String, bool)> = (0..8)
        .map(|_| {
            let step = script.next().unwrap();
            (format!("{:?}", step.action).replace("HandleSlot(0)", "0"), step.completes)
        })
        .collect();
    let open = r#"Open { slot: 0, path: "bench\\user00001\\new\\file00000001.dat", access: 65664, share: 7, disposition: Open"#;
    assert!(steps[4].0.starts_with(open) && !steps[4].1, "{}", steps[4].0);
    assert_eq!(steps[5..7], [("SetDelete(0, true)".to_owned(), false), ("Close(0)".to_owned(), true)]);
    assert!(steps[7].0.contains("file00000002.dat") && steps[7].0.contains("Create"), "{}", steps[7].0);
    let set = error(&with_steps(r#"{ do = "query" }, { do = "delete" }"#));
    assert!(set.contains("no file that this step may delete"), "{set}");
}

#[test]
fn servers_and_folders_delete_what_was_made() {
    use crate::engine::{LiveFigures, RampPlan, StopFlag, run};
    use smbscope_client::SessionOptions;
    use smbscope_testkit::server;
    let steps = r#"{ do = "open", file = "new", access = "write" }, { do = "close" }, { do = "delete" }"#;
    let workload = Workload::toml("my.toml", &with_steps(steps), WorkloadSource::BuiltIn).unwrap();
    let scripts = |number| -> Box<dyn Script> { Box::new(workload.script(&seat(number, 1))) };
    let server = server::ScriptedServer::start(server::Script::new()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let user = folder.path().join("bench/user00001");
    std::fs::create_dir_all(&user).unwrap();
    let options = SessionOptions::new("localhost", server.address(), "share");
    for options in [
        SessionOptions { dialect: Dialect::NtLm012, ..options.clone() },
        SessionOptions { dialect: Dialect::Smb2(0x0311), ..options.clone() },
        SessionOptions { folder: Some(folder.path().to_owned()), ..options.clone() },
    ] {
        let plan = RampPlan { warmup: Duration::ZERO, duration: Duration::from_millis(200), ..RampPlan::default() };
        let runs = run(&plan, &options, &scripts, &mut (), &LiveFigures::default(), &StopFlag::new()).unwrap();
        let operation = &runs[0].operations[0];
        let name = format!("{} {:?}", options.dialect, options.folder);
        assert!(operation.service.count() > 0 && operation.unexpected.is_empty(), "{name}: {operation:?}");
        assert!(runs[0].failures.is_empty(), "{name}: {:?}", runs[0].failures);
    }
    assert!(server.counters().count(smbscope_wire::smb2::Smb2Command::SET_INFO) > 0);
    // The user may have been stopped within an operation.
    assert!(std::fs::read_dir(user.join("new")).unwrap().count() <= 1);
}
