//! The exchange table in Parquet equals the CSV of the same capture, value by value.

use crate::common::{self, analyze, analyze_input, bundled, contents, directory, table};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use serde_json::Value;
use std::fs::File;
use std::path::Path;

fn path(name: &str) -> String {
    bundled(name).to_str().expect("the path is UTF-8").to_owned()
}

/// Returns all bundled captures.
fn captures() -> Vec<String> {
    let mut found = Vec::new();
    for part in ["", "own", "damaged"] {
        for entry in std::fs::read_dir(bundled(part)).expect("the directory is in the repository") {
            let name = entry.expect("can be listed").file_name().into_string().expect("names are ASCII");
            if name.contains(".pcap") && !name.contains(".tsv") {
                found.push(if part.is_empty() { name } else { format!("{part}/{name}") });
            }
        }
    }
    found.sort();
    assert!(found.len() > 40, "only {} captures were found", found.len());
    found
}

/// Formats a value as in CSV; null is empty.
fn shown(batch: &RecordBatch, column: usize, row: usize) -> String {
    let values = batch.column(column);
    if values.is_null(row) {
        return String::new();
    }
    let dictionary = values.as_any_dictionary_opt().map(|_| values.as_dictionary::<Int32Type>());
    if let Some(dictionary) = dictionary {
        let key = dictionary.key(row).expect("a value that is not null has a key");
        return dictionary.values().as_string::<i32>().value(key).to_owned();
    }
    let integer = values.as_primitive_opt::<Int64Type>().map(|values| values.value(row).to_string());
    integer
        .or_else(|| values.as_primitive_opt::<UInt64Type>().map(|values| values.value(row).to_string()))
        .or_else(|| values.as_primitive_opt::<UInt32Type>().map(|values| values.value(row).to_string()))
        .or_else(|| values.as_primitive_opt::<UInt16Type>().map(|values| values.value(row).to_string()))
        .or_else(|| values.as_boolean_opt().map(|values| values.value(row).to_string()))
        .or_else(|| values.as_string_opt::<i32>().map(|values| values.value(row).to_owned()))
        .unwrap_or_else(|| panic!("column {column} has the type {}", values.data_type()))
}

/// Returns the header and rows of a Parquet file in the format of [`table`].
fn rows(file: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let file = File::open(file).expect("the table was written");
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).expect("the table is Parquet");
    let header = builder.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut rows = Vec::new();
    for batch in builder.build().expect("the table can be read") {
        let batch = batch.expect("the table is whole");
        rows.extend((0..batch.num_rows()).map(|row| {
            let cells = (0..batch.num_columns()).map(|column| shown(&batch, column, row));
            cells.collect::<Vec<_>>()
        }));
    }
    (header, rows)
}

#[test]
fn every_value_of_every_bundled_capture_is_that_of_the_csv() {
    let directory = directory("parquet_and_csv");
    let mut seen = 0;
    for capture in captures() {
        let csv = analyze(&directory, &[&path(&capture), "--format", "csv", "--csv-raw"]);
        let parquet = analyze(&directory, &[&path(&capture), "--format", "parquet", "-o", "out.parquet"]);
        assert_eq!((parquet.status, &parquet.err, parquet.out.as_str()), (csv.status, &csv.err, ""), "{capture}");
        let (expected, found) = (table(&csv.out), rows(&directory.join("out.parquet")));
        assert_eq!(found.0, expected.0, "{capture}");
        assert_eq!(found.1.len(), expected.1.len(), "{capture}");
        for (found, expected) in found.1.iter().zip(&expected.1) {
            assert_eq!(found, expected, "{capture}");
        }
        seen += found.1.len();
    }
    assert!(seen > 40_000, "only {seen} rows were compared");
}

#[test]
fn the_table_is_the_same_for_any_number_of_threads() {
    let directory = directory("parquet_threads");
    let capture = path("demo-smb1-netbench.pcap.zst");
    for out in ["out.parquet", "out.csv"] {
        let run = |threads| {
            analyze(&directory, &[&capture, "--filter", "group != Locking", "--threads", threads, "-o", out]).output();
            std::fs::read(directory.join(out)).expect("the table was written")
        };
        let one = run("1");
        assert!(one.len() > 100_000 && ["2", "5"].iter().all(|threads| run(threads) == one), "{out}");
    }
}

#[test]
fn the_metadata_are_those_of_the_json_report() {
    let directory = directory("parquet_metadata");
    for capture in ["demo-smb311-office.pcap.zst", "damaged/smb1_mux__drop10.pcap.zst"] {
        let json = analyze(&directory, &[&path(capture), "--format", "json"]);
        let report: Value = serde_json::from_str(json.output()).expect("the report is JSON");
        analyze(&directory, &[&path(capture), "--format", "parquet", "-o", "out.parquet"]).output();
        let file = File::open(directory.join("out.parquet")).expect("the table was written");
        let metadata = ArrowReaderMetadata::load(&file, Default::default()).expect("the table is Parquet");
        let entries = metadata.metadata().file_metadata().key_value_metadata().expect("there are metadata");
        let value = |key: &str| {
            let found = entries.iter().find(|entry| entry.key == key).and_then(|entry| entry.value.as_deref());
            found.unwrap_or_else(|| panic!("no {key}"))
        };
        let json = |key| serde_json::from_str::<Value>(value(key)).expect("the value is JSON");
        assert_eq!(value("smbscope.version"), report["generator"]["version"]);
        assert_eq!(value("smbscope.schema"), "smbscope.exchanges/1");
        assert_eq!(json("smbscope.captures"), report["captures"], "{capture}");
        assert_eq!(json("smbscope.quality"), report["quality"], "{capture}");
    }
}

#[test]
fn standard_output_and_live_input_give_the_same_file() {
    let directory = directory("parquet_pipe");
    let capture = "own/smb1_raw.pcap.zst";
    let run = |arguments: &[&str], input: &[u8]| {
        use std::io::Write;
        use std::process::Stdio;
        let mut command = common::command(&directory, &[&["--format", "parquet"], arguments].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the binary runs");
        let mut stdin = child.stdin.take().expect("standard input is a pipe");
        stdin.write_all(input).expect("the program reads its input");
        drop(stdin);
        let output = child.wait_with_output().expect("the binary ends");
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
        output.stdout
    };
    let printed = run(&[&path(capture)], b"");
    run(&[&path(capture), "-o", "out.parquet"], b"");
    assert!(printed.starts_with(b"PAR1") && printed.ends_with(b"PAR1"));
    assert_eq!(std::fs::read(directory.join("out.parquet")).expect("the file was written"), printed);
    std::fs::write(directory.join("piped.parquet"), run(&["-"], &contents(capture))).expect("a file can be written");
    let (piped, read) = (rows(&directory.join("piped.parquet")), rows(&directory.join("out.parquet")));
    let but_the_name = |rows: Vec<Vec<String>>| -> Vec<Vec<String>> {
        rows.into_iter().map(|row| [&row[..18], &row[19..]].concat()).collect()
    };
    assert_eq!(piped.0[18], "capture");
    assert_eq!(piped.1[0][18], "-");
    assert_eq!(but_the_name(piped.1), but_the_name(read.1));
}

#[test]
fn a_capture_without_smb_is_an_error_and_leaves_no_table() {
    let directory = directory("parquet_no_smb");
    let web = smbscope_testkit::Conversation::new().ports(50_000, 80).client_sends(100, "GET / HTTP/1.1\r\n\r\n");
    let said = analyze_input(
        &directory,
        &["-", "--format", "parquet", "-o", "out.parquet"],
        &smbscope_testkit::pcap::micros(&web.packets()),
    );
    assert!(said.error(1).starts_with("standard input: no SMB in 4 packets, but HTTP "), "{}", said.err);
    assert_eq!(std::fs::read_dir(&directory).expect("a directory").count(), 0);
}
