//! Input: complete, truncated and split files, standard input plain and compressed, and Ctrl-C.

use crate::common::{analyze, analyze_input, command, contents, directory, said, table, write};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SMB3: &str = "own/smbclient_SMB3_11.pcap.zst";
const SMB1: &str = "own/nbench32_NT1_8proc.pcap.zst";
const HEADER: usize = 24;

/// Returns the offset of each record of a little-endian pcap file, and of its end.
fn records(pcap: &[u8]) -> Vec<usize> {
    let mut at = HEADER;
    let mut starts = vec![at];
    while at < pcap.len() {
        at += 16 + u32::from_le_bytes(pcap[at + 8..at + 12].try_into().expect("four bytes")) as usize;
        starts.push(at);
    }
    starts
}

/// Returns the columns that do not depend on how packets are split into files.
fn exchanges(csv: &str) -> Vec<Vec<String>> {
    let (header, rows) = table(csv);
    let kept: Vec<usize> =
        (0..header.len()).filter(|i| !header[*i].contains("capture") && !header[*i].ends_with("_packet")).collect();
    rows.into_iter().map(|row| kept.iter().map(|i| row[*i].clone()).collect()).collect()
}

#[test]
fn two_halves_are_the_same_as_the_whole_in_either_order() {
    for capture in [SMB3, SMB1] {
        let directory = directory(&format!("halves_{}", capture.len()));
        let whole = contents(capture);
        let starts = records(&whole);
        let (first, rest) = whole.split_at(starts[starts.len() / 2]);
        write(&directory, "whole.pcap", &whole);
        write(&directory, "1.pcap", first);
        write(&directory, "2.pcap", [&whole[..HEADER], rest].concat());
        let csv = |files: &[&str]| analyze(&directory, &[&["--format", "csv"], files].concat()).output().to_owned();
        let expected = exchanges(&csv(&["whole.pcap"]));
        assert!(expected.len() > 200);
        assert_eq!(exchanges(&csv(&["1.pcap", "2.pcap"])), expected);
        assert_eq!(exchanges(&csv(&["2.pcap", "1.pcap"])), expected);
        // Packet numbers count within each file.
        let (header, rows) = table(&csv(&["1.pcap", "2.pcap"]));
        let place = |name: &str| header.iter().position(|column| column == name).expect("the column is there");
        let last = rows.last().expect("there are exchanges");
        assert_eq!(last[place("capture")], "2.pcap");
        let number: usize = last[place("request_first_packet")].parse().expect("a number");
        assert!(number <= starts.len() - starts.len() / 2, "{number}");
    }
}

#[test]
fn a_cut_file_gives_everything_before_the_cut_and_a_warning() {
    let directory = directory("cut");
    let whole = contents(SMB3);
    let starts = records(&whole);
    let boundary = starts[1_000];
    write(&directory, "before.pcap", &whole[..boundary]);
    let expected = exchanges(analyze(&directory, &["before.pcap", "--format", "csv"]).output());
    // Truncation in the data of a record, and in its header.
    for length in [boundary + 30, boundary + 5] {
        write(&directory, "cut.pcap", &whole[..length]);
        let table = analyze(&directory, &["cut.pcap", "--format", "csv"]);
        assert_eq!((table.status, exchanges(&table.out)), (Some(0), expected.clone()));
        let warning = table.err.strip_prefix("smbscope: warning: cut.pcap: the file ends in the middle of a record");
        assert!(warning.is_some_and(|rest| rest.contains("packet 1001") && rest.lines().count() == 1), "{}", table.err);
        let text = analyze(&directory, &["cut.pcap", "--full"]);
        let report = text.output();
        assert!(report.contains("1  capture cut off in the middle of a record"), "{report}");
        assert!(report.contains("cut.pcap: the file ends") && !report.contains("cut.pcap: cut.pcap"), "{report}");
    }
}

#[test]
fn standard_input_plain_and_compressed_is_the_same_as_a_file() {
    let directory = directory("stdin");
    let whole = contents(SMB3);
    write(&directory, "whole.pcap", &whole);
    let expected = exchanges(analyze(&directory, &["whole.pcap", "--format", "csv"]).output());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&whole).expect("writing to memory does not fail");
    let gzip = gzip.finish().expect("writing to memory does not fail");
    let zstd = zstd::encode_all(&*whole, 1).expect("writing to memory does not fail");
    for input in [&whole, &gzip, &zstd] {
        let said = analyze_input(&directory, &["-", "--format", "csv"], input);
        let (header, rows) = table(said.output());
        assert_eq!(exchanges(&said.out), expected);
        let capture = header.iter().position(|column| column == "capture").expect("the column is there");
        assert_eq!(rows[0][capture], "-");
        // The format is detected from the contents, not from the file name.
        write(&directory, "misnamed.pcap.xz", input);
        assert_eq!(exchanges(analyze(&directory, &["misnamed.pcap.xz", "--format", "csv"]).output()), expected);
    }
}

#[test]
fn ports_restrict_what_is_looked_at() {
    let directory = directory("ports");
    write(&directory, "a.pcap", contents(SMB3));
    write(&directory, "b.pcap", contents("own/smbclient_NT1_139.pcap.zst"));
    let count = |ports: &[&str]| {
        let said = analyze(&directory, &[&["a.pcap", "b.pcap", "--format", "csv"], ports].concat());
        exchanges(said.output()).len()
    };
    let (smb3, smb1) = (count(&["--port", "445"]), count(&["--port", "139"]));
    assert!(smb3 > 100 && smb1 > 100);
    assert_eq!([count(&[]), count(&["--port", "139", "--port", "445"])], [smb3 + smb1; 2]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_on_a_stalled_pipe_prints_what_was_measured() {
    let directory = directory("ctrl_c");
    let whole = contents(SMB3);
    write(&directory, "whole.pcap", &whole);
    let expected = exchanges(analyze(&directory, &["whole.pcap", "--format", "csv"]).output());
    for format in ["text", "json", "csv"] {
        let mut child = command(&directory, &["-", "--format", format])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut stdin = child.stdin.take().expect("standard input is a pipe");
        stdin.write_all(&whole).expect("the binary reads");
        // The input exceeds the pipe buffer, so the analysis has started. The pipe stays open without further data.
        std::thread::sleep(Duration::from_secs(1));
        let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(interrupt.expect("kill runs").success());
        // Reads the output before waiting, because a full pipe would block the program.
        let mut out = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("output is UTF-8");
        let ended = Instant::now();
        let mut said = said(child.wait_with_output().expect("the binary ends"));
        said.out = out;
        assert!(ended.elapsed() < Duration::from_secs(10));
        assert_eq!(said.status, Some(130), "{}", said.err);
        assert_eq!(said.err, "smbscope: warning: interrupted: these are the results so far\n");
        match format {
            "csv" => assert_eq!(exchanges(&said.out), expected),
            "json" => assert!(serde_json::from_str::<serde_json::Value>(&said.out).is_ok()),
            _ => assert!(said.out.contains("\nSMB response times (--full adds all tables)\n"), "{}", said.out),
        }
        drop(stdin);
    }
}
