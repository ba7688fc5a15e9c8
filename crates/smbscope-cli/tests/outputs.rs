//! `-o`: never overwrites an input, and keeps the existing report until the new one is complete.

use crate::common::{Said, analyze, command, contents, directory, finish, said, table, write};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SMB3: &str = "own/smbclient_SMB3_11.pcap.zst";
const FORMATS: [&str; 6] = ["text", "markdown", "json", "html", "csv", "parquet"];

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("the directory is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// Creates a directory with a capture and an existing report.
fn prepared(test: &str) -> PathBuf {
    let directory = directory(test);
    write(&directory, "smb.pcap", contents(SMB3));
    write(&directory, "report", "yesterday");
    directory
}

fn smbscope(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.current_dir(directory).args(arguments).stdin(Stdio::null());
    command
}

/// Runs a shell command line; `$S` is the program.
fn shell(directory: &Path, line: &str) -> Said {
    let mut command = Command::new("sh");
    command.current_dir(directory).args(["-c", line]).env("S", env!("CARGO_BIN_EXE_smbscope")).stdin(Stdio::null());
    finish(command)
}

#[test]
fn no_output_is_an_input_under_whatever_name() {
    let directory = prepared("outputs_inputs");
    let capture = fs::read(directory.join("smb.pcap")).expect("a capture");
    fs::hard_link(directory.join("smb.pcap"), directory.join("hard")).expect("a hard link");
    std::os::unix::fs::symlink("hard", directory.join("soft")).expect("a symbolic link");
    for format in FORMATS {
        for name in ["hard", "soft", "./smb.pcap"] {
            let said = analyze(&directory, &["smb.pcap", "--format", format, "-o", name]);
            let expected = format!("cannot write {name}: it is the input smb.pcap; choose another name for the output");
            assert_eq!(said.error(1), expected);
        }
        for line in ["\"$S\" analyze - -o smb.pcap < smb.pcap", "\"$S\" analyze - -o smb.pcap < hard"] {
            let expected = "cannot write smb.pcap: it is the input standard input; choose another name for the output";
            assert_eq!(shell(&directory, &format!("{line} --format {format}")).error(1), expected);
        }
    }
    let said = shell(&directory, "\"$S\" analyze smb.pcap >> hard");
    assert!(said.error(1).starts_with("cannot write standard output: it is the input smb.pcap"), "{}", said.err);
    assert_eq!(fs::read(directory.join("smb.pcap")).expect("a capture"), capture);
}

/// Options that name an input file or directory. Inputs of `bench`, `launch` and `study` are refused if they are in the
/// directory of `-o`; the next test covers the others.
const READ: [&str; 27] = [
    "analyze --keys",
    "analyze --password-file",
    "analyze --thresholds",
    "bench --loadfile",
    "bench --metrics-config",
    "bench --password-file",
    "bench clean --password-file",
    "compare --keys",
    "compare --password-file",
    "lab run --share-folder",
    "lab run --signatures",
    "lab up --share-folder",
    "lab up --signatures",
    "launch --content",
    "launch --password-file",
    "predict --keys",
    "predict --password-file",
    "predict --target-password-file",
    "record --keys",
    "record --password-file",
    "slim --key-file",
    "slim --keys",
    "slim --password-file",
    "watch --keys",
    "watch --metrics-config",
    "watch --password-file",
    "watch --thresholds",
];
/// Options that name an output of smbscope or of the program that it starts.
const WRITTEN: [&str; 20] = [
    "analyze --junit",
    "analyze --output",
    "bench --output",
    "compare --junit",
    "compare --output",
    "lab down --state",
    "lab run --output",
    "lab run --state",
    "lab status --state",
    "lab up --state",
    "launch --file",
    "launch --output",
    "man --output",
    "predict --output",
    "record --output",
    "slim --output",
    "slim --ring",
    "study --output",
    "watch --output",
    "watch --ring",
];

#[test]
fn no_output_is_a_file_that_another_option_reads() {
    let directory = prepared("outputs_side_inputs");
    write(&directory, "key", [7; 32]);
    write(&directory, "t.toml", "[conflicts]\nwait = \"2s\"\n");
    for name in ["k.toml", "k.pcap"] {
        write(&directory, name, "0100000000000000,000102030405060708090a0b0c0d0e0f\n");
    }
    for (line, side) in [
        ("analyze smb.pcap --thresholds t.toml --format text -o t.toml", "t.toml"),
        ("analyze smb.pcap --thresholds t.toml --format csv -o ./t.toml", "t.toml"),
        ("analyze smb.pcap --thresholds t.toml --fail-if 'READ.p95 > 1s' --junit t.toml", "t.toml"),
        ("slim smb.pcap --anonymize --key-file key -o key", "key"),
        ("slim smb.pcap --keys k.pcap -o k.pcap", "k.pcap"),
        ("analyze smb.pcap --keys k.toml --format text -o k.toml", "k.toml"),
        ("analyze smb.pcap --password-file k.toml --format csv -o k.toml", "k.toml"),
        ("compare smb.pcap smb.pcap --keys k.toml --format text -o k.toml", "k.toml"),
        ("record smb.pcap --password-file k.toml -o k.toml", "k.toml"),
        (
            "predict smb.pcap --if rtt=1ms --prove --target smb://h/s --target-password-file k.toml --format text -o k.toml",
            "k.toml",
        ),
    ] {
        let before = fs::read(directory.join(side)).expect("a file");
        let said = shell(&directory, &format!("\"$S\" {line}"));
        assert!(
            said.error(1).contains(&format!("it is the input {side}; choose another name")),
            "{line}: {}",
            said.err
        );
        assert_eq!(fs::read(directory.join(side)).expect("a file"), before, "{line}");
    }
}

#[test]
fn every_option_that_names_a_file_is_known_to_read_or_to_write_it() {
    use clap::CommandFactory;
    fn options(command: &clap::Command, name: &str, found: &mut Vec<String>) {
        let paths =
            command.get_arguments().filter(|one| one.get_value_parser().type_id() == std::any::TypeId::of::<PathBuf>());
        found.extend(paths.filter_map(|one| Some(format!("{name} --{}", one.get_long()?))));
        for verb in command.get_subcommands() {
            options(verb, format!("{name} {}", verb.get_name()).trim_start(), found);
        }
    }
    let mut found = Vec::new();
    options(&smbscope_cli::Arguments::command(), "", &mut found);
    let unknown: Vec<&String> =
        found.iter().filter(|one| !READ.contains(&one.as_str()) && !WRITTEN.contains(&one.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn a_comparison_is_never_written_over_what_it_compares() {
    let directory = prepared("outputs_compare");
    for name in ["a.json", "b.json"] {
        assert_eq!(analyze(&directory, &["smb.pcap", "--format", "json", "-o", name]).output(), "");
    }
    fs::create_dir(directory.join("run")).expect("a directory");
    write(&directory, "run/run.json", "{\"schema\": \"smbscope.bench/1\"");
    fs::hard_link(directory.join("run/run.json"), directory.join("hard")).expect("a hard link");
    for (files, output, input) in [
        (["a.json", "b.json"], "b.json", "b.json"),
        (["a.json", "smb.pcap"], "smb.pcap", "smb.pcap"),
        (["a.json", "run"], "run/run.json", "run/run.json"),
        (["run", "a.json"], "hard", "run/run.json"),
    ] {
        let before = fs::read(directory.join(output)).expect("a file");
        let said = finish(smbscope(&directory, &["compare", files[0], files[1], "--format", "json", "-o", output]));
        let expected = format!("cannot write {output}: it is the input {input}; choose another name for the output");
        assert_eq!(said.error(1), expected);
        assert_eq!(fs::read(directory.join(output)).expect("a file"), before);
    }
}

#[test]
fn a_failed_command_leaves_yesterdays_report() {
    let directory = prepared("outputs_failed");
    // A file with only a capture header, and one without SMB.
    write(&directory, "none.pcap", &contents(SMB3)[..24]);
    write(&directory, "broken.json", "{\"schema\": ");
    let before = names(&directory);
    for format in FORMATS {
        for input in ["none.pcap", "absent.pcap"] {
            let said = analyze(&directory, &[input, "--format", format, "-o", "report"]);
            assert_eq!(said.status, Some(1), "{}", said.err);
            assert_eq!(fs::read_to_string(directory.join("report")).expect("a report"), "yesterday", "{format}");
        }
    }
    for format in ["text", "md", "json", "html"] {
        let line = ["compare", "smb.pcap", "broken.json", "--format", format, "-o", "report"];
        assert_eq!(finish(smbscope(&directory, &line)).status, Some(1));
        assert_eq!(fs::read_to_string(directory.join("report")).expect("a report"), "yesterday");
    }
    assert_eq!(names(&directory), before);
}

#[test]
fn a_disk_without_room_leaves_yesterdays_report() {
    let directory = prepared("outputs_full");
    let before = names(&directory);
    for format in FORMATS {
        // The file size limit is one block of 512 bytes.
        let line = format!("ulimit -f 1; exec \"$S\" analyze smb.pcap --format {format} -o report");
        assert_eq!(shell(&directory, &line).error(1), "cannot write report: File too large (os error 27)", "{format}");
    }
    let said = shell(&directory, "ulimit -f 1; exec \"$S\" compare smb.pcap smb.pcap --format text -o report");
    assert_eq!(said.error(1), "cannot write report: File too large (os error 27)");
    let said = shell(&directory, "ulimit -f 1; exec \"$S\" man --output .");
    assert!(said.error(1).ends_with("File too large (os error 27)"), "{}", said.err);
    assert_eq!(
        (fs::read_to_string(directory.join("report")).expect("a report").as_str(), names(&directory)),
        ("yesterday", before)
    );
}

#[test]
fn a_killed_command_leaves_yesterdays_report() {
    let whole = contents(SMB3);
    for format in FORMATS {
        let directory = prepared(&format!("outputs_killed_{format}"));
        let before = names(&directory);
        for (signal, number, status) in [("-TERM", 15, Some(143)), ("-HUP", 1, Some(129)), ("-KILL", 9, None)] {
            let mut child = command(&directory, &["-", "--format", format, "-o", "report"])
                .stdin(Stdio::piped())
                .spawn()
                .expect("the binary runs");
            let mut stdin = child.stdin.take().expect("a pipe");
            stdin.write_all(&whole).expect("the binary reads");
            let begun = Instant::now();
            while names(&directory).len() == before.len() && begun.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
            assert!(kill.expect("kill runs").success());
            let ended = child.wait().expect("the binary ends");
            assert_eq!((ended.code(), ended.signal().is_some()), (status, number == 9), "{signal}");
            assert_eq!(fs::read_to_string(directory.join("report")).expect("a report"), "yesterday", "{signal}");
            if number == 9 {
                // The partial file remains, because it could not be removed.
                assert_eq!(names(&directory).len(), before.len() + 1);
            } else {
                assert_eq!(names(&directory), before, "{signal}");
            }
            drop(stdin);
        }
    }
}

#[test]
fn a_report_is_as_its_predecessor_or_the_umask_says() {
    use std::os::unix::fs::PermissionsExt;
    let directory = prepared("outputs_modes");
    fs::set_permissions(directory.join("report"), fs::Permissions::from_mode(0o604)).expect("a mode");
    let line = "umask 027; \"$S\" analyze smb.pcap --format md -o report && \"$S\" analyze smb.pcap -o new.md";
    assert_eq!(shell(&directory, line).output(), "");
    let mode = |name: &str| fs::metadata(directory.join(name)).expect("a file").permissions().mode() & 0o777;
    assert_eq!([mode("report"), mode("new.md")], [0o604, 0o640]);
    assert_eq!(names(&directory), ["new.md", "report", "smb.pcap"]);
}

#[test]
fn pipes_and_devices_get_results_as_they_come() {
    let directory = prepared("outputs_streams");
    let expected = analyze(&directory, &["smb.pcap", "--format", "csv"]);
    let rows = table(expected.output()).1.len();
    for line in [
        "\"$S\" analyze smb.pcap --format csv -o /dev/stdout",
        "\"$S\" analyze smb.pcap --format csv -o /dev/stdout | cat",
        "\"$S\" analyze smb.pcap --format csv -o /dev/fd/3 3>&1",
        "\"$S\" analyze smb.pcap --format csv -o /dev/stderr 2>&1",
        "mkfifo fifo && { \"$S\" analyze smb.pcap --format csv -o fifo & cat fifo; wait; test -p fifo; }",
        // Output to a file that the shell has open is appended to it.
        "{ echo first; \"$S\" analyze smb.pcap --format csv -o /dev/stdout; echo last; } > log; tail -n +2 log | grep -v ^last",
        "echo first > log2; \"$S\" analyze smb.pcap --format csv -o /dev/fd/3 3>> log2; tail -n +2 log2",
    ] {
        let said = shell(&directory, line);
        assert_eq!(table(said.output()).1.len(), rows, "{line}");
        assert_eq!(said.out, expected.out, "{line}");
    }
    assert_eq!(shell(&directory, "\"$S\" analyze smb.pcap -o /dev/null && test -c /dev/null").output(), "");
    let said = analyze(&directory, &["smb.pcap", "-o", "."]);
    assert_eq!(said.error(1), "cannot write .: Is a directory (os error 21)");
}

#[test]
fn manual_pages_replace_those_that_are_there() {
    let directory = directory("outputs_manual");
    write(&directory, "smbscope.1", "yesterday");
    assert_eq!(finish(smbscope(&directory, &["man", "--output", "."])).output(), "");
    assert!(fs::read_to_string(directory.join("smbscope.1")).expect("a page").contains(".TH"));
    assert!(names(&directory).iter().all(|name| name.ends_with(".1")));
}

#[test]
fn an_interrupted_analysis_writes_what_it_read_and_says_so_by_its_status() {
    let directory = prepared("outputs_interrupted");
    let whole = contents(SMB3);
    for format in FORMATS {
        let mut child = command(&directory, &["-", "--format", format, "-o", "report"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(&whole).expect("the binary reads");
        std::thread::sleep(Duration::from_secs(1));
        let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(kill.expect("kill runs").success());
        let said = said(child.wait_with_output().expect("the binary ends"));
        assert_eq!(said.status, Some(130), "{}", said.err);
        let mut head = [0; 4];
        fs::File::open(directory.join("report")).and_then(|mut file| file.read_exact(&mut head)).expect("a report");
        assert_ne!(&head, b"yest", "{format}");
        drop(stdin);
    }
    // The check happens before any input is read.
    let mut child =
        command(&directory, &["-", "-o", "new.txt"]).stdin(Stdio::piped()).spawn().expect("the binary runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(&whole[..24]).expect("the binary reads");
    std::thread::sleep(Duration::from_secs(1));
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill runs").success());
    let said = said(child.wait_with_output().expect("the binary ends"));
    assert_eq!(said.error(130), "standard input: interrupted before any SMB was read");
    assert!(!directory.join("new.txt").exists());
}

#[test]
fn the_ending_of_the_output_chooses_the_format_unless_it_is_given() {
    let directory = prepared("outputs_endings");
    let beginnings: [(&str, &[u8]); 7] = [
        ("r.html", b"<!doctype html>"),
        ("r.JSON", b"{\n"),
        ("r.csv", b"exchange_id,"),
        ("r.parquet", b"PAR1"),
        ("r.txt", b"Nothing is slow: "),
        ("r.md", b"**Nothing is slow: "),
        ("r.Markdown", b"**Nothing is slow: "),
    ];
    for (name, beginning) in beginnings {
        assert_eq!(analyze(&directory, &["smb.pcap", "-q", "-o", name]).status, Some(0), "{name}");
        let written = fs::read(directory.join(name)).expect("a report");
        assert!(written.starts_with(beginning), "{name}: {:?}", &written[..20]);
    }
    assert_eq!(analyze(&directory, &["smb.pcap", "-q", "--format", "json", "-o", "r.html"]).status, Some(0));
    assert!(fs::read(directory.join("r.html")).expect("a report").starts_with(b"{"));
    let said = analyze(&directory, &["smb.pcap", "--classic", "-o", "r.html"]);
    assert!(said.err.contains("--classic"), "{}", said.err);
    assert_eq!(said.status, Some(2));
}

#[test]
fn an_ending_that_names_no_format_is_refused_with_those_that_work() {
    let directory = prepared("outputs_refused");
    let before = names(&directory);
    let refused = |arguments: &[&str], expected: &str| {
        assert_eq!(finish(smbscope(&directory, arguments)).error(2), expected);
        assert_eq!(names(&directory), before, "{arguments:?}");
    };
    let all = "endings that work: .txt, .md, .html, .json, .csv, .parquet";
    let analyze = |name: &str, why: &str| {
        refused(&["analyze", "smb.pcap", "-o", name], &format!("cannot write {name}: {why}; {all}"));
    };
    analyze("r.pdf", "write .html and print it as PDF in a browser");
    analyze("r.xlsx", "write .csv, which spreadsheets open");
    analyze("r.docx", ".docx is not the ending of a format");
    analyze("report", "the ending of the name selects the format");
    analyze(".md", "the ending of the name selects the format");
    let compare = |name: &str, why: &str| {
        let expected = format!("cannot write {name}: {why}; endings that work: .txt, .md, .html, .json");
        refused(&["compare", "smb.pcap", "smb.pcap", "-o", name], &expected);
    };
    compare("r.pdf", "write .html and print it as PDF in a browser");
    compare("r.csv", ".csv is not the ending of a format");
    compare("r", "the ending of the name selects the format");
    let workload = "cannot write app.md: the output is a workload; endings that work: .toml";
    refused(&["record", "smb.pcap", "-o", "app.md"], workload);
    let capture = "cannot write copy.gz: the output is a capture; endings that work: .pcapng, .pcap, .zst";
    refused(&["slim", "smb.pcap", "-o", "copy.gz"], capture);
}

#[test]
fn the_directory_of_a_run_is_not_named_like_a_document() {
    let directory = prepared("outputs_directories");
    let before = names(&directory);
    let expected = "r.html: -o names a directory, for the report and its data; write -o r, or print the report alone \
                    with --format markdown, html or json";
    for arguments in [
        &["bench", "file:.", "--workload", "echo", "-o", "r.html"][..],
        &["launch", "-o", "r.html", "--", "true"],
        &["study", "none.toml", "-o", "r.html"],
    ] {
        assert_eq!(finish(smbscope(&directory, arguments)).error(2), expected);
        assert_eq!(names(&directory), before, "{arguments:?}");
    }
}

#[test]
fn markdown_begins_with_the_answer_and_its_tables_are_whole() {
    let directory = directory("outputs_markdown");
    let capture = crate::common::bundled("demo-slow-server.pcap.zst").display().to_string();
    let text = analyze(&directory, &[&capture, "--full"]).out;
    let markdown = analyze(&directory, &[&capture, "--full", "--format", "markdown"]).out;
    let headline = text.lines().next().expect("an answer");
    assert!(markdown.starts_with(&format!("**{}", &headline[..40])), "{markdown}");
    assert!(markdown.contains("\n**What next**\n\n- "), "{markdown}");
    // No escape sequences, boxes or bars.
    let is_art = |c: char| c == '\u{1b}' || ('\u{2500}'..='\u{259f}').contains(&c);
    assert!(!markdown.contains(is_art), "{markdown}");
    let mut width = 0;
    let mut rows = 0;
    for line in markdown.lines() {
        if !line.starts_with('|') {
            width = 0;
            continue;
        }
        let cells = line.replace("\\|", "").matches('|').count();
        assert!(width == 0 || cells == width, "{line}");
        (width, rows) = (cells, rows + 1);
    }
    assert!(rows > 40, "only {rows} rows");
    // The total is in both, with the same figures.
    let words = |line: &str| line.replace(['|', ' '], "");
    let total = |text: &str| text.lines().find(|line| line.trim_start_matches("| ").starts_with("Total ")).map(words);
    let shown: String = total(&text).expect("a line");
    assert!(total(&markdown).expect("a row").contains(&shown["Total".len()..][..6]), "{markdown}");
}
