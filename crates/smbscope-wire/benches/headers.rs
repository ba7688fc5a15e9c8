//! Benchmarks of parsing SMB headers and requests.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use smbscope_testkit::{smb1 as make1, smb2 as make2};
use smbscope_wire::{smb1, smb2};
use std::hint::black_box;

fn smb1_messages(criterion: &mut Criterion) {
    let messages: [Vec<u8>; 3] = [
        make1::nt_create(64, "\\clients\\client1\\~dmtmp\\WORD\\NEWS1.DOC").into(),
        make1::read_andx(128, 0x4001, 65_536, 4096).into(),
        make1::write_andx(192, 0x4001, 65_536, &[0; 4096]).into(),
    ];
    let mut group = criterion.benchmark_group("smb1");
    group.throughput(Throughput::Elements(messages.len() as u64));
    group.bench_function("header", |bencher| {
        bencher.iter(|| {
            for message in &messages {
                black_box(smb1::Smb1Header::parse(black_box(message)));
            }
        });
    });
    group.bench_function("header and request", |bencher| {
        bencher.iter(|| {
            for message in &messages {
                let Some(header) = smb1::Smb1Header::parse(black_box(message)) else { continue };
                for block in smb1::blocks(&header, message) {
                    black_box(smb1::Smb1Request::parse(&header, &block, message));
                }
            }
        });
    });
    group.finish();
}

fn smb2_messages(criterion: &mut Criterion) {
    let messages: [Vec<u8>; 3] = [
        make2::create(1, "users\\user1\\project 7\\report 12.docx").into(),
        make2::read(2, 7, 1 << 20, 1 << 20).into(),
        make2::write(3, 7, 1 << 20, &[0; 4096]).into(),
    ];
    let mut group = criterion.benchmark_group("smb2");
    group.throughput(Throughput::Elements(messages.len() as u64));
    group.bench_function("header", |bencher| {
        bencher.iter(|| {
            for message in &messages {
                black_box(smb2::Smb2Header::parse(black_box(message)));
            }
        });
    });
    group.bench_function("header and request", |bencher| {
        bencher.iter(|| {
            for message in &messages {
                let Some(header) = smb2::Smb2Header::parse(black_box(message)) else { continue };
                black_box(smb2::Smb2Request::parse(header.command, message));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, smb1_messages, smb2_messages);
criterion_main!(benches);
