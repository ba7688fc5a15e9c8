//! Answers and episodes do not depend on how connections are distributed over collectors, on the merge order, or on
//! whether parts were serialized.

use proptest::prelude::*;
use proptest::test_runner::TestRng;
use smbscope_diagnose::{Answer, Catalogue, Collector, Culprit, DiagnosisContext, Episode, Slow, answer};
use smbscope_model::{
    Command, CommandGroup, ConnectAttempts, ConnectionSummary, Exchange, ExchangeOutcome, FlowId, Nanos, PacketRef,
    Quality, ResponseStatus, Stamp, UntimedShare,
};
use smbscope_stats::Aggregator;
use smbscope_testkit::exchange::read;
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;

const MS: i64 = 1_000_000;

/// Command, its group, and its duration in ms.
const KINDS: [(smb2::Smb2Command, CommandGroup, i64); 8] = [
    (smb2::Smb2Command::CREATE, CommandGroup::OpenClose, 3),
    (smb2::Smb2Command::CLOSE, CommandGroup::OpenClose, 1),
    (smb2::Smb2Command::READ, CommandGroup::Read, 40),
    (smb2::Smb2Command::WRITE, CommandGroup::Write, 41),
    (smb2::Smb2Command::FLUSH, CommandGroup::Write, 200),
    (smb2::Smb2Command::QUERY_DIRECTORY, CommandGroup::Directory, 20),
    (smb2::Smb2Command::QUERY_INFO, CommandGroup::Attributes, 2),
    (smb2::Smb2Command::CHANGE_NOTIFY, CommandGroup::Waiting, 500),
];

fn exchange() -> impl Strategy<Value = Exchange> {
    (0..KINDS.len(), 1u64..9, 0i64..200_000, 0i64..300, 0u8..6, 0u8..4).prop_map(
        |(kind, flow, start, more, name, status)| {
            let (command, group, took) = KINDS[kind];
            let mut exchange = Exchange {
                flow: FlowId(flow),
                command: Command::Smb2(command),
                group,
                share: Some("data".into()),
                path: Some(["a.ini", "b.docx", "c.exe", "d.dll", "dir", "dir\\e"][usize::from(name)].into()),
                status: Some(ResponseStatus::Nt(NtStatus([0, 0, 0x8000_0006, 0xc000_0034][usize::from(status)]))),
                length: Some(u64::from(name) * 16_384),
                think_time: Some(Nanos(more * MS)),
                outcome: if more == 0 { ExchangeOutcome::Unanswered } else { ExchangeOutcome::Complete },
                ..read(start * MS, (took + more) * MS)
            };
            exchange.endpoints.client = ([10, 0, 0, 1 + (flow % 3) as u8], 50_000 + flow as u16).into();
            exchange
        },
    )
}

/// Sorts exchanges by their end and numbers their packets.
fn in_order(mut exchanges: Vec<Exchange>) -> Vec<Exchange> {
    exchanges.sort_by_key(|exchange| exchange.response.last.map(|stamp| stamp.time));
    for (exchange, number) in exchanges.iter_mut().zip((1..).step_by(2)) {
        let numbered = |stamp: Option<Stamp>, number| {
            stamp.map(|stamp| Stamp { packet: PacketRef::new(stamp.packet.capture(), number), ..stamp })
        };
        let (request, response) = (&mut exchange.request, &mut exchange.response);
        (request.first, request.last) = (numbered(request.first, number), numbered(request.last, number));
        (response.first, response.last) = (numbered(response.first, number + 1), numbered(response.last, number + 1));
    }
    exchanges
}

fn connections(exchanges: &[Exchange]) -> Vec<ConnectionSummary> {
    let mut connections: Vec<ConnectionSummary> = Vec::new();
    for exchange in exchanges {
        let (first, last) = (exchange.request.first.unwrap().time, exchange.response.last.unwrap().time);
        match connections.iter_mut().find(|connection| connection.flow == exchange.flow) {
            Some(known) => (known.first, known.last) = (known.first.min(first), known.last.max(last)),
            None => connections
                .push(ConnectionSummary { last, ..ConnectionSummary::new(exchange.flow, exchange.endpoints, first) }),
        }
    }
    connections.sort_by_key(|connection| connection.flow);
    connections
}

type Both = (Collector, Aggregator);

fn of(exchanges: &[Exchange], belongs: impl Fn(FlowId) -> bool) -> Both {
    let (mut collector, mut aggregator) = (Collector::default(), Aggregator::new());
    for exchange in exchanges.iter().filter(|exchange| belongs(exchange.flow)) {
        aggregator.follow(exchange, true);
        aggregator.record(exchange);
        collector.exchange(exchange);
    }
    for connection in connections(exchanges).iter().filter(|connection| belongs(connection.flow)) {
        aggregator.closed(connection);
        collector.closed(connection);
    }
    (collector, aggregator)
}

fn told((collector, aggregator): &Both, exchanges: &[Exchange]) -> (Answer, Vec<Episode>) {
    let (catalogue, aggregate, connections) = (Catalogue::default(), aggregator.finish(), connections(exchanges));
    // Every cost counts.
    let slow: Slow = "wait=1ms,each=1us,share=1%".parse().expect("it is one");
    let context = DiagnosisContext {
        catalogue: &catalogue,
        slow: &slow,
        aggregate: &aggregate,
        connections: &connections,
        attempts: &ConnectAttempts::default(),
        quality: &Quality::default(),
        not_timed: UntimedShare::default(),
        captures: &[],
        last: exchanges.iter().filter_map(|exchange| exchange.response.last).map(|stamp| stamp.time).max(),
        filter: None,
        sides: None,
    };
    (answer(collector, &context), collector.episodes())
}

/// Checks that headline, causes and ruled-out causes agree.
fn assert_consistent(answer: &Answer) {
    let Answer { culprit, headline, causes, ruled_out, .. } = answer;
    assert!(headline.starts_with(culprit.title()), "{culprit:?}: {headline}");
    if *culprit == Culprit::Nothing {
        assert!(causes.is_empty(), "{headline}: {causes:?}");
    }
    if let Some(first) = answer.stated() {
        assert!(headline.contains(&first.sentence), "{headline}");
        assert_eq!(first.culprit, *culprit);
    }
    for cause in causes {
        if let Some(lost) = cause.lost_ns {
            assert!(lost.low <= lost.best && lost.best <= lost.high && lost.low.0 >= 0, "{cause:?}");
            assert!(cause.active_ns.0 == 0 || lost.high <= cause.active_ns, "{cause:?}");
        }
        assert!(cause.share.is_none_or(|share| (0.0..=1.0).contains(&share)), "{cause:?}");
        for said in ruled_out {
            assert!(!said.starts_with(cause.culprit.title()), "{said} beside {cause:?}");
            assert!(!(said.starts_with("Packet loss") && cause.id == "network-loss"), "{said}");
        }
    }
}

/// Merges random pairs until one is left, serializing one of each pair first.
fn merged(mut parts: Vec<Both>, rng: &mut TestRng) -> Both {
    while parts.len() > 1 {
        let theirs = parts.swap_remove(rng.random_range(0..parts.len()));
        let mine = rng.random_range(0..parts.len());
        assert!(theirs.0.is_settled());
        let bytes = postcard::to_stdvec(&theirs).expect("it can be written");
        let theirs: Both = postcard::from_bytes(&bytes).expect("it can be read");
        parts[mine].0.merge(theirs.0);
        parts[mine].1.merge(theirs.1);
    }
    parts.remove(0)
}

proptest! {
    #[test]
    fn parts_of_any_traffic_merge_to_the_whole_in_any_order_and_grouping(
        exchanges in prop::collection::vec(exchange(), 0..250), count in 1u64..6, mut rng in any::<u64>().prop_perturb(|_, rng| rng)
    ) {
        let exchanges = in_order(exchanges);
        let parts: Vec<Both> = (0..count).map(|part| of(&exchanges, |flow| flow.0 % count == part)).collect();
        let whole = told(&of(&exchanges, |_| true), &exchanges);
        assert_consistent(&whole.0);
        prop_assert_eq!(told(&merged(parts, &mut rng), &exchanges), whole);
    }
}

/// Thousands of files opened repeatedly, with more bytes of names than are kept.
#[test]
fn parts_merge_to_the_whole_where_paths_are_too_many() {
    let open = |n: u64| {
        let mut open = Exchange {
            flow: FlowId(n % 7),
            command: Command::Smb2(smb2::Smb2Command::CREATE),
            group: CommandGroup::OpenClose,
            path: Some(format!("dir\\{:04}{}.ini", n / 20, "x".repeat(1_000)).into()),
            ..read(n as i64 * 50 * MS, 30 * MS)
        };
        open.endpoints.client = ([10, 0, 0, (n % 7) as u8], 50_000).into();
        open
    };
    let exchanges = in_order((0..100_000).map(open).collect());
    let whole = told(&of(&exchanges, |_| true), &exchanges);
    assert_ne!(whole.0.culprit, Culprit::Nothing, "opens take 30 ms each");
    let mut rng = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    let parts = (0..3).map(|part| of(&exchanges, |flow| flow.0 % 3 == part)).collect();
    assert!(told(&merged(parts, &mut rng), &exchanges) == whole);
}
