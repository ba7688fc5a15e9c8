//! Output formats on bundled captures, colour, `-o`, and the help texts.

use crate::common::{analyze, bundled, command, directory, finish, table};
use serde_json::Value;

const CAPTURES: [&str; 6] = [
    "demo-smb311-office.pcap.zst",
    "own/smb1_raw.pcap.zst",
    "own/torture_smb2.compound.pcap.zst",
    "own/torture_raw.oplock.pcap.zst",
    "damaged/smb1_mux__drop10.pcap.zst",
    "own/tso_SMB3_11.pcap.zst",
];

fn path(name: &str) -> String {
    bundled(name).to_str().expect("the path is UTF-8").to_owned()
}

#[test]
fn json_of_real_captures_follows_the_schema() {
    let schema = include_str!("../../../schema/smbscope.report-1.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is valid");
    for capture in CAPTURES {
        let said = analyze(&directory("schema"), &[&path(capture), "--format", "json", "--title", "a title"]);
        let report: Value = serde_json::from_str(said.output()).expect("the report is JSON");
        let problems: Vec<String> =
            validator.iter_errors(&report).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert_eq!(problems, Vec::<String>::new(), "{capture}");
    }
}

#[test]
fn the_exchange_table_has_the_columns_of_the_contract() {
    // Column contract of DESIGN §5. New columns may only be appended.
    let contract = "exchange_id, flow_id, client, client_port, server, server_port, protocol, dialect, command, \
        subcommand, message_id, session_id, user, tree_id, share, file_id, path, status, capture, \
        request_first_packet, request_last_packet, response_first_packet, response_last_packet, request_first_ns, \
        request_last_ns, interim_ns, response_first_ns, response_last_ns, request_bytes, response_bytes, offset, \
        length, compounded, signed, encrypted, outcome, request_packets, response_packets, retransmitted";
    let contract: Vec<&str> = contract.split(", ").map(str::trim).collect();
    for capture in CAPTURES {
        let said = analyze(&directory("columns"), &[&path(capture), "--format", "csv"]);
        let (header, rows) = table(said.output());
        assert_eq!(header[..contract.len()], contract);
        assert!(rows.iter().enumerate().all(|(id, row)| row.len() == header.len() && row[0] == id.to_string()));
    }
}

#[test]
fn reports_and_table_count_the_same_exchanges() {
    for capture in CAPTURES {
        let said = |format| analyze(&directory("same"), &[&path(capture), "--format", format]);
        let report: Value = serde_json::from_str(said("json").output()).expect("the report is JSON");
        let (header, rows) = table(said("csv").output());
        let place = |name: &str| header.iter().position(|column| column == name).expect("the column is there");
        let is_apart = |row: &&Vec<String>| {
            ["async portion", "server-initiated"].contains(&row[place("subcommand")].as_str())
                || row[place("outcome")] == "server_initiated"
        };
        let commands = rows.iter().filter(|row| !is_apart(row)).count();
        assert_eq!(report["totals"]["commands"], commands, "{capture}");
        let timed = rows.iter().filter(|row| !is_apart(row) && row[place("outcome")] == "complete").count();
        assert_eq!(report["totals"]["outcomes"]["complete"], timed, "{capture}");
    }
}

#[test]
fn nothing_is_wider_than_the_page() {
    for capture in CAPTURES {
        for width in ["80", "100"] {
            let said = analyze(&directory("width"), &[&path(capture), "--width", width]);
            let lines = said.output().lines().filter(|line| !line.contains(" smbscope analyze "));
            let widest = lines.map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= width.parse().expect("a number"), "{capture}: {widest} > {width}");
        }
    }
}

#[test]
fn the_same_capture_gives_the_same_bytes() {
    for format in ["text", "json", "csv"] {
        let run = || analyze(&directory("same_bytes"), &[&path(CAPTURES[0]), "--format", format]).out;
        assert_eq!(run(), run());
    }
}

#[test]
fn colour_only_where_it_is_wanted() {
    let directory = directory("colour");
    let capture = path("own/smb1_raw.pcap.zst");
    let colored = |arguments: &[&str], no_color: bool| {
        let mut command = command(&directory, &[&[capture.as_str()], arguments].concat());
        if no_color {
            command.env("NO_COLOR", "1");
        }
        finish(command).output().contains('\u{1b}')
    };
    // No colour in a pipe by default. `--color` takes precedence over NO_COLOR.
    assert!(!colored(&[], false));
    assert!(colored(&["--color", "always"], false));
    assert!(colored(&["--color", "always"], true));
    assert!(!colored(&["--color", "never"], false));
    assert!(!colored(&[], true));
}

#[test]
fn an_output_file_holds_what_would_have_been_printed() {
    let directory = directory("output");
    let capture = path("own/smb1_raw.pcap.zst");
    for arguments in
        [&["--format", "text"][..], &["--classic", "--format", "txt"], &["--format", "json"], &["--format", "md"]]
    {
        let printed = analyze(&directory, &[&[capture.as_str()], arguments].concat());
        std::fs::write(directory.join("out"), "what was there before, ".repeat(100_000))
            .expect("a file can be written");
        let silent = analyze(&directory, &[&[capture.as_str(), "-o", "out"], arguments].concat());
        assert_eq!(silent.output(), "");
        let written = std::fs::read_to_string(directory.join("out")).expect("the file was written");
        assert_eq!(written, printed.output(), "{arguments:?}");
    }
    let dash = analyze(&directory, &[&capture, "-o", "-"]);
    assert_eq!(dash.output(), analyze(&directory, &[&capture]).output());
}

#[test]
fn the_title_is_the_users() {
    let said = analyze(&directory("title"), &[&path(CAPTURES[1]), "--title", "Monday, 9 o'clock"]);
    let title = "SMB response times: Monday, 9 o'clock (--full";
    assert!(said.output().lines().any(|line| line.starts_with(title)), "{}", said.out);
}

#[test]
fn help() {
    let help = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_smbscope"));
        command.args(arguments).env("COLUMNS", "100");
        finish(command).output().to_owned()
    };
    insta::assert_snapshot!("help", help(&["--help"]));
    insta::assert_snapshot!("help_of_analyze", help(&["analyze", "--help"]));
    // At most two screens, with an example.
    for verb in ["analyze", "bench", "compare", "lab", "lab up", "bench clean"] {
        let short = help(&[verb.split(' ').collect::<Vec<_>>(), vec!["-h"]].concat());
        assert!(short.lines().count() <= 80, "{verb}: {}\n{short}", short.lines().count());
        assert!(short.contains("Examples:"), "{verb}\n{short}");
    }
    assert_eq!(help(&["--version"]), format!("smbscope {}\n", env!("CARGO_PKG_VERSION")));
}
