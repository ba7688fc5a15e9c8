//! Throughput of exchanges into the report's tables.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use smbscope_model::exchange::{Endpoints, Half};
use smbscope_model::{Command, CommandGroup, Exchange, FlowId, PacketRef, Stamp, Timestamp};
use smbscope_stats::filter::Filter;
use smbscope_stats::{Aggregator, Dimension, Slicer};
use smbscope_wire::smb2;
use std::net::SocketAddr;
use std::sync::Arc;

const EXCHANGES: u64 = 10_000;

/// Returns exchange number `index` of a capture with 50 clients, each with a user and 20 files.
fn exchange(index: u64, shares: &[Arc<str>], users: &[Arc<str>], paths: &[Arc<str>]) -> Exchange {
    const COMMANDS: [(smb2::Smb2Command, CommandGroup); 4] = [
        (smb2::Smb2Command::READ, CommandGroup::Read),
        (smb2::Smb2Command::WRITE, CommandGroup::Write),
        (smb2::Smb2Command::CREATE, CommandGroup::OpenClose),
        (smb2::Smb2Command::CLOSE, CommandGroup::OpenClose),
    ];
    let client = index as usize % users.len();
    let at = |us: u64| Some(Stamp { time: Timestamp((index * 50 + us) as i64 * 1000), packet: PacketRef::default() });
    let half = |first, last| Half { first: at(first), last: at(last), packets: 2, bytes: 4200 };
    let (command, group) = COMMANDS[index as usize / 7 % COMMANDS.len()];
    Exchange {
        flow: FlowId(client as u64),
        endpoints: Endpoints {
            client: SocketAddr::from(([10, 0, 0, client as u8], 50_000)),
            server: SocketAddr::from(([10, 250, 0, 1], 445)),
        },
        command: Command::Smb2(command),
        group,
        message_id: Some(index),
        session_id: Some(client as u64),
        tree_id: Some(5),
        user: users.get(client).cloned(),
        share: shares.first().cloned(),
        path: paths.get(index as usize / 3 % paths.len()).cloned(),
        request: half(0, index % 9),
        response: half(40 + index % 977, 45 + index % 1201),
        offset: Some(index * 4096),
        length: Some(4096),
        ..smbscope_testkit::exchange::read(0, 0)
    }
}

fn record(criterion: &mut Criterion) {
    let names = |prefix: &str, count: u32| -> Vec<Arc<str>> {
        (0..count).map(|number| Arc::from(format!("{prefix}{number}"))).collect()
    };
    let (shares, users, paths) = (names("share", 1), names("OFFICE\\user", 50), names("project\\report ", 1000));
    let exchanges: Vec<Exchange> = (0..EXCHANGES).map(|index| exchange(index, &shares, &users, &paths)).collect();
    let mut group = criterion.benchmark_group("aggregator");
    group.throughput(Throughput::Elements(EXCHANGES));
    group.bench_function("record", |bencher| {
        // Fills every table first, as in the middle of a long capture.
        let mut aggregator = Aggregator::new();
        bencher.iter(|| exchanges.iter().for_each(|exchange| aggregator.record(exchange)));
    });
    for (name, expression) in [
        ("filter by numbers", "response_time > 500us and client in 10.0.0.0/27"),
        ("filter by names", "command in (READ, WRITE) or status == ACCESS_DENIED"),
        ("filter by pattern", "path ~ *report*7*"),
    ] {
        let filter: Filter = expression.parse().expect("the expression is right");
        let mut matcher = filter.matcher(&[]);
        let mut matches = |exchange| matcher.matches(exchange, Timestamp(0));
        group.bench_function(name, |bencher| bencher.iter(|| exchanges.iter().filter(|one| matches(one)).count()));
    }
    for (name, by) in [("slices by client", Dimension::Client), ("slices by file", Dimension::File)] {
        let mut slicer = Slicer::new(&[by]);
        group.bench_function(name, |bencher| {
            bencher.iter(|| exchanges.iter().for_each(|exchange| slicer.record(exchange)));
        });
    }
    group.finish();
}

criterion_group!(benches, record);
criterion_main!(benches);
