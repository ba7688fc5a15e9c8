//! Error messages: one line that names the problem, the place and the remedy, with the correct exit status.

use crate::common::{analyze, analyze_input, command, contents, directory, finish, write};
use smbscope_testkit::{Conversation, damage, pcap, smb2};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

/// Returns a connection on port 445 with two commands.
fn conversation() -> Conversation {
    Conversation::new()
        .client_says(100, smb2::negotiate(0, &[0x0311]))
        .server_says(300, smb2::negotiate_response(0, 0x0311))
        .client_says(400, smb2::echo(1))
        .server_says(450, smb2::echo_response(1))
}

/// Returns a pcap file with one packet of this link type.
fn pcap_with_link_type(link_type: u8) -> Vec<u8> {
    let mut file = pcap::micros(&conversation().packets()[..1]);
    file[20] = link_type;
    file
}

#[test]
fn a_file_that_is_not_there() {
    let said = analyze(&directory("absent"), &["nowhere.pcap"]);
    assert_eq!(said.error(1), "cannot open nowhere.pcap: No such file or directory (os error 2)");
}

#[test]
fn a_misspelt_file_gets_the_nearest_name_of_its_folder() {
    let directory = directory("misspelt");
    write(&directory, "monday.pcap", pcap::micros(&conversation().packets()));
    std::fs::create_dir_all(directory.join("sub")).expect("a folder");
    write(&directory.join("sub"), "causes.toml", "");
    let missing = "No such file or directory (os error 2); did you mean";
    let said = analyze(&directory, &["mondy.pcap"]);
    assert_eq!(said.error(1), format!("cannot open mondy.pcap: {missing} monday.pcap?"));
    let said = analyze(&directory, &["monday.pcap", "--thresholds=sub/cause.toml"]);
    assert_eq!(said.error(1), format!("cannot read sub/cause.toml: {missing} causes.toml?"));
}

#[test]
fn a_directory_without_captures_is_refused() {
    let directory = directory("is_directory");
    write(&directory, "notes.txt", "no capture");
    write(&directory, "empty.pcapng", "");
    std::fs::create_dir_all(directory.join("nested.pcap")).expect("a directory");
    let expected = ".: a directory without captures; directories in it are not read";
    assert_eq!(analyze(&directory, &["."]).error(1), expected);
}

#[test]
fn empty_files_and_empty_input() {
    let directory = directory("empty");
    write(&directory, "empty.pcap", "");
    assert_eq!(analyze(&directory, &["empty.pcap"]).error(1), "empty.pcap: empty file; capture or copy it again");
    assert_eq!(analyze_input(&directory, &["-"], b"").error(1), "standard input: empty file; capture or copy it again");
}

#[test]
fn a_file_of_another_kind() {
    let directory = directory("another_kind");
    write(&directory, "notes.txt", "Dear diary, today the share was slow.");
    let said = analyze(&directory, &["notes.txt"]);
    assert!(said.error(1).starts_with("notes.txt: not a capture file"), "{}", said.err);
}

#[test]
fn a_capture_without_packets() {
    let directory = directory("header_only");
    write(&directory, "header.pcap", pcap::micros(&[]));
    for format in ["text", "json"] {
        let said = analyze(&directory, &["header.pcap", "--format", format]);
        assert_eq!(said.error(1), "header.pcap: no packets in the capture; check its interface and its filter");
    }
}

#[test]
fn a_capture_without_smb_says_what_was_seen_instead() {
    let directory = directory("no_smb");
    let web = |port, requests| {
        let start = Conversation::new().ports(50_000 + port, port);
        (0..requests).fold(start, |web, n| web.client_sends(100 + n * 10, "GET / HTTP/1.1\r\n\r\n"))
    };
    // Each handshake has three packets: 3 + 2 and 3 + 1.
    let packets = [web(80, 2).packets(), web(8080, 1).packets()].concat();
    write(&directory, "web.pcap", pcap::micros(&packets));
    let expected = "web.pcap: no SMB in 9 packets, but HTTP on port 80 (1 connection, 5 packets), HTTP on port 8080 (1 \
                    connection, 4 packets)";
    assert_eq!(analyze(&directory, &["web.pcap"]).error(1), expected);
    // The table still has a header.
    let table = analyze(&directory, &["web.pcap", "--format", "csv"]);
    assert_eq!((table.status, table.err), (Some(1), format!("smbscope: {expected}\n")));
}

#[test]
fn smb_on_another_port_than_the_one_asked_for() {
    let directory = directory("wrong_port");
    write(&directory, "smb.pcap", pcap::micros(&conversation().packets()));
    let said = analyze(&directory, &["smb.pcap", "--port", "139", "--port", "1445"]);
    let expected = "smb.pcap: no SMB on port 139, 1445 in 7 TCP packets; the busiest port is 445 (7 packets); without \
                    --port every port is inspected";
    assert_eq!(said.error(1), expected);
}

#[test]
fn a_snap_length_that_leaves_no_smb_header() {
    let directory = directory("snapped");
    write(&directory, "short.pcap", pcap::micros(&damage::snap(&conversation().packets(), 54)));
    let said = analyze(&directory, &["short.pcap"]);
    assert!(said.error(1).ends_with("; the snap length cut 4 packets short, use one of 128 or more"), "{}", said.err);
}

#[test]
fn a_link_type_that_is_not_supported() {
    let directory = directory("link_type");
    write(&directory, "bus.pcap", pcap_with_link_type(189));
    let said = analyze(&directory, &["bus.pcap"]);
    let expected = "bus.pcap: link type 189 (USB) is not supported; capture on an Ethernet or IP interface";
    assert_eq!(said.error(1), expected);
}

#[test]
fn encrypted_smb_is_reported_with_a_warning() {
    let directory = directory("encrypted");
    let conversation = Conversation::new()
        .client_says(100, smb2::encrypted(7, 120))
        .server_says(400, smb2::encrypted(7, 200))
        .client_says(1_000, smb2::encrypted(7, 120))
        .server_says(1_500, smb2::encrypted(7, 200));
    write(&directory, "sealed.pcap", pcap::micros(&conversation.packets()));
    for format in ["text", "json", "csv"] {
        let said = analyze(&directory, &["sealed.pcap", "--format", format]);
        assert_eq!(said.status, Some(0));
        let warning = "smbscope: warning: 4 frames are encrypted: only the frames can be timed, not the commands in \
                       them; --keys or --password-file decrypts them\n";
        assert_eq!(said.err, warning);
        assert!(said.out.contains("ENCRYPTED"), "{}", said.out);
    }
    let said = analyze(&directory, &["sealed.pcap"]);
    // 300 µs and 500 µs.
    assert!(said.out.lines().any(|line| line.starts_with("4 frames are encrypted: ")), "{}", said.out);
    assert!(said.out.contains("median "), "{}", said.out);
}

#[test]
fn output_that_cannot_be_written() {
    let directory = directory("unwritable");
    write(&directory, "smb.pcap", pcap::micros(&conversation().packets()));
    let said = analyze(&directory, &["smb.pcap", "-o", "not/there.txt"]);
    assert_eq!(said.error(1), "cannot write not/there.txt: the directory not does not exist; create it first");
    if cfg!(target_os = "linux") {
        for format in ["text", "json", "csv", "parquet"] {
            let said = analyze(&directory, &["smb.pcap", "--format", format, "-o", "/dev/full"]);
            assert_eq!(said.error(1), "cannot write /dev/full: No space left on device (os error 28)");
        }
    }
}

#[test]
fn a_capture_is_not_overwritten_by_its_report() {
    let directory = directory("overwrite");
    let capture = pcap::micros(&conversation().packets());
    write(&directory, "smb.pcap", &capture);
    let said = analyze(&directory, &["smb.pcap", "--format", "text", "-o", "./smb.pcap"]);
    let expected = "cannot write ./smb.pcap: it is the input smb.pcap; choose another name for the output";
    assert_eq!(said.error(1), expected);
    assert_eq!(std::fs::read(directory.join("smb.pcap")).expect("the capture is still there"), capture);
}

#[test]
fn a_filter_that_takes_wildcards_for_themselves_says_so_where_nothing_matched() {
    let directory = directory("wildcards");
    write(&directory, "smb.pcap", contents("own/smbclient_SMB3_11.pcap.zst"));
    let refused = analyze(&directory, &["smb.pcap", "--filter", "path == *x.ini"]);
    assert_eq!(refused.status, Some(2));
    assert!(refused.err.contains("use ~ for wildcards: path ~ *x.ini"), "{}", refused.err);
    let quoted = analyze(&directory, &["smb.pcap", "--filter", "path == '*x.ini'"]);
    assert!(quoted.output().contains("use ~ for wildcards"), "{}", quoted.out);
}

#[test]
fn what_answers_instead_of_an_smb_server_is_said_in_one_line() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it listens");
    let server = std::thread::spawn(move || {
        for answer in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"SSH-2.0-x\r\n", b"\x15\x03\x01\0\x02\x02\x0a"] {
            let (mut stream, _) = listener.accept().expect("a client");
            stream.write_all(answer).expect("it takes the answer");
            // Reads everything the client sends, so that closing the socket does not reset the connection.
            let _its_end = stream.read_to_end(&mut Vec::new());
        }
    });
    let target = format!("smb://{address}/share");
    for (login, answered) in [("guest", "HTTP"), ("anonymous", "SSH"), ("guest", "TLS")] {
        let mut bench = std::process::Command::new(env!("CARGO_BIN_EXE_smbscope"));
        bench.args(["bench", "--login", login, "--no-prepare", &target]).stdin(Stdio::null());
        let said = finish(bench);
        assert_eq!(said.error(1), format!("{address} is not an SMB server: it answered {answered}"));
    }
    server.join().expect("the server ends");
}

#[test]
fn bad_arguments_have_exit_status_2() {
    let directory = directory("arguments");
    let bad: [&[&str]; 9] = [
        &[],
        &["--no-such-option", "x.pcap"],
        &["x.pcap", "--format", "yaml"],
        &["x.pcap", "--port", "70000"],
        &["x.pcap", "--width", "10"],
        &["x.pcap", "--color", "sometimes"],
        &["x.pcap", "--classic", "--format", "json"],
        &["-", "-"],
        &["x.pcap", "y.pcap", "x.pcap"],
    ];
    for arguments in bad {
        let said = analyze(&directory, arguments);
        assert_eq!((said.status, said.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(said.err.starts_with("error: "), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let directory = directory("broken_pipe");
    write(&directory, "smb.pcap", contents("demo-smb1-netbench.pcap.zst"));
    for format in ["text", "json", "csv", "parquet"] {
        let mut child = command(&directory, &["smb.pcap", "--format", format]).spawn().expect("the binary runs");
        let mut first = Vec::new();
        // Dropping the reader closes the pipe, like `| head -1`.
        BufReader::new(child.stdout.take().expect("a pipe")).read_until(b'\n', &mut first).expect("a line comes");
        let mut complaint = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut complaint).expect("standard error is text");
        let status = child.wait().expect("the binary ends");
        assert_eq!((status.code(), complaint.as_str()), (Some(0), ""), "{format}");
        assert_ne!(first, b"");
    }
    // The read end of the pipe is already closed at the start.
    let mut gone = command(&directory, &["smb.pcap"]);
    let (reader, writer) = std::io::pipe().expect("a pipe can be made");
    drop(reader);
    gone.stdout(Stdio::from(writer));
    assert_eq!(finish(gone).output(), "");
}
