//! Test reports: a small one with hand-computed figures, and a larger one for snapshots.
#![allow(dead_code)] // Each test file uses its own part.

pub(crate) mod bench;

use smbscope_diagnose::{Catalogue, Collector};
use smbscope_model::connection::{ConnectionEnd, ConnectionSummary, DirectionCounts};
use smbscope_model::{
    CaptureId, CaptureInfo, Command, CommandGroup, Dialect, Endpoints, Exchange, ExchangeOutcome, FlowId, Half, Nanos,
    PacketRef, Quality, ResponseStatus, Stamp, Subcommand, Timestamp,
};
use smbscope_report::{Explanation, Report};
use smbscope_stats::Aggregator;
use smbscope_wire::names::{Fsctl, InfoLevel, Trans2};
use smbscope_wire::status::NtStatus;
use smbscope_wire::{smb1, smb2};

/// 1997-08-11 09:30:00 UTC.
pub(crate) const START: i64 = 871_291_800_000_000_000;

pub(crate) fn endpoints(client: u8) -> Endpoints {
    Endpoints {
        client: format!("192.168.1.{client}:1{client:03}").parse().expect("a socket address"),
        server: "192.168.1.100:139".parse().expect("a socket address"),
    }
}

/// Returns a complete exchange: a fifth of the time is request, three fifths server, a fifth response.
pub(crate) fn exchange(command: Command, group: CommandGroup, start_ns: i64, response_time_ns: i64) -> Exchange {
    let stamp = |time, number| Some(Stamp { time: Timestamp(time), packet: PacketRef::new(CaptureId(0), number) });
    let fifth = response_time_ns / 5;
    let end = start_ns + response_time_ns;
    Exchange {
        endpoints: endpoints(1),
        command,
        group,
        status: Some(ResponseStatus::Nt(NtStatus::SUCCESS)),
        request: Half { first: stamp(start_ns, 1), last: stamp(start_ns + fifth, 2), packets: 1, bytes: 100 },
        response: Half { first: stamp(end - fifth, 3), last: stamp(end, 4), packets: 1, bytes: 200 },
        ..smbscope_testkit::exchange::read(0, 0)
    }
}

pub(crate) fn smb1_command(code: u8) -> Command {
    Command::Smb1(smb1::Smb1Command(code))
}

pub(crate) fn smb2_command(code: u16) -> Command {
    Command::Smb2(smb2::Smb2Command(code))
}

pub(crate) fn report(exchanges: &[Exchange], connections: Vec<ConnectionSummary>, quality: Quality) -> Report {
    let mut aggregator = Aggregator::new();
    for exchange in exchanges {
        aggregator.record(exchange);
        let connection = connections.iter().find(|connection| connection.endpoints == exchange.endpoints);
        let flow = connection.map_or(exchange.flow, |connection| connection.flow);
        aggregator.follow(&Exchange { flow, ..exchange.clone() }, true);
    }
    connections.iter().for_each(|connection| aggregator.closed(connection));
    let aggregate = aggregator.finish();
    let mut collector = Collector::default();
    exchanges.iter().for_each(|exchange| collector.exchange(exchange));
    let catalogue = Catalogue::default();
    let (first, last) = (aggregate.first, aggregate.last);
    let capture = CaptureInfo {
        name: "f630.snoop".into(),
        format: "snoop".into(),
        compression: Some("gzip".into()),
        packets: quality.packets,
        bytes: quality.captured_bytes,
        first,
        last,
        resolution_ns: 1_000,
        coarse_clock: None,
        clock_offset: None,
        snap_length: None,
        link_types: vec![1],
        truncated: None,
        warnings: Vec::new(),
    };
    let mut report = Report {
        captures: vec![capture],
        quality,
        connections,
        aggregate,
        first,
        last,
        version: "0.0.0".into(),
        explanation: Explanation { episodes: collector.episodes(), ..Explanation::default() },
        ..Report::default()
    };
    report.explanation.answer = report.diagnosed(&collector, &catalogue);
    report
}

pub(crate) fn connection(client: u8, dialect: Option<Dialect>) -> ConnectionSummary {
    ConnectionSummary {
        last: Timestamp(START + 10_000_000_000),
        dialect,
        end: ConnectionEnd::Closed,
        messages: 20,
        exchanges: 10,
        max_outstanding: 1,
        server_round_trip: Some(Nanos(150_000)),
        ..ConnectionSummary::new(FlowId(u64::from(client)), endpoints(client), Timestamp(START))
    }
}

/// Returns a report on ten SMB1 exchanges with known times. The tests derive the expected figures.
pub(crate) fn small() -> Report {
    let at = |second: i64| START + second * 1_000_000_000;
    let read = |second, ns| exchange(smb1_command(0x2e), CommandGroup::Read, at(second), ns);
    let find = |second, code, ns| Exchange {
        subcommand: Some(Subcommand::Trans2(Trans2(code))),
        ..exchange(smb1_command(0x32), CommandGroup::Directory, at(second), ns)
    };
    let mut exchanges = vec![
        read(0, 320_000),
        read(1, 1_000_000),
        read(2, 7_240_000),
        read(3, 9_999_999),
        find(4, 1, 2_000_000),
        find(5, 1, 4_000_000),
        find(6, 2, 12_000_000),
        exchange(smb1_command(0x24), CommandGroup::Locking, at(7), 500_000),
        exchange(smb1_command(0x1d), CommandGroup::Write, at(8), 23_250_000),
    ];
    exchanges[3].response.packets = 4;
    // Data block of the Write_Raw: 25 packets, never answered.
    let mut block = exchange(smb1_command(0x1d), CommandGroup::Write, at(8), 5_000_000);
    block.subcommand = Some(Subcommand::AsyncPortion);
    block.outcome = ExchangeOutcome::NoResponseByDesign;
    block.request.packets = 25;
    block.response = Half::default();
    exchanges.push(block);
    // A read whose response end is missing.
    let mut lost = read(9, 1_000_000);
    lost.outcome = ExchangeOutcome::ResponseEndMissing;
    lost.response.last = None;
    exchanges.push(lost);

    let mut connection = connection(1, Some(Dialect::NtLm012));
    connection.to_server = DirectionCounts {
        packets: 40,
        bytes: 30_000,
        message_packets: 10,
        continuation_packets: 26,
        pure_acks: 2,
        retransmitted: 1,
        ..Default::default()
    };
    connection.to_client = DirectionCounts {
        packets: 20,
        bytes: 9_000,
        message_packets: 10,
        continuation_packets: 3,
        pure_acks: 7,
        ..Default::default()
    };
    let quality = Quality {
        packets: 80,
        captured_bytes: 45_000,
        smb_flow_packets: 60,
        pure_acks: 9,
        unacknowledged_segments: 1,
        retransmitted_segments: 1,
        dropped_packets: 2,
        dropped_bytes: 2_920,
        capture_gaps: 1,
        response_end_missing: 1,
        ..Default::default()
    };
    let mut report = report(&exchanges, vec![connection], quality);
    report.title = Some("f630 - 80 clients".into());
    report
}

/// Returns an office workload over SMB 3.1.1 with one SMB1 client, errors, expected waits and a lossy capture.
pub(crate) fn office() -> Report {
    let mut exchanges = Vec::new();
    let mut state = 42u64;
    // Knuth's MMIX generator, for the same numbers on every machine.
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64
    };
    let mut at = START;
    let mut add = |command: Command, subcommand: Option<Subcommand>, group: CommandGroup, base: i64, n: usize| {
        for _ in 0..n {
            at += random() % 400_000_000;
            let scale = [1, 1, 1, 2, 3, 8][(random() % 6) as usize];
            let rare = if random() % 200 == 0 { 150 } else { 1 };
            let mut one = exchange(command, group, at, base * scale * rare + random() % base);
            one.subcommand = subcommand;
            one.share = Some("home".into());
            one.path = Some(format!("docs\\file{}.ini", random() % 40).into());
            one.user = Some("CORP\\ann".into());
            one.endpoints = endpoints((random() % 7 + 1) as u8);
            one.length = Some(4_096);
            one.response.packets = if group == CommandGroup::Read { (1 + random() % 5) as u32 } else { 1 };
            if group == CommandGroup::OpenClose && random() % 9 == 0 {
                one.status =
                    Some(ResponseStatus::Nt(NtStatus(if random() % 4 == 0 { 0xc000_0022 } else { 0xc000_0034 })));
            }
            if random() % 60 == 0 {
                one.outcome = ExchangeOutcome::ResponseNotCaptured;
                one.response = Half::default();
                one.status = None;
            }
            exchanges.push(one);
        }
    };
    let info = |level| Some(Subcommand::Info(level));
    add(smb2_command(5), None, CommandGroup::OpenClose, 310_000, 2_400);
    add(smb2_command(6), None, CommandGroup::OpenClose, 120_000, 2_300);
    add(smb2_command(8), None, CommandGroup::Read, 900_000, 1_500);
    add(smb2_command(8), None, CommandGroup::Waiting, 900_000_000, 12);
    add(smb2_command(9), None, CommandGroup::Write, 1_400_000, 700);
    add(smb2_command(14), info(InfoLevel::File(37)), CommandGroup::Directory, 2_100_000, 310);
    add(smb2_command(16), info(InfoLevel::File(18)), CommandGroup::Attributes, 140_000, 640);
    add(smb2_command(16), info(InfoLevel::FileSystem(3)), CommandGroup::Attributes, 110_000, 80);
    add(smb2_command(16), info(InfoLevel::Security), CommandGroup::Attributes, 160_000, 60);
    add(smb2_command(17), info(InfoLevel::File(20)), CommandGroup::Attributes, 150_000, 45);
    add(smb2_command(11), Some(Subcommand::Fsctl(Fsctl(0x0011_c017))), CommandGroup::Control, 400_000, 35);
    add(smb2_command(11), Some(Subcommand::Fsctl(Fsctl(0x0014_01fc))), CommandGroup::Control, 400_000, 7);
    add(smb2_command(15), None, CommandGroup::Waiting, 4_000_000_000, 9);
    add(smb2_command(1), None, CommandGroup::Session, 3_000_000, 14);
    add(smb2_command(0), None, CommandGroup::Session, 700_000, 7);
    add(smb1_command(0x2e), None, CommandGroup::Read, 700_000, 90);
    add(smb1_command(0xa2), None, CommandGroup::OpenClose, 500_000, 60);
    add(smb1_command(0x32), Some(Subcommand::Trans2(Trans2(5))), CommandGroup::Attributes, 300_000, 30);
    add(smb1_command(0x32), Some(Subcommand::Trans2(Trans2(1))), CommandGroup::Directory, 900_000, 12);
    let chain = [smb1::Smb1Command(0x75), smb1::Smb1Command::NO_ANDX, smb1::Smb1Command::NO_ANDX];
    add(smb1_command(0x73), Some(Subcommand::AndX(chain)), CommandGroup::Session, 2_000_000, 2);
    add(smb1_command(0xa4), None, CommandGroup::Waiting, 1_000, 1);
    if let Some(cancel) = exchanges.last_mut() {
        cancel.outcome = ExchangeOutcome::NoResponseByDesign;
    }

    let mut connections: Vec<ConnectionSummary> =
        (1..=6).map(|client| connection(client, Some(Dialect::Smb2(0x0311)))).collect();
    connections.push(connection(7, Some(Dialect::NtLm012)));
    connections.push(connection(8, None));
    for connection in &mut connections {
        connection.signing_required = connection.dialect == Some(Dialect::Smb2(0x0311));
        connection.signed_messages = if connection.signing_required { 18 } else { 0 };
        connection.to_server = DirectionCounts {
            packets: 1_900,
            message_packets: 1_050,
            continuation_packets: 500,
            pure_acks: 340,
            retransmitted: 6,
            ..Default::default()
        };
        connection.to_client = DirectionCounts {
            packets: 2_300,
            message_packets: 1_040,
            continuation_packets: 900,
            pure_acks: 350,
            retransmitted: 3,
            ..Default::default()
        };
    }
    let lost =
        exchanges.iter().filter(|exchange| exchange.outcome == ExchangeOutcome::ResponseNotCaptured).count() as u64;
    let quality = Quality {
        packets: 34_120,
        captured_bytes: 21_000_000,
        smb_flow_packets: 33_600,
        pure_acks: 5_520,
        unacknowledged_segments: 3,
        retransmitted_segments: 72,
        dropped_packets: 260,
        capture_gaps: 190,
        midstream_flows: 1,
        responses_not_captured: lost,
        ..Default::default()
    };
    report(&exchanges, connections, quality)
}
