//! Names in captures, saved reports, files and servers may contain escape sequences, bidirectional controls, line
//! breaks and formulas. None of these may reach a terminal, start a new line or run in a spreadsheet.

use crate::common::{Said, analyze, directory, finish, table, write};
use serde_json::Value;
use smbscope_testkit::{Conversation, pcap, smb2};
use std::path::Path;
use std::process::{Command, Stdio};

/// Window title, alternate screen, C1 CSI, bell, DEL, bidirectional override and isolate, zero-width space, line
/// separator, soft hyphen, word joiner and tag character.
const STEERING: &str =
    "\u{1b}]0;owned\u{7}\u{1b}[?1049h\u{9b}2J\u{7f}\u{202e}\u{2066}\u{200b}\u{2028}\u{ad}\u{2060}\u{e0041}";

fn capture() -> Vec<u8> {
    capture_of(&format!("=cmd|{STEERING}\nnext line.txt"))
}

/// Returns a capture that opens and reads a file with this name.
fn capture_of(path: &str) -> Vec<u8> {
    let user = format!("-{STEERING}ann");
    let share = format!("\\\\files\\@{STEERING}");
    let conversation = Conversation::new()
        .client_says(100, smb2::negotiate(0, &[0x0311]))
        .server_says(300, smb2::negotiate_response(0, 0x0311))
        .client_says(400, smb2::session_setup(1, "", &user))
        .server_says(450, smb2::session_setup_response(1, 7))
        .client_says(500, smb2::tree_connect(2, &share).session(7))
        .server_says(550, smb2::tree_connect_response(2, 3).session(7))
        .client_says(600, smb2::create(3, path).session(7).tree(3))
        .server_says(650, smb2::create_response(3, 1).session(7).tree(3))
        .client_says(700, smb2::read(4, 1, 0, 4).session(7).tree(3))
        .server_says(900, smb2::read_response(4, b"data").session(7).tree(3));
    pcap::micros(&conversation.packets())
}

fn is_clean(text: &str) -> bool {
    let marks = ['\u{202e}', '\u{2066}', '\u{61c}', '\u{2028}', '\u{200b}', '\u{ad}', '\u{2060}', '\u{e0041}'];
    !text.contains(|c: char| c.is_control() && c != '\n' || marks.contains(&c))
}

/// Returns what a shell command line sends to a terminal; `$S` is the program. Skips the test and returns `None`
/// without script(1).
fn on_terminal(directory: &Path, line: &str) -> Option<String> {
    let installed = Command::new("script").arg("--version").stdout(Stdio::null()).status();
    if !installed.is_ok_and(|status| status.success()) {
        smbscope_testkit::skip::unable("no script (util-linux) to make a terminal with");
        return None;
    }
    let mut command = Command::new("script");
    command.args(["-qec", line, "/dev/null"]).current_dir(directory).env("S", env!("CARGO_BIN_EXE_smbscope"));
    command.env("NO_COLOR", "1").env("TERM", "xterm").stdin(Stdio::null());
    Some(finish(command).out.replace("\r\n", "\n"))
}

#[test]
fn tables_are_safe_for_spreadsheets_and_exact_for_programs() {
    let directory = directory("hostile_csv");
    write(&directory, "smb.pcap", capture());
    let cells = |arguments: &[&str]| {
        let said = analyze(&directory, &[&["smb.pcap", "--format", "csv"], arguments].concat());
        let (header, rows) = table(said.output());
        let at = |name: &str| header.iter().position(|column| column == name).expect("the column is there");
        let last = rows.last().expect("a row");
        ["user", "share", "path"].map(|name| last[at(name)].clone())
    };
    let (raw, safe) = (cells(&["--csv-raw"]), cells(&[]));
    assert!(raw[0].starts_with('-') && raw[2].starts_with("=cmd|\u{1b}]0;owned"), "{raw:?}");
    for (raw, safe) in raw.iter().zip(&safe) {
        let begins = raw.starts_with(['=', '+', '-', '@']);
        assert_eq!(safe, &if begins { format!("'{raw}") } else { raw.clone() });
    }
    assert!(safe[2].starts_with("'=cmd|") && safe[0].starts_with("'-"), "{safe:?}");
    let slices = |arguments: &[&str]| {
        let said = analyze(&directory, &[&["smb.pcap", "--format", "csv", "--by", "user"], arguments].concat());
        let (_, rows) = table(said.output());
        rows.into_iter().any(|row| row[0].starts_with('-'))
    };
    assert_eq!([slices(&[]), slices(&["--csv-raw"])], [false, true]);
    assert_eq!(analyze(&directory, &["smb.pcap", "--csv-raw"]).status, Some(2));
}

#[test]
fn json_holds_the_names_as_escapes() {
    let directory = directory("hostile_json");
    write(&directory, "smb.pcap", capture());
    let said = analyze(&directory, &["smb.pcap", "--format", "json", "--title", STEERING]);
    assert!(is_clean(said.output()));
    let document: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(document["title"], STEERING);
    let path = document["files"][0]["path"].as_str().expect("a path");
    assert!(path.starts_with(&format!("=cmd|{STEERING}\n")), "{path:?}");
    write(&directory, "saved.json", &said.out);
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.current_dir(&directory).args([
        "compare",
        "saved.json",
        "saved.json",
        "--format",
        "json",
        "--name",
        STEERING,
    ]);
    assert!(is_clean(finish(command).output()));
    let page = analyze(&directory, &["smb.pcap", "--format", "html", "--title", STEERING]);
    let data = page.output().split("id=\"smbscope-data\">").nth(1).and_then(|rest| rest.split("</script").next());
    assert!(data.is_some_and(is_clean) && page.out.split("</title>").next().is_some_and(is_clean));
}

#[test]
fn a_terminal_gets_names_cleaned_in_every_format() {
    let directory = directory("hostile_terminal");
    write(&directory, "smb.pcap", capture());
    write(&directory, &format!("{STEERING}.pcap"), capture());
    for options in
        ["", "--classic", "--format json", "--format csv", "--format csv --csv-raw", "--format csv --by file,user"]
    {
        let line = format!("exec \"$S\" analyze -q *.pcap {options} --title \"$(printf 'a\\033]0;x\\007')\"");
        let Some(text) = on_terminal(&directory, &line) else { return };
        assert!(
            is_clean(&text) && text.contains("Read") || text.contains("READ") || text.contains("is_other"),
            "{options}: {text:?}"
        );
        if options.contains("csv") {
            // The table has a header and one row per exchange or slice, so no line starts with a name.
            assert!(!text.lines().any(|line| line.starts_with("next line")), "{text}");
        }
    }
    // Recordings replace control characters in names.
    write(&directory, "unseen.cap", capture_of("a\u{202e}b\u{2066}c\u{2028}d\u{200b}e\u{ad}f.txt"));
    for line in ["exec \"$S\" record unseen.cap", "exec \"$S\" record unseen.cap -o /dev/tty"] {
        let Some(text) = on_terminal(&directory, line) else { return };
        assert!(is_clean(&text) && text.contains("[recorded]") && text.contains("a\u{fffd}b"), "{text:?}");
    }
    for line in ["exec \"$S\" analyze *.pcap --format html", "exec \"$S\" analyze *.pcap --format parquet"] {
        let Some(text) = on_terminal(&directory, line) else { return };
        assert!(text.contains("to a terminal; name a file with -o"), "{text}");
    }
    let Some(text) = on_terminal(&directory, "exec \"$S\" analyze -q smb.pcap --format csv -o /dev/tty") else {
        return;
    };
    assert!(is_clean(&text) && text.contains("READ"), "{text}");
}

#[test]
fn markdown_shows_a_hostile_name_as_text_in_its_cell() {
    let directory = directory("hostile_markdown");
    write(&directory, "smb.pcap", capture_of("a|b `c` <img src=x> *d* [e](http://f) \u{1b}[2J @ann #1.txt"));
    let said = analyze(&directory, &["smb.pcap", "--format", "markdown", "--by", "file"]);
    let rows: Vec<&str> = said.output().lines().filter(|line| line.contains("a\\|b")).collect();
    // GFM §4.10: an escaped pipe separates no cells; CommonMark §2.4: a backslash makes punctuation literal.
    let name = "a\\|b \\`c\\` \\<img src=x> \\*d\\* \\[e](http://f) \u{fffd}\\[2J @<!-- -->ann #<!-- -->1.txt";
    assert!(rows.iter().any(|row| row.contains(name)), "{}", said.out);
    assert!(is_clean(&said.out), "{}", said.out);
}

fn complaint(directory: &Path, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.current_dir(directory).args(arguments).stdin(Stdio::null());
    finish(command)
}

#[test]
fn complaints_are_clean_whatever_they_quote() {
    let directory = directory("hostile_errors");
    let hostile = format!("{STEERING}\nsmbscope: all is well");
    let saved = serde_json::json!({ "schema": hostile }).to_string();
    write(&directory, "saved.json", saved);
    write(&directory, "smb.pcap", capture());
    write(&directory, &hostile, "no capture");
    write(&directory, &format!("{hostile}.pcap"), &capture()[..200]);
    let workload = format!("[[{hostile}");
    write(&directory, "load.toml", workload);
    std::fs::create_dir_all(directory.join("state/evil")).expect("a directory");
    write(&directory, "state/evil/state.json", format!("{{\"name\": \"{STEERING}\"}}"));
    for arguments in [
        &["analyze", &hostile][..],
        &["analyze", "absent", &hostile],
        &["analyze", "smb.pcap", "-o", &format!("{hostile}/x.txt")],
        &["analyze", "smb.pcap", "-o", &format!("x.{hostile}")],
        &["analyze", "smb.pcap", &format!("--{hostile}")],
        &["analyze", "smb.pcap", "--filter", &format!("path == {hostile}")],
        &["analyze", "smb.pcap", "--format", &hostile],
        &["compare", "smb.pcap", "saved.json"],
        &["compare", "smb.pcap", &hostile],
        &["bench", "--workload", "load.toml", "smb://127.0.0.1:1/s"],
        &["bench", "--workload", &hostile, "smb://127.0.0.1:1/s"],
        &["bench", "--password-file", &hostile, &format!("smb://u@127.0.0.1:1/s{STEERING}")],
        &["bench", &hostile],
        &["lab", "down", &hostile],
        &["lab", "down", "--state", &hostile],
        &["man", &hostile],
        &["completions", &hostile],
    ] {
        let said = complaint(&directory, arguments);
        assert!(matches!(said.status, Some(1 | 2)) && !said.err.is_empty(), "{arguments:?}");
        assert!(is_clean(&said.err) && is_clean(&said.out), "{arguments:?}: {:?}{:?}", said.err, said.out);
        assert!(!said.err.lines().any(|line| line.starts_with("smbscope: all is well")), "{arguments:?}: {}", said.err);
    }
    // A warning that quotes the name of a truncated file.
    let said = complaint(&directory, &["analyze", "--format", "csv", &format!("{hostile}.pcap")]);
    assert!(said.err.contains("middle of a record") && is_clean(&said.err), "{:?}", said.err);
}
