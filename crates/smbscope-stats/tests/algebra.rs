//! Statistics merge: for any division of the connections, any order of merges, and with or without serialization on the
//! way, the result is the same as from a single aggregator.

use proptest::prelude::*;
use proptest::test_runner::TestRng;
use smbscope_model::{
    Command, CommandGroup, ConnectionSummary, Exchange, ExchangeOutcome, FlowId, GrantedCaching, ResponseStatus,
    Subcommand, Timestamp,
};
use smbscope_stats::{Aggregate, Aggregator, BINS_MAX, ENTITIES_MAX, LEAVES_MAX, SLOWEST_MAX, STATUSES_MAX};
use smbscope_testkit::exchange::read;
use smbscope_wire::names::Fsctl;
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;

const SECOND: i64 = 1_000_000_000;

/// Records the exchanges of the selected connections in order of completion.
fn record(aggregator: &mut Aggregator, exchanges: &[Exchange], belongs: impl Fn(FlowId) -> bool) {
    let mut open: Vec<ConnectionSummary> = Vec::new();
    for exchange in exchanges.iter().filter(|exchange| belongs(exchange.flow)) {
        aggregator.follow(exchange, true);
        aggregator.record(exchange);
        let first = exchange.start().expect("it has packets");
        let last = exchange.response.last.map_or(first, |stamp| stamp.time);
        match open.iter_mut().find(|connection| connection.flow == exchange.flow) {
            Some(connection) => {
                (connection.first, connection.last) = (connection.first.min(first), connection.last.max(last));
            }
            None => open
                .push(ConnectionSummary { last, ..ConnectionSummary::new(exchange.flow, exchange.endpoints, first) }),
        }
    }
    open.iter().for_each(|connection| aggregator.closed(connection));
}

fn whole(exchanges: &[Exchange]) -> Aggregate {
    let mut aggregator = Aggregator::new();
    record(&mut aggregator, exchanges, |_| true);
    aggregator.finish()
}

fn parts(exchanges: &[Exchange], count: u64) -> Vec<Aggregator> {
    let part = |wanted| {
        let mut part = Aggregator::new();
        record(&mut part, exchanges, |flow| flow.0 % count == wanted);
        part
    };
    (0..count).map(part).collect()
}

/// Merges any two of the parts until one is left. Serializes each of them before.
fn merged(mut parts: Vec<Aggregator>, rng: &mut TestRng) -> Aggregate {
    while parts.len() > 1 {
        let theirs = parts.swap_remove(rng.random_range(0..parts.len()));
        let mine = rng.random_range(0..parts.len());
        assert!(theirs.is_settled());
        let bytes = postcard::to_stdvec(&theirs).expect("it can be written");
        parts[mine].merge(postcard::from_bytes(&bytes).expect("it can be read"));
    }
    parts.remove(0).finish()
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let kind = prop::sample::select(vec![
        (8u16, None, CommandGroup::Read),
        (9, None, CommandGroup::Write),
        (5, None, CommandGroup::OpenClose),
        (11, Some(Subcommand::Fsctl(Fsctl(0x0011_c017))), CommandGroup::Control),
        (15, None, CommandGroup::Waiting),
        (18, Some(Subcommand::ServerInitiated), CommandGroup::Waiting),
    ]);
    let outcome = prop::sample::select(ExchangeOutcome::ALL.to_vec());
    let caching = prop::option::of(prop::sample::select(GrantedCaching::ALL.to_vec()));
    (kind, outcome, caching, 1u64..9, 0i64..20_000, 0i64..5 * SECOND, 0u8..5, prop::option::of(0u32..4)).prop_map(
        |((command, subcommand, group), outcome, caching, flow, tenth, time, name, status)| {
            let mut exchange = Exchange {
                flow: FlowId(flow),
                command: Command::Smb2(smb2::Smb2Command(command)),
                subcommand,
                group,
                outcome,
                caching,
                repeated: name == 0,
                share: Some(format!("share{}", name % 2).into()),
                path: (name < 4).then(|| format!("file{name}").into()),
                user: Some(format!("user{name}").into()),
                status: status.map(|code| ResponseStatus::Nt(NtStatus(0xc000_0001 + code))),
                ..read(tenth * SECOND / 10, time)
            };
            exchange.endpoints.client.set_port(50_000 + flow as u16);
            exchange
        },
    )
}

proptest! {
    #[test]
    fn parts_of_any_traffic_merge_to_the_whole_in_any_order_and_grouping(
        mut exchanges in prop::collection::vec(exchange(), 0..120), count in 1u64..7, mut rng in any::<u64>().prop_perturb(|_, rng| rng)
    ) {
        exchanges.sort_by_key(|exchange| exchange.response.last.map(|stamp| stamp.time));
        prop_assert_eq!(merged(parts(&exchanges, count), &mut rng), whole(&exchanges));
    }
}

/// More of everything than a table keeps.
fn beyond_all_bounds() -> Vec<Exchange> {
    let exchange = |n: usize| {
        let mut exchange = Exchange {
            flow: FlowId(n as u64 % 97),
            command: Command::Smb2(smb2::Smb2Command(11)),
            // Half of them are of one kind, so that its times make a histogram in every part.
            subcommand: Some(Subcommand::Fsctl(Fsctl(if n.is_multiple_of(2) {
                0
            } else {
                (n % (2 * LEAVES_MAX)) as u32
            }))),
            group: if n.is_multiple_of(2) { CommandGroup::Read } else { CommandGroup::ALL[n % 8] },
            status: Some(ResponseStatus::Nt(NtStatus(0xc000_0000 + (n % (2 * STATUSES_MAX)) as u32))),
            share: Some(format!("share{}", n % 11).into()),
            // Some names are long, because their total length is bounded as well.
            path: Some(format!("{n}{}", "x".repeat(if n.is_multiple_of(10) { 9_000 } else { 20 })).into()),
            user: Some(format!("user{}", n * 7 % (2 * ENTITIES_MAX)).into()),
            caching: Some(GrantedCaching::ALL[n % GrantedCaching::ALL.len()]),
            repeated: n.is_multiple_of(3),
            ..read(n as i64 * 7 * SECOND + (n * n) as i64 % SECOND, (n as i64 * 7_919 % 90_000) * 10_000)
        };
        exchange.endpoints.client.set_port(10_000 + (n % 97) as u16);
        exchange
    };
    let mut exchanges: Vec<Exchange> = (0..50_000).map(exchange).collect();
    exchanges.sort_by_key(|exchange| exchange.response.last.map(|stamp| stamp.time));
    exchanges
}

#[test]
fn parts_merge_to_the_whole_where_every_table_is_full() {
    let exchanges = beyond_all_bounds();
    let whole = whole(&exchanges);
    // Without full tables this test would prove nothing.
    assert!(whole.folded > 0 && whole.slowest.len() == SLOWEST_MAX && whole.timeline.bins.len() > BINS_MAX / 2);
    assert!(whole.files.other.is_some() && whole.users.other.is_some() && whole.files.entries.len() < ENTITIES_MAX);
    assert!(whole.total.errors.contains_key("(other)") && whole.total.response_time.approximate);
    let mut rng = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    for count in [2, 3] {
        assert!(merged(parts(&exchanges, count), &mut rng) == whole, "{count} parts");
    }
}

#[test]
fn an_aggregator_with_a_connection_that_is_not_over_is_not_settled() {
    let mut aggregator = Aggregator::new();
    aggregator.follow(&read(0, 100), true);
    assert!(!aggregator.is_settled());
    let Exchange { flow, endpoints, .. } = read(0, 100);
    aggregator.closed(&ConnectionSummary::new(flow, endpoints, Timestamp(0)));
    assert!(aggregator.is_settled());
}
