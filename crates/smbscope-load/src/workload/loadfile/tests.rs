use super::super::{Action, Script, UserSeat};
use super::*;
use smbscope_wire::status::NtStatus;
use std::path::Path;
use std::sync::Arc;

fn seat(number: u32) -> UserSeat {
    UserSeat { number, of: 8, seed: 1, directory: "bench".to_owned() }
}

fn script(text: &str) -> LoadfileScript {
    LoadfileScript::new(Arc::new(Loadfile::parse("test", text).unwrap()), &seat(0))
}

/// Steps of one pass, as text.
fn pass(text: &str) -> Vec<String> {
    let mut script = script(text);
    let mut steps = Vec::new();
    while script.passes() == Some(0) {
        let step = script.next().unwrap();
        steps.push(format!("{:?} {:?} {:?}", step.action, step.expected, step.line));
    }
    steps
}

/// Maximum number of open files.
fn slots(loadfile: &Loadfile) -> u32 {
    let opens = loadfile.lines.iter().filter_map(|line| match line.op {
        Op::Create { slot, .. } | Op::Open { slot, .. } => Some(slot + 1),
        _ => None,
    });
    opens.max().unwrap_or(0)
}

fn error(text: &str) -> String {
    Loadfile::parse("my.txt", text).unwrap_err().to_string()
}

#[test]
fn a_pass_begins_with_an_empty_own_directory_and_ends_with_nothing_open() {
    let steps = pass("NTCreateX \"\\clients\\client1\\a\" 0x40 0x2 7 NT_STATUS_OK\n");
    assert_eq!(
        steps,
        [
            r#"RemoveTree("bench\\user00001", Own("bench\\user00001")) Anything None"#,
            r#"MakeDirectory("bench\\user00001") Anything None"#,
            r#"Open { slot: HandleSlot(0), path: "bench\\user00001\\a", access: 387, share: 7, disposition: Create, options: 64, attributes: 0 } Status(NtStatus(0)) Some(1)"#,
            r#"Close(HandleSlot(0)) Anything None"#,
        ]
    );
}

#[test]
fn a_directory_that_the_file_removes_and_makes_itself_is_left_to_it() {
    let text = "Deltree \"\\clients\\client1\" NT_STATUS_OK\n\
                Mkdir \"\\clients\" NT_STATUS_OK\n\
                NTCreateX \"\\clients\\client1\" 0x1 0x2 5 NT_STATUS_OK\nClose 5 NT_STATUS_OK\n";
    let lines: Vec<_> = pass(text).iter().map(|step| step.rsplit(' ').next().unwrap().to_owned()).collect();
    // \clients is the directory of all users, which already exists: line 2 is dropped.
    assert_eq!(lines, ["Some(1)", "Some(3)", "Some(4)"]);
}

#[test]
fn comments_blanks_times_case_and_quotes_are_read_as_dbench_does() {
    let text =
        "# a comment\n\n  \n0.125 MKDIR '\\a b' SUCCESS\r\n12 rmdir \"/a b\" 0x00000000\nSleep 1500 NT_STATUS_OK\n";
    let steps = pass(text);
    assert_eq!(steps[2], r#"MakeDirectory("bench\\user00001\\a b") Success Some(4)"#);
    assert_eq!(steps[3], r#"RemoveDirectory("bench\\user00001\\a b") Status(NtStatus(0)) Some(5)"#);
    assert_eq!(steps[4], "Think(1.5ms) Status(NtStatus(0)) Some(6)");
}

#[test]
fn statuses_are_known_by_name_and_number() {
    for (text, expected) in [
        ("NT_STATUS_OBJECT_NAME_NOT_FOUND", Expected::Status(NtStatus::OBJECT_NAME_NOT_FOUND)),
        ("STATUS_NO_SUCH_FILE", Expected::Status(NtStatus::NO_SUCH_FILE)),
        ("0xc0000034", Expected::Status(NtStatus::OBJECT_NAME_NOT_FOUND)),
        ("ERROR", Expected::Failure),
        ("*", Expected::Anything),
    ] {
        let mut script = script(&format!("Unlink \"\\a\" 0x6 {text}"));
        let step = (0..3).map(|_| script.next().unwrap().expected).last().unwrap();
        assert_eq!(step, expected, "{text}");
    }
}

#[test]
fn an_open_that_is_to_fail_leaves_its_handle_free_for_lines_to_be_skipped() {
    let text = "NTCreateX \"\\none\" 0x40 0x1 9 NT_STATUS_OBJECT_NAME_NOT_FOUND\nReadX 9 0 1 1 NT_STATUS_OK\n\
                Close 9 NT_STATUS_OK\nNTCreateX \"\\new\" 0x40 0x2 9 NT_STATUS_OK\nClose 9 NT_STATUS_OK\n";
    let loadfile = Loadfile::parse("test", text).unwrap();
    assert_eq!(loadfile.skipped(), 2);
    assert_eq!(slots(&loadfile), 1);
    assert_eq!(loadfile.operations(), ["NTCreateX", "Close"]);
}

#[test]
fn an_open_that_is_to_fail_does_not_disturb_another_of_the_same_number() {
    // client.txt has five such lines: failed creates were recorded with an uninitialised handle.
    let text = "NTCreateX \"\\a\" 0x40 0x2 9 NT_STATUS_OK\nNTCreateX \"\\b\" 0x40 0x1 9 NT_STATUS_OBJECT_NAME_NOT_FOUND\n\
                WriteX 9 0 10 10 NT_STATUS_OK\nClose 9 NT_STATUS_OK\n";
    let loadfile = Loadfile::parse("test", text).unwrap();
    assert_eq!((loadfile.skipped(), slots(&loadfile)), (0, 2));
    assert!(matches!(loadfile.lines[4].op, Op::Write { slot: 0, .. }));
}

#[test]
fn a_handle_that_is_opened_again_is_closed_first() {
    let open = "NTCreateX \"\\a\" 0x40 0x3 9 NT_STATUS_OK\n";
    let steps = pass(&format!("{open}{open}"));
    assert_eq!(steps[3], "Close(HandleSlot(0)) Anything None");
}

#[test]
fn what_dbench_4_calls_open_read_and_write_goes_by_path() {
    let text = "OPEN \"\\a\" 0xa SUCCESS\nWRITE \"\\a\" 0 100 SUCCESS\nCLOSE \"\\a\" SUCCESS\nREADDIR \"\\\" SUCCESS\n";
    let steps = pass(text);
    assert!(steps[2].contains("disposition: OpenIf"), "{}", steps[2]);
    assert!(steps[3].starts_with("Write { slot: HandleSlot(0), offset: 0, length: 100 }"), "{}", steps[3]);
    assert!(steps[5].starts_with(r#"List { pattern: "bench\\user00001\\*""#), "{}", steps[5]);
}

#[test]
fn a_read_that_is_to_get_nothing_is_one_behind_the_end() {
    let text = "NTCreateX \"\\a\" 0x40 0x2 9 NT_STATUS_OK\nReadX 9 0 512 0 NT_STATUS_OK\n";
    let loadfile = Loadfile::parse("test", text).unwrap();
    assert_eq!(loadfile.lines[3].expected, Expected::Status(NtStatus::END_OF_FILE));
}

#[test]
fn the_set_up_ends_before_the_open_of_the_first_read() {
    let text = "NTCreateX \"\\a\" 0x40 0x2 1 NT_STATUS_OK\nWriteX 1 0 9 9 NT_STATUS_OK\nClose 1 NT_STATUS_OK\n\
                NTCreateX \"\\a\" 0x40 0x1 2 NT_STATUS_OK\nReadX 2 0 9 9 NT_STATUS_OK\nClose 2 NT_STATUS_OK\n";
    let mut script = script(text);
    let mut made = 0;
    while script.sets_up() {
        script.next();
        made += 1;
    }
    // Two lines that empty the directory, and lines 1 to 3.
    assert_eq!(made, 5);
    assert_eq!(script.next().unwrap().line, Some(4));
}

#[test]
fn errors_name_file_and_line_and_say_what_to_do() {
    assert_eq!(
        error("Mkdir \"\\a\" NT_STATUS_OK\nUnlnk \"\\a\" 0x6 NT_STATUS_OK").split("? There").next().unwrap(),
        "my.txt:2: there is no operation \"Unlnk\"; did you mean \"Unlink\""
    );
    assert!(error("ReadX 1 0 x 1 NT_STATUS_OK").starts_with("my.txt:1: the length of ReadX is \"x\"; write a number"));
    assert!(error("Close 1").contains("is not a status"), "{}", error("Close 1"));
    assert!(error("Mkdir \"\\..\\x\" NT_STATUS_OK").contains("could lead out of the user's directory"));
    assert!(error("Mkdir \"\\x NT_STATUS_OK").contains("never closed"));
    assert!(error("QUERY_PATH_INFORMATION \"\\a\" 7 NT_STATUS_OK").contains("no information level 7"));
    assert!(error("NTCreateX \"\\a\" 0 9 1 NT_STATUS_OK").contains("no create disposition 9"));
    assert!(error("SMBopen 1 2 NT_STATUS_OK").contains("dbench 1"));
    assert!(error("# nothing\n").contains("no operation"));
}

#[test]
fn a_pass_is_followed_by_the_next_one() {
    let mut script = script("Mkdir \"\\a\" NT_STATUS_OK\n");
    let first: Vec<_> = (0..3).map(|_| script.next().unwrap().line).collect();
    let second: Vec<_> = (0..3).map(|_| script.next().unwrap().line).collect();
    assert_eq!(first, second);
    assert_eq!(script.passes(), Some(2));
    script.restart();
    assert!(matches!(script.next().unwrap().action, Action::RemoveTree(..)));
}

/// Needs the Debian package `dbench`. The file is read in place; the expected counts are from `uniq -c`.
#[test]
fn the_whole_of_debians_client_txt_is_understood() {
    let path = Path::new("/usr/share/dbench/client.txt");
    if !path.exists() {
        smbscope_testkit::skip::missing(format_args!("{} (Debian package dbench)", path.display()));
        return;
    }
    let started = std::time::Instant::now();
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    let loadfile = Loadfile::parse("client.txt", &text).unwrap();
    println!("{} lines in {:?}, {} bytes", loadfile.lines.len(), started.elapsed(), loadfile.memory());
    // All 458,344 lines except the one that creates \clients; at most 23 files are open.
    assert_eq!((loadfile.lines.len(), loadfile.skipped(), slots(&loadfile)), (458_343, 0, 23));
    assert!(loadfile.memory() <= 458_400 * 40);
    let count = |name: &str| {
        let index = loadfile.operations().iter().position(|operation| operation == name).unwrap();
        loadfile.lines.iter().filter(|line| usize::from(line.operation) == index).count()
    };
    assert_eq!((count("ReadX"), count("NTCreateX"), count("Rename"), count("Deltree")), (124_199, 79_230, 3_355, 2));
    // Line 608 opens the file that line 610 is the first to read.
    assert_eq!(loadfile.lines[loadfile.threads[0].set_up].number, 608);
}

#[test]
fn lines_and_directories_of_a_hostile_file_are_bounded() {
    let deep = format!("Mkdir \"\\{}\" NT_STATUS_OK\n", vec!["a"; 500_000].join("\\"));
    let said = error(&deep);
    assert!(said.contains("the directories above them have more than 8 MiB") && said.len() < 300, "{said}");
    let said = error(&"\n".repeat(4_000_001));
    assert!(said.contains("more than 4000000 lines"), "{said}");
    let said = error(&format!("Mkdir \"\\{}?\" NT_STATUS_OK\n", "a".repeat(100_000)));
    assert!(said.contains("which no name may have") && said.len() < 500, "{}", said.len());
}
