//! Throughput from segments to exchanges: stream order, framing, parsing, matching.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use smbscope_analyze::{Analyzer, AnalyzerOptions};
use smbscope_capture::TcpSegment;
use smbscope_capture::tcp::FlowTable;
use smbscope_model::Exchange;
use smbscope_testkit::traffic::{Limit, Mix, Settings, packets};
use std::hint::black_box;

/// Fits in the CPU cache, so that the benchmark measures code and not memory.
const PACKETS: u64 = 4_000;

fn exchanges(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("analyzer");
    group.throughput(Throughput::Elements(PACKETS));
    for (name, mix) in [("netbench", Mix::NetBench), ("office", Mix::Office), ("bulk", Mix::Bulk)] {
        let packets = packets(&Settings::new(mix, 10, Limit::Packets(PACKETS)));
        let segments: Vec<TcpSegment<'_>> =
            packets.iter().enumerate().map(|(index, packet)| packet.segment(index + 1)).collect();
        group.bench_function(name, |bencher| {
            let sink = |exchange: Exchange| {
                black_box(exchange);
            };
            bencher.iter_batched_ref(
                || FlowTable::new(Analyzer::new(AnalyzerOptions::default(), sink)),
                |table| segments.iter().for_each(|segment| table.segment(segment)),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, exchanges);
criterion_main!(benches);
