//! The exchange table as Parquet: types, nulls, bounds and errors. The command line's tests check on captures that its
//! values equal the CSV's.

use crate::common;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use smbscope_model::{CommandGroup, Exchange, Quality};
use smbscope_report::parquet::{GROUP_BYTES, GROUP_ROWS, ParquetExchangeWriter};
use smbscope_report::table::{COLUMNS, ExchangeTable, Provenance};
use std::io::{self, Write};

fn exchange() -> Exchange {
    common::exchange(common::smb2_command(8), CommandGroup::Read, 1_000, 5_000)
}

/// Writes a table. `exchange` creates its rows.
fn write(out: impl Write + Send, rows: usize, exchange: impl Fn(usize) -> Exchange) -> io::Result<()> {
    let mut table = ParquetExchangeWriter::new(out)?;
    let names = ["a.pcap".to_owned()];
    for id in 0..rows {
        table.write(&exchange(id), id as u64, &names)?;
    }
    table.finish(&Provenance {
        version: "0.0.0",
        captures: &[],
        quality: &Quality::default(),
        skipped: &[],
        encapsulations: &[],
        filter: None,
    })
}

fn table(rows: usize, exchange: impl Fn(usize) -> Exchange) -> ParquetRecordBatchReaderBuilder<bytes::Bytes> {
    let mut file = Vec::new();
    write(&mut file, rows, exchange).expect("writing to memory does not fail");
    ParquetRecordBatchReaderBuilder::try_new(file.into()).expect("the table is Parquet")
}

fn row(exchange: &Exchange) -> RecordBatch {
    let mut batches = table(1, |_| exchange.clone()).build().expect("the table can be read");
    batches.next().expect("a batch").expect("a whole batch")
}

#[test]
fn columns_have_the_names_and_order_of_the_table_and_types_that_every_reader_takes() {
    let builder = table(1, |_| exchange());
    let fields = builder.schema().fields();
    let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, COLUMNS.map(|column| column.name));
    let of_type = |name: &str| -> Vec<&str> {
        let found = fields.iter().filter(|field| field.data_type().to_string() == name);
        found.map(|field| field.name().as_str()).collect()
    };
    assert_eq!(of_type("UInt16"), ["client_port", "server_port"]);
    assert_eq!(of_type("UInt32"), ["request_packets", "response_packets", "retransmitted"]);
    assert_eq!(of_type("UInt64"), ["message_id", "offset", "length"]);
    assert_eq!(of_type("Boolean"), ["compounded", "signed", "encrypted"]);
    assert_eq!(of_type("Utf8"), ["session_id", "tree_id", "file_id", "path"]);
    // Names are dictionary-encoded, so that a data frame holds each once.
    assert_eq!(of_type("Dictionary(Int32, Utf8)").len(), 14);
    let integers = of_type("Int64");
    assert!(fields.iter().filter(|field| field.name().ends_with("_ns")).all(|f| integers.contains(&f.name().as_str())));
    assert_eq!(integers.len(), 47 - 2 - 3 - 3 - 3 - 4 - 14);
}

#[test]
fn what_is_unknown_or_empty_is_null() {
    let mut orphan = exchange();
    orphan.request = Default::default();
    orphan.path = Some("".into());
    orphan.share = Some("home".into());
    let row = row(&orphan);
    let is_null = |name: &str| row.column_by_name(name).expect("the column").is_null(0);
    for name in ["request_first_packet", "request_first_ns", "response_time_ns", "offset", "dialect", "path"] {
        assert!(is_null(name), "{name}");
    }
    for name in ["exchange_id", "request_packets", "signed", "share", "response_last_ns"] {
        assert!(!is_null(name), "{name}");
    }
}

#[test]
fn numbers_of_the_protocol_keep_all_64_bits() {
    let mut read = exchange();
    (read.offset, read.message_id) = (Some(u64::MAX), Some(u64::MAX - 1));
    let row = row(&read);
    let value = |name: &str| row[name].as_primitive::<UInt64Type>().value(0);
    assert_eq!((value("offset"), value("message_id")), (u64::MAX, u64::MAX - 1));
}

#[test]
fn row_groups_are_bounded_by_rows() {
    let builder = table(GROUP_ROWS + 10, |_| exchange());
    let groups: Vec<i64> = builder.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [GROUP_ROWS as i64, 10]);
}

#[test]
fn row_groups_are_bounded_by_bytes() {
    // 800 distinct paths of 60,000 characters, which zstd can't halve: 48 MB.
    let path = |id: usize| {
        let mut state = id as u64 + 1;
        let mut next = move || {
            // Knuth's MMIX generator.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'0' + ((state >> 33) % 75) as u8)
        };
        (0..60_000).map(|_| next()).collect::<String>()
    };
    let builder = table(800, |id| Exchange { path: Some(path(id).into()), ..exchange() });
    let groups = builder.metadata().row_groups();
    assert!(groups.len() > 1);
    // A row group may exceed the bound by one batch.
    assert!(groups.iter().all(|group| group.compressed_size() < (GROUP_BYTES + GROUP_BYTES / 4) as i64));
    assert_eq!(groups.iter().map(|group| group.num_rows()).sum::<i64>(), 800);
}

/// Accepts this many bytes, then reports a full disk.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_the_output_says_reaches_the_caller() {
    let size = {
        let mut file = Vec::new();
        write(&mut file, 20_000, |_| exchange()).expect("writing to memory does not fail");
        file.len()
    };
    write(Disk(size), 20_000, |_| exchange()).expect("it fits");
    for room in [0, 3, size / 2, size - 1] {
        let error = write(Disk(room), 20_000, |_| exchange()).expect_err("it does not fit");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{room} of {size} bytes: {error}");
    }
}
