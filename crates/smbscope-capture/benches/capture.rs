//! Per-packet costs: reading records of a mapped file, decoding headers, following flows.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use smbscope_capture::decode::Decoder;
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_capture::tcp::{FlowEnd, FlowTable, FlowView, Retransmission, StreamChunk, StreamGap, StreamSink};
use smbscope_capture::{Packet, TcpSegment};
use smbscope_model::{FlowDirection, PacketRef, Quality, Stamp};
use smbscope_testkit::traffic::{Limit, Mix, Settings, generate, packets};
use std::fs::File;
use std::hint::black_box;

/// Fits in the CPU cache, so that the benchmark measures code and not memory.
const PACKETS: u64 = 4_000;

/// Discards all events.
struct Nothing;

impl StreamSink for Nothing {
    type Flow = ();

    fn opened(&mut self, _: &FlowView) {}

    fn data(&mut self, (): &mut (), _: &FlowView, _: FlowDirection, chunk: &StreamChunk<'_>) {
        black_box(chunk);
    }

    fn gap(&mut self, (): &mut (), _: &FlowView, _: FlowDirection, _: &StreamGap) {}

    fn retransmitted(&mut self, (): &mut (), _: &FlowView, _: FlowDirection, _: &Retransmission) {}

    fn closed(&mut self, (): (), _: &FlowView, _: FlowEnd) {}
}

fn settings(flows: u32) -> Settings {
    Settings::new(Mix::Office, flows, Limit::Packets(PACKETS))
}

fn reader(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory for temporary files");
    let path = directory.path().join("office.pcap");
    generate(&settings(100), File::create(&path).expect("a new file")).expect("room for a few megabytes");
    let inputs = [CaptureInput::from_argument(path)];
    let mut group = criterion.benchmark_group("reader");
    group.throughput(Throughput::Elements(PACKETS));
    group.bench_function("open and every packet", |bencher| {
        bencher.iter(|| {
            let mut set = CaptureSet::open(&inputs).expect("a capture");
            while let Ok(Some(packet)) = set.next_packet() {
                black_box(packet);
            }
        });
    });
    group.finish();
}

fn decode(criterion: &mut Criterion) {
    let packets = packets(&settings(100));
    let frames: Vec<Vec<u8>> = packets.iter().map(smbscope_testkit::Packet::ethernet).collect();
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(PACKETS));
    group.bench_function("Ethernet, IPv4, TCP", |bencher| {
        let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
        bencher.iter(|| {
            for (packet, data) in packets.iter().zip(&frames) {
                let stamp = Stamp { time: packet.time, packet: PacketRef::default() };
                let packet = Packet { stamp, link_type: 1, data, wire_length: data.len() as u32, process: None };
                black_box(decoder.decode(&packet, &mut quality));
            }
        });
    });
    group.finish();
}

fn flows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("flows");
    group.throughput(Throughput::Elements(PACKETS));
    for flows in [1, 100, 1000] {
        let packets = packets(&settings(flows));
        let segments: Vec<TcpSegment<'_>> =
            packets.iter().enumerate().map(|(index, packet)| packet.segment(index + 1)).collect();
        group.bench_function(format!("segments of {flows}"), |bencher| {
            bencher.iter_batched_ref(
                || FlowTable::new(Nothing),
                |table| segments.iter().for_each(|segment| table.segment(segment)),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, reader, decode, flows);
criterion_main!(benches);
