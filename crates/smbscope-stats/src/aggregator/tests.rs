use super::*;
use proptest::prelude::*;
use smbscope_model::Nanos;
use smbscope_testkit::exchange::read;
use smbscope_wire::names::{Fsctl, Trans2};
use smbscope_wire::{smb1, smb2};

fn aggregate<'a>(exchanges: impl IntoIterator<Item = &'a Exchange>) -> Aggregate {
    let mut aggregator = Aggregator::new();
    exchanges.into_iter().for_each(|exchange| aggregator.record(exchange));
    aggregator.finish()
}

fn with(command: Command, subcommand: Option<Subcommand>, group: CommandGroup, response_time_ns: i64) -> Exchange {
    Exchange { command, subcommand, group, ..read(0, response_time_ns) }
}

const WRITE_RAW: Command = Command::Smb1(smb1::Smb1Command(0x1d));
const TRANSACTION2: Command = Command::Smb1(smb1::Smb1Command(0x32));
const SMB2_READ: Command = Command::Smb2(smb2::Smb2Command(8));
const NOTIFY: Command = Command::Smb2(smb2::Smb2Command(15));

#[test]
fn groups_add_up_to_the_total_and_waits_stay_out_of_it() {
    let exchanges = [
        with(SMB2_READ, None, CommandGroup::Read, 100),
        with(TRANSACTION2, None, CommandGroup::Attributes, 200),
        with(TRANSACTION2, None, CommandGroup::Directory, 400),
        with(NOTIFY, None, CommandGroup::Waiting, 5_000_000_000),
        with(Command::EncryptedFrame, None, CommandGroup::Encrypted, 800),
    ];
    let aggregate = aggregate(&exchanges);
    // Headline: 100 + 200 + 400; Other: 200 + 400.
    let sum = |row: &crate::CommandStatistics| row.response_time.sum_ns;
    assert_eq!((aggregate.count, aggregate.total.count, sum(&aggregate.total)), (5, 3, 700));
    assert_eq!(aggregate.other.as_ref().map(|other| sum(&other.row)), Some(600));
    let groups: Vec<_> = aggregate.groups.iter().map(|g| (g.group.name(), sum(&g.row))).collect();
    let expected =
        [("Attributes", 200), ("Directory", 400), ("Read", 100), ("Waiting", 5_000_000_000), ("Encrypted", 800)];
    assert_eq!(groups, expected);
    assert_eq!(aggregate.total.response_time.max, Some(Nanos(400)));
}

#[test]
fn subcommands_stand_below_their_command_and_add_up_to_it() {
    let find_first = Some(Subcommand::Trans2(Trans2(1)));
    let find_next = Some(Subcommand::Trans2(Trans2(2)));
    let aggregate = aggregate(&[
        with(TRANSACTION2, find_first, CommandGroup::Directory, 100),
        with(TRANSACTION2, find_next, CommandGroup::Directory, 200),
        with(TRANSACTION2, find_next, CommandGroup::Directory, 300),
    ]);
    let command = &aggregate.commands[0];
    let parts: Vec<_> = command.subcommands.iter().map(|s| (Some(s.subcommand), s.row.count)).collect();
    assert_eq!((command.row.count, parts), (3, vec![(find_first, 1), (find_next, 2)]));
}

#[test]
fn the_async_portion_of_write_raw_stands_apart() {
    let mut block = with(WRITE_RAW, Some(Subcommand::AsyncPortion), CommandGroup::Write, 0);
    block.outcome = ExchangeOutcome::NoResponseByDesign;
    (block.request.packets, block.response.packets) = (25, 0);
    let aggregate = aggregate(&[with(WRITE_RAW, None, CommandGroup::Write, 6_990_000), block]);
    let command = &aggregate.commands[0];
    assert_eq!((aggregate.count, aggregate.groups[0].row.count, command.row.count), (1, 1, 1));
    let apart = &command.apart[0];
    assert_eq!((apart.subcommand, apart.row.count), (Subcommand::AsyncPortion, 1));
    assert_eq!(apart.row.average_packets, Some(25.0));
    // Its bytes still crossed the wire.
    assert_eq!(aggregate.timeline.bins[0].1.request_bytes, 200);
    assert_eq!(aggregate.timeline.bins[0].1.commands, 1);
}

#[test]
fn what_the_server_sends_unasked_is_no_command() {
    let mut lease_break = with(Command::Smb2(smb2::Smb2Command(18)), None, CommandGroup::Waiting, 0);
    lease_break.outcome = ExchangeOutcome::ServerInitiated;
    let aggregate = aggregate(&[lease_break]);
    let command = &aggregate.commands[0];
    assert_eq!((aggregate.count, command.row.count, command.apart[0].row.count), (0, 0, 1));
    assert!(aggregate.clients.entries.is_empty());
}

#[test]
fn waits_of_a_command_have_a_row_of_their_own() {
    let aggregate = aggregate(&[
        with(SMB2_READ, None, CommandGroup::Read, 100),
        with(SMB2_READ, None, CommandGroup::Waiting, 9_000_000_000),
    ]);
    let rows: Vec<_> = aggregate.commands.iter().map(|c| (c.waiting, c.row.response_time.max)).collect();
    assert_eq!(rows, [(false, Some(Nanos(100))), (true, Some(Nanos(9_000_000_000)))]);
}

#[test]
fn names_that_are_unknown_stay_out_of_the_tables() {
    let mut named = read(0, 100);
    named.share = Some("data".into());
    named.path = Some("a\\b.txt".into());
    named.user = Some("CORP\\ann".into());
    let aggregate = aggregate(&[named, read(0, 200)]);
    let counts = (aggregate.shares.entries.len(), aggregate.files.entries.len(), aggregate.users.entries.len());
    assert_eq!(counts, (1, 1, 1));
    assert_eq!(aggregate.clients.entries[0].1.count, 2);
}

#[test]
fn too_many_different_commands_are_counted_in_their_group() {
    let ioctl = Command::Smb2(smb2::Smb2Command(11));
    let codes = 0..LEAVES_MAX as u32 + 50;
    let exchanges: Vec<_> =
        codes.map(|code| with(ioctl, Some(Subcommand::Fsctl(Fsctl(code))), CommandGroup::Control, 100)).collect();
    let aggregate = aggregate(&exchanges);
    assert_eq!((aggregate.count, aggregate.groups[0].row.count, aggregate.folded), (2_098, 2_098, 50));
    assert_eq!(aggregate.commands[0].subcommands.len(), LEAVES_MAX);
}

#[test]
fn nothing_recorded_gives_an_empty_aggregate() {
    let aggregate = aggregate([]);
    assert_eq!((aggregate.count, aggregate.elapsed()), (0, None));
    assert!(aggregate.commands.is_empty() && aggregate.groups.is_empty() && aggregate.timeline.bins.is_empty());
}

fn arbitrary_exchange() -> impl Strategy<Value = Exchange> {
    let command = prop::sample::select(vec![
        (SMB2_READ, None, CommandGroup::Read),
        (TRANSACTION2, Some(Subcommand::Trans2(Trans2(1))), CommandGroup::Directory),
        (TRANSACTION2, Some(Subcommand::Trans2(Trans2(5))), CommandGroup::Attributes),
        (NOTIFY, None, CommandGroup::Waiting),
        (WRITE_RAW, Some(Subcommand::AsyncPortion), CommandGroup::Write),
    ]);
    let outcome = prop::sample::select(ExchangeOutcome::ALL.to_vec());
    (command, outcome, 0i64..10_000, 0i64..5_000_000_000, 0u8..4, prop::option::of(0u32..4)).prop_map(
        |((command, subcommand, group), outcome, second, time, name, status)| Exchange {
            command,
            subcommand,
            group,
            outcome,
            share: Some(format!("share{name}").into()),
            path: Some(format!("file{name}").into()),
            status: status
                .map(|code| smbscope_model::ResponseStatus::Nt(smbscope_wire::status::NtStatus(0xc000_0001 + code))),
            ..read(second * 1_000_000_000, time)
        },
    )
}

proptest! {
    #[test]
    fn aggregators_of_any_partition_merge_to_the_whole(
        exchanges in prop::collection::vec((arbitrary_exchange(), any::<bool>()), 0..60)
    ) {
        let whole = aggregate(exchanges.iter().map(|(exchange, _)| exchange));
        let mut parts = [Aggregator::new(), Aggregator::new()];
        for (exchange, part) in &exchanges {
            parts[usize::from(*part)].record(exchange);
        }
        let [left, right] = parts;
        let mut forward = left.clone();
        forward.merge(right.clone());
        let mut backward = right;
        backward.merge(left);
        prop_assert_eq!(&forward.finish(), &whole);
        prop_assert_eq!(&backward.finish(), &whole);
    }

    #[test]
    fn commands_and_groups_count_the_same_exchanges(
        exchanges in prop::collection::vec(arbitrary_exchange(), 0..60)
    ) {
        let aggregate = aggregate(&exchanges);
        let commands: u64 = aggregate.commands.iter().map(|c| c.row.count).sum();
        let apart: u64 = aggregate.commands.iter().flat_map(|c| &c.apart).map(|a| a.row.count).sum();
        let groups: u64 = aggregate.groups.iter().map(|g| g.row.count).sum();
        prop_assert_eq!((commands, groups, apart), (aggregate.count, aggregate.count, exchanges.len() as u64 - aggregate.count));
        prop_assert_eq!(aggregate.outcomes.iter().map(|(_, n)| n).sum::<u64>(), aggregate.count);
        let timeline: u64 = aggregate.timeline.bins.iter().map(|(_, bin)| bin.commands).sum();
        prop_assert_eq!(timeline, aggregate.count);
    }
}

#[test]
fn a_command_needs_no_response_time_to_be_counted() {
    let mut orphan = read(0, 0);
    orphan.outcome = ExchangeOutcome::RequestNotCaptured;
    (orphan.request.first, orphan.request.last) = (None, None);
    let aggregate = aggregate(&[orphan]);
    assert_eq!((aggregate.count, aggregate.untimed, aggregate.total.timed), (1, 1, 0));
}
