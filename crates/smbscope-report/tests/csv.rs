//! Columns of the exchange table as CSV.

use crate::common;
use smbscope_model::{
    CaptureId, CommandGroup, Dialect, Exchange, ExchangeOutcome, FileId, Nanos, PacketRef, ResponseStatus, Stamp,
    Timestamp,
};
use smbscope_report::csv::CsvExchangeWriter;
use smbscope_report::table::{COLUMNS, ExchangeTable};
use smbscope_wire::status::NtStatus;

fn table(exchanges: &[Exchange]) -> String {
    let names = ["a.pcap".to_owned(), "b.pcap".to_owned()];
    let mut writer = CsvExchangeWriter::new(Vec::new()).expect("writing to memory does not fail");
    for (id, exchange) in exchanges.iter().enumerate() {
        writer.write(exchange, id as u64, &names).expect("writing to memory does not fail");
    }
    String::from_utf8(writer.into_inner().expect("writing to memory does not fail")).expect("UTF-8")
}

/// Parses a value from the table's only row.
fn column(exchange: &Exchange, name: &str) -> String {
    let table = table(std::slice::from_ref(exchange));
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let at = reader.headers().expect("a header").iter().position(|column| column == name).expect("the column");
    let record = reader.records().next().expect("a row").expect("a whole row");
    record[at].to_owned()
}

fn full() -> Exchange {
    let mut read = common::exchange(common::smb2_command(8), CommandGroup::Read, 1_000, 5_000);
    read.dialect = Some(Dialect::Smb2(0x0311));
    read.message_id = Some(77);
    read.session_id = Some(0x1_0000_0041);
    read.user = Some("CORP\\ann".into());
    read.tree_id = Some(5);
    read.share = Some("home".into());
    read.file_id = Some(FileId::Smb2 { persistent: 1, volatile: 0xff });
    read.path = Some("a,\"b\".txt".into());
    read.interim = Some(Stamp { time: Timestamp(2_500), ..Stamp::default() });
    read.offset = Some(u64::MAX);
    read.length = Some(4_096);
    read.compounded = true;
    read.signed = true;
    read.retransmitted = 2;
    read.retransmission_delay = Some(Nanos(300));
    read.server_round_trip = Some(Nanos(1_000));
    read.think_time = Some(Nanos(40));
    read
}

#[test]
fn every_column_has_its_value_in_its_place() {
    // Response time 5,000 ns from 1,000: the request ends a fifth later, the response starts a fifth earlier. Service
    // time 3,000 ns; server time 2,000 ns, as the round-trip time is 1,000 ns.
    let expected = "0,0,192.168.1.1,1001,192.168.1.100,139,SMB2,3.1.1,READ,,77,0x0000000100000041,CORP\\ann,0x00000005,\
                    home,0000000000000001:00000000000000ff,\"a,\"\"b\"\".txt\",STATUS_SUCCESS,a.pcap,1,2,3,4,\
                    1000,2000,2500,5000,6000,100,200,18446744073709551615,4096,true,true,false,complete,1,1,2,\
                    Read,,5000,3000,2000,300,40,";
    assert_eq!(table(&[full()]).lines().nth(1), Some(expected));
}

#[test]
fn the_header_is_that_of_the_contract() {
    let contract = "exchange_id,flow_id,client,client_port,server,server_port,protocol,dialect,command,subcommand,\
                    message_id,session_id,user,tree_id,share,file_id,path,status,capture,request_first_packet,\
                    request_last_packet,response_first_packet,response_last_packet,request_first_ns,request_last_ns,\
                    interim_ns,response_first_ns,response_last_ns,request_bytes,response_bytes,offset,length,\
                    compounded,signed,encrypted,outcome,request_packets,response_packets,retransmitted";
    assert!(table(&[]).starts_with(contract));
    assert_eq!(table(&[]).trim_end(), COLUMNS.map(|column| column.name).join(","));
}

#[test]
fn smb1_ids_have_four_digits() {
    let mut read = common::exchange(common::smb1_command(0x2e), CommandGroup::Read, 0, 10);
    (read.session_id, read.tree_id, read.file_id) = (Some(0x41), Some(1), Some(FileId::Smb1(0x4002)));
    let ids = ["session_id", "tree_id", "file_id"].map(|name| column(&read, name));
    assert_eq!(ids, ["0x0041", "0x0001", "0x4002"]);
    assert_eq!(column(&read, "command"), "SMB_COM_READ_ANDX");
}

#[test]
fn what_is_unknown_is_empty() {
    let mut orphan = full();
    orphan.request = Default::default();
    orphan.outcome = ExchangeOutcome::RequestNotCaptured;
    orphan.status = Some(ResponseStatus::Nt(NtStatus(0xc000_0034)));
    let empty = ["request_first_packet", "request_first_ns", "response_time_ns", "service_time_ns"];
    assert_eq!(empty.map(|name| column(&orphan, name)), [""; 4]);
    assert_eq!(column(&orphan, "status"), "STATUS_OBJECT_NAME_NOT_FOUND");
    assert_eq!(column(&orphan, "outcome"), "request_not_captured");
}

#[test]
fn a_response_in_another_file_is_named() {
    let mut split = full();
    assert_eq!([column(&split, "capture"), column(&split, "response_capture")], ["a.pcap", ""]);
    for stamp in [&mut split.response.first, &mut split.response.last].into_iter().flatten() {
        stamp.packet = PacketRef::new(CaptureId(1), stamp.packet.number());
    }
    assert_eq!([column(&split, "capture"), column(&split, "response_capture")], ["a.pcap", "b.pcap"]);
    // Without a request, `capture` is the response's file.
    split.request = Default::default();
    assert_eq!([column(&split, "capture"), column(&split, "response_capture")], ["b.pcap", ""]);
}

#[test]
fn a_response_that_begins_before_the_end_of_its_request_has_no_service_time() {
    let mut odd = full();
    odd.request.last = Some(Stamp { time: Timestamp(9_000), ..Stamp::default() });
    // The response starts at 5,000 ns, before the request ends at 9,000 ns.
    assert_eq!(column(&odd, "service_time_ns"), "");
}
