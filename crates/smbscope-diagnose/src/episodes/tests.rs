use super::*;
use crate::classify::facts_of;
use proptest::prelude::*;
use smbscope_model::{FlowId, Stamp};
use smbscope_stats::Covered;
use smbscope_testkit::exchange::read;
use std::collections::HashMap;

const MS: i64 = 1_000_000;

/// Builds a read with this start and duration in ms.
fn work(flow: u64, start: i64, took: i64) -> Exchange {
    let mut exchange = read(start * MS, took * MS);
    exchange.flow = FlowId(flow);
    exchange.endpoints.client.set_port(50_000 + flow as u16);
    exchange
}

fn spans(episodes: &Episodes) -> Vec<(i64, i64, u64)> {
    let all = episodes.0.iter().flat_map(|(_, client)| client.spans.iter());
    all.map(|(start, span)| (start.0 / MS, span.end.0 / MS, span.work.commands)).collect()
}

fn episodes(exchanges: &[Exchange]) -> Episodes {
    let mut episodes = Episodes::default();
    let mut flows: HashMap<FlowId, (Covered, Option<Timestamp>)> = HashMap::new();
    for exchange in exchanges {
        let (covered, worked) = flows.entry(exchange.flow).or_default();
        let (first, last) = (exchange.request.first.unwrap(), exchange.response.last.unwrap());
        episodes.record(exchange, facts_of(exchange), covered.add(first.time, last.time), worked);
    }
    episodes
}

#[test]
fn a_gap_of_two_seconds_divides() {
    let episodes = episodes(&[work(1, 0, 5), work(1, 1_900, 5), work(1, 3_905, 5), work(1, 5_800, 5)]);
    // From 1,905 to 3,905 is exactly one gap.
    assert_eq!(spans(&episodes), [(0, 1_905, 2), (3_905, 5_805, 2)]);
}

#[test]
fn a_long_command_of_another_connection_joins_what_it_spans() {
    let episodes = episodes(&[work(1, 0, 5), work(1, 4_000, 5), work(2, 1_000, 4_000)]);
    assert_eq!(spans(&episodes), [(0, 5_000, 3)]);
}

#[test]
fn an_episode_counts_its_files_and_its_waits() {
    let mut exchanges = Vec::new();
    for n in 0..40 {
        let mut open = work(1, n * 10, 4);
        open.group = CommandGroup::OpenClose;
        open.command = smbscope_model::Command::Smb2(smbscope_wire::smb2::Smb2Command::CREATE);
        open.path = Some(format!("app\\lib{}.dll", n % 20).as_str().into());
        exchanges.push(open);
    }
    let mut program = exchanges[0].clone();
    program.path = Some("app\\office.exe".into());
    program.request.first = program.request.first.map(|stamp| Stamp { time: Timestamp(395 * MS), ..stamp });
    program.response.last = program.response.last.map(|stamp| Stamp { time: Timestamp(396 * MS), ..stamp });
    exchanges.push(program);
    let found = episodes(&exchanges).finish();
    let episode = &found[0];
    assert_eq!((episode.kind, episode.about.as_deref()), (EpisodeKind::Launch, Some("app\\office.exe")));
    // 40 opens of 4 ms and one of 1 ms; 396 ms from first to last.
    assert_eq!((episode.commands, episode.opens, episode.files), (41, 41, 21));
    assert_eq!(
        (episode.waited, episode.duration(), episode.think()),
        (Nanos(161 * MS), Nanos(396 * MS), Nanos(235 * MS))
    );
}

/// Builds a command on a file that takes 1 ms.
fn on(at: i64, path: &str, file: u64, command: smbscope_wire::smb2::Smb2Command, group: CommandGroup) -> Exchange {
    Exchange {
        command: smbscope_model::Command::Smb2(command),
        group,
        path: Some(path.into()),
        file_id: Some(smbscope_model::FileId::Smb2 { persistent: 0, volatile: file }),
        length: Some(1_000),
        status: Some(smbscope_model::ResponseStatus::Nt(smbscope_wire::status::NtStatus::SUCCESS)),
        ..work(1, at, 1)
    }
}

fn moved(at: i64, path: &str, group: CommandGroup) -> Vec<Exchange> {
    use smbscope_wire::smb2::Smb2Command;
    let transfer = if group == CommandGroup::Write { Smb2Command::WRITE } else { Smb2Command::READ };
    vec![
        on(at, path, at as u64, Smb2Command::CREATE, CommandGroup::OpenClose),
        on(at + 1, path, at as u64, transfer, group),
        on(at + 2, path, at as u64, Smb2Command::CLOSE, CommandGroup::OpenClose),
    ]
}

fn named(exchanges: &[Exchange]) -> (EpisodeKind, Option<String>) {
    let found = episodes(exchanges).finish();
    (found[0].kind, found[0].about.as_deref().map(str::to_owned))
}

#[test]
fn a_save_has_the_name_that_the_temporary_file_is_renamed_to() {
    use smbscope_wire::smb2::Smb2Command;
    let mut rename = on(30, r"docs\A1B2.tmp", 30, Smb2Command::SET_INFO, CommandGroup::Directory);
    rename.subcommand = Some(smbscope_model::Subcommand::Info(smbscope_wire::names::InfoLevel::File(10)));
    let mut save = moved(0, r"docs\~$report.docx", CommandGroup::Write);
    save.extend(moved(10, r"docs\A1B2.tmp", CommandGroup::Write));
    save.push(on(29, r"docs\A1B2.tmp", 30, Smb2Command::CREATE, CommandGroup::OpenClose));
    save.extend([rename, on(31, r"docs\report.docx", 30, Smb2Command::CLOSE, CommandGroup::OpenClose)]);
    save.extend(moved(40, r"docs\~$report.docx", CommandGroup::Write));
    assert_eq!(named(&save), (EpisodeKind::Save, Some(r"docs\report.docx".to_owned())));
    // Without the rename nothing names the document: neither the temporary file nor the owner file counts.
    save.remove(7);
    assert_eq!(named(&save).0, EpisodeKind::Other);
}

#[test]
fn the_direction_tells_a_logon_from_a_logoff_and_an_upload_from_a_download() {
    let files = |group: CommandGroup, name: &str| -> Vec<Exchange> {
        (0..40).flat_map(|n| moved(n * 10, &format!(r"user\{name}{n}.dat"), group)).collect()
    };
    let with_profile = |group: CommandGroup| {
        let mut all = files(group, "f");
        all.extend(moved(500, r"user\NTUSER.DAT", group));
        all
    };
    assert_eq!(named(&with_profile(CommandGroup::Read)).0, EpisodeKind::Logon);
    assert_eq!(named(&with_profile(CommandGroup::Write)).0, EpisodeKind::Logoff);
    assert_eq!(named(&files(CommandGroup::Read, "f")).0, EpisodeKind::Download);
    assert_eq!(named(&files(CommandGroup::Write, "f")).0, EpisodeKind::Upload);
    // Several documents are an upload, one is a save.
    let documents = |count: i64| -> Vec<Exchange> {
        (0..count * 3).flat_map(|n| moved(n * 10, &format!(r"docs\d{}.docx", n % count), CommandGroup::Write)).collect()
    };
    assert_eq!(named(&documents(5)).0, EpisodeKind::Upload);
    assert_eq!(named(&[documents(1), documents(1)].concat()), (EpisodeKind::Save, Some(r"docs\d0.docx".to_owned())));
}

#[test]
fn too_many_bursts_are_joined_by_a_longer_gap() {
    // 200 bursts 5 s apart: a gap of 8 s joins all of them.
    let exchanges: Vec<Exchange> = (0..200).map(|n| work(1, n * 5_000, 5)).collect();
    assert_eq!(spans(&episodes(&exchanges)), [(0, 995_005, 200)]);
}

#[test]
fn a_command_that_spans_many_bursts_does_not_shorten_the_gap() {
    // A gap of 2 s would make one episode, but the pauses require 8 s, in either order.
    let bursts: Vec<Exchange> = (0..100).map(|n| work(1, n * 5_000, 5)).collect();
    let through = [work(2, 0, 500_000), work(2, 507_000, 5)];
    for exchanges in [[&bursts[..], &through].concat(), [&through, &bursts[..]].concat()] {
        assert_eq!(spans(&episodes(&exchanges)), [(0, 507_005, 102)]);
    }
}

fn times(exchanges: &[Exchange]) -> Vec<i64> {
    exchanges.iter().map(|exchange| exchange.time(TimeKind::ResponseTime).unwrap().0 / MS).collect()
}

#[test]
fn an_episode_keeps_its_longest_commands_whatever_others_took() {
    // 600 commands of 1 to 6 ms, then, after a pause, 20 slow ones: the room is for 250 of each episode.
    let mut exchanges: Vec<Exchange> = (0..600).map(|n| work(1, n * 10, 1 + n % 6)).collect();
    exchanges.extend((0..20).map(|n| work(1, 60_000 + n * 1_000, 900)));
    exchanges[3].outcome = smbscope_model::ExchangeOutcome::ResponseEndMissing;
    let found = episodes(&exchanges).finish();
    assert_eq!(found.iter().map(|one| (one.commands, one.timed)).collect::<Vec<_>>(), [(600, 599), (20, 20)]);
    let mut expected: Vec<i64> = (0..600).filter(|n| *n != 3).map(|n| 1 + n % 6).collect();
    expected.sort_unstable_by_key(|time| std::cmp::Reverse(*time));
    assert_eq!(times(&found[0].longest), expected[..EPISODE_COMMANDS_MAX]);
    assert_eq!(times(&found[1].longest), [900; 20]);
}

#[test]
fn episodes_of_many_clients_share_the_room() {
    // 100 clients with 4 episodes of 60 commands each: 16,384 / 128 / 4 = 32 commands per episode.
    let mut all = Episodes::default();
    for client in 0..100u8 {
        let mut worked = None;
        for n in 0..240i64 {
            let mut exchange = work(u64::from(client), n / 60 * 10_000 + n % 60 * 10, 1 + n % 7);
            exchange.endpoints.client.set_ip([10, 0, 0, client].into());
            all.record(&exchange, facts_of(&exchange), Nanos(MS), &mut worked);
        }
    }
    let held: usize =
        all.0.iter().flat_map(|(_, client)| client.spans.values()).map(|span| span.work.longest.len()).sum();
    assert!(held <= 2 * ALL_EPISODE_COMMANDS_MAX, "{held}");
    let found = all.finish();
    assert_eq!(found.len(), 400);
    assert!(found.iter().all(|episode| episode.longest.len() == 32 && episode.commands == 60));
}

#[test]
fn commands_of_any_partition_of_the_connections_are_the_same() {
    // Three clients with two connections each and some episodes of hundreds of commands; 16,384 / 4 / pauses fit.
    let all: Vec<Exchange> = (0..9_000i64)
        .map(|n| {
            let mut exchange = work(n as u64 % 6, n / 3_000 * 30_000 + n % 3_000 * 7, 1 + (n * 7_919) % 211);
            exchange.endpoints.client.set_ip([10, 0, 0, (n % 3) as u8].into());
            exchange
        })
        .collect();
    let part = |wanted: fn(u64) -> bool| {
        let chosen: Vec<Exchange> = all.iter().filter(|exchange| wanted(exchange.flow.0)).cloned().collect();
        episodes(&chosen)
    };
    let whole = episodes(&all).finish();
    assert!(whole.iter().all(|episode| episode.longest.len() < episode.timed as usize), "nothing was dropped");
    for (mut mine, theirs) in [
        (part(|flow| flow < 2), part(|flow| flow >= 2)),
        (part(|flow| flow == 5), part(|flow| flow != 5)),
        (part(|flow| flow % 2 == 0), part(|flow| flow % 2 == 1)),
    ] {
        mine.merge(theirs);
        assert_eq!(mine.finish(), whole);
    }
}

proptest! {
    #[test]
    fn episodes_of_any_partition_of_the_connections_merge_to_the_whole(
        times in prop::collection::vec((1u64..6, 0i64..900_000, 1i64..3_000), 0..300),
        parts in prop::array::uniform6(0usize..3),
    ) {
        let mut all: Vec<Exchange> = times.iter().map(|(flow, start, took)| work(*flow, *start, *took)).collect();
        all.sort_by_key(|exchange| exchange.response.last.map(|stamp| stamp.time));
        let part = |wanted: usize| -> Vec<Exchange> {
            all.iter().filter(|exchange| parts[exchange.flow.0 as usize] == wanted).cloned().collect()
        };
        let [a, b, c] = [0, 1, 2].map(|wanted| episodes(&part(wanted)));
        let merged = |mine: &Episodes, theirs: &Episodes| {
            let mut both = mine.clone();
            both.merge(theirs.clone());
            both
        };
        let whole = episodes(&all);
        prop_assert!(whole.0.iter().all(|(_, client)| client.spans.len() <= EPISODES_MAX));
        for merged in [merged(&merged(&a, &b), &c), merged(&c, &merged(&b, &a)), merged(&merged(&b, &c), &a)] {
            prop_assert_eq!(merged.finish(), whole.finish());
            prop_assert_eq!(spans(&merged), spans(&whole));
        }
    }
}

#[test]
fn a_name_of_64_kib_keeps_its_end() {
    let mut exchange = read(0, 1);
    exchange.path = Some(format!("{}{}", "ä\\".repeat(20_000), "report.docx").into());
    exchange.user = Some("ann".into());
    let mut longest = LongestCommands::default();
    longest.record(&exchange, 1);
    let kept = longest.finish(1).remove(0);
    let path = kept.path.expect("it has one");
    assert!((1_000..=EPISODE_NAME_MAX).contains(&path.len()), "{}", path.len());
    assert!(path.starts_with(CUT_NAME_MARK) && path.ends_with(r"ä\report.docx"), "{path}");
    assert_eq!(kept.user.as_deref(), Some("ann"));
}

#[test]
fn all_clients_together_have_one_room() {
    for clients in 0..=EPISODE_CLIENTS_MAX {
        assert!(room(clients) * clients <= ALL_EPISODE_COMMANDS_MAX, "{clients}");
    }
    assert_eq!((room(1), room(3), room(512)), (16_384, 4_096, 32));
}
