//! The text report: figures, alignment and order.

use crate::common;
use smbscope_model::{Command, CommandGroup, Dialect, Quality};
use smbscope_report::Report;
use smbscope_report::text::{ReportTextOptions, render};

fn at(report: &Report, width: usize) -> String {
    render(report, &ReportTextOptions { width, full: true, ..ReportTextOptions::default() })
}

/// Returns the first line that starts with `start` after its indentation.
fn line(text: &str, start: &str) -> String {
    let found = text.lines().find(|line| line.trim_start().starts_with(start));
    found.unwrap_or_else(|| panic!("no line {start:?} in\n{text}")).trim_end().to_owned()
}

#[test]
fn small_report_at_100_columns() {
    insta::assert_snapshot!(at(&common::small(), 100));
}

#[test]
fn office_report_at_100_columns() {
    insta::assert_snapshot!(at(&common::office(), 100));
}

#[test]
fn office_report_at_80_columns() {
    insta::assert_snapshot!(at(&common::office(), 80));
}

#[test]
fn without_full_the_report_fits_a_screen_and_begins_with_the_answer() {
    let brief = |report: &Report, width| render(report, &ReportTextOptions { width, ..ReportTextOptions::default() });
    insta::assert_snapshot!(brief(&common::office(), 80));
    for report in [common::small(), common::office()] {
        for width in [80, 100, 132] {
            let text = brief(&report, width);
            assert!(text.lines().count() <= 40, "{text}");
            // Paths of captures and suggested commands are never shortened.
            let wide = |line: &&str| line.chars().count() > width && !line.contains(" smbscope analyze ");
            assert_eq!(text.lines().find(wide), None);
            let at = |beginning: &str| text.lines().position(|line| line.starts_with(beginning)).unwrap_or(usize::MAX);
            let order = [at("Groups"), at("Where time went")];
            assert!(order.is_sorted() && order[1] < usize::MAX, "{text}");
        }
    }
}

#[test]
fn every_column_of_the_command_table_is_right_to_the_digit() {
    let text = at(&common::small(), 140);
    let head: Vec<String> = line(&text, "SMB1 commands").split_whitespace().skip(2).map(str::to_owned).collect();
    let expected = "Count Share Untimed Pkts Total wait Fastest Median Average p95 p99 Slowest StdDev Service";
    assert_eq!(head.join(" "), expected);
    // 5 of 10 commands, one without the end of its response; 11 packets in 4 exchanges: 2.75. Times are derived in the
    // test of the JSON report. Total wait is 4 · 4.64 ms, and service time 3/5 of the response time: 3/5 · 4.12 ms =
    // 2.47 ms.
    let row: Vec<String> = line(&text, "READ_ANDX").split_whitespace().map(str::to_owned).collect();
    assert_eq!(row.join(" "), "READ_ANDX 5 50.0% 1 2.8 18.6 ms 320 µs 4.12 ms 4.64 ms - - 10.0 ms 4.74 ms 2.47 ms");
    // A single value has no standard deviation.
    let row: Vec<String> = line(&text, "LOCKING_ANDX").split_whitespace().map(str::to_owned).collect();
    assert_eq!(row.join(" "), "LOCKING_ANDX 1 10.0% 2.0 500 µs 500 µs 500 µs 500 µs - - 500 µs - 300 µs");
}

#[test]
fn nothing_is_wider_than_the_page() {
    for report in [common::small(), common::office()] {
        for width in [80, 100, 132] {
            let text = at(&report, width);
            let lines = text.lines().filter(|line| !line.contains(" smbscope analyze "));
            let widest = lines.max_by_key(|line| line.chars().count()).unwrap_or_default();
            assert!(widest.chars().count() <= width, "{} > {width}: {widest}", widest.chars().count());
        }
    }
}

#[test]
fn colour_only_when_asked_for() {
    let plain = at(&common::office(), 100);
    assert!(!plain.contains('\u{1b}'));
    // SMB1 in use is below the answer and above all figures.
    let smb1 =
        plain.lines().position(|line| line == "SMB1 in use: 192.168.1.7 of 192.168.1.100:139, 1 of 8 connections");
    let figures = plain.lines().position(|line| line.starts_with("SMB response times"));
    assert!(smb1.is_some() && smb1 < figures, "{plain}");
    let options = ReportTextOptions { width: 100, color: true, full: true, ..ReportTextOptions::default() };
    let coloured = render(&common::office(), &options);
    assert!(coloured.contains("\u{1b}[1m\u{1b}[35mSMB1 (NT LM 0.12) in use on 1 of 8 connections"), "{coloured}");
    // Without colours, the text is the same.
    let stripped: String = coloured.split('\u{1b}').enumerate().fold(String::new(), |text, (i, part)| {
        text + if i == 0 { part } else { part.split_once('m').map_or("", |(_, rest)| rest) }
    });
    assert_eq!(stripped, plain);
}

#[test]
fn smb1_in_use_is_seen_at_once() {
    let mut report = common::small();
    report.connections = (1..=8).map(|client| common::connection(client, Some(Dialect::NtLm012))).collect();
    assert_eq!(line(&at(&report, 100), "Dialect"), "  Dialect    SMB1 (NT LM 0.12) in use on 8 of 8 connections");
}

#[test]
fn an_smb1_negotiate_that_led_to_smb2_stands_below_smb2() {
    let exchanges = [
        common::exchange(common::smb1_command(0x72), CommandGroup::Session, 0, 1_000_000),
        common::exchange(common::smb2_command(0), CommandGroup::Session, 2_000_000, 1_000_000),
    ];
    let connection = common::connection(1, Some(Dialect::Smb2(0x0311)));
    let text = at(&common::report(&exchanges, vec![connection], Quality::default()), 100);
    assert!(!text.contains("SMB1 commands"), "{text}");
    let row: Vec<String> = line(&text, "NEGOTIATE (SMB1) ").split_whitespace().map(str::to_owned).collect();
    assert_eq!(row[2..4], ["1", "50.0%"]);
    assert!(text.replace('\n', " ").contains("NEGOTIATE (SMB1) opened connections"), "{text}");
    // If SMB1 is in use on another connection, NEGOTIATE is listed with the SMB1 commands.
    let connections = [Dialect::Smb2(0x0311), Dialect::NtLm012].map(|dialect| common::connection(1, Some(dialect)));
    let text = at(&common::report(&exchanges, connections.into(), Quality::default()), 100);
    assert!(text.contains("SMB1 commands"), "{text}");
}

#[test]
fn an_smb1_negotiate_that_ends_in_smb2_is_not_smb1_in_use() {
    let negotiate = common::exchange(common::smb1_command(0x72), CommandGroup::Session, 0, 1_000);
    let connection = common::connection(1, Some(Dialect::Smb2(0x0311)));
    let text = at(&common::report(&[negotiate], vec![connection], Quality::default()), 100);
    assert_eq!(line(&text, "Dialect"), "  Dialect    SMB 3.1.1 on the only connection");
    assert!(!text.contains("in use"));
}

#[test]
fn smb1_without_its_negotiation_is_still_smb1_in_use() {
    let read = common::exchange(common::smb1_command(0x2e), CommandGroup::Read, 0, 1_000);
    let text = at(&common::report(&[read], vec![common::connection(1, None)], Quality::default()), 100);
    assert_eq!(line(&text, "Dialect"), "  Dialect    SMB1 in use (1 command; its negotiation was not captured)");
}

#[test]
fn a_report_of_nothing_is_still_a_report() {
    let text = at(&common::report(&[], Vec::new(), Quality::default()), 100);
    assert!(text.contains("No SMB command could be read."), "{text}");
    assert!(text.contains("No SMB command was seen."), "{text}");
}

#[test]
fn encrypted_frames_alone_make_a_report() {
    let frame = common::exchange(Command::EncryptedFrame, CommandGroup::Encrypted, 0, 1_000_000);
    let text = at(&common::report(&[frame], Vec::new(), Quality::default()), 100);
    assert_eq!(line(&text, "ENCRYPTED").split_whitespace().nth(1), Some("1"));
}

#[test]
fn encryption_is_said_beside_the_answer() {
    let frame = common::exchange(Command::EncryptedFrame, CommandGroup::Encrypted, 0, 1_000_000);
    let quality = Quality { encrypted_frames: 2, ..Quality::default() };
    let text = at(&common::report(std::slice::from_ref(&frame), Vec::new(), quality.clone()), 100);
    let expected = "2 frames are encrypted: what they do is hidden, only the frames can be timed (median 1.00 ms).";
    assert!(text.lines().any(|line| line == expected), "{text}");
    let headline = "Nothing is slow: 1 encrypted request took 1.00 ms.";
    assert_eq!(text.lines().next(), Some(headline));
    let negotiate = common::exchange(common::smb2_command(0), CommandGroup::Session, 0, 3_000_000);
    let text = at(&common::report(&[frame, negotiate], Vec::new(), quality), 100);
    let text = text.replace('\n', " ");
    assert!(text.contains("1 other command; it took 3.00 ms (NEGOTIATE)."), "{text}");
}

#[test]
fn what_the_network_lost_and_what_was_sent_in_vain_stand_apart() {
    let read = common::exchange(common::smb2_command(8), CommandGroup::Read, 0, 1_000);
    let quality = Quality {
        packets: 100,
        retransmitted_segments: 5,
        spurious_retransmissions: 2,
        retransmissions_seen_once: 1,
        ..Quality::default()
    };
    let text = at(&common::report(&[read], Vec::new(), quality), 100);
    let count = |start: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(&format!("  {start}  ")));
        found.and_then(|rest| rest.split_whitespace().next()).map(str::to_owned)
    };
    assert_eq!(count("  retransmitted"), Some("5".into()));
    assert_eq!(count("    lost by the network"), Some("3".into()));
    assert_eq!(count("    in vain, it was received"), Some("2".into()));
    assert_eq!(count("  sent again, first not seen"), Some("1".into()));
}

#[test]
fn a_number_is_not_parted_from_its_unit() {
    let numbers = |text: &str| text.lines().take(4).filter(|line| line.ends_with(|c: char| c.is_ascii_digit())).count();
    let report = common::office();
    assert_eq!((60..=160).map(|width| numbers(&at(&report, width))).sum::<usize>(), 0);
}

#[test]
fn columns_without_room_are_named() {
    assert!(
        at(&common::office(), 80)
            .replace('\n', " ")
            .contains("also shows Untimed, Pkts, Fastest, Average, StdDev, Service.")
    );
    assert!(!at(&common::office(), 160).contains("also shows"));
}

#[test]
fn users_and_shares_are_listed_with_their_commands() {
    let text = at(&common::office(), 100);
    let of = |label| line(&text, label);
    assert!(of("Users").starts_with("  Users      CORP\\ann ("), "{text}");
    assert!(of("Shares").ends_with(" commands)"), "{text}");
}

#[test]
fn shares_of_commands_add_up_to_100_percent() {
    let text = at(&common::office(), 160);
    let is_command = |line: &&str| !line.starts_with(' ') && line.split_whitespace().count() > 5;
    let rows = text.lines().skip_while(|line| !line.starts_with("SMB1 commands"));
    let rows = rows.take_while(|line| !line.starts_with("Times are")).filter(is_command);
    let share = |line: &str| {
        let cell = line.split_whitespace().filter(|cell| *cell != "(waiting)").nth(2)?;
        cell.trim_start_matches('<').strip_suffix('%')?.parse::<f64>().ok()
    };
    let total: f64 = rows.filter_map(share).sum();
    // 16 rows, each rounded by at most 0.05; "<0.1" is off by at most 0.1.
    assert!((total - 100.0).abs() <= 0.9, "{total}");
}

#[test]
fn a_name_from_the_wire_cannot_steer_the_terminal() {
    let mut report = common::small();
    report.title = Some("\u{1b}[2Jgone".into());
    assert!(!at(&report, 100).contains('\u{1b}'));
}
